"""A capture: everything that an answer was made of, in one file, so that it can be made again without an API server."""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, NamedTuple

from karmada_advisor.explain.inputs import ProcessView
from karmada_advisor.explain.model import API_VERSION
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.process_answers import captured_view
from karmada_advisor.sources.process_rules import ProcessConfiguration, names_rules, use
from karmada_advisor.state.stored import mapping
from karmada_scheduler.api.manifest import (
    ManifestError,
    parse_time,
    read_mappings,
    read_optional_mapping,
    read_required_text,
    read_text,
    read_texts,
)
from karmada_scheduler.api.workload import LAST_APPLIED_ANNOTATION, Workload
from karmada_scheduler.client import json_body
from karmada_scheduler.config.decision_rules import RULES
from karmada_scheduler.config.file_content import FileContentError, read_file, read_text_file

KIND: Final = "Capture"

_RULES: Final = ("plugins", "scheduler_name", "enable_empty_workload_propagation", "decisions_of")
"""Flags that a capture has under their own names; the feature gates and the configuration are apart."""

Fields = dict[str, Any]
Manifest = Mapping[str, Any]


class Replayed(NamedTuple):
    """A captured question.

    Attributes:
        arguments: As parsed, with the rules of the capture.
        view: What a process said, None if none was asked.
        scheduler_names: The names of the profiles of the process.
    """

    arguments: argparse.Namespace
    view: ProcessView | None
    scheduler_names: frozenset[str]


def rules_of(arguments: argparse.Namespace) -> Fields:
    """Return the flags that determine decisions.

    Raises:
        NoAnswerError: The configuration file cannot be read.
    """
    found: Fields = {name: getattr(arguments, name) for name in _RULES}
    found["feature_gates"] = list(arguments.feature_gates)
    found["plugin_dirs"] = [str(each) for each in arguments.plugin_dir]
    try:
        found["config"] = None if arguments.config is None else read_text_file(arguments.config)
    except FileContentError as error:
        raise NoAnswerError(f"--config: {arguments.config} {error}") from error
    return found


def configuration_of(arguments: argparse.Namespace) -> Fields | None:
    """Return what a running scheduler decides with; None if none was asked."""
    found: ProcessConfiguration | None = arguments.process_configuration
    return None if found is None else {"url": found.url, "state": found.state}


def reduced(manifest: Manifest) -> Manifest:
    """Return an object without what answers do not read: the applied manifest, and managers of fields but of the status."""
    metadata = dict(manifest.get("metadata") or {})
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {
            name: value for name, value in annotations.items() if name != LAST_APPLIED_ANNOTATION
        }
    if managers := metadata.pop("managedFields", None):
        metadata["managedFields"] = [
            {"subresource": "status", "time": each.get("time")}
            for each in managers
            if each.get("subresource") == "status"
        ]
    return {**manifest, "metadata": metadata}


def all_reduced(manifests: Iterable[Manifest] | None) -> list[Manifest] | None:
    """Return what ``reduced`` does of each; None if they are not known."""
    return None if manifests is None else [reduced(each) for each in manifests]


def metadata_of(workload: Workload) -> Manifest:
    """Return the part of a workload that is read: its metadata."""
    return {
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "metadata": {
            "namespace": workload.namespace,
            "name": workload.name,
            "uid": workload.uid,
            "labels": dict(workload.labels),
            "annotations": dict(workload.annotations),
            "ownerReferences": [
                {
                    "apiVersion": each.api_version,
                    "kind": each.kind,
                    "name": each.name,
                    "uid": each.uid,
                    "controller": each.controller,
                }
                for each in workload.owner_references
            ],
        },
    }


def write(path: str, fields: Manifest) -> None:
    """Write a capture, readable by its owner only; with gzip if the name ends with ``.gz``.

    Raises:
        NoAnswerError: It cannot be written.
    """
    content = json.dumps({"apiVersion": API_VERSION, "kind": KIND, **fields}, indent=1).encode()
    if path.endswith(".gz"):
        content = gzip.compress(content)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(content)
    except OSError as error:
        raise NoAnswerError(f"--capture: {path} cannot be written: {error.strerror}") from error


def read(path: str) -> Fields:
    """Return a capture.

    Raises:
        NoAnswerError: The file is none.
    """
    try:
        found = json_body.decode(read_file(path))
    except FileContentError as error:
        raise NoAnswerError(f"--replay: {path} {error}") from error
    except ValueError as error:
        raise NoAnswerError(f"--replay: {path} is no capture: {error}") from error
    if not isinstance(found, dict) or (found.get("apiVersion"), found.get("kind")) != (API_VERSION, KIND):
        raise NoAnswerError(f"--replay: {path} is no capture of explain --capture ({API_VERSION}, {KIND})")
    for name, kind in (("clusters", list), ("bindings", list), ("rules", dict), ("asked", dict)):
        if not isinstance(found.get(name), kind):
            raise NoAnswerError(f"--replay: {path} is no capture: {name} is missing")
    try:
        return {**found, **_checked(found)}
    except ManifestError as error:
        raise NoAnswerError(f"--replay: {path} is no capture: {error}") from error


def _checked(found: Manifest) -> Fields:
    """Return the parts of a capture that are not manifests, with the types that they have to have.

    Raises:
        ManifestError: One has another type.
    """
    asked, rules = found["asked"], found["rules"]
    decisions_of = read_text(rules, "decisions_of", "rules")
    if decisions_of and decisions_of not in RULES:
        text = f"expected {' or '.join(RULES)}, got {decisions_of}"
        raise ManifestError("rules.decisions_of", text)
    texts = ("scheduler_name", "enable_empty_workload_propagation", "decisions_of", "config")
    lists = ("plugins", "feature_gates", "scheduler_names")
    objects = ("clusters", "bindings", "policies", "workloads")
    return {
        "asked": {
            "name": read_required_text(asked, "name", "asked"),
            "namespace": read_text(asked, "namespace", "asked"),
        },
        "rules": {
            **{name: read_text(rules, name, "rules") or None for name in texts},
            **{name: list(read_texts(rules, name, "rules")) or None for name in lists},
        },
        **{name: None if found.get(name) is None else read_mappings(found, name, "") for name in objects},
        "priorityClasses": None
        if found.get("priorityClasses") is None
        else read_texts(found, "priorityClasses", ""),
    }


def captured_at(fields: Manifest) -> datetime:
    """Return when a capture was made.

    Raises:
        NoAnswerError: It does not say so.
    """
    try:
        return parse_time(str(fields.get("at")))
    except ValueError as error:
        raise NoAnswerError(f"--replay: at: {error}") from error


@contextmanager
def replayed(arguments: argparse.Namespace) -> Iterator[Replayed]:
    """Provide the arguments with the rules of the capture of ``--replay``, and what a process said; as they are without one.

    Flags on the command line win, so that other rules can be tried. Without a name, the captured question is asked.

    Raises:
        NoAnswerError: The file is no capture.
    """
    if not arguments.replay:
        yield Replayed(arguments, None, frozenset())
        return
    fields = read(arguments.replay)
    rules = fields["rules"]
    changed = argparse.Namespace(**vars(arguments))
    if not arguments.name:
        changed.name, changed.namespace = fields["asked"]["name"], fields["asked"]["namespace"]
    for name in _RULES:
        if getattr(arguments, name) in (None, "", "false"):
            setattr(changed, name, rules[name])
    given = {text.partition("=")[0] for each in arguments.feature_gates for text in each.split(",")}
    of_capture = [text for each in rules["feature_gates"] or () for text in each.split(",")]
    changed.feature_gates = [
        *(text for text in of_capture if text.partition("=")[0] not in given),
        *arguments.feature_gates,
    ]
    if isinstance(asked := fields.get("processConfiguration"), dict):
        configuration = ProcessConfiguration.of(str(asked.get("url")), mapping(asked.get("state")))
        use(changed, configuration, is_named=names_rules(changed))
    try:
        process = read_optional_mapping(fields, "process", "")
        view = None if process is None else captured_view(process)
    except ManifestError as error:
        raise NoAnswerError(f"--replay: {arguments.replay} is no capture: {error}") from error
    found = Replayed(changed, view, frozenset(rules["scheduler_names"] or ()))
    if arguments.config is not None or not rules["config"]:
        yield found
        return
    with NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8", errors="replace") as file:
        file.write(rules["config"])
        file.flush()
        changed.config = Path(file.name)
        yield found
