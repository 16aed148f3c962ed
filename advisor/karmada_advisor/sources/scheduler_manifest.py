"""The flags of a scheduler from the manifest of its Deployment, where it cannot be asked (``--scheduler-manifest``)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import read
from karmada_advisor.state.stored import command_line, mapping, mappings
from karmada_scheduler.config import features, flags
from karmada_scheduler.config.decision_rules import DEFAULT_RULES, RULES

_VERSION: Final = re.compile(r":v?(\d+\.\d+)")
_COMMANDS: Final = ("karmada-scheduler", "karmada-pyscheduler")


def use_manifest(arguments: argparse.Namespace) -> list[str]:
    """Let a command decide by the flags in the manifest of ``--scheduler-manifest``, unless its own flags name others.

    Returns:
        Notes: flags that are not known, and the version of the image if it is another one.

    Raises:
        NoAnswerError: The file cannot be read, or has no scheduler.
    """
    path = arguments.scheduler_manifest
    contents = read([path], lambda manifest: manifest)
    if contents.problems:
        raise NoAnswerError("\n".join(f"--scheduler-manifest: {each}" for each in contents.problems))
    for manifest in contents.objects:
        for container in _containers(manifest):
            words = command_line(container)
            if any(each.rpartition("/")[2] in _COMMANDS for each in words[:1]) or _is_scheduler(container):
                return _use(arguments, container, words)
    raise NoAnswerError(f"--scheduler-manifest: {path} has no container that runs karmada-scheduler")


def _containers(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = mapping(mapping(mapping(manifest.get("spec")).get("template")).get("spec"))
    yield from mappings(spec.get("containers"))


def _is_scheduler(container: Mapping[str, Any]) -> bool:
    image = str(container.get("image") or "").partition("@")[0].partition(":")[0]
    return image.rpartition("/")[2] in _COMMANDS


def _use(arguments: argparse.Namespace, container: Mapping[str, Any], words: list[str]) -> list[str]:
    try:
        given, unknown = flags.known(each for each in words if each.startswith("-"))
        features.parse(given.feature_gates or ())
    except (ValueError, flags.OptionsError) as error:
        raise NoAnswerError(f"--scheduler-manifest: {error}") from error
    # In plan, these are the rules before the change.
    current = "current_" if hasattr(arguments, "current_feature_gates") else ""
    gates = f"{current}feature_gates"
    setattr(arguments, gates, [*(given.feature_gates or ()), *getattr(arguments, gates)])
    version = _VERSION.search(str(container.get("image") or ""))
    is_ours = "pyscheduler" in f"{words[:1]} {container.get('image')}"
    named = given.decisions_of if is_ours or version is None else version[1]
    if getattr(arguments, f"{current}decisions_of") is None and named in RULES:
        setattr(arguments, f"{current}decisions_of", named)
    if given.plugins and not getattr(arguments, f"{current}plugins"):
        setattr(arguments, f"{current}plugins", list(given.plugins))
    if arguments.scheduler_name is None:
        arguments.scheduler_name = given.scheduler_name
    if given.enable_empty_workload_propagation:
        arguments.enable_empty_workload_propagation = "true"
    notes = [f"{each} is not known, and counts as not given" for each in unknown]
    if given.enable_scheduler_estimator:
        notes.append("that scheduler asks estimators in member clusters, which are not asked here")
    if not is_ours and named not in RULES:
        notes.append(f"the image is of {named}, and the rules here are those of {DEFAULT_RULES.decisions_of}")
    return [f"note: --scheduler-manifest: {each}" for each in notes]
