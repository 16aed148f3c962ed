"""Writes the golden files again: ``python -m tests.unit.plan.make_golden``; look at the differences before you commit them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from karmada_advisor.views.fields import as_json, as_yaml, document_fields
from karmada_advisor.views.plan_text import plan_markdown, plan_text
from tests.unit.plan import fleet
from tests.unit.plan.conftest import edited, mistaken, planned
from tests.unit.plan.test_command import CHANGES, GOLDEN, SHORT, STYLES


def write() -> None:
    """Write all of them."""
    GOLDEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        clusters = fleet.clusters()
        edited(folder / "change")
        mistaken(folder / "mistakes")
        files = fleet.write(
            folder,
            clusters=[each.manifest() for each in clusters],
            bindings=fleet.placed(fleet.bindings(), clusters),
            policies=fleet.policies(),
        )
        for name, flags in CHANGES.items():
            plan = planned(files, flags)
            for each, style in STYLES.items():
                (GOLDEN / f"{name}-{each}.txt").write_text(plan_text(plan, style))
            (GOLDEN / f"{name}.md").write_text(plan_markdown(plan))
            if name in SHORT:
                (GOLDEN / f"{name}.json").write_text(as_json(document_fields(plan)))
                (GOLDEN / f"{name}.yaml").write_text(as_yaml(document_fields(plan)))


if __name__ == "__main__":
    write()
