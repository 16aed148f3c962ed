"""The flags of commands that need no control plane: ``completion``, ``plugins``, ``simulate`` and ``test``."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Final

from karmada_advisor.cli.flags import shared

FILE_NAMES: Final = ("_test.yaml", "_test.yml")
"""The ends of the names of test files."""

SHELLS = ("bash", "zsh", "fish")

_TESTS: Final = {
    "--run REGEX...": "only the cases whose PATH/CASE matches; may be repeated",
    "-v --verbose": "list the cases that pass, too",
    "-q --quiet": "show only what fails",
    "--explain": "explain each failure in full",
    "--fail-fast": "end after the first case that fails",
    "--every-policy": "fail if a policy claims no workload of any case",
    "--junit FILE": "write JUnit XML, too",
    "--github": "add annotations of GitHub to the text: an error for each failure",
    "--update": "rewrite clusters of expectations that do not hold in their files",
    "--schema": "print the JSON schema of test files",
}
_FIRST_TESTS: Final = {
    "--init DIR": "write the fleet, the workloads and tests of first decisions into DIR",
    "-n --namespace NAMESPACE": "the workloads of this namespace (default: all)",
    "--selector SELECTOR": "the workloads whose bindings have these labels",
}


def simulate_parser() -> argparse.ArgumentParser:
    """Return the parser of simulate's arguments."""
    parser = shared.make_parser(
        "simulate",
        "Decide where the bindings of a file would go on the clusters of another.",
        "Bindings are decided in the order of the files, each as if the decisions before it had been written. "
        "PreEnqueue, Reserve and Permit plugins are called, PreBind, Bind and PostBind plugins are not. "
        "Exit status: 0 every binding is placed; 1 some are not, are gated at PreEnqueue, wait at Permit, or name "
        "a scheduler that no profile has; 2 some input cannot be used (the rest was still decided, unless there is no cluster).",
    )
    shared.add_all(parser, shared.DECIDED, required=True, default=None)
    shared.add_all(parser, shared.WORKLOADS)
    shared.add(parser, "--anew", "decide placed bindings as if they were new", dest="as_new")
    text = "exit with 0 although some bindings have a schedulerName that no profile of --config, and not --scheduler-name, has"
    shared.add(parser, "--ignore-other-schedulers", text)
    shared.add(parser, "-o --output json|table|yaml = table", "what to print")
    shared.add_rules(parser)
    return parser


def test_parser() -> argparse.ArgumentParser:
    """Return the parser of test's arguments."""
    parser = shared.make_parser(
        "test",
        "Run placement tests: cases of what policies do with workloads on a fleet, without a control plane.",
        "Exit status: 0 every case passes or is skipped; 1 a case fails, or --every-policy does; 2 a file cannot be "
        "run, there is no test, or --run matches none (2 wins over 1).",
    )
    text = f"files, and directories that are searched for *{FILE_NAMES[0]} (default: this directory)"
    parser.add_argument("paths", nargs="*", metavar="FILE", help=text)
    shared.add_all(parser, _TESTS)
    shared.add_output(parser)
    group = parser.add_argument_group("a first file of tests from a control plane, or from files")
    shared.add_all(group, _FIRST_TESTS)
    shared.add_objects(parser)
    return parser


def plugins_parser() -> argparse.ArgumentParser:
    """Return the parser of plugins's arguments."""
    parser = shared.make_parser(
        "plugins",
        "List all plugins, with the same flags as the scheduler.",
        "Exit status: 0; 1 if the scheduler would not start like this. Only the problems are printed then.",
    )
    add = partial(shared.add, parser)
    add("--plugins LIST...", "as for the scheduler (default *)", default=None)
    add("--config FILE", "configuration file", type=Path)
    shared.add_plugin_directories(parser)
    add("--scheduler-name NAME", "name of the profile", default=None)
    add("--feature-gates LIST...", "A=true,B=false")
    add("-o --output json|table = table", "what to print")
    return parser


def completion_parser() -> argparse.ArgumentParser:
    """Return the parser of completion's arguments."""
    parser = shared.make_parser(
        "completion",
        "Print a script that completes commands, flags and names in a shell: "
        "source <(karmada-pyscheduler completion bash). kubectl completes 'kubectl pyscheduler' by itself.",
        "Exit status: 0.",
    )
    parser.add_argument("shell", choices=SHELLS)
    return parser
