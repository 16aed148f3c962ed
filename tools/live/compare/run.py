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
from typing import Final, TypeVar

from tools.controlplane import Object
from tools.controlplane.workspace import timed_lines, workspace
from tools.manifests import deployment, policy
from tools.oracle.generator.rng import Random

from . import binding_steps, cluster_steps, fleet, group_steps, policy_steps
from .compare import Comparison, Difference
from .fleet import Key
from .model import Cluster, Model, Step, evictions_are_done
from .plane import OURS, UPSTREAM, Bindings, Plane, RestlessError, running
from .state import State, state_of

T = TypeVar("T")
Both = tuple[Mapping[Key, State], Mapping[Key, State]]
"""The states of upstream and ours."""
STEPS: Final = (*binding_steps.STEPS, *cluster_steps.STEPS, *policy_steps.STEPS, *group_steps.STEPS)
REMOVE_WEIGHT: Final = 12
SECOND_LOOKS: Final = 3


@dataclass
class Report:
    """Results of a run.

    Attributes:
        steps: How many of each kind were made.
        outcomes: The reasons of conditions at rest.
        compared: How many states were compared.
        seconds: How long the steps took together.
        found: The first difference, as text; None when there was none.
    """

    steps: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    seconds: float = 0.0
    found: str | None = None


class FuzzRun:
    """Two planes, one sequence of changes.

    Attributes:
        comparison: Which differences were met.
        report: What was done.
    """

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
        self.comparison = Comparison()
        self._before: Both = ({}, {})
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
        return self.report

    def _draw(self) -> Step:
        choices = self._model.choices
        weights, draws = zip(*STEPS, strict=True)
        while True:
            if self._model.names("deleting") and choices.chance(REMOVE_WEIGHT / sum(weights)):
                step = cluster_steps.remove(self._model, self._deleting())
            else:
                step = choices.choices(draws, weights)[0](self._model)
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
    ) -> tuple[list[Difference], Both]:
        states = [{key: state_of(found) for key, found in plane.items()} for plane in (upstream, ours)]
        after = states[0], states[1]
        return self.comparison.of(began, self._before, after, in_phases=step.patient), after

    def _both(self, act: Callable[[Plane], T]) -> tuple[T, T]:
        first, second = self._pool.map(act, self._planes)
        return first, second


def _complaint(step: Step, differences: list[Difference], before: Both, after: Both) -> str:
    lines, names = [f"step: {step}", f"input: {json.dumps(step.detail)}"], (UPSTREAM, OURS)
    for key in sorted({difference.key for difference in differences}):
        lines += ["", f"{key}"]
        for moment, states in (("before", before), ("after", after)):
            for name, plane in zip(names, states, strict=True):
                state = plane.get(key)
                shown = "absent" if state is None else json.dumps(asdict(state))
                lines.append(f"  {moment}, {name}: {shown}")
        lines += [
            f"  DIFFERENT: {found.field}: {UPSTREAM} {found.upstream}, {OURS} {found.ours}"
            for found in differences
            if found.key == key
        ]
    return "\n".join(lines)


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


def compare(folder: Path, *, steps: int, seed: int, flags: Sequence[str]) -> int:
    """Make a run and print its results; return 1 if there is a difference."""
    say = timed_lines()
    with fuzz_run(folder, seed=seed, flags=flags, say=say) as run:
        say(f"two control planes are up; logs are under {folder}")
        try:
            report = run.run(steps)
        except RestlessError as error:
            report, run.report.found = run.report, str(error)
    print(
        f"seed {seed}: {report.steps.total()} steps in {report.seconds:.0f} s, {report.compared} states compared"
    )
    for name, counts in (
        ("steps", report.steps),
        ("conditions seen", report.outcomes),
        ("lastScheduledTime moved, upstream/ours (None: within one second)", run.comparison.moved),
        ("allowed differences", run.comparison.allowed_differences),
    ):
        print(f"  {name}: {', '.join(f'{kind} {count}' for kind, count in sorted(counts.items()))}")
    if report.found is not None:
        again = "".join(f" --scheduler-flag={flag}" for flag in flags)
        print(
            f"\nDIFFERENT\n{report.found}\nagain: python -m tools.live compare --steps {steps} --seed {seed}{again}"
        )
    return int(report.found is not None)
