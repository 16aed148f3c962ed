"""The flags of a scheduler from the manifest of its Deployment, where it cannot be asked (``--scheduler-manifest``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import read
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.stored import command_line, mapping, mappings
from karmada_scheduler.config import features, flags
from karmada_scheduler.config.decision_rules import DEFAULT_RULES, RULES
from karmada_scheduler.structs import replace

_VERSION: Final = re.compile(r":v?(\d+\.\d+)")
_COMMANDS: Final = ("karmada-scheduler", "karmada-pyscheduler")


def with_manifest(rules: Rules, path: str) -> tuple[Rules, list[str]]:
    """Return rules with the flags in the manifest of a scheduler, where they name no others.

    Returns:
        The rules; and notes: flags that are not known, and the version of the image if it is another one.

    Raises:
        NoAnswerError: The file cannot be read, or has no scheduler.
    """
    contents = read([path], lambda manifest: manifest)
    if contents.problems:
        raise NoAnswerError("\n".join(f"--scheduler-manifest: {each}" for each in contents.problems))
    for manifest in contents.objects:
        for container in _containers(manifest):
            words = command_line(container)
            if any(each.rpartition("/")[2] in _COMMANDS for each in words[:1]) or _is_scheduler(container):
                return _with_flags(rules, container, words)
    raise NoAnswerError(f"--scheduler-manifest: {path} has no container that runs karmada-scheduler")


def _containers(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = mapping(mapping(mapping(manifest.get("spec")).get("template")).get("spec"))
    yield from mappings(spec.get("containers"))


def _is_scheduler(container: Mapping[str, Any]) -> bool:
    image = str(container.get("image") or "").partition("@")[0].partition(":")[0]
    return image.rpartition("/")[2] in _COMMANDS


def _with_flags(rules: Rules, container: Mapping[str, Any], words: list[str]) -> tuple[Rules, list[str]]:
    try:
        given, unknown = flags.known(each for each in words if each.startswith("-"))
        features.parse(given.feature_gates or ())
    except (ValueError, flags.OptionsError) as error:
        raise NoAnswerError(f"--scheduler-manifest: {error}") from error
    version = _VERSION.search(str(container.get("image") or ""))
    is_ours = "pyscheduler" in f"{words[:1]} {container.get('image')}"
    named = given.decisions_of if is_ours or version is None else version[1]
    changed = replace(
        rules,
        feature_gates=[*(given.feature_gates or ()), *rules.feature_gates],
        decisions_of=rules.decisions_of or (named if named in RULES else None),
        plugins=rules.plugins or (list(given.plugins) if given.plugins else None),
        scheduler_name=given.scheduler_name if rules.scheduler_name is None else rules.scheduler_name,
        keeps_empty=rules.keeps_empty or bool(given.enable_empty_workload_propagation),
    )
    notes = [f"{each} is not known, and counts as not given" for each in unknown]
    if given.enable_scheduler_estimator:
        notes.append("that scheduler asks estimators in member clusters, which are not asked here")
    if not is_ours and named not in RULES:
        notes.append(f"the image is of {named}, and the rules here are those of {DEFAULT_RULES.decisions_of}")
    return changed, [f"note: --scheduler-manifest: {each}" for each in notes]
