"""FederatedResourceQuotas: the arithmetic of Karmada's webhook, and the changes that they admit."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.claims.quota import KIND, Excess, usage
from karmada_advisor.whynot.edits import ObjectRef
from karmada_advisor.whynot.quotas import exceeded, sentence, shown, times_left
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.testing import binding

REF = ObjectRef(KIND, "default", "team-a")


def quota(overall: dict[str, str], used: dict[str, str] | None = None) -> dict[str, Any]:
    return {"kind": KIND, "spec": {"overall": overall}, "status": {"overallUsed": used or {}}}


def refused(
    manifest: dict[str, Any], *, replicas: int, stored: int = 0, namespace: str = "default", cpu: str = "1"
) -> Excess | None:
    made = binding("web").replicas(replicas, cpu=cpu).build()
    before = usage(made.spec, [TargetCluster("m1", stored)] if stored else [])
    after = usage(made.spec, [TargetCluster("m1", replicas)])
    return exceeded([(REF, manifest)], namespace, before, after)


def test_a_placement_up_to_the_limit_is_admitted_and_one_beyond_it_is_not() -> None:
    manifest = quota({"cpu": "5"}, {"cpu": "3"})

    assert refused(manifest, replicas=2) is None
    found = refused(manifest, replicas=3)

    assert found is not None
    assert (found.resource, found.wanted, found.limit, found.used) == ("cpu", 6000, 5000, 3000)
    assert sentence(found) == "the quota default/team-a allows 5 cpu, and 6 would be used (3 now)"


def test_what_the_binding_has_already_counts_once() -> None:
    manifest = quota({"cpu": "5"}, {"cpu": "3"})

    assert refused(manifest, replicas=4, stored=2) is None
    assert refused(manifest, replicas=5, stored=2) is not None


def test_a_quota_of_another_namespace_or_resource_does_not_count() -> None:
    assert refused(quota({"cpu": "1"}), replicas=3, namespace="other") is None
    assert refused(quota({"memory": "1"}), replicas=3) is None
    assert refused({"kind": KIND, "spec": {}}, replicas=3) is None


def test_another_resource_of_the_same_quota_that_is_exceeded_already_refuses_too() -> None:
    found = refused(quota({"cpu": "50", "memory": "1Gi"}, {"memory": "2Gi"}), replicas=3)

    assert found is not None
    assert found.resource == "memory"


def test_fewer_replicas_are_refused_as_long_as_the_quota_is_exceeded() -> None:
    assert refused(quota({"cpu": "2"}, {"cpu": "6"}), replicas=3, stored=6) is not None
    assert refused(quota({"cpu": "2"}, {"cpu": "6"}), replicas=2, stored=6) is None


def test_fractions_of_a_cpu_are_not_rounded_to_whole_ones() -> None:
    assert refused(quota({"cpu": "1500m"}), replicas=3, cpu="500m") is None
    assert refused(quota({"cpu": "1499m"}), replicas=3, cpu="500m") is not None


def test_components_count_in_every_cluster() -> None:
    made = binding("flink").component("jobmanager", 1, cpu="1").component("taskmanager", 2, cpu="2").build()

    used = usage(made.spec, [TargetCluster("m1", 0), TargetCluster("m2", 0)])

    assert used == {"cpu": 10}


@pytest.mark.parametrize(("stored", "expected"), [(0, 2), (2, 4)])
def test_as_many_replicas_as_the_quota_allows_are_counted(stored: int, expected: int) -> None:
    made = binding("web").replicas(9, cpu=1).build()
    before = usage(made.spec, [TargetCluster("m1", stored)])
    one = usage(made.spec, [TargetCluster("m1", 1)])

    assert times_left([(REF, quota({"cpu": "5"}, {"cpu": "3"}))], "default", before, one) == expected
    assert times_left([], "default", before, one) is None


@pytest.mark.parametrize(
    ("resource", "amount", "expected"),
    [
        ("cpu", 6000, "6"),
        ("cpu", 1500, "1500m"),
        ("memory", 3 << 30, "3Gi"),
        ("memory", 7, "7"),
        ("pods", 9, "9"),
    ],
)
def test_amounts_are_written_as_quantities(resource: str, amount: int, expected: str) -> None:
    assert shown(resource, amount) == expected
