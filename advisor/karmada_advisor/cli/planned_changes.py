"""The flags of plan as changes of objects."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from karmada_advisor.plan.change import Draft
from karmada_advisor.plan.stored import ChangeError, object_name
from karmada_advisor.sources.change_files import read_changes
from karmada_advisor.sources.control_plane import DEFAULT_NAMESPACE, context_namespace, reads_files
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.yaml_document import YamlError, read_document


def namespace_of(arguments: argparse.Namespace) -> str:
    """Return the namespace of objects that name none."""
    if arguments.namespace:
        return str(arguments.namespace)
    return DEFAULT_NAMESPACE if reads_files(arguments) else context_namespace(arguments)


def apply(draft: Draft, arguments: argparse.Namespace) -> None:
    """Apply the flags; new clusters come first, so that others can name them."""
    for written in arguments.add:
        _add(draft, written, namespace_of(arguments))
    for written in arguments.delete:
        draft.delete(*object_name(written, "--delete"))
    for written in arguments.edit:
        _edit(draft, written)
    for flag in ("without", "uncordon", "cordon"):
        for name in _names(getattr(arguments, flag)):
            getattr(draft, flag)(name)
    for written in arguments.ready:
        _ready(draft, written)
    for flag in ("taint", "label", "room"):
        for written in getattr(arguments, flag):
            name, _, rest = written.partition("=")
            if not name or not rest:
                raise ChangeError(f"--{flag}: expected CLUSTER=..., got {written}")
            getattr(draft, flag)(name, rest)
    for written in arguments.scale:
        _scale(draft, written)
    for written in arguments.rebalance:
        draft.rebalance(written)


def _scale(draft: Draft, written: str) -> None:
    """Set the replicas of a workload by ``NS/NAME=REPLICAS``."""
    name, _, count = written.rpartition("=")
    if not name or not count.isdecimal() or int(count) > MAX_INT32:
        raise ChangeError(f"--scale: expected NS/NAME=REPLICAS, got {written}")
    draft.scale(name, int(count))


def _add(draft: Draft, written: str, namespace: str) -> None:
    """Add a cluster like another one, or those of a file."""
    name, separator, like = written.partition("=")
    if separator and not Path(written).exists():
        draft.add(name, like)
        return
    found = read_changes([written], namespace)
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
