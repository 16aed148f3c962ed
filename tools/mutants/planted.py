"""Mistakes of one to three lines that a review made by hand; most of them are not made by an operator.

Each was made in an earlier version of the scheduler, and is written here for today's names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.mutants import results
from tools.mutants.live import Live
from tools.mutants.mutation import ROOT
from tools.mutants.session import Forks
from tools.mutants.tracing import imported

_OPERATOR: Final = "operator/karmada_scheduler/"
_PLUGINS: Final = "plugins/karmada_scheduler_plugins/"
_SECONDS: Final = 60.0
"""The CPU time that the tests of a directory take at most, without a mistake."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A mistake, and the directories of the unit tests that should see it."""

    name: str
    module: str
    before: str
    after: str
    directories: tuple[str, ...]


PLANTED: Final = (
    Planted(
        "PlacementGuard counts a move on after it is stored",
        f"{_PLUGINS}_moves_under_way.py",
        "self._being_written.pop(context.binding.key, None)\n",
        "pass\n",
        ("plugins", "properties"),
    ),
    Planted(
        "a change of a cluster's taints or spec enqueues nothing",
        f"{_OPERATOR}core/requeue_rules.py",
        "if old.labels != new.labels or old.generation != new.generation or old.uid != new.uid:",
        "if old.labels != new.labels or old.uid != new.uid:",
        ("informer",),
    ),
    Planted(
        "a write that fails loses the earlier assumed placement",
        f"{_OPERATOR}cache/assumed.py",
        "self._replace(key, before if before is not None and before.workloads else None)",
        "self._replace(key, None)",
        ("cache",),
    ),
    Planted(
        "a decision is written over a newer spec",
        f"{_OPERATOR}binding_cycle/spec_writer.py",
        "return newest if _decision_inputs(newest) == _decision_inputs(binding) else binding",
        "return newest if newest.uid == binding.uid else binding",
        ("binding_cycle",),
    ),
    Planted(
        "a late answer of an estimator counts as 0 replicas",
        f"{_OPERATOR}estimator/session.py",
        'late = EstimatorResponse(NO_OPINION, f"no answer',
        'late = EstimatorResponse(0, f"no answer',
        ("estimator",),
    ),
    Planted(
        "a watch swallows its cancellation",
        f"{_OPERATOR}informer/reflector.py",
        "if not self._is_interrupted or task.uncancel() > 0:\n                raise\n            return None\n",
        "task.uncancel()\n            return None\n\n",
        ("informer",),
    ),
    Planted(
        "FailBack's wait goes on after a miss",
        f"{_PLUGINS}fail_back.py",
        "self._clocks.pop(binding.key, None)\n            return Result.unschedulable(problem)\n",
        "return Result.unschedulable(problem)\n\n",
        ("plugins", "properties"),
    ),
    Planted(
        "generations are compared with <",
        f"{_OPERATOR}core/requeue_rules.py",
        "if old.generation != new.generation or _is_observation_due(",
        "if old.generation < new.generation or _is_observation_due(",
        ("informer", "scheduler"),
    ),
    Planted(
        "PlacementGuard forgets the earlier moves of a binding",
        f"{_PLUGINS}placement_guard.py",
        "moves = (*self._books.recent(binding, now), RecordedMove(now, move.replicas))",
        "moves = (RecordedMove(now, move.replicas),)",
        ("plugins", "properties"),
    ),
    Planted(
        "the pause that a refusal asks for is lost",
        f"{_OPERATOR}binding_cycle/cycle.py",
        'retry_after = getattr(error, "retry_after", 0.0) or decision.retry_after',
        "retry_after = decision.retry_after",
        ("binding_cycle",),
    ),
    Planted(
        "PlacementGuard does not count a move whose answer was lost",
        f"{_PLUGINS}_moves_under_way.py",
        "self._lost[key] = move._replace(version=version,",
        "move._replace(version=version,",
        ("plugins", "properties"),
    ),
)
FOLDERS: Final = tuple(
    sorted({f"tests/unit/{directory}" for each in PLANTED for directory in each.directories})
)


def run(forks: Forks) -> None:
    """Plant one mistake after the other, and print which test sees it."""
    for number, each in enumerate(PLANTED, start=1):
        print(f"{number:>2} {each.name}: {_seen_by(forks, each) or 'seen by no test'}", flush=True)


def _seen_by(forks: Forks, planted: Planted) -> str:
    imported([planted.module])
    live = Live([planted.module])

    def plant() -> None:
        path = Path(ROOT / planted.module)
        code = compile(
            _changed(path.read_text(encoding="utf-8"), planted), str(path), "exec", dont_inherit=True
        )
        live.replace(planted.module, code)

    folders = tuple(f"tests/unit/{directory}/" for directory in planted.directories)
    left = [name for name in forks.items if name.startswith(folders)]
    while left:
        answer = forks.first_failure(left, plant, _SECONDS)
        if answer not in left:
            return answer and f"seen by a {answer}" if answer != results.INVALID else answer
        if forks.first_failure([answer], plant, _SECONDS):
            return f"seen by {answer}"
        left = left[left.index(answer) + 1 :]
    return ""


def _changed(source: str, planted: Planted) -> str:
    """Return the module with the mistake; functions stay in their lines."""
    if source.count(planted.before) != 1:
        raise ValueError(f"{planted.module} has no single place for: {planted.name}")
    return source.replace(planted.before, planted.after)
