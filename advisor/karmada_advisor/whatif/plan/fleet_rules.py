"""What the commands about a whole fleet share: its objects, the rules of its scheduler, and its fingerprint."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from karmada_advisor.explain.amounts import at
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.packed import PackedManifests, without_managers
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.quota import Quota
from karmada_advisor.state.stored import mappings, part, policy_key
from karmada_advisor.whatif.plan.holds import HoldOf, stored_holds
from karmada_advisor.whatif.plan.objects import Manifest, PlanObjects, with_defaults
from karmada_scheduler.api.manifest import content_of
from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from karmada_scheduler.config.features import DEFAULT_RULES, RULES
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.structs import Struct

_KNOWN: Final = "what its controllers do is computed as those of Karmada v1.18.2 do it"


class FleetRules(Struct, frozen=True):
    """How decisions about a fleet are made.

    Attributes:
        rules: The scheduler.
        fingerprint: The hash over the objects and the configuration.
        hold_of: Returns why decisions about a binding do not take effect, None if they do.
        source: Where the objects come from, for people.
    """

    rules: DryRun
    fingerprint: str
    hold_of: HoldOf
    source: str

    @property
    def provenance(self) -> Provenance:
        """Where an answer comes from that is given now."""
        return Provenance(Tense.RECOMPUTED, self.source, at(now()), self.fingerprint[:SHOWN])


@contextmanager
def fleet_rules(
    fleet: Fleet,
    rules: Rules,
    *,
    expected: str,
    again: str,
    bindings: Sequence[bytes] | None = None,
) -> Iterator[FleetRules]:
    """Provide the rules for objects that were read; plugins are usable within the block.

    Args:
        fleet: The objects.
        rules: By which decisions are made.
        expected: The fingerprint of ``--expect``; "" for any.
        again: What to do if the fleet is not the one of ``--expect``: ``propose``.
        bindings: The digests of the bindings, for who makes them in steps.

    Raises:
        NoAnswerError: The configuration cannot be used, or the fleet is another one.
    """
    schedulers = fleet.schedulers(rules.running)
    with rules.dry_run(ShownObjects(Workloads(fleet.workloads)), schedulers) as dry_run:
        objects = as_manifests(fleet, with_bindings=bindings is None)
        hashed = fingerprint(objects, rules.fingerprint, bindings=bindings)
        check_fleet(expected, hashed, again)
        hold_of = stored_holds(schedulers, dry_run.frameworks, knows_rules=dry_run.knows)
        yield FleetRules(dry_run, hashed, hold_of, fleet.source)


def as_manifests(fleet: Fleet, *, with_bindings: bool = True) -> PlanObjects:
    """Return what was read as a plan reads it."""
    manifests, keys = fleet.manifests, [binding.key for binding in fleet.bindings if with_bindings]
    return PlanObjects(
        {cluster.name: manifests[cluster.name] for cluster in fleet.clusters},
        manifests.lean(keys)
        if isinstance(manifests, PackedManifests)
        else {key: without_managers(manifests[key]) for key in keys},
        None
        if fleet.policies is None
        else {policy_key(policy): with_defaults(policy) for policy in fleet.policies},
        unreadable=fleet.unreadable,
    )


def served_version(plane: ControlPlane, fleet: Fleet, rules: Rules) -> tuple[str, Sequence[str]]:
    """Return which version's bindings a control plane serves, and a sentence if that is another one, or is not known.

    Args:
        plane: Where the fleet was read.
        fleet: What was read; files do not tell the version, which is "" then.
        rules: By which decisions are made.
    """
    if not fleet.is_live:
        return "", ()
    from karmada_advisor.fleet import live  # the client, which files do not need
    from karmada_pyscheduler.client.bindings_schema import DOCUMENTS

    try:
        found = live.read_bindings_version(plane)
    except NoAnswerError as error:
        return "", (f"which version of Karmada the control plane serves is not known: {error}; {_KNOWN}",)
    served = f"the control plane serves the bindings of Karmada {found} ({DOCUMENTS})"
    if found not in {DEFAULT_RULES.decisions_of, max(RULES)}:
        return found, (f"{served}; {_KNOWN}",)
    decisions_of = rules.decisions_of or DEFAULT_RULES.decisions_of
    if found <= decisions_of:
        return found, ()
    what = f"decisions are those of {decisions_of} (--decisions-of={found} decides as it does)"
    return found, (f"{served}, which begins a reschedule with the first affinity term; {what}",)


def check_fleet(expected: str, fingerprint: str, command: str) -> None:
    """Check that the fleet is the one that ``--expect`` names, if it names one.

    Raises:
        NoAnswerError: It is another one.
    """
    if expected and (len(expected) < SHOWN or not fingerprint.startswith(expected)):
        raise NoAnswerError(
            f"--expect {expected}: the fleet is {fingerprint[:SHOWN]} by now; {command} again"
        )


def now() -> datetime:
    """Return the time that an answer shows."""
    return datetime.now(UTC)


def progress_of_phases() -> Callable[[str, int, int], None]:
    """Return what shows how much of a phase is done on standard error, nothing if that is no terminal."""
    if not sys.stderr.isatty():
        return lambda _phase, _done, _total: None

    def draw(phase: str, done: int, total: int) -> None:
        if done % max(1, total // 100) == 0 or done == total:
            sys.stderr.write("\r\x1b[K" if done == total else f"\r{done}/{total} {phase}\x1b[K")
            sys.stderr.flush()

    return draw


def progress_of_bindings() -> Callable[[int, int], None]:
    """Return what shows how many bindings are done, as ``progress_of_phases`` does."""
    return partial(progress_of_phases(), "bindings")


SHOWN: Final = 6
"""Characters that are shown; ``--expect`` takes as many or more."""


def fingerprint(
    objects: PlanObjects,
    rules: str,
    quotas: Iterable[Quota] = (),
    *,
    bindings: Iterable[bytes] | None = None,
) -> str:
    """Return the hash of objects and rules: 32 hexadecimal digits.

    Times, managed fields and other parts that no decision reads do not count.

    Args:
        objects: All objects.
        rules: The configuration of the scheduler, in any form.
        quotas: The quotas that count.
        bindings: What ``binding_digest`` returns of each binding, instead of those in ``objects``.
    """
    if bindings is None:
        bindings = map(binding_digest, objects.bindings.values())
    total = hashlib.blake2b(rules.encode(), digest_size=16)
    for group in (
        map(_digest, map(_cluster, objects.clusters.values())),
        bindings,
        map(_digest, map(_object, (objects.policies or {}).values())),
        map(_digest, map(_object, objects.templates.values())),
    ):
        for text in sorted(group):
            total.update(text)
        total.update(b"\x00")
    for quota in sorted(
        repr((str(quota), sorted(quota.limits.items()), sorted(quota.used.items()))) for quota in quotas
    ):
        total.update(quota.encode())
    return total.hexdigest()


def binding_digest(manifest: Manifest) -> bytes:
    """Return what counts of a binding."""
    return _digest(_binding(manifest))


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(content_of(value), digest_size=16).digest()


def _object(manifest: Manifest) -> list[Any]:
    metadata = part(manifest, "metadata")
    named = _values(metadata, ("namespace", "name", "labels"))
    return [manifest.get("kind"), *named, metadata.get("deletionTimestamp") is not None, manifest.get("spec")]


def _cluster(manifest: Manifest) -> list[Any]:
    status = part(manifest, "status")
    states = [[each.get("type"), each.get("status")] for each in mappings(status.get("conditions"))]
    summary = part(status, "resourceSummary")
    return [*_object(manifest), status.get("apiEnablements"), states, summary]


def _binding(manifest: Manifest) -> list[Any]:
    status, annotations = part(manifest, "status"), part(manifest, "metadata", "annotations")
    scheduled = [
        [condition.get("status"), condition.get("reason")]
        for condition in mappings(status.get("conditions"))
        if condition.get("type") == "Scheduled"
    ]
    read = _values(status, ("schedulerObservingAffinityName", "lastScheduledTime"))
    return [*_object(manifest), annotations.get(APPLIED_PLACEMENT_ANNOTATION), scheduled, *read]


def _values(parent: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    return [parent.get(name) for name in names]
