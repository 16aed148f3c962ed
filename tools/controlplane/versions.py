"""The versions of Karmada that are built and tested: one in full, older ones in part (docs/karmada-versions.md)."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class KarmadaVersion:
    """A version of Karmada.

    Attributes:
        name: Without v.
        go_mod: Its pins; go.sum lies next to it.
        tag: The build tag of the oracle; "" for the newest.
        unknown_gates: The feature gates that it lacks.
        unknown_fields: The fields of placements and bindings that it lacks.
    """

    name: str
    go_mod: Path
    tag: str = ""
    unknown_gates: frozenset[str] = frozenset()
    unknown_fields: frozenset[str] = frozenset()

    @property
    def is_current(self) -> bool:
        """Whether it is the version that everything is tested with."""
        return not self.tag

    @property
    def modfile(self) -> tuple[str, ...]:
        """The flag of Go commands that selects its pins."""
        return () if self.is_current else (f"-modfile={self.go_mod}",)


CURRENT: Final = KarmadaVersion("1.18.2", HERE / "tools" / "go.mod")
_NEW_IN_1_18: Final = frozenset({"SchedulingOvercommitProtection"})
VERSIONS: Final = {
    each.name: each
    for each in (
        CURRENT,
        KarmadaVersion(
            "1.17.1",
            HERE / "versions" / "1.17.1" / "go.mod",
            "karmada_117",
            _NEW_IN_1_18,
            frozenset({"overflowAffinities"}),
        ),
        KarmadaVersion(
            "1.16.0",
            HERE / "versions" / "1.16.0" / "go.mod",
            "karmada_116",
            _NEW_IN_1_18 | {"WorkloadAffinity"},
            frozenset({"overflowAffinities", "workloadAffinity", "workloadAffinityGroups"}),
        ),
    )
}


def named(name: str) -> KarmadaVersion:
    """Return a version by its name; the type of a flag.

    Raises:
        ArgumentTypeError: There are no pins of it.
    """
    found = VERSIONS.get(name.removeprefix("v"))
    if found is None:
        raise argparse.ArgumentTypeError(
            f"Karmada {name} is not built here; use one of {', '.join(VERSIONS)}"
        )
    return found


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag for the version of Karmada."""
    parser.add_argument(
        "--karmada",
        type=named,
        default=CURRENT,
        metavar="VERSION",
        help=f"version of Karmada: {', '.join(VERSIONS)} (default: {CURRENT.name})",
    )


__all__ = ["CURRENT", "VERSIONS", "KarmadaVersion", "add_flag", "named"]
