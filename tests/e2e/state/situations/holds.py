"""What somebody holds back: quotas and suspensions."""

from __future__ import annotations

from tests.e2e.state.model import Also, Expected, situation
from tests.e2e.state.scene import Scene
from tests.e2e.workload import DUPLICATED, DYNAMIC, named
from tools.controlplane import Object

FROM_MINE = ("--from={from west-scheduler}",)


def quota(scene: Scene, **overall: str) -> None:
    """Create a quota and wait until it is in force."""
    manifest: Object = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "FederatedResourceQuota",
        "metadata": {"name": "team-a", "namespace": scene.namespace},
        "spec": {"overall": overall},
    }
    path = scene.client.path_of(scene.client.create(manifest))
    scene.karmada.wait_for(
        lambda: scene.client.get(path).get("status", {}).get("overall"), "the quota to be in force"
    )


@situation(
    Expected(
        "held",
        "none",
        headline=r"quota.*(team-a|cpu)",
        cause=r"^QuotaRefused: .*cpu",
        remedy=r"(scale to|^workload .*)\b1\b|quota.*team-a.*800m",
        would_be="^null$",
        quiet="quota",
    ),
    also=(
        Also(["why-not", "deployment/web", "--placed"], 0, "NOT PLACED, held"),
        Also(["plan", "--cordon=sim-c1", "--fail-on=none"], 0, effect="^(unchanged|held)$"),
    ),
    flags=FROM_MINE,
    page="held",
)
def quota_refuses(scene: Scene) -> None:
    """A quota refuses the workload."""
    quota(scene, cpu="700m")
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC), replicas=2, cpu="400m")
    scene.wait_refused("QuotaExceeded")


@situation(
    Expected(
        "held",
        "part",
        headline=r"2 of 4.*sim-a1 2.*quota",
        cause=r"^QuotaRefused: .*cpu",
        remedy=r"(scale to|^workload .*)\b2\b|quota.*team-a.*1600m",
        would_be="^null$",
    )
)
def quota_refuses_more(scene: Scene) -> None:
    """2 replicas are placed, and a quota refuses 4."""
    quota(scene, cpu="1")
    scene.web_applied(named("sim-a1", replicaScheduling=DYNAMIC), replicas=2, cpu="400m")
    scene.scale(4)
    scene.wait_refused("QuotaExceeded")


@situation(
    Expected(
        "held",
        "none",
        headline=r"quota.*(team-a|memory)",
        cause=r"^QuotaRefused: .*memory",
        remedy=r"(scale to|^workload .*)\b1\b|quota.*team-a.*128Mi",
    ),
    applies=False,
)
def quota_refuses_the_stock_scheduler(scene: Scene) -> None:
    """A quota of memory refuses a workload of karmada-scheduler."""
    quota(scene, memory="100Mi")
    scene.web(named("sim-a1", replicaScheduling=DUPLICATED), replicas=2, cpu="100m", scheduler=None)
    scene.wait_refused("QuotaExceeded")


@situation(
    Expected(
        "held",
        "none",
        headline=r"suspen.*spec\.suspension\.scheduling|spec\.suspension\.scheduling",
        cause=r"^Suspended: .*spec\.suspension\.scheduling",
        remedy=r"resume",
        would_be="sim-a1",
    ),
    page="held",
)
def scheduling_suspended(scene: Scene) -> None:
    """Scheduling is suspended, and nothing is placed."""
    # Its scheduler refuses it first, so that nothing is placed when the suspension comes.
    scene.policy(named("sim-a9", replicaScheduling=DYNAMIC))
    scene.deployment()
    scene.wait_refused("NoClusterFit")
    scene.patch_binding({"suspension": {"scheduling": True}})
    scene.policy(named("sim-a1", replicaScheduling=DYNAMIC))
    scene.wait(lambda found: "sim-a1" in str(found["spec"]["placement"]), "edited")


@situation(
    Expected(
        "held",
        "part",
        headline=r"4 of 8.*sim-a1 2.*sim-b1 2.*suspen",
        cause=r"^Suspended: ",
        remedy=r"resume",
        would_be='"replicas": 4',
        quiet="suspen",
    )
)
def scheduling_suspended_in_part(scene: Scene) -> None:
    """Scheduling is suspended, 8 replicas are wanted and 4 placed."""
    scene.web_applied(named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), replicas=4)
    scene.patch_binding({"suspension": {"scheduling": True}})
    scene.scale(8)
    scene.wait(lambda found: found["spec"]["replicas"] == 8, "scaled")


@situation(Expected("held", "all", headline=r"sim-a1 4.*suspen", cause=r"^Suspended: ", remedy=r"resume"))
def scheduling_suspended_after_placing(scene: Scene) -> None:
    """Scheduling is suspended, and all is placed."""
    scene.web_applied(named("sim-a1", replicaScheduling=DYNAMIC), replicas=4)
    scene.patch_binding({"suspension": {"scheduling": True}})
    scene.wait(lambda found: found["spec"]["suspension"]["scheduling"], "suspended")
