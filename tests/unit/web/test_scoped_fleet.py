"""Which objects enter the fleet of a viewer: over random rights, none that they may not list, and all others."""

from __future__ import annotations

import gc
import itertools
import random
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import pytest

from karmada_advisor.explain import inputs as explain_inputs
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.packed import PackedManifests
from karmada_advisor.state.model import SchedulerShown, StateName
from karmada_advisor.web.authorization import SHOWN
from karmada_advisor.web.scoped_fleet import ScopedFleets
from karmada_advisor.web.state import PageContents, PageState, Reveal, Scope
from karmada_advisor.web.viewer import (
    LIST_BINDINGS,
    LIST_CLUSTER_BINDINGS,
    LIST_CLUSTER_POLICIES,
    LIST_CLUSTERS,
    LIST_LEASES,
    LIST_POLICIES,
    Viewer,
)
from karmada_advisor.whatif.plan import answer as plan_answer
from karmada_pyscheduler.client.permissions import Permission
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.testing import binding, cluster
from tests.unit.web.site import Site
from tests.unit.web.test_viewer import DEVELOPER, OF_CLUSTERS, bindings, clusters

_NAMESPACES: Final = ("a", "b", "c", "d")
_HIDDEN: Final = "what enters nobody's fleet"
_SYSTEM: Final = "karmada-system"
_SCHEDULER: Final = "a-scheduler-without-a-lease"
_PERMISSIONS: Final = {
    "ResourceBinding": LIST_BINDINGS,
    "ClusterResourceBinding": LIST_CLUSTER_BINDINGS,
    "Cluster": LIST_CLUSTERS,
    "PropagationPolicy": LIST_POLICIES,
    "ClusterPropagationPolicy": LIST_CLUSTER_POLICIES,
    "Lease": LIST_LEASES,
}

ObjectName = tuple[str, str, str]
"""Kind, namespace and name."""


def _object(kind: str, namespace: str, name: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": {}}


def _fleet(*, packed: bool) -> PageState:
    """Return a fleet with objects of all kinds in all namespaces."""
    built = [
        binding(f"{name}{number}", namespace=name).replicas(2).on(m1=2)
        for name in _NAMESPACES
        for number in (1, 2)
    ]
    built += [binding("wide").replicas(1).scheduler("nobody")]
    wide = binding("crb").manifest()
    wide["kind"] = "ClusterResourceBinding"
    del wide["metadata"]["namespace"]
    found = [each.build() for each in built] + [Binding.from_manifest(wide)]
    manifests = [*(each.manifest() for each in built), wide]
    members = [cluster(f"m{number}") for number in (1, 2, 3)]
    stored: Any = PackedManifests() if packed else {}
    for one, manifest in zip(found, manifests, strict=True):
        stored[one.key] = manifest
    for member in members:
        stored[member.build().name] = member.manifest()
    objects = Fleet(
        "https://karmada.example",
        is_live=True,
        at=datetime(2026, 11, 28, tzinfo=UTC),
        clusters=[member.build() for member in members],
        bindings=found,
        manifests=stored,
        policies=[
            *(_object("PropagationPolicy", name, "own") for name in _NAMESPACES),
            _object("ClusterPropagationPolicy", "", "all"),
        ],
        quotas=[_object("FederatedResourceQuota", "a", "quota")],
        priority_classes=[_HIDDEN],
        workloads=[],
        problems=[_HIDDEN],
        warnings=[_HIDDEN],
        leases=[_object("Lease", _SYSTEM, "karmada-scheduler")],
        seen=[SchedulerShown(_SCHEDULER)],
        events=[_object("Event", "a", "event")],
    )
    taints = [_object("ClusterTaintPolicy", "", "taints")]
    contents = PageContents(objects, objects.facts(), taint_policies=taints)
    return PageState(7, objects.source, datetime(2026, 11, 28, tzinfo=UTC), contents, [_HIDDEN])


def _entered(state: PageState) -> set[ObjectName]:
    """Return the objects that can be reached from what an answer is computed from, however deep."""
    found = set[ObjectName]()
    seen = set[int]()
    left: list[Any] = [state]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        left.extend(gc.get_referents(one))
        if isinstance(one, Binding):
            found.add((one.key.kind, one.key.namespace, one.key.name))
        elif isinstance(one, Cluster):
            found.add(("Cluster", "", one.name))
        elif isinstance(one, dict) and isinstance(metadata := one.get("metadata"), dict):
            found.add((str(one.get("kind")), metadata.get("namespace") or "", str(metadata.get("name"))))
        elif one == _SCHEDULER:
            found.add(("Scheduler", "", _SCHEDULER))
        assert one != _HIDDEN
    packed = state.contents.objects.manifests
    found |= {
        ("Cluster", "", key) if isinstance(key, str) else (key.kind, key.namespace, key.name)
        for key in packed
    }
    return found


class _Rights:
    """What somebody may list everywhere, and in some namespaces."""

    def __init__(self, dice: random.Random) -> None:
        share = dice.choice((0.2, 0.5, 0.9))
        wanted = list(_PERMISSIONS.values())
        self.everywhere = {permission for permission in wanted if dice.random() < share}
        self.inside = {
            (permission, name)
            for permission in (LIST_BINDINGS, LIST_POLICIES, LIST_LEASES)
            for name in (*_NAMESPACES, *([_SYSTEM] if permission is LIST_LEASES else []))
            if dice.random() < share
        }

    def may(self, permission: Permission, namespace: str) -> bool:
        return permission in self.everywhere or (permission, namespace) in self.inside

    @property
    def viewer(self) -> Viewer:
        async def may(permission: Permission, namespace: str) -> bool:
            return self.may(permission, namespace)

        async def hints() -> Collection[str]:
            return _NAMESPACES

        missing = tuple(permission for permission in SHOWN if permission not in self.everywhere)
        return Viewer("system:serviceaccount:a:somebody", missing, may, hints)


def _expected(every: set[ObjectName], rights: _Rights, asked: str, reveal: Reveal) -> Iterator[ObjectName]:
    """Yield what belongs to the fleet of a viewer, by their rights alone."""
    lists_all = LIST_BINDINGS in rights.everywhere
    names = {name for name in (*_NAMESPACES, "default") if rights.may(LIST_BINDINGS, name)}
    names = {asked} if asked and not lists_all else names
    is_trusted = reveal is Reveal.FLEET
    knows_policies = is_trusted or (
        LIST_CLUSTER_POLICIES in rights.everywhere and all(rights.may(LIST_POLICIES, name) for name in names)
    )
    for kind, namespace, name in every:
        match kind:
            case "ResourceBinding":
                belongs = namespace in names
            case "ClusterResourceBinding":
                belongs = LIST_CLUSTER_BINDINGS in rights.everywhere
            case "PropagationPolicy":
                belongs = knows_policies and (is_trusted or namespace in names)
            case "ClusterPropagationPolicy":
                belongs = knows_policies
            case "Cluster" | "Lease" | "Scheduler":
                belongs = is_trusted or _PERMISSIONS.get(kind, LIST_LEASES) in rights.everywhere
            case _:
                belongs = False
        if belongs:
            yield kind, namespace, name


@pytest.mark.parametrize("reveal", Reveal)
async def test_exactly_what_they_may_list_enters_the_fleet_of_a_viewer(reveal: Reveal) -> None:
    dice = random.Random(20261128)
    counts = {True: 0, False: 0}
    for case in range(120):
        whole = _fleet(packed=case % 2 == 0)
        every = _all_of(whole)
        rights = _Rights(dice)
        asked = dice.choice([name for name in _NAMESPACES if rights.may(LIST_BINDINGS, name)] + [""])
        scope = await rights.viewer.scope(reveal, asked, whole.contents.index.namespaces)
        state = await ScopedFleets().state(whole, scope)
        entered = _entered(state)

        expected = set(_expected(every, rights, asked, reveal))
        assert entered == expected, case
        if reveal is Reveal.OWN:
            permissions = ((_PERMISSIONS.get(kind, LIST_LEASES), namespace) for kind, namespace, _ in entered)
            assert all(rights.may(permission, namespace) for permission, namespace in permissions)
        for kind in _PERMISSIONS:
            counts[any(name[0] == kind for name in entered)] += 1
        unread = {name[0] for name in every - expected} & _PERMISSIONS.keys()
        assert bool(state.not_judged) == bool(unread), (case, unread, state.not_judged)
    assert min(counts.values()) > 50


async def test_rows_of_a_viewer_are_those_of_their_own_facts_also_after_those_of_others() -> None:
    whole, answered = _fleet(packed=False), ScopedFleets()
    states = set[StateName]()
    for clusters_, policies, schedulers in itertools.product((False, True), repeat=3):
        scope = Scope(frozenset({"default"}), False, clusters_, policies, schedulers)
        [row], [alone] = [
            (await each.state(whole, scope)).contents.index.rows for each in (answered, ScopedFleets())
        ]
        assert row == alone, scope
        states.add(row.state)
    assert states == {StateName.NOT_DECIDED_YET, StateName.NOBODY_DECIDES}


def _all_of(whole: PageState) -> set[ObjectName]:
    """Return all objects of a fleet."""
    objects, contents = whole.contents.objects, whole.contents
    found = {(one.key.kind, one.key.namespace, one.key.name) for one in objects.bindings}
    found |= {("Cluster", "", one.name) for one in objects.clusters} | {("Scheduler", "", _SCHEDULER)}
    others = (
        objects.policies,
        objects.quotas,
        objects.leases,
        objects.events,
        contents.taint_policies or (),
    )
    for one in itertools.chain(*filter(None, others)):
        found.add((one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]))
    return found


@pytest.mark.parametrize("reveal", Reveal)
async def test_answers_are_computed_from_the_fleet_of_the_viewer_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reveal: Reveal
) -> None:
    made, used = list[PageState](), list[Any]()
    state_of, explaining = ScopedFleets.state, explain_inputs.explaining
    plan_of_fleet = plan_answer.plan_of_fleet

    async def noted(self: ScopedFleets, whole: PageState, scope: Any) -> PageState:
        made.append(await state_of(self, whole, scope))
        return made[-1]

    def entering(objects: Any, *rest: Any, **named: Any) -> Any:
        used.append(objects)
        return explaining(objects, *rest, **named)

    def planning(question: Any, objects: Any) -> Any:
        used.append(objects)
        return plan_of_fleet(question, objects)

    monkeypatch.setattr(ScopedFleets, "state", noted)
    monkeypatch.setattr("karmada_advisor.web.answers.explaining", entering)
    monkeypatch.setattr("karmada_advisor.web.answers.plan_of_fleet", planning)
    async with Site(
        tmp_path, clusters=clusters(), bindings=bindings(), viewer=OF_CLUSTERS, reveal=reveal
    ) as site:
        for path in (
            "/b/shop/lost-deployment",
            "/v1/explain/shop/web-deployment",
            "/v1/why-not/shop/lost-deployment?cluster=eu-1",
            "/v1/plan?cordon=eu-1",
        ):
            assert (await site.get(path)).status == 200, path
    assert len(used) == 4
    assert {id(objects) for objects in used} <= {id(state.contents.objects) for state in made}
    assert {one.key.namespace for objects in used for one in objects.bindings} == {"shop"}


async def test_what_they_may_not_read_changes_nothing_that_they_wait_for(tmp_path: Path) -> None:
    found = []
    for number, ready in enumerate(("True", "False")):
        folder = tmp_path / str(number)
        folder.mkdir()
        fleet = clusters()
        fleet[0].condition("Ready", ready)
        async with Site(folder, clusters=fleet, bindings=bindings(others=number), viewer=DEVELOPER) as site:
            pages = [(await site.get(path)).page for path in ("/n/shop", "/b/shop/web-deployment")]
            found.append([page.attributes("body", "data-stamp") for page in pages])
    assert found[0] == found[1]


async def test_without_clusters_an_answer_is_what_is_stored_and_says_what_is_not_judged(
    tmp_path: Path,
) -> None:
    async with Site(tmp_path, clusters=clusters(), bindings=bindings(), viewer=DEVELOPER) as site:
        fields = (await site.get("/v1/explain/shop/lost-deployment")).fields
        page = (await site.get("/b/shop/lost-deployment")).page.text
        refused = [
            await site.get(path)
            for path in ("/v1/why-not/shop/lost-deployment?cluster=eu-1", "/plan?cordon=eu-1", "/v1/plan")
        ]
    assert (fields["state"]["name"], fields["wouldBe"], fields["clusters"]) == ("not placed", None, [])
    line = "decisions, and changes that place a binding (you may not list clusters.cluster.karmada.io)"
    assert line in fields["notJudged"]
    assert f"Not judged: {line}; " in page
    assert "bindings outside of the namespace shop (you may not list " in page
    assert {answer.status for answer in refused} == {403}
    assert all("you may not list clusters.cluster.karmada.io" in answer.text for answer in refused)


@pytest.mark.parametrize("reveal", Reveal)
async def test_with_clusters_an_answer_is_that_of_an_operator_about_the_bindings_of_the_viewer(
    tmp_path: Path, reveal: Reveal
) -> None:
    answers = []
    viewer = OF_CLUSTERS if reveal is Reveal.OWN else DEVELOPER
    for folder, who in (("operator", None), ("viewer", viewer)):
        (tmp_path / folder).mkdir()
        async with Site(
            tmp_path / folder, clusters=clusters(), bindings=bindings(), viewer=who, reveal=reveal
        ) as site:
            explained = (await site.get("/v1/explain/shop/lost-deployment")).fields
            planned = (await site.get("/v1/plan?cordon=eu-1")).fields
            listed = (await site.get("/v1/clusters")).fields
        answers.append((explained, planned, listed))
    (whole, _, _), (explained, planned, listed) = answers
    for name in ("state", "causes", "wouldBe", "funnel", "clusters", "refusals"):
        assert explained[name] == whole[name], name
    assert planned["total"] == 2
    assert {row["namespace"] for row in planned["bindings"]} <= {"shop"}
    assert {row["name"]: row["bindings"] for row in listed["items"]}["eu-1"] == 1
    assert all("notJudged" in fields for fields in (explained, planned, listed))
    assert "notJudged" not in whole
