"""YAML that nobody has to trust: values of JSON's types, or an error that names the line; never another exception."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import change_objects
from karmada_advisor.views.fields import as_yaml
from karmada_scheduler.config.yaml_document import MAX_DEPTH, YamlError, read_document
from tests.fuzz.measuring import fuzzed, measured
from tests.fuzz.strategies import damaged

POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: p, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinity: {clusterNames: [m1, m2]}
    clusterTolerations: &t [{key: a, operator: Exists}]
    spreadConstraints: [{spreadByField: cluster, minGroups: 1}]
"""
_PARTS = (
    "[", "]", "{", "}", ",", ":", ": ", "- ", "? ", "\n", "\n  ", " ", "---\n", "...\n", "%YAML 1.1\n", "#", "&a ", "*a", "*a ",
    "&b ", "*b", "<<: ", "!!bool ", "!!int ", "!!timestamp ", "!!python/object:os.system ", "!!binary ", "!x ", "! ", "|\n", ">-\n",
    "'", '"', "\\x", "1" * 5000, "2020-99-99", "0x_", "1_", "-.inf", "1.0e+999", "\x00", "\x85", "\ufeff", "\ud800", "\t", "a", "é",
    "null", "yes", "~", "=", "@", "`", "[" * 300, "{a: " * 300, "- " * 300, "*a," * 50, "x" * 1000,
)  # fmt: skip
pieces = st.lists(st.sampled_from(_PARTS), max_size=40).map("".join)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(
        alphabet=st.characters(exclude_categories=["Cs"])
    ),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet=st.characters(exclude_categories=["Cs"])), inner),
)  # fmt: skip


def _depth(value: Any) -> int:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if below is None else 1 + max(map(_depth, below), default=0)


def _read(text: str) -> None:
    problem, value = "", None
    with measured("YAML", text):
        try:
            value = read_document(text).value
        except YamlError as error:
            problem = str(error)
    assert not problem or re.match(r"line [1-9]\d*, column [1-9]\d*: ", problem), problem
    assert len(problem) < 500
    assert _depth(value) <= MAX_DEPTH
    json.dumps(value, allow_nan=False)


@fuzzed(300)
@given(text=pieces)
def test_fragments_of_yaml_are_read_or_refused_with_a_place(text: str) -> None:
    _read(text)


@fuzzed(150)
@given(content=damaged(st.just(POLICY.encode())))
def test_a_damaged_policy_is_read_or_refused_with_a_place(content: bytes) -> None:
    _read(content.decode("utf-8", errors="surrogateescape"))


@fuzzed(150)
@given(value=json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert read_document(as_yaml(value)).value == value


@fuzzed(200)
@given(data=st.data())
def test_a_pasted_policy_is_read_or_its_problems_name_the_place(data: st.DataObject) -> None:
    lines = POLICY.splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(pieces))
    text = "\n".join(lines)
    with measured("pasted policy", text):
        try:
            change_objects(text)
        except NoAnswerError as error:
            assert str(error).startswith("the policy")  # noqa: PT017
