"""Answers as JSON values, for ``-o json`` and ``-o yaml``: every field, camelCase, nothing cut."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final

import orjson
import yaml

from karmada_advisor.explain.model import Cause
from karmada_advisor.state.model import API_VERSION, BindingState
from karmada_advisor.views.state import headline
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.config.yaml_values import PREFIX
from karmada_scheduler.structs import Struct

_PLAIN: Final = frozenset({str, int, bool, float, type(None)})


def document_fields(found: Struct) -> dict[str, Any]:
    """Return an answer as ``-o json`` prints it, and ``/v1`` of the page; its ``kind`` is the name of the class."""
    return {"apiVersion": API_VERSION, "kind": type(found).__name__, **fields_of(found)}


def fields_of(value: Any) -> Any:
    """Return a value of the model as JSON: structs as objects with camelCase names."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Cause):
        return cause_fields(value)
    if isinstance(value, BindingState):
        return {"headline": headline(value), **_fields_of_struct(value)}
    if isinstance(value, Struct):
        return _fields_of_struct(value)
    if isinstance(value, Mapping):
        return {str(key): fields_of(found) for key, found in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [fields_of(item) for item in value]
    # Evidence of a plugin can be anything.
    return value if isinstance(value, str | int | float) else str(value)


def _fields_of_struct(value: Any) -> dict[str, Any]:
    return {written: fields_of(getattr(value, name)) for name, written in _names_of(value.__class__)}


@cache
def _names_of(kind: type[Any]) -> Sequence[tuple[str, str]]:
    """Return the names of the fields of a struct, in Python and in JSON."""
    return [(name, camel(name)) for name in kind.__struct_fields__]


def cause_fields(cause: Cause) -> dict[str, Any]:
    """Return a cause; ``primary`` is there only where it is true."""
    fields: dict[str, Any] = {"code": cause.code, "stage": cause.stage.value}
    if cause.primary:
        fields["primary"] = True
    return fields | {"evidence": fields_of(cause.evidence), "text": cause.text}


def as_json(fields: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return JSON with a final newline."""
    try:
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2).decode() + "\n"
    except TypeError:  # numbers beyond 64 bits, or text that UTF-8 does not have
        return json.dumps(fields, indent=2, ensure_ascii=False) + "\n"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes texts that YAML's readers in Go take for something else, and PyYAML does not."""


_Dumper.add_implicit_resolver(
    f"{PREFIX}float", re.compile(r"[yYnN]$|[-+]?(?:\.?[0-9][0-9_.]*(?:[eE][-+]?[0-9_]+)?|0[oOXB]\w+)$"), None
)


def as_yaml(fields: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return the same as YAML."""
    return str(yaml.dump(fields, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
