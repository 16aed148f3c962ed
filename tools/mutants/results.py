"""What was found about each mistake, kept in a file for as long as code and tests are the same."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tools.mutants.mutation import ROOT, Module, Mutation

FILE: Final = ROOT / ".mutants" / "results.jsonl"
REASONS: Final = Path(__file__).with_name("equivalent.toml")
KILLED: Final = "killed"
SURVIVED: Final = "survived"
TIMEOUT: Final = "timeout"
UNREACHED: Final = "unreached"
"""No test runs the block."""
EQUIVALENT: Final = "equivalent"
"""No test sees it, and it is proved that none can."""
INVALID: Final = "invalid"
"""The mistake cannot be made in a function that exists already; it does not count."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome for one mistake."""

    id: str
    outcome: str
    test: str
    """The test that fails, empty if none does."""
    key: str
    """A hash of what the outcome depends on."""
    seconds: float = 0.0


class Results:
    """Results by the id of the mistake; each is appended to a file when it is found."""

    def __init__(self, path: Path = FILE) -> None:
        """Read the file, if there is one."""
        self._path = path
        self._found: dict[str, Result] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                each = Result(**json.loads(line))
                self._found[each.id] = each

    def last(self, mutation: Mutation) -> Result | None:
        """Return the last result about a mistake, which may be outdated."""
        return self._found.get(mutation.id)

    def current(self, mutation: Mutation, module: Module, tests: Iterable[str]) -> Result | None:
        """Return the result if neither the code nor the tests that it depends on have changed."""
        found = self._found.get(mutation.id)
        return found if found and found.key == key(mutation, module, found.test, tests) else None

    def add(self, result: Result) -> None:
        """Keep a result."""
        self._found[result.id] = result
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def key(mutation: Mutation, module: Module, test: str, tests: Iterable[str]) -> str:
    """Return a hash of what a result depends on.

    A failure depends on the function and on the file of the test that fails; anything else on the module and on the
    files of all tests that reach the mistake.
    """
    if test:
        parts = [mutation.body, _content(_file(test))]
    else:
        parts = [hashlib.sha256(module.source.encode()).hexdigest()]
        parts += [_content(path) for path in sorted({_file(each) for each in tests})]
        parts += sorted(tests)
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def equivalents() -> Mapping[tuple[str, str, str, str, int], str]:
    """Return the reasons why mistakes change nothing, by module, function, texts and number."""
    content = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    return {
        (each["module"], each["function"], each["before"], each["after"], each.get("nth", 0)): each["because"]
        for each in content["equivalent"]
    }


def reason(mutation: Mutation, reasons: Mapping[tuple[str, str, str, str, int], str]) -> str:
    """Return why a mistake changes nothing; empty if that is not known."""
    module = mutation.module.partition("/")[2]
    return reasons.get((module, mutation.function, mutation.before, mutation.after, mutation.nth), "")


def read_tests(tests: Iterable[str]) -> None:
    """Read the files of tests now, before somebody changes them."""
    for path in {_file(each) for each in tests}:
        _content(path)


def text_of(test: str) -> str:
    """Return the file of a test as it was when it was read first."""
    return _text(_file(test))


def _content(path: str) -> str:
    return hashlib.sha256(_text(path).encode()).hexdigest()


@cache
def _text(path: str) -> str:
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _file(test: str) -> str:
    return test.partition("::")[0]
