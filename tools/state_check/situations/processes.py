"""The rules come from the process that decides: its plugins, and what it says about its last decision."""

from __future__ import annotations

import re
from typing import Any

from tests.e2e.workload import DYNAMIC, condition, named
from tools.state_check.model import Expected, Situation
from tools.state_check.plane import GATED, PLUGGED
from tools.state_check.scene import Scene
from tools.state_check.situations.expectations import REFUSED, not_placed

FROM = "--from={from south-scheduler}"
WITH_CODE = ("--plugin-dir={plugins}",)


def _filtered(scene: Scene) -> None:
    scene.web(
        named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC),
        scheduler=PLUGGED,
        annotations={"contract": "none"},
    )
    scene.wait(lambda found: condition(found).get("status") == "False", "refused")


def _let_through(scene: Scene, **fields: Any) -> None:
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC), scheduler=PLUGGED, **fields)
    scene.wait_applied()


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


SITUATIONS = (
    Situation(
        "plugin-of-the-process-refuses",
        "a plugin of the running process refuses all clusters, and the command has no code of it",
        _filtered,
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
    ),
    Situation(
        "plugin-of-the-process-refuses-and-only-objects-are-read",
        "a plugin of the running process refuses all clusters, and only the control plane is read",
        _filtered,
        not_placed(
            headline=r"contract",
            cause=r"contract|Contracts|StaleCondition",
            remedy="^$|.",
            problem="^$|.",
        ),
        applies=False,
    ),
    Situation(
        "plugin-here-refuses",
        "a plugin that reads the workload refuses all clusters, and the command has its code",
        _filtered,
        not_placed(headline=r"contract", cause=r"^PluginRefused: .*contract", remedy="^$|plugin"),
        flags=WITH_CODE,
        applies=False,
    ),
    Situation(
        "plugin-here-lets-through",
        "a plugin that reads the workload is healthy, and the command has its code",
        _let_through,
        Expected("placed", "all", headline="sim-a1 4"),
        flags=WITH_CODE,
    ),
    Situation(
        "plugin-of-the-process-lets-through",
        "a binding is healthy, and a plugin of its scheduler reads the workload",
        _let_through,
        Expected(
            "placed",
            "all",
            headline="sim-a1 4",
            cause=r"^$|^PluginCodeMissing: .*--plugin-dir",
            fields={"provenance.record.agrees": re.compile("true|null")},
        ),
        flags=(FROM,),
    ),
    Situation(
        "plugin-keeps-back",
        "a plugin keeps the binding out of the queue",
        _kept_back,
        Expected(
            "held",
            "none",
            headline=r"contract is not signed",
            cause=r"^Gated: .*contract is not signed",
            remedy="",
        ),
        flags=(FROM, *WITH_CODE),
        applies=False,
    ),
    Situation(
        "plugin-keeps-back-without-code",
        "a plugin keeps the binding out of the queue, and the command has no code of it",
        _kept_back,
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
    ),
    Situation(
        "peer-there",
        "workload anti-affinity keeps it away from a peer, and the command is not given the gate",
        _peers_apart,
        not_placed(headline=REFUSED, cause=r"affinity|NoClusterFit|WorkloadAffinity", remedy="^$|."),
        applies=False,
    ),
    Situation(
        "peer-there-and-the-process",
        "workload anti-affinity keeps it away from a peer, and the process is asked",
        _peers_apart,
        not_placed(headline=REFUSED, cause=r"^GroupAntiAffinity: ", remedy="."),
        flags=("--from={from north-scheduler}",),
        applies=False,
    ),
)
