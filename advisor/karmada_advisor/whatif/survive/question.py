"""The question of ``survive``, what of a fleet it concerns, and how karmada-controller-manager is set.

The gates and flags of karmada-controller-manager are not in its API, but in its Deployment or Pod.

Source: karmada v1.18.2 cmd/controller-manager/app/options options.go, cluster_failover.go; pkg/features/features.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.files import Contents, read
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.stored import command_line, mapping, mappings, text_of
from karmada_advisor.whatif.survive.classify import LossClass
from karmada_advisor.whatif.survive.domains import CLUSTER, FailureDomains
from karmada_advisor.whatif.survive.fail_on import FailOn, Figures
from karmada_advisor.whatif.survive.loss import Loss, LossTaints, taints_by_policies
from karmada_advisor.whatif.survive.model import LossSettings, SurvivalReport
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import ManifestError, duration_seconds
from karmada_scheduler.api.names import unknown
from karmada_scheduler.structs import Struct, replace


class SurviveQuestion(Struct, frozen=True, kw_only=True):
    """What the losses of failure domains do to bindings, and to which.

    Attributes:
        rules: By which decisions are made.
        settings: The world after the loss by which domains are ordered and judged, and how karmada-controller-manager is set.
        fail_on: What gives the exit status 1.
        expected: The fingerprint of ``--expect``; "" for any.
        kinds: What is lost together; the default kinds if empty.
        names: The domains; all if empty.
        spanning_is_lost: Whether a cluster in several zones is lost with each of them.
        pairs: Domains that are lost at once, too.
        drawn_pairs: How many more pairs are drawn.
        namespaces: Only bindings of these are reported; all if empty.
        policies: Only bindings of these are reported, as ``NAME`` or ``NAMESPACE/NAME``; all if empty.
        least_priority: Only bindings with at least this priority are reported; None for all.
        holds: Whether what is interrupted does not survive.
        every_loss: Whether losses without any effect are listed, too.
        baseline: Figures of an earlier report; None without one.
        remedies: For each policy, at most; 0 looks for none.
        seconds: After which the report ends with the domains that are done.
        fails_on_not_judged: Whether what is not judged gives the exit status 1 as well.
    """

    rules: Rules
    settings: LossSettings
    fail_on: Sequence[FailOn]
    expected: str = ""
    kinds: Sequence[str] = ()
    names: Sequence[str] = ()
    spanning_is_lost: bool = False
    pairs: Sequence[tuple[str, str]] = ()
    drawn_pairs: int = 0
    namespaces: Sequence[str] = ()
    policies: Sequence[str] = ()
    least_priority: int | None = None
    holds: bool = False
    every_loss: bool = False
    baseline: Figures | None = None
    remedies: int = 3
    seconds: float = 600.0
    fails_on_not_judged: bool = True

    def fails_on(self, report: SurvivalReport) -> Sequence[FailOn]:
        """Return what gives the exit status 1 of a report.

        Raises:
            NoAnswerError: The baseline is a report about another fleet.
        """
        known = {(domain.kind, domain.name) for domain in report.domains}
        if self.baseline is not None and known.isdisjoint(self.baseline):
            raise NoAnswerError("--baseline: is a report about another fleet: no failure domain is in both")
        more = self.fails_on_not_judged and report.totals.not_judged
        return [*self.fail_on, FailOn(LossClass.NOT_JUDGED.value)] if more else self.fail_on

    def chosen(self, every: FailureDomains) -> FailureDomains:
        """Return the domains that are asked for, with those that are lost in pairs.

        Raises:
            NoAnswerError: There is no domain with one of the names, or none at all.
        """
        # A domain that is one cluster has the names of its Clusters, which may be several.
        names = {
            each: {each.name, *(each.clusters if each.kind == CLUSTER else ())} for each in every.domains
        }
        known = frozenset[str]().union(*names.values())
        for name in self.names:
            if name in every.deleting:
                raise NoAnswerError(f"cluster {name} is being deleted already")
            if name not in known:
                kinds = ", ".join(dict.fromkeys(domain.kind for domain in every.domains))
                raise NoAnswerError(unknown(f"{name}: such a domain ({kinds})", name, known))
        first = {domain.name: domain for domain in reversed(every.domains)}
        paired = [name for pair in self.pairs for name in pair]
        for name in paired:
            if name not in first:
                raise NoAnswerError(unknown(f"--pairs: {name}: such a domain", name, first))
        named = [name for name, own in names.items() if not self.names or own & {*self.names}]
        domains = tuple(dict.fromkeys((*named, *(first[name] for name in paired))))
        if not domains:
            kinds = ", ".join(self.kinds)
            raise NoAnswerError(f"no cluster has a value for {kinds}, so nothing is lost together")
        return replace(every, domains=domains)

    def is_reported(self, binding: Binding) -> bool:
        """Return whether a binding is asked about: by its namespace, its policy and its priority."""
        if self.least_priority is not None and binding.spec.priority < self.least_priority:
            return False
        if self.namespaces and binding.key.namespace not in self.namespaces:
            return False
        if not self.policies:
            return True
        policy = policy_of(binding.annotations)
        if policy is None:
            return False
        return policy.name in self.policies or f"{policy.namespace}/{policy.name}" in self.policies


def taint_policies_of(
    files: Sequence[str], plane: ControlPlane, fleet: Fleet
) -> tuple[Sequence[Mapping[str, Any]] | None, str]:
    """Return the ClusterTaintPolicies, None if they are not known; and why those of a control plane are not.

    Raises:
        NoAnswerError: A file cannot be used.
    """
    if files:
        found: Contents[Mapping[str, Any]] = read(files, _as_taint_policy)
        if found.problems:
            raise NoAnswerError(f"--taint-policies: {found.problems[0]}")
        return found.objects, ""
    if not fleet.is_live:
        return fleet.taint_policies, ""
    from karmada_advisor.fleet import live  # the client, which files do not need

    try:
        return live.read_taint_policies(plane), ""
    except NoAnswerError as error:
        return None, f"clustertaintpolicies: which taints they would add is not known: {error}"


def _as_taint_policy(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    if manifest.get("kind") != "ClusterTaintPolicy":
        raise ManifestError("kind", f"expected ClusterTaintPolicy, got {manifest.get('kind')!r}")
    return manifest


def reaction(
    settings: LossSettings, policies: Sequence[Mapping[str, Any]] | None, fleet: Fleet
) -> tuple[LossTaints, LossSettings]:
    """Return the taints of lost clusters, and the settings with what ClusterTaintPolicies do to these.

    ``policies`` is None if they are not known.

    Raises:
        NoAnswerError: A policy cannot be read.
    """
    try:
        by_policies = taints_by_policies(policies or (), fleet.clusters)
    except ManifestError as problem:
        raise NoAnswerError(f"ClusterTaintPolicy: {problem}") from problem
    taints = LossTaints(by_policies, acts=settings.failover, evicts=settings.failover and settings.eviction)
    evicting = [found for name in by_policies if (found := taints.no_execute(name))]
    keys = sorted({binding.key for found in evicting for binding in found})
    tainted = None if policies is None else len(evicting)
    return taints, replace(settings, tainted_clusters=tainted, taint=", ".join(keys) or settings.taint)


def purge_modes(fleet: Fleet) -> Mapping[BindingKey, str]:
    """Return the purge modes of the bindings that have one for the failover of clusters."""
    path = ("spec", "failover", "cluster", "purgeMode")
    keys = (binding.key for binding in fleet.bindings if binding.spec.failover_purge_modes)
    return {key: mode for key in keys if (mode := text_of(fleet.manifests[key], *path))}


PROGRAM: Final = "karmada-controller-manager"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_PROBE_SECONDS: Final = 10
_MONITOR_SECONDS: Final = 5


def read_settings(manifest: Mapping[str, Any], loss: Loss) -> LossSettings:
    """Return the settings of the program that a Deployment, a Pod or another workload starts.

    Args:
        manifest: The workload.
        loss: The world by which domains are ordered.

    Raises:
        ManifestError: It does not start karmada-controller-manager, or a flag cannot be read.
    """
    flags = dict(_flags(_command(manifest)))
    gates = dict(
        gate.partition("=")[::2] for gate in flags.get("feature-gates", "").split(",") if "=" in gate
    )
    is_on = flags.get("enable-taint-manager", "true") in _TRUE
    return LossSettings(
        loss,
        failover=gates.get("Failover", gates.get("AllAlpha", "false")) in _TRUE,
        eviction=is_on and flags.get("enable-no-execute-taint-eviction", "false") in _TRUE,
        eviction_rate=_number(flags, "resource-eviction-rate", 0.5),
        purge_mode=flags.get("no-execute-taint-eviction-purge-mode", "Gracefully"),
        eviction_timeout=round(_duration(flags, "graceful-eviction-timeout", "10m")),
        noticed_push=round(_duration(flags, "cluster-failure-threshold", "30s")) + _PROBE_SECONDS,
        noticed_pull=round(_duration(flags, "cluster-monitor-grace-period", "40s")) + _MONITOR_SECONDS,
        defaults_assumed=False,
    )


def _command(manifest: Mapping[str, Any]) -> Sequence[str]:
    spec = mapping(manifest.get("spec"))
    pod = mapping(mapping(spec.get("template")).get("spec")) or spec
    for container in mappings(pod.get("containers")):
        words = command_line(container)
        if any(PROGRAM in word for word in (*words[:3], str(container.get("image") or ""))):
            return words
    raise ManifestError("spec", f"no container runs {PROGRAM}: expected its Deployment or Pod")


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for index, word in enumerate(words):
        for part in word.split() if " " in word else (word,):
            name, separator, value = part.lstrip("-").partition("=")
            if not part.startswith("-"):
                continue
            following = words[index + 1] if index + 1 < len(words) else ""
            if not separator:
                value = "true" if not following or following.startswith("-") else following
            yield name, value


def _number(flags: Mapping[str, str], name: str, default: float) -> float:
    try:
        found = float(flags.get(name, default))
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ManifestError(f"--{name}", f"expected a number from 0, got {flags[name]!r}")
    return found


def _duration(flags: Mapping[str, str], name: str, default: str) -> float:
    try:
        return duration_seconds(flags.get(name, default))
    except ValueError as problem:
        raise ManifestError(f"--{name}", str(problem)) from None
