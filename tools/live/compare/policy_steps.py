"""Changes through Karmada's controllers: a Deployment or a policy is changed, and they update the binding."""

from __future__ import annotations

from typing import Final

from tools import placements
from tools.controlplane import Object
from tools.manifests import deployment, policy

from . import fleet
from .binding_steps import next_second, poked, replaced
from .fleet import NAMESPACE, Key, binding_of
from .model import Draw, Model, Step, evictions_are_done, is_suspended
from .plane import Bindings, Plane

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
POLICIES = f"/apis/policy.karmada.io/v1alpha1/namespaces/{NAMESPACE}/propagationpolicies"


def scale(model: Model) -> Step | None:
    """Scale a Deployment."""
    if not model.deployed & model.claimed:
        return None
    name = model.choices.pick(sorted(model.deployed & model.claimed))
    key, replicas = binding_of(name), model.choices.between(0, 12)
    return Step(
        "Deployment scaled", name, replicas,
        lambda plane: plane.client.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": replicas}}),
        lambda bindings: bindings[key]["spec"].get("replicas", 0) == replicas and evictions_are_done(bindings),
        patient=True,
    )  # fmt: skip


def place(model: Model) -> Step | None:
    """Edit the placement of a policy."""
    if not model.deployed & model.claimed:
        return None
    name = model.choices.pick(sorted(model.deployed & model.claimed))
    placement = placements.for_policy(model.choices, fleet.CLUSTERS)
    policies = Policies(name)

    def act(plane: Plane) -> None:
        body = {"spec": {"placement": replaced(placement)}}
        policies.put(plane, plane.client.patch(f"{POLICIES}/{name}", body))

    return Step("policy edited", name, placement, act, policies.arrived, patient=True)


def rebalance(model: Model) -> Step | None:
    """Request a reschedule with a WorkloadRebalancer."""
    names = sorted(name for name in model.deployed if binding_of(name) in model.bindings)
    if not names:
        return None
    name = model.choices.pick(names)
    moment = next_second(model.times.get(binding_of(name)))
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": name}
    rebalancer = {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": f"{name}-{model.choices.getrandbits(40):x}"},
        "spec": {"workloads": [workload]},
    }

    def arrived(bindings: Bindings) -> bool:
        return bool(bindings[binding_of(name)]["spec"].get("rescheduleTriggeredAt", "") >= moment)

    return Step(
        "WorkloadRebalancer",
        name,
        rebalancer,
        lambda plane: plane.client.create(rebalancer),
        arrived,
        patient=True,
    )


def suspend(model: Model) -> Step | None:
    """Suspend the scheduling of a binding that the detector manages, or resume it."""
    keys = [
        key
        for key in map(binding_of, fleet.WORKLOADS)
        if key in model.bindings and (is_suspended(model.bindings[key]) or key not in model.failed)
    ]
    if not keys:
        return None
    key = model.choices.pick(keys)
    body = {"spec": {"suspension": {"scheduling": not is_suspended(model.bindings[key])}}}
    return Step(
        "suspend or resume",
        str(key),
        body,
        lambda plane: plane.patch(key, body),
        evictions_are_done,
        patient=True,
    )


def unclaim(model: Model) -> Step | None:
    """Delete a policy, or create it again with another placement.

    The binding is decided on before its policy goes, because ours reconciles it once more then.
    """
    name = model.choices.pick(fleet.WORKLOADS)
    key = binding_of(name)
    if name not in model.claimed:
        model.claimed.add(name)
        manifest, policies = (
            policy(fleet.NAMESPACE, name, placements.for_policy(model.choices, fleet.CLUSTERS)),
            Policies(name),
        )
        expected = name in model.deployed
        return Step(
            "policy created", name, manifest,
            lambda plane: policies.put(plane, plane.client.create(manifest)),
            lambda bindings: not expected or policies.arrived(bindings),
            patient=True,
        )  # fmt: skip
    if name not in model.deployed or key not in model.bindings or key in model.failed:
        return None
    model.claimed.remove(name)
    body = poked(model.bindings[key])

    def act(plane: Plane) -> None:
        plane.patch(key, body)
        plane.rest()
        plane.client.delete(f"{POLICIES}/{name}")

    return Step(
        "policy deleted", name, None, act, lambda bindings: not _is_claimed(bindings, key), patient=True
    )


def deploy(model: Model) -> Step | None:
    """Delete a Deployment that no policy claims, or create it again."""
    names = [name for name in fleet.WORKLOADS if name not in model.claimed]
    if not names:
        return None
    name = model.choices.pick(names)
    key = binding_of(name)
    if name in model.deployed:
        model.deployed.remove(name)
        return Step(
            "Deployment deleted", name, None,
            lambda plane: plane.client.delete(f"{DEPLOYMENTS}/{name}"),
            lambda bindings: key not in bindings,
            patient=True,
        )  # fmt: skip
    model.deployed.add(name)
    manifest = deployment(fleet.NAMESPACE, name, model.choices.between(1, 12))
    odd = model.choices.chance(0.5)
    return Step(
        "Deployment created", name, manifest, lambda plane: create(plane, manifest, odd=odd), patient=True
    )


def create(plane: Plane, manifest: Object, *, odd: bool) -> None:
    """Create a Deployment whose uid breaks ties in the same way on both planes; no policy may claim it yet."""
    path = f"{DEPLOYMENTS}/{manifest['metadata']['name']}"
    while is_odd(plane.client.create(manifest)["metadata"]["uid"]) is not odd:
        plane.client.delete(path)
        plane.wait(lambda: plane.client.find(path) is None, f"{path} to be gone")


def is_odd(uid: str) -> bool:
    """Return whether the uid's FNV-1a hash, so the sum of its bytes, is odd; ties of a division depend on it."""
    return sum(uid.encode()) % 2 == 1


class Policies:
    """One policy on both planes: what was written there, and whether the binding has it."""

    def __init__(self, workload: str) -> None:
        self._workload = workload
        self._placement: Object = {}

    def put(self, plane: Plane, written: Object) -> None:
        """Record a policy as the webhook changed it, which is the same on both planes."""
        del plane
        self._placement = written["spec"]["placement"]

    def arrived(self, bindings: Bindings) -> bool:
        """Return whether the detector has brought it to the binding."""
        item = bindings.get(binding_of(self._workload))
        return (
            item is not None
            and item["spec"].get("placement") == self._placement
            and evictions_are_done(bindings)
        )


def _is_claimed(bindings: Bindings, key: Key) -> bool:
    return bool(bindings[key]["metadata"].get("labels", {}).get(fleet.POLICY_LABEL))


STEPS: Final[tuple[tuple[int, Draw], ...]] = (
    (4, scale),
    (3, place),
    (3, rebalance),
    (1, suspend),
    (2, unclaim),
    (2, deploy),
)
