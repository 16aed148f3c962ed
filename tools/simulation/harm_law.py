"""The law ``no harm``: a binding loses a cluster only by a decision about clusters that were stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from tools.apiserver_model import Write
from tools.manifests import targets_of
from tools.simulation.decisions import DecisionCore, ReadableClusters, Targets, read_binding
from tools.simulation.extenders import EXTENDER_FAULTS

if TYPE_CHECKING:
    from tools.simulation.run import Run


class HarmLaw:
    """Judges writes of clusters by all states that the clusters have had."""

    def __init__(
        self, run: Run, core: DecisionCore, accepted: Counter[str], add: Callable[[str, str], None]
    ) -> None:
        """Start with no cluster.

        Args:
            run: The run.
            core: What is decided.
            accepted: Counts uses of exceptions by name.
            add: Records a violation of an invariant, with a text.
        """
        self._run, self._core, self._accepted, self._add = run, core, accepted, add
        self._clusters = ReadableClusters()
        self._cluster_states: list[tuple[tuple[Cluster, ...], frozenset[str]]] = [((), frozenset())]

    def clusters_now(self) -> tuple[tuple[Cluster, ...], frozenset[str]]:
        """Return the clusters in their last readable versions, and the names of those that cannot be read now."""
        return self._clusters.read(self._run.model.state("Cluster"))

    def cluster_states(self) -> Iterator[tuple[tuple[Cluster, ...], frozenset[str]]]:
        """Yield all states of the clusters so far, the newest first, each with the names of those that are unreadable."""
        return reversed(self._cluster_states)

    def note_clusters(self) -> None:
        """Note the clusters as they are stored now."""
        found, unreadable = self.clusters_now()
        self._cluster_states.append((found, frozenset()))
        if unreadable:
            readable = tuple(each for each in found if each.name not in unreadable)
            self._cluster_states.append((readable, unreadable))

    def check(self, write: Write) -> None:
        """Judge a write of clusters."""
        assert write.before is not None  # schedulers patch
        assert write.after is not None
        before, after = self._in_its_term(orjson.loads(write.before)), targets_of(orjson.loads(write.after))
        if read_binding(write.before) is None:
            self._add("no harm", f"{write.key}: is unreadable, and was written")
        elif not self._keeps(targets_of(before), after) and not self._fits_a_state(before, after):
            if self._lacks_unused_clusters(before, after):
                self._accepted["clusters that no binding has are missing"] += 1
            elif self._fits_a_state(_without_own_tasks(before, after), after):
                self._accepted["a graceful move is cancelled"] += 1
            elif self._lacks_scores(before, after):
                self._accepted["an extender failed to score"] += 1
            elif any(
                self._fits_a_state(each, after) or self._lacks_unused_clusters(each, after)
                for each in self._lost_contents(write)
            ):
                self._accepted["a resourceVersion had another content before a restore"] += 1
            else:
                self._add(
                    "no harm", f"{write.key}: {targets_of(before)} -> {after} fits no state of the clusters"
                )

    def lost_term(self, manifest: Any) -> str:
        """Return that a binding has the wrong affinity term in its status; "" if it does not."""
        name = (manifest.get("status") or {}).get("schedulerObservingAffinityName") or ""
        terms = self._terms_of_targets(manifest)
        return f"has the term {name!r}, its clusters are of {terms}" if terms and name not in terms else ""

    def _in_its_term(self, manifest: Any) -> Any:
        """Return a binding with the affinity term of its clusters, if its status has the one before.

        The leader that has chosen the clusters may have ended before it has written the status.
        """
        if not self.lost_term(manifest):
            return manifest
        name = self._terms_of_targets(manifest)[0]
        return {**manifest, "status": {**manifest["status"], "schedulerObservingAffinityName": name}}

    def _terms_of_targets(self, manifest: Any) -> list[str]:
        """Return the affinity terms that have selected all clusters of a binding at some time, those of now first."""
        binding = Binding.from_manifest(manifest)
        terms = () if binding.spec.placement is None else binding.spec.placement.cluster_affinities
        if not terms or not binding.spec.clusters:
            return []
        found: dict[str, None] = {}
        for clusters, _ in self.cluster_states():
            chosen = [each for each in clusters if each.name in binding.spec.target_names]
            if len(chosen) == len(binding.spec.target_names):
                found |= {
                    term.affinity_name: None for term in terms if all(map(term.affinity.matches, chosen))
                }
        return [*found]

    def _fits_a_state(self, before: Any, after: Targets) -> bool:
        """Return whether the clusters are what is decided about a binding for any clusters that were stored."""
        return any(
            # A binding on a cluster that cannot be read stays there, also where its last version is not known.
            hidden.isdisjoint(targets_of(before)) and self._core.explains(before, after, clusters)
            for clusters, hidden in reversed(self._cluster_states)
        )

    def _lacks_unused_clusters(self, before: Any, after: Targets) -> bool:
        """Return whether a change is what is decided without clusters that a first list of the process lacked.

        Nobody can notice that if no binding has these clusters (docs/decisions/0021-unknown-clusters.md). Each cluster
        that the binding loses has to be one that it loses with all clusters, too.
        """
        if not after or not self._run.faults.had_wrong_list("clusters"):
            return False
        lost = targets_of(before).keys() - after
        for clusters, hidden in reversed(self._cluster_states):
            known = [each for each in clusters if each.name in after or each.name in targets_of(before)]
            if hidden.isdisjoint(targets_of(before)) and self._core.explains(before, after, known):
                decided = self._core.decide(Binding.from_manifest(before), clusters).targets
                if lost.isdisjoint(each.name for each in decided):
                    return True
        return False

    @property
    def has_failed_to_score(self) -> bool:
        """Whether an extender has failed to score in this run."""
        hits = self._run.faults.hits
        return any(kind in EXTENDER_FAULTS and request == "extender prioritize" for kind, request in hits)

    def _lacks_scores(self, before: Any, after: Targets) -> bool:
        """Return whether a change is what is decided without the scores of an extender that failed to score before."""
        return self.has_failed_to_score and any(
            hidden.isdisjoint(targets_of(before))
            and self._core.explains_without_scores(before, after, clusters)
            for clusters, hidden in reversed(self._cluster_states)
        )

    def _lost_contents(self, write: Write) -> Iterator[Any]:
        """Yield what the binding of a write had in the same resourceVersion before a restore, which counts from there again.

        A write about that content cannot be distinguished from one about the new content: uid and resourceVersion are the same.
        The scheduler decides again as soon as its watch has the new content.
        """
        assert write.before is not None
        before = orjson.loads(write.before)["metadata"]
        for each in self._run.model.writes:
            if each.epoch >= write.epoch:
                return
            if (each.kind, each.key) == (write.kind, write.key) and each.after is not None:
                found = orjson.loads(each.after)
                if all(found["metadata"][name] == before[name] for name in ("uid", "resourceVersion")):
                    yield found

    def _keeps(self, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
        """Return whether a change takes nothing away.

        A first placement does not, and neither does another cluster in addition. Nobody can notice that the first list
        of a process lacks clusters that no binding has. A binding then gets more replicas on fewer clusters.
        """
        if before.items() <= after.items():
            return True
        lists = self._run.faults.hits["partial_list", "LIST clusters"]
        return lists > 0 and all(after.get(name, -1) >= count for name, count in before.items())


def _without_own_tasks(before: Any, after: Targets) -> Any:
    """Return a binding without the eviction tasks of its scheduler for its new clusters, which PlacementGuard cancels."""
    spec = before["spec"]
    kept = [
        each
        for each in spec.get("gracefulEvictionTasks") or ()
        if each.get("producer") != spec["schedulerName"] or each["fromCluster"] not in after
    ]
    return {**before, "spec": {**spec, "gracefulEvictionTasks": kept}}
