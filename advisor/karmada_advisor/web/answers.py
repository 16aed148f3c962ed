"""What the pages ask: implemented over the sources of the commands, and by tests."""

from __future__ import annotations

from typing import Final, Protocol

from karmada_advisor.explain.model import Explanation, Provenance, Tense
from karmada_advisor.explain.overview import Causes, ExplanationSummary, summary_of
from karmada_advisor.fleet.process_answers import ProcessView
from karmada_advisor.views.state import headline
from karmada_advisor.web.decisions import Decisions
from karmada_advisor.web.history import History
from karmada_advisor.web.quotas import NamespaceQuotas
from karmada_advisor.web.state import PageState
from karmada_advisor.web.survival import Survival
from karmada_advisor.whatif.plan.model import Plan
from karmada_advisor.whynot.answer import WhyNotQuestion
from karmada_advisor.whynot.model import WhyNot
from karmada_advisor.whynot.reverse import WhyNotCluster
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.structs import Struct, field

GROUPS: Final = 10
"""Groups on the first page; of others there is the number."""


class CauseScan(Struct, frozen=True):
    """The causes of the bindings in no good state.

    Attributes:
        found: As far as there was time.
        rules: By which rules it was decided again, for people.
        problems: Bindings whose cause could not be found because of an error, one line each.
    """

    found: Causes = field(default_factory=dict)
    rules: str = ""
    problems: tuple[str, ...] = ()

    def __hash__(self) -> int:
        codes = ((key, cause and cause.code) for key, cause in self.found.items())
        return hash((*codes, self.rules, self.problems))


class AskedChange(Struct, frozen=True):
    """A change to plan.

    Attributes:
        text: Policies or other objects, as YAML; "" for none.
        flags: Further parts, as the command has them: ``--without=eu-west-3``.
    """

    text: str = ""
    flags: tuple[str, ...] = ()


class Answers(Protocol):
    """The objects and the answers about them."""

    @property
    def state(self) -> PageState:
        """The objects as they were read last."""

    @property
    def progress(self) -> str:
        """How far the first reading is, for people; "" once it is complete."""

    @property
    def causes(self) -> CauseScan:
        """The causes of states, as far as they are known."""

    @property
    def survival(self) -> Survival:
        """What losses would do, as far as it is known."""

    @property
    def metrics(self) -> bytes:
        """What was computed, in the text format of Prometheus."""

    async def refresh(self) -> PageState:
        """Publish the objects with the bindings that have been created since, and return them."""

    def note_request(self) -> None:
        """Note that somebody reads, so that the objects are read again from time to time."""

    def explain(self, state: PageState, key: BindingKey, view: ProcessView | None) -> Explanation:
        """Explain a binding. Raises NoAnswerError."""

    def why_not(self, state: PageState, key: BindingKey, question: WhyNotQuestion, *, as_new: bool) -> WhyNot:
        """Answer a question about a binding, ``as_new`` as if it had never been scheduled. Raises NoAnswerError."""

    def why_not_cluster(self, state: PageState, cluster: str) -> WhyNotCluster:
        """Return which bindings a cluster does not have. Raises NoAnswerError."""

    def plan(self, state: PageState, change: AskedChange) -> Plan:
        """Return what a change would do. Raises NoAnswerError."""

    async def process_view(self, key: BindingKey) -> ProcessView | None:
        """Return what the running scheduler says about a binding; None if none was named."""

    async def history(self, state: PageState, key: BindingKey, *, with_events: bool) -> History:
        """Return what has happened to a binding; its problem may name anything."""

    async def quotas(self, namespace: str) -> NamespaceQuotas:
        """Return the quotas of a namespace; their problem may name anything."""

    async def decisions(self, state: PageState) -> Decisions:
        """Return the last decisions."""


def summary(
    state: PageState, scan: CauseScan, *, most_groups: int = GROUPS, most_names: int = 3
) -> ExplanationSummary:
    """Return the bindings by state and cause.

    Args:
        state: What was read.
        scan: The causes that are known.
        most_groups: Groups that are made; of others there is only the number.
        most_names: Bindings of a group that are named.
    """
    contents = state.contents
    found = contents.index.groups
    rows = {row.key: row for members in found.values() for row in members}
    return summary_of(
        {key: [row.key for row in members] for key, members in found.items()},
        contents.index.counts(),
        scan.found,
        state_of=lambda key: contents.row(rows[key]).state,
        headline=headline,
        scope="",
        clusters=len(contents.clusters),
        provenance=Provenance(
            Tense.RECOMPUTED, state.source, state.read_at.strftime("%Y-%m-%dT%H:%M:%SZ"), rules=scan.rules
        ),
        most_groups=most_groups,
        most_names=most_names,
    )
