"""The question of ``plan``: a change of objects and rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from karmada_advisor.fleet.files import read_changes
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource
from karmada_advisor.state.stored import text_of
from karmada_advisor.whatif.plan.change import Draft
from karmada_advisor.whatif.plan.objects import ChangeError, Manifest, group_of, object_name
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.yaml_document import YamlError, read_document
from karmada_scheduler.structs import Struct


class PlanEdits(Struct, frozen=True, kw_only=True):
    """Edits of objects, each text as the flag of the same name has it."""

    add: Sequence[str] = ()
    delete: Sequence[str] = ()
    edit: Sequence[str] = ()
    without: Sequence[str] = ()
    uncordon: Sequence[str] = ()
    cordon: Sequence[str] = ()
    ready: Sequence[str] = ()
    taint: Sequence[str] = ()
    label: Sequence[str] = ()
    room: Sequence[str] = ()
    scale: Sequence[str] = ()
    rebalance: Sequence[str] = ()

    def apply(self, draft: Draft, namespace: Callable[[], str]) -> None:
        """Make the edits; new clusters come first, so that others can name them.

        Args:
            draft: The objects.
            namespace: Returns that of objects that name none.

        Raises:
            ChangeError: An edit cannot be applied.
        """
        for written in self.add:
            _add(draft, written, namespace)
        for written in self.delete:
            draft.delete(*object_name(written, "--delete"))
        for written in self.edit:
            _edit(draft, written)
        self._apply_to_clusters(draft)
        for written in self.scale:
            _scale(draft, written)
        for written in self.rebalance:
            draft.rebalance(written)

    def _apply_to_clusters(self, draft: Draft) -> None:
        for flag in ("without", "uncordon", "cordon"):
            for name in _names(getattr(self, flag)):
                getattr(draft, flag)(name)
        for written in self.ready:
            _ready(draft, written)
        for flag in ("taint", "label", "room"):
            for written in getattr(self, flag):
                name, _, rest = written.partition("=")
                if not name or not rest:
                    raise ChangeError(f"--{flag}: expected CLUSTER=..., got {written}")
                getattr(draft, flag)(name, rest)


class PlanQuestion(Struct, frozen=True, kw_only=True):
    """What a change would move.

    Attributes:
        source: Where the objects are.
        rules: By which decisions are made now.
        rule_change: What the change names of the rules; the rest stays.
        manifests: New versions of objects, and new ones.
        edits: Of objects, after that.
        evicts: Whether karmada-controller-manager evicts from clusters with NoExecute taints.
        with_drift: Whether to compute what would change without the change.
    """

    source: FleetSource
    rules: Rules
    rule_change: Rules
    manifests: Sequence[Manifest] = ()
    edits: PlanEdits = PlanEdits()
    evicts: bool = False
    with_drift: bool = True

    def apply(self, draft: Draft) -> None:
        """Change the objects.

        Raises:
            ChangeError: A part cannot be applied.
        """
        last: dict[tuple[str, ...], Manifest] = {}
        for manifest in self.manifests:
            name = (*(text_of(manifest, "metadata", field) for field in ("namespace", "name")),)
            key = group_of(text_of(manifest, "apiVersion")), text_of(manifest, "kind"), *name
            if last.pop(key, None) is not None:
                shown = "/".join(filter(None, key[1:]))
                draft.notes.append(
                    f"{shown} is in the change twice: the last one counts, as with kubectl apply"
                )
            last[key] = manifest
        for manifest in last.values():
            draft.put(manifest)
        self.edits.apply(draft, self.source.default_namespace)


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
    for each in found.objects:
        draft.add_cluster(each)


def _names(given: Sequence[str]) -> list[str]:
    return [name for written in given for name in written.split(",") if name]


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
