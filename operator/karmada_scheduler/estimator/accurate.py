"""The accurate estimator: capacity as karmada-scheduler-estimator in each member cluster counts it.

``AccurateEstimator`` lives as long as the process and keeps what decisions can share; an ``EstimationSession`` lives as
long as one decision and keeps its one deadline, its answers, and what it had to do without.

Two policies say what happens when an estimator fails. ``upstream``: every answer about the binding is void, and
the clusters' summaries decide. ``partial``: the answers that arrived count, and the summaries decide about the
silent clusters only. A cluster that once kept silent until a deadline is then asked in the background, and
nobody waits for it until it has answered.

Source: karmada v1.18.2 pkg/estimator/client/accurate.go.
Differs: docs/differences-from-upstream.md, "Estimators".
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from karmada_scheduler.api.binding import AssumedWorkload, Binding, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.available_replicas import NO_OPINION, EstimationError
from karmada_scheduler.estimator.connections import ConnectionState, EstimatorCallError
from karmada_scheduler.estimator.wire import EstimatorRequest, replicas_question, sets_question

log = logging.getLogger(__name__)

FailurePolicy = Literal["upstream", "partial"]
UPSTREAM: Final = "upstream"
PARTIAL: Final = "partial"

_PROBE_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
_GRACE_SECONDS: Final = 0.005
"""How much longer than its questions a decision waits, so that each ends by its own deadline first."""

_SUSPECT_AFTER: Final = 3
"""Probes without an answer after which the connection itself is doubted."""

Assumed = Mapping[str, Sequence[AssumedWorkload]]


class EstimatorTransport(Protocol):
    """Connections, as far as asking needs them; see ``connections.Connections``."""

    def standing(self, cluster: str, /) -> ConnectionState:
        """Tell what is known of a cluster's estimator."""
        ...

    async def settled(self, cluster: str, /) -> None:
        """Wait for the end of the first attempt to connect."""
        ...

    def suspect(self, cluster: str, /) -> None:
        """Connect anew."""
        ...

    async def ask(self, cluster: str, method: str, request: bytes, *, timeout: float, about: str) -> bytes:
        """Call a method; AskError if that fails, or takes longer than so many seconds."""
        ...


class Observer(Protocol):
    """Counts what becomes of questions."""

    def asked(self, method: str, result: str, seconds: float, /) -> None:
        """A question to one cluster ended: ``success``, ``error`` or ``timeout``."""

    def shared(self, method: str, /) -> None:
        """A question was not asked because the same one was asked a moment ago."""


class Answer(NamedTuple):
    """What came of one question to one cluster.

    Attributes:
        room: How much fits; NO_OPINION if there is no answer.
        problem: Why there is none, "" if there is one.
    """

    room: int
    problem: str = ""
    timed_out: bool = False


class _Asked(NamedTuple):
    """A question that was asked.

    Attributes:
        since: When, in seconds of the clock.
    """

    since: float
    answer: asyncio.Task[Answer]


_Key = tuple[str, str, bytes]


class AccurateEstimator:
    """Asks the estimators of all clusters; ``inquiry`` gives what one decision asks with."""

    def __init__(
        self,
        line: EstimatorTransport,
        *,
        timeout: float,
        policy: FailurePolicy,
        answer_ttl: float,
        observer: Observer,
        clock: Callable[[], float],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Ask nobody yet.

        Args:
            line: The connections.
            timeout: Seconds that a decision waits for all its answers together.
            policy: ``UPSTREAM`` or ``PARTIAL``.
            answer_ttl: Seconds from a question within which the same question is not asked again.
            observer: Told of every question.
            clock: Monotonic, in seconds.
            pause: Sleeps between probes of silent clusters.
        """
        self.timeout = timeout
        self.policy = policy
        self._line = line
        self._answer_ttl = answer_ttl
        self._observer = observer
        self._clock = clock
        self._pause = pause
        self._asked: OrderedDict[_Key, _Asked] = OrderedDict()
        self._tasks: set[asyncio.Task[Answer] | asyncio.Task[None]] = set()
        self._silent: set[str] = set()

    def inquiry(self, binding: Binding) -> EstimationSession:
        """Return what one decision about a binding asks with."""
        return EstimationSession(self, binding)

    @property
    def silent(self) -> frozenset[str]:
        """The clusters that nobody waits for at present."""
        return frozenset(self._silent)

    def now(self) -> float:
        """Return the time of the clock."""
        return self._clock()

    async def close(self) -> None:
        """Stop asking."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def problem_with(self, cluster: str) -> str:
        """Return why a cluster needs not be asked: what would come of it is known; "" if it is not."""
        standing = self._line.standing(cluster)
        if standing is ConnectionState.ABSENT:
            return f"cluster {cluster} does not exist in estimator cache"
        if self.policy == PARTIAL:
            if standing is ConnectionState.LOST:
                return f"the connection to the estimator of cluster {cluster} is lost"
            if cluster in self._silent:
                return f"the estimator of cluster {cluster} kept silent before and is being probed"
        return ""

    def ask(
        self, cluster: str, question: EstimatorRequest, request: bytes, about: str
    ) -> asyncio.Task[Answer]:
        """Ask a cluster, or join whoever has asked the same a moment ago. The task never fails."""
        now = self._clock()
        self._forget_before(now - self._answer_ttl)
        key = (cluster, question.method, request)
        known = self._asked.get(key)
        if known is not None and not known.answer.cancelled():
            self._observer.shared(question.method)
            return known.answer
        task = asyncio.create_task(self._put(cluster, question, request, about))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._answer_ttl > 0:
            self._asked[key] = _Asked(now, task)
            self._asked.move_to_end(key)
        return task

    def no_longer_wanted(self, tasks: Iterable[asyncio.Task[Answer]]) -> None:
        """Take note that a decision waits for some answers no more; what nobody else can join is dropped."""
        if self._answer_ttl <= 0 and self.policy == UPSTREAM:
            for task in tasks:
                task.cancel()

    def _forget_before(self, moment: float) -> None:
        asked = self._asked
        while asked:
            key = next(iter(asked))
            if asked[key].since >= moment:
                return
            del asked[key]

    async def _put(self, cluster: str, question: EstimatorRequest, request: bytes, about: str) -> Answer:
        """Ask one cluster, and remember if it kept silent."""
        began = self._clock()
        try:
            timeout = self.timeout
            if self._line.standing(cluster) is ConnectionState.NEW:
                async with asyncio.timeout(timeout):
                    await self._line.settled(cluster)
                timeout = max(0.0, began + timeout - self._clock())
            payload = await self._line.ask(cluster, question.method, request, timeout=timeout, about=about)
            answer = Answer(question.answer(payload))
        except TimeoutError:
            answer = Answer(NO_OPINION, f"not connected within {self.timeout:g}s", timed_out=True)
        except EstimatorCallError as error:
            answer = Answer(NO_OPINION, str(error), timed_out=error.timed_out)
        except ValueError as error:
            answer = Answer(NO_OPINION, f"gRPC request cluster({cluster}) estimator error: {error}")
        result = "timeout" if answer.timed_out else "error" if answer.problem else "success"
        self._observer.asked(question.method, result, self._clock() - began)
        if answer.timed_out and self.policy == PARTIAL and cluster not in self._silent:
            self._silent.add(cluster)
            log.warning(
                "The estimator of a cluster keeps silent; decisions go by the cluster's summary until it answers",
                extra={"cluster": cluster, "error": answer.problem},
            )
            task = asyncio.create_task(self._probe(cluster, question, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return answer

    async def _probe(self, cluster: str, question: EstimatorRequest, request: bytes) -> None:
        """Ask a silent cluster again and again until it answers, says no, or is gone."""
        probes = 0
        try:
            while True:
                await self._pause(_PROBE_PAUSES[min(probes, len(_PROBE_PAUSES) - 1)])
                if self._line.standing(cluster) is ConnectionState.ABSENT:
                    return
                answer = await self._put(cluster, question, request, "probe")
                if not answer.timed_out:
                    log.info("The estimator of a cluster answers again", extra={"cluster": cluster})
                    return
                probes += 1
                if probes % _SUSPECT_AFTER == 0:
                    self._line.suspect(cluster)
        finally:
            self._silent.discard(cluster)


class EstimationSession:
    """What one decision asks; conforms to ``core.available_replicas.ReplicaEstimator``.

    A decision may ask several times, one pass after the other. It has one deadline for all of them, and no
    cluster is asked the same thing twice.

    Attributes:
        name: For logs, upstream's.
        fallbacks: Clusters to why the decision goes by their summaries; all of them if the answers are void.
        concerned: The clusters whose estimators should be heard.
    """

    name = "scheduler-estimator"

    def __init__(self, estimator: AccurateEstimator, binding: Binding) -> None:
        """Begin; the deadline runs from the first question on."""
        self.fallbacks: dict[str, str] = {}
        self.concerned: set[str] = set()
        self._estimator = estimator
        resource = binding.spec.resource
        self._about = f"kind={resource.kind}, name={resource.namespace}/{resource.name}"
        self._deadline: float | None = None
        self._answers: dict[_Key, Answer] = {}
        self._questions: dict[int, tuple[object, EstimatorRequest]] = {}

    async def max_available_replicas(
        self, clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, assumed: Assumed
    ) -> list[int]:
        """Count the replicas that each cluster can take; EstimationError voids the answer."""
        return await self._inquire(clusters, requirements, lambda: replicas_question(requirements), assumed)

    async def max_available_component_sets(
        self, clusters: Sequence[Cluster], components: Sequence[Component], namespace: str, assumed: Assumed
    ) -> list[int]:
        """Count the sets of all components that each cluster can take; EstimationError voids the answer."""
        return await self._inquire(
            clusters, components, lambda: sets_question(components, namespace), assumed
        )

    async def _inquire(
        self,
        clusters: Sequence[Cluster],
        what: object,
        encode: Callable[[], EstimatorRequest],
        assumed: Assumed,
    ) -> list[int]:
        self.concerned |= {each.name for each in clusters}
        try:
            question = self._question(what, encode)
            keys = {
                each.name: (each.name, question.method, question.to(each.name, assumed.get(each.name, ())))
                for each in clusters
            }
        except ValueError as error:
            raise self._void(clusters, f"the request cannot be encoded: {error}") from error
        all_or_nothing = self._estimator.policy == UPSTREAM
        answers, pending = self._known(keys)
        if pending and not (all_or_nothing and any(each.problem for each in answers.values())):
            answers |= await self._round(question, pending, all_or_nothing=all_or_nothing)
        failed = {name: each for name, each in answers.items() if each.problem}
        if failed and all_or_nothing:
            decisive = min(failed.values(), key=lambda each: each.timed_out)
            raise self._void(clusters, decisive.problem)
        self.fallbacks |= {name: each.problem for name, each in failed.items()}
        return [answers[each.name].room for each in clusters]

    def _question(self, what: object, encode: Callable[[], EstimatorRequest]) -> EstimatorRequest:
        """Encode a question once for all passes; what it is about is kept, so that its id stays its own."""
        found = self._questions.get(id(what))
        if found is None:
            found = self._questions[id(what)] = (what, encode())
        return found[1]

    def _known(self, keys: Mapping[str, _Key]) -> tuple[dict[str, Answer], dict[str, _Key]]:
        """Return what needs not be asked, and what has to be."""
        answers: dict[str, Answer] = {}
        pending: dict[str, _Key] = {}
        for name, key in keys.items():
            known = self._answers.get(key)
            if known is not None:
                answers[name] = known
            elif problem := self._estimator.problem_with(name):
                answers[name] = Answer(NO_OPINION, problem)
            else:
                pending[name] = key
        return answers, pending

    async def _round(
        self, question: EstimatorRequest, pending: Mapping[str, _Key], *, all_or_nothing: bool
    ) -> dict[str, Answer]:
        """Ask several clusters at once; return when nothing more can come, or by the deadline."""
        estimator = self._estimator
        if self._deadline is None:
            self._deadline = estimator.now() + estimator.timeout
        left = self._deadline - estimator.now()
        late = Answer(NO_OPINION, f"no answer within {estimator.timeout:g}s", timed_out=True)
        if left <= 0:
            return dict.fromkeys(pending, late)
        tasks = {
            name: estimator.ask(name, question, request, self._about)
            for name, (_, _, request) in pending.items()
        }
        try:
            await _until_known(tasks.values(), left + _GRACE_SECONDS, all_or_nothing=all_or_nothing)
        finally:
            estimator.no_longer_wanted(tasks.values())
        answers = {
            name: task.result() if task.done() and not task.cancelled() else late
            for name, task in tasks.items()
        }
        for name, answer in answers.items():
            self._answers[pending[name]] = answer
        return answers

    def _void(self, clusters: Sequence[Cluster], problem: str) -> EstimationError:
        """Note that the summaries decide everything."""
        self.fallbacks |= dict.fromkeys((each.name for each in clusters), problem)
        return EstimationError(problem)


async def _until_known(
    tasks: Iterable[asyncio.Task[Answer]], seconds: float, *, all_or_nothing: bool
) -> None:
    """Wait until all tasks are done, or one has a problem if that decides everything, or the time is up."""
    waiting = {task for task in tasks if not task.done()}
    if not waiting or (all_or_nothing and any(_has_problem(task) for task in tasks if task.done())):
        return
    left = len(waiting)
    known: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(task: asyncio.Task[Answer]) -> None:
        nonlocal left
        left -= 1
        if not known.done() and (left == 0 or (all_or_nothing and _has_problem(task))):
            known.set_result(None)

    for task in waiting:
        task.add_done_callback(ended)
    try:
        async with asyncio.timeout(seconds):
            await known
    except TimeoutError:
        return
    finally:
        for task in waiting:
            task.remove_done_callback(ended)


def _has_problem(task: asyncio.Task[Answer]) -> bool:
    return task.cancelled() or bool(task.result().problem)
