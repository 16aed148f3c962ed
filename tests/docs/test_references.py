"""Documentation names tests, files, pages and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PACKAGES = (
    ROOT / "operator" / "karmada_pyscheduler",
    ROOT / "advisor" / "karmada_advisor",
    ROOT / "plugins" / "karmada_scheduler",
    ROOT / "plugins" / "karmada_scheduler_plugins",
)
DOCUMENTS = sorted(
    path
    for folder in (ROOT, *(ROOT / "docs" / name for name in (".", "decisions", "measurements")))
    for path in folder.glob("*.md")
) + [package / "README.md" for package in _PACKAGES[:3]]
_SPAN = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"(?:tests|tools)/[\w./-]*\w|[a-z_]\w*/[\w/]*[a-z]\.py")
_TEST = re.compile(r"(?:test|\.\.\.)_\w+(?:\.\.\.)?")
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def spans(document: Path) -> list[str]:
    """Return the spans between backticks."""
    return _SPAN.findall(document.read_text())


@pytest.fixture(scope="module")
def test_names() -> set[str]:
    sources = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tools").rglob("test_*.py")]
    names = {name for path in sources for name in re.findall(r"def (test_\w+)", path.read_text())}
    return names | {path.stem for path in sources}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    paths = [span for span in spans(document) if _PATH.fullmatch(span)]
    assert [path for path in paths if not any((root / path).exists() for root in (ROOT, *_PACKAGES))] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_test_that_a_document_names_exists(document: Path, test_names: set[str]) -> None:
    named = [span for span in spans(document) if _TEST.fullmatch(span)]
    assert [each for each in named if not any(_fits(each, name) for name in test_names)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_document_leads_to_a_file_and_a_heading(document: Path) -> None:
    links = [(document.parent / path if path else document, anchor) for path, anchor in _links(document)]
    assert [str(path) for path, _ in links if not path.exists()] == []
    assert [(str(path), each) for path, each in links if each and each not in _anchors(path)] == []


def _links(document: Path) -> list[tuple[str, str]]:
    return _LINK.findall(re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.DOTALL | re.MULTILINE))


def _anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = (heading.lower() for heading in _HEADING.findall(page.read_text()))
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in headings}


def _fits(reference: str, name: str) -> bool:
    """Return whether a name, or a part of it between ``...``, is that of a test."""
    part = reference.strip(".")
    if reference.startswith("...") and reference.endswith("..."):
        return part in name
    if reference.startswith("..."):
        return name.endswith(part)
    return name.startswith(part) if reference.endswith("...") else name == part
