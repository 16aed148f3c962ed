"""The rules and records of a scheduler: from its process (``--from``), or its flags from its manifest (``--scheduler-manifest``)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from karmada_advisor.fleet import process_http
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import read
from karmada_advisor.fleet.process_answers import ProcessState, ProcessView, record_of, state_of, view_of
from karmada_advisor.fleet.process_http import ProcessAddress, address_of
from karmada_advisor.fleet.process_rules import ProcessConfiguration
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import RunningScheduler
from karmada_advisor.state.stored import command_line, mappings, part
from karmada_scheduler.api.binding import BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.config import features
from karmada_scheduler.config.features import DEFAULT_RULES, RULES
from karmada_scheduler.structs import replace

_OK: Final = 200
_NOT_FOUND: Final = 404
_UNAUTHORIZED: Final = frozenset({401, 403})
_REFUSED: Final = frozenset({401, 403, 421, 429, 503})


def read_process(address: ProcessAddress, key: BindingKey) -> ProcessView:
    """Return what a process says about a binding; a process that cannot be reached is a problem, not an error."""
    path = "/".join(quote(part, safe="") for part in (key.namespace, key.name) if part)
    try:
        status, found = process_http.get(address, f"/v1/decisions/{path}")
        return view_of(found, has_record=status != _NOT_FOUND)
    except (OSError, ValueError) as problem:
        return ProcessView(problem=f"{address} cannot be read: {problem}")


def read_configuration(address: ProcessAddress) -> ProcessConfiguration:
    """Return the configuration of a process.

    Raises:
        NoAnswerError: The process wants a token, or another one.
    """
    try:
        status, found = process_http.get(address, "/v1/state")
    except (OSError, ValueError):
        status, found = _OK, {}
    _check(address, status, found, _UNAUTHORIZED)
    return ProcessConfiguration.of(str(address), found)


def _check(address: ProcessAddress, status: int, found: Mapping[str, Any], refused: Collection[int]) -> None:
    if status in refused:
        raise NoAnswerError(f"{address}: {_message(found) or f'it has answered with status {status}'}")


def with_process(rules: Rules, process: RunningScheduler) -> Rules:
    """Return rules by which a process decides, unless they name others; its scheduler names are explained as its own.

    Raises:
        NoAnswerError: The URL is not one of a process, or the rules contradict it.
    """
    found = read_configuration(address_of(process))
    is_named = bool(rules.scheduler_name or rules.config)
    return replace(
        rules.using(found),
        feature_gates=gates_of(process.url, found.gates, rules.feature_gates),
        decisions_of=decisions_of(found, rules.decisions_of),
        scheduler_names=frozenset() if is_named else found.scheduler_names,
    )


def read_state(address: ProcessAddress) -> ProcessState:
    """Return the state of a process: its queue, its configuration, whether it leads.

    Raises:
        NoAnswerError: It cannot be read.
    """
    try:
        status, found = _read(address, "/v1/state")
        _check(address, status, found, _REFUSED)
        return state_of(found)
    except ManifestError as problem:
        raise NoAnswerError(f"{address} cannot be read: {problem}") from problem


def read_decisions(address: ProcessAddress, limit: int) -> Sequence[Mapping[str, Any]]:
    """Return the last records of a process, the oldest first.

    Raises:
        NoAnswerError: It cannot be read, or it does not lead.
    """
    status, found = _read(address, f"/v1/decisions?limit={limit}")
    items = found.get("items")
    if status != _OK or not isinstance(items, list):
        raise NoAnswerError(_message(found) or f"{address} has answered with status {status}")
    return [record for entry in items[-limit:] if (record := _record(entry)) is not None]


def _message(found: Mapping[str, Any]) -> str:
    """Return why a process refuses an answer; "" if it does not say so."""
    error = found.get("error")
    return str(error.get("message") or "") if isinstance(error, dict) else ""


def _record(found: object) -> Mapping[str, Any] | None:
    """Return a record; None for what is none, such as one of another version of the scheduler."""
    try:
        return record_of(found) if isinstance(found, dict) else None
    except ManifestError:
        return None


def _read(address: ProcessAddress, path: str) -> tuple[int, Mapping[str, Any]]:
    try:
        return process_http.get(address, path)
    except (OSError, ValueError) as problem:
        raise NoAnswerError(f"{address} cannot be read: {problem}") from problem


def gates_of(url: str, of_process: Mapping[str, bool], given: Sequence[str]) -> list[str]:
    """Return the feature gates of a process as ``--feature-gates`` has them.

    Args:
        url: Of the process.
        of_process: Its gates.
        given: The gates on the command line.

    Raises:
        NoAnswerError: The command line contradicts the process.
    """
    if not of_process:
        return list(given)
    named = dict(gate.partition("=")[::2] for text in given for gate in text.split(",") if gate)
    for name, value in named.items():
        if name in of_process and of_process[name] != (value == "true"):
            is_on = "on" if of_process[name] else "off"
            raise NoAnswerError(f"--feature-gates: {name}={value}, but it is {is_on} in the process at {url}")
    others = (f"{name}={str(value).lower()}" for name, value in of_process.items() if name not in named)
    return [*given, *others]


def decisions_of(found: ProcessConfiguration, given: str | None) -> str | None:
    """Return whose decisions a process makes, as ``--decisions-of`` has it; None if neither it nor the flag says so.

    Args:
        found: The configuration of the process.
        given: The value on the command line.

    Raises:
        NoAnswerError: The command line contradicts the process, or its version is unknown here.
    """
    known = found.decisions_of
    if known and known not in RULES:
        raise NoAnswerError(
            f"--from: the process at {found.url} makes the decisions of {known}, known here are {', '.join(RULES)}; "
            "use the command of its version"
        )
    if known and given and known != given:
        raise NoAnswerError(f"--decisions-of={given}, but it is {known} in the process at {found.url}")
    return known or given


_VERSION: Final = re.compile(r"v?(\d+\.\d+)")
_COMMANDS: Final = ("karmada-scheduler", "karmada-pyscheduler")


def with_manifest(rules: Rules, path: str) -> tuple[Rules, list[str]]:
    """Return rules with the flags in the manifest of a scheduler, where they name no others.

    Returns:
        The rules; and notes: flags that are not known, and the version of the image if it is another one.

    Raises:
        NoAnswerError: The file cannot be read, or has no scheduler.
    """
    return with_flags(rules, scheduler_container(path))


def scheduler_container(path: str) -> Mapping[str, Any]:
    """Return the container of the manifest of a scheduler.

    Raises:
        NoAnswerError: The file cannot be read, or has no scheduler.
    """
    contents = read([path], lambda manifest: manifest)
    if contents.problems:
        raise NoAnswerError("\n".join(f"--scheduler-manifest: {problem}" for problem in contents.problems))
    for manifest in contents.objects:
        for container in mappings(part(manifest, "spec", "template", "spec").get("containers")):
            words = command_line(container)
            if (
                any(word.rpartition("/")[2] in _COMMANDS for word in words[:1])
                or _image(container)[0] in _COMMANDS
            ):
                return container
    raise NoAnswerError(f"--scheduler-manifest: {path} has no container that runs karmada-scheduler")


def image_tag(container: Mapping[str, Any]) -> str:
    """Return the tag of the image of a container; "" without one."""
    return _image(container)[1]


def _image(container: Mapping[str, Any]) -> tuple[str, str]:
    """Return the last part of the repository of the image of a container, and the tag."""
    name, _, tag = str(container.get("image") or "").partition("@")[0].rpartition("/")[2].partition(":")
    return name, tag


def with_flags(rules: Rules, container: Mapping[str, Any]) -> tuple[Rules, list[str]]:
    """Return rules with the flags of the container of a scheduler, as ``with_manifest``.

    Raises:
        NoAnswerError: A flag cannot be used.
    """
    from karmada_scheduler.config import flags  # needed with --scheduler-manifest only

    words = command_line(container)
    try:
        given, unknown = flags.known(word for word in words if word.startswith("-"))
        features.parse(given.feature_gates or ())
    except (ValueError, flags.OptionsError) as error:
        raise NoAnswerError(f"--scheduler-manifest: {error}") from error
    version = _VERSION.match(image_tag(container))
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
    notes = [f"{flag} is not known, and counts as not given" for flag in unknown]
    if given.enable_scheduler_estimator:
        notes.append("that scheduler asks estimators in member clusters, which are not asked here")
    if not is_ours and named not in RULES:
        notes.append(f"the image is of {named}, and the rules here are those of {DEFAULT_RULES.decisions_of}")
    return changed, [f"note: --scheduler-manifest: {note}" for note in notes]
