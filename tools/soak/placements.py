"""Varied placements: all strategies, affinities by label, name, field and term, tolerations, and groups by region."""

from __future__ import annotations

from random import Random
from typing import Any, Final

Object = dict[str, Any]

REGIONS: Final = ("eu", "us", "ap", "sa", "af")
TIERS: Final = ("gold", "silver", "bronze")

DIVIDED: Final[Object] = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}


def placement(dice: Random, number: int, clusters: list[str]) -> Object:
    """Return a random placement that fits some clusters.

    Args:
        dice: Decides.
        number: Is part of a name in the placement, so that no two placements are equal.
        clusters: The names of the present clusters.
    """
    kind = dice.randrange(5)
    # Every cluster tolerates one more value that nobody has, so the content is new and the result is not.
    found: Object = {
        "clusterTolerations": [{"key": "soak", "operator": "Equal", "value": f"v{number}"}],
        "replicaScheduling": _strategy(dice, clusters),
    }
    if kind == 0:
        found["clusterAffinity"] = {"labelSelector": {"matchLabels": {"tier": dice.choice(TIERS)}}}
    elif kind == 1:
        found["clusterAffinity"] = {"exclude": [f"gone-{number}", *dice.sample(clusters, 3)]}
    elif kind == 2:
        found["clusterAffinities"] = [
            {"affinityName": f"first-{number}", "clusterNames": dice.sample(clusters, 10)},
            {
                "affinityName": "second",
                "labelSelector": {
                    "matchExpressions": [{"key": "tier", "operator": "In", "values": dice.sample(TIERS, 2)}]
                },
            },
        ]
    elif kind == 3:
        found["spreadConstraints"] = [
            {"spreadByField": "region", "minGroups": 2, "maxGroups": 3},
            {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 6},
        ]
        found["replicaScheduling"] = {
            **DIVIDED,
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        }
    else:
        found["clusterAffinity"] = {
            "fieldSelector": {
                "matchExpressions": [{"key": "region", "operator": "NotIn", "values": [dice.choice(REGIONS)]}]
            }
        }
        found["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 5}]
    return found


def impossible(number: int) -> Object:
    """Return a placement that no cluster fits."""
    return {"clusterAffinity": {"labelSelector": {"matchLabels": {"nobody": f"n{number}"}}}}


def _strategy(dice: Random, clusters: list[str]) -> Object:
    kind = dice.randrange(4)
    if kind == 0:
        return {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    if kind == 1:
        weights = [
            {"targetCluster": {"clusterNames": [name]}, "weight": dice.randint(1, 5)}
            for name in dice.sample(clusters, 4)
        ]
        return {**DIVIDED, "weightPreference": {"staticWeightList": weights}}
    if kind == 2:
        return {**DIVIDED, "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
    return {"replicaSchedulingType": "Duplicated"}
