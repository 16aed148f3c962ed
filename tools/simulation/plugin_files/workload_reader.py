"""Needs the metadata of workloads, and decides nothing by it."""

from karmada_scheduler.framework import SUCCESS, FilterContext, Result


class WorkloadReader:
    """Read the workload of each binding."""

    name = "WorkloadReader"
    needs_workload = True

    def filter(self, context: FilterContext, /) -> Result:
        context.workload  # noqa: B018 (reading it is all)
        return SUCCESS
