"""The configuration file: profiles, plugin args, extenders, with the fields of KubeSchedulerConfiguration.

It does not check names and args of plugins; that happens when the profiles are built.

Source: kubernetes v1.35 staging/src/k8s.io/kube-scheduler/config/v1/types.go, v1 defaults and
pkg/scheduler/apis/config/validation/validation.go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config import extenders as extender_rules
from karmada_scheduler.config import file_content
from karmada_scheduler.config.extenders import ExtenderConfig
from karmada_scheduler.config.problems import ConfigError, ConfigProblem, join, nearest
from karmada_scheduler.config.profiles import (
    ALL,
    LONGEST_PLAIN_SECONDS,
    ProfileConfig,
    SchedulerConfiguration,
)
from karmada_scheduler.config.structure import shown, structure
from karmada_scheduler.structs import replace

KUBERNETES_KIND: Final = "KubeSchedulerConfiguration"
KINDS: Final = {
    "KarmadaSchedulerConfiguration": "pyscheduler.karmada.io/v1alpha1",
    KUBERNETES_KIND: "kubescheduler.config.k8s.io/v1",
}
"""The kinds of file that are understood, and their apiVersion; both have the same fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    api_version: str = ""
    kind: str = ""
    profiles: tuple[ProfileConfig, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    plugin_timeout_seconds: float | None = None


_WITHOUT_EFFECT: Final = {
    "parallelism": "a decision is made in one thread, and --max-in-flight limits what is being written",
    "leaderElection": "--leader-elect and its companions set it",
    "clientConnection": "--kubeconfig, --kube-api-qps and --kube-api-burst set it",
    "podInitialBackoffSeconds": "--rate-limiter-base-delay sets it",
    "podMaxBackoffSeconds": "--rate-limiter-max-delay sets it",
    "delayCacheUntilActive": "the caches of a standby are always kept warm",
    "enableProfiling": "there is no profiling endpoint",
    "enableContentionProfiling": "there is no profiling endpoint",
}
_PERCENTAGE: Final = "percentageOfNodesToScore"


def load(path: Path, *, scheduler_name: str = DEFAULT_SCHEDULER_NAME) -> SchedulerConfiguration:
    """Read and check a file.

    Args:
        path: The file.
        scheduler_name: The name of a single profile that has none; any other than the default has to be that of a profile.

    Raises:
        ConfigError: It cannot be used; all problems at once, each with the file's name and its path.
    """
    try:
        found = read(file_content.read(path), scheduler_name=scheduler_name)
        _require_profile(found, scheduler_name)
        return replace(found, source=str(path))
    except ConfigError as error:
        raise error.within(path) from error


def read(data: object, *, scheduler_name: str = DEFAULT_SCHEDULER_NAME) -> SchedulerConfiguration:
    """Check the content of a file; see ``load``."""
    if not isinstance(data, Mapping):
        raise ConfigError(
            [ConfigProblem("", f"expected a mapping with apiVersion and kind, got {shown(data)}")]
        )
    problems = [*_wrong_kind(data), *_wrong_percentages(data)]
    try:
        file = structure(_without_ineffective(data), _File)
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from error
    problems.extend(_problems_in(file))
    if problems:
        raise ConfigError(problems)
    return SchedulerConfiguration(
        profiles=tuple(
            replace(each, scheduler_name=each.scheduler_name or scheduler_name) for each in file.profiles
        ),
        extenders=file.extenders,
        plugin_timeout_seconds=file.plugin_timeout_seconds,
        warnings=tuple(_warnings(data, file)),
        is_kubernetes=file.kind == KUBERNETES_KIND,
    )


def _wrong_kind(data: Mapping[Any, Any]) -> Iterator[ConfigProblem]:
    kind, version = data.get("kind"), data.get("apiVersion")
    if not isinstance(kind, str) or kind not in KINDS:
        yield ConfigProblem("kind", f"expected {' or '.join(KINDS)}, got {shown(kind)}")
    elif version != KINDS[kind]:
        yield ConfigProblem("apiVersion", f"expected {KINDS[kind]} for kind {kind}, got {shown(version)}")


def _wrong_percentages(data: Mapping[Any, Any]) -> Iterator[ConfigProblem]:
    profiles = data.get("profiles")
    places = [
        ("", data),
        *((f"profiles[{i}]", each) for i, each in enumerate(profiles if isinstance(profiles, list) else ())),
    ]
    for path, document in places:
        if isinstance(document, Mapping) and document.get(_PERCENTAGE) not in (None, 0, 100):
            yield ConfigProblem(
                join(path, _PERCENTAGE),
                "can only be 0 or 100: replicas are divided over all clusters that fit, so all have to be found",
            )


def _without_ineffective(data: Mapping[Any, Any]) -> dict[Any, Any]:
    """Remove fields without effect."""
    kept = {key: value for key, value in data.items() if key not in _WITHOUT_EFFECT and key != _PERCENTAGE}
    if isinstance(kept.get("profiles"), list):
        kept["profiles"] = [
            {key: value for key, value in profile.items() if key != _PERCENTAGE}
            if isinstance(profile, Mapping)
            else profile
            for profile in kept["profiles"]
        ]
    return kept


def _warnings(data: Mapping[Any, Any], file: _File) -> Iterator[str]:
    for key, reason in _WITHOUT_EFFECT.items():
        if key in data:
            yield f"{key} has no effect: {reason}"
    if (seconds := file.plugin_timeout_seconds or 0.0) > LONGEST_PLAIN_SECONDS:
        yield (
            f"pluginTimeoutSeconds: {seconds:g} seconds are for coroutines; plain functions have {LONGEST_PLAIN_SECONDS:g}, "
            "because all bindings wait for them"
        )
    for position, extender in enumerate(file.extenders):
        if extender.preempt_verb:
            yield f"extenders[{position}].preemptVerb has no effect: nothing is preempted"
        for index, resource in enumerate(extender.managed_resources):
            if resource.ignored_by_scheduler:
                path = f"extenders[{position}].managedResources[{index}].ignoredByScheduler"
                yield f"{path} has no effect: {resource.name} counts when capacity is estimated"


def _problems_in(file: _File) -> Iterator[ConfigProblem]:
    if file.plugin_timeout_seconds is not None and not 0 < file.plugin_timeout_seconds < math.inf:
        yield ConfigProblem("pluginTimeoutSeconds", "must be greater than 0")
    for problem in extender_rules.problems_in(file.extenders):
        yield problem.below("extenders")
    names = set[str]()
    for position, profile in enumerate(file.profiles):
        path = f"profiles[{position}]"
        if not profile.scheduler_name and len(file.profiles) > 1:
            yield ConfigProblem(f"{path}.schedulerName", "is required where there are several profiles")
        elif profile.scheduler_name in names:
            yield ConfigProblem(f"{path}.schedulerName", f'duplicate value "{profile.scheduler_name}"')
        names.add(profile.scheduler_name)
        for problem in _problems_in_profile(profile):
            yield problem.below(path)


def _require_profile(found: SchedulerConfiguration, wanted: str) -> None:
    """Raise ConfigError if no profile has the ``--scheduler-name``, whose bindings would wait for ever."""
    names = [profile.scheduler_name for profile in found.profiles]
    if names and wanted not in (DEFAULT_SCHEDULER_NAME, *names):
        text = (
            f"no profile has the schedulerName {wanted} of --scheduler-name, there are: {', '.join(names)}; "
            f"{nearest(wanted, names)}add a profile with schedulerName: {wanted}, or give --scheduler-name={names[0]}"
        )
        raise ConfigError([ConfigProblem("profiles", text)])


def _problems_in_profile(profile: ProfileConfig) -> Iterator[ConfigProblem]:
    for point, plugins in profile.plugins.by_point.items():
        for listed, entries in (("enabled", plugins.enabled), ("disabled", plugins.disabled)):
            met = set[str]()
            for index, entry in enumerate(entries):
                path = f"plugins.{point}.{listed}[{index}]"
                if not entry.name or (listed == "enabled" and entry.name == ALL):
                    yield ConfigProblem(
                        f"{path}.name", f"must be the name of a plugin, got {shown(entry.name)}"
                    )
                elif entry.name in met:
                    yield ConfigProblem(
                        f"{path}.name", f'plugin "{entry.name}" already registered as "{_label(point)}"'
                    )
                if not 0 <= entry.weight <= MAX_INT32:
                    yield ConfigProblem(f"{path}.weight", f"must be 0 to {MAX_INT32}, got {entry.weight}")
                met.add(entry.name)
    met = set()
    for index, args in enumerate(profile.plugin_config):
        if args.name in met:
            yield ConfigProblem(f"pluginConfig[{index}].name", f"repeated config for plugin {args.name}")
        met.add(args.name)


def _label(point: str) -> str:
    return point[0].upper() + point[1:]
