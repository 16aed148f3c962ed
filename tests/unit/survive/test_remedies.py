"""Remedies come true: each is applied by an implementation of its own, and every loss is decided on really lost clusters.

``SURVIVE_REMEDIES=10000`` looks at as many remedies, of the fleets from ``SURVIVE_SEED`` on (``make check-survive-remedies``).
"""

from __future__ import annotations

import copy
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.whatif.plan.decide import PlanSide
from karmada_advisor.whatif.survive.classify import Classified, LossClass, counts_copies, wanted
from karmada_advisor.whatif.survive.domains import FailureDomain, failure_domains
from karmada_advisor.whatif.survive.edited import FleetEditor
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.least_capacity import LeastCapacity
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_advisor.whatif.survive.remedies import FoundRemedy, Remedies
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.classify import ScheduleType
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.dryrun.result import as_written, manifest_as_written
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.structs import replace
from tests.unit.plan.asking import rules
from tests.unit.survive import worlds

Manifest = dict[str, Any]
Found = dict[tuple[int, BindingKey], Classified]

_WANTED = int(os.environ.get("SURVIVE_REMEDIES", "16"))
_SEED = int(os.environ.get("SURVIVE_SEED", "0"))
_NAME = "propagationpolicy.karmada.io/name"


class PolicyFleet:
    """The manifests of a random fleet whose bindings have policies."""

    def __init__(self, seed: int) -> None:
        dice = random.Random(f"remedies/{seed}")
        made = worlds.cluster_manifests(dice)
        clusters = [Cluster.from_manifest(each) for each in made]
        side = PlanSide(rules(), Snapshot.of(clusters), ())
        self.bindings: list[Manifest] = []
        self.edited: frozenset[str] = frozenset()
        for number in range(8):
            built = worlds._binding(number, clusters, dice).annotation(_NAME, f"p{number}")
            first = built.annotation(_NAME.replace("name", "namespace"), "default").manifest()
            if dice.random() < 0.2:
                first["spec"]["failover"] = {"cluster": {"purgeMode": "Directly"}}
            for part in range(dice.randrange(1, 3)):
                each = copy.deepcopy(first)
                each["metadata"]["name"] += f"-{part}"
                each["spec"]["resource"]["name"] += f"-{part}"
                each["spec"]["resource"]["uid"] = f"{dice.getrandbits(128):032x}"
                if part and each["spec"].get("replicas"):
                    each["spec"]["replicas"] = dice.randrange(1, 7)
                placed = worlds._placed(Binding.from_manifest(each), side, dice)
                self.bindings.append({**manifest_as_written(each, placed)})
        self.clusters = worlds.relabelled(made, seed)

    def losses(self) -> Losses:
        clusters = [Cluster.from_manifest(each) for each in self.clusters]
        bindings = [Binding.from_manifest(each) for each in self.bindings]
        modes = {
            Binding.from_manifest(each).key: each["spec"]["failover"]["cluster"]["purgeMode"]
            for each in self.bindings
            if each["spec"].get("failover")
        }
        domains = failure_domains(clusters).domains
        made = Losses(LossInputs(clusters, bindings, rules(), domains, purge_modes=modes))
        made.run()
        return made

    def manifests(self) -> Mapping[Any, Manifest]:
        clusters = {each["metadata"]["name"]: each for each in self.clusters}
        return clusters | {Binding.from_manifest(each).key: each for each in self.bindings}

    def patched(self, remedy: FoundRemedy) -> PolicyFleet:
        """Return the fleet after the patches of a remedy."""
        made = copy.copy(self)
        made.bindings = copy.deepcopy(self.bindings)
        for each in made.bindings:
            for one in remedy.apply:
                if one.object.kind == each["kind"] and one.object.name == each["metadata"]["name"]:
                    _apply(each, one.patch)
                elif one.object.name == each["metadata"]["annotations"][_NAME]:
                    policy = {"spec": {"placement": each["spec"]["placement"]}}
                    if "failover" in each["spec"]:
                        policy["spec"]["failover"] = each["spec"]["failover"]
                    _apply(policy, one.patch)
                    each["spec"] |= policy["spec"]
        pairs = zip(made.bindings, self.bindings, strict=True)
        made.edited = frozenset(new["metadata"]["name"] for new, old in pairs if new != old)
        if any(edit.op == "rebalance" for edit in remedy.edits):
            for each in made.bindings:
                if each["metadata"]["name"] in made.edited:
                    each["spec"]["rescheduleTriggeredAt"] = "2026-11-27T00:00:00Z"
        made.clusters = copy.deepcopy(self.clusters)
        for edit in remedy.edits:
            if edit.op == "addCapacity":
                [each] = [one for one in made.clusters if one["metadata"]["name"] == edit.object.name]
                assert edit.minimal is not None
                _add_capacity(each, edit.text.split()[0], edit.minimal.at)
        return made


def _add_capacity(cluster: Manifest, resource: str, amount: int) -> None:
    allocatable = cluster["status"]["resourceSummary"]["allocatable"]
    old = Cluster.from_manifest(cluster).resource_summary
    assert old is not None
    had = old.allocatable.get(resource)
    units = 0 if had is None else had.milli_value if resource == "cpu" else had.value
    allocatable[resource] = f"{units + amount}m" if resource == "cpu" else str(units + amount)


def _apply(target: Any, operations: Sequence[Mapping[str, Any]]) -> None:
    """Apply operations of RFC 6902 in place."""
    for each in operations:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]]
        parent = target
        for part in parts[:-1]:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        last = parts[-1]
        if each["op"] == "remove":
            del parent[int(last) if isinstance(parent, list) else last]
        elif last == "-":
            parent.append(copy.deepcopy(each["value"]))
        else:
            parent[int(last) if isinstance(parent, list) else last] = copy.deepcopy(each["value"])


class Reference:
    """Decides about every loss of a fleet, and again only about what an edit changes."""

    def __init__(self, fleet: PolicyFleet, domains: Sequence[FailureDomain]) -> None:
        self.clusters = [Cluster.from_manifest(each) for each in fleet.clusters]
        self.domains, self.own = domains, rules()
        self.calm = PlanSide(self.own, Snapshot.of(self.clusters), ())
        self.lost = [frozenset(each.clusters) for each in domains]
        self.snapshots = [worlds.lost_fleet(self.clusters, each, Loss.GONE) for each in self.lost]
        self.known = {
            each["metadata"]["name"]: self._decided(each, is_edited=False) for each in fleet.bindings
        }

    def after(self, fleet: PolicyFleet) -> Found | None:
        """Return the class of each binding in each loss, once today's decisions are made; None if one of those fails."""
        found: Found = {}
        decided = []
        for manifest in fleet.bindings:
            name = manifest["metadata"]["name"]
            is_edited = name in fleet.edited
            made = self._decided(manifest, is_edited=True) if is_edited else self.known[name]
            if made is None:
                return None
            decided.append(made)
        for number in range(len(self.domains)):
            here = [(each, results[number]) for each, results in decided if results]
            found |= {(number, each.key): result for each, result in _with_pending(here, self.clusters)}
        return found

    def today(self, fleet: PolicyFleet, edited: PolicyFleet) -> tuple[int, int]:
        """Return the replicas, or copies, that stop and start today by the decisions about what is edited."""
        stops = starts = 0
        for old, new in zip(fleet.bindings, edited.bindings, strict=True):
            if new["metadata"]["name"] not in edited.edited:
                continue
            made = self._decided(new, is_edited=True)
            assert made is not None
            spec = Binding.from_manifest(old).spec
            had, has = (
                Counter({one.name: 1 if counts_copies(spec) else one.replicas for one in each.clusters})
                for each in (spec, made[0].spec)
            )
            stops, starts = stops + (had - has).total(), starts + (has - had).total()
        return stops, starts

    def _decided(self, manifest: Manifest, *, is_edited: bool) -> tuple[Binding, Sequence[Classified]] | None:
        """Return a binding today, and its class in each loss; None if today's decision fails after an edit."""
        each = Binding.from_manifest(manifest)
        if not each.spec.clusters:
            return each, ()
        is_due = not each.spec.scheduling_suspended and self.calm.type_of(each) is not ScheduleType.AVOID
        if is_due and is_edited:
            decided = self.own.decide(each, self.calm.snapshot)
            assert isinstance(decided, Decision)
            if decided.error is not None or not decided.targets:
                return None
            each = as_written(each, decided, each.spec.reschedule_triggered_at or worlds.NOW)
        each = worlds.settled(self.calm, each)
        if not each.spec.clusters:
            return each, ()
        purge = ((manifest["spec"].get("failover") or {}).get("cluster") or {}).get("purgeMode")
        found = []
        for lost, snapshot in zip(self.lost, self.snapshots, strict=True):
            side = PlanSide(self.own, snapshot, ())
            found.append(
                worlds.reference(
                    side, each, snapshot, lost, Loss.GONE, is_purged_directly=purge == "Directly"
                )
            )
        return each, found


def _with_pending(
    found: Sequence[tuple[Binding, Classified]], clusters: Sequence[Cluster]
) -> Iterator[tuple[Binding, Classified]]:
    """Yield classes with what does not fit: replicas take what is free, one binding after the other."""
    free: dict[str, Counter[str]] = {}
    for cluster in clusters:
        summary = cluster.resource_summary
        assert summary is not None
        left = Counter({name: summary.left(name).milli_value for name in summary.allocatable})
        free[cluster.name] = left
    for each, result in found:
        missing = 0
        requirements = each.spec.replica_requirements
        asked = {} if requirements is None else dict(requirements.resource_request)
        needs = {"pods": 1000, **{name: amount.milli_value for name, amount in asked.items()}}
        for start in result.starts if each.spec.replicas else ():
            left = free[start.name]
            fits = min(max(0, left[name]) // need for name, need in needs.items() if name in left)
            taken = min(fits, start.replicas)
            left.subtract({name: taken * need for name, need in needs.items()})
            missing += start.replicas - taken
        if missing and result.effect is LossClass.MOVES:
            total = min(wanted(each.spec), result.missing + missing)
            dark = total >= wanted(each.spec) > 0
            yield each, result._replace(effect=LossClass.SHORT, missing=total, dark=dark)
        else:
            yield each, result


def _mends_a_group(losses: Losses, remedy: FoundRemedy) -> bool:
    """Return whether a remedy cures all that fails for one reason, of one policy and in one kind of domain."""
    groups: dict[tuple[object, ...], set[tuple[int, int]]] = {}
    for number, tally in enumerate(losses.tallies[Loss.GONE]):
        for pair in tally.pairs:
            stored, found = losses.asked[pair.position].stored, pair.classified
            if found.missing and not pair.is_pending and found.effect is remedy.effect:
                reason = pair.found.failed_by, losses.inputs.domains[number].kind
                key = (policy_of(stored.annotations), *reason)
                groups.setdefault(key, set()).add((number, pair.position))
    return any(key[0] == remedy.policy and group <= remedy.cured for key, group in groups.items())


def _remedies(fleet: PolicyFleet, losses: Losses) -> Iterator[FoundRemedy]:
    editor = FleetEditor(losses, fleet.manifests(), None)
    yield from Remedies(editor, Loss.GONE).find()[0]
    yield from LeastCapacity(losses, Loss.GONE).find()


def test_every_remedy_mends_what_it_says_and_makes_no_loss_worse() -> None:
    seen: Counter[str] = Counter()
    for seed in count(_SEED):
        if seen.total() >= _WANTED:
            break
        fleet = PolicyFleet(seed)
        losses = fleet.losses()
        remedies = [
            each
            for each in _remedies(fleet, losses)
            if each.verified and all(edit.op != "addCapacity" or edit.minimal for edit in each.edits)
        ]
        if not remedies:
            continue
        reference = Reference(fleet, losses.inputs.domains)
        before = reference.after(fleet)
        assert before is not None
        for each in remedies:
            seen.update(edit.op for edit in each.edits[:1])
            edited, adds = fleet.patched(each), each.edits[0].op == "addCapacity"
            after = (
                Reference(edited, losses.inputs.domains).after(edited) if adds else reference.after(edited)
            )
            assert after is not None, (seed, each)
            assert each.cured
            cured = {(number, losses.bindings[place].key) for number, place in each.cured}
            for key in cured:
                assert before[key].missing > 0 == after[key].missing, (seed, key, each)
            if not adds:
                ended = {key for key, one in before.items() if one.missing and not after[key].missing}
                assert cured == ended, (seed, each)
                assert _mends_a_group(losses, each), (seed, each)
                assert (each.moves_today, each.starts_today) == reference.today(fleet, edited), (seed, each)
            for key in after.keys() & before.keys():  # nothing is worse for what was on no cluster before
                figures = [(one.dark, one.missing, one.interrupted) for one in (after[key], before[key])]
                assert adds or not any(a > b for a, b in zip(*figures, strict=True)), (seed, key, each)
    assert len(seen) >= min(12, _WANTED // 4), seen
    print(seen)


def test_edits_that_spread_a_workload_let_no_loss_interrupt_it_and_make_none_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(FleetEditor, "answers", lambda *_: iter(()))  # of what does not return at all
    looked = 0
    for seed in count():
        fleet = PolicyFleet(seed)
        losses = fleet.losses()
        editor = FleetEditor(losses, fleet.manifests(), None)
        found = [
            each
            for each in Remedies(editor, Loss.GONE, holds=True).find()[0]
            if any(edit.op == "rebalance" for edit in each.edits)
        ]
        if not found:
            continue
        reference = Reference(fleet, losses.inputs.domains)
        before = reference.after(fleet)
        assert before is not None
        for each in found:
            after = reference.after(fleet.patched(each))
            assert after is not None, (seed, each)
            assert each.cured
            for key in {(number, losses.bindings[place].key) for number, place in each.cured}:
                assert (before[key].interrupted, after[key].interrupted) == (True, False), (seed, key, each)
            for key, now in after.items():
                figures = [(one.dark, one.missing, one.interrupted) for one in (now, before[key])]
                assert not any(a > b for a, b in zip(*figures, strict=True)), (seed, key, each)
            looked += 1
        if looked >= 2:
            return


def test_a_capacity_that_is_one_step_smaller_does_not_suffice() -> None:
    looked = 0
    for seed in count():
        fleet = PolicyFleet(seed)
        losses = fleet.losses()
        for each in LeastCapacity(losses, Loss.GONE).find():
            [first, *others] = each.edits
            numbers = {number for number, _ in each.cured}
            if others or first.minimal is None or len(numbers) > 1:
                continue
            less = replace(first, minimal=replace(first.minimal, at=first.minimal.fails_at))
            smaller = fleet.patched(replace(each, edits=(less,)))
            after = Reference(smaller, losses.inputs.domains).after(smaller)
            assert after is not None
            effects = {found.effect for (domain, _), found in after.items() if domain in numbers}
            assert LossClass.SHORT in effects, (seed, each)
            looked += 1
        if looked >= 2:
            return
