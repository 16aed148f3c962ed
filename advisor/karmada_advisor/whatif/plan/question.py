"""The question of ``plan``, a change of objects and rules, and everything that its answer reads, as values too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from karmada_advisor.claims.model import DEFAULTS, DetectorOptions
from karmada_advisor.fleet.files import read_changes
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource
from karmada_advisor.state.quota import Quota
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.state.stored import part
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.lint_selectors import TemplatesKnown
from karmada_advisor.whatif.plan.objects import (
    ChangeError,
    ChangeShown,
    Manifest,
    PlanObjects,
    object_name,
    template_key,
)
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.yaml_document import YamlError, read_document
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.structs import Struct, field

Edit = Callable[[Draft, str], None]
"""Makes the edit of a text; raises ChangeError if it cannot be applied."""


class PlanQuestion(Struct, frozen=True, kw_only=True):
    """What a change would move.

    Attributes:
        source: Where the objects are.
        rules: By which decisions are made now.
        rule_change: What the change names of the rules; the rest stays.
        manifests: New versions of objects, and new ones.
        side: Which side applies them, as in ``versions.applied``.
        edits: Of objects, after that: the texts of each flag of ``EDITS``, and of ``add``.
        evicts: Whether karmada-controller-manager evicts from clusters with NoExecute taints.
        with_drift: Whether to compute what would change without the change.
        time_left: Returns the share of the time that is left; without any, no further rebalance is decided.
    """

    source: FleetSource
    rules: Rules
    rule_change: Rules
    manifests: Sequence[Manifest] = ()
    side: str = ""
    edits: Mapping[str, Sequence[str]] = field(default_factory=dict)
    evicts: bool = False
    with_drift: bool = True
    time_left: Callable[[], float] = lambda: 1.0

    def apply(self, draft: Draft) -> None:
        """Change the objects.

        Raises:
            ChangeError: A part cannot be applied.
        """
        last: dict[object, Manifest] = {}
        for manifest in self.manifests:
            key = template_key(manifest)
            if last.pop(key, None) is not None:
                draft.notes.append(
                    f"{key} is in the change twice: the last one counts, as with kubectl apply"
                )
            last[key] = manifest
        draft.side = self.side
        for manifest in last.values():
            draft.put(manifest)
        for written in self.edits.get("add", ()):  # so that others can name new clusters
            _add(draft, written, self.source.default_namespace)
        for flag, edit in EDITS.items():
            for written in self.edits.get(flag, ()):
                edit(draft, written)


def _scale(draft: Draft, written: str) -> None:
    """Set the replicas of a workload by ``NS/NAME=REPLICAS``."""
    name, _, count = written.rpartition("=")
    if not name or not count.isdecimal() or int(count) > MAX_INT32:
        raise ChangeError(f"--scale: expected NS/NAME=REPLICAS, got {written}")
    draft.scale(name, int(count))


def _add(draft: Draft, written: str, namespace: Callable[[], str]) -> None:
    """Add a cluster like another one, or those of a file."""
    name, separator, like = written.partition("=")
    if separator and not Path(written).exists():
        draft.add(name, like)
        return
    found = read_changes([written], namespace())
    if found.problems:
        raise ChangeError("\n".join(f"--add: {problem}" for problem in found.problems))
    for manifest in found.objects:
        draft.add_cluster(manifest)


def _edit(draft: Draft, written: str) -> None:
    """Change an object by ``KIND/[NS/]NAME=PATCH``, where PATCH is a merge patch in YAML or JSON."""
    name, separator, text = written.partition("=")
    try:
        patch = read_document(text).value
    except YamlError as problem:
        raise ChangeError(f"--edit: {name}: {problem.what}") from problem
    if not separator or not isinstance(patch, dict):
        raise ChangeError(f"--edit: expected KIND/[NS/]NAME={{...}}, a merge patch, got {written}")
    draft.edit(*object_name(name, "--edit"), patch)


def _ready(draft: Draft, written: str) -> None:
    """Let a cluster be ready or not by ``C=true`` or ``C=false``."""
    name, _, value = written.partition("=")
    if not name or value not in {"true", "false"}:
        raise ChangeError(f"--ready: expected CLUSTER=true or CLUSTER=false, got {written}")
    draft.ready(name, is_ready=value == "true")


def _of_cluster(flag: str) -> Edit:
    """Return the edit of the name of a flag, by ``CLUSTER=...``."""

    def edit_cluster(draft: Draft, written: str) -> None:
        name, _, rest = written.partition("=")
        if not name or not rest:
            raise ChangeError(f"--{flag}: expected CLUSTER=..., got {written}")
        getattr(draft, flag)(name, rest)

    return edit_cluster


def _of_names(edit: Edit) -> Edit:
    """Return an edit of each of the clusters that a text names."""

    def edit_clusters(draft: Draft, written: str) -> None:
        for name in filter(None, written.split(",")):
            edit(draft, name)

    return edit_clusters


EDITS: Final[Mapping[str, Edit]] = {
    "delete": lambda draft, written: draft.delete(*object_name(written, "--delete")),
    "edit": _edit,
    "without": _of_names(Draft.without),
    "uncordon": _of_names(Draft.uncordon),
    "cordon": _of_names(Draft.cordon),
    "ready": _ready,
    "taint": _of_cluster("taint"),
    "label": _of_cluster("label"),
    "room": _of_cluster("room"),
    "scale": _scale,
    "rebalance": Draft.rebalance,
}
"""What a flag of ``plan`` changes, each text as the flag has it, in the order in which they are made."""


Key = TypeVar("Key")
Value = TypeVar("Value")

ClusterChange = tuple[Cluster | None, Cluster | None]
"""A cluster before and after."""


class Known(Struct, frozen=True):
    """Clusters and bindings as values."""

    clusters: Mapping[str, Cluster]
    bindings: Mapping[BindingKey, Binding]


def known_of(objects: PlanObjects) -> Known:
    """Return objects as values.

    Raises:
        ChangeError: One cannot be read.
    """
    return known_after(Known({}, {}), PlanObjects(), objects)


def known_after(known: Known, before: PlanObjects, after: PlanObjects) -> Known:
    """Return other objects as values; those that are equal to objects that were read are not read again.

    Raises:
        ChangeError: One cannot be read.
    """
    return Known(
        _changed(known.clusters, before.clusters, after.clusters, Cluster.from_manifest),
        _changed(known.bindings, before.bindings, after.bindings, Binding.from_manifest),
    )


def changed_clusters(before: Known, after: Known) -> dict[str, ClusterChange]:
    """Return the clusters that differ, by name."""
    return {
        name: (before.clusters.get(name), after.clusters.get(name))
        for name in sorted({*before.clusters, *after.clusters})
        if before.clusters.get(name) is not after.clusters.get(name)
    }


def _changed(
    known: Mapping[Key, Value],
    before: Mapping[Key, Manifest],
    after: Mapping[Key, Manifest],
    parse_one: Callable[[Manifest], Value],
) -> dict[Key, Value]:
    return {
        key: known[key] if before.get(key) is each else _read(parse_one, each) for key, each in after.items()
    }


def _read(parse_one: Callable[[Manifest], Value], manifest: Manifest) -> Value:
    try:
        return parse_one(manifest)
    except ManifestError as problem:
        name = part(manifest, "metadata").get("name")
        raise ChangeError(f"{manifest.get('kind')} {name}: {problem}") from problem


class PlanInputs(Struct, frozen=True):
    """Everything that a plan reads.

    Attributes:
        before: The objects as they are.
        draft: The objects after the change, before Karmada's detector and the scheduler act.
        rules: The configuration of the scheduler.
        rules_after: Its configuration after the change; the same object if it does not change.
        other_mode: Returns ``rules_after`` with the other value of SchedulingOvercommitProtection; None if the other
            capacity mode is not wanted.
        rules_text: The configuration before the change, for the fingerprint.
        rule_changes: How the change of the configuration is shown.
        evicts: Whether Karmada evicts from clusters with NoExecute taints.
        with_drift: Whether to compute what would change without the change.
        source: Where the objects come from, for people.
        at: The time of the plan, as the API writes times.
        schedulers: Which schedulers exist.
        quotas: FederatedResourceQuotas; None if they are not known.
        no_quotas: Why they are not; "" if they are.
        is_live: Whether the objects come from a control plane.
        templates_known: Of which kinds all templates were read.
        more_notes: What the reader of the plan should know besides.
        detector: Flags and gates of karmada-controller-manager, and the other objects that its detector reads.
        known: The objects before the change as values, if they were read already.
        progress: Called with a phase, the number of decisions made, and their total.
        time_left: As ``PlanQuestion.time_left``.
    """

    before: PlanObjects
    draft: Draft
    rules: DryRun
    rules_after: DryRun
    other_mode: Callable[[], DryRun] | None = None
    rules_text: str = ""
    rule_changes: tuple[ChangeShown, ...] = ()
    evicts: bool = False
    with_drift: bool = True
    source: str = ""
    at: str = ""
    schedulers: Schedulers = field(default_factory=Schedulers)
    quotas: Sequence[Quota] | None = None
    no_quotas: str = ""
    is_live: bool = False
    templates_known: TemplatesKnown = field(default_factory=TemplatesKnown)
    more_notes: Sequence[str] = ()
    detector: DetectorOptions = DEFAULTS
    known: Known | None = None
    progress: Callable[[str, int, int], None] = lambda _phase, _done, _total: None
    time_left: Callable[[], float] = lambda: 1.0
