"""The rules come from the process that decides: its plugins, and what it says about its last decision."""

from __future__ import annotations

import re
from typing import Any

from tests.e2e.state.model import Expected, situation
from tests.e2e.state.plane import GATED, PLUGGED
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import REFUSED, not_placed
from tests.e2e.workload import DYNAMIC, condition, named
from tools.controlplane.api import local_session

FROM = "--from={from south-scheduler}"
WITH_CODE = ("--plugin-dir={plugins}",)


def _filtered(scene: Scene) -> None:
    scene.web(
        named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC),
        scheduler=PLUGGED,
        annotations={"contract": "none"},
    )
    scene.wait(lambda found: condition(found).get("status") == "False", "refused")
    url = f"{scene.plane.records[PLUGGED]}/v1/decisions/{scene.namespace}/web-deployment"
    with local_session() as session:
        scene.karmada.wait_for(lambda: session.get(url, timeout=10).ok, "the record of the decision")


def _let_through(scene: Scene, **fields: Any) -> None:
    scene.web_applied(named("sim-a1", replicaScheduling=DYNAMIC), scheduler=PLUGGED, **fields)


def _kept_back(scene: Scene) -> None:
    scene.web(
        named("sim-a1", replicaScheduling=DYNAMIC), scheduler=PLUGGED, annotations={"contract": "pending"}
    )
    scene.wait_binding()
    scene.karmada.wait_for(
        scene.plane.schedulers[PLUGGED].scrape,
        "the binding to be held back",
        until=lambda text: re.search(r'reason="[Gg]ated"[^}]*\} [1-9]', text),
        timeout=15,
    )


def _peers_apart(scene: Scene) -> None:
    apart = {"antiAffinity": {"groupByLabelKey": "team"}}
    for name in ("api", "web"):
        selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        placement = named(
            "sim-a1", replicaScheduling={"replicaSchedulingType": "Duplicated"}, workloadAffinity=apart
        )
        scene.policy(placement, name=name, selector=selector, scheduler=GATED)
        scene.deployment(name=name, labels={"team": scene.namespace})
        if name == "api":
            scene.wait_placed({"sim-a1": 4}, name="api-deployment")
    scene.wait_refused("NoClusterFit")


@situation(
    not_placed(
        headline=r"contract",
        cause=r"contract|Contracts",
        remedy="",
        quiet="contract",
        fields={"provenance.record.agrees": re.compile("true|null")},
        problem=r"^$|--plugin-dir",
    ),
    flags=(FROM,),
    applies=False,
    page="not placed",
)
def plugin_of_the_process_refuses(scene: Scene) -> None:
    """A plugin of the running process refuses all clusters, and the command has no code of it."""
    _filtered(scene)


@situation(
    not_placed(
        headline=r"contract",
        cause=r"contract|Contracts|StaleCondition|PluginsNotKnown",
        remedy="^$|.",
        problem="^$|.",
    ),
    applies=False,
)
def plugin_of_the_process_refuses_and_only_objects_are_read(scene: Scene) -> None:
    """A plugin of the running process refuses all clusters, and only the control plane is read."""
    _filtered(scene)


@situation(
    not_placed(headline=r"contract", cause=r"^PluginRefused: .*contract", remedy="^$|plugin"),
    flags=WITH_CODE,
    applies=False,
)
def plugin_here_refuses(scene: Scene) -> None:
    """A plugin that reads the workload refuses all clusters, and the command has its code."""
    _filtered(scene)


@situation(
    Expected("placed", "all", headline="sim-a1 4"),
    flags=WITH_CODE,
)
def plugin_here_lets_through(scene: Scene) -> None:
    """A plugin that reads the workload is healthy, and the command has its code."""
    _let_through(scene)


@situation(
    Expected(
        "placed",
        "all",
        headline="sim-a1 4",
        cause=r"^$|^PluginCodeMissing: .*--plugin-dir",
        fields={"provenance.record.agrees": re.compile("true|null")},
    ),
    flags=(FROM,),
)
def plugin_of_the_process_lets_through(scene: Scene) -> None:
    """A binding is healthy, and a plugin of its scheduler reads the workload."""
    _let_through(scene)


@situation(
    Expected(
        "held",
        "none",
        headline=r"contract is not signed",
        cause=r"^Gated: .*contract is not signed",
        remedy="",
    ),
    flags=(FROM, *WITH_CODE),
    applies=False,
)
def plugin_keeps_back(scene: Scene) -> None:
    """A plugin keeps the binding out of the queue."""
    _kept_back(scene)


@situation(
    Expected(
        "held",
        "none",
        headline=r"contract is not signed|Contracts|PreEnqueue|gate",
        cause=r"^Gated: ",
        remedy="",
        problem="^$|--plugin-dir",
    ),
    flags=(FROM,),
    applies=False,
)
def plugin_keeps_back_without_code(scene: Scene) -> None:
    """A plugin keeps the binding out of the queue, and the command has no code of it."""
    _kept_back(scene)


@situation(
    not_placed(headline=REFUSED, cause=r"^PluginsNotKnown: decided by north-scheduler", remedy="^$|."),
    applies=False,
)
def peer_there(scene: Scene) -> None:
    """Workload anti-affinity keeps it away from a peer, and the command is not given the gate."""
    _peers_apart(scene)


@situation(
    not_placed(headline=REFUSED, cause=r"^GroupAntiAffinity: ", remedy="."),
    flags=("--from={from north-scheduler}",),
    applies=False,
)
def peer_there_and_the_process(scene: Scene) -> None:
    """Workload anti-affinity keeps it away from a peer, and the process is asked."""
    _peers_apart(scene)
