"""Elements of XML documents, with texts that XML can have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def element(parent: ET.Element | None, tag: str, /, **attributes: str) -> ET.Element:
    """Return a new element; characters that XML does not have are question marks."""
    found = {key: _allowed(text) for key, text in attributes.items()}
    return ET.Element(tag, found) if parent is None else ET.SubElement(parent, tag, found)


def add_text(parent: ET.Element, tag: str, message: str, lines: Sequence[str]) -> None:
    """Add an element with a message and lines of text."""
    element(parent, tag, message=message).text = _allowed("\n".join(lines))


def document(root: ET.Element) -> bytes:
    """Return the document, with a final newline."""
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("?", text)
