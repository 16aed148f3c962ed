"""What plugins are and what they see; everything that an author needs can be imported from here.

For tests of plugins there is ``karmada_scheduler.testing``, for a main of one's own ``karmada_scheduler.command``.

- ``scheduling_points``, ``binding_points``: the extension points and their contexts, with the contract of each.
- ``run_hook``: what a plugin does in the background.
- ``result``, ``cycle``, ``cycle_state``, ``snapshot``, ``handle``: what goes in and comes out.
- ``diagnosis``: why a binding cannot be placed.
- ``extender``: the same points for HTTP extenders.

``framework.runtime`` runs plugins, ``framework.profile`` builds them from configuration; authors need neither.
"""

from karmada_scheduler.api.binding import Binding, BindingKey, BindingSpec, TargetCluster
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.placement import Placement
from karmada_scheduler.api.workload import OwnerReference, Workload, WorkloadAnswer
from karmada_scheduler.framework.binding_points import (
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
from karmada_scheduler.framework.diagnosis import (
    Diagnosis,
    FitError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.handle import DetachedHandle, Handle, WaitingBinding
from karmada_scheduler.framework.result import SKIP, SUCCESS, Code, Result
from karmada_scheduler.framework.run_hook import RunPlugin
from karmada_scheduler.framework.scheduling_points import (
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
    "FilterContext",
    "FilterPlugin",
    "FitError",
    "Handle",
    "InFlight",
    "NormalizeScoreContext",
    "NormalizeScorePlugin",
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
    "ReservePlugin",
    "Result",
    "RunPlugin",
    "SchedulingError",
    "ScoreContext",
    "ScorePlugin",
    "SelectAnswer",
    "SelectContext",
    "SelectPlugin",
    "Snapshot",
    "StateKey",
    "TargetCluster",
    "UndeclaredWorkloadError",
    "UnschedulableError",
    "WaitingBinding",
    "Workload",
    "WorkloadAnswer",
]
