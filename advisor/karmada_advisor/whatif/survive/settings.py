"""How karmada-controller-manager is set, from its Deployment or Pod: its gates and flags are not in its API.

Source: karmada v1.18.2 cmd/controller-manager/app/options options.go, cluster_failover.go; pkg/features/features.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from karmada_advisor.state.stored import command_line, mapping, mappings
from karmada_advisor.whatif.survive.loss import Loss
from karmada_advisor.whatif.survive.model import LossSettings
from karmada_scheduler.api.manifest import ManifestError

PROGRAM: Final = "karmada-controller-manager"
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
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
        each.partition("=")[::2] for each in flags.get("feature-gates", "").split(",") if "=" in each
    )
    is_on = flags.get("enable-taint-manager", "true") in _TRUE
    return LossSettings(
        loss,
        failover=gates.get("Failover", gates.get("AllAlpha", "false")) in _TRUE,
        eviction=is_on and flags.get("enable-no-execute-taint-eviction", "false") in _TRUE,
        eviction_rate=_number(flags, "resource-eviction-rate", 0.5),
        purge_mode=flags.get("no-execute-taint-eviction-purge-mode", "Gracefully"),
        eviction_timeout=round(_duration(flags, "graceful-eviction-timeout", 600)),
        noticed_push=round(_duration(flags, "cluster-failure-threshold", 30)) + _PROBE_SECONDS,
        noticed_pull=round(_duration(flags, "cluster-monitor-grace-period", 40)) + _MONITOR_SECONDS,
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


def _duration(flags: Mapping[str, str], name: str, default: float) -> float:
    written = flags.get(name)
    if written is None:
        return default
    parts = _DURATION.findall(written)
    if not parts or "".join(f"{amount}{unit}" for amount, unit in parts) != written:
        raise ManifestError(f"--{name}", f"expected a duration such as 40s, got {written!r}")
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
