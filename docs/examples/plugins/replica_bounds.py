"""ReplicaBounds: no cluster gets fewer replicas than a minimum, or more than a maximum."""

from dataclasses import dataclass

from karmada_scheduler.core.algorithms.webster import allocate
from karmada_scheduler.framework import SKIP, AssignContext, Handle, Result


class ReplicaBounds:
    """Divide by available replicas as Karmada does (Webster), within bounds; placed replicas stay if possible."""

    name = "ReplicaBounds"

    @dataclass
    class Args:
        minimum: int = 1
        maximum: int = 1000

    def __init__(self, args: Args, handle: Handle) -> None:
        self.low, self.high = max(1, args.minimum), args.maximum

    def assign(self, context: AssignContext, /) -> dict[str, int] | Result:
        spec = context.cycle.binding.spec
        if context.cycle.placement.is_duplicated or not spec.replicas:
            return SKIP
        now = {target.name: target.replicas for target in spec.clusters}
        usable = [each for each in context.selected if min(self.high, each.available) >= self.low]
        usable.sort(key=lambda each: each.name not in now)  # those in use first
        limit = {each.name: min(self.high, each.available) for each in usable[: spec.replicas // self.low]}
        if sum(limit.values()) < spec.replicas:
            return Result.unschedulable(f"{spec.replicas} replicas do not fit: {self.low} to {limit}")
        held = {name: min(max(now.get(name, 0), self.low), most) for name, most in limit.items()}
        if sum(held.values()) > spec.replicas:
            held = dict.fromkeys(limit, self.low)
        while True:  # clusters over the maximum get the maximum, and the others divide the rest
            votes = {name: most for name, most in limit.items() if held[name] < most}
            given = allocate(spec.replicas - sum(held.values()), votes, held=held)
            if not (over := {name: limit[name] for name in votes if given[name] > limit[name]}):
                return given
            held |= over
