"""Names and messages cannot control a terminal, forge lines, close a table or run in a browser."""

from __future__ import annotations

import re
from functools import partial
from html.parser import HTMLParser

import pytest

from karmada_advisor.explain.model import Explanation
from karmada_advisor.views.explanation_text import explanation_document, explanation_text
from karmada_advisor.views.markup import MAX_CHARACTERS, escaped, fitting, html
from karmada_advisor.views.text import Style, printable
from karmada_scheduler.testing import binding, cluster
from tests.unit.explain.asking import explained
from tests.unit.explain.fleet import billing, checkout, fleet

ESC = "\x1b"
HOSTILE = f"m1{ESC}[31m\nPLACED | @all <img src=x onerror=alert(1)> [x](http://e.x) `a` #12 \u202eabc \x9b"


def hostile() -> Explanation:
    """Return an explanation in which names and reasons are hostile."""
    asked = binding("web").replicas(4, cpu=1).dynamic_weight().names(HOSTILE, "m2", f"{HOSTILE}2")
    asked.condition(type="Scheduled", status="False", reason="NoClusterFit", message=f"0/2 {HOSTILE}")
    named = cluster(HOSTILE).label("a", HOSTILE)
    return explained(asked, named, cluster("m2").taint("a=b:NoSchedule"), cluster("m3"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc\r", "a b c "),
        ("\x00\x7f\x9b", r"\x00\x7f\x9b"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\ud800", r"\ud800"),
        ("Zürich 東京 🚀", "Zürich 東京 🚀"),
    ],
)
def test_characters_that_are_not_shown_become_escapes(text: str, expected: str) -> None:
    assert printable(text) == expected


@pytest.mark.parametrize("width", [80, 100, 160])
def test_text_has_no_control_characters_but_those_of_colours(width: int) -> None:
    plain = explanation_text(hostile(), Style(width))
    coloured = explanation_text(hostile(), Style(width, colour=True))

    assert re.sub(r"[^\x00-\x1f\x7f-\x9f\u202e]", "", plain).strip("\n") == ""
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert sum(line.startswith(("PLACED", "NOT PLACED")) for line in plain.splitlines()) == 1


class Seen(HTMLParser):
    """The elements and attributes of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.parametrize(
    "found", [hostile(), explained(checkout(), *fleet()), explained(billing(), *fleet())]
)
def test_html_has_no_scripts_references_or_foreign_elements(found: Explanation) -> None:
    seen = Seen()
    text = html(explanation_document(found, 50))
    seen.feed(text)

    assert seen.tags <= set("html head meta title style body h1 h2 p strong ul li div table caption thead tr th tbody td".split())  # fmt: skip
    assert seen.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "scope"}
    assert "default-src 'none'" in text
    assert text.count("<table>") == text.count("<caption>") > 0


def test_markdown_mentions_nobody_links_nowhere_and_keeps_its_tables() -> None:
    text = fitting(partial(explanation_document, hostile()), 20)

    assert re.search(r"(?<!\\)[<\[]", text) is None
    assert re.search(r"@\w|https?://", text) is None
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert tables
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eu-west-1", "eu-west-1"),
        ("a|b", r"a\|b"),
        ("@team", "@\u200bteam"),
        ("#12", "\\#\u200b12"),
        ("<b>", r"\<b\>"),
        ("*a* _b_ `c`", r"\*a\* \_b\_ \`c\`"),
        ("- x", r"\- x"),
        ("1. x", r"1\. x"),
        ("see https://e.x", "see https\u200b://e.x"),
    ],
)
def test_markdown_is_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_markdown_of_a_large_fleet_fits_into_a_comment_and_keeps_the_counts() -> None:
    clusters = [cluster(f"cluster-with-a-long-name-{index:05}") for index in range(3000)]
    asked = binding("web").replicas(9000, cpu="1m").dynamic_weight()

    text = fitting(partial(explanation_document, explained(asked, *clusters)), 20)

    assert len(text) <= MAX_CHARACTERS
    assert "and 2,980 more" in text
