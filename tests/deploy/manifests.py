"""What is made of the chart, and for it: manifests/, and the names in its values that the code knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import yaml

from karmada_scheduler.config import features, flags
from karmada_scheduler_plugins.registry import IN_TREE, MANDATORY, OPT_IN

from .chart import CHART, ROOT, render

FOLDER: Final = ROOT / "manifests"
_SIDES: Final = {
    "host": "For the cluster in which Karmada's control plane runs.",
    "karmada": "For the Karmada API server: what the scheduler may do, for an identity of its own.",
}
_HELM_S_OWN: Final = ("app.kubernetes.io/managed-by: Helm", "helm.sh/chart: ")


def rendered() -> dict[Path, str]:
    """Return what each file should be."""
    names = {CHART / "files" / "known.yaml": _known(), CHART / "values.schema.json": _schema()}
    return {**names, **{FOLDER / f"{side}.yaml": _text(side, about) for side, about in _SIDES.items()}}


def _known() -> str:
    options = (action.option_strings[-1] for action in flags.make_parser()._actions if action.dest != "help")
    names = {
        "featureGates": sorted([*features.KNOWN, *features.GROUPS]),
        "flags": sorted(option.removeprefix("--") for option in options),
        "plugins": sorted(IN_TREE | MANDATORY | OPT_IN),
    }
    return "# Made by `make manifests` from the code; do not edit.\n" + yaml.safe_dump(names)


def _schema() -> str:
    """Return the schema with every value that templates read as required."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    _require(schema, yaml.safe_load((CHART / "values.yaml").read_text()))
    return json.dumps(schema, indent=2) + "\n"


def _require(schema: dict[str, Any], values: Any) -> None:
    if isinstance(values, dict) and schema.get("additionalProperties") is False:
        schema["required"] = sorted(name for name in values if "oneOf" not in schema["properties"][name])
        for name, value in values.items():
            _require(schema["properties"][name], value)


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
