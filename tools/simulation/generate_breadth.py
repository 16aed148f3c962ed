"""Plans with more around the schedulers.

- ``kinds``: ClusterResourceBindings, policies, namespaces, priorities, feature gates and several scheduler names.
- ``plugins``: plugins from files that fail, and are replaced.
- ``extenders``, ``estimators``: what is asked over the network fails.
- ``workloads``: a plugin needs the metadata of workloads, which come, change and go.
- ``readers``: FreshFirst orders the queue, decisions are recorded, and the page watches; it is started up to three times.

In half of all runs clients talk to API servers whose watch caches are behind. In a third of them objects become
unreadable, for some time or for good.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, Final

from tools.simulation.all_actions import PLUGIN_TEXTS, UNREADABLE
from tools.simulation.estimators import ESTIMATOR_FAULTS
from tools.simulation.extenders import BODIES, EXTENDER_FAULTS
from tools.simulation.generate import POLICIES, REGIONS, STRATEGIES, _Generator
from tools.simulation.plan import Fault, Plan, Step
from tools.simulation.plugin_kit import PLUGIN_FAULTS
from tools.simulation.setup import WORKLOAD_READER

PROFILES: Final = ("kinds", "plugins", "extenders", "estimators", "readers", "workloads")

_FILES: Final = (
    "bind_steps", "books", "divider", "gate", "name_score", "reading", "region_filter", "reserver", "turnstile",
)  # fmt: skip
_CALLS: Final = (
    "filter$", "filter_key$", "score$", "pre_filter$", "pre_score$", "select$", "assign$", "pre_enqueue$",
    "reserve$", "permit$", "pre_bind$", "post_bind$", "run$",
)  # fmt: skip

_CALLS_OF: Final = {
    "plugin_waits": ("permit$",),
    "plugin_rejects": ("reserve$", "permit$", "pre_bind$", "pre_enqueue$"),
}
"""Calls of faults that fit few calls."""


_SETTLE_SECONDS_OF_WORKLOADS: Final = 200.0
"""A watch without an event ends after 290 s, and the list after it hides missed events."""


def plan_for(seed: str, profile: str) -> Plan:
    """Return the plan of a seed."""
    draw = Random(f"{seed}:{profile}:base")
    base = _Generator(seed, draw.choice(("calm", "churn"))).plan()
    return _Breadth(replace(base, seed=seed, profile=profile)).plan()


class _Breadth:
    """Adds to a plan of one of the other profiles."""

    def __init__(self, base: Plan) -> None:
        self._base = base
        self._draw = Random(f"{base.seed}:{base.profile}:breadth")
        self._end = base.faults_end
        self._steps: list[Step] = []
        self._faults: list[Fault] = []
        self._setup: dict[str, Any] = {"longest_backoff": 60.0}
        self._settle = base.settle
        self._names = {
            str(each.arguments["name"]): str(each.arguments["name"])
            for each in base.steps
            if each.action == "create_binding"
        }
        self._clusters = sorted(
            {str(each.arguments["name"]) for each in base.steps if each.action == "put_cluster"}
        )

    def plan(self) -> Plan:
        self._rename()
        getattr(self, f"_{self._base.profile}")()
        if self._draw.random() < 0.5:
            self._front_ends()
        if self._draw.random() < 0.33:
            self._unreadable()
        steps = [self._renamed(each) for each in self._base.steps] + self._steps
        # An unschedulable key of the priority queue waits for up to 330 s, also if an assumed placement ends meanwhile.
        has_priorities = self._setup.get("gates", {}).get("PriorityBasedScheduling", False)
        return replace(
            self._base,
            settle=self._settle + 130.0 * has_priorities,
            options={**self._base.options, "assumption_ttl": 60.0},
            setup=self._setup,
            steps=tuple(sorted(steps, key=lambda each: each.at)),
            faults=(*self._base.faults, *self._faults),
        )

    def _step(self, at: float, action: str, **arguments: Any) -> None:
        self._steps.append(Step(at=round(min(at, self._end), 3), action=action, arguments=arguments))

    def _moment(self) -> float:
        return self._draw.uniform(0.5, self._end * 0.95)

    def _window(self) -> tuple[float, float]:
        start = self._draw.choice((0.0, self._moment()))
        length = self._draw.choice((self._end, self._draw.uniform(2, 20)))
        return round(start, 2), round(min(self._end, start + length), 2)

    def _process(self) -> int:
        return self._draw.randrange(self._base.processes)

    def _rename(self) -> None:
        """Spread the bindings over both kinds and several namespaces."""
        for name in self._names:
            self._names[name] = self._draw.choice((name, name, f"shop/{name}", f"/{name}"))

    def _renamed(self, step: Step) -> Step:
        name = step.arguments.get("name")
        if name not in self._names:
            return step
        arguments = {**step.arguments, "name": self._names[name]}
        if step.action == "create_binding":
            arguments |= self._details()
        if step.action == "assign_scheduler" and arguments["scheduler"] == "another":
            arguments["scheduler"] = self._draw.choice(("another", *self._setup.get("profiles", ())))
        return replace(step, arguments=arguments)

    def _details(self) -> dict[str, Any]:
        """Draw the details of a binding that only some profiles have."""
        draw, found = self._draw, dict[str, Any]()
        if self._base.profile not in ("kinds", "readers"):
            return found
        if draw.random() < 0.7:
            found["policy"] = draw.choice(POLICIES)
        if draw.random() < 0.5:
            found["priority"] = draw.choice((-5, 0, 1, 2**31 - 1))
        if draw.random() < 0.5:
            found["cpu"] = draw.choice(("1", "500m", "2"))
        if self._setup.get("profiles"):
            found["scheduler"] = draw.choice(self._setup["profiles"])
        return found

    def _kinds(self) -> None:
        draw = self._draw
        gates = (
            "SchedulingOvercommitProtection",
            "PriorityBasedScheduling",
            "CustomizedClusterResourceModeling",
        )
        self._setup["gates"] = {name: draw.random() < 0.5 for name in gates}
        if draw.random() < 0.5:
            self._setup["profiles"] = ["my-scheduler", "second"]
        self._policies()
        for name in self._names.values():
            for _ in range(draw.randrange(3)):
                self._step(self._moment(), "report_status", name=name)

    def _policies(self) -> None:
        for policy in POLICIES:
            self._step(0.0, "put_policy", name=policy, strategy=self._draw.choice(STRATEGIES))
            for _ in range(self._draw.randrange(4)):
                self._change_policy(policy)

    def _change_policy(self, policy: str) -> None:
        draw, at = self._draw, self._moment()
        match draw.choice(("put", "put", "touch", "delete")):
            case "put":
                region = draw.choice(("", *REGIONS))
                self._step(at, "put_policy", name=policy, strategy=draw.choice(STRATEGIES), region=region)
            case "touch":
                self._step(at, "touch_policy", name=policy)
            case "delete":
                self._step(at, "delete_policy", name=policy)

    def _plugins(self) -> None:
        draw = self._draw
        files = sorted({"books", *draw.sample(_FILES, draw.randrange(2, 6))})
        self._setup["plugins"] = files
        if draw.random() < 0.3:
            self._setup["profiles"] = ["my-scheduler", "second"]
        for kind in PLUGIN_FAULTS:
            for _ in range(draw.choice((0, 1, 2))):
                start, end = self._window()
                self._faults.append(
                    Fault(
                        kind=kind,
                        start=start,
                        end=end,
                        share=draw.choice((0.02, 0.3, 1.0)),
                        requests=f"plugin .*{draw.choice(_CALLS_OF.get(kind, _CALLS))}",
                        process=draw.choice((None, None, self._process())),
                        value=draw.choice((0.3, 1.9, 2.5, 5.0, 60.0)),
                    )
                )
        for process in range(self._base.processes):
            for _ in range(draw.randrange(4)):
                self._replace_plugin(process, draw.choice(files))

    def _replace_plugin(self, process: int, file: str) -> None:
        at, draw = self._moment(), self._draw
        if draw.random() < 0.15:
            self._step(at, "remove_plugin", process=process, file=file)
        else:
            text = draw.choice([each for each in PLUGIN_TEXTS if each != "healthy"])
            self._step(at, "replace_plugin", process=process, file=file, text=text)
        self._step(at + draw.uniform(0.5, 30), "replace_plugin", process=process, file=file, text="healthy")
        self._step(self._end, "replace_plugin", process=process, file=file, text="healthy")

    def _extenders(self) -> None:
        draw = self._draw
        entry: dict[str, Any] = {
            "urlPrefix": "http://extender",
            "filterVerb": "filter",
            "httpTimeout": draw.choice(("1s", "5s")),
            "nodeCacheCapable": draw.random() < 0.5,
        }
        if draw.random() < 0.5:
            entry |= {"prioritizeVerb": "prioritize", "weight": 2}
        self._setup["extenders"] = [entry]
        for kind in EXTENDER_FAULTS:
            for _ in range(draw.choice((0, 1, 2))):
                self._outside(kind, "extender", {
                    "extender_status": draw.choice((500, 404, 302, 204)),
                    "extender_body": draw.choice(list(BODIES)),
                    "extender_slow": draw.choice((0.1, 0.9, 4.0, 30.0)),
                }.get(kind))  # fmt: skip

    def _estimators(self) -> None:
        draw = self._draw
        self._setup["estimators"] = draw.choice(("partial", "upstream"))
        for kind in ESTIMATOR_FAULTS:
            for _ in range(draw.choice((0, 1, 2))):
                cluster = draw.choice(("", *self._clusters))
                self._outside(kind, f"estimator {cluster}", {
                    "estimator_number": draw.choice((-7, -1, 0, 2**31 - 1)),
                    "estimator_slow": draw.choice((0.1, 2.9, 3.1, 30.0)),
                }.get(kind))  # fmt: skip

    def _readers(self) -> None:
        draw = self._draw
        self._policies()
        for name in self._clusters:
            for ready in draw.choice(((), (False,), (False, True))):
                self._step(self._moment(), "set_ready", name=name, ready=ready)
        self._setup |= {
            "fresh_first": {"delaySeconds": draw.choice((1, 10, 60))},
            "records": True,
            "page": [0.2, *sorted(round(self._moment(), 2) for _ in range(draw.randrange(3)))],
        }

    def _workloads(self) -> None:
        draw = self._draw
        self._setup["plugins"] = [WORKLOAD_READER]
        self._settle = _SETTLE_SECONDS_OF_WORKLOADS
        for name in self._names.values():
            if name.startswith("/"):
                continue  # a Deployment has a namespace
            for at in draw.choice(((), (0.0,), (0.0, self._moment()), (self._moment(),))):
                for label in range(draw.randrange(1, 4)):
                    self._step(at + 5.0 * label, "put_workload", name=name, label=str(label))
            if draw.random() < 0.3:
                self._step(self._moment(), "delete_workload", name=name)

    def _outside(self, kind: str, requests: str, value: Any) -> None:
        start, end = self._window()
        share = self._draw.choice((0.1, 0.5, 1.0))
        process = self._draw.choice((None, None, self._process()))
        self._faults.append(
            Fault(
                kind=kind, start=start, end=end, share=share, requests=requests, process=process, value=value
            )
        )

    def _front_ends(self) -> None:
        draw = self._draw
        self._setup["front_ends"] = number = draw.choice((1, 2, 3))
        for server in range(number):
            for _ in range(draw.randrange(3)):
                at, seconds = (
                    self._moment(),
                    round(draw.choice((0.1, 1.0, 5.0, 30.0)) * draw.uniform(0.5, 1), 2),
                )
                self._step(at, "lag_front_end", server=server, seconds=seconds)
                self._step(at + draw.uniform(1, 60), "lag_front_end", server=server, seconds=0.0)
            self._step(self._end, "lag_front_end", server=server, seconds=0.0)
        for _ in range(draw.randrange(6)):
            server = draw.randrange(number)
            self._step(self._moment(), "move_client", process=self._process(), server=server)

    def _unreadable(self) -> None:
        draw = self._draw
        names = list(self._names.values())
        for name in draw.sample(names, min(len(names), draw.randrange(1, 4))):
            at = self._moment()
            self._step(at, "break_binding", name=name, what=draw.choice(list(UNREADABLE)))
            if draw.random() < 0.5:
                self._step(at + draw.uniform(0.5, 30), "repair_binding", name=name)
        if draw.random() < 0.3:
            part = draw.choice(("status", "spec"))
            self._step(
                self._moment(), "break_cluster", name=draw.choice(self._clusters), broken=True, part=part
            )
        if draw.random() < 0.5:
            self._step(self._moment(), "kill", process=self._process())
