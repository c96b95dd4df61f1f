"""`python -m klaudit`."""

from klaudit.cli import main

main()
