"""EvenSplit: the same number of replicas for every cluster, as far as there is room."""

from karmada_scheduler.framework import SKIP, AssignContext, Result


class EvenSplit:
    """Divide evenly; what the small clusters cannot take goes evenly to the others, a remainder to the roomiest."""

    name = "EvenSplit"

    def assign(self, context: AssignContext, /) -> dict[str, int] | Result:
        rest = context.cycle.binding.spec.replicas
        if context.cycle.placement.is_duplicated or not rest:
            return SKIP
        given = {}
        by_room = sorted(context.selected, key=lambda each: (each.available, each.name))
        for index, each in enumerate(by_room):
            given[each.name] = min(each.available, rest // (len(by_room) - index))
            rest -= given[each.name]
        if rest:
            return Result.unschedulable(f"{rest} replicas too many for {len(by_room)} clusters")
        return {name: replicas for name, replicas in given.items() if replicas}
