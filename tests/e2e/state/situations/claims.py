"""Which policy claims a workload, and bindings that nobody decides about because of it."""

from __future__ import annotations

from typing import Any

from tests.e2e.state.model import Also, Expected, situation
from tests.e2e.state.scene import DEPLOYMENT, Scene
from tests.e2e.state.situations.expectations import not_claimed
from tests.e2e.workload import DUPLICATED, named, placed, running
from tools.controlplane import Object

POLICY_ID = "propagationpolicy.karmada.io/permanent-id"
ON_A1 = named("sim-a1", replicaScheduling=DUPLICATED)
ON_A2 = named("sim-a2", replicaScheduling=DUPLICATED)


def _wait_detected(scene: Scene) -> None:
    """Wait until the detector has seen all policies so far: it claims by those that it has seen."""
    name = {"name": "seen", "namespace": scene.namespace}
    selector = {"apiVersion": "v1", "kind": "ConfigMap", "name": "seen"}
    scene.policy(ON_A1, name="seen", selector=selector)
    scene.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
    scene.karmada.wait_for(
        lambda: scene.client.find(scene.path("seen-configmap")), "the binding of a ConfigMap"
    )


@situation(
    not_claimed(
        headline=r"p-wep|wep",
        cause=r"^NotClaimed: .*wep",
        remedy=r"p-wep.*web|web instead of wep",
        fields={"remedies.0.edits.0.object.name": "p-wep"},
    ),
    after={"sim-a1": 2},
    also=(Also(["why-not", "deployment/web", "--placed"], 0, "NOT CLAIMED"),),
)
def policy_name_mistyped(scene: Scene) -> None:
    """No policy selects the workload; the name in one selector is nearly right."""
    for name in ("api", "wep", "batch"):
        scene.policy(ON_A1, name=f"p-{name}", selector={**DEPLOYMENT, "name": name})
    scene.deployment(replicas=2)
    _wait_detected(scene)


@situation(
    not_claimed(headline=r"front", cause=r"^NotClaimed: .*frnot", remedy=r"front.*frnot|frnot.*front"),
    after={"sim-a1": 2},
)
def policy_label_mistyped(scene: Scene) -> None:
    """No policy selects the workload; a label value in one selector is nearly right."""
    selectors: dict[str, Any] = {"a-other": {"tier": "back"}, "front": {"tier": "frnot"}}
    for name, labels in selectors.items():
        selector = {**DEPLOYMENT, "labelSelector": {"matchLabels": labels}}
        scene.policy(ON_A1, name=name, selector=selector)
    scene.deployment(replicas=2, labels={"tier": "front"})
    _wait_detected(scene)


@situation(
    not_claimed(
        headline=r"StatefulSet|kind",
        cause=r"^NotClaimed: .*StatefulSet",
        remedy="^$|Deployment",
    ),
    after={"sim-a1": 2},
)
def policy_of_another_kind(scene: Scene) -> None:
    """The only policy selects another kind of the same name."""
    scene.policy(ON_A1, selector={"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"})
    scene.deployment(replicas=2)
    _wait_detected(scene)


@situation(
    not_claimed(headline=r"no policy", cause=r"^NotClaimed: ", remedy="^$|policy"),
    applies=False,
)
def no_policy(scene: Scene) -> None:
    """There is no policy for the workload."""
    scene.deployment(replicas=2)
    _wait_detected(scene)


@situation(
    Expected(
        "not claimed",
        "all",
        headline=r"sim-a1 2.*no policy|sim-a1 2.*deleted",
        cause=r"^Released: ",
        remedy="^$|policy",
    ),
    applies=False,
)
def policy_deleted(scene: Scene) -> None:
    """The policy was deleted, and the placement stays."""
    scene.policy(ON_A1)
    scene.deployment(replicas=2)
    scene.wait_applied()
    scene.client.delete(
        f"/apis/policy.karmada.io/v1alpha1/namespaces/{scene.namespace}/propagationpolicies/web"
    )
    scene.wait(lambda found: POLICY_ID not in found["metadata"].get("labels", {}), "released")


@situation(
    Expected("placed", "all", headline="sim-a1 3", cause=r"^ClaimHeld: .*urgent.*web|^ClaimHeld: .*web"),
    also=(
        Also(
            ["why-not", "deployment/web", "sim-a2"],
            0,
            fields={"remedies.0.edits.0.object.name": "urgent"},
            applies=True,
        ),
    ),
)
def claim_held(scene: Scene) -> None:
    """A policy of higher priority does not take what another holds."""
    scene.policy(ON_A1)
    scene.deployment(replicas=2)
    scene.wait_applied()
    scene.policy(ON_A2, name="urgent", priority=9)
    scene.scale(3)
    scene.wait_placed({"sim-a1": 3})
    scene.wait(lambda found: running(found, "sim-a1") == 3, "running three replicas")


@situation(Expected("placed", "all", headline="sim-a1 2", cause=r"^PolicyLazy: "))
def policy_lazy(scene: Scene) -> None:
    """The edit of a Lazy policy waits for the template."""
    scene.policy(ON_A1, activationPreference="Lazy")
    scene.deployment(replicas=2)
    scene.wait_applied()
    scene.policy(named("sim-a1", "sim-a2", replicaScheduling=DUPLICATED), activationPreference="Lazy")
    _wait_detected(scene)


@situation(Expected("placed", "all", headline="sim-a1 2", cause=r"^PolicyChosen: .*z-web"))
def policies_in_order(scene: Scene) -> None:
    """Two policies match, and the more specific selector wins."""
    scene.policy(ON_A2, name="a-all", selector=DEPLOYMENT)
    scene.policy(ON_A1, name="z-web")
    _wait_detected(scene)
    scene.deployment(replicas=2)
    scene.wait_placed({"sim-a1": 2})
    scene.wait_applied()
    assert placed(scene.binding()) == {"sim-a1": 2}


@situation(
    Expected("being deleted", "all", headline=r"sim-a1 2", cause=r"^BeingDeleted: .*", remedy="^$|finalizer"),
    ask="rb/web-deployment",
    applies=False,
)
def being_deleted(scene: Scene) -> None:
    """The workload is deleted, and a finalizer keeps the binding."""
    scene.policy(ON_A1)
    scene.deployment(replicas=2)
    scene.wait_applied()
    found = scene.binding()
    finalizers = [*(found["metadata"].get("finalizers") or ()), "example.com/wait"]
    scene.client.patch(scene.path(), {"metadata": {"finalizers": finalizers}})
    scene.client.delete(f"/apis/apps/v1/namespaces/{scene.namespace}/deployments/web")
    scene.wait(lambda found: found["metadata"].get("deletionTimestamp"), "being deleted")


@situation(
    Expected(
        "placed",
        "all",
        headline=r"sim-a1; required by .*web-deployment",
        cause=r"^NoPlacement: .*web-deployment",
    ),
    ask="configmap/settings",
)
def dependency(scene: Scene) -> None:
    """A ConfigMap follows the workload that needs it."""
    name = {"name": "settings", "namespace": scene.namespace}
    scene.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
    scene.policy(ON_A1, propagateDeps=True)
    volumes: list[Object] = [{"name": "settings", "configMap": {"name": "settings"}}]
    scene.deployment(replicas=2, volumes=volumes)
    scene.wait_placed({"sim-a1": 2})
    scene.notes["binding"] = "settings-configmap"
    scene.karmada.wait_for(
        lambda: scene.client.find(scene.path("settings-configmap")), "the binding of the ConfigMap"
    )
