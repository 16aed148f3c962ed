"""Karmada is upgraded and rolled back under a running scheduler: what moves, and what does not.

Installers replace CRDs first, then the programs. A field that one of the two does not know is dropped without an error.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import manifests
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import WORK, condition, placed
from tools.controlplane import ControlPlane, Object, SimulatedMember, binaries, versions

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
PRIMARY, OVERFLOW = "small", "large"
FIRST = [{"affinityName": "first", "clusterNames": [PRIMARY]}]
WITH_OVERFLOW = [{**FIRST[0], "overflowAffinities": [{"affinityName": "more", "clusterNames": [OVERFLOW]}]}]
STATIC = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}


class Upgrade:
    """The objects of an upgrade, and bindings of a placement with overflow affinities."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._client = plane.client
        self._plane = plane
        self._at = f"{WORK}/namespaces/{namespace}/resourcebindings"
        self._namespace = namespace

    def create(self, name: str) -> Object:
        """Create a binding, and return it once it is placed."""
        self._client.create(
            manifests.untemplated(
                self._namespace,
                name,
                uid=f"uid-{name}",
                policy_id=name,
                replicas=12,
                replicaRequirements={"resourceRequest": {"cpu": "1"}},
                schedulerName="ours",
                placement={"clusterAffinities": WITH_OVERFLOW, "replicaScheduling": STATIC},
            )
        )
        return self._plane.wait_for(
            lambda: self.stored(name),
            f"{name} to be placed",
            until=lambda each: condition(each).get("status") == "True",
        )

    def create_again(self, name: str) -> dict[str, int]:
        """Create a binding, in place of one of its name, and return where it is placed."""
        self._client.delete(f"{self._at}/{name}")
        return placed(self.create(name))

    def stored(self, name: str) -> Object:
        """Return a binding."""
        return self._client.get(f"{self._at}/{name}")

    def has_field(self, name: str) -> bool:
        """Return whether a stored binding has the overflow affinities."""
        return "overflowAffinities" in self.stored(name)["spec"]["placement"]["clusterAffinities"][0]

    def use_crds_of(self, version: versions.KarmadaVersion) -> None:
        """Replace the versions of all CRDs, and wait until bindings are served by them."""
        for each in binaries.ensure(version, quiet=True).manifests("CustomResourceDefinition"):
            self._client.patch(
                f"{CRDS}/{each['metadata']['name']}", {"spec": {"versions": each["spec"]["versions"]}}
            )
        is_newer = version.is_current
        self._plane.wait_for(
            lambda: (
                "overflowAffinities" in str(self._client.get("/openapi/v3/apis/work.karmada.io/v1alpha2"))
            ),
            "the schema of bindings",
            until=lambda found: found is is_newer,
        )


@pytest.fixture
def upgrade(controlplane: ControlPlane, namespace: str) -> Iterator[Upgrade]:
    """Two clusters, of which the first one has 7 free cpus."""
    if controlplane.version.is_current:
        pytest.skip("an upgrade begins with an older Karmada: make test-versions KARMADA=1.17.1")
    members = [
        SimulatedMember(PRIMARY, cpu="7", allocated={"cpu": "0"}, labels={"kind": "upgrade"}),
        SimulatedMember(OVERFLOW, cpu="64", labels={"kind": "upgrade"}),
    ]
    controlplane.add(*members, agents=False)
    webhooks = [
        each
        for each in controlplane.client.list(WEBHOOKS)
        if "binding" in str([it["name"] for it in each["webhooks"]])
    ]
    yield Upgrade(controlplane, namespace)
    Upgrade(controlplane, namespace).use_crds_of(controlplane.version)
    for each in webhooks:
        controlplane.client.patch(f"{WEBHOOKS}/{each['metadata']['name']}", {"webhooks": each["webhooks"]})
    for member in members:
        path = f"/apis/cluster.karmada.io/v1alpha1/clusters/{member.name}"
        controlplane.client.delete(path)
        # The bindings have no templates, so Karmada waits for Works that nobody makes.
        if controlplane.client.find(path) is not None:
            controlplane.client.patch(path, {"metadata": {"finalizers": None}})


def test_only_a_restart_after_a_rollback_moves_what_overflow_affinities_have_placed(
    controlplane: ControlPlane, upgrade: Upgrade, start_scheduler: StartScheduler
) -> None:
    flag = "--decisions-of=1.17"
    scheduler = start_scheduler(flag, name="ours", lease="upgrade")
    client = controlplane.client

    before = upgrade.create("before")
    assert not upgrade.has_field("before")
    assert placed(before) == {PRIMARY: 12}

    upgrade.use_crds_of(versions.CURRENT)
    upgrade.create("by-old-webhook")
    assert not upgrade.has_field("by-old-webhook")
    assert upgrade.stored("before")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    for each in client.list(WEBHOOKS):
        kept = [it for it in each["webhooks"] if "binding" not in it["name"]]
        client.patch(f"{WEBHOOKS}/{each['metadata']['name']}", {"webhooks": kept})
    # The API server still calls the webhook for a moment, and a watch that began before shows objects of the older schema
    # until it expires. What was decided without the field stays: its own replicas count as available.
    controlplane.wait_for(
        lambda: upgrade.create_again("upgraded"),
        "a new binding with overflow affinities",
        until=lambda found: found == {PRIMARY: 7, OVERFLOW: 5},
    )
    assert upgrade.has_field("upgraded")

    upgrade.use_crds_of(controlplane.version)
    assert not upgrade.has_field("upgraded")
    client.patch(
        f"/apis/cluster.karmada.io/v1alpha1/clusters/{OVERFLOW}", {"metadata": {"labels": {"a": "b"}}}
    )
    probe = upgrade.create("after-rollback")  # decided after the change of the cluster
    assert placed(probe) == {PRIMARY: 12}
    assert placed(upgrade.stored("upgraded")) == {PRIMARY: 7, OVERFLOW: 5}

    scheduler.process.stop()
    start_scheduler(flag, name="ours", lease="upgrade", process_name="ours-again")
    controlplane.wait_for(
        lambda: placed(upgrade.stored("upgraded")),
        "its next decision",
        until=lambda found: found == {PRIMARY: 12},
    )
