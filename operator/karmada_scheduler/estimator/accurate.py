"""The accurate estimator: capacity as karmada-scheduler-estimator in each member cluster counts it.

A process has one ``AccurateEstimator``, a decision one ``EstimationSession``.

Two policies define what happens when an estimator fails. ``upstream``: no estimate for the binding counts, and the
resource summaries of all clusters are used. ``partial``: the estimates that arrived count, and only the clusters without
one use their resource summaries.

Source: karmada v1.18.2 pkg/estimator/client/accurate.go.
Differs: docs/differences-from-upstream.md, "Estimators".
"""

from __future__ import annotations

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.estimator.session import EstimationSession, WithoutSlot, keep_slot
from karmada_scheduler.estimator.shared_requests import SharedRequests


class AccurateEstimator(SharedRequests):
    """Estimates from the estimators in the member clusters, by requests that decisions share."""

    def session(self, binding: Binding, without_slot: WithoutSlot = keep_slot) -> EstimationSession:
        """Return the session for one decision about a binding.

        Args:
            binding: The binding.
            without_slot: Releases the slot of the decision, if possible, while it waits for silent estimators.
        """
        return EstimationSession(self, binding, without_slot)
