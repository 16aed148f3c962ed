"""``python -m karmada_scheduler`` and ``karmada-pyscheduler``.

The signal handlers are installed before anything else is imported, which takes up to a second or two.
"""

from karmada_scheduler.process.process_exit import TERMINATION, end


def main() -> None:
    """Run the command line of the process, and end the process: freeing all modules takes longer than many answers."""
    TERMINATION.install()
    from karmada_scheduler import command

    end(command.main())


if __name__ == "__main__":
    main()
