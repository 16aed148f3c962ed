"""Plugins that several tests write into files."""

BY_TYPE = """
from karmada_scheduler.framework import SUCCESS, Result


class ByType:
    name = "ByType"
    needs_workload = True

    def filter(self, context):
        if context.workload is None:
            return Result.error(context.workload_problem)
        is_space = context.workload.annotations.get("type") == "space"
        return SUCCESS if is_space else Result.unschedulable("not of type space")
"""
