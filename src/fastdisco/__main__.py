"""`python -m fastdisco`: the same as the command `fastdisco`."""

import sys

from .cli import main

sys.exit(main())
