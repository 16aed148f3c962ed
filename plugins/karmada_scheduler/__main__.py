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

_FOLDERS = {
    "karmada_advisor": "advisor",
    "karmada_pyscheduler": "operator",
    "prometheus_client": "operator",
    "uvloop": "operator",
}
"""By a module that an answer may lack: the folder of the distribution that brings it."""


def main(*, is_plugin: bool = False) -> None:
    """Run the command line of the process, and end the process: freeing all modules takes longer than many answers.

    Args:
        is_plugin: Whether kubectl runs it, for the commands that only read.
    """
    TERMINATION.install()
    from karmada_scheduler import command

    try:
        end(command.kubectl_plugin() if is_plugin else command.main())
    except ImportError as error:
        missing = _folder_not_installed(error)
        if missing is not None:
            sys.exit(
                f"Error: this needs the distribution in {missing} of the repository of karmada-pyscheduler, which is "
                f"not installed: install it in a clone with `pip install ./plugins ./{missing}`, or all with `pip install .`"
            )
        unusable = _of_a_dependency(error)
        if unusable is None:
            raise
        sys.exit(
            f"Error: a dependency is missing, or compiled for another Python or processor ({unusable}): install "
            f"karmada-pyscheduler again, with `{sys.executable} -m pip install --force-reinstall`"
        )


def _folder_not_installed(error: ImportError) -> str | None:
    """Return the folder of this project's distribution that an import needs and that is not installed, None for any other."""
    from importlib.util import find_spec

    folder = _FOLDERS.get((error.name or "").partition(".")[0])
    package = "karmada_advisor" if folder == "advisor" else "karmada_pyscheduler"
    return folder if folder and find_spec(package) is None else None


def _of_a_dependency(error: BaseException | None) -> ImportError | None:
    """Return the error of the dependency itself; numpy raises a page about it."""
    if isinstance(error, ImportError) and error.name:
        is_ours = error.name.startswith(("karmada_scheduler", "karmada_pyscheduler", "karmada_advisor"))
        return None if is_ours else error
    return _of_a_dependency(error.__cause__ or error.__context__) if error else None


def kubectl_plugin() -> None:
    """Run ``kubectl pyscheduler``: the commands that only read, never the scheduler."""
    main(is_plugin=True)


def kubectl_complete() -> None:
    """Complete a line of ``kubectl pyscheduler``; kubectl calls it with the words, the last of which may be empty."""
    sys.argv[1:1] = ["__complete", "--"]
    main()


if __name__ == "__main__":
    main()
