"""Metrics of the page, a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from karmada_advisor.explain.codes import CODES
from karmada_advisor.state.model import ReplicaCounts, StateName
from karmada_pyscheduler.http_server.request_guard import AnsweredRequest
from karmada_pyscheduler.metrics.families import Families
from karmada_scheduler.core import condition

BindingsByScheduler = Mapping[str, tuple[Mapping[tuple[StateName, str], int], ReplicaCounts]]

CONTENT_TYPE: Final = "text/plain; version=0.0.4"
"""Of ``WebMetrics.text``."""
_SIGN_IN: Final = "/sign-in"
_SIGN_INS: Final = {303: "success", 401: "failure", 429: "limited", 503: "error"}
"""Results of an attempt to sign in by the status of its answer. Others, such as those of foreign sites, are no attempts."""
_SCHEDULERS: Final = 20
"""Schedulers with samples of their own, because anybody who writes a policy names one."""
_CAUSES: Final = CODES | {
    *(condition.NO_CLUSTER_FIT, condition.UNSCHEDULABLE, condition.SCHEDULER_ERROR, condition.QUOTA_EXCEEDED),
    *("SchedulingSuspended", "Unreadable", "TaintUntolerated", "ApplicationFailure", "GracefulEviction"),
    "",
}
"""Causes with samples of their own, because anybody who writes a condition names one."""
_ENDS: Final = ("time", "memory", "abandoned")
_SESSIONS: Final = ("expired", "unreadable", "token_refused")


class WebMetrics:
    """What the page has computed, and whom it has let in. No label has the name of a user, a namespace or an object."""

    def __init__(self) -> None:
        """Register the families; labels whose values are known have their samples from the beginning."""
        self.registry: Final = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._families = families = Families(self.registry)
        self.explanations: Final = families.total("explanations", "Explanations computed")
        self._requests: Final = families.counter(
            "web_requests",
            "Requests to the page by the pattern of their path and the status of the answer",
            "route",
            "status",
        )
        self._reviews: Final = families.counter(
            "web_reviews",
            "Reviews by the Karmada API server: asked for and answered, kept from before, or failed without an answer",
            "kind",
            "result",
            "source",
        )
        self._sign_ins: Final = families.counter("web_sign_ins", "Attempts to sign in on the page", "result")
        self._refused_sessions: Final = families.counter(
            "web_refused_sessions",
            "Requests with a session that is over, that no key opens, or whose token is refused",
            "reason",
        )
        self.pending: Final = families.gauge("web_pending_answers", "Answers that wait to be computed")
        self._ended_answers: Final = families.counter(
            "web_ended_answers",
            "Answers that were ended while they were computed: by a limit, or because nobody waited any more",
            "reason",
        )
        self.processes: Final = families.total("web_answer_processes", "Processes begun for answers")
        self._watch_age: Final = families.gauge(
            "web_watch_age_seconds",
            "Time since the last event or bookmark of a watch, or since the API server accepted it",
            "kind",
        )
        self._bindings: Final = families.gauge(
            "web_bindings",
            "Bindings by their state, its stored cause, and the scheduler that is responsible",
            "scheduler",
            "state",
            "cause",
        )
        self._replicas: Final = families.gauge(
            "web_replicas",
            "Replicas that bindings want, that are placed, that run, and that no cluster has reported",
            "scheduler",
            "state",
        )
        for counter, values in (
            (self._sign_ins, _SIGN_INS.values()),
            (self._refused_sessions, _SESSIONS),
            (self._ended_answers, _ENDS),
        ):
            for value in values:
                counter.labels(value)

    def expose_certificate(self, ends_at: Callable[[], float]) -> None:
        """Expose when the certificate that is served ends, in seconds since 1970; without TLS there is no such metric."""
        text = "When the certificate that the page serves ends, in seconds since 1970"
        self._families.gauge("web_certificate_expiry_seconds", text).set_function(ends_at)

    def reviewed(self, kind: str, result: str, source: str) -> None:
        """Count a review, as ``Reviews`` tells of it."""
        self._reviews.labels(kind, result, source).inc()

    def session_refused(self, reason: str) -> None:
        """Count a request with a session that is not let in, as ``Sessions`` tells of it."""
        self._refused_sessions.labels(reason).inc()

    def answer_ended(self, reason: str) -> None:
        """Count an answer that was ended, as ``AnswerWorker`` tells of it."""
        self._ended_answers.labels(reason).inc()

    def answered(self, request: AnsweredRequest) -> None:
        """Count a request that was answered. Its path is not known where nothing has it, nor where it was refused before."""
        self._requests.labels(request.route, str(request.status)).inc()
        if request.route == _SIGN_IN and request.method == "POST" and request.status in _SIGN_INS:
            self._sign_ins.labels(_SIGN_INS[request.status]).inc()

    def text(self, watch_ages: Mapping[str, float], bindings: BindingsByScheduler) -> bytes:
        """Return all metrics in the text format of Prometheus.

        Args:
            watch_ages: The seconds since each watch has said something, by kind.
            bindings: The bindings by state and reason, and their replicas, by scheduler; those after the first are one.
        """
        self._bindings.clear()
        self._replicas.clear()
        for number, (name, (states, replicas)) in enumerate(bindings.items()):
            scheduler = name if number < _SCHEDULERS else "others"
            for (state, reason), count in states.items():
                cause = reason if reason in _CAUSES else "other"
                self._bindings.labels(scheduler, state.value, cause).inc(count)
            for field in ("wanted", "placed", "running", "unknown"):
                self._replicas.labels(scheduler, field).inc(getattr(replicas, field))
        for kind, age in watch_ages.items():
            self._watch_age.labels(kind).set(age)
        return generate_latest(self.registry)
