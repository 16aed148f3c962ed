"""The flags of ``test``."""

from __future__ import annotations

import argparse
from typing import Final

from karmada_advisor.cli.flags import shared

FILE_NAMES: Final = ("_test.yaml", "_test.yml")
"""The ends of the names of test files."""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command's arguments."""
    parser = shared.make_parser(
        "test",
        "Run placement tests: cases of what policies do with workloads on a fleet, without a control plane.",
        "Exit status: 0 every case passes or is skipped; 1 a case fails, or --every-policy does; 2 a file cannot be "
        "run, there is no test, or --run matches none (2 wins over 1).",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="FILE",
        help=f"files, and directories that are searched for *{FILE_NAMES[0]} (default: this directory)",
    )
    shared.add_texts(parser, "--run", "REGEX", "only the cases whose PATH/CASE matches; may be repeated")
    parser.add_argument("-v", "--verbose", action="store_true", help="list the cases that pass, too")
    parser.add_argument("-q", "--quiet", action="store_true", help="show only what fails")
    parser.add_argument("--explain", action="store_true", help="explain each failure in full")
    parser.add_argument("--fail-fast", action="store_true", help="end after the first case that fails")
    parser.add_argument(
        "--every-policy", action="store_true", help="fail if a policy claims no workload of any case"
    )
    shared.add_text(parser, "--junit", "FILE", "write JUnit XML, too")
    parser.add_argument(
        "--github",
        action="store_true",
        help="add annotations of GitHub to the text: an error for each failure",
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="rewrite clusters of expectations that do not hold in their files",
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of test files")
    shared.add_output(parser)
    group = parser.add_argument_group("a first file of tests from a control plane, or from files")
    shared.add_text(
        group, "--init", "DIR", "write the fleet, the workloads and tests of first decisions into DIR"
    )
    group.add_argument("-n", "--namespace", default="", help="the workloads of this namespace (default: all)")
    shared.add_text(group, "--selector", "SELECTOR", "the workloads whose bindings have these labels")
    group.add_argument(
        "--anonymise",
        action="store_true",
        help="with --init: replace all names by numbers in the order of the names; policies are written, too",
    )
    shared.add_objects(parser)
    return parser
