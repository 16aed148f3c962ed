"""The run: draw a step, make it on both planes, let both come to rest, compare."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeVar

from tools.controlplane import Object
from tools.controlplane.workspace import workspace
from tools.manifests import deployment, policy
from tools.oracle.generator.rng import Random

from . import binding_steps, cluster_steps, fleet, group_steps, policy_steps
from .compare import Comparison, Difference
from .fleet import Key
from .model import Cluster, Model, Step, evictions_are_done
from .plane import OURS, UPSTREAM, Bindings, Plane, running
from .state import State, state_of

T = TypeVar("T")

WEIGHTS: tuple[tuple[int, Callable[[Model], Step | None]], ...] = (
    (12, binding_steps.scale),
    (12, binding_steps.place),
    (8, binding_steps.edit),
    (6, binding_steps.trigger),
    (4, binding_steps.suspend),
    (4, binding_steps.hand_over),
    (4, binding_steps.claim),
    (5, binding_steps.resume_all),
    (6, binding_steps.write_clusters),
    (2, binding_steps.forget_placement),
    (2, binding_steps.require),
    (3, binding_steps.recompose),
    (2, binding_steps.poke),
    (5, binding_steps.evict),
    (4, binding_steps.end_eviction),
    (3, binding_steps.delete),
    (2, binding_steps.touch_deleting),
    (4, binding_steps.create),
    (8, cluster_steps.relabel),
    (3, cluster_steps.move),
    (6, cluster_steps.taint),
    (4, cluster_steps.evict_all),
    (6, cluster_steps.capacity),
    (2, cluster_steps.enablements),
    (2, cluster_steps.readiness),
    (3, cluster_steps.delete),
    (8, cluster_steps.add),
    (4, policy_steps.scale),
    (3, policy_steps.place),
    (3, policy_steps.rebalance),
    (1, policy_steps.suspend),
    (2, policy_steps.unclaim),
    (2, policy_steps.deploy),
    (14, group_steps.turn),
    (4, group_steps.regroup),
)
REMOVE_WEIGHT = 12
SECOND_LOOKS = 3


@dataclass
class Report:
    """Results of a run.

    Attributes:
        steps: How many of each kind were made.
        allowed_differences: How often each difference was met that does not count.
        moved: How often lastScheduledTime moved: upstream/ours, None where whole seconds do not show it.
        seconds: How long the steps took together.
        found: The first difference, as text; None when there was none.
    """

    steps: Counter[str] = field(default_factory=Counter)
    allowed_differences: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    seconds: float = 0.0
    found: str | None = None


class FuzzRun:
    """Two planes, one sequence of changes."""

    def __init__(
        self, planes: tuple[Plane, Plane], *, seed: int, groups: bool, say: Callable[[str], None]
    ) -> None:
        choices = Random(seed)
        self._planes = planes
        self._say = say
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._members = fleet.members(choices)
        clusters = {item.name: Cluster(item, dict(item.labels)) for item in self._members}
        self._model = Model(choices, clusters, groups)
        self._comparison = Comparison()
        self._before: tuple[Mapping[Key, State], Mapping[Key, State]] = ({}, {})
        self.report = Report()

    def prepare(self) -> None:
        """Create the clusters, the bindings and the workloads, the same on both planes."""
        choices = self._model.choices
        bindings = [fleet.binding(choices, key, grouped=self._model.groups) for key in fleet.MADE]
        workloads = [deployment(fleet.NAMESPACE, name, choices.between(1, 9)) for name in fleet.WORKLOADS]
        policies = [policy(fleet.NAMESPACE, name, {}) for name in fleet.WORKLOADS]

        def one(plane: Plane) -> None:
            plane.karmada.add(fleet.barrier_member())
            plane.karmada.add(*self._members)
            for member in self._members:
                plane.patch_cluster(
                    member.name, {"metadata": {"finalizers": ["karmada.io/cluster-controller", fleet.HOLD]}}
                )
            for manifest in (*fleet.barriers(), *bindings):
                plane.client.create(manifest)
            for manifest in workloads:
                policy_steps.create(plane, manifest, odd=False)
            for manifest in policies:
                plane.client.create(manifest)
            expected = {fleet.binding_of(name) for name in fleet.WORKLOADS}
            plane.wait(lambda: expected <= plane.bindings().keys(), "the detector to make its bindings")

        self._both(one)

    def run(self, steps: int) -> Report:
        """Make steps until there were enough, or a difference; return the report."""
        start = time.monotonic()
        forced: Step | None = Step(
            "beginning", "", None, lambda _: None, evictions_are_done, through_clusters=True, patient=True
        )
        done = 0
        while forced is not None or done < steps:
            step = forced or self._draw()
            began = time.monotonic()
            found = self._make(step)
            if step.kind != "beginning":
                done += 1
            self.report.steps[step.kind] += 1
            self._say(f"{done:4}  {time.monotonic() - began:4.1f} s  {step}")
            if found:
                self.report.found = found
                break
            forced = step.then() if step.then is not None else None
        self.report.seconds = time.monotonic() - start
        self.report.allowed_differences, self.report.moved = (
            self._comparison.allowed_differences,
            self._comparison.moved,
        )
        return self.report

    def _draw(self) -> Step:
        choices = self._model.choices
        makers = [maker for _, maker in WEIGHTS]
        weights = [weight for weight, _ in WEIGHTS]
        while True:
            if self._model.names("deleting") and choices.chance(REMOVE_WEIGHT / sum(weights)):
                step = cluster_steps.remove(self._model, self._deleting())
            else:
                step = choices.choices(makers, weights)[0](self._model)
            if step is not None:
                return step

    def _deleting(self) -> dict[str, list[Object]]:
        return {
            name: [item for plane in self._planes if (item := plane.cluster(name)) is not None]
            for name in self._model.names("deleting")
        }

    def _make(self, step: Step) -> str | None:
        """Make a step on both planes and compare; return the difference as text, None if they are equal."""
        began = dt.datetime.now(dt.UTC)

        def one(plane: Plane) -> dict[Key, Object]:
            step.act(plane)
            found = plane.rest(step.taken, through_clusters=step.through_clusters, patient=step.patient)
            if step.through_clusters and self._model.to_be_tried:
                found = self._try_now(plane, step)
            return found

        upstream, ours = self._both(one)
        differences, after = self._compared(step, began, upstream, ours)
        for _ in range(SECOND_LOOKS):
            if not differences:
                break
            # A controller may have been late; schedulers had their barriers.
            time.sleep(2)
            upstream, ours = self._both(
                lambda plane: plane.rest(step.taken, through_clusters=True, patient=True)
            )
            differences, after = self._compared(step, began, upstream, ours)
        before, self._before = self._before, after
        self._model.saw(upstream, ours)
        self.report.compared += len(after[0])
        self.report.outcomes.update(
            state.condition[1] if state.condition is not None else "none" for state in after[0].values()
        )
        return _complaint(step, differences, before, after) if differences else None

    def _try_now(self, plane: Plane, step: Step) -> dict[Key, Object]:
        """Enqueue all bindings that one of the schedulers may try again, before it does at its own time."""
        found = plane.bindings()
        keys = sorted(self._model.to_be_tried & found.keys())
        unclaimed = [key for key in keys if not state_of(found[key]).is_claimed]
        for key in keys:
            claim = binding_steps.claimed_by("for-a-moment") if key in unclaimed else {}
            plane.patch(key, {**binding_steps.poked(found[key]), **claim})
        if unclaimed:
            plane.rest(step.taken)
        for key in unclaimed:
            plane.patch(key, binding_steps.claimed_by(None))
        return plane.rest(step.taken, patient=step.patient)

    def _compared(
        self, step: Step, began: dt.datetime, upstream: Bindings, ours: Bindings
    ) -> tuple[list[Difference], tuple[Mapping[Key, State], Mapping[Key, State]]]:
        after = (
            {key: state_of(item) for key, item in upstream.items()},
            {key: state_of(item) for key, item in ours.items()},
        )
        return self._comparison.of(began, self._before, after, in_phases=step.patient), after

    def _both(self, act: Callable[[Plane], T]) -> tuple[T, T]:
        first, second = self._pool.map(act, self._planes)
        return first, second


def _complaint(
    step: Step,
    differences: list[Difference],
    before: tuple[Mapping[Key, State], Mapping[Key, State]],
    after: tuple[Mapping[Key, State], Mapping[Key, State]],
) -> str:
    lines = [f"step: {step}", f"input: {json.dumps(step.detail)}"]
    for key in sorted({item.key for item in differences}):
        lines += ["", f"{key}"]
        for moment, states in (("before", before), ("after", after)):
            lines += [f"  {moment}, {name}: {_shown(plane.get(key))}" for name, plane in _by_name(states)]
        lines += [
            f"  input, {name}: {states[key].inputs}" for name, states in _by_name(after) if key in states
        ]
        lines += [
            f"  DIFFERENT: {item.field}: {UPSTREAM} {item.upstream}, {OURS} {item.ours}"
            for item in differences
            if item.key == key
        ]
    return "\n".join(lines)


def _by_name(
    states: tuple[Mapping[Key, State], Mapping[Key, State]],
) -> list[tuple[str, Mapping[Key, State]]]:
    return list(zip((UPSTREAM, OURS), states, strict=True))


def _shown(state: State | None) -> str:
    return "absent" if state is None else json.dumps({**asdict(state), "inputs": "below"})


@contextmanager
def fuzz_run(
    folder: Path, *, seed: int, flags: Sequence[str] = (), say: Callable[[str], None] = lambda _: None
) -> Iterator[FuzzRun]:
    """Start two control planes side by side and prepare them.

    Args:
        folder: Each gets a folder of its own under this one.
        seed: Equal seeds draw equal steps.
        flags: Further flags of both schedulers. With the gate WorkloadAffinity there are groups of workloads.
        say: Called with one line per step.
    """
    with ExitStack() as stack, ThreadPoolExecutor(max_workers=2) as pool:
        folders = {name: stack.enter_context(workspace(folder / name)) for name in (UPSTREAM, OURS)}
        planes = pool.map(
            lambda name: stack.enter_context(running(name, folders[name], flags=flags)), folders
        )
        first, second = planes
        groups = any("WorkloadAffinity=true" in flag for flag in flags)
        made = FuzzRun((first, second), seed=seed, groups=groups, say=say)
        made.prepare()
        yield made
