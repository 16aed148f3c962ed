"""Whether the control plane serves ``components`` of targets, which Karmada has since 1.19.

An API server drops a field that it does not serve, with a Warning. The next decision would find it missing, and write it
again, without end.
"""

from __future__ import annotations

import logging

from karmada_pyscheduler.client.bindings_schema import UNKNOWN, serves_components
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.core.decision import Decision
from karmada_scheduler.structs import replace

log = logging.getLogger(__name__)


class ServedComponents:
    """Leaves components out of what is written while the control plane does not serve them."""

    def __init__(self) -> None:
        """Take them for served until a schema or a response shows that they are not."""
        self._are_served = True

    def on_schema(self, version: str) -> None:
        """Note which version of bindings the schema is of."""
        if version != UNKNOWN:
            self._are_served = serves_components(version)

    def of(self, decision: Decision) -> Decision:
        """Return a decision without components if they are not served: what a target has stays as it is."""
        if self._are_served or decision.components is None:
            return decision
        return replace(decision, components=None)

    def on_response(self, decision: Decision, stored: Binding) -> None:
        """Note whether the response to a patch with the components of a decision has any."""
        spec = stored.spec
        if not decision.components or not self._are_served:
            return
        if spec.clusters and not any(map(spec.stored_components, spec.clusters)):
            self._are_served = False
            log.warning(
                "The control plane does not serve spec.clusters[].components, as before Karmada 1.19: none are written"
            )
