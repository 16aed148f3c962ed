"""Who decides: names of schedulers that exist, and names that nobody has."""

from __future__ import annotations

from tests.e2e.state.model import Also, Expected, situation
from tests.e2e.state.plane import STOCK
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.expectations import REFUSED, nobody_decides, not_placed
from tests.e2e.workload import DYNAMIC, named


@situation(
    nobody_decides(
        headline=r"my-schedler.*did you mean my-scheduler",
        cause=r"^\w+: .*my-schedler.*my-scheduler",
        remedy=r"my-scheduler",
        would_be="sim-a1",
        quiet="my-schedler",
        fields={"state.scheduler.name": "my-schedler"},
    ),
    also=(
        Also(["why-not", "deployment/web", "--placed"], 0, "NOT PLACED, nobody decides"),
        Also(["explain", "deployment/web", "--scheduler-name=my-scheduler"], 1),
        Also(["plan", "--cordon=sim-c1", "--fail-on=none"], 0, effect="^(unchanged|undecided)$"),
        Also(["rebalance", "--max-moves=10"], None, never="{namespace}/web-deployment"),
    ),
    page="nobody decides",
    applies=False,
)
def scheduler_name_mistyped(scene: Scene) -> None:
    """The policy names a scheduler that does not exist, and resembles one."""
    scene.web(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), scheduler="my-schedler")
    scene.wait_binding()


@situation(
    nobody_decides(
        headline=r"volcano",
        cause=r"^\w+: .*volcano",
        remedy=r"default-scheduler|my-scheduler|schedulerName",
        never="did you mean",
    ),
    applies=False,
)
def scheduler_name_of_nobody(scene: Scene) -> None:
    """The policy names a scheduler that resembles none."""
    scene.web(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), scheduler="volcano")
    scene.wait_binding()


@situation(
    nobody_decides(
        headline=r"default-schedular.*did you mean default-scheduler",
        cause=r"^\w+: .*default-schedular",
        remedy=r"default-scheduler",
    ),
    applies=False,
)
def scheduler_name_nearly_the_default(scene: Scene) -> None:
    """The policy names the stock scheduler with a typo."""
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC), scheduler="default-schedular")
    scene.wait_binding()


@situation(Expected("placed", "all", headline="sim-b1 3"))
def scheduler_without_a_lease(scene: Scene) -> None:
    """Another program without a Lease placed it, known by Events.

    A scheduler without a Lease of its own, known by its Events and conditions only.
    """
    name = f"{scene.namespace}-other"
    scene.karmada.start_karmada_scheduler(name)
    scene.notes["scheduler"] = name
    scene.web_applied(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=name, replicas=3)


@situation(
    not_placed(
        headline=REFUSED,
        cause="^ClusterUnknown: ",
        remedy="sim-b[12] instead of sim-b9",
        fields={"state.scheduler.name": STOCK},
    ),
    flags=("--feature-gates=CustomizedClusterResourceModeling=false",),
)
def stock_scheduler_refuses(scene: Scene) -> None:
    """A binding of the stock scheduler is not placed."""
    scene.web(named("sim-b9", replicaScheduling=DYNAMIC), scheduler=None)
    scene.wait_refused("NoClusterFit")
