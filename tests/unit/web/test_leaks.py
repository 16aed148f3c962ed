"""Random fleets of which somebody may list one namespace: nothing of the rest is in any answer.

``make check-leaks CASES=2000 TWINS=500 SEED=1`` tries more of them. A word in everything that is not theirs must not be in an
answer. Of two fleets that differ only in what is not theirs, each answer must be the same: that finds numbers and orders.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Final

from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.web.site import Answer, Site, without_times
from tests.unit.web.test_viewer import CANARY, DEVELOPER, OPEN, SCOPED

_CASES: Final = int(os.environ.get("CASES", "12"))
_TWINS: Final = int(os.environ.get("TWINS", "6"))
_SEED: Final = int(os.environ.get("SEED", "1"))
_PATHS_OF_A_CASE: Final = 24
_OWN_CLUSTERS: Final = ("eu-1", "eu-2", "us-1")
_REASONS: Final = ("Success", "NoClusterFit", "Unschedulable", "SchedulerError")
_OWN_NAMES: Final = ("web", "api", "cache", "mail", "jobs")


def _clusters(own: random.Random, others: random.Random) -> list[ClusterBuilder]:
    """Return the clusters of the namespace, of which all but readiness is of others, and further ones."""
    made = []
    for name in (*_OWN_CLUSTERS, *(f"{CANARY}-{number}" for number in range(others.randrange(5)))):
        each = cluster(name).capacity(
            cpu=others.randrange(1, 99), memory=f"{others.randrange(1, 99)}Gi", pods=others.randrange(1, 999)
        )
        each.region(f"{CANARY}-region-{others.randrange(3)}").provider(f"{CANARY}-provider")
        each.zones(f"{CANARY}-zone").labels(tier=f"{CANARY}-{others.randrange(9)}")
        if others.random() < 0.4:
            each.taint(f"{CANARY}-taint=1:{others.choice(('NoSchedule', 'NoExecute', 'PreferNoSchedule'))}")
        if others.random() < 0.2:
            each.without_summary()
        if name in _OWN_CLUSTERS and own.random() < 0.2:
            each.condition("Ready", "False")
        made.append(each)
    others.shuffle(made)
    return made


def _own(dice: random.Random) -> list[BindingBuilder]:
    """Return bindings of the namespace as they may be stored: placed, failed, suspended, evicted, of others' schedulers."""
    made = []
    for name in dice.sample(_OWN_NAMES, dice.randint(1, len(_OWN_NAMES))):
        each = binding(name, namespace="shop").replicas(dice.randrange(4), cpu=dice.choice(("100m", "2")))
        each.affinity(clusterNames=dice.sample(_OWN_CLUSTERS, dice.randint(1, 3)))
        dice.choice((each.duplicated, each.aggregated, each.dynamic_weight))()
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
        made.append(each)
    return made


def _others(dice: random.Random) -> list[BindingBuilder]:
    """Return bindings of other namespaces and without one, some on the clusters of the namespace."""
    made = []
    for number in range(dice.randrange(8)):
        namespace = dice.choice((f"{CANARY}-ns", "shopping", "sho"))
        each = binding(f"{CANARY}-{number}", namespace=namespace).replicas(dice.randrange(9), cpu="7")
        each.dynamic_weight().on(**dict.fromkeys(dice.sample(_OWN_CLUSTERS, dice.randrange(4)), 3))
        if dice.random() < 0.5:
            each.condition(
                type="Scheduled", status="False", reason=dice.choice(_REASONS), message=f"{CANARY}-message"
            )
        made.append(each)
    return made


def _bindings(own: random.Random, others: random.Random) -> list[BindingBuilder]:
    """Return the bindings of the namespace in their order, between those of others."""
    mine, rest = _own(own), _others(others)
    places = sorted(others.randint(0, len(rest)) for _ in mine)
    for number, (place, each) in enumerate(zip(places, mine, strict=True)):
        rest.insert(place + number, each)
    return rest


def _site(folder: Path, seed: str, twin: int) -> Site:
    folder.mkdir()
    return Site(
        folder,
        clusters=_clusters(random.Random(f"own/{seed}"), random.Random(f"clusters/{seed}/{twin}")),
        bindings=_bindings(random.Random(f"bindings/{seed}"), random.Random(f"others/{seed}/{twin}")),
        viewer=DEVELOPER,
    )


def _paths(site: Site, dice: random.Random) -> list[tuple[str, str]]:
    """Return routes and paths of them, with values of theirs and of others, and parameters."""
    found = []
    for route in dice.choices([each for each in site.routes if "static" not in each], k=_PATHS_OF_A_CASE):
        values = {
            "namespace": dice.choice(("shop", "shop", f"{CANARY}-ns", "shopping", "nowhere")),
            "name": dice.choice(("web-deployment", "api-deployment", f"{CANARY}-1-deployment", "nothing")),
            "kind": dice.choice(("cluster", "region", "zone")),
            "cluster": dice.choice((*_OWN_CLUSTERS, f"{CANARY}-0")),
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


async def test_no_word_of_others_is_in_an_answer(tmp_path: Path) -> None:
    answered = {200: 0, 403: 0, 404: 0, 400: 0}
    for case in range(_CASES):
        dice = random.Random(f"leaks/{_SEED}/{case}")
        async with _site(tmp_path / str(case), f"{_SEED}/{case}", 0) as site:
            for route, path in _paths(site, dice):
                answer = await site.get(path, Accept=dice.choice(("text/html", "application/json")))
                shown = _whole(answer)
                for asked in (f"{CANARY}-ns", f"{CANARY}-1-deployment", f"{CANARY}-0", CANARY[:4]):
                    if asked in path:  # what was asked may be repeated, whether it exists or not
                        shown = re.sub(rf"{asked}(?![a-z-])", "", shown)
                assert CANARY not in shown, (case, path)
                answered[answer.status] += 1
                assert answer.status == 403 or route in SCOPED | OPEN, (case, path)
    assert answered[200] > _CASES
    assert answered[403] > _CASES


async def test_fleets_that_differ_in_what_is_not_theirs_give_the_same_answers(tmp_path: Path) -> None:
    compared = 0
    for case in range(_TWINS):
        found: list[list[tuple[str, str]]] = []
        for twin in range(2):
            dice = random.Random(f"twins/{_SEED}/{case}")
            async with _site(tmp_path / f"{case}-{twin}", f"twins/{_SEED}/{case}", twin) as site:
                paths = [f"/b/shop/{name}-deployment" for name in _OWN_NAMES]
                paths += [path for route, path in _paths(site, dice) if route not in OPEN]
                paths += [
                    "/bindings?namespace=shop",
                    "/v1/bindings?namespace=shop&limit=2",
                    "/bindings?namespace=shopping",
                ]
                found.append([(path, _whole(await site.get(path))) for path in paths])
        for (path, one), (_, other) in zip(*found, strict=True):
            assert one == other, (case, path)
            compared += 1
    assert compared > 20 * _TWINS
