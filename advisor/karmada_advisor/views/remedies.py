"""What is said next to a remedy, in explanations and in answers to why-not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # an explanation without remedies needs no search
    from karmada_advisor.explain.remedy_model import Remedy
    from karmada_advisor.whynot.model import VerifiedRemedy


def remarks(remedy: VerifiedRemedy | Remedy) -> list[str]:
    """Return what a person does instead of a patch, and what speaks against the remedy."""
    instead = dict.fromkeys(each.instead for each in remedy.edits if each.instead)
    return [*instead, *([remedy.caution] if remedy.caution else [])]
