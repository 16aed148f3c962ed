"""Return to an earlier affinity term at night, by the extension point Reconsider: an example of docs/writing-plugins.md."""

from datetime import UTC, datetime

from karmada_scheduler.framework import SUCCESS, Binding, Handle, Proposal, ReconsiderContext, Result


class ReturnAtNight:
    """Return to an earlier affinity term between 22:00 and 06:00 UTC."""

    name = "ReturnAtNight"
    reconsider_seconds = 300

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    def propose(self, binding: Binding, /) -> Proposal | None:
        terms = binding.spec.placement.cluster_affinities if binding.spec.placement else ()
        if not terms or binding.status.scheduler_observing_affinity_name == terms[0].affinity_name:
            return None
        return Proposal("ReturnsAtNight")

    def reconsider(self, context: ReconsiderContext, /) -> Result:
        hour = datetime.fromtimestamp(self.handle.now(), UTC).hour
        return Result.unschedulable("it is day") if 6 <= hour < 22 else SUCCESS
