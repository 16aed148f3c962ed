"""Test cases as JUnit XML, which CI systems read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from karmada_advisor.views.document import Case, Suite
from karmada_advisor.views.text import printable

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(suites: Sequence[Suite], **facts: str) -> bytes:
    """Return one ``testsuite`` for each suite in ``testsuites``; characters that XML does not have are question marks.

    Args:
        suites: The test cases.
        facts: Attributes of all of them together.
    """
    every = [case for suite in suites for case in suite.cases]
    root = _element(None, "testsuites", facts | _counts(every))
    for suite in suites:
        parent = _element(root, "testsuite", {"name": suite.name, **suite.facts, **_counts(suite.cases)})
        for case in suite.cases:
            element = _element(parent, "testcase", {"classname": case.group, "name": case.name, **case.facts})
            if case.outcome:
                text = "\n".join(printable(line) for line in case.lines)
                _element(element, case.outcome, {"message": case.message}).text = _allowed(text)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    counts = Counter(case.outcome for case in cases)
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    return {"tests": str(len(cases)), **{name: str(counts[outcome]) for name, outcome in names.items()}}


def _element(parent: ET.Element | None, tag: str, attributes: dict[str, str]) -> ET.Element:
    found = {key: _allowed(text) for key, text in attributes.items()}
    return ET.Element(tag, found) if parent is None else ET.SubElement(parent, tag, found)


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
