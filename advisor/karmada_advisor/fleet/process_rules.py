"""The rules of a running scheduler, as a command uses them: its profiles, plugins, arguments and gates.

Code is never loaded from where a process says that it is. A plugin whose code is not here is missing, and what the process
has recorded is the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.state.stored import mapping, mappings, texts
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import SchedulerConfiguration
from karmada_scheduler.framework.extension_points import points_of
from karmada_scheduler.structs import Struct, field
from karmada_scheduler_plugins.registry import MANDATORY


class ProcessConfiguration(Struct, frozen=True):
    """What a process decides with; empty if it cannot be read.

    Attributes:
        url: Where it answers.
        process: Its name.
        gates: Feature gates.
        profiles: The names of the plugins of each profile, by scheduler name.
        tokens: Its ``--plugins``.
        directories: Its ``--plugin-dir``.
        scheduler_name: Its ``--scheduler-name``.
        file: The content of its ``--config``, without extenders; None without one.
        is_complete: Whether it says all this; older versions do not.
        empty_workload_propagation: Its flag.
        decisions_of: Its flag; "" if it does not say so, as older versions.
        not_called: What it asks besides plugins, and a command does not: extenders, estimators.
        state: What ``of`` was made from, for a capture.
    """

    url: str = ""
    process: str = ""
    gates: Mapping[str, bool] = field(default_factory=dict)
    profiles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tokens: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    file: Mapping[str, Any] | None = None
    is_complete: bool = False
    empty_workload_propagation: bool = False
    decisions_of: str = ""
    not_called: tuple[str, ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scheduler_names(self) -> frozenset[str]:
        """The names of its profiles."""
        return frozenset(self.profiles)

    @classmethod
    def of(cls, url: str, state: Mapping[str, Any]) -> ProcessConfiguration:
        """Read it from the response of ``/v1/state``; what is of a wrong type counts as missing."""
        found = mapping(state.get("configuration"))
        listed = mappings(found.get("profiles"))
        counts = [profile.get("extenders") for profile in listed]
        extenders = any(isinstance(count, int) and count for count in counts)
        file, named = found.get("file"), [profile for profile in listed if profile.get("schedulerName")]
        return cls(
            state={"process": state.get("process"), "configuration": found},
            url=url,
            process=str(state.get("process") or url),
            gates={str(name): bool(value) for name, value in mapping(found.get("featureGates")).items()},
            profiles={str(profile["schedulerName"]): frozenset(_plugin_names(profile)) for profile in named},
            tokens=tuple(texts(found.get("plugins"))),
            directories=tuple(texts(found.get("pluginDirs"))),
            scheduler_name=str(found.get("schedulerName") or DEFAULT_SCHEDULER_NAME),
            file=file if isinstance(file, Mapping) else None,
            is_complete="file" in found,
            empty_workload_propagation=found.get("enableEmptyWorkloadPropagation") is True,
            decisions_of=str(found.get("decisionsOf") or ""),
            not_called=(
                *(("extenders",) if extenders else ()),
                *(("estimators in member clusters",) if found.get("estimatorFailurePolicy") else ()),
            ),
        )

    @property
    def running(self) -> Mapping[str, str]:
        """The names of its profiles, to its own name."""
        return dict.fromkeys(self.profiles, self.process)

    def missing(self, available: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Return by profile the plugins whose code is not available here."""
        return {name: tuple(sorted(names.difference(available))) for name, names in self.profiles.items()}

    def configuration(self, available: Collection[str]) -> SchedulerConfiguration:
        """Return the profiles, without plugins that are not available.

        Raises:
            NoAnswerError: The process has sent no configuration.
        """
        if self.file is None:
            return SchedulerConfiguration()
        from karmada_scheduler.config.configuration_file import read  # needed here only

        try:
            return read(_with_known(self.file, available), scheduler_name=self.scheduler_name)
        except ConfigError as error:
            raise NoAnswerError(f"--from: the configuration of {self.url} cannot be used: {error}") from error

    def known_tokens(self, available: Collection[str]) -> tuple[str, ...]:
        """Return ``--plugins`` without plugins that are not available."""
        known = tuple(name for name in self.tokens if name == "*" or name.removeprefix("-") in available)
        return known or ("*",)

    def __str__(self) -> str:
        end = f", without its {' and '.join(self.not_called)}" if self.not_called else ""
        return f"the process {self.process}{end}"


def _plugin_names(profile: Mapping[str, Any]) -> Iterator[str]:
    for names in mapping(profile.get("plugins")).values():
        yield from texts(names)


def _with_known(file: Mapping[str, Any], available: Collection[str]) -> dict[str, Any]:
    """Return a configuration in which every plugin is available."""

    def known(entries: object) -> list[Any]:
        names = (*available, "*")  # a tuple, because the name of an entry may be of any type
        return [entry for entry in _items(entries) if mapping(entry).get("name") in names]

    changed: list[Any] = []
    for profile in _items(file.get("profiles")):
        given = mapping(mapping(profile).get("plugins"))
        plugins = {
            point: {name: known(entries) for name, entries in mapping(lists).items()}
            for point, lists in given.items()
        }
        # Nothing is decided without the missing ones, but the profile needs one of these.
        if plugins != given:
            for name, made in MANDATORY.items():
                default = {"enabled": [{"name": name}], "disabled": [{"name": "*"}]}
                plugins |= {point.value: default for point in points_of(made)}
        arguments = known(mapping(profile).get("pluginConfig"))
        changed.append({**mapping(profile), "plugins": plugins, "pluginConfig": arguments})
    return {**file, "profiles": changed} if changed else dict(file)


def _items(value: object) -> Iterable[Any]:
    return value if isinstance(value, list | tuple) else ()
