"""The command line for the Makefile: python -m tests.deploy --help."""

from __future__ import annotations

import argparse
import sys

from . import buildah, chart, manifests, programs, reference


def _manifests(_: argparse.Namespace) -> None:
    for path in manifests.write():
        print(f"{path.relative_to(chart.ROOT)} is new")
    page = reference.PAGE.read_text()
    if (new := reference.updated(page)) != page:
        reference.PAGE.write_text(new)
        print(f"{reference.PAGE.relative_to(chart.ROOT)} is new")


def _programs(arguments: argparse.Namespace) -> None:
    print(f"Helm: {programs.helm()}")
    if arguments.all:
        print(f"CRDs of Prometheus Operator: {programs.monitoring_crds()}")
        print(f"Base of the image: {buildah.why_not() or buildah.ensure()}")


def _package(_: argparse.Namespace) -> None:
    print(chart.helm("lint", "--strict", str(chart.CHART)), end="")
    print(chart.helm("package", str(chart.CHART), f"--destination={chart.ROOT / 'dist'}"), end="")


def main() -> int:
    """Run one command; an error prints a message, not a traceback."""
    parser = argparse.ArgumentParser(prog="python -m tests.deploy")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser(
        "manifests", help="render the chart into manifests/, tables into docs/operations.md"
    ).set_defaults(do=_manifests)
    command = commands.add_parser("programs", help="build what the tests of the chart need, once per machine")
    command.add_argument("--all", action="store_true", help="also what only the end-to-end tests need")
    command.set_defaults(do=_programs)
    commands.add_parser("package", help="lint the chart and pack it into dist/").set_defaults(do=_package)
    arguments = parser.parse_args()
    try:
        arguments.do(arguments)
    except (chart.HelmError, programs.BuildError, buildah.BuildahError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
