"""Checks records against docs/schemas/decision-record.v1.json, which clients may rely on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

SCHEMA: Final[Mapping[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "docs" / "schemas" / "decision-record.v1.json").read_text()
)
_TYPES: Final[Mapping[str, Any]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_KEYWORDS: Final = frozenset(
    "$schema title description type properties required additionalProperties maxProperties items prefixItems "
    "minItems maxItems minimum enum const oneOf format".split()
)


def problems(value: object, schema: Mapping[str, Any] = SCHEMA, path: str = "") -> Iterator[str]:
    """Yield every violation of a schema, and every field that it does not have."""
    assert schema.keys() <= _KEYWORDS, schema.keys() - _KEYWORDS
    types = schema.get("type")
    names = [types] if isinstance(types, str) else types or []
    if names and not any(isinstance(value, _TYPES[name]) for name in names):
        yield f"{path}: {value!r} is not of type {names}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "oneOf" in schema and sum(1 for each in schema["oneOf"] if not [*problems(value, each, path)]) != 1:
        yield f"{path}: {value!r} is not one of the alternatives"
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{path}: {len(value)} items"
            return
        kinds = schema.get("prefixItems") or [schema.get("items", {})] * len(value)
        for index, (each, kind) in enumerate(zip(value, kinds, strict=True)):
            yield from problems(each, kind, f"{path}[{index}]")
    elif isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{path}: {value} is too small"


def _object_problems(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if "oneOf" in schema:
        return
    if "additionalProperties" in schema:
        if len(value) > schema.get("maxProperties", len(value)):
            yield f"{path}: {len(value)} fields"
        for name, each in value.items():
            yield from problems(each, schema["additionalProperties"], f"{path}.{name}")
        return
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}: {name} is missing"
    for name, each in value.items():
        if name in schema["properties"]:
            yield from problems(each, schema["properties"][name], f"{path}.{name}")
        else:
            yield f"{path}: {name} is not in the schema"
