"""``python -m karmada_scheduler`` and ``karmada-pyscheduler``.

The signal handlers are installed before anything else is imported, which takes up to a second or two.
"""

import sys

from karmada_scheduler.process.process_exit import TERMINATION, end


def main() -> None:
    """Run the command line of the process, and end the process: freeing all modules takes longer than many answers."""
    TERMINATION.install()
    from karmada_scheduler import command

    end(command.main())


def kubectl_plugin() -> None:
    """Run ``kubectl pyscheduler``: the commands that only read. Without one, it prints the help, not a scheduler's log."""
    if len(sys.argv) == 1:
        sys.argv.append("--help")
    main()


def kubectl_complete() -> None:
    """Complete a line of ``kubectl pyscheduler``; kubectl calls it with the words, the last of which may be empty."""
    sys.argv[1:1] = ["__complete", "--"]
    main()


if __name__ == "__main__":
    main()
