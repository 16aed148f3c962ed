"""AskForNodes: a binding for which there is too little capacity names the cluster that has to grow, and by how much."""

from karmada_scheduler.framework import Handle, PostFilterContext, ReplicaEstimate, Result, SchedulingError


class AskForNodes:
    """Record an Event with the cluster that needs the fewest more replicas so that the binding fits."""

    name = "AskForNodes"
    post_filter_for = frozenset({"capacity"})

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    async def post_filter(self, context: PostFilterContext, /) -> Result:
        shortage, decide = context.shortage, context.decide
        if shortage is None or decide is None or not self.handle.binding(context.cycle.binding.key):
            return Result.unschedulable("no shortage of a stored binding")
        largest = sorted(shortage.candidates, key=lambda candidate: -candidate.allocatable)[:5]
        for more in range(1, shortage.needed + 1):
            for each in largest:
                answer = await decide(ReplicaEstimate(at_least={each.name: each.allocatable + more}))
                if not isinstance(answer, SchedulingError):
                    text = f"fits if {each.name} can take {more} more replicas"
                    self.handle.record_event(
                        context.cycle.binding, warning=True, reason="NeedsNodes", text=text
                    )
                    return Result.unschedulable(text, retry_after=30)
        return Result.unschedulable("no cluster is large enough alone")
