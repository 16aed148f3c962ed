"""Whether the simulation's models of Karmada's controllers write what the real ones write.

    python -m tools.models_check --cases 12 --seed 1

The same sequences of events happen to a binding on a real control plane and in the models (``tools.simulation.controllers``):
placements with and without eviction tasks, health reports, taints, edits of the policy and of the workload. Each is compared
by the history of targets and eviction tasks, and by the history of the copy on each cluster, without times.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, Final

from tools.check_frame import add_cases, on_control_plane, parser
from tools.controlplane import ControlPlane
from tools.models_check.history import State, histories
from tools.models_check.model_binding import ModelBinding
from tools.models_check.real_binding import Members, RealBinding
from tools.models_check.sequences import CLUSTERS, TELLING, TIMEOUT_SECONDS, Step, drawn

_SETTLE_SECONDS: Final = 30.0
_AT_ONCE: Final = 12


def compare(plane: ControlPlane, members: Members, space: str, steps: Sequence[Step]) -> str:
    """Take the steps on both sides; return how the histories differ, or an empty text."""
    model, real = ModelBinding(), RealBinding(plane, members, space)
    theirs: list[State] = []
    ours: list[State] = []
    try:
        for step in (Step("rest", (1,)), *steps):
            for side in (model, real):
                getattr(side, step.name)(*step.arguments)
            real.settle(model.states[-1], _SETTLE_SECONDS)
            theirs.append(real.states[-1])
            ours.append(model.states[-1])
    finally:
        real.stop()
    return differences(real.states, model.states, theirs, ours)


def differences(
    real: Sequence[State],
    model: Sequence[State],
    real_at_rest: Sequence[State],
    model_at_rest: Sequence[State],
) -> str:
    """Return where histories differ, or an empty text."""
    karmada, models = histories(real, real_at_rest, CLUSTERS), histories(model, model_at_rest, CLUSTERS)
    return "".join(
        _difference(name, karmada[name], models[name]) for name in karmada if karmada[name] != models[name]
    )


def _difference(name: str, theirs: Sequence[Any], ours: Sequence[Any]) -> str:
    equal = next((n for n, (one, other) in enumerate(zip(theirs, ours, strict=False)) if one != other), None)
    since = min(len(theirs), len(ours)) if equal is None else equal
    lines = [f"  {name}: {since} equal, then"]
    for who, found in (("Karmada", theirs), ("model", ours)):
        lines += [f"    {who}: {each}" for each in found[since : since + 4]] or [f"    {who}: nothing"]
    return "\n".join(lines) + "\n"


def check(folder: Path, cases: Mapping[str, Sequence[Step]]) -> bool:
    """Compare all cases on one control plane, some at the same time; return whether none differs."""
    flags = {"controller-manager": [f"--graceful-eviction-timeout={TIMEOUT_SECONDS}s"]}
    spaces = {f"case{number}": steps for number, steps in enumerate(cases.values())}
    with ControlPlane(folder, extra_flags=flags) as plane:
        members = Members(plane, [f"{space}-{cluster}" for space in spaces for cluster in CLUSTERS])
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(lambda each: compare(plane, members, *each), spaces.items()))
        members.stop()
    for (name, steps), difference in zip(cases.items(), found, strict=True):
        if difference:
            print(f"{name}: {', '.join(map(str, steps))}\n{difference}", flush=True)
    print(f"{len(cases)} sequences, {sum(map(bool, found))} differ")
    return not any(found)


def main(words: Sequence[str] | None = None) -> int:
    """Compare, and print differences."""
    made = parser("make check-models", __doc__, folder="check-models")
    add_cases(made, 12)
    made.add_argument("--only", choices=[*TELLING], metavar="NAME", help="one of: " + "; ".join(TELLING))
    chosen = made.parse_args(words)
    random = Random(chosen.seed)
    cases: dict[str, Sequence[Step]] = (
        {chosen.only: TELLING[chosen.only]}
        if chosen.only
        else {**TELLING, **{f"random {number}": drawn(random) for number in range(chosen.cases)}}
    )
    return on_control_plane(chosen.folder, lambda folder: check(folder, cases))


if __name__ == "__main__":
    sys.exit(main())
