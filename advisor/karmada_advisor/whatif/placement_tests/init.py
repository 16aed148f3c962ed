"""Writes a first file of placement tests from a control plane: its fleet, its workloads, and where first decisions put them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any, Final, NamedTuple

from karmada_advisor.claims.binding_spec import replicas_of
from karmada_advisor.claims.template import Template
from karmada_advisor.claims.template import TemplateKey as ClaimedKey
from karmada_advisor.fleet.capture import reduced
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.state.stored import part, text_of
from karmada_advisor.whatif.placement_tests.files import read_test_file
from karmada_advisor.whatif.placement_tests.model import API_VERSION, KIND, Manifest, PlacementTestFile
from karmada_advisor.whatif.placement_tests.outcomes import NO_POLICY, PlacedWorkload
from karmada_advisor.whatif.placement_tests.running import CaseTries
from karmada_advisor.whatif.placement_tests.scenario import scenario_of
from karmada_advisor.whatif.plan.objects import UnversionedTemplateKey, resource_key
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.well_known import SCHEDULED_CONDITION

FLEET: Final = "fleet.yaml"
WORKLOADS: Final = "workloads.yaml"
TESTS: Final = "placements_test.yaml"

_OF_CLUSTERS: Final = ("Ready", "CompleteAPIEnablements")
_SCALED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})

Labels = Mapping[UnversionedTemplateKey, Mapping[str, str]]


class WrittenTests(NamedTuple):
    """What was written.

    Attributes:
        folder: Where.
        clusters: How many.
        workloads: How many.
        cases: How many.
        unclaimed: Workloads that no policy of the files claims; they are in no case.
        elsewhere: The workloads that a first decision places otherwise than they are now.
    """

    folder: Path
    clusters: int
    workloads: int
    cases: int
    unclaimed: int
    elsewhere: Sequence[str]


def write_tests(
    folder: Path,
    clusters: Iterable[Manifest],
    bindings: Iterable[Manifest],
    policies: Iterable[str],
    labels: Labels,
    *,
    as_yaml: Callable[[Mapping[str, Any]], str],
) -> WrittenTests:
    """Write three files into a folder, which is made if it does not exist.

    Args:
        folder: The folder.
        clusters: The fleet.
        bindings: Of the workloads, with where they are now.
        policies: Files and folders of policies.
        labels: Of workloads, as far as they are known.
        as_yaml: Returns a document as text.

    Raises:
        NoAnswerError: A policy cannot be read, the folder has such files, or what is written cannot be run.
    """
    there = [name for name in (FLEET, WORKLOADS, TESTS) if (folder / name).exists()]
    if there:
        raise NoAnswerError(f"--init: {folder} has {', '.join(there)} already; name another folder")
    present = sorted(bindings, key=resource_key)
    if not present:
        raise NoAnswerError("--init: there is no workload with a policy (-n, --selector)")
    fleet = [_cluster(manifest) for manifest in clusters]
    made = [_workload(workload, labels.get(resource_key(workload), {})) for workload in present]
    content = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "fleet": {"files": [FLEET]},
        "policies": [relpath(policy, folder) for policy in policies],
        "workloads": [WORKLOADS],
        **_schedulers(present),
        **_sizes(present),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fleet.sort(key=lambda each: str(each["metadata"]["name"]))
        (folder / FLEET).write_text(as_yaml({"apiVersion": "v1", "kind": "List", "items": fleet}))
        (folder / WORKLOADS).write_text("---\n".join(as_yaml(manifest) for manifest in made))
        every = {_name(workload): {"placed": True} for workload in present}
        placeholder = {**content, "cases": [{"name": "all", "expect": every}]}
        (folder / TESTS).write_text(as_yaml(placeholder))
        cases, unclaimed, elsewhere = _cases(_readable(folder), present)
        (folder / TESTS).write_text(as_yaml({**content, "cases": cases}))
    except OSError as error:
        raise NoAnswerError(f"--init: {folder}: {error.strerror or error}") from error
    except NoAnswerError:
        for name in (FLEET, WORKLOADS, TESTS):
            (folder / name).unlink(missing_ok=True)
        raise
    return WrittenTests(folder, len(fleet), len(made), len(cases), unclaimed, elsewhere)


def _readable(folder: Path) -> PlacementTestFile:
    file, problems = read_test_file(str(folder / TESTS), named=True)
    if file is None:
        raise NoAnswerError("\n".join(f"--init: {problem}" for problem in problems))
    return file


def _cases(
    file: PlacementTestFile, bindings: Iterable[Manifest]
) -> tuple[list[dict[str, Any]], int, list[str]]:
    """Return one case for each policy, the number of unclaimed workloads, and those that are elsewhere now."""
    by_policy: dict[str, dict[str, Any]] = {}
    elsewhere: list[str] = []
    unclaimed = 0
    with scenario_of(file) as scenario:
        states = CaseTries(scenario, (), None).begin()
        for binding in bindings:
            found = [PlacedWorkload.of(state, resource_key(binding)) for state in states]
            policy = found[0].policy
            if policy == NO_POLICY:
                unclaimed += 1
                continue
            placements = [workload.clusters for workload in found]
            stored = part(binding, "spec").get("clusters") or ()
            if {target.get("name"): target.get("replicas") or 0 for target in stored} not in placements:
                elsewhere.append(_name(binding))
            expected: dict[str, Any] = {"policy": policy}
            if not all(workload.placed for workload in found):
                reason = found[0].reason
                expected |= {"notPlaced": reason} if reason else {"placed": False}
            elif all(each == placements[0] for each in placements) and part(binding, "spec").get("replicas"):
                expected["clusters"] = placements[0]
            elif all(placement.keys() == placements[0].keys() for placement in placements):
                expected["clusters"] = sorted(placements[0])
            else:
                expected["replicas"] = sum(placements[0].values())
            by_policy.setdefault(policy, {})[_name(binding)] = expected
    cases = [
        {"name": f"{policy} places its workloads", "expect": expected}
        for policy, expected in sorted(by_policy.items())
    ]
    if not cases:
        raise NoAnswerError("--init: no policy of --policies claims a workload, so there is nothing to test")
    return cases, unclaimed, elsewhere


def _schedulers(bindings: Iterable[Manifest]) -> dict[str, Any]:
    """Return the schedulers that exist, if there is another one than the default: each has decided about a binding."""
    names = {DEFAULT_SCHEDULER_NAME}
    for manifest in bindings:
        conditions = part(manifest, "status").get("conditions") or ()
        if any(found.get("type") == SCHEDULED_CONDITION for found in conditions):
            names.add(text_of(manifest, "spec", "schedulerName") or DEFAULT_SCHEDULER_NAME)
    return {"scheduler": {"names": sorted(names)}} if len(names) > 1 else {}


def _name(binding: Manifest) -> str:
    """Return the workload of a binding as a case names it without doubt."""
    key = resource_key(binding)
    return f"{key.namespace}/{key.kind.lower()}/{key.name}" if key.namespace else key.name


def _cluster(manifest: Manifest) -> dict[str, Any]:
    """Return a cluster with what decisions read; what changes all the time is left out."""
    small = reduced(manifest)
    metadata = part(small, "metadata")
    status = part(small, "status")
    summary = part(status, "resourceSummary")
    return {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata": {name: metadata[name] for name in ("name", "labels") if metadata.get(name)},
        "spec": {name: value for name, value in part(small, "spec").items() if name in _SPEC},
        "status": {
            "apiEnablements": status.get("apiEnablements") or [],
            "conditions": [
                {"type": condition.get("type"), "status": condition.get("status")}
                for condition in status.get("conditions") or ()
                if condition.get("type") in _OF_CLUSTERS
            ],
            **({"resourceSummary": dict(summary)} if summary else {}),
        },
    }


_SPEC: Final = frozenset({"syncMode", "provider", "region", "zone", "zones", "taints", "resourceModels"})


def _workload(binding: Manifest, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the template of a binding: its kind, name, labels, replicas and requests."""
    spec, resource = part(binding, "spec"), part(binding, "spec", "resource")
    metadata = {name: resource[name] for name in ("name", "namespace") if resource.get(name)}
    found: dict[str, Any] = {
        "apiVersion": text_of(resource, "apiVersion"),
        "kind": text_of(resource, "kind"),
        "metadata": {**metadata, **({"labels": dict(sorted(labels.items()))} if labels else {})},
    }
    requests = dict(part(spec, "replicaRequirements", "resourceRequest"))
    container = {"name": "main", **({"resources": {"requests": requests}} if requests else {})}
    pod = {"containers": [container]}
    replicas, kind = spec.get("replicas") or 0, found["kind"]
    if kind in _SCALED:
        found["spec"] = {"replicas": replicas, "template": {"spec": pod}}
    elif kind == "Job":
        found["spec"] = {"parallelism": replicas, "completions": replicas, "template": {"spec": pod}}
    elif kind == "Pod":
        found["spec"] = pod
    return found


def _sizes(bindings: Iterable[Manifest]) -> dict[str, Any]:
    """Return the sizes of workloads whose replicas only an interpreter reads."""
    found = {}
    for manifest in bindings:
        spec, resource = part(manifest, "spec"), part(manifest, "spec", "resource")
        key = ClaimedKey(*(text_of(resource, name) for name in ("apiVersion", "kind", "namespace", "name")))
        read = replicas_of(Template(key, manifest={"spec": {}}))
        if spec.get("replicas") and not (read.known and read.replicas):
            requests = part(spec, "replicaRequirements", "resourceRequest")
            found[_name(manifest)] = {"replicas": spec["replicas"], **requests}
    return {"sizes": found} if found else {}
