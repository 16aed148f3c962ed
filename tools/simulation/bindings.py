"""The names of bindings in plans, and new bindings."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from karmada_scheduler.api.own_annotations import FAIL_BACK, LAST_MOVE, RecordedMove, TermChange, moves_text
from karmada_scheduler.api.well_known import CLUSTER_POLICY_ID_LABEL, POLICY_ID_LABEL
from tests.fake_apiserver.objects import binding
from tools.apiserver_model import BY_NAME, Key
from tools.simulation.cluster_reports import LASTS
from tools.simulation.environment import START

Object = dict[str, Any]

BINDING_KINDS: Final = ("ResourceBinding", "ClusterResourceBinding")


def _history(at: datetime) -> Mapping[str, str]:
    moves = [RecordedMove(at.timestamp() - hours * 3600, 3) for hours in (48, 24, 0)]
    change = TermChange(2, at.timestamp() - 3600, "south", "north", at.timestamp())
    text = moves_text(moves, clusters=["m9"], cause="Rescheduled", term="")
    return {LAST_MOVE: text, FAIL_BACK: change.text()}


HISTORIES: Final[Mapping[str, Mapping[str, str]]] = {
    "old": _history(START - timedelta(days=30)),
    "future": _history(START + timedelta(days=30)),
    "unreadable": dict.fromkeys((LAST_MOVE, FAIL_BACK), "["),
}
"""Annotations by what they tell: moves and returns of long ago, of another day to come, or nothing that can be read."""


def kind_and_key(name: str) -> tuple[str, str, str]:
    """Return kind, namespace and name for the name of a binding in a plan.

    ``b1`` is in the namespace ``default``, ``shop/b1`` in ``shop``, and ``/b1`` is a ClusterResourceBinding.
    """
    namespace, slash, plain = name.rpartition("/")
    if slash and not namespace:
        return "ClusterResourceBinding", "", plain
    return "ResourceBinding", namespace or "default", plain


def name_of(kind: str, namespace: str, plain: str) -> str:
    """Return the name in a plan of a binding, the inverse of ``kind_and_key``."""
    if kind == "ClusterResourceBinding":
        return f"/{plain}"
    return plain if namespace == "default" else f"{namespace}/{plain}"


def key_of(name: str) -> Key:
    """Return the key of a binding in the state of the model."""
    kind, namespace, plain = kind_and_key(name)
    return BY_NAME[kind].key(namespace, plain)


def id_of_policy(policy: str) -> tuple[str, str]:
    """Return the label with the permanent id of a policy, and its value; ``/p1`` is a ClusterPropagationPolicy."""
    label = CLUSTER_POLICY_ID_LABEL if policy.startswith("/") else POLICY_ID_LABEL
    return label, f"id-of-{policy.replace('/', '-')}"


def new_binding(
    name: str,
    replicas: int,
    placement: Object,
    *,
    priority: int | None = None,
    policy: str = "",
    scheduler: str = "my-scheduler",
    is_claimed: bool = True,
    cpu: str = "",
    purge_mode: str = "",
    history: str = "",
    lasts: float = 0.0,
) -> Object:
    """Return a binding as the detector makes it.

    Args:
        name: See ``kind_and_key``.
        replicas: Of the workload.
        placement: Its placement.
        priority: Its ``schedulePriority``.
        policy: The policy that claims it; see ``id_of_policy``.
        scheduler: Its ``schedulerName``.
        is_claimed: Whether a policy claims it.
        cpu: What one replica needs.
        purge_mode: Of its failover from a cluster.
        history: What it has in the annotations of the scheduler; see ``HISTORIES``.
        lasts: Seconds from its placement to its end, 0 for no end; see ``cluster_reports``.
    """
    kind, namespace, plain = kind_and_key(name)
    found = binding(
        plain,
        namespace=namespace,
        replicas=replicas,
        placement=placement,
        scheduler=scheduler,
        requests={"cpu": cpu} if cpu else None,
    )
    if kind == "ClusterResourceBinding":
        found["kind"] = kind
        del found["metadata"]["namespace"]
        found["spec"]["resource"].pop("namespace")
    if priority is not None:
        found["spec"]["schedulePriority"] = {"priority": priority}
    if purge_mode:
        found["spec"]["failover"] = {"cluster": {"purgeMode": purge_mode}}
    if history:
        found["metadata"]["annotations"] = dict(HISTORIES[history])
    if lasts:
        found["metadata"]["annotations"] = {LASTS: str(lasts)}
    if not is_claimed:
        found["metadata"]["labels"] = {}
    elif policy:
        label, value = id_of_policy(policy)
        found["metadata"]["labels"] = {label: value}
    return found
