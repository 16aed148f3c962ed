"""All actions of plans: those of ``actions``, and those about policies, front ends, plugin files, unreadable objects and mishaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import orjson

from tests.fake_apiserver.objects import policy
from tools.simulation.actions import Actions, Object, placement
from tools.simulation.aims import Aims
from tools.simulation.bindings import BINDING_KINDS, id_of_policy, kind_and_key
from tools.simulation.controllers import Controllers
from tools.simulation.plan import Fault
from tools.simulation.setup import NAME, SOURCES

if TYPE_CHECKING:
    from tools.simulation.run import Run

_DETECTOR_SECONDS: Final = 0.3
"""How long Karmada's detector takes to change the bindings of a changed policy."""

PLUGIN_TEXTS: Final[dict[str, Callable[[str], str]]] = {
    "broken": lambda text: text[: len(text) // 2] + "\n    def (",
    "raising": lambda text: text + '\nraise RuntimeError("injected")\n',
    "useless": lambda _: "class Nothing:\n    pass\n",
    "misspelt": lambda text: text.replace(
        "    name = ", "    def fliter(self, context): ...\n\n    name = ", 1
    ),
    "changed": lambda text: text + "\n# changed\n",
    "second": lambda text: text.replace("VERSION = 1", "VERSION = 2"),
    "healthy": lambda text: text,
}
"""The values of ``replace_plugin``: what becomes of the text of a file."""


def _wrong_replicas(found: Object) -> None:
    found["spec"]["replicas"] = "three"


def _wrong_clusters(found: Object) -> None:
    found["spec"]["clusters"] = [{"name": "m0", "replicas": "many"}]


def _wrong_labels(found: Object) -> None:
    found["metadata"]["labels"] = ["a"]


def _huge_request(found: Object) -> None:
    found["spec"]["replicaRequirements"] = {"resourceRequest": {"cpu": "1e20000"}}


def _wrong_placement(found: Object) -> None:
    found["spec"]["placement"] = {"clusterAffinity": [], "spreadConstraints": 7}


def _wrong_status(found: Object) -> None:
    found["status"] = {"aggregatedStatus": "none", "conditions": {}}


UNREADABLE: Final[dict[str, Callable[[Object], None]]] = {
    "replicas": _wrong_replicas,
    "clusters": _wrong_clusters,
    "labels": _wrong_labels,
    "request": _huge_request,
    "placement": _wrong_placement,
    "status": _wrong_status,
}
"""The values of ``break_binding``: what is wrong with a binding."""


class AllActions(Actions):
    """Takes the steps of a plan."""

    def __init__(self, run: Run) -> None:
        """Take the parts of the run."""
        super().__init__(run)
        self._setup = run.setup
        self._controllers = None if run.setup.guard is None else Controllers(run.simulation, run.model)
        self._readable: dict[str, bytes] = {}
        self.aims: Final = Aims(run, self.take)

    def do_aim(self, moment: str, then: str, within: float, delay: float, **arguments: Any) -> None:
        """Take an action at a moment that is to come within some seconds; see ``aims``."""
        self.aims.wait(moment, within, delay, then, arguments)

    def do_inject(self, kind: str, seconds: float, requests: str, value: Any = None, name: str = "") -> None:
        """Let a fault apply from now on for some seconds."""
        del name  # of the binding of a moment
        now = self._simulation.now
        self._run.faults.add(Fault(kind=kind, start=now, end=now + seconds, requests=requests, value=value))

    def _change_binding(self, name: str, change: Callable[[Object], None]) -> bool:
        return name not in self._readable and super()._change_binding(name, change)

    def do_delete_binding(self, name: str) -> bool:
        """Delete a binding, an unreadable one included."""
        self._readable.pop(name, None)
        return super().do_delete_binding(name)

    def do_suspend_machine(self, process: int, seconds: float, *, cuts: bool) -> bool:
        """Suspend the machine of a replica; ``cuts`` is whether the API server gives its connections up meanwhile."""
        found = self._run.process(process)
        if found is None or not found.suspend(seconds):
            return False
        if cuts:
            self._network.cut_watches(process)
        return True

    def do_suspend_leader(self, seconds: float, *, cuts: bool, name: str = "") -> bool:
        """Suspend the machine of the leader."""
        del name  # of the binding of a moment
        leader = self._run.leader()
        return leader is not None and self.do_suspend_machine(leader.index, seconds, cuts=cuts)

    def do_name_target(self, name: str, cluster: str) -> bool:
        """Add a cluster to those of a binding, as another scheduler or a tool does that restores it."""

        def add(found: Object) -> None:
            found["spec"].setdefault("clusters", []).append({"name": cluster, "replicas": 1})

        return self._change_binding(name, add)

    def do_take_replicas(self, name: str, all: bool) -> bool:  # noqa: A002 (an argument of a plan)
        """Take replicas of a binding from its first cluster, as a descheduler does, or from all."""

        def take(found: Object) -> None:
            for target in (found["spec"].get("clusters") or ())[: None if all else 1]:
                target["replicas"] = 0

        return self._change_binding(name, take)

    def do_set_nodes(self, name: str, nodes: list[int]) -> bool:
        """Give a member other nodes; its Pods have to find one again."""
        if self._run.started is None:
            return False
        member = self._run.started.members[name]
        member.nodes, member.pods = nodes, []
        self._run.started.on_change()
        return True

    def do_lift_cordon(self, name: str) -> bool:
        """Let a member use 8 of the cpu that its summary has counted before."""
        member = None if self._run.started is None else self._run.started.members[name]
        if self._run.started is None or member is None or member.closed < 8:
            return False
        member.nodes, member.closed, member.cordoned = (
            [*member.nodes, 8],
            member.closed - 8,
            member.cordoned + 1,
        )
        self._run.started.on_change()
        return True

    def do_set_priority(self, name: str, priority: int) -> bool:
        """Change the priority of a binding, as the detector does when its policy has another PriorityClass."""
        return self._change_binding(
            name, lambda found: found["spec"].update(schedulePriority={"priority": priority})
        )

    def do_fail_cluster(self, name: str, down: bool) -> bool:
        """Let a cluster fail, so that its bindings are evicted, or recover."""
        if self._controllers is None:
            return False
        self._controllers.taint(name, "NoExecute" if down else "")
        return True

    def do_make_sick(self, name: str, sick: bool) -> bool:
        """Let the copies in a cluster become unhealthy, or healthy again."""
        if self._controllers is None:
            return False
        self._controllers.report(name, "Unhealthy" if sick else "Healthy")
        return True

    def do_hang_deletion(self, name: str) -> bool:
        """Delete a binding whose deletion hangs, with an eviction task that nobody has stamped; others may write both."""

        def change(found: Object) -> None:
            found["metadata"]["finalizers"] = ["example.com/hangs"]
            task = {"fromCluster": "m9", "producer": NAME, "reason": "Rescheduled", "purgeMode": "Gracefully"}
            found["spec"]["gracefulEvictionTasks"] = [task]

        return self._change_binding(name, change) and self.do_delete_binding(name)

    def do_put_policy(self, name: str, strategy: str, region: str = "") -> None:
        """Create or change a policy; then the detector changes its bindings. ``/p1`` is a ClusterPropagationPolicy."""
        namespace, plain = self._policy(name)
        found = policy(plain, namespace=namespace, placement=placement(strategy, region))
        if not namespace:
            found["kind"] = "ClusterPropagationPolicy"
            del found["metadata"]["namespace"]
        found["metadata"]["labels"] = dict([id_of_policy(name)])
        self._model.put(found)
        self._simulation.after(_DETECTOR_SECONDS, lambda: self._detect(name, strategy, region))

    def do_touch_policy(self, name: str) -> bool:
        """Change a policy in a way that its bindings do not differ."""
        namespace, plain = self._policy(name)
        kind = "PropagationPolicy" if namespace else "ClusterPropagationPolicy"

        def change(found: Object) -> None:
            found["spec"]["priority"] = found["spec"].get("priority", 0) + 1

        return self._change(kind, plain, change, namespace=namespace)

    def do_delete_policy(self, name: str) -> bool:
        """Delete a policy; its bindings stay, and are no longer claimed."""
        namespace, plain = self._policy(name)
        if not self._delete(
            "PropagationPolicy" if namespace else "ClusterPropagationPolicy", namespace, plain
        ):
            return False
        self._of_policy(name, lambda found: found["metadata"]["labels"].pop(id_of_policy(name)[0], None))
        return True

    @staticmethod
    def _policy(name: str) -> tuple[str, str]:
        namespace, slash, plain = name.rpartition("/")
        return ("" if slash and not namespace else namespace or "default"), plain

    def _detect(self, name: str, strategy: str, region: str) -> None:
        new = placement(strategy, region)
        self._of_policy(name, lambda found: found["spec"].update(placement=new))

    def _of_policy(self, name: str, change: Callable[[Object], object]) -> None:
        label, value = id_of_policy(name)
        for kind in BINDING_KINDS:
            for raw in list(self._model.state(kind).values()):
                found = orjson.loads(raw)
                labels = found["metadata"].get("labels")
                if isinstance(labels, dict) and labels.get(label) == value:  # one may be unreadable
                    change(found)
                    self._model.put(found)

    def do_lag_front_end(self, server: int, seconds: float) -> bool:
        """Let the watch caches of an API server be behind by some seconds."""
        return self._network.front_ends.lag(server, seconds)

    def do_move_client(self, process: int, server: int) -> bool:
        """Let a load balancer move the connections of a replica to another API server."""
        if not self._network.front_ends.move(process, server):
            return False
        self._network.cut_watches(process)
        return True

    def do_break_binding(self, name: str, what: str) -> bool:
        """Make a binding unreadable; see ``UNREADABLE``."""
        kind, namespace, plain = kind_and_key(name)
        found = self._model.get(kind, namespace, plain)
        if found is None or name in self._readable:
            return False
        self._readable[name] = orjson.dumps(found)
        UNREADABLE[what](found)
        self._model.put(found)
        return True

    def do_repair_binding(self, name: str) -> bool:
        """Repair a binding that was made unreadable."""
        kind, namespace, plain = kind_and_key(name)
        old = self._readable.pop(name, None)
        if old is None or self._model.get(kind, namespace, plain) is None:
            return False
        self._model.put(orjson.loads(old))
        return True

    def do_replace_plugin(self, process: int, file: str, text: str) -> bool:
        """Replace a plugin file of a replica; see ``PLUGIN_TEXTS``."""
        if file not in self._setup.plugins:
            return False
        old = (SOURCES / f"{file}.py").read_text()
        new = PLUGIN_TEXTS[text](old)
        if new == old and text != "healthy":
            return False
        if text == "second":
            self._setup.versions.add(2)
        return self._write_plugin(process, file, new)

    def do_remove_plugin(self, process: int, file: str) -> bool:
        """Remove a plugin file of a replica, one without which decisions are the same."""
        if file not in self._setup.plugins or file in ("region_filter", "name_score"):
            return False
        path = self._setup.plugin_dir(process) / f"{file}.py"
        if not path.exists():
            return False
        path.unlink()
        return True

    def _write_plugin(self, process: int, file: str, text: str) -> bool:
        path = self._setup.plugin_dir(process) / f"{file}.py"
        if path.exists() and path.read_text() == text:
            return False
        path.write_text(text)
        return True
