"""``karmada-pyscheduler rebalance``: which bindings to rebalance, within bounds. It proposes, and never executes.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written to a control plane.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from karmada_advisor.cli.flags.what_if import GOALS
from karmada_advisor.cli.output import CommandAnswer, exit_status
from karmada_advisor.cli.questions import check_names, process_rules_of, read_whole_fleet, source_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.views.fields import as_yaml
from karmada_advisor.views.rebalance_text import rebalance_text
from karmada_advisor.whatif.plan.fleet_rules import (
    fleet_rules,
    progress_of_bindings,
    served_version,
)
from karmada_advisor.whatif.rebalance.candidates import Inputs
from karmada_advisor.whatif.rebalance.model import Bounds, Goal, RebalanceProposal, Skipped
from karmada_advisor.whatif.rebalance.propose import manifests, propose
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.names import unknown
from karmada_scheduler.framework.profile.factory import Registration


def answer(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> CommandAnswer:
    """Return what to print, and the exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: There is no answer.
    """
    source, rules = source_of(arguments), process_rules_of(arguments, own)
    fleet = read_whole_fleet(source, without_clusters="There is no cluster, so nothing is decided.")
    check_names(source.plane, fleet, arguments.namespaces)
    goal, fill = _goal(arguments.goal, [cluster.name for cluster in fleet.clusters])
    with fleet_rules(fleet, rules, expected=arguments.expect, again="propose") as found:
        proposal = propose(
            Inputs(
                fleet.clusters,
                fleet.bindings,
                found.rules,
                goal,
                Bounds(*(getattr(arguments, name) for name in Bounds.__struct_fields__)),
                fill,
                is_excluded=_excluded(arguments.namespaces, arguments.exclude),
                hold_of=found.hold_of,
                fingerprint=found.fingerprint,
                provenance=found.provenance,
                more_notes=(*served_version(source.plane, fleet, rules)[1], *fleet.unread_notes),
                progress=progress_of_bindings(),
            )
        )
    written = _write(proposal, arguments.write_to)
    return CommandAnswer(
        proposal,
        partial(rebalance_text, proposal, written=written),
        exit_status(
            is_good=all(group.reason is not Skipped.NOT_JUDGED for group in proposal.skipped),
            problems=fleet.problems,
        ),
        more={"manifests": manifests(proposal)},
    )


def _goal(written: str, clusters: Sequence[str]) -> tuple[Goal, str]:
    name, separator, cluster = written.partition("=")
    if name == Goal.FILL.value and separator:
        if cluster not in clusters:
            raise NoAnswerError(unknown(f"--goal: cluster {cluster}", cluster, clusters))
        return Goal.FILL, cluster
    if separator or name not in {Goal.SPREAD.value, Goal.CONSOLIDATE.value}:
        raise NoAnswerError(f"--goal: expected {GOALS}, got {written}")
    return Goal(name), ""


def _excluded(namespaces: Sequence[str], patterns: Sequence[str]) -> Callable[[Binding], bool]:
    def is_excluded(binding: Binding) -> bool:
        if namespaces and binding.key.namespace not in namespaces:
            return True
        return any(fnmatchcase(str(binding.key), pattern) for pattern in patterns)

    return is_excluded


def _write(proposal: RebalanceProposal, folder: Path | None) -> list[str]:
    """Write the manifests; return the names of the files.

    Raises:
        NoAnswerError: A file cannot be written, or exists.
    """
    if folder is None:
        return []
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, manifest in enumerate(manifests(proposal), 1):
            path = folder / f"batch-{number}.yaml"
            with path.open("x") as file:
                file.write(as_yaml(manifest))
            written.append(str(path))
    except FileExistsError as error:
        raise NoAnswerError(f"--write-to: {error.filename} exists; name an empty directory") from error
    except OSError as error:
        raise NoAnswerError(f"--write-to: {error.filename}: {error.strerror}") from error
    return written
