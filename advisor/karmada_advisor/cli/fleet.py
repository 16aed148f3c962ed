"""What the commands about a whole fleet share: its objects, the rules of its scheduler, and its fingerprint."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from karmada_advisor.cli.output import print_errors
from karmada_advisor.plan.fingerprint import SHOWN, fingerprint
from karmada_advisor.plan.holds import HoldOf, stored_holds
from karmada_advisor.plan.objects import Manifest, PlanObjects, part, policy_key
from karmada_advisor.plan.stored import with_defaults
from karmada_advisor.sources import planned
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.sources.objects import gather
from karmada_advisor.sources.process_rules import running
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import Struct


class FleetRules(Struct, frozen=True):
    """How decisions about a fleet are made.

    Attributes:
        rules: The scheduler.
        fingerprint: The hash over the objects and the configuration.
        hold_of: Returns why decisions about a binding do not take effect, None if they do.
    """

    rules: DryRun
    fingerprint: str
    hold_of: HoldOf


def gather_fleet(arguments: argparse.Namespace, *, without_clusters: str) -> Objects:
    """Read all objects, and print what is wrong with some.

    Args:
        arguments: As parsed.
        without_clusters: The error if there is no cluster.

    Raises:
        NoAnswerError: There is no answer.
    """
    sources = gather(arguments, all_bindings=True)
    print_errors((*sources.problems, *sources.warnings))
    if not sources.clusters:
        raise NoAnswerError(without_clusters)
    return sources


@contextmanager
def fleet_rules(
    arguments: argparse.Namespace,
    sources: Objects,
    own: Sequence[Registration],
    *,
    again: str,
    bindings: Sequence[bytes] | None = None,
) -> Iterator[FleetRules]:
    """Provide the rules for objects that were read; plugins are usable within the block.

    Args:
        arguments: As parsed.
        sources: The objects.
        own: The plugins of a main program of the user's own.
        again: What to do if the fleet is not the one of ``--expect``: ``propose``.
        bindings: The digests of the bindings, for who makes them in steps.

    Raises:
        NoAnswerError: The configuration cannot be used, or the fleet is another one.
    """
    with planned.configurations_of(arguments, sources.workloads, own) as configurations:
        rules = configurations.rules(configurations.changed)
        objects = as_manifests(sources, with_bindings=bindings is None)
        hashed = fingerprint(objects, configurations.text(configurations.changed), bindings=bindings)
        check_fleet(arguments.expect, hashed, again)
        hold_of = stored_holds(sources.schedulers(running(arguments)), rules.frameworks)
        yield FleetRules(rules, hashed, hold_of)


def as_manifests(sources: Objects, *, with_bindings: bool = True) -> PlanObjects:
    """Return what was read as a plan reads it."""
    return PlanObjects(
        {each.name: sources.manifests[each.name] for each in sources.clusters},
        {each.key: _without_managers(sources.manifests[each.key]) for each in sources.bindings}
        if with_bindings
        else {},
        None
        if sources.policies is None
        else {policy_key(each): with_defaults(each) for each in sources.policies},
    )


def _without_managers(manifest: Manifest) -> Manifest:
    """Return an object without its managed fields, which are most of the memory of a binding that the page unpacks."""
    metadata = {name: value for name, value in part(manifest, "metadata").items() if name != "managedFields"}
    return {**manifest, "metadata": metadata}


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


def progress_of_bindings() -> Callable[[int, int], None]:
    """Return what shows how many bindings are done on standard error, nothing if that is no terminal."""
    if not sys.stderr.isatty():
        return lambda _done, _total: None

    def draw(done: int, total: int) -> None:
        if done % max(1, total // 100) == 0 or done == total:
            sys.stderr.write("\r\x1b[K" if done == total else f"\r{done}/{total} bindings\x1b[K")
            sys.stderr.flush()

    return draw
