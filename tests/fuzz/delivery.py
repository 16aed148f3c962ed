"""A scheduler that receives objects as the API server sends them, among healthy bindings."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import orjson

from karmada_pyscheduler.client.http_connection import list_page
from karmada_pyscheduler.client.watch_requests import event_of
from karmada_pyscheduler.informer.object_kinds import namespace_and_name, object_key
from karmada_scheduler import json_body, logs
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.estimator.general import GeneralEstimator
from tests import manifests
from tests.fake_apiserver import cluster
from tests.fake_apiserver.objects import DYNAMIC
from tests.unit.fakes import FakeApiServer
from tests.unit.framework.scheduler_harness import SchedulerHarness

NEW: Final = "healthy-new"
DIVIDED: Final = "healthy-divided"
PLACED: Final = "healthy-placed"
HEALTHY: Final = frozenset({NEW, DIVIDED, PLACED, "m1", "m2"})
"""The names of the healthy objects."""


NO_GATES: Final = FeatureGates()


class TolerantApiServer(FakeApiServer):
    """Stores invalid objects as well, and refuses patches that cannot be applied to them."""

    async def patch_result(self, key: BindingKey, **arguments: Any) -> dict[str, Any]:
        _check_encoding(arguments)
        try:
            return await super().patch_result(key, **arguments)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ApiError(f"the stored object is invalid: {error!r}", code=422) from error

    async def patch_status(self, key: BindingKey, **arguments: Any) -> dict[str, Any]:
        _check_encoding(arguments)
        try:
            return await super().patch_status(key, **arguments)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ApiError(f"the stored object is invalid: {error!r}", code=422) from error


def _check_encoding(arguments: Mapping[str, Any]) -> None:
    try:
        json_body.encode({name: value for name, value in arguments.items() if name != "before_send"})
    except ValueError as error:
        raise ApiError(f"the body cannot be written as JSON: {error}") from error


class Records(logging.Handler):
    """Collects log records, and formats each as the scheduler does."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[logging.LogRecord] = []
        self._formatters = (logs.TextFormatter(), logs.JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        for formatter in self._formatters:
            formatter.format(record)
        self.all.append(record)

    @property
    def tracebacks(self) -> list[str]:
        """The messages with a traceback: defects of the scheduler."""
        formatter = logging.Formatter("%(message)s")
        return [formatter.format(each) for each in self.all if each.exc_info]

    def names(self, name: str) -> bool:
        """Return whether a warning is about an object of this name."""
        return any(
            name in f"{each.getMessage()} {each.__dict__.get('object', '')}"
            for each in self.all
            if each.levelno >= logging.WARNING
        )


@contextmanager
def recorded() -> Iterator[Records]:
    """Collect the log records of the scheduler."""
    records = Records()
    loggers = [logging.getLogger(name) for name in ("karmada_scheduler", "karmada_pyscheduler")]
    levels = [log.level for log in loggers]
    for log in loggers:
        log.setLevel(logging.INFO)
        log.addHandler(records)
    try:
        yield records
    finally:
        for log, level in zip(loggers, levels, strict=True):
            log.removeHandler(records)
            log.setLevel(level)


def _clusters() -> list[dict[str, Any]]:
    found = [cluster("m1"), cluster("m2")]
    for each in found:
        each["metadata"]["resourceVersion"] = "2"
    return found


class Neighbourhood(SchedulerHarness):
    """Two clusters, a binding that is placed, and two that are to be placed."""

    def __init__(self, *plugins: Any, gates: FeatureGates = NO_GATES, **options: Any) -> None:
        super().__init__(
            *plugins,
            server=TolerantApiServer(),
            estimators=[GeneralEstimator(gates)],
            feature_gates=gates,
            **options,
        )
        for manifest in _clusters():
            self.handlers.on_event("Cluster", "MODIFIED", manifest)
        placement = {"clusterAffinity": {"clusterNames": ["m1"]}}
        placed = manifests.binding(PLACED, placement=placement, clusters=[{"name": "m1", "replicas": 2}])
        applied = Placement.from_manifest(placement).to_json()
        placed["metadata"]["annotations"] = {APPLIED_PLACEMENT_ANNOTATION: applied}
        placed["status"] = {
            "schedulerObservedGeneration": 1,
            "lastScheduledTime": "2026-01-01T00:00:00Z",
            "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success", "message": ""}],
        }
        self._begin(placed)
        both = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}
        self._begin(manifests.binding(NEW, placement=both))
        self._begin(manifests.binding(DIVIDED, placement={**both, "replicaScheduling": DYNAMIC}))

    def _begin(self, manifest: dict[str, Any]) -> None:
        self.server.stored[manifest["metadata"]["name"]] = manifest
        self.handlers.on_event("ResourceBinding", "ADDED", manifest)

    def watched(self, kind: str, event: str, document: str) -> dict[str, Any] | None:
        """Deliver a line of a watch; return the object as decoded, None if not even its name can be read."""
        line = f'{{"type":"{event}","object":{document}}}'.encode()
        try:
            found = event_of(line)
        except ValueError:
            return None
        manifest: dict[str, Any] = found["object"]
        self._store(kind, manifest)
        # As KopfWatch does.
        if found["type"] != "MODIFIED" or not self._is_known(kind, manifest):
            self.handlers.on_event(kind, found["type"], manifest)
        return manifest

    def _is_known(self, kind: str, manifest: Mapping[str, Any]) -> bool:
        self.handlers.observe(kind, manifest)
        return self.handlers.is_known(kind, manifest)

    def listed(self, kind: str, document: str) -> dict[str, Any]:
        """Deliver a list of one page with an object after the healthy ones; return the object as decoded."""
        healthy = [each for each in self.server.stored.values() if kind == "ResourceBinding"]
        if kind == "Cluster":
            healthy = _clusters()
        items = ",".join([*(orjson.dumps(each).decode() for each in healthy), document])
        body = f'{{"metadata":{{"resourceVersion":"1000"}},"items":[{items}]}}'
        page, version, _ = list_page(json_body.decode(body.encode()), "GET")
        checked = [json_body.checked(each) for each in page]
        self._store(kind, checked[-1])
        diff = self.handlers.relist_diff(kind)
        diff.add_page(checked, as_of=int(version))
        diff.finish(version)
        return checked[-1]

    def _store(self, kind: str, manifest: dict[str, Any]) -> None:
        if kind.endswith("Binding") and json_body.unreadable(manifest) is None:
            name = namespace_and_name(manifest)[1]
            if name not in HEALTHY:
                self.server.stored[name] = manifest

    def is_cached(self, kind: str, manifest: Mapping[str, Any]) -> bool:
        """Return whether the cache has an object."""
        return self.handlers._kinds[kind].store.get(object_key(kind, manifest)) is not None

    def malformed(self, kind: str) -> float:
        """Return how many objects of a kind were counted as malformed."""
        name = "karmada_scheduler_malformed_objects_total"
        return self.metrics.registry.get_sample_value(name, {"kind": kind}) or 0.0
