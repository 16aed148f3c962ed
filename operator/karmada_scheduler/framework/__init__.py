"""What plugins are and what they see; everything that an author needs can be imported from here.

For tests of plugins there is ``karmada_scheduler.testing``, for a main of one's own ``karmada_scheduler.command``.

- ``deciding``, ``binding``: the extension points and their contexts, with the contract of each.
- ``running``: what a plugin does beside decisions.
- ``result``, ``cycle``, ``cycle_state``, ``snapshot``, ``handle``: what goes in and comes out.
- ``diagnosis``: why a binding has no place.
- ``points``, ``lineup``, ``registry``, ``profile``: which plugins there are, and which run where.
- ``runtime``, ``binding_runtime``, ``guard``, ``isolation``: how they are run, and kept from doing harm.
- ``extender``: the same points for programs elsewhere.
"""

from karmada_scheduler.api.binding import Binding, BindingKey, BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.workload import OwnerReference, Workload, WorkloadAnswer
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
from karmada_scheduler.framework.cycle import Candidate, Cycle, InFlight, Peers
from karmada_scheduler.framework.cycle_state import CycleState, StateKey
from karmada_scheduler.framework.deciding import (
    MAX_CLUSTER_SCORE,
    MIN_CLUSTER_SCORE,
    AssignAnswer,
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
    PreFilterAnswer,
    PreFilterContext,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScoreContext,
    PreScorePlugin,
    ScoreContext,
    ScorePlugin,
    SelectAnswer,
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
from karmada_scheduler.framework.making import Factory, Registration
from karmada_scheduler.framework.points import Point
from karmada_scheduler.framework.registry import Registry, Selection, SelectionMessage
from karmada_scheduler.framework.result import SKIP, SUCCESS, Code, Result
from karmada_scheduler.framework.running import RunPlugin
from karmada_scheduler.framework.runtime import Framework
from karmada_scheduler.framework.snapshot import Snapshot
from karmada_scheduler.framework.workload import UndeclaredWorkloadError

__all__ = [
    "MAX_CLUSTER_SCORE",
    "MAX_PERMIT_SECONDS",
    "MIN_CLUSTER_SCORE",
    "SKIP",
    "SUCCESS",
    "AssignAnswer",
    "AssignContext",
    "AssignPlugin",
    "BindContext",
    "BindPlugin",
    "Binding",
    "BindingKey",
    "BindingSpec",
    "Candidate",
    "Cluster",
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
    "InFlight",
    "Lineup",
    "NormalizeScoreContext",
    "NormalizeScorePlugin",
    "Observer",
    "OwnerReference",
    "PeerContext",
    "Peers",
    "PermitPlugin",
    "Placement",
    "Plugin",
    "PluginError",
    "Point",
    "PostBindPlugin",
    "PostFilterContext",
    "PostFilterPlugin",
    "PreBindPlugin",
    "PreEnqueueContext",
    "PreEnqueuePlugin",
    "PreFilterAnswer",
    "PreFilterContext",
    "PreFilterExtensions",
    "PreFilterPlugin",
    "PreScoreContext",
    "PreScorePlugin",
    "QueueSortPlugin",
    "QueuedBinding",
    "Registration",
    "Registry",
    "ReservePlugin",
    "Result",
    "RunPlugin",
    "SchedulingError",
    "ScoreContext",
    "ScorePlugin",
    "SelectAnswer",
    "SelectContext",
    "SelectPlugin",
    "Selection",
    "SelectionMessage",
    "Snapshot",
    "StateKey",
    "TargetCluster",
    "UndeclaredWorkloadError",
    "UnschedulableError",
    "WaitingBinding",
    "Workload",
    "WorkloadAnswer",
]
