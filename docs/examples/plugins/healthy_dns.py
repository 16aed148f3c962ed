"""HealthyDNS: keep workloads off clusters whose DNS fails, and say so."""

from collections.abc import Iterator, Sequence
from typing import Final

from karmada_scheduler.framework import (
    SUCCESS,
    Edit,
    EditContext,
    EventKind,
    Evidence,
    EvidenceContext,
    FilterContext,
    RequeueEvent,
    Result,
)

CONDITION = "ServiceDomainNameResolutionReady"


class HealthyDNS:
    """Refuse clusters about which karmada's cluster-problem-detector reports that Services cannot be resolved."""

    name = "HealthyDNS"
    codes: Final = {"DNSFails": "the cluster cannot resolve Services"}

    def filter(self, context: FilterContext, /) -> Result:
        found = context.cluster.condition(CONDITION)
        fails = found is not None and found.status == "False"
        is_new = context.cluster.name not in context.cycle.current_clusters
        return Result.unschedulable("cluster(s) could not resolve Services") if fails and is_new else SUCCESS

    def evidence(self, context: EvidenceContext, /) -> Evidence:
        conditions = context.cluster_manifest["status"]["conditions"]
        since = next(each.get("lastTransitionTime") for each in conditions if each["type"] == CONDITION)
        fields = {"clause": "DNS fails", "condition": CONDITION, "since": since}
        return Evidence("DNSFails", "DNS fails", fields, f"it cannot resolve Services since {since}")

    def edits(self, context: EditContext, /) -> Iterator[Edit]:
        path = ("status", "conditions")
        for index, found in enumerate(context.at(context.cluster_ref, path)):
            if found["type"] == CONDITION:
                yield context.on_cluster.set(
                    "repairDNS", (*path, index, "status"), "True", f"{CONDITION} has to be True",
                    instead=f"Repair the DNS of {context.name}; the detector then reports it.",
                )  # fmt: skip

    def events(self) -> Sequence[RequeueEvent]:
        return [RequeueEvent(EventKind.CLUSTER_CONDITIONS, CONDITION)]
