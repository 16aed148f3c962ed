"""JSON Schemas of what ``-o json`` prints, from the types of the model."""

from __future__ import annotations

import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from karmada_advisor.explain.model import Cause
from karmada_advisor.state.model import API_VERSION, BindingState
from karmada_advisor.whatif.rebalance.model import RebalanceProposal
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.structs import Struct

_TYPES: Final[dict[object, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}


def document_schema(root: type[Struct]) -> dict[str, Any]:
    """Return the schema of what a command prints as one document; within v1alpha1 fields are only added."""
    definitions: dict[str, Any] = {}
    body = _object(root, definitions)
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": root.__name__},
        **body["properties"],
    }
    if root is RebalanceProposal:
        properties["manifests"] = {"type": "array", "items": {"type": "object"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": root.__name__,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "$defs": dict(sorted(definitions.items())),
    }


def _object(class_: type[Struct], definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(class_)
    properties = {camel(name): _of(hints[name], definitions) for name in class_.__struct_fields__}
    required = list(properties)
    if class_ is BindingState:
        properties["headline"] = {"type": "string"}
        required.append("headline")
    if class_ is Cause:
        properties["primary"] = {"const": True}
        required.remove("primary")
    return {"type": "object", "properties": properties, "required": required}


def _of(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint in _TYPES:
        return _TYPES[hint]
    if hint is Any:
        return {}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    if isinstance(hint, type) and issubclass(hint, Struct):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # a type may contain itself
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return _generic(hint, definitions)


def _generic(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        others = [each for each in arguments if each is not type(None)]
        return {"anyOf": [*(_of(each, definitions) for each in others), {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    raise TypeError(f"no schema for {hint}")
