"""Which version of bindings the control plane serves: read once per hash, logged, exposed, and never an error."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from karmada_pyscheduler.app.api_server import ControlPlaneSchema, warnings_about
from karmada_pyscheduler.client.bindings_schema import version_of
from karmada_pyscheduler.metrics.families import Families
from karmada_pyscheduler.metrics.metrics import ApiServerMetrics
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.features import RULES, FeatureGates
from tests.bindings_documents import OF_1_16, OF_1_17, OF_1_18, OF_1_19, document


class FakeConnection:
    """Answers for the list of documents and for that of bindings."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.hash = "1"
        self.spec = spec
        self.problem: ApiError | None = None
        self.asked: list[str] = []

    async def request(self, method: str, path: str, *, timeout: float) -> dict[str, Any]:
        assert (method, timeout) == ("GET", 10.0)
        self.asked.append(path)
        if self.problem is not None:
            raise self.problem
        if path != "/openapi/v3":
            return document(self.spec)
        url = f"/openapi/v3/apis/work.karmada.io/v1alpha2?hash={self.hash}"
        return {"paths": {"apis/work.karmada.io/v1alpha2": {"serverRelativeURL": url}}}


class Schema:
    """The reader over a fake connection, and its metric."""

    def __init__(self, spec: dict[str, Any], gates: FeatureGates | None = None) -> None:
        self.registry = CollectorRegistry()
        self.connection = FakeConnection(spec)
        metrics = ApiServerMetrics(Families(self.registry))
        self._schema = ControlPlaneSchema(self.connection, gates or FeatureGates(), metrics)  # type: ignore[arg-type]

    async def read(self) -> list[str]:
        """Read, and return the labels of the metric."""
        await self._schema.read()
        families = {each.name: each for each in self.registry.collect()}
        samples = families["karmada_scheduler_control_plane_schema"].samples
        assert all(each.value == 1 for each in samples)
        return [each.labels["schema"] for each in samples]


@pytest.mark.parametrize(
    ("spec", "version"),
    [(OF_1_16, "1.16"), (OF_1_17, "1.17"), (OF_1_18, "1.18"), (OF_1_19, "1.19")],
)
def test_the_newest_field_at_its_path_names_the_version(spec: dict[str, Any], version: str) -> None:
    assert version_of(document(spec)) == version


@pytest.mark.parametrize("found", [{}, {"components": []}, {"components": {"schemas": {"other": {}}}}])
def test_a_document_without_bindings_names_none(found: dict[str, Any]) -> None:
    assert version_of(found) == "unknown"


@pytest.mark.parametrize(
    ("version", "decisions", "gates", "texts"),
    [
        ("1.18", "1.18", {"WorkloadAffinity": True}, []),
        ("1.17", "1.17", {"WorkloadAffinity": True}, []),
        ("1.17", "1.18", {}, ["R1"]),
        ("1.18", "1.17", {}, ["remove --decisions-of after an upgrade"]),
        ("1.16", "1.17", {"WorkloadAffinity": True}, ["WorkloadAffinity has no effect"]),
        ("1.17", "1.17", {"SchedulingOvercommitProtection": True}, ["it needs Karmada 1.18"]),
        ("1.19", "1.19", {}, []),
        (
            "1.19",
            "1.18",
            {},
            ["components of targets (B) in another way than the decisions of 1.18; --decisions-of=1.19"],
        ),
        ("1.18", "1.19", {}, ["remove --decisions-of until the upgrade"]),
        ("1.19", "1.17", {}, ["(R1)", "--decisions-of=1.19 decides as it does"]),
        ("1.16", "1.19", {}, ["--decisions-of=1.17 decides as it does", "(B)"]),
        ("1.20", "1.18", {}, ["newer than what is known here", "--decisions-of=1.19 decides as it does"]),
        ("1.20", "1.19", {}, ["newer than what is known here; decisions are those of 1.19"]),
    ],
)
def test_what_does_not_fit_together_is_a_warning(
    version: str, decisions: str, gates: dict[str, bool], texts: list[str]
) -> None:
    found = list(warnings_about(version, FeatureGates(gates, RULES[decisions])))
    assert len(found) == len(texts)
    assert all(text in each for text, each in zip(texts, found, strict=True))


async def test_it_is_read_again_when_its_hash_is_new(caplog: pytest.LogCaptureFixture) -> None:
    schema = Schema(OF_1_17)
    with caplog.at_level(logging.INFO):
        assert await schema.read() == ["1.17"]
        assert await schema.read() == ["1.17"]
        assert len(schema.connection.asked) == 3
        schema.connection.hash, schema.connection.spec = "2", OF_1_18
        assert await schema.read() == ["1.18"]
    first, warning, second = caplog.messages
    assert (
        first
        == "Control plane serves the bindings of Karmada 1.17 (no overflowAffinities); decisions of 1.18"
    )
    assert "--decisions-of=1.17" in warning
    assert second == "Control plane serves the bindings of Karmada 1.18; decisions of 1.18"


async def test_a_failure_is_one_line_and_unknown_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    schema = Schema(OF_1_18)
    assert await schema.read() == ["1.18"]
    schema.connection.problem = ApiError("forbidden")
    caplog.clear()
    with caplog.at_level(logging.INFO):
        assert await schema.read() == ["unknown"]
        assert await schema.read() == ["unknown"]
    assert caplog.messages == ["The version of bindings that the control plane serves is unknown: forbidden"]
    schema.connection.problem = None  # and the document has the hash of before
    assert await schema.read() == ["1.18"]
