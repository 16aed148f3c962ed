"""An extender over HTTP, with one request for all clusters, and which bindings it is interested in.

A request that fails is not retried: the decision fails or continues without the extender. Each status other than 200,
redirects included, is an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from karmada_pyscheduler.extenders import wire
from karmada_pyscheduler.extenders.transport import (
    HttpExtenderTransport,
    NewExtenderTransport,
    ResponseTooLargeError,
)
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.extenders import ExtenderConfig
from karmada_scheduler.framework.cycle import Cycle
from karmada_scheduler.framework.result import Result
from karmada_scheduler.framework.runtime.extenders import ExtenderError, ExtenderFilterResult
from karmada_scheduler.framework.scheduling_points import MAX_CLUSTER_SCORE
from karmada_scheduler.structs import IdentityStruct, field


def is_interested(extender: ExtenderConfig, binding: Binding) -> bool:
    """Return whether a binding requests a resource of ``managedResources``, or there is no such list."""
    if not extender.managed_resources:
        return True
    spec = binding.spec
    requirements = (spec.replica_requirements, *(each.replica_requirements for each in spec.components))
    return any(
        resource.name in requirement.resource_request
        for requirement in requirements
        if requirement is not None
        for resource in extender.managed_resources
    )


def needs_binding(extenders: Iterable[ExtenderConfig], binding: Binding) -> bool:
    """Return whether a request has the whole object of a binding."""
    return any(_filters_or_prioritizes(each) and is_interested(each, binding) for each in extenders)


def needs_clusters(extenders: Iterable[ExtenderConfig]) -> bool:
    """Return whether a request has whole Cluster objects."""
    return any(_filters_or_prioritizes(each) and not each.node_cache_capable for each in extenders)


def _filters_or_prioritizes(extender: ExtenderConfig) -> bool:
    return bool(extender.filter_verb or extender.prioritize_verb)


log = logging.getLogger(__name__)

FILTER: Final = "filter"
PRIORITIZE: Final = "prioritize"
BIND: Final = "bind"

SUCCEEDED: Final = "success"
CANCELLED: Final = "cancelled"

_SCALE: Final = MAX_CLUSTER_SCORE // wire.MAX_EXTENDER_SCORE
MAX_RESPONSE_BYTES: Final = 16 * 1024 * 1024
"""The largest size of a response, unless twice the size of the request is more."""
_LOG_INTERVAL_SECONDS: Final = 300.0

Answer = TypeVar("Answer")


class Manifests(Protocol):
    """The objects as the API server returned them, as JSON documents with kind and apiVersion."""

    def binding(self, key: BindingKey) -> bytes | None:
        """Return a binding, None if it is unknown."""

    def cluster(self, name: str) -> bytes | None:
        """Return a Cluster, None if it is unknown."""


Observe = Callable[[str, str, str, float], None]
"""Takes the extender's name, the verb, ``success`` or the cause of a failure in one word, and the seconds."""


class _CallError(ExtenderError):
    """An error with its cause in one word, for metrics and the rate limit of the log."""

    def __init__(self, text: str, *, cause: str) -> None:
        super().__init__(text)
        self.cause = cause


class HttpExtender(IdentityStruct):
    """An extender of the configuration; implements ``framework.extender.Extender``.

    Attributes:
        config: The configuration of the extender.
        manifests: The objects for requests.
        clock: Returns seconds of a monotonic clock.
        observe: Receives every request.
        transport: Makes the connections.

    Raises:
        ExtenderTLSError: A certificate, key or CA cannot be used.
    """

    config: ExtenderConfig
    manifests: Manifests
    clock: Callable[[], float]
    observe: Observe = lambda *_: None
    transport: NewExtenderTransport = HttpExtenderTransport
    _logged: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = self.config.shown_url
        self.ignorable = self.config.ignorable
        self.filters = bool(self.config.filter_verb)
        self.prioritizes = bool(self.config.prioritize_verb)
        self.binds = bool(self.config.bind_verb)
        self._verbs = {
            FILTER: self.config.filter_verb.lstrip("/"),
            PRIORITIZE: self.config.prioritize_verb.lstrip("/"),
            BIND: self.config.bind_verb.lstrip("/"),
        }
        self._transport = self.transport(self.config)

    def is_interested(self, binding: Binding) -> bool:
        """Return whether the binding requests a resource of ``managedResources``, or there is no such list."""
        return is_interested(self.config, binding)

    async def filter(self, cycle: Cycle, clusters: Sequence[Cluster]) -> ExtenderFilterResult:
        """Return which clusters can take the binding.

        As upstream, a cluster that is both kept and refused is kept, the refusal of a cluster that was not in the request
        is ignored, and ``FailedAndUnresolvableClusters`` takes precedence over ``FailedClusters``.

        Raises:
            ExtenderError: The request failed, or the response cannot be used.
        """

        def read(body: bytes) -> ExtenderFilterResult:
            answer = wire.read_filter_response(body)
            if answer.error:
                raise self._failure(FILTER, f"it returned the error: {answer.error}", cause="error")
            if (error := answer.missing_results(cluster.name for cluster in clusters)) is not None:
                raise error
            kept = self._kept(answer)
            self._check_known("a filtered", kept, clusters)
            return ExtenderFilterResult(
                kept,
                {each.name: self._refusal(answer, each.name) for each in clusters if each.name not in kept},
            )

        return await self._call(FILTER, lambda: self._request_body(FILTER, cycle, clusters), read)

    def _kept(self, answer: wire.FilterResponse) -> frozenset[str]:
        """Return the list that corresponds to the request, else the other one, else nothing."""
        lists = (answer.names, answer.objects)
        if not self.config.node_cache_capable:
            lists = lists[::-1]
        return frozenset(next((names for names in lists if names is not None), ()))

    def _refusal(self, answer: wire.FilterResponse, name: str) -> Result:
        silence = f"cluster(s) were rejected by extender {self.name}"
        if name in answer.unresolvable:
            return Result.unresolvable(answer.unresolvable[name] or silence)
        return Result.unschedulable(answer.failed.get(name) or silence)

    async def prioritize(self, cycle: Cycle, clusters: Sequence[Cluster]) -> Mapping[str, int]:
        """Return scores by cluster name: 0 to 10 from the extender, times 10, times its weight.

        Raises:
            ExtenderError: The request failed, or the response cannot be used; it is logged, because the decision
                continues.
        """

        def read(body: bytes) -> dict[str, int]:
            scores = wire.read_prioritize_response(body)
            self._check_known("a prioritized", scores, clusters)
            factor = self.config.weight * _SCALE
            return {name: score * factor for name, score in scores.items()}

        return await self._call(PRIORITIZE, lambda: self._request_body(PRIORITIZE, cycle, clusters), read)

    async def bind(self, cycle: Cycle, targets: Sequence[TargetCluster]) -> None:
        """Let the extender write ``spec.clusters`` and the annotation; ExtenderError if it may have failed."""

        def read(body: bytes) -> None:
            error = wire.read_bind_response(body)
            if error:
                raise self._failure(BIND, f"it returned the error: {error}", cause="error")

        await self._call(BIND, lambda: wire.bind_request(cycle.binding, targets), read)

    async def close(self) -> None:
        """Close the connections; requests under way fail."""
        await self._transport.close()

    def _request_body(self, verb: str, cycle: Cycle, clusters: Sequence[Cluster]) -> bytes:
        key = cycle.binding.key
        binding = self.manifests.binding(key)
        if binding is None:
            raise self._failure(verb, f"{key.display} is not known any more", cause="gone")
        names = [cluster.name for cluster in clusters]
        if self.config.node_cache_capable:
            return wire.request_with_names(binding, cycle.affinity_name, names)
        documents = []
        for name in names:
            document = self.manifests.cluster(name)
            if document is None:
                raise self._failure(verb, f"cluster {name} is not known any more", cause="gone")
            documents.append(document)
        return wire.request_with_objects(binding, cycle.affinity_name, documents)

    async def _call(self, verb: str, write: Callable[[], bytes], read: Callable[[bytes], Answer]) -> Answer:
        """Send one request and return its result; observe it, and log an error in spite of which the decision continues."""
        started, outcome = self.clock(), CANCELLED
        try:
            answer = read(await self._post(verb, write()))
            outcome = SUCCEEDED
        except wire.ResponseError as error:
            outcome = "answer"
            failure = self._failure(verb, f"the answer cannot be used: {error}", cause=outcome)
            self._log_once(verb, failure)
            raise failure from error
        except _CallError as failure:
            outcome = failure.cause
            self._log_once(verb, failure)
            raise
        finally:
            self.observe(self.name, verb, outcome, self.clock() - started)
        return answer

    async def _post(self, verb: str, body: bytes) -> bytes:
        url, seconds = f"{self.config.url_prefix.rstrip('/')}/{self._verbs[verb]}", self.config.http_timeout
        limit = max(MAX_RESPONSE_BYTES, 2 * len(body))
        try:
            response = await self._transport.post(url, body, limit=limit)
        except ResponseTooLargeError as error:
            raise self._failure(verb, f"the answer is larger than {limit} bytes", cause="answer") from error
        except TimeoutError as error:
            text = f"no answer within {seconds:g} s"
            raise self._failure(verb, text, cause="timeout") from error
        except ConnectionError as error:
            raise self._failure(verb, str(error), cause="connection") from error
        if response.status != 200:
            found = wire.excerpt(response.body)
            text = f"code {response.status}" + (f": {found}" if found else "")
            raise self._failure(verb, text, cause="status")
        return response.body

    def _failure(self, verb: str, what: str, *, cause: str) -> _CallError:
        url = f"{self.name.rstrip('/')}/{self._verbs[verb]}"
        return _CallError(f"failed {self._verbs[verb]} with extender at URL {url}, {what}", cause=cause)

    def _check_known(self, what: str, names: Iterable[str], clusters: Sequence[Cluster]) -> None:
        """Raise _CallError for the first name in a response that was not in the request."""
        known = frozenset(cluster.name for cluster in clusters)
        for name in names:
            if name not in known:
                text = f'claims {what} cluster "{name}" which is not found in the input cluster list'
                raise _CallError(f'extender "{self.name}" {text}', cause="answer")

    def _log_once(self, verb: str, failure: _CallError) -> None:
        """Log an error in spite of which the decision continues, once in five minutes for each cause."""
        if verb != PRIORITIZE and not self.ignorable:
            return
        now, key = self.clock(), (verb, failure.cause)
        if now - self._logged.get(key, -_LOG_INTERVAL_SECONDS) < _LOG_INTERVAL_SECONDS:
            return
        self._logged[key] = now
        log.warning(
            "An extender failed, decisions continue without it",
            extra={"extender": self.name, "verb": verb, "error": str(failure)},
        )
