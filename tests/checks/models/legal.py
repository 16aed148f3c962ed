"""All runs of the models that are legal for a sequence.

The taint manager looks at a cluster with a NoExecute taint every ten seconds. So what is placed there later is evicted
before the binding controller has made its copy, or afterwards, and with two such clusters in any order. That controller
waits up to five seconds where another copy is purged directly. Each of these
orders is a run of its own; everything else is the same in all runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any, Final, NamedTuple

from tests.checks.models.history import State, histories
from tests.checks.models.model_binding import ModelBinding
from tests.checks.models.sequences import CLUSTERS, Step

_LOOKS: Final = (0.1, 2.0, 9.0, 0.2, 2.2, 9.2)
"""Seconds after which the taint manager may look: before anything is done, while other copies are purged, and later. Of two looks
in the same third, no other controller acts between them."""


class Run(NamedTuple):
    """What has happened to a binding.

    Attributes:
        states: One for each write.
        at_rest: One after each step.
    """

    states: Sequence[State]
    at_rest: Sequence[State]

    def histories(self) -> dict[str, list[object]]:
        """Return what has to be equal in two runs."""
        return histories(self.states, self.at_rest, CLUSTERS)


def legal_runs(steps: Sequence[Step]) -> list[Run]:
    """Return the runs of the models that differ."""
    found: list[Run] = []
    for looks in product(*_orders(steps)):
        binding, at_rest = ModelBinding(looks), []
        for step in steps:
            getattr(binding, step.name)(*step.arguments)
            at_rest.append(binding.states[-1])
        run = Run(binding.states, at_rest)
        if all(run.histories() != each.histories() for each in found):
            found.append(run)
    return found


def _orders(steps: Sequence[Step]) -> Iterator[list[tuple[float, ...]]]:
    """Yield the moments at which the taint manager may look, for each placement on clusters with a NoExecute taint."""
    effects: dict[object, object] = {}
    for step in steps:
        if step.name == "taint":
            effects[step.arguments[0]] = step.arguments[1]
        elif step.name == "place":
            tainted = [each for each in step.targets if effects.get(each) == "NoExecute"]
            yield list(permutations(_LOOKS if len(tainted) > 1 else _LOOKS[:3], len(tainted)))


def differences(real: Run, legal: Sequence[Run]) -> str:
    """Return where histories differ from those of each legal run, or an empty text; shown is the run with the fewest."""
    karmada = real.histories()
    found = []
    for models in (run.histories() for run in legal):
        names = [name for name in karmada if karmada[name] != models[name]]
        found.append("".join(_difference(name, karmada[name], models[name]) for name in names))
    return min(found, key=lambda text: text.count("\n"))


def _difference(name: str, theirs: Sequence[Any], ours: Sequence[Any]) -> str:
    equal = next((n for n, (one, other) in enumerate(zip(theirs, ours, strict=False)) if one != other), None)
    since = min(len(theirs), len(ours)) if equal is None else equal
    lines = [f"  {name}: {since} equal, then"]
    for who, history in (("Karmada", theirs), ("model", ours)):
        lines += [f"    {who}: {state}" for state in history[since : since + 4]] or [f"    {who}: nothing"]
    return "\n".join(lines) + "\n"
