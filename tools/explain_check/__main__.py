"""Compare the traces of explanations with decisions: ``make check-traces CASES=10000 SEED=1``

All recorded cases of the conformance suite, and generated cases with every feature of the fuzzer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.schedule import SchedulingAlgorithm
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.testing import framework
from tools.check_frame import Progress, add_cases, parser
from tools.conformance.replay import RECORDINGS, Recording
from tools.explain_check.check import Tally, check
from tools.oracle.generator.scenarios import scenarios
from tools.oracle.ours import Scenario

_SHOWN = 20


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; return 1 if there is a mismatch."""
    made = parser("python -m tools.explain_check", __doc__)
    add_cases(made, 10_000)
    options, progress = made.parse_args(arguments), Progress()
    total = Tally()
    for name, tally in (
        ("recorded", recorded()),
        ("generated", generated(options.cases, options.seed)),
    ):
        total.add(tally)
        parts = ", ".join(f"{number} end at {step}" for step, number in sorted(tally.traced.items()))
        print(f"{name}: {tally.decisions} decisions, {tally.attempts} attempts ({parts})", flush=True)
    print(f"{total.decisions} decisions, {len(total.found)} mismatches, {progress.seconds:.1f} s")
    return 1 if total.found or not total.decisions else 0


def recorded() -> Tally:
    """Trace every case of the conformance suite, whether or not anything asks for a decision."""
    tally = Tally()
    for path in RECORDINGS:
        recording = Recording.load(path)
        snapshot, plugins = (
            Snapshot.of(recording.clusters),
            framework(gates=recording.gates, select=recording.plugins),
        )
        local = (GeneralEstimator(recording.gates),)
        algorithm = SchedulingAlgorithm(
            recording.gates, local, empty_workload_propagation=recording.empty_workload_propagation
        )
        for case in recording.cases:
            inputs = ExplainInputs(
                Binding.from_manifest(case["binding"]),
                snapshot,
                plugins,
                recording.gates,
                algorithm,
                local,
                empty_workload_propagation=recording.empty_workload_propagation,
            )
            check(f"{recording.name} {case['name']}", inputs.decide(), inputs, tally)
    for each in tally.found[:_SHOWN]:
        print(each)
    return tally


def generated(cases: int, seed: int) -> Tally:
    """Trace generated cases of the fuzzer, with assumed placements, workload groups and every gate."""
    tally, progress = Tally(), Progress()
    if not cases:
        return tally
    for case, decision_inputs in generated_inputs(seed):
        decision = decision_inputs.decide()
        before = len(tally.found)
        check(case, decision, decision_inputs, tally)
        for each in tally.found[before:_SHOWN]:
            print(each, flush=True)
        if tally.decisions >= cases:
            break
        if progress.is_due():
            print(f"{tally.decisions} decisions, {len(tally.found)} mismatches", flush=True)
    return tally


def generated_inputs(seed: int) -> Iterator[tuple[str, ExplainInputs]]:
    """Yield generated cases with what a decision about them reads, without end."""
    for document in scenarios(seed, cases=1 << 62):
        scenario = Scenario(document)
        for manifest in document["bindings"]:
            binding = Binding.from_manifest(manifest)
            if not binding.deleting:
                yield f"{document['id']} {binding.key}", scenario.explain_inputs(binding)


if __name__ == "__main__":
    sys.exit(main())
