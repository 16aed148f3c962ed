"""The page of `make reference` describes all that authors of plugins can import."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

import karmada_scheduler.testing
from karmada_scheduler import framework
from tests.docs import plugin_reference

NOT_FOR_AUTHORS = {  # what the scheduler itself is made of
    "FitError", "MAX_CLUSTER_SCORE", "MAX_PERMIT_SECONDS", "MIN_CLUSTER_SCORE",
    "NotEnoughCapacityError", "PluginError", "SchedulingError", "UndeclaredWorkloadError", "UnschedulableError",
}  # fmt: skip


@pytest.fixture(scope="module")
def page() -> str:
    return plugin_reference.rendered()


def exported(package: ModuleType) -> set[str]:
    found = {name for name, value in vars(package).items() if not isinstance(value, ModuleType)}
    return {name for name in found if not name.startswith("_")}


def test_the_page_has_everything_that_authors_can_import(page: str) -> None:
    headings = set(re.findall(r"^### (\w+)", page, flags=re.MULTILINE))
    assert exported(framework) - headings == NOT_FOR_AUTHORS
    assert exported(karmada_scheduler.testing) - headings == {"SERVED_APIS", "Call"}


def test_the_page_in_the_documentation_is_the_generated_one(page: str) -> None:
    assert plugin_reference.PAGE.read_text() == page, "run `make reference`"


def test_every_link_of_the_page_has_its_heading(page: str) -> None:
    anchors, given = plugin_reference._Anchors(), set()
    for heading in re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE):
        given.add(anchors.of(heading))
    links = re.findall(r"\(#([\w-]+)\)", page)
    assert len(links) > 80
    assert [each for each in links if each not in given] == []


def test_a_repeated_heading_gets_a_number() -> None:
    anchors = plugin_reference._Anchors()
    assert [anchors.of(each) for each in ("Binding", "binding()", "Tests of plugins")] == [
        "binding",
        "binding-1",
        "tests-of-plugins",
    ]
