"""docs/plugin-reference.md agrees with the code and describes all of it."""

from __future__ import annotations

import re

import karmada_scheduler.testing
from karmada_scheduler import framework
from tests.docs import plugin_reference

NOT_FOR_AUTHORS = {  # what the scheduler itself is made of
    "FitError", "MAX_CLUSTER_SCORE", "MAX_PERMIT_SECONDS", "MIN_CLUSTER_SCORE",
    "PluginError", "SchedulingError", "UndeclaredWorkloadError", "UnschedulableError",
}  # fmt: skip


def test_the_page_is_up_to_date() -> None:
    assert plugin_reference.PAGE.read_text() == plugin_reference.rendered(), "run `make reference`"


def test_the_page_has_everything_that_authors_can_import() -> None:
    headings = set(re.findall(r"^### (\w+)", plugin_reference.PAGE.read_text(), flags=re.MULTILINE))
    assert set(framework.__all__) - headings == NOT_FOR_AUTHORS
    assert set(karmada_scheduler.testing.__all__) - headings == {"SERVED_APIS", "Call"}


def test_every_link_of_the_page_has_its_heading() -> None:
    text = plugin_reference.PAGE.read_text()
    anchors, given = plugin_reference._Anchors(), set()
    for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE):
        given.add(anchors.of(heading))
    links = re.findall(r"\(#([\w-]+)\)", text)
    assert len(links) > 80
    assert [each for each in links if each not in given] == []


def test_a_repeated_heading_gets_a_number() -> None:
    anchors = plugin_reference._Anchors()
    assert [anchors.of(each) for each in ("Binding", "binding()", "Tests of plugins")] == [
        "binding",
        "binding-1",
        "tests-of-plugins",
    ]
