"""What plugins are and what they see; everything that an author needs can be imported from here.

- ``deciding``, ``binding``: the extension points and their contexts, with the contract of each.
- ``result``, ``cycle``, ``cycle_state``, ``snapshot``, ``handle``: what goes in and comes out.
- ``diagnosis``: why a binding has no place.
- ``points``, ``lineup``, ``registry``, ``profile``: which plugins there are, and which run where.
- ``runtime``, ``binding_runtime``, ``guard``, ``isolation``: how they are run, and kept from doing harm.
- ``extender``: the same points for programs elsewhere.
"""

from karmada_scheduler.framework.binding import (
    MAX_PERMIT_SECONDS,
    BindContext,
    BindPlugin,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    PreEnqueueContext,
    PreEnqueuePlugin,
    QueuedBinding,
    QueueSortPlugin,
    ReservePlugin,
)
from karmada_scheduler.framework.cycle import Candidate, Cycle, Peers
from karmada_scheduler.framework.cycle_state import CycleState, StateKey
from karmada_scheduler.framework.deciding import (
    MAX_CLUSTER_SCORE,
    MIN_CLUSTER_SCORE,
    AssignContext,
    AssignPlugin,
    FilterContext,
    FilterPlugin,
    NormalizeScoreContext,
    NormalizeScorePlugin,
    PeerContext,
    Plugin,
    PostFilterContext,
    PostFilterPlugin,
    PreFilterContext,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScoreContext,
    PreScorePlugin,
    ScoreContext,
    ScorePlugin,
    SelectContext,
    SelectPlugin,
)
from karmada_scheduler.framework.diagnosis import (
    Diagnosis,
    FitError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.guard import Guard, Observer
from karmada_scheduler.framework.handle import DetachedHandle, Handle, WaitingBinding
from karmada_scheduler.framework.lineup import Lineup
from karmada_scheduler.framework.points import Point
from karmada_scheduler.framework.registry import Factory, Registry, Selection, SelectionMessage
from karmada_scheduler.framework.result import SKIP, SUCCESS, Code, Result
from karmada_scheduler.framework.runtime import Framework
from karmada_scheduler.framework.snapshot import Snapshot

__all__ = [
    "MAX_CLUSTER_SCORE",
    "MAX_PERMIT_SECONDS",
    "MIN_CLUSTER_SCORE",
    "SKIP",
    "SUCCESS",
    "AssignContext",
    "AssignPlugin",
    "BindContext",
    "BindPlugin",
    "Candidate",
    "Code",
    "Cycle",
    "CycleState",
    "DetachedHandle",
    "Diagnosis",
    "Factory",
    "FilterContext",
    "FilterPlugin",
    "FitError",
    "Framework",
    "Guard",
    "Handle",
    "Lineup",
    "NormalizeScoreContext",
    "NormalizeScorePlugin",
    "Observer",
    "PeerContext",
    "Peers",
    "PermitPlugin",
    "Plugin",
    "PluginError",
    "Point",
    "PostBindPlugin",
    "PostFilterContext",
    "PostFilterPlugin",
    "PreBindPlugin",
    "PreEnqueueContext",
    "PreEnqueuePlugin",
    "PreFilterContext",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreScoreContext",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueuedBinding",
    "Registry",
    "ReservePlugin",
    "Result",
    "SchedulingError",
    "ScoreContext",
    "ScorePlugin",
    "SelectContext",
    "SelectPlugin",
    "Selection",
    "SelectionMessage",
    "Snapshot",
    "StateKey",
    "UnschedulableError",
    "WaitingBinding",
]
