"""Random fleets of which somebody may list one namespace: nothing of the rest is in any answer.

``make check-leaks CASES=2000 TWINS=500 SEED=1`` tries more of them. A word in everything that is not theirs must not be in an
answer. Of two fleets that differ only in what is not theirs, each answer must be the same: that finds numbers and orders.
"""

from __future__ import annotations

import json
import os
import random
import re
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from karmada_advisor.web.viewer import Viewer
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.web.site import Answer, Site, without_times
from tests.unit.web.test_quotas import WITH_QUOTAS, Quotas, quota
from tests.unit.web.test_viewer import CANARY, DEVELOPER, OF_CLUSTER_LISTS, OF_CLUSTERS, OPEN, SCOPED

_CASES: Final = int(os.environ.get("CASES", "10"))
_TWINS: Final = int(os.environ.get("TWINS", "3"))
_SEED: Final = int(os.environ.get("SEED", "1"))
_PATHS_OF_A_CASE: Final = 24
_CHANGES_OF_A_CASE: Final = 6
_REASONED: Final = ("/b/", "/v1/explain/", "/why-not/", "/v1/why-not/")
NEAR: Final = CANARY[:-1] + "i"
"""What a namespace asks for, and an operator would learn that a word of others is the nearest."""
_IN_REGION: Final[dict[str, Any]] = {"key": "region", "operator": "In", "values": [f"{NEAR}-region"]}
_OWN_CLUSTERS: Final = ("eu-1", "eu-2", "us-1")
_REASONS: Final = ("Success", "NoClusterFit", "Unschedulable", "SchedulerError")
_OWN_NAMES: Final = ("web", "api", "cache", "mail", "jobs")


class _Seeds:
    """The random numbers of a fleet: those of the namespace, and of others what twins have in common, and in what they differ."""

    def __init__(self, seed: str, twin: int, differs: str = "all", *, viewer: Viewer = DEVELOPER) -> None:
        def dice(name: str, *parts: str) -> random.Random:
            return random.Random(f"{name}/{seed}" + (f"/{twin}" if differs in {"all", *parts} else ""))

        self.own = random.Random(f"own/{seed}")
        self.shapes, self.amounts, self.others = (
            dice("shapes"),
            dice("amounts", "amounts"),
            dice("others", "words"),
        )
        self.least = 40 if differs == "amounts" else 1
        """Of the amounts of a cluster; the larger one is enough for all bindings of the namespace, and then all have amounts."""
        self.word = f"{CANARY}-{twin}" if differs != "amounts" else CANARY
        """Of others; in the same order as that of a twin, compared with the words of the namespace."""
        if (
            differs == "names"
        ):  # both equally like the words of the namespace, by which a search corrects them
            self.word = f"{CANARY}-{'ab'[twin]}"
        self.viewer = viewer
        self.of_quotas = random.Random(f"quotas/{seed}")
        self.of_clusters = "plain" if viewer.sees_clusters else self.word
        """Of Clusters, which who may list them sees."""


def _clusters(dice: _Seeds) -> list[ClusterBuilder]:
    """Return the clusters of the namespace, of which all but readiness is of others, and further ones."""
    made = []
    shapes, amounts, word = dice.shapes, dice.amounts, dice.of_clusters
    for each_name in (*_OWN_CLUSTERS, *(f"{word}-{number}" for number in range(shapes.randrange(5)))):
        each = cluster(each_name).capacity(
            cpu=amounts.randrange(dice.least, 99),
            memory=f"{amounts.randrange(dice.least, 99)}Gi",
            pods=amounts.randrange(4 * dice.least, 999),
        )
        each.region(f"{word}-region-{shapes.randrange(3)}").provider(f"{word}-provider")
        each.zones(f"{word}-zone").labels(tier=f"{word}-{shapes.randrange(9)}")
        if shapes.random() < 0.4:
            each.taint(f"{word}-taint=1:{shapes.choice(('NoSchedule', 'NoExecute', 'PreferNoSchedule'))}")
        if shapes.random() < 0.2 and dice.least == 1:
            each.without_summary()
        if each_name in _OWN_CLUSTERS and dice.own.random() < 0.2:
            each.condition("Ready", "False")
        made.append(each)
    shapes.shuffle(made)
    return made


def _own(dice: random.Random, *, by_capacity: bool) -> list[BindingBuilder]:
    """Return bindings of the namespace as they may be stored: placed, failed, suspended, evicted, of others' schedulers.

    What their placements ask for is like what clusters of others have, which an operator would learn. With
    ``by_capacity``, their divisions depend on amounts.
    """
    made = []
    for name in dice.sample(_OWN_NAMES, dice.randint(1, len(_OWN_NAMES))):
        each = binding(name, namespace="shop").replicas(dice.randrange(4), cpu=dice.choice(("100m", "2")))
        named = dice.sample((*_OWN_CLUSTERS, NEAR), dice.randint(1, 3))
        affinities: tuple[dict[str, Any], ...] = (
            {"clusterNames": named},
            {"exclude": named},
            {"labelSelector": {"matchLabels": {"tier": f"{NEAR}-1"}}},
            {"fieldSelector": {"matchExpressions": [_IN_REGION]}},
        )
        for affinity in dice.sample(affinities, dice.choice((0, 1, 1, 2))):
            each.affinity(**affinity)
        if dice.random() < 0.2:
            each.tolerates(key=f"{NEAR}-taint", operator="Exists", effect="NoSchedule")
        if dice.random() < 0.2:
            each.groups(anti_affinity="all").workload_affinity(anti_affinity="all")
        weights = partial(each.static_weights, **dict.fromkeys(_OWN_CLUSTERS, 1))
        dice.choice(
            (each.duplicated, weights, *((each.aggregated, each.dynamic_weight) if by_capacity else ()))
        )()
        if by_capacity and dice.random() < 0.3:
            each.spread(dice.choice(("cluster", "region")), dice.randrange(3), dice.randrange(4))
        placed = dice.sample(_OWN_CLUSTERS, dice.randrange(4))
        each.on(**{target: dice.randrange(1, 4) for target in placed})
        if placed and dice.random() < 0.5:
            each.health(
                **{target: dice.choice(("Healthy", "Unhealthy", "Unknown")) for target in placed}
            ).applied()
        if dice.random() < 0.3:
            each.evicted_from(dice.choice(_OWN_CLUSTERS))
        if dice.random() < 0.8:
            reason = dice.choice(_REASONS)
            status = "True" if reason == "Success" else "False"
            each.condition(type="Scheduled", status=status, reason=reason, message="as it is stored")
        for change in (each.suspended, each.deleting):
            if dice.random() < 0.1:
                change()
        if dice.random() < 0.2:
            each.scheduler("default-scheduler")
        _claim(each, "PropagationPolicy", name)
        made.append(each)
    return made


def _claim(made: BindingBuilder, kind: str, name: str) -> None:
    """Let a policy of the name of a workload claim its binding."""
    made.manifest()["metadata"]["labels"] = {ID_LABELS[kind]: f"id-{name}"}
    made.annotation(f"{kind.lower()}.karmada.io/namespace", "shop").annotation(
        f"{kind.lower()}.karmada.io/name", name
    )


def _policy(kind: str, name: str, selected: str, placement: dict[str, Any]) -> dict[str, Any]:
    namespace = {"namespace": "shop"} if kind == "PropagationPolicy" else {}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **namespace, "labels": {ID_LABELS[kind]: f"id-{name}"}},
        "spec": {
            "resourceSelectors": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": selected, **namespace}
            ],
            "placement": placement,
        },
    }


def _policies(bindings: list[BindingBuilder], word: str) -> list[dict[str, Any]]:
    """Return the policies of the namespace, as its bindings have them, and one of others."""
    found = [_policy("ClusterPropagationPolicy", f"{word}-wide", f"{word}-0", {})]
    for each in bindings:
        spec = each.manifest()["spec"]
        name = spec["resource"]["name"]
        if name in _OWN_NAMES:
            found.append(_policy("PropagationPolicy", name, name, spec.get("placement", {})))
    return found


def _others(dice: random.Random, word: str) -> list[BindingBuilder]:
    """Return bindings of other namespaces and without one, some on the clusters of the namespace."""
    made = []
    for number in range(dice.randrange(8)):
        namespace = dice.choice((f"{word}-ns", "shopping", "sho"))
        each = binding(f"{word}-{number}", namespace=namespace).replicas(dice.randrange(9), cpu="7")
        each.groups(anti_affinity="all").dynamic_weight().on(
            **dict.fromkeys(dice.sample(_OWN_CLUSTERS, dice.randrange(4)), 3)
        )
        if dice.random() < 0.5:
            each.condition(
                type="Scheduled", status="False", reason=dice.choice(_REASONS), message=f"{word}-message"
            )
        made.append(each)
    return made


def _bindings(dice: _Seeds, *, by_capacity: bool) -> list[BindingBuilder]:
    """Return the bindings of the namespace in their order, between those of others."""
    mine, rest = _own(dice.own, by_capacity=by_capacity), _others(dice.others, dice.word)
    places = sorted(dice.others.randint(0, len(rest)) for _ in mine)
    for number, (place, each) in enumerate(zip(places, mine, strict=True)):
        rest.insert(place + number, each)
    return rest


def _quotas(dice: _Seeds) -> Quotas:
    """Return the quotas of the namespace, which not everybody may see who may list its bindings, and those of others."""
    word = "plain" if dice.viewer is WITH_QUOTAS else dice.word
    limit, used = (dice.of_quotas.randrange(1, 99) for _ in range(2))
    if dice.viewer is not WITH_QUOTAS:
        limit, used = (dice.amounts.randrange(1, 99) for _ in range(2))
    own = quota(f"{word}-quota", {"cpu": limit, f"{word}.io/gpu": "1"}, {"cpu": f"{used}500m"})
    others = [
        quota(f"{dice.word}-{number}", {f"{dice.word}.io/gpu": "977"}, {}, namespace=namespace)
        for number, namespace in enumerate((f"{dice.word}-ns", "shopping", "sho"))
    ]
    return Quotas([*others, own])


def _site(folder: Path, dice: _Seeds, *, by_capacity: bool = True) -> Site:
    folder.mkdir()
    bindings = _bindings(dice, by_capacity=by_capacity)
    policies = folder / "policies.json"
    items = _policies(bindings, dice.word)
    policies.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return Site(
        folder,
        clusters=_clusters(dice),
        bindings=bindings,
        viewer=dice.viewer,
        connection=_quotas(dice),
        # The search for changes is not ended by the load of the machine.
        flags=("--timeout=60s", f"--policies={policies}"),
    )


def _changes(
    dice: random.Random, theirs: str = f"{CANARY}-0", *, by_capacity: bool = True
) -> list[dict[str, str]]:
    """Return changes to plan: of what is theirs, of what they may change although it is not, and of what is of others.

    Names of others begin with ``theirs``, by which twins do not differ.
    """
    found: list[dict[str, str]] = []
    for _ in range(_CHANGES_OF_A_CASE):
        name = dice.choice(_OWN_NAMES)
        affinity = dice.choice(
            (
                {"clusterNames": dice.sample((*_OWN_CLUSTERS, NEAR, f"{theirs}-0"), 2)},
                {"exclude": dice.sample(_OWN_CLUSTERS, 2)},
                {"labelSelector": {"matchLabels": {"tier": f"{NEAR}-1"}}},
                {"fieldSelector": {"matchExpressions": [_IN_REGION]}},
            )
        )
        placement: dict[str, Any] = {"clusterAffinity": affinity}
        if dice.random() < 0.3:
            placement["clusterTolerations"] = [{"key": f"{NEAR}-taint", "operator": "Exists"}]
        if by_capacity and dice.random() < 0.5:
            weights = {"dynamicWeight": "AvailableReplicas"}
            placement["replicaScheduling"] = {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Weighted",
                "weightPreference": weights,
            }
        wide = dice.choice((name, f"{theirs}-0"))
        written = dice.choice(
            (
                _policy("PropagationPolicy", name, name, placement),
                _policy("PropagationPolicy", f"new-{name}", name, placement),
                _policy("ClusterPropagationPolicy", "wide", wide, placement),
                _policy("ClusterPropagationPolicy", f"{theirs}-wide", wide, placement),
            )
        )
        cluster_name = dice.choice(("eu-1", "eu-1", "eu-2", "us-1", f"{theirs}-0"))
        found.append(
            dice.choice(
                (
                    {"policy": json.dumps(written)},
                    {"policy": json.dumps(written)},
                    {dice.choice(("without", "cordon", "uncordon")): cluster_name},
                    {"scale": f"{dice.choice(('shop', 'shop', f'{theirs}-ns'))}/{name}={dice.randrange(9)}"},
                )
            )
        )
    return found


async def _planned(site: Site, change: dict[str, str]) -> list[Answer]:
    return [await site.get(path, "POST", form=change) for path in ("/v1/plan", "/plan")]


def _without_effects(answer: Answer, shown: str, change: dict[str, str]) -> str:
    """Return an answer without what was asked, and the clusters that bindings of the namespace have after the change."""
    rows = answer.fields.get("bindings", ()) if answer.status == 200 else ()
    allowed = {each["name"] for row in rows for each in row["after"]}
    allowed |= {*re.findall(rf"{CANARY}[a-z0-9-]*", json.dumps(change))}
    for each in sorted(allowed, key=len, reverse=True):
        shown = re.sub(rf"{each}(?![a-z0-9-])", "", shown)
    return shown


def _without_others(text: str) -> str:
    """Return a plan without the numbers of others, what all of the change asks of clusters, and whether others keep one."""
    left = re.sub(r'<section id="(others|loads|blocked)">.*?</section>\n', "", text, flags=re.DOTALL)
    left = re.sub(r'"(others|loads|blocked)": \[(\]|.*?\n  \])', "", left, flags=re.DOTALL)
    return left.replace("'Content-Encoding': 'deflate', ", "")


def _paths(site: Site, dice: random.Random) -> list[tuple[str, str]]:
    """Return routes and paths of them, with values of theirs and of others, and parameters."""
    found = []
    for route in dice.choices([each for each in site.routes if "static" not in each], k=_PATHS_OF_A_CASE):
        values = {
            "namespace": dice.choice(("shop", "shop", f"{CANARY}-ns", "shopping", "nowhere")),
            "name": dice.choice(("web-deployment", "api-deployment", f"{CANARY}-0-1-deployment", "nothing")),
            "kind": dice.choice(("cluster", "region", "zone", "Deployment")),
            "cluster": dice.choice((*_OWN_CLUSTERS, f"{CANARY}-0-0", NEAR)),
        }
        path = re.sub(r"\{(\w+)\}", lambda match: values[match[1]], route)  # noqa: B023 (used at once)
        given = [
            f"{key}={value}"
            for key, value in (
                ("namespace", values["namespace"]),
                ("q", dice.choice(("web", CANARY[:4], "e"))),
                ("cluster", values["cluster"]),
                ("state", dice.choice(("waiting", "pending", "placed", "nonsense"))),
                ("limit", dice.choice(("1", "500", "x"))),
                ("o", dice.choice(("json", "yaml"))),
            )
            if dice.random() < 0.5
        ]
        if route == "/v1/events" and "namespace=shop" in given:
            continue  # it does not end
        found.append((route, "?".join((path, "&".join(given)))))
    return found


def _whole(answer: Answer) -> str:
    """Return the text and headers of an answer, without times."""
    headers = {
        name: value for name, value in answer.headers.items() if name not in {"Date", "Content-Length"}
    }
    return f"{headers} " + without_times(answer.text)


def _without_changes(text: str) -> str:
    """Return an answer without kinds of changes: a search finds them by words, amounts, and effects on others.

    Whether an answer is so long that it is compressed depends on them as well.
    """
    left = re.sub(r'<section id="remedies">.*?</section>\n', "", text, flags=re.DOTALL)
    left = re.sub(r'"remedies": \[.*\]', "", left, flags=re.DOTALL)
    return left.replace("'Content-Encoding': 'deflate', ", "")


async def test_no_word_of_others_is_in_an_answer(tmp_path: Path) -> None:
    answered = {200: 0, 302: 0, 403: 0, 404: 0, 400: 0, 422: 0}
    planned = {200: 0, 403: 0, 422: 0}
    for case in range(_CASES):
        dice = random.Random(f"leaks/{_SEED}/{case}")
        viewer = dice.choice((DEVELOPER, OF_CLUSTERS, WITH_QUOTAS))
        seen = SCOPED | OPEN | (OF_CLUSTER_LISTS if viewer.sees_clusters else set())
        async with _site(tmp_path / str(case), _Seeds(f"{_SEED}/{case}", 0, viewer=viewer)) as site:
            for route, path in _paths(site, dice):
                answer = await site.get(path, Accept=dice.choice(("text/html", "application/json")))
                shown = _whole(answer)
                for asked in (f"{CANARY}-ns", f"{CANARY}-0-1-deployment", f"{CANARY}-0-0", CANARY[:4]):
                    if asked in path:  # what was asked may be repeated, whether it exists or not
                        shown = re.sub(rf"{asked}(?![a-z-])", "", shown)
                assert CANARY not in shown, (case, path)
                answered[answer.status] += 1
                assert answer.status == 403 or route in seen, (case, path)
            for change in _changes(dice):
                data, page = await _planned(site, change)
                for answer in (data, page):
                    shown = _without_effects(data, _whole(answer), change)
                    assert CANARY not in shown, (case, change)
                planned[data.status] += 1
    assert answered[200] > _CASES
    assert answered[403] > _CASES
    assert planned[200] > _CASES
    assert planned[403] > _CASES // 2


@pytest.mark.parametrize(
    ("differs", "viewer"),
    [
        ("all", DEVELOPER),
        ("words", DEVELOPER),
        ("amounts", DEVELOPER),
        ("names", DEVELOPER),
        ("words", OF_CLUSTERS),
        ("names", OF_CLUSTERS),
        ("all", WITH_QUOTAS),
    ],
    ids=[
        *("all", "words", "amounts", "names", "words, clusters are seen", "names, clusters are seen"),
        "all, quotas are seen",
    ],
)
async def test_fleets_that_differ_in_what_is_not_theirs_give_the_same_answers(
    tmp_path: Path, differs: str, viewer: Viewer
) -> None:
    """Reasons have numbers of clusters, so they are compared where only words, other bindings, or ample amounts differ.

    With ``amounts``, no placement asks for a choice by amounts. With ``names``, others have other names and are the same
    otherwise, so kinds of changes are compared, too.
    """
    compared = 0
    for case in range(_TWINS):
        found: list[list[tuple[str, str]]] = []
        for twin in range(2):
            dice = random.Random(f"twins/{_SEED}/{case}")
            fleet = _Seeds(f"twins/{_SEED}/{case}", twin, differs, viewer=viewer)
            by_capacity = differs != "amounts"
            async with _site(tmp_path / f"{case}-{twin}", fleet, by_capacity=by_capacity) as site:
                paths = [path for route, path in _paths(site, dice) if route not in OPEN]
                paths += [
                    "/bindings?namespace=shop",
                    "/v1/bindings?namespace=shop&limit=2",
                    "/bindings?namespace=shopping",
                    *("/n/shop", "/v1/quotas/shop", "/v1/quotas/shopping"),
                ]
                if viewer.sees_clusters:
                    paths += ["/clusters?sort=bindings", *(f"/clusters/{name}" for name in _OWN_CLUSTERS)]
                if differs == "all":
                    paths = [each for each in paths if not each.startswith(_REASONED)]
                else:
                    paths += [f"{each}shop/{name}-deployment" for each in _REASONED for name in _OWN_NAMES]
                answers = [(path, _whole(await site.get(path))) for path in paths]
                assert ("plain-quota" in dict(answers)["/n/shop"]) == (viewer is WITH_QUOTAS)
                if differs != "names":
                    answers = [(path, _without_changes(answer)) for path, answer in answers]
                if differs != "all":
                    for change in _changes(dice, f"{CANARY}-x", by_capacity=by_capacity):
                        for answer in await _planned(site, change):
                            # Twins have other names of clusters, which a binding may have after a change.
                            text = _whole(answer).replace(fleet.word, CANARY)
                            answers.append(
                                (str(change), text if differs == "names" else _without_others(text))
                            )
                found.append(answers)
        for (path, one), (_, other) in zip(*found, strict=True):
            assert one == other, (case, path)
            compared += 1
    assert compared > 10 * _TWINS
