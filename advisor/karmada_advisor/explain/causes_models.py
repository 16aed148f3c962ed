"""A requested resource that is in no resource model of a cluster, and so counts as 0 there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.explain.model import Cause, Stage
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.traces import Traces

_PODS: Final = "pods"
_SHOWN: Final = 5


def not_in_models(situation: Situation, traces: Traces) -> Iterator[Cause]:
    """Yield the requested resources that are in no resource model of clusters, with these clusters.

    Until 1.17 Karmada used the resource summary for such a request. Its default models have cpu and memory only.

    Source: karmada v1.18.2 pkg/estimator/client/general.go.
    """
    requirements = situation.inputs.binding.spec.replica_requirements
    if requirements is None or not situation.inputs.gates.enabled("CustomizedClusterResourceModeling"):
        return
    found: dict[str, list[str]] = {}
    for each in traces.attempt.candidates:
        summary, models = each.cluster.resource_summary, each.cluster.resource_models
        if summary is None or not summary.modelings or not models:
            continue
        known = {name for model in models for name in model.minimums}
        for name in requirements.resource_request:
            if name not in known and name != _PODS:
                found.setdefault(name, []).append(each.name)
    for name, clusters in found.items():
        more = f" and {len(clusters) - _SHOWN} more" if len(clusters) > _SHOWN else ""
        text = (
            f"the requested resource {name} is in no resource model of {', '.join(clusters[:_SHOWN])}{more}, so it counts "
            f"as 0 there (since Karmada 1.18): add {name} to spec.resourceModels of the Cluster, or turn the feature gate "
            "CustomizedClusterResourceModeling off"
        )
        yield Cause("ResourceNotInModels", Stage.CAPACITY, {"resource": name, "clusters": clusters}, text)
