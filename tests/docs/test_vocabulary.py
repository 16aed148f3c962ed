"""Retired words are not used, in names and in prose; docs/glossary.md has the words that are."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ROOTS = (
    "operator",
    "advisor",
    "plugins",
    "docs",
    "charts",
    "manifests",
    "requirements",
    "tests",
    "tools",
    ".ci",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "pyproject.toml",
)
"""Folders and files that are checked, as far as git tracks them."""

EXPLAINING = frozenset({"docs/glossary.md", "tests/docs/test_vocabulary.py"})
"""Files that name retired words to explain them."""

RETIRED = {
    "anew": "again, from scratch",
    "bad day": "fault",
    "bad days": "faults, fault tests",
    "beside": "next to, along with",
    "Dice": "choices",
    "echoes": "own writes",
    "for want of": "without, because of too little",
    "freedoms": "allowed differences",
    "homeless": "unplaced",
    "keeps off": "blocks",
    "lineup": "plugin set",
    "memo": "cache",
    "merit": "score",
    "merits": "scores",
    "narration": "decision log",
    "news": "changes",
    "owed": "pending",
    "parked": "gated, unschedulable",
    "passage": "transaction",
    "passages": "transactions",
    "placeless": "unplaced",
    "room": "available replicas, capacity",
    "roomiest": "most available",
    "rooms": "capacities, packages",
    "stand-in": "fake",
    "standings": "score cache, ranking",
    "stories": "traces",
    "story": "trace",
    "told": "reported, notified",
    "untold": "unreported",
    "verdict": "result",
    "verdicts": "results",
    "whoever": "who, anyone who",
    "woken": "enqueued, notified",
    "World": "a name for what the class builds",
}
"""What to use instead of each word. A word with a capital letter is retired only as (part of) a class name, and one
with a hyphen only as one word or name: ``stand-in`` and ``stand_in``, but not ``stand in``."""

STABLE = re.compile(
    r"--anew\b|tests[/.]bad_days|\bBAD_DAYS_|(?:startup_cleanup_activities|authenticate)\.memo\b"
    r"|--room\b|\"room\"|\broom\(|\b(?:LessRoom|NotEnoughRoom)\b|\b(?:by|less|more|most) room\b|\broom:|`room`"
)
"""Names that users or other files rely on: the fourth is kopf's, in the figures of a soak, and the others are "room" as
explanations print it (docs/glossary.md)."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    alternatives = [word.replace(" ", "[- ]") for word in words]
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(alternatives)})(?![A-Za-z])")


_CLASS_NAMES = _pattern(word for word in RETIRED if word[0].isupper())
_WORDS = _pattern(word for word in RETIRED if word[0].islower())


def tracked_files(roots: Iterable[str]) -> list[str]:
    """Return the paths of the files below the roots that git tracks."""
    command = ["git", "ls-files", "-z", "--", *roots]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.split("\0") if path]


def retired_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the word, as the table has it, for each retired word of a text."""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = _CAMEL.sub("-", STABLE.sub("", line)).replace("_", "-")
        found = _WORDS.findall(plain.lower()) + _CLASS_NAMES.findall(plain)
        yield from ((number, _as_in_table(word)) for word in found)


def _as_in_table(word: str) -> str:
    return word if word in RETIRED else word.replace("-", " ")


def problems_in(path: str) -> Iterator[str]:
    """Yield a message for each retired word of a file; none for a file that is no text."""
    try:
        text = (ROOT / path).read_text()
    except UnicodeDecodeError:
        return
    for number, word in retired_words(text):
        yield f'{path}:{number}: "{word}" is retired: {RETIRED[word]}'


def test_no_retired_word_is_used() -> None:
    paths = [path for path in tracked_files(ROOTS) if path not in EXPLAINING]
    assert "plugins/karmada_scheduler/__init__.py" in paths
    problems = [problem for path in paths for problem in problems_in(path)]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("The status was told.", ["told"]),
        ("Told once, the API server is TOLD again.", ["told", "told"]),
        ("def _is_untold(self) -> bool:", ["untold"]),
        ("class FilterVerdicts:", ["verdicts"]),
        ("class HTTPVerdict2:", ["verdict"]),
        ("by_room = sorted(rooms)", ["room", "rooms"]),
        ("def keeps_off(self) -> bool:  # a taint keeps off", ["keeps off", "keeps off"]),
        ("a bad day of `BadDay`", ["bad day", "bad day"]),
        ("a stand-in, stand_in or StandIn", ["stand-in", "stand-in", "stand-in"]),
        ("class QueueWorld:", ["World"]),
    ],
)
def test_a_retired_word_is_found(line: str, words: list[str]) -> None:
    assert list(retired_words(f"first line\n{line}\n")) == [(2, word) for word in words]


@pytest.mark.parametrize(
    "line",
    [
        "headroom, besides, memory, newsletter, toldo",
        "the world, a hello_world, six dice",
        "values stand in a file",
        "scheduler simulate --anew",
        "see tests/bad_days and tests.bad_days.kit",
    ],
)
def test_other_words_are_not_found(line: str) -> None:
    assert list(retired_words(line)) == []


def test_a_problem_names_file_line_word_and_replacement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tests.docs.test_vocabulary.ROOT", tmp_path)
    (tmp_path / "a.md").write_text("First line.\nA verdict.\n")
    assert list(problems_in("a.md")) == ['a.md:2: "verdict" is retired: result']
