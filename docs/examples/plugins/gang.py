"""Gang: all or nothing. Each member waits at Permit until so many of its gang have found their place."""

from dataclasses import dataclass

from karmada_scheduler.framework import SUCCESS, BindContext, Binding, BindingKey, Handle, Result


class Gang:
    """Hold back the ResourceBindings of a namespace that have the same label until there are enough of them."""

    name = "Gang"

    @dataclass
    class Args:
        size: int
        label: str = "gang"  # of the ResourceBinding; its value is the name of the gang
        seconds: float = 60.0  # that a member waits for the others

    def __init__(self, args: Args, handle: Handle) -> None:
        self.args, self.handle = args, handle
        self.allowed = set[
            BindingKey
        ]()  # and not written yet, so handle.bindings() does not show their place

    async def permit(self, context: BindContext, /) -> Result:
        this = context.binding
        waiting = [each for each in self.handle.waiting() if self._same_gang(this, each.binding)]
        here = {this.key, *(each.binding.key for each in waiting)}
        members = (each for each in self.handle.bindings() if self._same_gang(this, each))
        placed = {each.key for each in members if each.spec.clusters or each.key in self.allowed}
        if this.labels.get(self.args.label) and len(here | placed) < self.args.size:
            return Result.wait(self.args.seconds, f"{len(here | placed)} of {self.args.size} have a place")
        self.allowed |= here
        for each in waiting:
            each.allow(self.name)
        return SUCCESS

    def reserve(self, context: BindContext, /) -> Result:
        return SUCCESS  # unreserve needs it

    def unreserve(self, context: BindContext, /) -> None:
        self.allowed.discard(context.binding.key)
        for each in self.handle.waiting():
            if self._same_gang(context.binding, each.binding):
                each.reject(self.name, f"{context.binding.key} of the same gang did not get its place")

    async def post_bind(self, context: BindContext, /) -> None:
        self.allowed.discard(context.binding.key)

    def _same_gang(self, one: Binding, other: Binding) -> bool:
        first, second = (each.labels.get(self.args.label) for each in (one, other))
        return bool(first) and first == second and one.key.namespace == other.key.namespace
