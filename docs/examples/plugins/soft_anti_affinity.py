"""SoftAntiAffinity: spread the workloads of a group over clusters, as a preference."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from karmada_scheduler.framework import SKIP, SUCCESS, Handle, PreScoreContext, Result, ScoreContext, StateKey
from karmada_scheduler.framework import NormalizeScoreContext as Scores

PEERS = StateKey[Counter[str]]("SoftAntiAffinity/peers")


class SoftAntiAffinity:
    """Score by the number of bindings with the same label on a cluster: 100 for none, 0 for the most."""

    name = "SoftAntiAffinity"

    @dataclass
    class Args:
        label: str = "propagationpolicy.karmada.io/permanent-id"  # of bindings: those of one policy

    def __init__(self, args: Args, handle: Handle) -> None:
        self.label, self.handle = args.label, handle

    def pre_score(self, context: PreScoreContext, /) -> Result:
        this = context.cycle.binding
        group = this.labels.get(self.label)
        if not group:
            return SKIP
        others = (each for each in self.handle.bindings() if each.key != this.key)
        peers = (each.spec.target_names for each in others if each.labels.get(self.label) == group)
        context.cycle.state.write(PEERS, Counter(name for names in peers for name in names))
        return SUCCESS

    def score(self, context: ScoreContext, /) -> int:
        return context.cycle.state.read(PEERS)[context.cluster.name]

    def normalize_score(self, context: Scores, /) -> Sequence[int]:
        most = max(*context.scores, 1)
        return [100 - 100 * peers // most for peers in context.scores]
