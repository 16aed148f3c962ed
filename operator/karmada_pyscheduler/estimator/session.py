"""The estimates of one decision: one deadline, its results, and the clusters without an estimate.

``wire``, with protobuf, is imported by those who request estimates: the adviser has none, and starts without it. In the
scheduler ``grpc_channel`` has imported it at the start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from karmada_scheduler.api.binding import AssumedWorkload, Binding, Component, ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.core.available_replicas import NO_OPINION, EstimationError

if TYPE_CHECKING:
    from karmada_pyscheduler.estimator.accurate import AccurateEstimator
    from karmada_pyscheduler.estimator.wire import EstimatorRequest

FailurePolicy = Literal["upstream", "partial"]
UPSTREAM: Final = "upstream"
PARTIAL: Final = "partial"

_GRACE_SECONDS: Final = 0.005
"""How much longer than its requests a decision waits, so that each ends by its own deadline first."""

Assumed = Mapping[str, Sequence[AssumedWorkload]]
WithoutSlot = Callable[[], AbstractAsyncContextManager[bool]]
"""Returns a context in which a decision has no slot (``--max-in-flight``), or False: it keeps the slot for now."""
_Key = tuple[str, str, bytes]
"""Cluster, method and encoded request."""


class EstimatorResponse(NamedTuple):
    """Result of one request to one cluster.

    Attributes:
        replicas: Replicas, or sets of components, that the cluster can take; NO_OPINION without a response.
        problem: Why there is no response; empty if there is one.
        timed_out: Whether the request ended by its deadline.
    """

    replicas: int
    problem: str = ""
    timed_out: bool = False


def keep_slot() -> AbstractAsyncContextManager[bool]:
    """Let a decision keep its slot; conforms to ``WithoutSlot``."""
    return nullcontext(enter_result=False)


class EstimationSession:
    """The estimates of one decision; conforms to ``core.available_replicas.ReplicaEstimator``.

    A decision may need estimates several times, once per pass. They share one deadline, and no request is sent to a
    cluster twice.

    Attributes:
        name: For logs, upstream's.
        fallbacks: Cluster to why its resource summary is used; all clusters if no estimate counts.
        clusters: The names of the clusters that estimates were needed for.
    """

    name = "scheduler-estimator"

    def __init__(self, estimator: AccurateEstimator, binding: Binding, without_slot: WithoutSlot) -> None:
        """Start a session; its deadline runs from the first request.

        Args:
            estimator: Sends the requests.
            binding: The binding to decide about.
            without_slot: Releases the slot of the decision, if possible.
        """
        self.fallbacks: dict[str, str] = {}
        self.clusters: set[str] = set()
        self._estimator = estimator
        self._without_slot = without_slot
        resource = binding.spec.resource
        self._about = f"kind={resource.kind}, name={resource.namespace}/{resource.name}"
        self._deadline: float | None = None
        self._estimates: dict[_Key, EstimatorResponse] = {}
        self._requests: dict[int, tuple[object, EstimatorRequest]] = {}

    async def max_available_replicas(
        self, clusters: Sequence[Cluster], requirements: ReplicaRequirements | None, assumed: Assumed
    ) -> list[int]:
        """Return how many replicas each cluster can take; EstimationError makes all results invalid."""
        from karmada_pyscheduler.estimator.wire import replicas_request

        return await self._estimate(clusters, requirements, lambda: replicas_request(requirements), assumed)

    async def max_available_component_sets(
        self, clusters: Sequence[Cluster], components: Sequence[Component], namespace: str, assumed: Assumed
    ) -> list[int]:
        """Return how many sets of all components each cluster can take; EstimationError as above."""
        from karmada_pyscheduler.estimator.wire import sets_request

        return await self._estimate(
            clusters, components, lambda: sets_request(components, namespace), assumed
        )

    async def _estimate(
        self,
        clusters: Sequence[Cluster],
        subject: object,
        encode: Callable[[], EstimatorRequest],
        assumed: Assumed,
    ) -> list[int]:
        self.clusters |= {cluster.name for cluster in clusters}
        try:
            request = self._encoded(subject, encode)
            keys = {
                each.name: (each.name, request.method, request.encode(each.name, assumed.get(each.name, ())))
                for each in clusters
            }
        except ValueError as error:
            raise self._invalid(clusters, f"the request cannot be encoded: {error}") from error
        all_or_nothing = self._estimator.policy == UPSTREAM
        estimates, pending = self._known(keys)
        if pending and not (all_or_nothing and any(estimate.problem for estimate in estimates.values())):
            estimates |= await self._request(request, pending, all_or_nothing=all_or_nothing)
        failed = {name: estimate for name, estimate in estimates.items() if estimate.problem}
        if failed and all_or_nothing:
            decisive = min(failed.values(), key=lambda each: each.timed_out)
            raise self._invalid(clusters, decisive.problem)
        self.fallbacks |= {name: estimate.problem for name, estimate in failed.items()}
        return [estimates[cluster.name].replicas for cluster in clusters]

    def _encoded(self, subject: object, encode: Callable[[], EstimatorRequest]) -> EstimatorRequest:
        """Encode a request once for all passes. The cache refers to the subject, so that its id stays unique."""
        found = self._requests.get(id(subject))
        if found is None:
            found = self._requests[id(subject)] = (subject, encode())
        return found[1]

    def _known(self, keys: Mapping[str, _Key]) -> tuple[dict[str, EstimatorResponse], dict[str, _Key]]:
        """Return the estimates that need no request, and the keys of those that do."""
        estimates: dict[str, EstimatorResponse] = {}
        pending: dict[str, _Key] = {}
        for name, key in keys.items():
            known = self._estimates.get(key)
            if known is not None:
                estimates[name] = known
            elif problem := self._estimator.known_problem(name):
                estimates[name] = EstimatorResponse(NO_OPINION, problem)
            else:
                pending[name] = key
        return estimates, pending

    async def _request(
        self, request: EstimatorRequest, pending: Mapping[str, _Key], *, all_or_nothing: bool
    ) -> dict[str, EstimatorResponse]:
        """Request estimates from several clusters; return at the deadline, or when the result is certain."""
        estimator = self._estimator
        if self._deadline is None:
            self._deadline = estimator.clock() + estimator.timeout
        left = self._deadline - estimator.clock()
        late = EstimatorResponse(NO_OPINION, f"no answer within {estimator.timeout:g}s", timed_out=True)
        if left <= 0:
            return dict.fromkeys(pending, late)
        tasks = {
            name: estimator.request(name, request, payload, self._about)
            for name, (_, _, payload) in pending.items()
        }
        try:
            await self._wait(tasks, left + _GRACE_SECONDS, all_or_nothing=all_or_nothing)
        finally:
            estimator.release(tasks.values())
        estimates = {
            name: self._given_up(name) if task.cancelled() else task.result() if task.done() else late
            for name, task in tasks.items()
        }
        for name, estimate in estimates.items():
            self._estimates[pending[name]] = estimate
        return estimates

    async def _wait(
        self, tasks: Mapping[str, asyncio.Task[EstimatorResponse]], seconds: float, *, all_or_nothing: bool
    ) -> None:
        """Wait as ``_until_certain`` does, without a slot while only silent estimators are missing."""
        estimator = self._estimator
        ends = estimator.clock() + seconds
        while True:
            with estimator.silent.watching(tasks) as silent:
                if await _until_certain(
                    tasks.values(), ends - estimator.clock(), all_or_nothing=all_or_nothing, unless=silent
                ):
                    return
            async with self._without_slot() as has_no_slot:
                if not has_no_slot:
                    continue
                await _until_certain(tasks.values(), ends - estimator.clock(), all_or_nothing=all_or_nothing)
                ended = estimator.clock()
            if self._deadline is not None:
                self._deadline += estimator.clock() - ended  # the wait for a slot is not the estimators'
            return

    def _given_up(self, cluster: str) -> EstimatorResponse:
        """Return the estimate of a cluster whose request was cancelled, because another has passed its deadline."""
        problem = self._estimator.known_problem(cluster) or "the request was cancelled"
        return EstimatorResponse(NO_OPINION, problem, timed_out=True)

    def _invalid(self, clusters: Sequence[Cluster], problem: str) -> EstimationError:
        """Note that the resource summaries of all clusters are used, and return the error."""
        self.fallbacks |= dict.fromkeys((cluster.name for cluster in clusters), problem)
        return EstimationError(problem)


async def _until_certain(
    tasks: Iterable[asyncio.Task[EstimatorResponse]],
    seconds: float,
    *,
    all_or_nothing: bool,
    unless: asyncio.Future[None] | None = None,
) -> bool:
    """Wait until all tasks are done, one has failed and that makes all invalid, or the time is over.

    Returns:
        False if ``unless`` was done before.
    """
    waiting = {task for task in tasks if not task.done()}
    if not waiting or (all_or_nothing and any(_has_failed(task) for task in tasks if task.done())):
        return True
    left = len(waiting)
    certain: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def end(*, is_certain: bool) -> None:
        if not certain.done():
            certain.set_result(is_certain)

    def ended(task: asyncio.Task[EstimatorResponse]) -> None:
        nonlocal left
        left -= 1
        if left == 0 or (all_or_nothing and _has_failed(task)):
            end(is_certain=True)

    for task in waiting:
        task.add_done_callback(ended)
    if unless is not None:
        unless.add_done_callback(lambda _: end(is_certain=False))
    try:
        async with asyncio.timeout(seconds):
            return await certain
    except TimeoutError:
        return True
    finally:
        for task in waiting:
            task.remove_done_callback(ended)


def _has_failed(task: asyncio.Task[EstimatorResponse]) -> bool:
    return task.cancelled() or bool(task.result().problem)
