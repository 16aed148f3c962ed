"""Whether expectations hold, and what expressions read about a placed workload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from karmada_advisor.state.stored import mappings, part, value_at
from karmada_advisor.whatif.placement_tests import model
from karmada_advisor.whatif.placement_tests.cel import expressions
from karmada_advisor.whatif.placement_tests.outcomes import NO_POLICY, PlacedWorkload
from karmada_advisor.whatif.plan.decide import PlanSide
from karmada_advisor.whatif.plan.effects import out_of_service
from karmada_advisor.whatif.plan.objects import Manifest
from karmada_advisor.whatif.survive.classify import classified, present_on
from karmada_advisor.whatif.survive.decisions import LossDecisions
from karmada_advisor.whatif.survive.domains import KINDS, LABEL, failure_domains
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_advisor.whatif.survive.loss_decision import SharedDecisions
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.structs import Struct, replace

PLACED_ONLY: Final = frozenset({"clusters", "replicas", "stops", "that"})
"""Expectations that say nothing about a workload without clusters, so that they do not hold for one."""


def _holds(key: str, expected: Any, got: Any) -> bool:
    match key:
        case "clusters":
            return got == expected if isinstance(expected, Mapping) else [*got] == sorted(expected)
        case "notPlaced":
            return got is not False if expected is True else bool(got == expected)
        case "causes":
            return {*expected} <= {*got}
        case "warnings":
            if expected == NO_POLICY:
                return not got
            return all(any(text in value for value in got) for text in expected)
        case _:
            return bool(got == expected)


def failures(
    expectation: model.Expectation,
    found: Sequence[PlacedWorkload],
    step: model.CaseStep | None,
    why_different: str,
) -> list[model.ExpectationFailure]:
    """Return what does not hold.

    Args:
        expectation: About one workload.
        found: The workload, in each state if the result depends on uids.
        step: After which it is expected; None for the first decisions.
        why_different: Why there are several results.
    """
    made = list(_Check(expectation, found, "" if step is None else str(step), why_different).failures())
    return [replace(made[0], explanation=found[0].explanation), *made[1:]] if made else []


class _Check(Struct, frozen=True):
    expectation: model.Expectation
    found: Sequence[PlacedWorkload]
    step: str
    why_different: str

    def failures(self) -> Iterator[model.ExpectationFailure]:
        """Yield what does not hold."""
        missing = next((workload for workload in self.found if not workload.placed), None)
        reported = False
        for key, wanted in self.expectation.keys.items():
            if missing is not None and key in PLACED_ONLY:
                if not reported:
                    texts = [entry.value for entry in wanted.value] if key == "that" else wanted.value
                    text = f"it is not placed: {missing.why_not_placed}"
                    yield self._failure(key, wanted._replace(value=texts), None, text)
                reported = True
                continue
            if key == "that":
                yield from self._expressions(wanted)
                continue
            got = [getattr(workload, "not_placed" if key == "notPlaced" else key) for workload in self.found]
            if not all(_holds(key, wanted.value, value) for value in got):
                yield self._difference(key, wanted, got)

    def _expressions(self, wanted: model.ExpectedValue) -> Iterator[model.ExpectationFailure]:
        evaluator = expressions()
        data = [WorkloadData(workload) for workload in self.found]
        for index, expression in enumerate(wanted.value):
            results = [evaluator.evaluate(expression.value, every) for every in data]
            failing = next((result for result in results if not result.holds), None)
            if failing is None:
                continue
            differ = any(result.holds for result in results)
            text = "; ".join([self.why_different if differ else failing.text or "false", *failing.parts])
            key = "that" if wanted.place == expression.place else f"that[{index}]"
            yield self._failure(key, expression, None, text)

    def _difference(
        self, key: str, wanted: model.ExpectedValue, got: Sequence[Any]
    ) -> model.ExpectationFailure:
        differ = any(value != got[0] for value in got)
        text = self.why_different if differ else ""
        if key == "notPlaced" and not text and got[0] is not False and got[0] is not True:
            text = self.found[0].why_not_placed
        if key == "placed" and wanted.value and not text:
            text = next(workload for workload in self.found if not workload.placed).why_not_placed
        failure = self._failure(key, wanted, list(got) if differ else got[0], text)
        if key != "clusters":
            return failure
        different = [value for index, value in enumerate(got) if value not in got[:index]]
        return replace(failure, table=tuple(_rows(wanted.value, different)))

    def _failure(
        self, key: str, wanted: model.ExpectedValue, got: Any, text: str
    ) -> model.ExpectationFailure:
        workload = self.expectation.workload
        return model.ExpectationFailure(workload, self.step, key, *wanted.place, wanted.value, got, text)


def _rows(
    expected: Mapping[str, int] | Sequence[str], got: Sequence[Mapping[str, int]]
) -> Iterator[model.ClusterDifference]:
    wanted = expected if isinstance(expected, Mapping) else dict.fromkeys(expected, 0)
    for name in sorted({*wanted, *(name for row in got for name in row)}):
        yield model.ClusterDifference(name, wanted.get(name), tuple(row.get(name) for row in got))


FIELDS: Final = ("region", "provider", "zone", "cluster")
"""By what ``share`` counts."""


class WorkloadData:
    """What expressions read about one workload after a step; a method is called if an expression names it."""

    def __init__(self, found: PlacedWorkload) -> None:
        """Read about this workload."""
        self._found = found

    @property
    def workload(self) -> Manifest:
        """The template."""
        return self._found.template

    @cached_property
    def placed(self) -> list[dict[str, Any]]:
        """Its clusters."""
        return self._clusters_of(self._found.binding)

    @cached_property
    def before(self) -> list[dict[str, Any]]:
        """Its clusters before the step."""
        return self._clusters_of(self._found.before)

    @cached_property
    def clusters(self) -> list[dict[str, Any]]:
        """All clusters."""
        replicas, every = self._found.clusters, self._found.state.objects.clusters
        return [_row(name, cluster, replicas.get(name, 0)) for name, cluster in sorted(every.items())]

    def _clusters_of(self, binding: Binding | None) -> list[dict[str, Any]]:
        targets = () if binding is None else binding.spec.clusters
        clusters = {**self._found.state.scenario.objects.clusters, **self._found.state.objects.clusters}
        return [_row(each.name, clusters.get(each.name, {}), each.replicas) for each in sorted(targets)]

    @property
    def result(self) -> Mapping[str, Any]:
        """What the step did."""
        found = self._found
        return {
            "isPlaced": found.placed,
            "reason": "" if found.placed else found.reason,
            "message": "" if found.placed else found.why_not_placed,
            "type": found.type,
            "effect": found.effect,
            "policy": found.policy,
            "wanted": 0 if found.binding is None else found.binding.spec.replicas,
            "stops": found.stops,
            "starts": 0 if found.plan is None else found.plan.starts,
            "causes": found.causes,
        }

    def replicas(self, cluster: str) -> int:
        """Return the replicas on a cluster; ValueError if there is no such cluster."""
        found, state = self._found.clusters, self._found.state
        if cluster not in {*found, *state.objects.clusters, *state.scenario.objects.clusters}:
            raise ValueError(f"the fleet has no cluster {cluster}")
        return found.get(cluster, 0)

    def values(self, field: str) -> list[str]:
        """Return the different values of a field where it is placed, in order."""
        return sorted({value for row in self.placed for value in _values(row, field)})

    def share(self, field: str, value: str) -> float:
        """Return the share of the replicas on clusters with this value; ValueError for another field."""
        if field not in FIELDS:
            raise ValueError(f"share is by one of {', '.join(FIELDS)}, got {field}")
        rows = self.placed
        total = sum(row["replicas"] for row in rows)
        return sum(row["replicas"] for row in rows if value in _values(row, field)) / total if total else 0.0

    def survives(self, what: str) -> bool:
        """Return whether some of it runs after the loss of any one cluster, zone, region, provider, or value of a label.

        What is assigned to a cluster that is not ready does not run, and on a cordoned one nothing starts.
        """
        state, binding = self._found.state, self._found.binding
        rules = state.scenario.rules
        if rules.is_coupled:
            raise ValueError(f"survives('{what}') is not known where decisions depend on other bindings")
        if what not in KINDS and not (what.startswith(LABEL) and what != LABEL):
            raise ValueError(f"survives is of one of {', '.join(KINDS)} or {LABEL}KEY, got {what}")
        domains = failure_domains(state.known.clusters.values(), [what]).domains
        if not domains:
            raise ValueError(f"survives('{what}'): no cluster has one")
        if binding is None:
            return False
        clusters, bindings = [*state.known.clusters.values()], [*state.known.bindings.values()]
        side = PlanSide(rules, Snapshot.of(clusters), bindings)
        closed = {cluster.name: found for cluster in clusters if (found := out_of_service(cluster))}
        had = self._found.before or replace(binding, spec=replace(binding.spec, clusters=()))
        present = present_on(had, state.objects.bindings[binding.key], state.objects.clusters, closed)
        inputs = LossInputs(clusters, bindings, rules, domains, present={binding.key: present})
        decisions = LossDecisions(side, binding, inputs, SharedDecisions())
        return not any(
            classified(decisions.binding.spec, lost, decisions.after(lost, Loss.GONE)).dark
            for lost in (frozenset(domain.clusters) for domain in domains)
        )


def _values(row: Mapping[str, Any], field: str) -> list[str]:
    if field == "zone":
        return list(row["zones"])
    value = row["name" if field == "cluster" else field]
    return [value] if value else []


def _row(name: str, cluster: Manifest, replicas: int) -> dict[str, Any]:
    spec = part(cluster, "spec")
    zones = spec.get("zones") or ([spec["zone"]] if spec.get("zone") else [])
    conditions = mappings(value_at(cluster, "status", "conditions"))
    no_taint = {"key": "", "value": "", "effect": ""}
    return {
        "name": name,
        "region": spec.get("region") or "",
        "provider": spec.get("provider") or "",
        "zones": list(zones),
        "labels": dict(part(cluster, "metadata", "labels")),
        "taints": [{**no_taint, **taint} for taint in mappings(value_at(cluster, "spec", "taints"))],
        "ready": any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions),
        "replicas": replicas,
    }
