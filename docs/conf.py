"""Sphinx's settings: the site of `make docs`, made of the pages that the repository shows, with the same links."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]

NAVIGATION = {
    "Three ways to adopt": """
        1. Read only, with commands <docs/cli>
        2. and 3. A second scheduler, replacement <docs/operations>
    """,
    "Tasks": """
        docs/explain
        docs/why-not
        docs/plan
        docs/placement-tests
        docs/survive
        docs/rebalance
        docs/move-a-namespace
        docs/no-harm
        docs/replicas-that-run
        docs/priority
        docs/fair-share
        docs/web
        docs/claims
    """,
    "Own rules": """
        docs/writing-plugins
        docs/reference/plugins
        docs/extenders
        docs/examples/spacecloud/README
        docs/examples/testfilter/README
    """,
    "Reference": """
        docs/differences-from-upstream
        docs/karmada-behaviour
        docs/upstream/*
        docs/estimators
        docs/versions
        docs/karmada-versions
        charts/README
        docs/glossary
        SECURITY
        CHANGELOG
    """,
    "How well it works": """
        docs/conformance
        docs/reliability
        docs/benchmark
        docs/measurements/README
        docs/measurements/*
    """,
    "Development": """
        CONTRIBUTING
        docs/architecture
        plugins/karmada_scheduler/README
        operator/karmada_pyscheduler/README
        advisor/karmada_advisor/README
        docs/control-plane
        tools/conformance/README
        docs/decisions/README
        docs/decisions/*
        docs/next
    """,
}

project = "karmada-pyscheduler"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/**.md",
    "charts/README.md",
    "plugins/karmada_scheduler/README.md",
    "operator/karmada_pyscheduler/README.md",
    "advisor/karmada_advisor/README.md",
    "tools/conformance/README.md",
]
exclude_patterns = [".venv", "build", "dist", "docs/web/**"]
myst_heading_anchors = 6
html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False
nitpicky = True


def _as_on_the_repository_s_page(app: Sphinx, name: str, source: list[str]) -> None:
    """Give the first page the navigation, and make links to folders links to their README, or none."""
    folder = (ROOT / name).parent

    def link(found: re.Match[str]) -> str:
        target = folder / found[2]
        if not target.is_dir():
            return found[0]
        return f"[{found[1]}]({found[2]}/README.md)" if (target / "README.md").exists() else found[1]

    source[0] = re.sub(r"\[([^]]+)\]\(([^):#]+)\)", link, source[0])
    if name == root_doc:
        source[0] += "".join(
            f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n"
            + "".join(f"{line.strip()}\n" for line in pages.strip().splitlines())
            + "```\n"
            for caption, pages in NAVIGATION.items()
        )


def _first_page(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        shutil.copy(Path(app.outdir, f"{root_doc}.html"), Path(app.outdir, "index.html"))


def setup(app: Sphinx) -> None:
    """Connect the two functions, and know the blocks of JSON with comments."""
    app.add_lexer("jsonc", JsonLexer)
    app.connect("source-read", _as_on_the_repository_s_page)
    app.connect("build-finished", _first_page)
