"""What the flags that several commands have say: where objects are, by which rules decisions are made, who is asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Final

from karmada_advisor.cli.output import print_errors
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import PolicyRef
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.read import read_fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import ControlPlane, FleetSource, RunningScheduler
from karmada_advisor.state.stored import policy_key, text_of
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.names import nearest_hint, unknown
from karmada_scheduler.api.policy import PolicyKey
from karmada_scheduler.framework.profile.factory import Registration

_OBJECTS: Final = ("clusters", "bindings", "policies", "quotas", "workloads")
"""The flags for files of objects, which a source has by the same names."""


def control_plane_of(arguments: argparse.Namespace) -> ControlPlane:
    """Return the control plane of the flags of ``flags.shared.add_control_plane``, with ``--request-timeout``."""
    return ControlPlane(
        kubeconfig=arguments.kubeconfig,
        context=arguments.context,
        cluster=arguments.kubeconfig_cluster,
        user=arguments.user,
        timeout=arguments.request_timeout,
    )


def source_of(arguments: argparse.Namespace) -> FleetSource:
    """Return what the flags of ``flags.shared.add_objects`` name.

    Raises:
        NoAnswerError: They contradict each other.
    """
    others = (*_OBJECTS, "kubeconfig", "context", "process")
    if arguments.replay and (
        named := [
            f"--{'from' if name == 'process' else name}" for name in others if getattr(arguments, name, "")
        ]
    ):
        raise NoAnswerError(f"--replay has the objects already: leave out {', '.join(named)}")
    given, names = vars(arguments), (*_OBJECTS, "namespace", "replay")
    return FleetSource(
        plane=control_plane_of(arguments), **{name: given[name] for name in names if name in given}
    )


def read_whole_fleet(source: FleetSource, *, without_clusters: str) -> Fleet:
    """Read all objects, and print what is wrong with some.

    Args:
        source: Where they are.
        without_clusters: The error if there is no cluster.

    Raises:
        NoAnswerError: There is no answer.
    """
    fleet = read_fleet(source, all_bindings=True)
    print_errors((*fleet.problems, *fleet.warnings))
    if not fleet.clusters:
        raise NoAnswerError(without_clusters)
    return fleet


def rules_of(arguments: argparse.Namespace, own: Sequence[Registration] = (), *, before: str = "") -> Rules:
    """Return the rules of flags.

    Args:
        arguments: With those of ``flags.shared.add_rules``.
        own: The plugins of a main program of the user's own.
        before: The prefix of those that ``plan`` has for the rules as they are, ``current_``.

    Raises:
        NoAnswerError: The file of ``--scheduler-manifest`` cannot be used.
    """
    given = vars(arguments)
    rules = Rules(
        plugins=given[f"{before}plugins"],
        config=given[f"{before}config"],
        plugin_dirs=given[f"{before}plugin_dir"],
        scheduler_name=arguments.scheduler_name,
        feature_gates=given[f"{before}feature_gates"],
        decisions_of=given[f"{before}decisions_of"],
        keeps_empty=arguments.enable_empty_workload_propagation == "true",
        own=own,
    )
    is_changed = "current_plugins" in given and not before  # a manifest has the rules as they are
    if is_changed or not given.get("scheduler_manifest"):
        return rules
    from karmada_advisor.fleet.process import with_manifest

    rules, notes = with_manifest(rules, arguments.scheduler_manifest)
    print_errors(notes)
    return rules


def process_of(arguments: argparse.Namespace) -> RunningScheduler | None:
    """Return the running scheduler of ``--from``; None without one."""
    if not arguments.process:
        return None
    return RunningScheduler(
        arguments.process, arguments.from_token_file, arguments.from_ca_file, arguments.from_server_name
    )


def process_rules_of(
    arguments: argparse.Namespace, own: Sequence[Registration] = (), *, before: str = ""
) -> Rules:
    """Return the rules of the process of ``--from`` where flags name no others; those of the flags without one.

    Raises:
        NoAnswerError: The URL is not one of a process, or a flag contradicts it.
    """
    return rules_by(rules_of(arguments, own, before=before), process_of(arguments))


def rules_by(rules: Rules, process: RunningScheduler | None) -> Rules:
    """Return the rules of a process where flags name no others; those of the flags without one.

    Raises:
        NoAnswerError: The URL is not one of a process, or a flag contradicts it.
    """
    if process is None:
        return rules
    from karmada_advisor.fleet.process import with_process  # the HTTP client, which files do without

    return with_process(rules, process)


def words_of(flag: str, written: str, known: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the words of a list, each with what follows an @ in it.

    Raises:
        NoAnswerError: There is no such word.
    """
    for text in filter(None, map(str.strip, written.split(","))):
        word, separator, rest = text.partition("@")
        if word not in known:
            raise NoAnswerError(f"{flag}: {word} is none of {', '.join(known)}{nearest_hint(word, known)}")
        yield word, separator, rest


def check_names(
    plane: ControlPlane, fleet: Fleet, namespaces: Sequence[str], policies: Sequence[str] = ()
) -> None:
    """Check that namespaces and policies exist, as far as that is known.

    Raises:
        NoAnswerError: One does not.
    """
    for namespace in namespaces:
        check_namespace(plane, namespace, fleet)
    for policy in policies:
        of_policy(policy, fleet)


def of_policy(asked: str, fleet: Fleet) -> list[Binding]:
    """Return the bindings of the policy ``NAME`` or ``NAMESPACE/NAME``.

    Raises:
        NoAnswerError: There are none, and no such policy, as far as policies were read.
    """
    namespace, _, name = asked.rpartition("/")

    def is_asked_for(policy: PolicyRef | PolicyKey | None) -> bool:
        return policy is not None and policy.name == name and namespace in ("", policy.namespace)

    found = [binding for binding in fleet.bindings if is_asked_for(policy_of(binding.annotations))]
    keys = [policy_key(policy) for policy in fleet.policies or ()]
    if found or any(map(is_asked_for, keys)):
        return found
    if fleet.policies is None:
        raise NoAnswerError(f"no binding is of the policy {asked}, and policies were not read (--policies)")
    raise NoAnswerError(unknown(f"policy {asked}", name, [key.name for key in keys]))


def check_namespace(plane: ControlPlane, namespace: str, fleet: Fleet) -> None:
    """Check that a namespace exists, as far as that is known.

    Raises:
        NoAnswerError: It does not.
    """
    known = {text_of(manifest, "metadata", "namespace") for manifest in fleet.policies or ()}
    known |= {binding.key.namespace for binding in fleet.bindings}
    known |= {workload.namespace for workload in fleet.workloads or ()}
    if namespace in known:
        return
    if fleet.is_live:
        from karmada_advisor.fleet import live

        try:
            if live.has_namespace(plane, namespace):
                return
        except NoAnswerError as error:
            fleet.warnings.append(f"whether the namespace {namespace} exists is not known: {error}")
            return
    raise NoAnswerError(unknown(f"namespace {namespace}", namespace, known - {""}))
