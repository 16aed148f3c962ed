"""manifests/: the chart rendered with its default values, for those who do not use Helm."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .chart import ROOT, render

FOLDER: Final = ROOT / "manifests"
_SIDES: Final = {
    "host": "For the cluster in which Karmada's control plane runs.",
    "karmada": "For the Karmada API server: what the scheduler may do, for an identity of its own.",
}
_HELM_S_OWN: Final = ("app.kubernetes.io/managed-by: Helm", "helm.sh/chart: ")


def rendered() -> dict[Path, str]:
    """Return what each file should be."""
    return {FOLDER / f"{side}.yaml": _text(side, about) for side, about in _SIDES.items()}


def _text(side: str, about: str) -> str:
    lines = [
        line
        for line in render(side=side).splitlines()
        # Helm adopts no object that claims to be its own and is of no release.
        if not line.startswith("# Source: ") and not line.strip().startswith(_HELM_S_OWN)
    ]
    head = f"# {about}\n# Made by `make manifests` from charts/karmada-pyscheduler; do not edit.\n"
    return head + "\n".join(lines).strip() + "\n"


def write() -> list[Path]:
    """Write the files and return those that changed."""
    changed = []
    for path, text in rendered().items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            changed.append(path)
    return changed
