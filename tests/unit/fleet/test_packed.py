"""Manifests in little memory: what is kept, and what a plan reads of it."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.packed import PackedManifests
from karmada_advisor.whatif.plan.fleet_rules import as_manifests, fingerprint
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.testing import binding, cluster

MANAGERS = [{"manager": "karmada-controller-manager", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]


def stored(name: str, managers: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return a binding that differs from others in its name."""
    manifest = binding(name).replicas(2, cpu=1).dynamic_weight().on(m1=2).applied().manifest()
    if managers is not None:
        manifest["metadata"]["managedFields"] = managers
    return manifest


def fleet(manifests: list[dict[str, Any]], known: Any) -> Fleet:
    """Return a fleet with one cluster, and its manifests in a mapping."""
    found = Fleet("files", manifests=known)
    on = cluster("m1").manifest()
    found.add_clusters([(Cluster.from_manifest(on), on)])
    found.add_bindings((Binding.from_manifest(each), each) for each in manifests)
    return found


@pytest.mark.parametrize("managers", [None, MANAGERS], ids=["none", "some"])
def test_a_manifest_is_read_as_it_was_stored(managers: list[dict[str, Any]] | None) -> None:
    manifest, kept = stored("web", managers), PackedManifests()
    key = Binding.from_manifest(manifest).key

    kept[key] = manifest

    assert kept[key] == manifest == stored("web", managers)


def test_what_a_plan_reads_has_no_managed_fields_and_equal_parts_once() -> None:
    manifests = [stored(name, MANAGERS) for name in ("a", "b")]
    kept = fleet(manifests, PackedManifests()).manifests
    assert isinstance(kept, PackedManifests)

    one, other = kept.lean([Binding.from_manifest(each).key for each in manifests]).values()

    assert "managedFields" not in one["metadata"]
    assert (one["metadata"]["name"], other["metadata"]["name"]) == ("a-deployment", "b-deployment")
    assert one["metadata"]["annotations"] is other["metadata"]["annotations"]
    assert all(one["spec"][name] is other["spec"][name] for name in ("placement", "replicaRequirements"))
    assert one["spec"]["resource"] == manifests[0]["spec"]["resource"]


def test_the_objects_of_a_plan_do_not_depend_on_how_they_are_kept() -> None:
    manifests = [stored("a", MANAGERS), stored("b")]
    packed, whole = as_manifests(fleet(manifests, PackedManifests())), as_manifests(fleet(manifests, {}))

    assert packed == whole
    assert fingerprint(packed, "") == fingerprint(whole, "")
    assert manifests[0]["metadata"]["managedFields"] == MANAGERS
