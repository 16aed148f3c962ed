"""Whether the simulation's models of Karmada's controllers write what the real ones write.

    python -m tools.models_check --cases 12 --seed 1

The same sequences of events happen to a binding on a real control plane and in the models (``tools.simulation.controllers``):
placements with and without eviction tasks of all purge modes, health reports, taints and tolerations, edits of the policy and
of the workload. Each is compared by the history of targets and eviction tasks, and by the history of the copy on each cluster,
without times. Where real controllers may act in two orders, the models have a run for each (``legal``), and one has to be equal.
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
from tools.models_check.history import State
from tools.models_check.legal import Run, legal_runs
from tools.models_check.real_binding import Members, RealBinding
from tools.models_check.sequences import CLUSTERS, TELLING, TIMEOUT_SECONDS, Step, drawn

_SETTLE_SECONDS: Final = 120.0
"""Much more than it takes: a busy machine makes the check slow, not wrong."""
_AT_ONCE: Final = 12


def compare(plane: ControlPlane, members: Members, space: str, steps: Sequence[Step]) -> str:
    """Take the steps; return how the histories differ from those of the models, or an empty text."""
    steps = [Step("rest", (1,)), *steps]
    real, legal = RealBinding(plane, members, space), legal_runs(steps)
    at_rest: list[State] = []
    try:
        for number, step in enumerate(steps):
            getattr(real, step.name)(*step.arguments)
            possible = [each for each in legal if each.at_rest[:number] == at_rest] or legal
            real.settle([each.at_rest[number] for each in possible], _SETTLE_SECONDS)
            at_rest.append(real.states[-1])
    finally:
        real.stop()
    return differences(Run(real.states, at_rest), legal)


def differences(real: Run, legal: Sequence[Run]) -> str:
    """Return where histories differ from those of each legal run, or an empty text; shown is the run with the fewest."""
    karmada = real.histories()
    found = []
    for models in (each.histories() for each in legal):
        names = [name for name in karmada if karmada[name] != models[name]]
        found.append("".join(_difference(name, karmada[name], models[name]) for name in names))
    return min(found, key=lambda each: each.count("\n"))


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
