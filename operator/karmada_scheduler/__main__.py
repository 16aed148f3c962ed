"""``python -m karmada_scheduler``."""

import sys

from karmada_scheduler.cli import main

sys.exit(main())
