"""Reads a file of placement tests; everything that is wrong with it is found before anything is decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.claims.model import Replicas
from karmada_advisor.claims.template import TemplateKey
from karmada_advisor.explain.codes import CODES
from karmada_advisor.fleet.files import as_cluster
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.stored import text_of
from karmada_advisor.whatif.placement_tests import model
from karmada_advisor.whatif.placement_tests.cel import ExpressionError, NoCelError, expressions
from karmada_advisor.whatif.placement_tests.checking import problems_of
from karmada_advisor.whatif.placement_tests.included_manifests import IncludedManifests, cluster_of
from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile
from karmada_advisor.whatif.placement_tests.schema import SCHEMA, WORDS, SchemaCheck
from karmada_advisor.whatif.plan.objects import template_key
from karmada_scheduler.api.binding import KINDS
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.manifest import ManifestError, parse_time
from karmada_scheduler.api.names import nearest_hint
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.config.features import DEFAULT_RULES, RULES
from karmada_scheduler.config.yaml_values import YamlPath

_NAMED_LISTS: Final = frozenset({"delete", "without", "cordon", "uncordon", "rebalance"})


def _items(path: YamlPath, value: Any) -> list[tuple[YamlPath, Any]]:
    """Return the items of a list that fit the schema, with their paths."""
    return [((*path, index), entry) for index, entry in enumerate(value or ()) if entry is not None]


class Unread(Exception):  # noqa: N818 (no error: a file of another tool)
    """The file is of another kind, and no test."""


def read_test_file(
    path: str, *, named: bool
) -> tuple[model.PlacementTestFile | None, list[model.FileProblem]]:
    """Return the tests of a file, None if it has problems; and these.

    Args:
        path: The file.
        named: Whether the user has named it; then another kind is a problem.

    Raises:
        Unread: It is of another kind.
    """
    located = LocatedFile(path)
    value = located.value
    kind = value.get("kind") if isinstance(value, dict) else None
    if kind != model.KIND and not located.problems:
        if not named:
            raise Unread
        located.problem(("kind",), f"expected kind: {model.KIND}, got {kind!r}")
    if located.value is None or kind != model.KIND:
        return None, located.problems
    reader = _Reader(located)
    file = reader.file()
    if not located.problems:
        located.problems += problems_of(file, reader.included)
    problems = sorted(located.problems, key=lambda each: (each.path != path, each.line, each.column))
    return (None if problems else file), problems


class _Reader:
    """Reads one file; what is wrong is noted in it."""

    def __init__(self, located: LocatedFile) -> None:
        self._in = located
        self._notes: list[str] = []
        self._has_plugins = False  # causes may have codes of these
        self.included: Final = IncludedManifests(located)

    def file(self) -> model.PlacementTestFile:
        """Return the file; it is usable if nothing is wrong."""
        found = SchemaCheck(self._in).value
        if found.get("apiVersion") != model.API_VERSION:
            text = f"expected apiVersion: {model.API_VERSION}, got {found.get('apiVersion')!r}"
            self._in.problem(("apiVersion",), text)
        for name in SCHEMA["required"]:
            if name not in self._in.value:
                self._in.problem((), f"{name} is missing")
        workloads = self._manifests("workloads", found)
        priorities = [manifest for manifest in workloads if manifest.get("kind") == "PriorityClass"]
        templates = [each for each in workloads if not _is_other(each) and each not in priorities]
        self._ignored("workloads", [manifest for manifest in workloads if _is_other(manifest)])
        policies = self._manifests("policies", found)
        self._ignored("policies", [each for each in policies if each.get("kind") not in ID_LABELS])
        scheduler, manager = found.get("scheduler", {}), found.get("controllerManager", {})
        name, rules = found.get("name", self._in.path), self._rules(scheduler)
        self._has_plugins = bool(rules.plugin_dirs or rules.config)
        return model.PlacementTestFile(
            path=self._in.path,
            name=name if self._in.typed(("name",), name, str) else "",
            clusters=tuple(self._fleet(found.get("fleet", {}), templates)),
            policies=tuple(manifest for manifest in policies if manifest.get("kind") in ID_LABELS),
            workloads=tuple(templates),
            bindings=tuple(each for each in self._manifests("bindings", found) if each.get("kind") in KINDS),
            sizes=dict(self._sizes(found.get("sizes", {}), templates)),
            rules=rules,
            gates=scheduler.get("featureGates", {}),
            scheduler_names=scheduler.get("names", ()),
            evicts=manager.get("noExecuteTaintEviction", False),
            controller_gates=manager.get("featureGates", {}),
            cases=tuple(self._cases(found.get("cases"))) if "cases" in self._in.value else (),
            notes=tuple(self._notes),
            priority_classes={
                text_of(manifest, "metadata", "name"): manifest["value"]
                for manifest in priorities
                if type(manifest.get("value")) is int
            },
        )

    def _manifests(self, key: str, found: Mapping[str, Any]) -> list[model.Manifest]:
        return [manifest for _, manifest in self.included.of_items((key,), found.get(key), once=True)]

    def _ignored(self, what: str, manifests: Iterable[model.Manifest]) -> None:
        kinds = sorted({str(manifest.get("kind")) for manifest in manifests})
        if kinds:
            self._notes.append(f"{what}: {', '.join(kinds)} are not read: a test has no use for them there")

    def _fleet(
        self, found: Mapping[str, Any], workloads: Iterable[model.Manifest]
    ) -> Iterator[model.Manifest]:
        names: dict[str, str] = {}
        path: YamlPath = ("fleet", "files")
        for at, manifest in self.included.of_items(path, found.get("files"), once=True):
            if manifest.get("kind") == CLUSTER:
                names[text_of(manifest, "metadata", "name")] = found["files"][at[-1]]
                yield from self._read_cluster(at, manifest)
        if not names and not self._in.problems and "clusters" not in found:
            self._in.problem(("fleet",), "fleet: there is no cluster; use files or clusters")
        served = sorted({(text_of(each, "apiVersion"), text_of(each, "kind")) for each in workloads})
        for name, cluster in found.get("clusters", {}).items():
            at = ("fleet", "clusters", name)
            if name in names:
                self._in.problem(at, f"the cluster {name} is in {names[name]}, too", of_key=True)
            elif (made := cluster_of(self._in, at, name, cluster, served)) is not None:
                yield from self._read_cluster(at, made)

    def _read_cluster(self, path: YamlPath, manifest: model.Manifest) -> Iterator[model.Manifest]:
        try:
            as_cluster(manifest)
        except ManifestError as problem:
            self._in.problem(path, f"cluster {text_of(manifest, 'metadata', 'name')}: {problem}")
            return
        yield manifest

    def _sizes(
        self, sizes: Mapping[str, Any], templates: Sequence[model.Manifest]
    ) -> Iterator[tuple[TemplateKey, Replicas]]:
        for written, fields in sizes.items():
            path: YamlPath = ("sizes", written)
            named = [template for template in templates if written in _spellings(template)]
            if "replicas" not in self._in.written(path):
                self._in.typed((*path, "replicas"), None, int)
            elif len(named) != 1:
                known = {name for template in templates for name in _spellings(template)}
                text = f"sizes: {written}: no workload has this name{nearest_hint(written, known)}"
                self._in.problem(path, text, of_key=True)
            else:
                request = {name: str(amount) for name, amount in fields.items() if name != "replicas"}
                key = template_key(named[0])
                claimed = TemplateKey(text_of(named[0], "apiVersion"), key.kind, key.namespace, key.name)
                replicas = fields.get("replicas", 0)
                yield claimed, Replicas(replicas, {"resourceRequest": request} if request else None)

    def _rules(self, found: Mapping[str, Any]) -> Rules:
        """Return the rules of the scheduler, without its feature gates."""
        path: YamlPath = ("scheduler",)
        directories = [
            self.included.resolved((*path, "pluginDirs", index), text)
            for index, text in enumerate(found.get("pluginDirs", ()))
        ]
        config = found.get("config")
        decisions_of = found.get("decisionsOf", DEFAULT_RULES.decisions_of)
        if decisions_of not in [*RULES]:  # which compares: a list has no hash
            known = " or ".join(f'"{rule}"' for rule in RULES)
            text = f"decisionsOf: expected {known}, in quotes, got {decisions_of!r:.60}"
            self._in.problem((*path, "decisionsOf"), text)
            decisions_of = DEFAULT_RULES.decisions_of
        return Rules(
            plugins=found.get("plugins") or None,
            config=None if config is None else self.included.resolved((*path, "config"), config),
            plugin_dirs=[folder for folder in directories if folder is not None],
            decisions_of=decisions_of,
        )

    # --- cases ---

    def _cases(self, value: Any) -> Iterator[model.PlacementCase]:
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
                for item, manifest in self.included.of_items(at, value):
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
                for name, entry in value.items():
                    place = self._in.place((*at, name), of_key=True)
                    for one in entry if isinstance(entry, list) else [entry]:
                        yield model.ScenarioChange(word, name, one, place)

    # --- expectations ---

    def _expectations(self, of: YamlPath, parts: Mapping[str, Any]) -> Iterator[model.Expectation]:
        """Yield the expectations of a case, or of a step of one."""
        path = (*of, "expect")
        for name, found in parts.get("expect", {}).items():
            at = (*path, name)
            keys = {}
            for key, wanted in found.items():
                value = self._value((*at, key), key, wanted)
                keys[key] = model.ExpectedValue(value, self._in.place((*at, key)))
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
            for at, entry in _items(path, value):
                yield self._expression(at, f"that[{at[-1]}]", entry)

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
            if all(other.text != str(problem) for other in self._in.problems):
                self._in.problem(path, str(problem))
        except ExpressionError as problem:
            line = (value.splitlines() or [""])[problem.line - 1]
            excerpt = (line, " " * (problem.column - 1) + "^")
            if extent is not None and problem.line == 1:
                written = self._in.line(extent.line)[extent.column - 1 : extent.end_column - 1]
                begin = place.column if extent.style else place.column - 1
                place = place._replace(column=begin + problem.column) if value in written else place
            self._in.problems.append(model.FileProblem(self._in.path, *place, f"{name}: {problem}", excerpt))
        return found


def _is_other(manifest: model.Manifest) -> bool:
    """Return whether an object is no workload."""
    return manifest.get("kind") in {CLUSTER, *KINDS, *ID_LABELS}


def _spellings(manifest: model.Manifest) -> tuple[str, ...]:
    key = template_key(manifest)
    if not key.namespace:
        return (key.name,)
    return f"{key.namespace}/{key.name}", f"{key.namespace}/{key.kind.lower()}/{key.name}"
