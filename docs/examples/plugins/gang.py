"""Gang: all or nothing. Each member waits at Permit until enough members of its gang are placed."""

from dataclasses import dataclass

from karmada_scheduler.framework import SUCCESS, BindContext, BindingKey, Handle, Result, Workload


class Gang:
    """Delay the workloads of a namespace that have the same label until enough of them can be placed."""

    name = "Gang"
    needs_workload = True

    @dataclass
    class Args:
        size: int
        label: str = "gang"  # of the Deployment; its value is the name of the gang
        seconds: float = 60.0  # that a member waits for the others

    def __init__(self, args: Args, handle: Handle) -> None:
        self.args, self.handle = args, handle
        self.allowed: set[BindingKey] = set()  # not yet in handle.bindings() with their clusters

    async def permit(self, context: BindContext, /) -> Result:
        if context.workload is None:
            return Result.error(context.workload_problem)
        if (gang := self._gang(context.workload)) is None:
            return SUCCESS
        waiting = [each for each in self.handle.waiting() if self._gang(each.workload) == gang]
        here = {context.binding.key, *(each.binding.key for each in waiting)}
        found = (each for each in self.handle.bindings() if each.spec.clusters or each.key in self.allowed)
        placed = {each.key for each in found if self._gang(self.handle.workload(each.key)) == gang}
        if len(here | placed) < self.args.size:
            return Result.wait(self.args.seconds, f"{len(here | placed)} of {self.args.size} have a place")
        self.allowed |= here
        for each in waiting:
            each.allow(self.name)
        return SUCCESS

    def reserve(self, context: BindContext, /) -> Result:
        return SUCCESS  # unreserve needs it

    def unreserve(self, context: BindContext, /) -> None:
        self.allowed.discard(context.binding.key)
        gang = self._gang(context.workload)
        for each in self.handle.waiting():
            if gang and self._gang(each.workload) == gang:
                each.reject(self.name, f"{context.binding.key} of the same gang did not get its place")

    async def post_bind(self, context: BindContext, /) -> None:
        self.allowed.discard(context.binding.key)

    def _gang(self, workload: Workload | None) -> tuple[str, str] | None:
        name = workload.labels.get(self.args.label) if workload else None
        return (workload.namespace, name) if workload and name else None
