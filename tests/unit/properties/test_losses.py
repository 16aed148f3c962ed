"""Laws of ``survive`` about fleets that differ, edits, losses of two clusters, its baseline, and its early end.

``make fuzz-input`` looks at more fleets. The laws about decisions are in ``tests/unit/survive/test_properties.py``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, count

from hypothesis import given, settings
from hypothesis import strategies as st

from karmada_advisor.cli.survive import status_of
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.views.fields import as_json, document_fields
from karmada_advisor.whatif.survive.classify import Classified, LossClass, Pair, wanted
from karmada_advisor.whatif.survive.domains import CLUSTER, FailureDomain, FailureDomains, failure_domains
from karmada_advisor.whatif.survive.edited import changes
from karmada_advisor.whatif.survive.engine import Losses
from karmada_advisor.whatif.survive.fail_on import WORDS, FailOn, failing, figures_in
from karmada_advisor.whatif.survive.loss import Loss, LossInputs
from karmada_advisor.whatif.survive.model import LossSettings, SurvivalReport
from karmada_advisor.whatif.survive.question import SurviveQuestion
from karmada_advisor.whatif.survive.report import survival_report
from karmada_advisor.whatif.survive.reports import decide_pairs
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import cluster
from tests.conftest import EXAMPLES
from tests.unit.plan.asking import rules
from tests.unit.survive.worlds import world

Classes = Mapping[tuple[Loss, str, BindingKey], Classified]

seeds = st.integers(0, 10**9)
few = settings(max_examples=EXAMPLES or 4)
some = settings(max_examples=EXAMPLES or 20)


def _losses(
    clusters: Sequence[Cluster], bindings: Sequence[Binding], domains: Sequence[FailureDomain] = ()
) -> Losses:
    made = Losses(
        LossInputs(clusters, bindings, rules(), domains or failure_domains(clusters).domains, tuple(Loss))
    )
    made.run()
    return made


def _burst(pair: Pair) -> Classified:
    """Return the class without what other bindings ask of the clusters."""
    return pair.alone or pair.classified


def _classes(losses: Losses, without: Collection[BindingKey] = ()) -> Classes:
    """Return the class of each binding in each loss that does something to it."""
    return {
        (loss, str(domain), key): _burst(pair)
        for loss, tallies in losses.tallies.items()
        for domain, tally in zip(losses.inputs.domains, tallies, strict=True)
        for pair in tally.pairs
        if (key := losses.bindings[pair.position].key) not in without
    }


def _report(losses: Losses, loss: Loss, *, every_loss: bool = False) -> SurvivalReport:
    found = FailureDomains(tuple(losses.inputs.domains), {}, ())
    settings_, provenance = LossSettings(loss), Provenance(Tense.RECOMPUTED, "")
    question = SurviveQuestion(rules=Rules(), settings=settings_, fail_on=(), every_loss=every_loss)
    return survival_report(losses, found, settings_, question, provenance=provenance, fingerprint="")


def _admits(binding: Binding, cluster: Cluster) -> bool:
    """Return whether an affinity of a binding matches a cluster."""
    placement = binding.spec.placement
    assert placement is not None
    terms = placement.cluster_affinities
    every = [each.affinity for each in terms] if terms else [placement.cluster_affinity]
    return any(each is None or each.matches(cluster) for each in every)


@few
@given(seed=seeds, removed=st.sets(st.integers(0, 11), min_size=1))
def test_bindings_that_are_removed_change_the_others_only_in_what_is_short(
    seed: int, removed: set[int]
) -> None:
    clusters, bindings = world(seed)
    left = [each for place, each in enumerate(bindings) if place not in removed]
    gone = {each.key for place, each in enumerate(bindings) if place in removed}
    assert _classes(_losses(clusters, left)) == _classes(_losses(clusters, bindings), gone)


def _changed(bindings: Sequence[Binding], places: Collection[int], dice: random.Random) -> dict[int, Binding]:
    """Return some bindings by their place with what another one has, on no cluster, or the other way suspended."""
    made = {}
    for place in sorted(places):
        each, other = bindings[place], dice.choice(bindings)
        match dice.randrange(5):
            case 0:
                made[place] = replace(each, spec=replace(each.spec, clusters=()))
            case 1:
                suspended = not each.spec.scheduling_suspended
                made[place] = replace(each, spec=replace(each.spec, scheduling_suspended=suspended))
            case _:
                spec = replace(other.spec, resource=each.spec.resource)
                made[place] = replace(other, key=each.key, uid=each.uid, spec=spec)
    return made


def _found(losses: Losses, loss: Loss) -> dict[tuple[int, int], Classified]:
    return {
        (number, each.position): each.classified
        for number, tally in enumerate(losses.tallies[loss])
        for each in tally.pairs
    }


@some
@given(seed=seeds, places=st.sets(st.integers(0, 11)), holds=st.booleans())
def test_an_edit_changes_what_differs_between_two_fleets_that_are_decided_as_a_whole(
    seed: int, places: set[int], *, holds: bool
) -> None:
    clusters, bindings = world(seed)
    dice = random.Random(f"edit/{seed}")
    domains = failure_domains(clusters).domains
    modes, others = ({each.key: "Directly" for each in bindings if dice.random() < 0.3} for _ in range(2))
    inputs = LossInputs(clusters, bindings, rules(), domains, tuple(Loss), purge_modes=modes)
    before = Losses(inputs)
    before.run()
    changed = _changed(before.bindings, places, dice)
    edited = {before.bindings[place].key for place in changed}
    after_modes = {key: mode for key, mode in modes.items() if key not in edited}
    after_modes |= {key: mode for key, mode in others.items() if key in edited}
    after = before.after(changed, after_modes)
    whole = Losses(
        replace(
            inputs,
            bindings=[changed.get(place, each) for place, each in enumerate(before.bindings)],
            purge_modes=after_modes,
        )
    )
    whole.run()

    for loss in Loss:
        had, has = _found(before, loss), _found(whole, loss)
        assert _found(after, loss) == has
        for one, other in zip(after.tallies[loss], whole.tallies[loss], strict=True):
            assert len(one.pairs) == len(other.pairs)
            assert one.overcommitted == other.overcommitted
        cured, worse = set(), 0
        for key in had.keys() | has.keys():
            (_, dark, cut, missing, _), (_, is_dark, is_cut, misses, _) = (
                each.get(key, Classified(LossClass.UNTOUCHED, dark=False, interrupted=False, missing=0))
                for each in (had, has)
            )
            worse += is_dark > dark or is_cut > cut or misses > missing
            if (missing or (holds and cut)) and not (misses or (holds and is_cut)):
                cured.add(key)
        assert changes(before, after, loss, holds=holds) == (frozenset(cured), worse)


@few
@given(seed=seeds, places=st.sets(st.integers(0, 11), min_size=1))
def test_an_edit_changes_nothing_in_losses_that_were_not_decided(seed: int, places: set[int]) -> None:
    clusters, bindings = world(seed)
    whole = _losses(clusters, bindings)
    early = Losses(replace(whole.inputs, is_over=lambda: True))
    early.run()
    after = early.after(_changed(whole.bindings, places, random.Random(seed)))
    assert not any(after.done)
    assert changes(early, after, Loss.GONE) == (frozenset(), 0)


@few
@given(seed=seeds)
def test_a_cluster_that_no_affinity_matches_changes_no_loss_and_its_own_does_nothing(seed: int) -> None:
    clusters, every = world(seed)
    island = Cluster.from_manifest(cluster("island").region("north").capacity(cpu=1000, pods=1000).manifest())
    bindings = [each for each in every if not _admits(each, island)]
    place = random.Random(seed).randrange(len(clusters) + 1)
    more = _losses([*clusters[:place], island, *clusters[place:]], bindings)
    own = next(number for number, each in enumerate(more.inputs.domains) if each.clusters == ("island",))
    assert not any(tallies[own].pairs for tallies in more.tallies.values())
    kinds = {str(each) for each in failure_domains(clusters).domains}
    found = {key: each for key, each in _classes(more).items() if key[1] in kinds}
    assert found == _classes(_losses(clusters, bindings))


@few
@given(seed=seeds)
def test_a_pair_of_clusters_interrupts_what_is_only_on_both_and_hides_nothing_that_is_dark(seed: int) -> None:
    clusters, bindings = world(seed)
    losses = _losses(clusters, bindings, failure_domains(clusters, [CLUSTER]).domains)
    singles = losses.inputs.domains
    pairs = list(combinations(range(len(singles)), 2))
    decided = decide_pairs(losses, pairs)
    whole = _losses(clusters, bindings, decided)
    for loss, tallies in losses.tallies.items():
        for number, (pair, both) in enumerate(zip(pairs, decided, strict=True)):
            lost = frozenset(both.clusters)
            shown = {each.position: each.classified for each in tallies[len(singles) + number].pairs}
            alone = [{each.position: each.classified for each in tallies[one].pairs} for one in pair]
            joint = {each.position: each.classified for each in whole.tallies[loss][number].pairs}
            for place, asked in losses.asked.items():
                spec = asked.binding.spec
                is_whole = spec.target_names <= lost and wanted(spec) > 0
                found = joint.get(place)
                assert (found is not None and found.interrupted) == is_whole
                if is_whole and spec.target_names == lost:
                    assert shown[place].interrupted
                if found is not None and found.dark:
                    known = (one[place] for one in (shown, *alone) if place in one)
                    assert any(each.dark for each in known)


@few
@given(seed=seeds, loss=st.sampled_from(Loss), every_loss=st.booleans(), also=st.booleans())
def test_compared_with_itself_no_loss_has_more_of_any_word(
    seed: int, loss: Loss, every_loss: bool, also: bool
) -> None:
    losses = _losses(*world(seed))
    before = json.loads(as_json(document_fields(_report(losses, loss, every_loss=every_loss))))
    report = _report(losses, loss, every_loss=also)
    every = [FailOn(word) for word in WORDS]
    assert failing(report, every)
    assert failing(report, every, figures_in(before)) == ()


@few
@given(seed=seeds, steps=st.integers(0, 13))
def test_after_an_early_end_what_is_done_is_as_in_the_end_and_nothing_is_said_about_the_rest(
    seed: int, steps: int
) -> None:
    clusters, bindings = world(seed)
    whole, asked = _losses(clusters, bindings), count()
    inputs = replace(whole.inputs, is_over=lambda: next(asked) >= steps)
    losses = Losses(inputs)
    losses.run()
    report = _report(losses, Loss.GONE)
    for loss, tallies in losses.tallies.items():
        for number, is_done in enumerate(losses.done):
            assert tallies[number] == whole.tallies[loss][number] if is_done else not tallies[number].pairs
    for each in report.domains:
        if not each.done:
            assert each.chosen.counts[LossClass.UNTOUCHED.value] == report.totals.bindings
            assert not each.is_spof
    assert (status_of(report, ()) == 2) == (not all(losses.done))
    assert all(losses.done) == (steps > len(bindings))
