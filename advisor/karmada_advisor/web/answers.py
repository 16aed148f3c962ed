"""The answers of the page, by the code of the commands ``explain`` and ``why-not``."""

from __future__ import annotations

import argparse
import asyncio
import io
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from typing import Final

from karmada_advisor.cli import plan
from karmada_advisor.cli.flags.what_if import TOP, plan_parser
from karmada_advisor.cli.questions import process_of, source_of
from karmada_advisor.cli.survive_metrics import survival_metrics
from karmada_advisor.cli.whynot import ask, ask_cluster, ask_clusters, search_bounds
from karmada_advisor.explain.explain import explain, explain_stored
from karmada_advisor.explain.inputs import Explaining, explaining
from karmada_advisor.explain.model import Explanation, Provenance, Tense
from karmada_advisor.explain.overview import ExplanationSummary, grouped, summary_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import change_objects
from karmada_advisor.fleet.process import read_decisions, read_process, read_state
from karmada_advisor.fleet.process_answers import ProcessState, ProcessView
from karmada_advisor.fleet.process_http import ProcessAddress, address_of
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource
from karmada_advisor.views.state import headline
from karmada_advisor.web.answer_worker import BusyError
from karmada_advisor.web.background import Background, CauseScan
from karmada_advisor.web.decisions import OBJECTS, RECORDS, SHOWN, Decisions, of_objects, of_records
from karmada_advisor.web.history import History, history_of, read_events
from karmada_advisor.web.leader import LeaderRecords
from karmada_advisor.web.metrics import WebMetrics
from karmada_advisor.web.quotas import NamespaceQuotas, QuotaReader
from karmada_advisor.web.reading import Reader
from karmada_advisor.web.request_query import AskedChange
from karmada_advisor.web.state import PageState
from karmada_advisor.web.watching import Watcher
from karmada_advisor.whatif.plan.answer import plan_of_fleet
from karmada_advisor.whatif.plan.model import Plan
from karmada_advisor.whatif.plan.question import PlanQuestion
from karmada_advisor.whynot.answer import WhyNotQuestion
from karmada_advisor.whynot.clusters import WhyNotCluster, WhyNotClusters
from karmada_advisor.whynot.model import WhyNot
from karmada_advisor.whynot.remedies import with_remedies
from karmada_pyscheduler.client.connection import ApiConnection
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api_error import ApiError
from karmada_scheduler.structs import IdentityStruct, field, replace

_REMEDY_SECONDS: Final = 1.0
"""The time of the search for changes that place a binding, as in ``explain``."""

_CLUSTER_SECONDS: Final = 4.0
"""The time for the question which bindings a cluster does not have."""

_REBALANCE_SECONDS: Final = 15.0
"""After which a plan decides about no further rebalance."""

_COUPLED: Final = "decisions read other bindings, which you may not list, so nothing is decided again"

GROUPS: Final = 10
"""Groups on the first page; of others there is the number."""

_DECISIONS_SECONDS: Final = 1.0
_AWAY_SECONDS: Final = 5.0
"""How long a running scheduler that could not be read is not asked again, because each request would wait for it."""


class Answers(IdentityStruct):
    """The objects of a reader, and the answers about them.

    Raises NoAnswerError at its creation: the flags cannot be used.

    Attributes:
        arguments: The flags.
        reader: Reads the objects.
        rules: By which decisions are made.
        counters: Of what is computed.
        records: Finds a running scheduler that the flags do not name.
        connection: Reads Events and quotas; None if there are none.
    """

    arguments: argparse.Namespace
    reader: Reader | Watcher
    rules: Rules
    counters: WebMetrics = field(default_factory=WebMetrics)
    records: LeaderRecords | None = None
    connection: ApiConnection | None = None
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _decisions: tuple[float, int, Decisions] = (0.0, 0, Decisions(OBJECTS, ()))

    def __post_init__(self) -> None:
        self._source, self._process_of_flags = source_of(self.arguments), process_of(self.arguments)
        self._seconds: float | None = self.arguments.timeout
        self._quotas = None if self.connection is None else QuotaReader(self.connection)
        _ = self.rules.gates  # a mistake there is reported at the start
        self._has_process = self._process_of_flags is not None or self.records is not None
        self.background = Background(self.arguments.controller_manager, self.rules, self._session)

    def check_rules(self) -> None:
        """Build the plugins once, so that their warnings are printed.

        Raises:
            NoAnswerError: They cannot be used.
        """
        with explaining(self.state.contents.objects, self.rules, self._source.plane):
            pass

    @property
    def state(self) -> PageState:
        """The objects as they were read last."""
        return self.reader.state

    @property
    def metrics(self) -> bytes:
        """What was computed, and what losses would do, in the text format of Prometheus."""
        found = self.background.survival
        text = self.counters.text(self.reader.watch_ages, self.state.contents.index.by_scheduler)
        if found.report is None or found.made_at is None:
            return text
        at_ = found.made_at.timestamp()
        return text + survival_metrics(found.report, top=TOP, at=at_, seconds=found.seconds)

    def computed(self, result: object) -> None:
        """Count an explanation that was computed."""
        if isinstance(result, Explanation):
            self.counters.explanations.inc()

    def explain(self, state: PageState, key: BindingKey, view: ProcessView | None) -> Explanation:
        """Explain a binding."""
        binding = _binding_of(state, key)
        contents = state.contents
        stored = explain_stored(binding, contents.objects.manifests[key], contents.facts, source=state.source)
        if not state.has_clusters:
            return stored
        with self._session(state) as using:
            if using.dry_run.is_coupled and using.fleet.unlisted:
                return replace(stored, notes=(_COUPLED,))
            inputs = using.inputs_of(binding)
            inputs = replace(inputs, process=view)
            found = explain(inputs, source=state.source)
            return with_remedies(found, inputs, using, self._seconds or _REMEDY_SECONDS)

    def why_not(
        self,
        state: PageState,
        key: BindingKey,
        question: WhyNotQuestion,
        *,
        as_new: bool,
        several: Sequence[str] = (),
    ) -> WhyNot | WhyNotClusters:
        """Answer a question about a binding, and a cluster or several ones that have what the question names."""
        _binding_of(state, key)  # or say why there is no answer
        bounds = search_bounds(self._seconds)
        with self._session(state, as_new=as_new) as using:
            if several:
                return ask_clusters(using, key, question.cluster, several, bounds)
            return ask(using, key, question, bounds)

    def why_not_cluster(self, state: PageState, cluster: str) -> WhyNotCluster:
        """Return which bindings a cluster does not have."""
        with self._session(state) as using:
            return ask_cluster(using, cluster, _CLUSTER_SECONDS)

    @contextmanager
    def _session(self, state: PageState, *, as_new: bool = False) -> Iterator[Explaining]:
        """Provide what answers a question."""
        objects, plane = state.contents.objects, self._source.plane
        is_trusted = state.scope is None or state.scope.is_trusted
        with _without_warnings(), explaining(objects, self.rules, plane, as_new=as_new) as using:
            yield using if is_trusted else replace(using, rules=using.rules.hidden)

    def plan(self, state: PageState, change: AskedChange) -> Plan:
        """Return what a change would do."""
        ends = time.monotonic() + _REBALANCE_SECONDS
        question = PlanQuestion(
            source=FleetSource(plane=self._source.plane),
            rules=self.rules,
            rule_change=Rules(),
            manifests=change_objects(change.text),
            edits=plan.edits_of(plan_parser().parse_args(change.flags)),
            time_left=lambda: (ends - time.monotonic()) / _REBALANCE_SECONDS,
        )
        with _without_warnings():
            found, unread = plan_of_fleet(question, state.contents.objects)
        unknown = "Not read, so bindings that a policy would add may be missing"
        return replace(found, notes=(*found.notes, *(f"{unknown}: {problem}" for problem in unread)))

    async def process_view(self, key: BindingKey) -> ProcessView | None:
        """Return what the running scheduler says about a binding; None if none was named."""
        if not self._has_process:
            return None
        if (kept := self._kept_decisions(self.state)) is not None and kept.problem:
            return ProcessView(problem=kept.problem)
        try:
            process = await self._process()
        except NoAnswerError as problem:
            return ProcessView(problem=str(problem))
        return await asyncio.to_thread(read_process, process, key)

    async def _process(self) -> ProcessAddress:
        """Return where the running scheduler answers. Raises NoAnswerError: its leader is not known."""
        if self.records is not None:
            return await self.records.address()
        assert self._process_of_flags is not None  # nobody is asked otherwise
        return address_of(self._process_of_flags)

    async def history(self, state: PageState, key: BindingKey, *, with_events: bool) -> History:
        """Return what has happened to a binding."""
        manifest = state.contents.objects.manifests.get(key, {})
        if not with_events or self.connection is None:
            return history_of(manifest, None)
        try:
            return history_of(manifest, await read_events(self.connection, manifest))
        except ApiError as problem:
            return history_of(manifest, None, f"Events cannot be read: {problem}")

    async def quotas(self, namespace: str) -> NamespaceQuotas:
        """Return the quotas of a namespace; files have none."""
        return NamespaceQuotas() if self._quotas is None else await self._quotas.of(namespace)

    async def decisions(self, state: PageState) -> Decisions:
        """Return the last decisions; the running scheduler is asked once a second at most, and less often if it is away."""
        async with self._asking:
            if (kept := self._kept_decisions(state)) is None:
                kept, seconds = await self._read_decisions(state)
                self._decisions = time.monotonic() + seconds, state.number, kept
            return kept

    def _kept_decisions(self, state: PageState) -> Decisions | None:
        """Return what was read last; None if it is to be read again."""
        until, number, kept = self._decisions
        return kept if time.monotonic() < until and (kept.problem or number == state.number) else None

    async def _read_decisions(self, state: PageState) -> tuple[Decisions, float]:
        """Return decisions, and for how many seconds they are kept as long as the objects are the same."""
        text, process = "", None
        if self._has_process:
            try:
                url = await self._process()
                process = await asyncio.to_thread(read_state, url)
                records = await asyncio.to_thread(read_decisions, url, 2 * SHOWN)
                return Decisions(RECORDS, of_records(records), "", process), _DECISIONS_SECONDS
            except NoAnswerError as problem:
                text = str(problem)
                process = ProcessState(problem=text)
        found = Decisions(OBJECTS, of_objects(state.contents.index.newest(SHOWN)), text, process)
        return found, _AWAY_SECONDS if text else math.inf


def _without_warnings() -> AbstractContextManager[object]:
    """Print no warnings: they were printed at the start."""
    return redirect_stderr(io.StringIO())


def _binding_of(state: PageState, key: BindingKey) -> Binding:
    """Return a binding of the objects.

    Raises:
        NoAnswerError: It was deleted.
        BusyError: It has been created since the objects were published.
    """
    found = state.contents.index.get(key)
    if found is None:
        raise NoAnswerError(f"{key.display} does not exist any more")
    if key not in state.contents.objects.manifests:
        raise BusyError(f"{key.display} has just been created; try again in a moment")
    return found.binding


def summary(
    state: PageState,
    scan: CauseScan,
    unread_templates: str,
    *,
    most_groups: int = GROUPS,
    most_names: int = 30,
) -> ExplanationSummary:
    """Return the bindings by state and cause.

    Args:
        state: What was read.
        scan: The causes that are known.
        unread_templates: Why there may be other templates without a binding; "" if there are none.
        most_groups: Groups that are made; of others there is only the number.
        most_names: Bindings of a group that are named.
    """
    contents = state.contents
    return summary_of(
        {**contents.index.groups, **grouped(scan.templates)},
        contents.index.counts(),
        scan.found,
        state_of=lambda key: scan.templates.get(key) or contents.row(contents.index.by_key[key]).state,
        headline=headline,
        scope="",
        clusters=len(contents.objects.clusters),
        provenance=Provenance(
            Tense.RECOMPUTED, state.source, state.read_at.strftime("%Y-%m-%dT%H:%M:%SZ"), rules=scan.rules
        ),
        most_groups=most_groups,
        most_names=most_names,
        templates=None if unread_templates else len(scan.templates),
        replicas=contents.index.replicas(),
    )
