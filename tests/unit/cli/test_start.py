"""What each command imports: a start of the process is mostly imports, so none may come back unnoticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from karmada_advisor.cli.commands import COMMANDS

FLEET = Path(__file__).parents[3] / "docs" / "examples" / "fleet"
FILES = (f"--clusters={FLEET / 'clusters.yaml'}", f"--bindings={FLEET / 'bindings.yaml'}")
_SCRIPT = """
import sys
from karmada_scheduler import command
try:
    command.main(sys.argv[1:])
finally:
    print("imported:", *sorted(sys.modules))
"""


def imported(*arguments: str) -> set[str]:
    """Return the modules of a process after a command."""
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in ran.stderr, ran.stderr
    return set(ran.stdout.splitlines()[-1].removeprefix("imported:").split())


HEAVY = {
    "aiohttp",
    "asyncio",
    "cattrs",
    "grpc",
    "jinja2",
    "kopf",
    "kubernetes",
    "numpy",
    "orjson",
    "prometheus_client",
    "uvloop",
    "yaml",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_flags_of_a_command_need_the_standard_library_only(command: str) -> None:
    found = imported(command, "--help")
    assert not found & HEAVY
    of_the_project = {
        module for module in found if module.startswith(("karmada_scheduler.", "karmada_pyscheduler"))
    }
    assert of_the_project == {
        "karmada_scheduler.command",
        "karmada_scheduler.process",
        "karmada_scheduler.process.memory",
        "karmada_scheduler.process.process_exit",
    }


def test_the_version_needs_neither_flags_nor_commands() -> None:
    found = imported("--version")
    assert not found & HEAVY
    assert not {each for each in found if each.startswith(("argparse", "karmada_advisor"))}


def test_an_unknown_flag_is_reported_without_the_command() -> None:
    assert not imported("explain", "--nonsense") & HEAVY


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "-n", "shop", "checkout-deployment", *FILES),
        ("why-not", "-n", "shop", "checkout-deployment", "eu-west-1", *FILES),
        ("plan", "--cordon=eu-west-1", *FILES),
        ("rebalance", "--max-moves=1", *FILES),
        ("survive", *FILES),
        ("simulate", *FILES),
        ("test", str(Path(__file__).parents[1] / "placement_tests" / "plain")),
        ("plugins",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_an_answer_from_files_needs_no_client_no_estimator_and_no_configuration(
    arguments: tuple[str, ...],
) -> None:
    live = {"aiohttp", "grpc", "jinja2", "kopf", "kubernetes", "prometheus_client", "uvloop"}
    estimators_and_configuration = {"asyncio", "attr", "cattrs", "google.protobuf", "importlib.metadata"}
    if arguments != ("plugins",):  # it reads --config, and prints problems of it
        config = "karmada_scheduler.config"
        estimators_and_configuration |= {
            f"{config}.{each}" for each in ("configuration_file", "extenders", "flags")
        }
    assert not imported(*arguments) & (live | estimators_and_configuration)


OF_OTHER_FLAGS = {
    "karmada_advisor.whatif.plan.model",
    "karmada_advisor.whatif.rebalance.model",
    "karmada_advisor.whatif.survive.model",
    "karmada_advisor.fleet.process",
    "karmada_advisor.views.markup",
    "karmada_advisor.whynot.answer",
    "karmada_advisor.whynot.model",
    "karmada_advisor.whynot.search",
}


@pytest.mark.parametrize("output", ["text", "json"])
def test_an_explanation_needs_nothing_of_other_commands_and_formats(output: str) -> None:
    found = imported("explain", "-n", "shop", "checkout-deployment", "-o", output, *FILES)
    assert not found & OF_OTHER_FLAGS


def test_the_scheduler_has_imported_what_decisions_need_when_it_starts() -> None:
    script = "import sys, karmada_pyscheduler.app; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert set(ran.stdout.split()) >= {"numpy", "google.protobuf", "karmada_pyscheduler.estimator.wire"}
