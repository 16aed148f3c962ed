"""Reads the cases of a file of placement tests: changes and expectations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from karmada_advisor.explain.codes import CODES
from karmada_advisor.fleet.names import nearest_hint
from karmada_advisor.whatif.placement_tests.cel import ExpressionError, NoCelError, expressions
from karmada_advisor.whatif.placement_tests.expectations import OF_STEPS
from karmada_advisor.whatif.placement_tests.included_manifests import IncludedManifests
from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile
from karmada_advisor.whatif.placement_tests.model import (
    CaseStep,
    Expectation,
    ExpectedValue,
    FilePlace,
    PlacementCase,
    ScenarioChange,
)
from karmada_advisor.whatif.placement_tests.report_model import FileProblem
from karmada_advisor.whatif.placement_tests.schema import SCHEMA, WORDS, keys_of
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.config.yaml_places import YamlPath

_NAMED_LISTS: Final = frozenset({"delete", "without", "cordon", "uncordon", "rebalance"})
_TEXT_OR_TEXTS: Final = frozenset({"taint", "label", "room"})


class CaseReader:
    """Reads cases; what is wrong is noted in the file, of which nothing is used then."""

    def __init__(self, located: LocatedFile, *, has_plugins: bool = False) -> None:
        """Read the cases of a file; with plugins of its own, causes may have codes of these."""
        self._in, self._has_plugins = located, has_plugins

    def cases(self, value: Any) -> Iterator[PlacementCase]:
        """Yield the cases of the list in the file."""
        path: YamlPath = ("cases",)
        names: dict[str, int] = {}
        items = self._in.items(path, value)
        if not items:
            self._in.problem(path, "cases: there is no case")
        for at, each in items:
            found = self._in.mapping(at, each, keys_of("Case"))
            name = found.get("name")
            if not isinstance(name, str) or not name.strip():
                self._in.problem(at, "a case needs a name")
                continue
            line = self._in.place((*at, "name")).line
            if name in names:
                text = f"a case is named {name} already (line {names[name]})"
                self._in.problem((*at, "name"), text)
            names.setdefault(name, line)
            if "expect" not in found and "then" not in found:
                self._in.problem(at, f"{name}: a case needs expect or then")
            skip = found.get("skip", "")
            yield PlacementCase(
                name,
                self._in.place((*at, "name")),
                tuple(self._given((*at, "given"), found.get("given"))),
                tuple(self._expectations(at, found, in_step=False)),
                tuple(self._steps((*at, "then"), found["then"])) if "then" in found else (),
                skip if self._in.typed((*at, "skip"), skip, str) else "",
            )

    def _given(self, path: YamlPath, value: Any) -> Iterator[ScenarioChange]:
        if value is None:
            return
        if isinstance(value, list):
            for at, each in self._in.items(path, value):
                yield from self._changes(at, self._in.mapping(at, each, WORDS))
        else:
            yield from self._changes(path, self._in.mapping(path, value, WORDS))

    def _steps(self, path: YamlPath, value: Any) -> Iterator[CaseStep]:
        items = self._in.items(path, value)
        if not items:
            self._in.problem(path, "then: there is no step")
        for index, (at, each) in enumerate(items):
            found = self._in.mapping(at, each, keys_of("Step"))
            changes = tuple(
                self._changes(at, {name: each for name, each in found.items() if name != "expect"})
            )
            if not changes and not self._in.problems:
                self._in.problem(at, f"then[{index}]: nothing happens; use one of {', '.join(WORDS)}")
            expect = tuple(self._expectations(at, found, in_step=True))
            yield CaseStep(index, self._in.place(at), changes, expect)

    def _changes(self, path: YamlPath, words: Mapping[str, Any]) -> Iterator[ScenarioChange]:
        for word, value in words.items():
            at = (*path, word)
            if word == "apply":
                for item, each in self._in.items(at, value):
                    place = self._in.place(item)
                    if isinstance(each, dict):
                        yield ScenarioChange(
                            word, "", IncludedManifests(self._in).in_place(item, each), place
                        )
                    elif self._in.typed(item, each, str, "a file or a manifest"):
                        for manifest in IncludedManifests(self._in).of_files(item, each):
                            yield ScenarioChange(word, "", manifest, place)
            elif word == "at":
                yield from self._time(at, value)
            elif word in _NAMED_LISTS:
                for item, name in self._in.texts(at, value, or_one=True):
                    yield ScenarioChange(word, name, None, self._in.place(item))
            else:
                yield from self._of_subjects(word, at, value)

    def _time(self, path: YamlPath, value: Any) -> Iterator[ScenarioChange]:
        if self._in.typed(path, value, str):
            try:
                yield ScenarioChange("at", "", parse_time(value), self._in.place(path))
            except ValueError:
                text = f"at: expected a time such as 2026-11-26T12:00:00Z, got {value}"
                self._in.problem(path, text)

    def _of_subjects(self, word: str, path: YamlPath, value: Any) -> Iterator[ScenarioChange]:
        for name, each in self._in.mapping(path, value).items():
            at = (*path, name)
            place = self._in.place(at, of_key=True)
            if word in _TEXT_OR_TEXTS:
                for _, text in self._in.texts(at, each, or_one=True):
                    yield ScenarioChange(word, name, text, place)
            else:
                if word == "scale":
                    self._in.count(at, each)
                else:
                    self._in.typed(at, each, {"ready": bool, "add": str, "edit": dict}[word])
                yield ScenarioChange(word, name, each, place)

    # --- expectations ---

    def _expectations(
        self, of: YamlPath, parts: Mapping[str, Any], *, in_step: bool
    ) -> Iterator[Expectation]:
        """Yield the expectations of a case, or of a step of one."""
        path = (*of, "expect")
        for name, each in self._in.mapping(path, parts.get("expect", {})).items():
            at = (*path, name)
            given = each if isinstance(each, dict) else {}
            known = [key for key in keys_of("Expectation") if in_step or key not in OF_STEPS or key in given]
            found = self._in.mapping(at, each, known)
            if each == {}:
                self._in.problem(at, f"{name}: nothing is expected; use one of {', '.join(known)}")
            keys = {}
            for key, wanted in found.items():
                self._check((*at, key), key, wanted)
                if wanted is not None:
                    keys[key] = ExpectedValue(
                        self._value((*at, key), key, wanted), self._in.place((*at, key))
                    )
            yield Expectation(name, self._in.place(at, of_key=True), keys)

    def _value(self, path: YamlPath, key: str, wanted: Any) -> Any:
        """Return an expectation; expressions have their own places."""
        if key != "that":
            return wanted
        found = self._in.items(path, wanted) if isinstance(wanted, list) else [(path, wanted)]
        return tuple(ExpectedValue(text, self._in.place(at)) for at, text in found)

    def _check(self, path: YamlPath, key: str, value: Any) -> None:
        """Note what is wrong with an expectation."""
        match key:
            case "placed" | "policy":
                self._in.typed(path, value, bool if key == "placed" else str)
            case "replicas" | "stops":
                self._in.count(path, value)
            case "notPlaced":
                if value is not True:
                    self._in.typed(path, value, str, "notPlaced (true or a reason)")
            case "clusters":
                self._check_clusters(path, value)
            case "that":
                self._check_expressions(path, value)
            case "causes":
                for at, text in self._in.texts(path, value):
                    known = (text,) if self._has_plugins else CODES
                    self._check_known(at, "explain has no cause", text, known)
            case "warnings":
                if value != "none" and self._in.typed(path, value, list):
                    self._in.texts(path, value)
            case _:
                if self._in.typed(path, value, str):
                    known = SCHEMA["$defs"]["Expectation"]["properties"][key]["enum"]
                    self._check_known(path, key, value, known)

    def _check_expressions(self, path: YamlPath, value: Any) -> None:
        if isinstance(value, str):
            _check_expression(self._in, path, "that", value)
        elif not value:
            self._in.problem(path, "that: there is no expression")
        else:
            for index, (at, each) in enumerate(self._in.items(path, value)):
                _check_expression(self._in, at, f"that[{index}]", each)

    def _check_clusters(self, path: YamlPath, value: Any) -> None:
        if not value and isinstance(value, dict | list):
            self._in.problem(path, "clusters: it is empty; write notPlaced: true, or placed: false")
        elif isinstance(value, dict):
            for name, each in value.items():
                self._in.count((*path, name), each)
        else:
            found = self._in.texts(path, value)
            names = [name for _, name in found]
            twice = next(((at, name) for at, name in found if names.count(name) > 1), None)
            if twice is not None:
                self._in.problem(twice[0], f"clusters: {twice[1]} is there twice")

    def _check_known(self, path: YamlPath, what: str, value: str, known: Iterable[str]) -> None:
        if value not in known:
            self._in.problem(path, f"{what} {value}{nearest_hint(value, known)}")


def _check_expression(located: LocatedFile, path: YamlPath, name: str, value: Any) -> None:
    """Note what is wrong with an expression.

    Args:
        located: The file.
        path: Where the value is.
        name: ``that[0]``, for messages.
        value: The value.
    """
    extent = located.extent(path)
    if not isinstance(value, str):
        what = {dict: "a mapping", bool: "true or false"}.get(type(value), "another value")
        hint = 'Put it in quotes: it has ": "' if isinstance(value, dict) else "Put it in quotes"
        located.problem(path, f"{name}: expected an expression, got {what}. {hint}")
        return
    if extent is not None and not extent.style:
        rest = located.line(extent.end_line)[extent.end_column - 1 :].strip()
        if rest.startswith("#"):
            located.problem(path, f'{name}: " #" begins a comment here; put the expression in quotes')
            return
    try:
        expressions().compile(value)
    except NoCelError as problem:
        if all(each.text != str(problem) for each in located.problems):
            located.problem(path, str(problem))
    except ExpressionError as problem:
        line = (value.splitlines() or [""])[problem.line - 1]
        excerpt = (line, " " * (problem.column - 1) + "^")
        place = located.place(path)
        written = (
            "" if extent is None else located.line(extent.line)[extent.column - 1 : extent.end_column - 1]
        )
        if extent is not None and value in written and problem.line == 1:
            place = FilePlace(place.line, place.column + problem.column - (0 if extent.style else 1))
        located.problems.append(FileProblem(located.path, *place, f"{name}: {problem}", excerpt))
