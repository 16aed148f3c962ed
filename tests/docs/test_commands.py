"""Commands in the documentation: a test executes them, or they are only shown, and their targets and flags exist.

Executed are blocks marked ``sh`` or ``console``, and lines after ``$``. Every other command is only shown.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from karmada_advisor.cli.commands import COMMANDS, parser_of
from karmada_scheduler.config import flags

ROOT = Path(__file__).parents[2]
EXECUTED = {
    "README.md": "docs/test_explain.py",
    "docs/examples/spacecloud/README.md": "docs/test_packages.py",
    "docs/examples/testfilter/README.md": "docs/test_packages.py",
    "docs/extenders.md": "docs/test_extender.py",
    "docs/move-a-namespace.md": "e2e/test_move_a_namespace.py",
    "docs/operations.md": "deploy/test_operations.py",
    "docs/placement-tests.md": "docs/test_placement_tests.py",
    "docs/survive.md": "docs/test_survive.py",
    "docs/writing-plugins.md": "docs/test_writing_plugins.py",
}
"""The documents with commands that are executed, and the test that does so."""
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (*ROOT.glob("*.md"), *(ROOT / "charts").glob("*.md"), *(ROOT / "docs").rglob("*.md"))
}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHOWN = re.compile(
    r"^ *((?:karmada-pyscheduler|kubectl pyscheduler|make)(?: (?:.*\\\n)*.*)?)$", re.MULTILINE
)


def _is_executed(text: str) -> bool:
    return {"sh", "console"} & {
        language for language, _ in _FENCED.findall(text)
    } != set() or "\n    $ " in text


def _shown() -> list[tuple[str, str]]:
    """Return commands that are only shown, each with its document."""
    found = []
    for document, text in DOCUMENTS.items():
        blocks = re.findall(r"^ {4}.*$", _FENCED.sub("", text), re.MULTILINE)
        blocks += [block for language, block in _FENCED.findall(text) if not language]
        found += [(document, command) for command in _SHOWN.findall("\n".join(blocks))]
    return found


def test_the_documents_with_commands_that_are_executed_are_those_of_the_list() -> None:
    assert {document for document, text in DOCUMENTS.items() if _is_executed(text)} == set(EXECUTED)


@pytest.mark.parametrize("document", EXECUTED)
def test_the_test_of_a_document_reads_it(document: str) -> None:
    source = (ROOT / "tests" / EXECUTED[document]).read_text()
    assert Path(document).name in source or "PAGE.read_text" in source


@pytest.mark.parametrize(("document", "command"), _shown())
def test_what_is_only_shown_names_targets_and_flags_that_exist(document: str, command: str) -> None:
    words = shlex.split(re.sub(r"[][…]|\\\n", "", command), comments=True)
    words = words[: next((index for index, word in enumerate(words) if word in {">", "|", "&"}), None)]
    if words[0] == "make":
        assert {word for word in words[1:] if "=" not in word} <= TARGETS
        return
    name, *arguments = words[1 + (words[0] == "kubectl") :]
    if name in COMMANDS:
        parser = parser_of(name)
        parser.parse_args(arguments)
    elif name != "version":
        assert flags.known([name, *arguments])[1] == []


def test_the_weekly_proofs_are_targets() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "proofs.yml").read_text())
    assert {proof["check"] for proof in workflow["jobs"]["proof"]["strategy"]["matrix"]["include"]} <= TARGETS
