"""The command line for the Makefile: python -m tests.deploy --help."""

from __future__ import annotations

import argparse
import datetime as dt
import subprocess
import sys

from . import buildah, chart, manifests, programs, reference, release


def _manifests(_: argparse.Namespace) -> None:
    for path in manifests.write():
        print(f"{path.relative_to(chart.ROOT)} is new")
    for page in reference.PAGES:
        text = page.read_text()
        if (new := reference.updated(text)) != text:
            page.write_text(new)
            print(f"{page.relative_to(chart.ROOT)} is new")


def _programs(arguments: argparse.Namespace) -> None:
    for major in programs.HELM_VERSIONS:
        print(f"Helm {major}: {programs.helm(major)}")
    if arguments.all:
        print(f"CRDs of Prometheus Operator: {programs.monitoring_crds()}")
        print(f"Base of the image: {buildah.why_not() or buildah.ensure()}")


def _package(arguments: argparse.Namespace) -> None:
    print(release.archive(chart.ROOT, chart.ROOT / "dist", arguments.epoch))


def _release(arguments: argparse.Namespace) -> None:
    print(release.make(arguments.version, dt.datetime.now(dt.UTC).date()))


def _actionlint(arguments: argparse.Namespace) -> int:
    command = [str(programs.actionlint()), f"-shellcheck={arguments.shellcheck}"]
    return subprocess.run(command, cwd=chart.ROOT, check=False).returncode


def main() -> int:
    """Run one command; an error prints a message, not a traceback."""
    parser = argparse.ArgumentParser(prog="python -m tests.deploy")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser(
        "manifests", help="render the chart into manifests/, tables into docs/operations.md and docs/web.md"
    ).set_defaults(do=_manifests)
    command = commands.add_parser("programs", help="build what the tests of the chart need, once per machine")
    command.add_argument("--all", action="store_true", help="also what only the end-to-end tests need")
    command.set_defaults(do=_programs)
    command = commands.add_parser("package", help="lint the chart and pack it into dist/")
    command.add_argument("epoch", help="the time of all its files, in seconds since 1970")
    command.set_defaults(do=_package)
    command = commands.add_parser("release", help="make the files of a release in dist/, and push nothing")
    command.add_argument("version")
    command.set_defaults(do=_release)
    command = commands.add_parser("actionlint", help="check .github/workflows")
    command.add_argument("shellcheck", help="the program that checks the steps")
    command.set_defaults(do=_actionlint)
    arguments = parser.parse_args()
    try:
        return arguments.do(arguments) or 0
    except (chart.HelmError, programs.BuildError, buildah.BuildahError, release.ReleaseError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
