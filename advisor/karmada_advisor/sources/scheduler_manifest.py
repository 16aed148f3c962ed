"""The flags of a scheduler from the manifest of its Deployment, where it cannot be asked (``--scheduler-manifest``)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import read
from karmada_advisor.sources.process_rules import ProcessConfiguration, names_rules
from karmada_advisor.state.stored import mapping, mappings
from karmada_scheduler.config import features, flags
from karmada_scheduler.config.features import FeatureGates

_VERSION: Final = re.compile(r":v?(\d+\.\d+)")
_OURS: Final = "1.18"
_COMMANDS: Final = ("karmada-scheduler", "karmada-pyscheduler")


def use_manifest(arguments: argparse.Namespace) -> list[str]:
    """Let a command decide by the flags in the manifest of ``--scheduler-manifest``, unless its own flags name others.

    Returns:
        Notes: flags that are not known, and the version of the image if it is another one.

    Raises:
        NoAnswerError: The file cannot be read, or has no scheduler.
    """
    path = arguments.scheduler_manifest
    if not path:
        return []
    contents = read([path], dict)
    if contents.problems:
        raise NoAnswerError("\n".join(f"--scheduler-manifest: {each}" for each in contents.problems))
    for manifest in contents.objects:
        for container in _containers(manifest):
            words = [str(each) for name in ("command", "args") for each in container.get(name) or ()]
            if any(each.rpartition("/")[2] in _COMMANDS for each in words[:1]) or _is_scheduler(container):
                return _use(arguments, manifest, container, words)
    raise NoAnswerError(f"--scheduler-manifest: {path} has no container that runs karmada-scheduler")


def _containers(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = mapping(mapping(mapping(manifest.get("spec")).get("template")).get("spec"))
    yield from mappings(spec.get("containers"))


def _is_scheduler(container: Mapping[str, Any]) -> bool:
    image = str(container.get("image") or "").partition("@")[0].partition(":")[0]
    return image.rpartition("/")[2] in _COMMANDS


def _use(
    arguments: argparse.Namespace, manifest: Mapping[str, Any], container: Mapping[str, Any], words: list[str]
) -> list[str]:
    given, unknown = flags.known(each for each in words if each.startswith("-"))
    try:
        gates = features.parse(given.feature_gates or ())
    except ValueError as error:
        raise NoAnswerError(f"--scheduler-manifest: --feature-gates: {error}") from error
    name = mapping(manifest.get("metadata")).get("name") or "karmada-scheduler"
    if not arguments.feature_gates:
        arguments.feature_gates = _as_flags(gates)
    if not names_rules(arguments):
        tokens = flags.plugin_tokens(given.plugins)
        arguments.process_rules = ProcessConfiguration(
            process=f"karmada-scheduler v1.18.2 with the flags of {manifest.get('kind')} {name}",
            tokens=tokens,
            scheduler_name=given.scheduler_name,
            is_complete=True,
            not_called=("estimators in member clusters",) if given.enable_scheduler_estimator else (),
        )
        if given.enable_empty_workload_propagation:
            arguments.enable_empty_workload_propagation = "true"
    notes = [f"--scheduler-manifest: {each} is not known, and counts as not given" for each in unknown]
    version = _VERSION.search(str(container.get("image") or ""))
    if version and version[1] != _OURS:
        notes.append(f"--scheduler-manifest: the image is of {version[1]}, the rules are those of {_OURS}")
    return notes


def _as_flags(gates: FeatureGates) -> list[str]:
    return [f"{name}={str(gates.enabled(name)).lower()}" for name in features.KNOWN]
