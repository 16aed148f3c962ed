"""The WorkloadRebalancers of a proposal.

A WorkloadRebalancer sets ``spec.rescheduleTriggeredAt`` of bindings to its own creation time, and acts once. Hence each batch has an
object of its own with a generated name, which is created when the batch is due.

Source: karmada v1.18.2 pkg/controllers/workloadrebalancer, pkg/apis/apps/v1alpha1.
"""

from __future__ import annotations

from typing import Any, Final

from karmada_advisor.rebalance.model import Batch, RebalanceProposal, Workload

API_VERSION: Final = "apps.karmada.io/v1alpha1"
TTL_SECONDS: Final = 3600
"""After this, Karmada deletes a finished WorkloadRebalancer."""


def manifests(proposal: RebalanceProposal) -> list[dict[str, Any]]:
    """Return one WorkloadRebalancer per batch, for ``kubectl create``."""
    return [_manifest(proposal.provenance.fleet, batch) for batch in proposal.batches]


def _manifest(fleet: str, batch: Batch) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "WorkloadRebalancer",
        "metadata": {"generateName": f"rebalance-{fleet}-{batch.number}-"},
        "spec": {
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "workloads": [_reference(each.workload) for each in batch.moves],
        },
    }


def _reference(workload: Workload) -> dict[str, str]:
    fields = {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
    }
    return {name: value for name, value in fields.items() if value}
