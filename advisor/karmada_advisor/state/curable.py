"""Whether a search for changes can find any that help a binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from karmada_advisor.state.model import BindingState, Placed, StateName
from karmada_advisor.state.propagation import Suspended
from karmada_advisor.state.reading import DETECTOR_FIRST
from karmada_advisor.state.stored import condition_of
from karmada_scheduler.api.binding import Binding

_UNDECIDED: Final = ("held", "nobody decides", "not decided yet", "not placed", "out of date", "stuck")
_CURABLE: Final = frozenset(map(StateName, _UNDECIDED))


def lacks_a_decision(state: BindingState, binding: Binding) -> bool:
    """Return whether a binding lacks clusters, or the last decision about it has failed or was not made."""
    if state.reason in DETECTOR_FIRST:
        return False  # Karmada's detector comes first
    return state.name in _CURABLE or state.placed is Placed.PART or condition_of(binding).status == "False"


def may_be_cured(state: BindingState, binding: Binding, manifest: Mapping[str, Any]) -> bool:
    """Return whether a decision is lacking, or changes do not arrive on a cluster.

    Args:
        state: What is stored about the binding.
        binding: The binding.
        manifest: The same as it was read.
    """
    conflicts = any(each.is_conflict for each in state.rows)
    return conflicts or bool(Suspended.of(manifest)) or lacks_a_decision(state, binding)
