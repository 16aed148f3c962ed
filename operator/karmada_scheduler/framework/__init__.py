"""What plugins are and what they see; everything that an author needs can be imported from here.

- ``interface``: the extension points and their contexts.
- ``result``, ``cycle_state``, ``snapshot``: what goes in and comes out.
- ``diagnosis``: why a binding has no place.
- ``registry``, ``runtime``: which plugins there are, and how they are run.
"""

from karmada_scheduler.framework.cycle_state import CycleState, StateKey
from karmada_scheduler.framework.diagnosis import (
    Diagnosis,
    FitError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.interface import (
    MAX_CLUSTER_SCORE,
    MIN_CLUSTER_SCORE,
    Cycle,
    FilterContext,
    FilterPlugin,
    NormalizeScoreContext,
    NormalizeScorePlugin,
    Peers,
    Plugin,
    ScoreContext,
    ScorePlugin,
)
from karmada_scheduler.framework.registry import Factory, Registry, Selection, SelectionMessage
from karmada_scheduler.framework.result import SUCCESS, Code, Result
from karmada_scheduler.framework.runtime import Framework, Observer
from karmada_scheduler.framework.snapshot import Snapshot

__all__ = [
    "MAX_CLUSTER_SCORE",
    "MIN_CLUSTER_SCORE",
    "SUCCESS",
    "Code",
    "Cycle",
    "CycleState",
    "Diagnosis",
    "Factory",
    "FilterContext",
    "FilterPlugin",
    "FitError",
    "Framework",
    "NormalizeScoreContext",
    "NormalizeScorePlugin",
    "Observer",
    "Peers",
    "Plugin",
    "PluginError",
    "Registry",
    "Result",
    "SchedulingError",
    "ScoreContext",
    "ScorePlugin",
    "Selection",
    "SelectionMessage",
    "Snapshot",
    "StateKey",
    "UnschedulableError",
]
