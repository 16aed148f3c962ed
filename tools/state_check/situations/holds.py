"""What somebody holds back: quotas and suspensions."""

from __future__ import annotations

from tests.e2e.workload import DUPLICATED, DYNAMIC, named
from tools.controlplane import Object
from tools.state_check.model import Also, Expected, Situation
from tools.state_check.scene import Scene

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


def _refused_by_a_quota(scene: Scene) -> None:
    quota(scene, cpu="700m")
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC), replicas=2, cpu="400m")
    scene.wait_refused("QuotaExceeded")


def _refused_next_to_a_placement(scene: Scene) -> None:
    quota(scene, cpu="1")
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC), replicas=2, cpu="400m")
    scene.wait_applied()
    scene.scale(4)
    scene.wait_refused("QuotaExceeded")


def _quota_of_the_stock_scheduler(scene: Scene) -> None:
    quota(scene, memory="100Mi")
    scene.web(named("sim-a1", replicaScheduling=DUPLICATED), replicas=2, cpu="100m", scheduler=None)
    scene.wait_refused("QuotaExceeded")


def _suspended(scene: Scene) -> None:
    # Its scheduler refuses it first, so that nothing is placed when the suspension comes.
    scene.policy(named("sim-a9", replicaScheduling=DYNAMIC))
    scene.deployment()
    scene.wait_refused("NoClusterFit")
    scene.patch_binding({"suspension": {"scheduling": True}})
    scene.policy(named("sim-a1", replicaScheduling=DYNAMIC))
    scene.wait(lambda found: "sim-a1" in str(found["spec"]["placement"]), "edited")


def _suspended_in_part(scene: Scene) -> None:
    scene.web(named("sim-a1", "sim-b1", replicaScheduling=DYNAMIC), replicas=4)
    scene.wait_applied()
    scene.patch_binding({"suspension": {"scheduling": True}})
    scene.scale(8)
    scene.wait(lambda found: found["spec"]["replicas"] == 8, "scaled")


def _suspended_after_placing(scene: Scene) -> None:
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC), replicas=4)
    scene.wait_applied()
    scene.patch_binding({"suspension": {"scheduling": True}})
    scene.wait(lambda found: found["spec"]["suspension"]["scheduling"], "suspended")


SITUATIONS = (
    Situation(
        "quota-refuses",
        "a quota refuses the workload",
        _refused_by_a_quota,
        Expected(
            "held",
            "none",
            headline=r"quota.*(team-a|cpu)",
            cause=r"^QuotaRefused: .*cpu",
            remedy=r"(scale to|^workload .*)\b1\b|quota.*team-a.*800m",
            would_be="sim-a1",
            quiet="quota",
        ),
        also=(
            Also(["why-not", "deployment/web", "--placed"], 0, "NOT PLACED, held"),
            Also(["plan", "--cordon=sim-c1", "--fail-on=none"], 0, effect="^(unchanged|held)$"),
        ),
        flags=FROM_MINE,
        page="held",
    ),
    Situation(
        "quota-refuses-more",
        "2 replicas are placed, and a quota refuses 4",
        _refused_next_to_a_placement,
        Expected(
            "held",
            "part",
            headline=r"2 of 4.*sim-a1 2.*quota",
            cause=r"^QuotaRefused: .*cpu",
            remedy=r"(scale to|^workload .*)\b2\b|quota.*team-a.*1600m",
            would_be='"replicas": 4',
        ),
    ),
    Situation(
        "quota-refuses-the-stock-scheduler",
        "a quota of memory refuses a workload of karmada-scheduler",
        _quota_of_the_stock_scheduler,
        Expected(
            "held",
            "none",
            headline=r"quota.*(team-a|memory)",
            cause=r"^QuotaRefused: .*memory",
            remedy=r"(scale to|^workload .*)\b1\b|quota.*team-a.*128Mi",
        ),
        applies=False,
    ),
    Situation(
        "scheduling-suspended",
        "scheduling is suspended, and nothing is placed",
        _suspended,
        Expected(
            "held",
            "none",
            headline=r"suspen.*spec\.suspension\.scheduling|spec\.suspension\.scheduling",
            cause=r"^Suspended: .*spec\.suspension\.scheduling",
            remedy=r"resume",
            would_be="sim-a1",
        ),
        page="held",
    ),
    Situation(
        "scheduling-suspended-in-part",
        "scheduling is suspended, 8 replicas are wanted and 4 placed",
        _suspended_in_part,
        Expected(
            "held",
            "part",
            headline=r"4 of 8.*sim-a1 2.*sim-b1 2.*suspen",
            cause=r"^Suspended: ",
            remedy=r"resume",
            would_be='"replicas": 4',
            quiet="suspen",
        ),
    ),
    Situation(
        "scheduling-suspended-after-placing",
        "scheduling is suspended, and all is placed",
        _suspended_after_placing,
        Expected("held", "all", headline=r"sim-a1 4.*suspen", cause=r"^Suspended: ", remedy=r"resume"),
    ),
)
