"""The JSON schema of a file of placement tests, and the check of a file by it; editors show its descriptions, the reader takes its keys from here.

Readers get what fits, without checks of their own; of the rest, the file has the problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from karmada_advisor.whatif.placement_tests.located_yaml import LocatedFile
from karmada_advisor.whatif.plan.model import Effect
from karmada_scheduler.api.names import nearest_hint
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config import features
from karmada_scheduler.config.features import RULES
from karmada_scheduler.config.yaml_values import YamlPath
from karmada_scheduler.core.classify import ScheduleType

OF_STEPS: Final = {"effect": "state", "stops": "placement"}
"""Expectations that compare with what there was before, and with what of it."""

_REFUSED: Final = ("undecided",)
"""A class of ``plan`` that a test calls ``notPlaced: OtherScheduler``."""


def _schema() -> dict[str, Any]:
    """Return the schema of ``schema.json``, with the values that the product defines."""
    found: dict[str, Any] = orjson.loads(Path(__file__).with_name("schema.json").read_bytes())
    definitions = {name: each["properties"] for name, each in found["$defs"].items() if "properties" in each}
    for component in ("Scheduler", "ControllerManager"):
        gates = definitions[component]["featureGates"]["properties"]
        gates.update({name: {"type": "boolean"} for name in features.KNOWN})
    definitions["Scheduler"]["decisionsOf"]["enum"] = list(RULES)
    expectation = definitions["Expectation"]
    expectation["type"]["enum"] = [kind.value for kind in ScheduleType]
    expectation["effect"]["enum"] = [effect.value for effect in Effect if effect.value not in _REFUSED]
    found["$defs"]["Step"]["properties"] = {**definitions["Changes"], **definitions["Step"]}
    return found


SCHEMA: Final = _schema()


def keys_of(definition: str) -> tuple[str, ...]:
    """Return the keys of a definition, "" for those of a file."""
    found = SCHEMA if not definition else SCHEMA["$defs"][definition]
    return tuple(found["properties"])


WORDS: Final = keys_of("Changes")
"""The words of ``given`` and ``then``."""


Schema = Mapping[str, Any]

_TYPES: Final = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
_OF_READERS: Final = frozenset({"apply", "bindings", "decisionsOf", "name", "policies", "that", "workloads"})
"""Keys about whose values a reader says more than a schema."""
_MAY_BE_EMPTY: Final = tuple(SCHEMA["$defs"][name] for name in ("Changes", "FleetCluster"))
_SHOWN: Final = {"notPlaced": "notPlaced (true or a reason)"}


class SchemaCheck:
    """Notes what of a file does not fit its schema.

    Attributes:
        value: The document without that, and without values that are missing.
    """

    def __init__(self, located: LocatedFile) -> None:
        """Check a file."""
        self._in = located
        self.value: dict[str, Any] = self._object((), located.value, SCHEMA) or {}

    def _checked(self, path: YamlPath, value: Any, schema: Schema) -> Any:
        """Return a value without what does not fit; None if nothing does."""
        if "$ref" in schema:
            return self._checked(path, value, _resolved(schema))
        if "oneOf" in schema:
            return self._one_of(path, value, schema["oneOf"])
        match schema.get("type", "string" if "enum" in schema else None):
            case None:
                return value
            case "object":
                return self._object(path, value, schema)
            case "array":
                return None if value is None else self._list(path, value, schema)
            case "string" | "integer" | "boolean" as kind:
                fits = self._in.typed(path, value, _TYPES[kind], _SHOWN.get(str(path[-1]), ""))
                return value if fits and self._is_allowed(path, value, schema) else None
        if type(value) in {str, int, float}:
            return value
        return self._in.problem(path, f"{path[-1]}: expected an amount such as 40 or 100Gi")

    def _one_of(self, path: YamlPath, value: Any, choices: Sequence[Schema]) -> Any:
        constants = [choice["const"] for choice in choices if "const" in choice]
        if any(value == constant and type(value) is type(constant) for constant in constants):
            return value
        others = [choice for choice in choices if "const" not in choice]
        fitting = (option for option in others if type(value) is _TYPES[_resolved(option)["type"]])
        chosen = next(fitting, None) or next((option for option in others if "$ref" in option), others[-1])
        if value is None and constants:
            self._in.typed(path, value, _TYPES[chosen["type"]], _SHOWN.get(str(path[-1]), ""))
            return None
        return self._checked(path, value, chosen)

    def _object(self, path: YamlPath, value: Any, schema: Schema) -> Any:
        name = path[-1] if path else "the file"
        if value is None:
            if schema not in _MAY_BE_EMPTY:
                self._in.problem(path, f"{name}: expected a mapping, it is empty")
            return None
        if not self._in.typed(path, value, dict):
            return None
        if not schema.keys() & {"properties", "additionalProperties"}:
            return value
        known, others = schema.get("properties", {}), schema.get("additionalProperties", False)
        names = [key for key in known if key in value or key not in OF_STEPS or "then" in path]
        if not value and "minProperties" in schema:
            self._in.problem(path, f"{name}: nothing is expected; use one of {', '.join(names)}")
        found = {}
        for key, child in value.items():
            at = (*path, key)
            if key not in known and others is False:
                where = f"{name}: " if path and isinstance(name, str) else ""
                end = nearest_hint(key, names) or f"; known: {', '.join(names)}"
                self._in.problem(at, f"{where}unknown key {key}{end}", of_key=True)
            elif key in known and key in _OF_READERS:
                found[key] = child
            elif (fitting := self._checked(at, child, known.get(key, others))) is not None:
                found[key] = fitting
        return found

    def _list(self, path: YamlPath, value: Any, schema: Schema) -> list[Any] | None:
        if not self._in.typed(path, value, list):
            return None
        if schema.get("uniqueItems"):
            twice = next((index for index, entry in enumerate(value) if value.count(entry) > 1), None)
            if twice is not None:
                self._in.problem((*path, twice), f"{path[-1]}: {value[twice]} is there twice")
        return [self._checked((*path, index), entry, schema["items"]) for index, entry in enumerate(value)]

    def _is_allowed(self, path: YamlPath, value: Any, schema: Schema) -> bool:
        if "minimum" in schema and not schema["minimum"] <= value <= MAX_INT32:
            self._in.problem(path, f"{path[-1]}: expected {schema['minimum']} to {MAX_INT32}, got {value}")
        elif "enum" in schema and value not in schema["enum"]:
            self._in.problem(path, f"{path[-1]} {value}{nearest_hint(value, schema['enum'])}")
        else:
            return True
        return False


def _resolved(schema: Schema) -> Schema:
    """Return the definition that a schema refers to; itself without a reference."""
    found: Schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found
