"""The simulation's models of Karmada's controllers write what the real ones write: ``make check-models``.

The same sequences of events happen to a binding on a real control plane and in the models (``tools.simulation.controllers``):
placements with and without eviction tasks of all purge modes, health reports, taints and tolerations, edits of the policy and
of the workload. Each is compared by the history of targets and eviction tasks, and by the history of the copy on each cluster,
without times. Where real controllers may act in two orders, the models have a run for each (``legal``), and one has to be equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random
from typing import Final

import pytest

from tests.cases import number_of_cases, seed_of
from tests.checks.models.history import State
from tests.checks.models.legal import Run, differences, legal_runs
from tests.checks.models.real_binding import Members, RealBinding
from tests.checks.models.sequences import CLUSTERS, TELLING, TIMEOUT_SECONDS, Step, drawn
from tests.checks.workloads import control_plane
from tools.controlplane import ControlPlane

_CASES: Final = 12
"""Random sequences, besides those that tell something."""
_SETTLE_SECONDS: Final = 120.0
"""Much more than it takes: a busy machine makes the check slow, not wrong."""
_AT_ONCE: Final = 12


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each sequence."""
    random, count = Random(seed_of(metafunc.config)), number_of_cases(metafunc.config, _CASES)
    sequences = {**TELLING, **{f"random {number}": drawn(random) for number in range(count)}}
    metafunc.parametrize("steps", sequences.values(), ids=sequences)


@pytest.fixture(scope="module")
def comparisons(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[str]]]:
    """Compare the sequences of all tests on one control plane, some at the same time."""
    chosen = [item for item in request.session.items if item.path == request.path]
    spaces = [f"case{number}" for number in range(len(chosen))]
    flags = {"controller-manager": [f"--graceful-eviction-timeout={TIMEOUT_SECONDS}s"]}
    with control_plane("check-models", extra_flags=flags) as plane, ThreadPoolExecutor(_AT_ONCE) as pool:
        members = Members(plane, [f"{space}-{cluster}" for space in spaces for cluster in CLUSTERS])
        yield {
            item.name: pool.submit(_compared, plane, members, space, item.callspec.params["steps"])  # type: ignore[attr-defined]
            for space, item in zip(spaces, chosen, strict=True)
        }
        members.stop()


def test_the_models_write_what_karmada_writes(
    comparisons: Mapping[str, Future[str]], steps: Sequence[Step], request: pytest.FixtureRequest
) -> None:
    different = comparisons[request.node.name].result()
    assert not different, f"{', '.join(map(str, steps))}\n{different}"


def _compared(plane: ControlPlane, members: Members, space: str, steps: Sequence[Step]) -> str:
    """Take the steps; return how the histories differ from those of the models, or an empty text."""
    steps = [Step("rest", (1,)), *steps]
    real, legal = RealBinding(plane, members, space), legal_runs(steps)
    at_rest: list[State] = []
    try:
        for number, step in enumerate(steps):
            getattr(real, step.name)(*step.arguments)
            possible = [run for run in legal if run.at_rest[:number] == at_rest] or legal
            real.settle([run.at_rest[number] for run in possible], _SETTLE_SECONDS)
            at_rest.append(real.states[-1])
    finally:
        real.stop()
    return differences(Run(real.states, at_rest), legal)
