"""``python -m skbayes_sg``: the demonstration."""

import sys

from .demo import main

sys.exit(main())
