"""The answers of the page, by the code of the commands ``explain`` and ``why-not``."""

from __future__ import annotations

import argparse
import asyncio
import io
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, redirect_stderr
from typing import TYPE_CHECKING, Final, Self

from karmada_advisor.cli import plan
from karmada_advisor.cli.flags import plan as plan_flags
from karmada_advisor.cli.flags.survive import TOP
from karmada_advisor.cli.fleet import as_manifests
from karmada_advisor.cli.web.idle_work import CauseSearch, SurvivalScan
from karmada_advisor.cli.web.reading import Reader
from karmada_advisor.cli.whynot import ask, ask_cluster, search_bounds
from karmada_advisor.explain.explain import explain
from karmada_advisor.explain.inputs import ExplainInputs, ProcessView
from karmada_advisor.explain.model import Explanation
from karmada_advisor.plan.model import Plan
from karmada_advisor.plan.stored import ChangeError
from karmada_advisor.sources.change_files import change_objects
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.inputs import Explaining, explaining
from karmada_advisor.sources.process import read_decisions, read_process, read_state, use_rules
from karmada_advisor.sources.process_answers import ProcessState
from karmada_advisor.sources.process_http import ProcessAddress, address_of
from karmada_advisor.sources.remedies import with_remedies
from karmada_advisor.sources.rules import parsed_gates
from karmada_advisor.web.answers import AskedChange, CauseScan
from karmada_advisor.web.decisions import OBJECTS, RECORDS, SHOWN, Decisions, of_objects, of_records
from karmada_advisor.web.history import History, history_of, read_events
from karmada_advisor.web.jobs import BusyError
from karmada_advisor.web.metrics import WebMetrics, survival_metrics
from karmada_advisor.web.quotas import NamespaceQuotas, QuotaReader
from karmada_advisor.web.state import PageState
from karmada_advisor.web.survival import Survival
from karmada_advisor.whynot.answer import WhyNotQuestion
from karmada_advisor.whynot.model import WhyNot
from karmada_advisor.whynot.reverse import WhyNotCluster
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.client.api_connection import ApiConnection
from karmada_scheduler.client.api_error import ApiError
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import replace

if TYPE_CHECKING:  # files do not need the client
    from karmada_advisor.cli.web.leader import LeaderRecords
    from karmada_advisor.cli.web.watching import Watcher

_REMEDY_SECONDS: Final = 1.0
"""The time of the search for changes that place a binding, as in ``explain``."""

_CLUSTER_SECONDS: Final = 4.0
"""The time for the question which bindings a cluster does not have."""

_DECISIONS_SECONDS: Final = 1.0
_AWAY_SECONDS: Final = 5.0
"""How long a running scheduler that could not be read is not asked again, because each request would wait for it."""


class CommandAnswers:
    """Implements ``web.answers.Answers`` over the objects of a reader. ``explain`` and ``why_not`` run in a main thread."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        reader: Reader | Watcher,
        own: Sequence[Registration],
        *,
        metrics: WebMetrics | None = None,
        records: LeaderRecords | None = None,
        connection: ApiConnection | None = None,
    ) -> None:
        """Take the flags, and ask the running scheduler for its gates if it is named; ``records`` finds one that is not.

        ``connection`` reads Events and quotas; None if there are none.

        Raises:
            NoAnswerError: The flags cannot be used.
        """
        self._arguments = arguments
        self._reader = reader
        self._own = own
        self._records = records
        self._connection = connection
        self._quotas = None if connection is None else QuotaReader(connection)
        self._names = use_rules(arguments) if arguments.process else frozenset()
        parsed_gates(arguments)  # a mistake there is reported at the start
        self._using_of: tuple[int, Explaining] | None = None
        self._plugins = ExitStack()
        self.cause_search = CauseSearch(
            lambda state, key: self._explain_inputs(state, key, None), lambda state: self._using(state).rules
        )
        self._decisions: tuple[float, int, Decisions] | None = None
        self._metrics = metrics or WebMetrics()
        self._is_first = True
        self._asking = asyncio.Lock()
        self._survival = SurvivalScan(arguments, own)

    def __enter__(self) -> Self:
        """Build the plugins once, so that their warnings are printed and their errors end the command."""
        self._using(self.state)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the plugins."""
        self._plugins.close()

    @property
    def state(self) -> PageState:
        """The objects as they were read last."""
        return self._reader.state

    @property
    def progress(self) -> str:
        """How far the first reading is."""
        return self._reader.progress

    @property
    def causes(self) -> CauseScan:
        """Why bindings are not placed, as far as there was time; those of the last reading until the next are found."""
        return self.cause_search.result

    @property
    def problems(self) -> tuple[str, ...]:
        """Bindings of the last reading whose causes could not be found because of an error."""
        return self.cause_search.problems

    @property
    def metrics(self) -> bytes:
        """What was computed, and what losses would do, in the text format of Prometheus."""
        found, text = self.survival, self._metrics.text(self._reader.watch_ages)
        if found.report is None or found.made_at is None:
            return text
        at_ = found.made_at.timestamp()
        return text + survival_metrics(found.report, top=TOP, at=at_, seconds=found.seconds)

    def computed(self, result: object) -> None:
        """Count an explanation that was computed."""
        if isinstance(result, Explanation):
            self._metrics.explained(each.trace for each in result.mismatches)

    async def refresh(self) -> PageState:
        """Publish the objects as the watches have them, and return them."""
        return await self._reader.refresh()

    def seen(self) -> None:
        """Note that somebody reads."""
        self._reader.seen()

    def start_again(self) -> None:
        """Drop plugins and caches: an answer was ended half-way."""
        self._survival.start_again()
        self._using_of = None
        self._plugins.close()

    def _using(self, state: PageState) -> Explaining:
        """Return what explains; plugins and caches are shared as long as the objects are the same."""
        if self._using_of is None or self._using_of[0] != state.number:
            self._using_of = None
            self._plugins.close()
            rules = explaining(self._arguments, state.contents.objects, self._own)
            with nullcontext() if self._is_first else _without_warnings():
                self._using_of = state.number, self._plugins.enter_context(rules)
            self._is_first = False
        return self._using_of[1]

    def _explain_inputs(self, state: PageState, key: BindingKey, view: ProcessView | None) -> ExplainInputs:
        inputs = self._using(state).inputs_of(_binding_of(state, key))
        return replace(inputs, process=view, scheduler_names=self._names or inputs.scheduler_names)

    def explain(self, state: PageState, key: BindingKey, view: ProcessView | None) -> Explanation:
        """Explain a binding."""
        inputs = self._explain_inputs(state, key, view)
        found = explain(inputs, source=state.source)
        seconds = self._arguments.timeout or _REMEDY_SECONDS
        return with_remedies(found, inputs, self._using(state), seconds)

    def why_not(self, state: PageState, key: BindingKey, question: WhyNotQuestion, *, as_new: bool) -> WhyNot:
        """Answer a question about a binding."""
        _binding_of(state, key)  # or say why there is no answer
        with self._session(state, as_new=as_new) as using:
            return ask(using, key, question, search_bounds(self._arguments.timeout))

    def why_not_cluster(self, state: PageState, cluster: str) -> WhyNotCluster:
        """Return which bindings a cluster does not have."""
        with self._session(state) as using:
            return ask_cluster(using, cluster, _CLUSTER_SECONDS)

    @contextmanager
    def _session(self, state: PageState, *, as_new: bool = False) -> Iterator[Explaining]:
        """Provide what answers a question."""
        objects = state.contents.objects
        with _without_warnings(), explaining(self._arguments, objects, self._own, as_new=as_new) as using:
            yield using

    def plan(self, state: PageState, change: AskedChange) -> Plan:
        """Return what a change would do."""
        given = self._arguments
        arguments = plan_flags.make_parser().parse_args(change.flags)
        arguments.kubeconfig, arguments.context = given.kubeconfig, given.context
        arguments.kubeconfig_cluster, arguments.user = given.kubeconfig_cluster, given.user
        arguments.current_feature_gates = list(given.feature_gates)
        arguments.current_decisions_of = given.decisions_of
        arguments.current_plugins = list(given.plugins or ())
        arguments.current_config = [str(given.config)] if given.config else []
        arguments.current_plugin_dir = [str(each) for each in given.plugin_dir]
        arguments.scheduler_name = given.scheduler_name
        arguments.enable_empty_workload_propagation = given.enable_empty_workload_propagation
        arguments.process_configuration = given.process_configuration
        arguments.process_rules = given.process_rules
        objects = state.contents.objects
        try:
            changes = change_objects(change.text)
            with _without_warnings():
                found, unread = plan.made(arguments, objects, as_manifests(objects), changes, self._own)
            notes = [
                f"Not read, so bindings that a policy would add may be missing: {each}" for each in unread
            ]
            return replace(found, notes=(*found.notes, *notes))
        except ChangeError as problem:
            raise NoAnswerError(str(problem)) from problem

    async def process_view(self, key: BindingKey) -> ProcessView | None:
        """Return what the running scheduler says about a binding; None if none was named."""
        if not self._arguments.process and self._records is None:
            return None
        if (kept := self._kept_decisions()) is not None and kept.problem:
            return ProcessView(problem=kept.problem)
        try:
            process = await self._process()
        except NoAnswerError as problem:
            return ProcessView(problem=str(problem))
        return await asyncio.to_thread(read_process, process, key)

    async def _process(self) -> ProcessAddress:
        """Return where the running scheduler answers. Raises NoAnswerError: its leader is not known."""
        return address_of(self._arguments) if self._records is None else await self._records.address()

    async def history(self, state: PageState, key: BindingKey, *, with_events: bool) -> History:
        """Return what has happened to a binding."""
        manifest = state.contents.manifests.get(key, {})
        if not with_events or self._connection is None:
            return history_of(manifest, None)
        try:
            return history_of(manifest, await read_events(self._connection, manifest))
        except ApiError as problem:
            return history_of(manifest, None, f"Events cannot be read: {problem}")

    async def quotas(self, namespace: str) -> NamespaceQuotas:
        """Return the quotas of a namespace; files have none."""
        return NamespaceQuotas() if self._quotas is None else await self._quotas.of(namespace)

    async def decisions(self, state: PageState) -> Decisions:
        """Return the last decisions; the running scheduler is asked once a second at most, and less often if it is away."""
        if not self._arguments.process and self._records is None:
            if self._decisions is None or self._decisions[1] != state.number:
                found = Decisions(OBJECTS, of_objects(state.contents.index.newest(SHOWN)))
                self._decisions = 0.0, state.number, found
            return self._decisions[2]
        async with self._asking:
            kept = self._kept_decisions()
            if kept is None:
                kept = await self._read_decisions(state)
                self._decisions = (time.monotonic(), state.number, kept)
            return kept

    def _kept_decisions(self) -> Decisions | None:
        """Return what the running scheduler has said; None if it is to be asked again."""
        if self._decisions is None:
            return None
        at, number, kept = self._decisions
        if kept.problem:
            return kept if time.monotonic() - at < _AWAY_SECONDS else None
        return kept if number == self.state.number and time.monotonic() - at < _DECISIONS_SECONDS else None

    async def _read_decisions(self, state: PageState) -> Decisions:
        try:
            url = await self._process()
            process = await asyncio.to_thread(read_state, url)
            records = await asyncio.to_thread(read_decisions, url, 2 * SHOWN)
        except NoAnswerError as problem:
            text = str(problem)
            return Decisions(
                OBJECTS, of_objects(state.contents.index.newest(SHOWN)), text, ProcessState(problem=text)
            )
        return Decisions(RECORDS, of_records(records), "", process)

    @property
    def survival(self) -> Survival:
        """What losses would do."""
        return self._survival.survival

    def work_ahead(self) -> bool:
        """Do one slice of what nobody has asked for yet, in the main thread; return whether there is more."""
        if self.progress:
            return False
        return self.cause_search.advance(self.state) or self._survival.advance(self.state)


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
    if key not in state.contents.manifests:
        raise BusyError(f"{key.display} has just been created; try again in a moment")
    return found.binding
