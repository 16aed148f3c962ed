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

from karmada_scheduler.api.binding import Binding as Binding
from karmada_scheduler.api.binding import BindingKey as BindingKey
from karmada_scheduler.api.binding import BindingSpec as BindingSpec
from karmada_scheduler.api.binding import TargetCluster as TargetCluster
from karmada_scheduler.api.cluster import Cluster as Cluster
from karmada_scheduler.api.placement import Placement as Placement
from karmada_scheduler.api.workload import OwnerReference as OwnerReference
from karmada_scheduler.api.workload import Workload as Workload
from karmada_scheduler.api.workload import WorkloadAnswer as WorkloadAnswer
from karmada_scheduler.framework.binding_points import MAX_PERMIT_SECONDS as MAX_PERMIT_SECONDS
from karmada_scheduler.framework.binding_points import BindContext as BindContext
from karmada_scheduler.framework.binding_points import BindPlugin as BindPlugin
from karmada_scheduler.framework.binding_points import PermitPlugin as PermitPlugin
from karmada_scheduler.framework.binding_points import PostBindPlugin as PostBindPlugin
from karmada_scheduler.framework.binding_points import PreBindPlugin as PreBindPlugin
from karmada_scheduler.framework.binding_points import PreEnqueueContext as PreEnqueueContext
from karmada_scheduler.framework.binding_points import PreEnqueuePlugin as PreEnqueuePlugin
from karmada_scheduler.framework.binding_points import QueuedBinding as QueuedBinding
from karmada_scheduler.framework.binding_points import QueueGroupPlugin as QueueGroupPlugin
from karmada_scheduler.framework.binding_points import QueueSortPlugin as QueueSortPlugin
from karmada_scheduler.framework.binding_points import ReservePlugin as ReservePlugin
from karmada_scheduler.framework.binding_points import SortKeyPlugin as SortKeyPlugin
from karmada_scheduler.framework.cycle import Candidate as Candidate
from karmada_scheduler.framework.cycle import Cycle as Cycle
from karmada_scheduler.framework.cycle import CycleState as CycleState
from karmada_scheduler.framework.cycle import Peers as Peers
from karmada_scheduler.framework.cycle import ReplicaEstimate as ReplicaEstimate
from karmada_scheduler.framework.cycle import StateKey as StateKey
from karmada_scheduler.framework.diagnosis import Diagnosis as Diagnosis
from karmada_scheduler.framework.diagnosis import FitError as FitError
from karmada_scheduler.framework.diagnosis import NotEnoughCapacityError as NotEnoughCapacityError
from karmada_scheduler.framework.diagnosis import PluginError as PluginError
from karmada_scheduler.framework.diagnosis import SchedulingError as SchedulingError
from karmada_scheduler.framework.diagnosis import UnschedulableError as UnschedulableError
from karmada_scheduler.framework.edits import BECOME_READY as BECOME_READY
from karmada_scheduler.framework.edits import Edit as Edit
from karmada_scheduler.framework.edits import EditContext as EditContext
from karmada_scheduler.framework.edits import Harm as Harm
from karmada_scheduler.framework.edits import ObjectRef as ObjectRef
from karmada_scheduler.framework.edits import Path as Path
from karmada_scheduler.framework.edits import Side as Side
from karmada_scheduler.framework.evidence import EventKind as EventKind
from karmada_scheduler.framework.evidence import Evidence as Evidence
from karmada_scheduler.framework.evidence import EvidenceContext as EvidenceContext
from karmada_scheduler.framework.evidence import RequeueEvent as RequeueEvent
from karmada_scheduler.framework.guard_point import EvictionTask as EvictionTask
from karmada_scheduler.framework.guard_point import GuardAnswer as GuardAnswer
from karmada_scheduler.framework.guard_point import GuardContext as GuardContext
from karmada_scheduler.framework.guard_point import GuardObservationPlugin as GuardObservationPlugin
from karmada_scheduler.framework.guard_point import GuardPlugin as GuardPlugin
from karmada_scheduler.framework.guard_point import Proposal as Proposal
from karmada_scheduler.framework.guard_point import ReconsiderContext as ReconsiderContext
from karmada_scheduler.framework.guard_point import ReconsiderPlugin as ReconsiderPlugin
from karmada_scheduler.framework.guard_point import StartTermPlugin as StartTermPlugin
from karmada_scheduler.framework.guard_point import Terms as Terms
from karmada_scheduler.framework.handle import Handle as Handle
from karmada_scheduler.framework.handle import WaitingBinding as WaitingBinding
from karmada_scheduler.framework.plugin import ObservePlugin as ObservePlugin
from karmada_scheduler.framework.plugin import Plugin as Plugin
from karmada_scheduler.framework.plugin import RunPlugin as RunPlugin
from karmada_scheduler.framework.result import SKIP as SKIP
from karmada_scheduler.framework.result import SUCCESS as SUCCESS
from karmada_scheduler.framework.result import Code as Code
from karmada_scheduler.framework.result import Result as Result
from karmada_scheduler.framework.scheduling_points import MAX_CLUSTER_SCORE as MAX_CLUSTER_SCORE
from karmada_scheduler.framework.scheduling_points import MIN_CLUSTER_SCORE as MIN_CLUSTER_SCORE
from karmada_scheduler.framework.scheduling_points import AssignAnswer as AssignAnswer
from karmada_scheduler.framework.scheduling_points import AssignContext as AssignContext
from karmada_scheduler.framework.scheduling_points import AssignPlugin as AssignPlugin
from karmada_scheduler.framework.scheduling_points import EstimateContext as EstimateContext
from karmada_scheduler.framework.scheduling_points import EstimateReplicasPlugin as EstimateReplicasPlugin
from karmada_scheduler.framework.scheduling_points import FilterClustersContext as FilterClustersContext
from karmada_scheduler.framework.scheduling_points import FilterClustersPlugin as FilterClustersPlugin
from karmada_scheduler.framework.scheduling_points import FilterContext as FilterContext
from karmada_scheduler.framework.scheduling_points import FilterPlugin as FilterPlugin
from karmada_scheduler.framework.scheduling_points import NormalizeScoreContext as NormalizeScoreContext
from karmada_scheduler.framework.scheduling_points import NormalizeScorePlugin as NormalizeScorePlugin
from karmada_scheduler.framework.scheduling_points import PeerContext as PeerContext
from karmada_scheduler.framework.scheduling_points import PostFilterContext as PostFilterContext
from karmada_scheduler.framework.scheduling_points import PostFilterPlugin as PostFilterPlugin
from karmada_scheduler.framework.scheduling_points import PreFilterAnswer as PreFilterAnswer
from karmada_scheduler.framework.scheduling_points import PreFilterContext as PreFilterContext
from karmada_scheduler.framework.scheduling_points import PreFilterExtensions as PreFilterExtensions
from karmada_scheduler.framework.scheduling_points import PreFilterPlugin as PreFilterPlugin
from karmada_scheduler.framework.scheduling_points import PreScoreContext as PreScoreContext
from karmada_scheduler.framework.scheduling_points import PreScorePlugin as PreScorePlugin
from karmada_scheduler.framework.scheduling_points import ScoreContext as ScoreContext
from karmada_scheduler.framework.scheduling_points import ScorePlugin as ScorePlugin
from karmada_scheduler.framework.scheduling_points import SelectAnswer as SelectAnswer
from karmada_scheduler.framework.scheduling_points import SelectContext as SelectContext
from karmada_scheduler.framework.scheduling_points import SelectPlugin as SelectPlugin
from karmada_scheduler.framework.scheduling_points import Shortage as Shortage
from karmada_scheduler.framework.snapshot import Snapshot as Snapshot
from karmada_scheduler.framework.workload import UndeclaredWorkloadError as UndeclaredWorkloadError
