"""The codes of causes; docs/explain.md says what each means. A plugin has its own."""

from __future__ import annotations

from typing import Final

from karmada_scheduler_plugins.registry import IN_TREE

CODES: Final = frozenset({
    "AggregatedFewest", "AnnotationUnreadable", "ApplyPolicyFailed", "BackingOff", "BeingDeleted",
    "BurstOvercommit", "ClaimHeld", "ClusterBeingDeleted", "ClusterMissing", "ClusterNotReady",
    "ClusterUnknown", "ComponentSets", "DecidedOtherwise", "DecisionRefused", "DispatchingSuspended",
    "EstimatorFailed", "Evicting", "FewerReplicas", "Gated", "HeldAtGuard", "KeptAtGuard", "KeptOnFailure",
    "LeavingGracefully", "LessRoom", "LocalityKeeps", "LowerScore", "MaxGroupsReached", "MaxGroupsZero",
    "MinGroupsUnmet", "MinRegionsUnmet", "NameTie", "NoCapacityCheck", "NoClusters", "NoEviction",
    "NoPlacement", "NotApplied", "NotClaimed", "NotDecidedYet", "NotEnoughRoom", "NotOurs", "NotRetried", "NotStarted",
    "NothingAsks", "NothingSelected", "OnlyPodsCount", "OtherNumber", "OtherScheduler", "OutOfDate",
    "OwnReplicasCount", "PluginCodeMissing", "PluginFailed", "PluginRefused", "PluginSelected",
    "PluginsNotKnown", "PolicyChosen", "PolicyLazy", "PriorityClassMissing", "PurgeModeRefused", "QuotaLimits", "QuotaRefused",
    "RebalancerTooOld", "RecordedFailure", "RecordedRefusal", "Refused", "RegionFewerClusters",
    "RegionNotNeeded", "RegionOneCluster", "RegionTie", "RegionWeight", "RegionsFirst", "Released",
    "Reported", "RescheduleRemoves", "ResourceNotInModels", "RollingOut", "RoundedAway", "SchedulerDown", "SchedulerMissing",
    "Seats", "SelectFailed", "SetSuffices", "SpreadIgnored", "SpreadUnsupported", "StaleCondition",
    "SteadyKeeps", "SteadyShrinks", "StrategyUnsupported", "SummaryCounts", "Suspended", "TemplateDiffers",
    "TermAhead", "TermBehind", "TermsDoNotAdd", "TieByUid", "TierAhead", "TooLittleSelected", "Unhealthy",
    "ValueUnknown", "WaitingInQueue", "WarnedAtGuard", "WeightMissing", "WorkloadFailed", "ZeroReplicas",
    "ZeroSeats",
    *(code for plugin in IN_TREE.values() for code in getattr(plugin, "codes", ())),
})  # fmt: skip
