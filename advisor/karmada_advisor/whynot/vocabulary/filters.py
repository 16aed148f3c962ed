"""Edits for a cluster that a filter refuses."""

from __future__ import annotations

from collections.abc import Iterator

from karmada_advisor.whynot.vocabulary.context import Context
from karmada_scheduler.framework.edits import Edit, EditsPlugin
from karmada_scheduler_plugins.placement_edits import drop_term


def proposals(context: Context) -> Iterator[Edit]:
    """Yield the edits of the plugin that refuses the cluster first, and the one that drops the affinity term in use."""
    offered = _of_plugin(context)
    yield from offered
    yield from (change for change in _without_term(context) if change not in offered)


def _of_plugin(context: Context) -> list[Edit]:
    framework = context.objects.scheduler.rules.frameworks.of(context.binding)
    for plugin in framework.plugins.unique if framework is not None else ():
        if plugin.name == context.blocker.code and isinstance(plugin, EditsPlugin):
            try:
                return [change for change in plugin.edits(context) if isinstance(change, Edit)]
            except Exception:  # noqa: BLE001 (a plugin can raise anything)
                return []
    return []


def _without_term(context: Context) -> Iterator[Edit]:
    """Yield the edit that drops the term in which the cluster is refused, if another term follows."""
    listed = context.placement_items("clusterAffinities")
    if context.attempt is None or len(listed) < 2:
        return
    for index, term in enumerate(listed):
        if isinstance(term, dict) and term.get("affinityName") == context.attempt.affinity_name:
            yield drop_term(context, index, context.attempt.affinity_name, extra=1.0)
