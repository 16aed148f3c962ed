"""The contract between the scheduler and plugins. Plugin authors import from here.

``karmada_scheduler.testing`` has tools for tests of plugins, ``karmada_scheduler.command`` starts a scheduler with
plugins of its own.

- ``scheduling_points``, ``guard_point``, ``binding_points``: the extension points, with the contract
  and the context of each.
- ``plugin``: the common part of all plugins, and the background task of a plugin.
- ``result``, ``cycle``, ``snapshot``, ``handle``: arguments and results of plugins.
- ``diagnosis``: the errors that end an attempt.
- ``evidence``, ``edits``, ``events``: what a filter says about its refusals: what it compared, what would change its
  answer, and what may end the refusal.
- ``extender``: Filter, Score and Bind for HTTP extenders.

``framework.runtime`` runs plugins, ``framework.profile`` builds them from the configuration; authors need neither.
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
    SortKeyPlugin,
)
from karmada_scheduler.framework.cycle import Candidate, Cycle, CycleState, Peers, StateKey
from karmada_scheduler.framework.diagnosis import (
    Diagnosis,
    FitError,
    PluginError,
    SchedulingError,
    UnschedulableError,
)
from karmada_scheduler.framework.edits import (
    BECOME_READY,
    Edit,
    EditContext,
    Harm,
    ObjectRef,
    Path,
    Side,
)
from karmada_scheduler.framework.evidence import EventKind, Evidence, EvidenceContext, RequeueEvent
from karmada_scheduler.framework.guard_point import (
    EvictionTask,
    GuardAnswer,
    GuardContext,
    GuardObservationPlugin,
    GuardPlugin,
    Proposal,
    ReconsiderContext,
    ReconsiderPlugin,
    StartTermPlugin,
    Terms,
)
from karmada_scheduler.framework.handle import Handle, WaitingBinding
from karmada_scheduler.framework.plugin import Plugin, RunPlugin
from karmada_scheduler.framework.result import SKIP, SUCCESS, Code, Result
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
    "BECOME_READY",
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
    "Diagnosis",
    "Edit",
    "EditContext",
    "EventKind",
    "EvictionTask",
    "Evidence",
    "EvidenceContext",
    "FilterContext",
    "FilterPlugin",
    "FitError",
    "GuardAnswer",
    "GuardContext",
    "GuardObservationPlugin",
    "GuardPlugin",
    "Handle",
    "Harm",
    "NormalizeScoreContext",
    "NormalizeScorePlugin",
    "ObjectRef",
    "OwnerReference",
    "Path",
    "PeerContext",
    "Peers",
    "PermitPlugin",
    "Placement",
    "Plugin",
    "PluginError",
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
    "Proposal",
    "QueueSortPlugin",
    "QueuedBinding",
    "ReconsiderContext",
    "ReconsiderPlugin",
    "RequeueEvent",
    "ReservePlugin",
    "Result",
    "RunPlugin",
    "SchedulingError",
    "ScoreContext",
    "ScorePlugin",
    "SelectAnswer",
    "SelectContext",
    "SelectPlugin",
    "Side",
    "Snapshot",
    "SortKeyPlugin",
    "StartTermPlugin",
    "StateKey",
    "TargetCluster",
    "Terms",
    "UndeclaredWorkloadError",
    "UnschedulableError",
    "WaitingBinding",
    "Workload",
    "WorkloadAnswer",
]
