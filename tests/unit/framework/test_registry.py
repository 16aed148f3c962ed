"""Registered plugins, and their selection by --plugins."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.registry import Registry, SelectionMessage


class Nothing:
    name = "nothing"


def registry(*names: str) -> Registry:
    return Registry(Registration(name, Nothing) for name in names)


@pytest.mark.parametrize(
    ("tokens", "enabled"),
    [
        ("foo", ["foo"]),
        ("*", ["bar", "foo", "fuzz"]),
        ("*,-foo", ["bar", "fuzz"]),
        ("-foo,*", ["bar", "fuzz"]),
        ("-foo", []),
        ("-foo,foo", ["foo"]),
        ("foo,-foo", []),
        ("*,-foo,foo", ["bar", "foo", "fuzz"]),
        ("*,--foo", ["bar", "fuzz"]),
        ("nosuch", []),
        ("", []),
        ("*,nosuch,*", ["bar", "foo", "fuzz"]),
    ],
)
def test_plugins_are_selected_by_upstreams_rules(tokens: str, enabled: list[str]) -> None:
    selection = registry("bar", "foo", "fuzz").select(tokens.split(",") if tokens else [])
    assert list(selection.registry) == enabled


def test_a_plugin_whose_name_starts_with_a_dash_can_be_enabled() -> None:
    assert list(registry("-foo", "foo").select(["foo", "-foo"]).registry) == ["-foo", "foo"]


def test_the_running_order_does_not_depend_on_the_order_of_selection() -> None:
    assert list(registry("bar", "foo").select(["foo", "bar"]).registry) == ["bar", "foo"]


def test_selection_is_logged_with_upstreams_texts() -> None:
    messages = registry("bar", "foo").select(["*", "-foo", "-nosuch", "foo"]).messages
    assert messages == (
        (False, 'Enable Scheduler plugin "bar"'),
        (False, 'Enable Scheduler plugin "foo"'),
        (True, '"foo" is disabled'),
        (True, '"nosuch" is disabled'),
        (False, 'Enable Scheduler plugin "foo"'),
    )


@pytest.mark.parametrize("tokens", [[], ["-foo"], ["foo", "-foo"]])
def test_a_selection_without_plugins_is_a_warning(tokens: list[str]) -> None:
    *_, last = registry("foo").select(tokens).messages
    assert last == SelectionMessage(
        warning=True, text="No plugin of Filter and Score is enabled: every cluster fits"
    )


def test_disabling_before_any_plugin_is_enabled_is_ignored() -> None:
    assert len(registry("foo").select(["-foo"]).messages) == 1


def test_registering_adds_a_plugin_once() -> None:
    plugins = registry("p1")
    plugins.add(Registration("p2", Nothing))
    with pytest.raises(ValueError, match=r"^a plugin named p1 already exists$"):
        plugins.add(Registration("p1", Nothing))
    assert list(plugins) == ["p1", "p2"]


def test_a_name_that_is_taken_names_both_origins() -> None:
    plugins = Registry()
    plugins.add(Registration("Cost", Nothing, origin="acme 1.2"))
    with pytest.raises(
        ValueError, match=r"^a plugin named Cost already exists: acme 1\.2 and /plugins/cost\.py$"
    ):
        plugins.add(Registration("Cost", Nothing, origin="/plugins/cost.py"))
    assert plugins["Cost"].origin == "acme 1.2"
    with pytest.raises(ValueError, match=r"already exists: acme 1\.2 and $"):
        plugins.add(Registration("Cost", Nothing))


@pytest.mark.parametrize(
    ("tokens", "enabled"),
    [
        pytest.param("foo", ["foo", "Binder"], id="not-named"),
        pytest.param("*,-Binder", ["foo", "Binder"], id="switched-off"),
        pytest.param("Binder,-foo", ["Binder"], id="named"),
        pytest.param("", ["Binder"], id="nothing"),
    ],
)
def test_mandatory_plugins_are_always_enabled_and_never_logged(tokens: str, enabled: list[str]) -> None:
    plugins = registry("foo")
    plugins.add(Registration("Binder", Nothing, mandatory=True))
    selection = plugins.select(tokens.split(","))
    assert list(selection.registry) == enabled
    assert not [message for message in selection.messages if "Binder" in message.text]


def test_the_first_line_of_a_docstring_describes_a_plugin() -> None:
    class Cheap:
        """Prefer cheap clusters.

        Prices come from a file.
        """

        name = "Cheap"

    @dataclass
    class Silent:
        name: str = "Silent"

    assert [Registration("P", each).doc for each in (Cheap, Silent)] == ["Prefer cheap clusters.", ""]
