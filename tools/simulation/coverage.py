"""What must occur in enough runs of a profile: a fault that never applies finds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from tools.simulation.estimators import ESTIMATOR_FAULTS
from tools.simulation.extenders import EXTENDER_FAULTS
from tools.simulation.faults import REQUEST_FAULTS, WATCH_FAULTS
from tools.simulation.plugin_kit import PLUGIN_FAULTS, REFUSES

_FRONT_ENDS: Final = ("front_end_late", "front_end_older")
_FAULTS: Final = {
    "kinds": _FRONT_ENDS,
    "plugins": (*PLUGIN_FAULTS, *_FRONT_ENDS),
    "extenders": (*EXTENDER_FAULTS, *_FRONT_ENDS),
    "estimators": (*ESTIMATOR_FAULTS, *_FRONT_ENDS),
    "readers": _FRONT_ENDS,
}
_COMMON_FAULTS: Final = (*REQUEST_FAULTS, *WATCH_FAULTS)
_COMMON_ACTIONS: Final = (
    "create_binding", "scale", "change_placement", "report_status",
    "put_cluster", "report_cluster", "taint_cluster", "break_cluster", "delete_cluster",
    "kill", "terminate", "freeze", "freeze_leader", "stall", "set_clock",
    "outage", "restore", "cut_watches", "compact", "take_lease", "clear_lease", "delete_lease",
)  # fmt: skip
_SUSPENSIONS: Final = ("suspend", "evict", "finish_eviction")
_CHURN: Final = (*_SUSPENSIONS, "delete_binding", "recreate_binding", "assign_scheduler")
_OBJECTS: Final = (*_CHURN, "break_binding", "repair_binding", "lag_front_end", "move_client")
_ACTIONS: Final = {
    "storm": _SUSPENSIONS,
    "churn": _CHURN,
    "kinds": (*_OBJECTS, "put_policy", "touch_policy", "delete_policy"),
    "plugins": (*_OBJECTS, "replace_plugin", "remove_plugin"),
    "extenders": _OBJECTS,
    "estimators": _OBJECTS,
    "readers": (*_OBJECTS, "put_policy", "touch_policy", "delete_policy", "set_ready"),
    "guard": ("put_policy", "make_sick", "set_ready", "hang_deletion"),
    "mishaps": ("aim", "suspend_machine", "suspend_leader", "name_target", "set_priority"),
    "fail_back": ("fail_cluster",),
    "contended": ("set_priority", "kill_leader"),
    "fair": ("set_priority", "kill_leader"),
}


_NOT_IN: Final = {
    profile: frozenset((
        "empty_list", "partial_list", "change_placement", "report_status", "report_cluster", "taint_cluster",
        "break_cluster", "set_clock", "restore", "take_lease", "clear_lease", "delete_lease", *more,
    ))
    for profile, more in (
        ("guard", ()),
        ("fail_back", ("watch_late", "watch_stalled", "silent", "scale", "delete_cluster")),
        ("contended", ("watch_late", "watch_stalled", "silent")),
        ("fair", ("watch_late", "watch_stalled", "silent")),
    )
}  # fmt: skip
"""Faults and actions that a profile does not have; see their generators."""


_ALONE: Final = {
    "aimed": (
        "aim", "inject", "cut_watches", "place_binding", "kill_leader", "freeze_leader", "terminate", "unjoin_by_force",
        "report_late",
    ),
    "answers": (
        REFUSES, "estimator_silent", "estimator_slow", "unavailable", "lost_before", "conflict", "scale", "restore",
        "stall",
    ),
}  # fmt: skip
"""Profiles that have nothing in common with the others, and what they have."""


def never_occurred(profiles: Iterable[str], faults: Counter[str], actions: Counter[str]) -> list[str]:
    """Return the faults and actions of profiles that did not occur in any of their runs."""
    expected: dict[str, None] = {}
    for profile in profiles:
        common = () if profile in _ALONE else (*_COMMON_FAULTS, *_COMMON_ACTIONS)
        expected |= dict.fromkeys(each for each in common if each not in _NOT_IN.get(profile, ()))
        expected |= dict.fromkeys(
            (*_FAULTS.get(profile, ()), *_ACTIONS.get(profile, ()), *_ALONE.get(profile, ()))
        )
    return [each for each in expected if not faults[each] and not actions[each]]
