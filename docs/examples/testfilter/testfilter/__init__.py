"""TestFilter: admit clusters by name."""

from dataclasses import dataclass, field

from karmada_scheduler.framework import SUCCESS, FilterContext, Handle, Result

REFUSED = Result.unschedulable("cluster(s) are not admitted by TestFilter")


class TestFilter:
    """Filter by name: a cluster passes if it is on the list."""

    name = "TestFilter"
    __test__ = False  # not a test class for pytest

    @dataclass(frozen=True)
    class Args:
        """The clusters to admit."""

        clusters: list[str] = field(default_factory=lambda: ["member1", "member2"])

    def __init__(self, args: Args, handle: Handle) -> None:
        self._admitted = frozenset(args.clusters)

    def filter(self, context: FilterContext, /) -> Result:
        """Refuse clusters that are not on the list, including those that already have the binding."""
        return SUCCESS if context.cluster.name in self._admitted else REFUSED
