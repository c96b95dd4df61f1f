"""`klaudit init`: what a repository needs so that klaudit guards it, proposed as changes of files."""
