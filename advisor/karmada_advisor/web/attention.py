"""What needs attention: the summary that ``explain -A`` prints, with the causes that idle moments have found so far."""

from __future__ import annotations

from functools import lru_cache

from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.explain.overview import ExplanationSummary, summary_of
from karmada_advisor.views.state import headline
from karmada_advisor.web.answers import CauseScan
from karmada_advisor.web.state import PageState


@lru_cache(maxsize=2)
def summary(state: PageState, scan: CauseScan) -> ExplanationSummary:
    """Return all bindings by state and cause.

    Args:
        state: What was read.
        scan: The causes that are known.
    """
    contents = state.contents
    known = {each.key: [each.cause] for each in scan.found}
    return summary_of(
        [(binding, row.state) for binding, row in zip(contents.bindings, contents.rows, strict=True)],
        lambda binding: known.get(binding.key, []),
        headline,
        scope="",
        clusters=len(contents.clusters),
        provenance=Provenance(
            Tense.RECOMPUTED, state.source, state.read_at.strftime("%Y-%m-%dT%H:%M:%SZ"), rules=scan.rules
        ),
    )
