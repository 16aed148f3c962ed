"""The law ``in time``: an attempt that a plugin has refused is made again when the plugin asked for it.

It is judged from the calls of the plugin ``Refuser``. An attempt may be made earlier only if something has changed: the
binding by somebody else, a cluster, a policy. It may be missing only where its process has not led all the time, or an
answer of the API server was an error.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from karmada_scheduler.api.binding import BindingKey
from tools.simulation.plugin_kit import Call

_EARLY_SECONDS: Final = 0.01
_LATE_SECONDS: Final = 1.0
"""How much later an attempt is made: the status is written in between."""
_UNSEEN_SECONDS: Final = 1.0
"""How long a change may have been on its way before a refusal."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An attempt that was refused.

    Attributes:
        key: The binding.
        at: In seconds.
        retry_after: The shortest time after which a plugin asked for another attempt.
        next: When the next attempt began, None if there was none.
    """

    key: BindingKey
    at: float
    retry_after: float
    next: float | None


def refusals(calls: Sequence[Call]) -> Iterator[Refusal]:
    """Yield the refused attempts among the calls of one process."""
    by_key: dict[BindingKey, list[Call]] = {}
    for each in calls:
        by_key.setdefault(each.key, []).append(each)
    for key, found in by_key.items():
        begins = [index for index, each in enumerate(found) if not each.retry_after]
        for begin, end in zip(begins, [*begins[1:], None], strict=True):
            if refused := found[begin + 1 : end]:
                shortest = min(each.retry_after for each in refused)
                yield Refusal(key, refused[-1].at, shortest, None if end is None else found[end].at)


@dataclass(slots=True)
class RetryLaw:
    """Judges the attempts of a run at its end.

    Attributes:
        add: Records a violation of an invariant, with a text.
        changes: When each binding was changed by others; None has all other objects.
        errors: When a process got an error from the API server, by its identity.
    """

    add: Callable[[str, str], None]
    changes: dict[BindingKey | None, list[float]] = field(default_factory=dict)
    errors: dict[str, list[float]] = field(default_factory=dict)

    def changed(self, key: BindingKey | None, at: float) -> None:
        """Note a change of a binding, or of another object, that no scheduler has made."""
        self.changes.setdefault(key, []).append(at)

    def failed(self, identity: str, at: float) -> None:
        """Note a request about bindings without a success."""
        self.errors.setdefault(identity, []).append(at)

    def check(self, identity: str, calls: Sequence[Call], *, leads_since: float, end: float) -> None:
        """Judge the attempts of a process.

        Args:
            identity: The process, which still runs.
            calls: Those of its plugin.
            leads_since: Since when it leads without an interruption.
            end: The end of the run.
        """
        for each in refusals(calls):
            due, found = each.at + each.retry_after, end if each.next is None else each.next
            text = f"{identity}: {each.key.display} was refused for {each.retry_after:g} s at {each.at:.3f}, "
            is_early, is_late = found < due - _EARLY_SECONDS, found > due + _LATE_SECONDS
            begin, until = each.at - _UNSEEN_SECONDS * is_early, min(found, due + _LATE_SECONDS)
            is_missed = is_late and each.at >= leads_since
            if (is_early or is_missed) and not self._disturbed(identity, each.key, begin, until):
                after = "never again" if each.next is None else f"again at {each.next:.3f}"
                self.add("in time", f"{text}and tried {after}")

    def _disturbed(self, identity: str, key: BindingKey, begin: float, end: float) -> bool:
        times = (self.changes.get(key, ()), self.changes.get(None, ()), self.errors.get(identity, ()))
        return any(_any_in(each, begin, end) for each in times)


def _any_in(times: Sequence[float], begin: float, end: float) -> bool:
    index = bisect_left(times, begin)
    return index < len(times) and times[index] <= end
