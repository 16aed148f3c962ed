"""The configuration that decisions depend on, as records and the state of a process have it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karmada_scheduler.config import features, file_content
from karmada_scheduler.config.features import DEFAULT_RULES
from karmada_scheduler.config.options import Options
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.records.record import encode
from karmada_scheduler_plugins.registry import in_tree


class RecordedConfiguration:
    """The configuration that decisions depend on, and a hash over it."""

    def __init__(self, options: Options, profiles: Profiles) -> None:
        """Take the flags, and the profiles, which change when a plugin file does."""
        self._options = options
        self._profiles = profiles
        self._file = options.config.read_bytes() if options.config is not None else b""
        self._shown_file = _without_extenders(self._file)
        self._frameworks: list[tuple[str, Framework]] = []
        self._hash = ""
        self.hash()

    def hash(self) -> str:
        """Return a hash over gates, plugins and their arguments; plugins are compared by name and file."""
        frameworks = self._profiles.items()
        if frameworks != self._frameworks:
            text = encode(self.fields(with_hash=False))
            folders = self._options.plugin_dirs
            files = [(file.name, _content(file)) for each in folders for file in sorted(each.glob("*.py"))]
            self._hash = hashlib.sha256(repr((text, self._file, files)).encode()).hexdigest()[:12]
            self._frameworks = frameworks
        return self._hash

    def fields(self, *, with_hash: bool = True) -> dict[str, Any]:
        """Return the configuration as JSON values."""
        options = self._options
        fields = {
            "featureGates": {name: options.feature_gates.enabled(name) for name in sorted(features.KNOWN)},
            "decisionsOf": options.decisions_of,
            "plugins": list(options.plugins),
            "pluginDirs": [str(folder) for folder in options.plugin_dirs],
            "config": str(options.config) if options.config is not None else None,
            "file": self._shown_file,
            "schedulerName": options.scheduler_name,
            "enableEmptyWorkloadPropagation": options.enable_empty_workload_propagation,
            "estimatorFailurePolicy": options.estimators.failure_policy
            if options.estimators.enabled
            else None,
            "profiles": [_profile(name, framework) for name, framework in self._profiles.items()],
        }
        return fields | ({"hash": self._hash} if with_hash else {})


def default_profiles(options: Options, profiles: Profiles) -> list[str]:
    """Return the profiles that decide as karmada-scheduler does by default: by its plugins and gates, and nothing else."""
    gates, defaults = options.feature_gates, features.FeatureGates()
    if (
        options.decisions_of != DEFAULT_RULES.decisions_of
        or options.enable_empty_workload_propagation
        or options.estimators.enabled
        or any(gates.enabled(name) != defaults.enabled(name) for name in features.KNOWN)
    ):
        return []
    expected = {name for name, plugin in in_tree(defaults).items() if not plugin.opt_in}
    return [
        name
        for name, framework in profiles.items()
        if not framework.extenders
        and {each.name for point in Point for each in framework.plugins.at(point)} == expected
        and {*framework.plugins.weights.values()} <= {1}
    ]


def _without_extenders(content: bytes) -> Mapping[str, Any] | None:
    """Return a configuration file as data, without the extenders, whose keys may stand in it; None without a file."""
    found = file_content.parse(content) if content else None
    if not isinstance(found, Mapping):
        return None
    return {str(name): value for name, value in found.items() if name != "extenders"}


def _content(file: Path) -> bytes:
    """Return the content of a file, b"" if it was removed meanwhile or cannot be read."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _profile(name: str, framework: Framework) -> dict[str, Any]:
    plugins = framework.plugins
    points = {point.value: [each.name for each in plugins.at(point)] for point in Point}
    return {
        "schedulerName": name,
        "plugins": {point: names for point, names in points.items() if names},
        "weights": dict(plugins.weights),
        "extenders": len(framework.extenders),
    }
