"""``python -m karmada_scheduler`` and ``karmada-pyscheduler``.

The signal handlers are installed before anything else is imported, which takes up to a second or two.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (pip refuses it, a work tree or PYTHONPATH does not)
    sys.exit(
        "Error: karmada-pyscheduler needs Python 3.11 or newer, and this is %d.%d: "  # noqa: UP031
        "install it for a newer one, or use the image" % sys.version_info[:2]
    )

from karmada_scheduler.process.process_exit import TERMINATION, end


def main() -> None:
    """Run the command line of the process, and end the process: freeing all modules takes longer than many answers."""
    TERMINATION.install()
    from karmada_scheduler import command

    try:
        end(command.main())
    except ImportError as error:
        unusable = _of_a_dependency(error)
        if unusable is None:
            raise
        sys.exit(
            f"Error: a dependency is missing, or compiled for another Python or processor ({unusable}): install "
            f"karmada-pyscheduler again, with `{sys.executable} -m pip install --force-reinstall`"
        )


def _of_a_dependency(error: BaseException | None) -> ImportError | None:
    """Return the error of the dependency itself; numpy raises a page about it."""
    if isinstance(error, ImportError) and error.name:
        return None if error.name.startswith(("karmada_scheduler", "karmada_advisor")) else error
    return _of_a_dependency(error.__cause__ or error.__context__) if error else None


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
