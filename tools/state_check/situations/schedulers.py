"""Who decides: names of schedulers that exist, and names that nobody has."""

from __future__ import annotations

from tests.e2e.workload import DYNAMIC, named
from tools.state_check.model import Also, Expected, Situation
from tools.state_check.plane import STOCK
from tools.state_check.scene import Scene
from tools.state_check.situations.expectations import REFUSED, nobody_decides, not_placed

LEASES = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"
EXPIRED = r"[Ll]ease.*(expired|ran out|run out|not renewed|released)|ended|is down"


def _unknown(scene: Scene) -> None:
    scene.web(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), scheduler="my-schedler")
    scene.wait_binding()


def _unlike_any(scene: Scene) -> None:
    scene.web(named("sim-a1", "sim-a2", replicaScheduling=DYNAMIC), scheduler="volcano")
    scene.wait_binding()


def _unknown_default(scene: Scene) -> None:
    scene.web(named("sim-a1", replicaScheduling=DYNAMIC), scheduler="default-schedular")
    scene.wait_binding()


def _another_program(scene: Scene) -> None:
    """A scheduler without a Lease of its own, known by its Events and conditions only."""
    name = f"{scene.namespace}-other"
    scene.karmada.start_karmada_scheduler(name)
    scene.notes["scheduler"] = name
    scene.web(named("sim-b1", replicaScheduling=DYNAMIC), scheduler=name, replicas=3)
    scene.wait_applied()


def _stock_refuses(scene: Scene) -> None:
    scene.web(named("sim-b9", replicaScheduling=DYNAMIC), scheduler=None)
    scene.wait_refused("NoClusterFit")


SITUATIONS = (
    Situation(
        "scheduler-name-mistyped",
        "the policy names a scheduler that does not exist, and resembles one",
        _unknown,
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
            Also(["rebalance", "--max-moves=10"], 0, never="{namespace}/web-deployment"),
        ),
        page="nobody decides",
        applies=False,
    ),
    Situation(
        "scheduler-name-of-nobody",
        "the policy names a scheduler that resembles none",
        _unlike_any,
        nobody_decides(
            headline=r"volcano",
            cause=r"^\w+: .*volcano",
            remedy=r"default-scheduler|my-scheduler|schedulerName",
            never="did you mean",
        ),
        applies=False,
    ),
    Situation(
        "scheduler-name-nearly-the-default",
        "the policy names the stock scheduler with a typo",
        _unknown_default,
        nobody_decides(
            headline=r"default-schedular.*did you mean default-scheduler",
            cause=r"^\w+: .*default-schedular",
            remedy=r"default-scheduler",
        ),
        applies=False,
    ),
    Situation(
        "scheduler-without-a-lease",
        "another program without a Lease placed it, known by Events",
        _another_program,
        Expected("placed", "all", headline="sim-b1 3"),
    ),
    Situation(
        "stock-scheduler-refuses",
        "a binding of the stock scheduler is not placed",
        _stock_refuses,
        not_placed(
            headline=REFUSED,
            cause="^ClusterUnknown: ",
            remedy="sim-b[12] instead of sim-b9",
            fields={"state.scheduler.name": STOCK},
        ),
        # The gate of that process, which tells nobody: Karmada's default is true.
        flags=("--feature-gates=CustomizedClusterResourceModeling=false",),
    ),
)
