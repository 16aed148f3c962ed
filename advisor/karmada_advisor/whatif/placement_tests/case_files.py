"""Reads the cases of a file of placement tests: changes and expectations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.explain.codes import CODES
from karmada_advisor.whatif.placement_tests import model
from karmada_advisor.whatif.placement_tests.cel import ExpressionError, NoCelError, expressions
from karmada_advisor.whatif.placement_tests.included_manifests import IncludedManifests
from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile
from karmada_advisor.whatif.placement_tests.schema import WORDS
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.api.names import nearest_hint
from karmada_scheduler.config.yaml_values import YamlPath

_NAMED_LISTS: Final = frozenset({"delete", "without", "cordon", "uncordon", "rebalance"})


class CaseReader:
    """Reads cases; what is wrong is noted in the file, of which nothing is used then."""

    def __init__(self, located: LocatedFile, *, has_plugins: bool = False) -> None:
        """Read the cases of a file; with plugins of its own, causes may have codes of these."""
        self._in, self._has_plugins = located, has_plugins

    def cases(self, value: Any) -> Iterator[model.PlacementCase]:
        """Yield the cases of the list in the file."""
        path: YamlPath = ("cases",)
        names: dict[str, int] = {}
        items = _items(path, value)
        if not items:
            self._in.problem(path, "cases: there is no case")
        for at, found in items:
            name = found.get("name")
            if not isinstance(name, str) or not name.strip():
                self._in.problem(at, "a case needs a name")
                continue
            place = self._in.place((*at, "name"))
            if name in names:
                text = f"a case is named {name} already (line {names[name]})"
                self._in.problem((*at, "name"), text)
            names.setdefault(name, place.line)
            if not self._in.written(at).keys() & {"expect", "then"}:
                self._in.problem(at, f"{name}: a case needs expect or then")
            yield model.PlacementCase(
                name,
                place,
                tuple(self._given((*at, "given"), found.get("given", {}))),
                tuple(self._expectations(at, found)),
                tuple(self._steps((*at, "then"), found["then"])) if "then" in found else (),
                found.get("skip", ""),
            )

    def _given(self, path: YamlPath, value: Any) -> Iterator[model.ScenarioChange]:
        for at, words in _items(path, value) if isinstance(value, list) else [(path, value)]:
            yield from self._changes(at, words)

    def _steps(self, path: YamlPath, value: Any) -> Iterator[model.CaseStep]:
        items = _items(path, value)
        if not items:
            self._in.problem(path, "then: there is no step")
        for index, (at, found) in enumerate(items):
            changes = tuple(self._changes(at, found))
            if not changes and not self._in.problems:
                self._in.problem(at, f"then[{index}]: nothing happens; use one of {', '.join(WORDS)}")
            yield model.CaseStep(index, self._in.place(at), changes, tuple(self._expectations(at, found)))

    def _changes(self, path: YamlPath, found: Mapping[str, Any]) -> Iterator[model.ScenarioChange]:
        for word, value in found.items():
            at = (*path, word)
            if word == "apply":
                for item, manifest in IncludedManifests(self._in).of_items(at, value):
                    yield model.ScenarioChange(word, "", manifest, self._in.place(item))
            elif word == "at":
                try:
                    yield model.ScenarioChange(word, "", parse_time(value), self._in.place(at))
                except ValueError:
                    text = f"at: expected a time such as 2026-11-26T12:00:00Z, got {value}"
                    self._in.problem(at, text)
            elif word in _NAMED_LISTS:
                for item, name in _items(at, value) if isinstance(value, list) else [(at, value)]:
                    yield model.ScenarioChange(word, name, None, self._in.place(item))
            elif word != "expect":
                for name, each in value.items():
                    place = self._in.place((*at, name), of_key=True)
                    for one in each if isinstance(each, list) else [each]:
                        yield model.ScenarioChange(word, name, one, place)

    # --- expectations ---

    def _expectations(self, of: YamlPath, parts: Mapping[str, Any]) -> Iterator[model.Expectation]:
        """Yield the expectations of a case, or of a step of one."""
        path = (*of, "expect")
        for name, found in parts.get("expect", {}).items():
            at = (*path, name)
            keys = {}
            for key, wanted in found.items():
                keys[key] = model.ExpectedValue(
                    self._value((*at, key), key, wanted), self._in.place((*at, key))
                )
            yield model.Expectation(name, self._in.place(at, of_key=True), keys)

    def _value(self, path: YamlPath, key: str, wanted: Any) -> Any:
        """Return an expectation, and note what is wrong with it; expressions have their own places."""
        if key == "that":
            return tuple(self._expressions(path, wanted))
        if key == "clusters" and not self._in.written(path):
            self._in.problem(path, "clusters: it is empty; write notPlaced: true, or placed: false")
        for at, code in _items(path, wanted) if key == "causes" and not self._has_plugins else ():
            if code not in CODES:
                self._in.problem(at, f"explain has no cause {code}{nearest_hint(code, CODES)}")
        return wanted

    def _expressions(self, path: YamlPath, value: Any) -> Iterator[model.ExpectedValue]:
        if not value:
            self._in.problem(path, "that: there is no expression")
        elif isinstance(value, str):
            yield self._expression(path, "that", value)
        elif self._in.typed(path, value, list):
            for at, each in _items(path, value):
                yield self._expression(at, f"that[{at[-1]}]", each)

    def _expression(self, path: YamlPath, name: str, value: Any) -> model.ExpectedValue:
        """Return an expression, and note what is wrong with it.

        Args:
            path: Where the value is.
            name: ``that[0]``, for messages.
            value: The value.
        """
        place, extent = self._in.place(path), self._in.extent(path)
        found = model.ExpectedValue(value, place)
        if not isinstance(value, str):
            what = {dict: "a mapping", bool: "true or false"}.get(type(value), "another value")
            hint = 'Put it in quotes: it has ": "' if isinstance(value, dict) else "Put it in quotes"
            self._in.problem(path, f"{name}: expected an expression, got {what}. {hint}")
            return found
        if extent is not None and not extent.style:
            rest = self._in.line(extent.end_line)[extent.end_column - 1 :].strip()
            if rest.startswith("#"):
                self._in.problem(path, f'{name}: " #" begins a comment here; put the expression in quotes')
                return found
        try:
            expressions().compile(value)
        except NoCelError as problem:
            if all(each.text != str(problem) for each in self._in.problems):
                self._in.problem(path, str(problem))
        except ExpressionError as problem:
            line = (value.splitlines() or [""])[problem.line - 1]
            excerpt = (line, " " * (problem.column - 1) + "^")
            written = (
                ""
                if extent is None
                else self._in.line(extent.line)[extent.column - 1 : extent.end_column - 1]
            )
            if extent is not None and value in written and problem.line == 1:
                place = model.FilePlace(
                    place.line, place.column + problem.column - (0 if extent.style else 1)
                )
            self._in.problems.append(model.FileProblem(self._in.path, *place, f"{name}: {problem}", excerpt))
        return found


def _items(path: YamlPath, value: Any) -> list[tuple[YamlPath, Any]]:
    """Return the items of a list that fit the schema, with their paths."""
    return [((*path, index), each) for index, each in enumerate(value or ()) if each is not None]
