"""FederatedResourceQuotas: what a binding is charged with, and which write the webhook refuses."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from karmada_advisor.state.quota import Ledger, Quota, Usage, is_enforced, quantity_text, read_quota, usage
from karmada_scheduler.api.binding import TargetCluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.testing import binding


def manifest(overall: dict[str, Any], used: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"namespace": "shop", "name": "team"},
        "spec": {"overall": overall, **spec},
        "status": {"overallUsed": used or {}},
    }


def quota(overall: dict[str, Any], used: dict[str, Any] | None = None, **spec: Any) -> Quota:
    return read_quota(manifest(overall, used, **spec))


def cpu(amount: str | int) -> Usage:
    """Return what a binding with this request uses."""
    made = binding("web").replicas(1, cpu=amount).on(m1=1)
    return usage(made.build().spec)


def test_a_quota_is_read_exactly() -> None:
    found = quota({"cpu": "1500m", "memory": "2Gi"}, {"cpu": 1})
    assert found.limits == {"cpu": Fraction(3, 2), "memory": 2 << 30}
    assert found.used == {"cpu": 1}
    assert (found.is_static, str(found)) == (False, "shop/team")


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"spec": {"overall": {"cpu": "much"}}}, "spec.overall.cpu"),
        ({"spec": []}, "spec"),
        ({"kind": "ResourceQuota"}, "kind"),
        ({"status": {"overallUsed": []}}, "status.overallUsed"),
    ],
)
def test_a_quota_that_cannot_be_read_names_the_field(changed: dict[str, Any], path: str) -> None:
    with pytest.raises(ManifestError) as error:
        read_quota(manifest({"cpu": 1}) | changed)
    assert str(error.value).startswith(path)


def test_a_binding_is_charged_with_the_replicas_of_its_clusters() -> None:
    spec = binding("web").replicas(9, cpu="500m", memory="1Gi").on(m1=2, m2=1).build().spec
    assert usage(spec) == {"cpu": Fraction(3, 2), "memory": 3 << 30}
    assert usage(spec, ()) == {}
    assert usage(spec, [TargetCluster("m1", 9)])["cpu"] == Fraction(9, 2)


def test_components_count_in_every_cluster() -> None:
    made = binding("flink").component("jobmanager", 1, cpu="1").component("taskmanager", 2, cpu="2").build()
    assert usage(made.spec, [TargetCluster("m1", 0), TargetCluster("m2", 0)]) == {"cpu": 10}


def test_a_write_above_the_limit_is_refused_and_charges_nothing() -> None:
    ledger = Ledger([quota({"cpu": 4}, {"cpu": 3})])
    refused = ledger.charge("shop", cpu(1), cpu(3))
    assert refused is not None
    assert (refused.wanted, refused.limit, refused.used) == (5000, 4000, 3000)
    assert str(refused) == "the quota shop/team allows 4 cpu, and 5 would be used (3 now)"
    assert ledger.charge("shop", cpu(1), cpu(2)) is None
    assert ledger.charge("shop", {}, cpu("1m")) is not None


def test_a_write_that_frees_something_lets_a_later_one_pass() -> None:
    ledger = Ledger([quota({"cpu": 4}, {"cpu": 4})])
    assert ledger.charge("shop", cpu(2), cpu(1)) is None
    assert ledger.charge("shop", {}, cpu(1)) is None


def test_a_write_that_changes_no_amount_passes_although_the_quota_is_exceeded() -> None:
    ledger = Ledger([quota({"cpu": 1}, {"cpu": 9})])
    memory = {"memory": Fraction(1)}
    assert ledger.charge("shop", cpu(2), {**cpu(2), **memory}) is None


def test_a_write_that_frees_too_little_is_refused_while_the_quota_is_exceeded() -> None:
    """As in the webhook, which compares the sum and not the difference."""
    ledger = Ledger([quota({"cpu": 1}, {"cpu": 9})])
    assert ledger.charge("shop", cpu(2), cpu(1)) is not None


def test_resources_that_the_webhook_does_not_add_up_are_never_exceeded() -> None:
    ledger = Ledger([quota({"licences": 1, "example.com/gpu": 1})])
    assert ledger.charge("shop", {}, {"licences": Fraction(7)}) is None
    assert ledger.charge("shop", {}, {"example.com/gpu": Fraction(2)}) is not None


def test_fractions_of_a_cpu_are_not_rounded_to_whole_ones() -> None:
    assert Ledger([quota({"cpu": "1500m"})]).charge("shop", {}, cpu("1500m")) is None
    assert Ledger([quota({"cpu": "1499m"})]).charge("shop", {}, cpu("1500m")) is not None


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
    assert quantity_text(resource, amount) == expected


def test_quotas_of_other_namespaces_do_not_count() -> None:
    assert Ledger([quota({"cpu": 1})]).charge("pay", {}, cpu(9)) is None


def test_the_most_replicas_include_those_that_the_binding_has() -> None:
    spec = binding("web").replicas(4, cpu=1).on(m1=2).build().spec
    own = usage(spec)
    assert Ledger([quota({"cpu": 6}, {"cpu": 5})]).most_replicas("shop", spec, own) == 3
    assert Ledger([quota({"memory": 6})]).most_replicas("shop", spec, own) is None
    assert Ledger([quota({"cpu": 1}, {"cpu": 5})]).most_replicas("shop", spec, own) == 0


@pytest.mark.parametrize(
    ("used", "clusters", "spec", "enforced"),
    [
        ({"cpu": 2}, {"m1": 2}, {}, True),
        ({}, {"m1": 2}, {}, False),
        ({}, {}, {}, None),
        ({"cpu": 7}, {"m1": 2}, {"staticAssignments": [{"clusterName": "m1"}]}, False),
        ({"cpu": 2}, {"m1": 2}, {"staticAssignments": [{"clusterName": "m1"}]}, True),
    ],
)
def test_the_status_tells_whether_a_quota_is_enforced(
    used: dict[str, Any], clusters: dict[str, int], spec: dict[str, Any], enforced: bool | None
) -> None:
    web = binding("web", namespace="shop").replicas(2, cpu=1).on(**clusters).build()
    assert is_enforced(quota({"cpu": 9}, used, **spec), [web]) is enforced


def test_a_quota_without_a_status_does_not_tell_whether_it_is_enforced() -> None:
    web = binding("web", namespace="shop").replicas(2, cpu=1).on(m1=2).build()
    without = {name: each for name, each in manifest({"cpu": 9}).items() if name != "status"}
    assert is_enforced(read_quota(without), [web]) is None
    assert is_enforced(read_quota(without | {"status": {"overall": {"cpu": 9}}}), [web]) is False
