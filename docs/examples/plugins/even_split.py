"""EvenSplit: the same number of replicas for every cluster, as far as capacity allows."""

from karmada_scheduler.framework import SKIP, AssignContext, Result


class EvenSplit:
    """Divide evenly, within the available replicas; larger clusters take what exceeds them, and the remainder."""

    name = "EvenSplit"

    def assign(self, context: AssignContext, /) -> dict[str, int] | Result:
        rest = context.cycle.binding.spec.replicas
        if context.cycle.placement.is_duplicated or not rest:
            return SKIP
        given = {}
        by_available = sorted(context.selected, key=lambda each: (each.available, each.name))
        for index, each in enumerate(by_available):
            given[each.name] = min(each.available, rest // (len(by_available) - index))
            rest -= given[each.name]
        if rest:
            return Result.unschedulable(f"{rest} replicas too many for {len(by_available)} clusters")
        return {name: replicas for name, replicas in given.items() if replicas}
