"""`python -m klaudit`."""

import sys

from klaudit.cli import main

sys.exit(main())
