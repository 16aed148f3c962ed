"""A capture: everything that an answer was made of, in one file, so that it can be made again without an API server."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import as_binding, as_cluster, as_workload
from karmada_advisor.fleet.fleet import Coverage, Fleet, parsed
from karmada_advisor.fleet.process_answers import ProcessView, captured_view
from karmada_advisor.fleet.process_rules import ProcessConfiguration
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import FleetSource
from karmada_advisor.state.model import API_VERSION, SchedulerShown, SchedulerStatus
from karmada_advisor.state.stored import mapping, mappings, text_of, texts
from karmada_scheduler import json_body
from karmada_scheduler.api.binding import KINDS
from karmada_scheduler.api.manifest import (
    ManifestError,
    parse_time,
    read_mappings,
    read_optional_mapping,
    read_text,
    read_texts,
)
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.api.workload import LAST_APPLIED_ANNOTATION, Workload
from karmada_scheduler.config.features import RULES
from karmada_scheduler.config.file_content import FileContentError, read_file, read_text_file
from karmada_scheduler.structs import Struct, asdict, replace

KIND: Final = "Capture"

Fields = dict[str, Any]
Manifest = Mapping[str, Any]


class Replayed(Struct, frozen=True):
    """A captured question; as it was asked without a capture.

    Attributes:
        source: With the namespace of the capture.
        rules: Those of the capture, where flags name no others.
        name: The wanted binding.
        view: What a process said, None if none was asked.
    """

    source: FleetSource
    rules: Rules
    name: str
    view: ProcessView | None = None


def fields_of_rules(rules: Rules) -> Fields:
    """Return the rules as a capture has them.

    Raises:
        NoAnswerError: The configuration file cannot be read.
    """
    try:
        config = None if rules.config is None else read_text_file(rules.config)
    except FileContentError as error:
        raise NoAnswerError(f"--config: {rules.config} {error}") from error
    return {
        "plugins": rules.plugins,
        "scheduler_name": rules.scheduler_name,
        "enable_empty_workload_propagation": str(rules.keeps_empty).lower(),
        "decisions_of": rules.decisions_of,
        "feature_gates": list(rules.feature_gates),
        "plugin_dirs": [str(folder) for folder in rules.plugin_dirs],
        "config": config,
        "scheduler_names": sorted(rules.scheduler_names),
    }


def fields_of_fleet(fleet: Fleet) -> Fields:
    """Return the objects as a capture has them."""
    return {
        "source": fleet.source,
        "clusters": [reduced(fleet.manifests[cluster.name]) for cluster in fleet.clusters],
        "bindings": [reduced(fleet.manifests[binding.key]) for binding in fleet.bindings],
        "policies": all_reduced(fleet.policies),
        "taintPolicies": all_reduced(fleet.taint_policies),
        "quotas": all_reduced(fleet.quotas),
        "priorityClasses": fleet.priority_classes,
        "leases": all_reduced(fleet.leases),
        "noLeases": fleet.no_leases,
        "seen": [{"name": each.name, "source": each.source, "since": each.since} for each in fleet.seen],
        "whole": sorted(fleet.coverage.whole),
        "refused": fleet.coverage.refused,
        "events": all_reduced(fleet.events),
        "templateReplicas": fleet.template_replicas,
        "workloads": None if fleet.workloads is None else [metadata_of(each) for each in fleet.workloads],
    }


def fleet_of_capture(path: str) -> Fleet:
    """Return the objects of a capture.

    Raises:
        NoAnswerError: The file is none.
    """
    fields = read(path)
    try:
        at = parse_time(str(fields.get("at")))
    except ValueError as error:
        raise NoAnswerError(f"--replay: at: {error}") from error
    whole = set(texts(fields.get("whole")))
    refused = {
        kind: f"--replay: not all {kind}s were captured (explain -A --capture)" for kind in KINDS - whole
    }
    fleet = Fleet(
        f"a capture of {at.strftime('%Y-%m-%dT%H:%M:%SZ')}",
        at=at,
        policies=fields.get("policies"),
        taint_policies=fields.get("taintPolicies"),
        quotas=fields.get("quotas"),
        priority_classes=fields["priorityClasses"],
        leases=fields.get("leases"),
        no_leases=str(fields.get("noLeases") or ""),
        seen=[_seen(entry) for entry in mappings(fields.get("seen"))],
        coverage=Coverage(whole, {**refused, **mapping(fields.get("refused"))}),
        events=mappings(fields.get("events")),
        template_replicas=fields.get("templateReplicas") or {},
    )
    fleet.add_clusters(parsed(fields["clusters"], as_cluster, fleet.problems))
    fleet.add_bindings(parsed(fields["bindings"], as_binding, fleet.problems))
    if (workloads := fields.get("workloads")) is not None:
        fleet.workloads = [workload for workload, _ in parsed(workloads, as_workload, fleet.problems)]
    return fleet


def _seen(fields: Manifest) -> SchedulerShown:
    name, source, since = (text_of(fields, key) for key in ("name", "source", "since"))
    return SchedulerShown(name, SchedulerStatus.SEEN if since else SchedulerStatus.NOT_KNOWN, source, since)


def reduced(manifest: Manifest) -> Manifest:
    """Return an object without what answers do not read: the applied manifest, and managers of fields but of the status."""
    metadata = dict(manifest.get("metadata") or {})
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {**annotations}
        metadata["annotations"].pop(LAST_APPLIED_ANNOTATION, None)
    if managers := metadata.pop("managedFields", None):
        times = [entry.get("time") for entry in managers if entry.get("subresource") == "status"]
        metadata["managedFields"] = [{"subresource": "status", "time": time} for time in times]
    return {**manifest, "metadata": metadata}


def all_reduced(manifests: Iterable[Manifest] | None) -> list[Manifest] | None:
    """Return what ``reduced`` does of each; None if they are not known."""
    return None if manifests is None else [reduced(manifest) for manifest in manifests]


def metadata_of(workload: Workload) -> Manifest:
    """Return the part of a workload that is read: its metadata."""
    listed = (owner._asdict().items() for owner in workload.owner_references)
    owners = [{camel(name): value for name, value in fields} for fields in listed]
    named = {"namespace": workload.namespace, "name": workload.name, "uid": workload.uid}
    texts = {"labels": dict(workload.labels), "annotations": dict(workload.annotations)}
    whole = {**named, **texts, "ownerReferences": owners}
    return {"apiVersion": workload.api_version, "kind": workload.kind, "metadata": whole}


def write(path: str, fleet: Fleet, rules: Rules, view: ProcessView | None, at: datetime) -> None:
    """Write a capture, readable by its owner only; with gzip if the name ends with ``.gz``.

    Args:
        path: The file.
        fleet: What was read.
        rules: By which decisions are made.
        view: What a process said; None if none was asked.
        at: When it was read.

    Raises:
        NoAnswerError: It cannot be written.
    """
    asked = rules.asked
    fields = {
        "at": at.isoformat(),
        "asked": {"name": fleet.asked.name, "namespace": fleet.asked.namespace} if fleet.asked else {},
        "rules": fields_of_rules(rules),
        "process": None if view is None else asdict(view),
        "processConfiguration": None if asked is None else {"url": asked.url, "state": asked.state},
        **fields_of_fleet(fleet),
    }
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
    objects = ("clusters", "bindings", "policies", "taintPolicies", "workloads")
    classes = None if found.get("priorityClasses") is None else read_texts(found, "priorityClasses", "")
    named, namespace = read_text(asked, "name", "asked"), read_text(asked, "namespace", "asked")
    return {
        "asked": {"name": named, "namespace": namespace},
        "rules": {
            **{name: read_text(rules, name, "rules") or None for name in texts},
            **{name: list(read_texts(rules, name, "rules")) or None for name in lists},
        },
        **{name: None if found.get(name) is None else read_mappings(found, name, "") for name in objects},
        "priorityClasses": classes,
    }


@contextmanager
def replayed(source: FleetSource, rules: Rules, name: str) -> Iterator[Replayed]:
    """Provide a question with the rules of the capture of ``source``, and what a process said; as it is without one.

    Rules that are named win, so that others can be tried. Without a name, the captured question is asked; that of a capture of
    all bindings has none.

    Raises:
        NoAnswerError: The file is no capture.
    """
    if not source.replay:
        yield Replayed(source, rules, name)
        return
    fields = read(source.replay)
    if not name:
        asked = fields["asked"]
        name, source = asked["name"], replace(source, namespace=asked["namespace"])
    captured = fields["rules"]
    changed = _with_captured(rules, captured)
    if isinstance(asked := fields.get("processConfiguration"), dict):
        changed = changed.using(ProcessConfiguration.of(str(asked.get("url")), mapping(asked.get("state"))))
    try:
        process = read_optional_mapping(fields, "process", "")
        view = None if process is None else captured_view(process)
    except ManifestError as error:
        raise NoAnswerError(f"--replay: {source.replay} is no capture: {error}") from error
    if rules.config is not None or not captured["config"]:
        yield Replayed(source, changed, name, view)
        return
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8", errors="replace") as file:
        file.write(captured["config"])
        file.flush()
        yield Replayed(source, replace(changed, config=Path(file.name)), name, view)


def _with_captured(rules: Rules, captured: Fields) -> Rules:
    """Return rules with those of a capture where they name none."""
    given = {text.partition("=")[0] for each in rules.feature_gates for text in each.split(",")}
    gates = [text for each in captured["feature_gates"] or () for text in each.split(",")]
    kept = [text for text in gates if text.partition("=")[0] not in given]
    return replace(
        rules,
        plugins=rules.plugins or captured["plugins"],
        scheduler_name=rules.scheduler_name or captured["scheduler_name"],
        keeps_empty=rules.keeps_empty or captured["enable_empty_workload_propagation"] == "true",
        decisions_of=rules.decisions_of or captured["decisions_of"],
        feature_gates=[*kept, *rules.feature_gates],
        scheduler_names=frozenset(captured["scheduler_names"] or ()),
    )
