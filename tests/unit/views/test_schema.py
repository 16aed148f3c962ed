"""The JSON Schema in the repository is that of the model, and the output follows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.explain.model import Explanation
from karmada_advisor.views.fields import document_fields
from karmada_scheduler.testing import BindingBuilder, binding
from tests.document_schema import document_schema
from tests.unit.explain.asking import explained
from tests.unit.explain.fleet import billing, checkout, fleet

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "explanation.v1alpha1.json"

_PYTHON = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def schema_of_file() -> dict[str, Any]:
    """Return the schema in the repository."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text())
    return found


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield where a value does not follow a schema; of the keywords that our schemas use."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    if "anyOf" in schema and all(list(problems(value, each, root, path)) for each in schema["anyOf"]):
        yield f"{path}: {value!r} follows none of the alternatives"
    if "type" in schema:
        allowed = _PYTHON[schema["type"]]
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            yield f"{path}: {value!r} is no {schema['type']}"
            return
    if isinstance(value, dict):
        yield from (f"{path}: {name} is missing" for name in schema.get("required", ()) if name not in value)
        known = schema.get("properties", {})
        for name, each in value.items():
            if name in known:
                yield from problems(each, known[name], root, f"{path}.{name}")
            elif "additionalProperties" in schema:
                yield from problems(each, schema["additionalProperties"], root, f"{path}.{name}")
            elif known:
                yield f"{path}: {name} is unknown"
    if isinstance(value, list) and "items" in schema:
        for index, each in enumerate(value):
            yield from problems(each, schema["items"], root, f"{path}[{index}]")


def test_the_schema_in_the_repository_is_that_of_the_model() -> None:
    assert schema_of_file() == document_schema(Explanation)


@pytest.mark.parametrize(
    "asked",
    [
        checkout(),
        billing(),
        checkout().on(**{"eu-west-1": 24}).applied().last_scheduled("2026-11-22T10:00:00Z"),
        binding("web").replicas(9000, cpu=1).dynamic_weight(),
        binding("web")
        .replicas(9000, cpu=1)
        .dynamic_weight()
        .term("first", "eu-west-1")
        .term("second", "edge-7"),
        binding("web").replicas(2).suspended(),
        binding("web").replicas(2).duplicated().spread("cluster", 1, 2),
    ],
)
def test_the_output_follows_the_schema(asked: BindingBuilder) -> None:
    schema = document_schema(Explanation)
    fields = json.loads(json.dumps(document_fields(explained(asked, *fleet()))))

    assert list(problems(fields, schema, schema)) == []


def test_a_wrong_value_is_found() -> None:
    schema = document_schema(Explanation)
    fields = json.loads(json.dumps(document_fields(explained(checkout(), *fleet()))))
    fields["state"]["name"], fields["wouldBe"]["placement"][0]["replicas"] = "SOMEWHERE", "4"
    del fields["causes"]

    assert len(list(problems(fields, schema, schema))) == 3
