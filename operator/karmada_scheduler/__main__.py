"""``python -m karmada_scheduler`` and ``karmada-pyscheduler``.

The signal handlers are installed before anything else is imported, which takes a second or two.
"""

import sys

from karmada_scheduler.process.process_exit import TERMINATION


def main() -> int:
    """Run the command line of the process and return its exit status."""
    TERMINATION.install()
    from karmada_scheduler import command

    return command.main()


if __name__ == "__main__":
    sys.exit(main())
