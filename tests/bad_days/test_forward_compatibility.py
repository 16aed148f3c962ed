"""A control plane that is newer than this scheduler: unknown fields survive writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bindings_documents import OF_1_18, OF_1_19, document
from tests.fake_apiserver import Answer, FakeApiServer, binding, cluster, start_scheduler, wait_for

COMPONENTS = [{"name": "jobmanager", "replicas": 1}, {"name": "taskmanager", "replicas": 2}]


def test_fields_of_a_newer_karmada_survive_a_placement_that_changes(tmp_path: Path) -> None:
    """m1 and the replicas there stay, m2 is gone, m3 takes its place."""
    applied = {
        "type": "FullyApplied", "status": "False", "reason": "FullyAppliedFailed", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "details": {"clusters": ["m2"]},
    }  # fmt: skip
    newer = {"type": "ComponentsScheduled", "status": "Unknown", "retries": 3}
    web = binding("web", replicas=4, status={"conditions": [applied, newer], "notes": {"by": "1.19"}})
    web["spec"]["clusters"] = [
        {"name": "m1", "replicas": 2, "components": COMPONENTS},
        {"name": "m2", "replicas": 2, "components": COMPONENTS},
    ]
    web["spec"]["placement"] = {
        "clusterAffinity": {"clusterNames": ["m1", "m3"]},
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {
                "staticWeightList": [
                    {"targetCluster": {"clusterNames": ["m1", "m3"]}, "weight": 1},
                ]
            },
        },
    }
    web["spec"]["componentsMode"] = "Together"
    with FakeApiServer() as server:
        for name in ("m1", "m2", "m3"):
            server.put(cluster(name))
        server.put(web)
        with start_scheduler(server, tmp_path) as scheduler:
            wait_for(lambda: server.condition("web"), "the status", scheduler)
            stored = server.get("ResourceBinding", "web")
    assert stored is not None
    assert sorted(stored["spec"]["clusters"], key=lambda each: str(each["name"])) == [
        {"name": "m1", "replicas": 2, "components": COMPONENTS},
        {"name": "m3", "replicas": 2},
    ]
    assert stored["spec"]["componentsMode"] == "Together"
    [*others, scheduled] = stored["status"]["conditions"]
    assert (others, scheduled["type"], scheduled["status"]) == ([applied, newer], "Scheduled", "True")
    assert stored["status"]["notes"] == {"by": "1.19"}


@pytest.mark.parametrize(("spec", "components"), [(OF_1_18, None), (OF_1_19, COMPONENTS)])
def test_components_are_written_by_the_rules_of_1_19_where_they_are_served(
    tmp_path: Path, spec: dict[str, Any], components: list[dict[str, Any]] | None
) -> None:
    url = "/openapi/v3/apis/work.karmada.io/v1alpha2"
    listed = {"paths": {url.removeprefix("/openapi/v3/"): {"serverRelativeURL": f"{url}?hash=1"}}}
    job = binding("job", replicas=0)
    job["spec"]["components"] = COMPONENTS
    job["spec"]["placement"] = {
        "clusterAffinity": {"clusterNames": ["m1"]},
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
        "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
    }
    flags = ("--decisions-of=1.19", "--feature-gates=MultiplePodTemplatesScheduling=true")
    with FakeApiServer() as server:
        for path, body in (("/openapi/v3$", listed), (url, document(spec))):
            server.fault(path=path, answer=Answer(body=json.dumps(body).encode()))
        server.put(cluster("m1"))
        with start_scheduler(server, tmp_path, *flags) as scheduler:
            wait_for(lambda: "serves the bindings of" in scheduler.log, "the schema", scheduler)
            server.put(job)
            wait_for(lambda: server.condition("job"), "the status", scheduler)
            stored = server.get("ResourceBinding", "job")
    assert stored is not None
    (target,) = stored["spec"]["clusters"]
    assert (target["name"], target.get("components")) == ("m1", components)
