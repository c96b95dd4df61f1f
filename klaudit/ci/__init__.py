"""What runs inside a CI service: `python -I -m klaudit.ci.github`, `python -I -m klaudit.ci.comment`.

Modules, not commands: nobody types them.  `-I` matters: without it Python would import modules that the judged repository brings along.
"""
