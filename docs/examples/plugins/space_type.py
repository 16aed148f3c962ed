"""SpaceType: only workloads with the annotation ``type: space`` go to clusters in space."""

from dataclasses import dataclass

from karmada_scheduler.framework import SUCCESS, FilterContext, Handle, Result

GROUNDED = Result.unschedulable("cluster(s) were not in space")
TAKEN = Result.unschedulable("cluster(s) were for workloads of type space")


class SpaceType:
    """Filter by an annotation of the Deployment itself, which ``needs_workload`` makes available.

    If the workload cannot be read, ``Result.error`` keeps the placement and retries.
    """

    name = "SpaceType"
    needs_workload = True

    @dataclass
    class Args:
        label: str = "spacecloud.example.com/orbit"

    def __init__(self, args: Args, handle: Handle) -> None:
        self.label = args.label

    def filter(self, context: FilterContext, /) -> Result:
        workload = context.workload
        if workload is None:
            return Result.error(context.workload_problem)
        is_for_space = workload.annotations.get("type") == "space"
        if is_for_space == (self.label in context.cluster.labels):
            return SUCCESS
        return GROUNDED if is_for_space else TAKEN
