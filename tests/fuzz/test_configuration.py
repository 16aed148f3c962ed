"""Configuration files and command lines that cannot be used: one kind of error, which names the place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from karmada_scheduler.config import configuration_file, flags, profiles
from karmada_scheduler.config.options import LeaderElection
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from tests.fuzz.measuring import fuzzed, measured
from tests.fuzz.strategies import Changed, damaged, mutated

_PLUGINS = {"enabled": [{"name": "TaintToleration", "weight": 2}], "disabled": [{"name": "*"}]}
DOCUMENT: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "parallelism": 16,
    "leaderElection": {"leaderElect": True},
    "percentageOfNodesToScore": 0,
    "pluginTimeoutSeconds": 1.5,
    "profiles": [
        {
            "schedulerName": "a",
            "percentageOfNodesToScore": 100,
            "plugins": {"score": _PLUGINS, "filter": _PLUGINS, "multiPoint": {"enabled": [{"name": "Mine"}]}},
            "pluginConfig": [{"name": "Mine", "args": {"weights": {"a": 1}, "zones": ["z1"], "limit": 1.5}}],
        },
        {"schedulerName": "b"},
    ],
    "extenders": [
        {
            "urlPrefix": "https://extender.example:8443/scheduler",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 3,
            "bindVerb": "bind",
            "enableHTTPS": True,
            "tlsConfig": {"insecure": False, "serverName": "extender", "caData": "Q0E=", "certFile": "/c", "keyFile": "/k"},
            "httpTimeout": "5s",
            "nodeCacheCapable": True,
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            "ignorable": True,
        }
    ],
}  # fmt: skip
values = st.one_of(
    st.sampled_from(
        [None, True, 0, -1, 2**31, 2**63, 10**400, 1.5, float("nan"), float("inf"), "", " ", "a", "b", "*", "\x00",
         "1e20000", "99999999999999h", "-5s", "5", "1h1", "http://", "http://[::1", "http://a:99999", "example.com/",
         "/", "x" * 100_000, [], {}, [None], {"a": "b"}, [["a"]], {1: 2}, {None: None}, {(1, 2): 3}, b"bytes"]
    ),
    st.text(max_size=10),
    st.integers(),
    st.floats(),
)  # fmt: skip


_PYTHON = re.compile(r"has no attribute|not subscriptable|NoneType|unhashable type")
"""Texts of exceptions that say nothing to a user."""

_START = 0.5
"""Seconds. The file is read before there is an event loop, and the time grows with its size."""


def _load(file: Path, given: object) -> None:
    problems: Sequence[ConfigProblem] = ()
    with measured("configuration file", given, _START):
        try:
            found = configuration_file.load(file)
            profiles.plugin_budget(found, LeaderElection().renew_deadline)
        except ConfigError as error:
            problems = error.problems or [ConfigProblem("", "without a problem")]
    for text in map(str, problems):
        assert text.startswith(str(file))
        assert len(text) < 2_000
        assert not _PYTHON.search(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configuration")


@fuzzed(150)
@given(document=mutated(DOCUMENT, values=values))
def test_an_invalid_configuration_is_an_error_that_names_the_place(folder: Path, document: Changed) -> None:
    file = folder / "config.yaml"
    text = yaml.dump(document.document, Dumper=_Dumper)
    assume(len(text) <= 100_000)
    file.write_text(text)
    _load(file, document)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return False


_Dumper.add_representer(tuple, lambda dumper, data: dumper.represent_list(data))

_VALUES = (
    "2026-02-31", "0b_", "0x_", "._", "1:99:99", "1" * 5000, "!!int x", "!!float x", "!!bool x", "!!timestamp x",
    "!!binary x", "!!set {a, b}", "!!omap [a]", "!!pairs [a: b]", "!x y", "*a", "&a [*a]", "&a {k: *a}", "? [a, b]\n: c",
    "? {a: b}\n: c", "[" * 500, "{a: " * 400, "\x00", "\x07", "\ufeff", "\ud800", "'", '"\\x"', "<<: *a", "<<: [1]", "- ", "%",
    "@", "`", "|\n x", ">\n", "\t", "a: b: c", ".inf", "~", "=",
)  # fmt: skip


@fuzzed(150)
@given(content=damaged(st.just(yaml.safe_dump(DOCUMENT).encode())))
def test_a_damaged_file_is_an_error_that_names_it(folder: Path, content: bytes) -> None:
    file = folder / "config.yaml"
    file.write_bytes(content)
    _load(file, content)


@fuzzed(150)
@given(data=st.data())
def test_an_odd_value_in_yaml_is_an_error_that_names_the_line(folder: Path, data: st.DataObject) -> None:
    lines = yaml.safe_dump(DOCUMENT).splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(lines) - 1))
        value = data.draw(st.sampled_from(_VALUES))
        key, colon, _ = lines[number].partition(":")
        lines[number] = f"{key}{colon} {value}"
    file = folder / "config.yaml"
    text = "\n".join(lines)
    file.write_bytes(text.encode(errors="surrogatepass"))
    _load(file, text)


_FLAGS = [action for action in flags.make_parser()._actions if action.dest != "help"]
_TEXTS = st.one_of(
    st.sampled_from(
        ["", " ", "0", "-1", "1", "true", "false", "1e400", "nan", "inf", "-inf", "9" * 5000, "1h", "99999999999999h",
         "-5s", "1e5s", "5", "²", ":²", ":8080", "a:b:1", "[::1]:1", ":99999999", "é", "\udcff", "a=b", "AllAlpha=true",
         "Failover", "a,b,,-c", "-*", "*,-*", "/nonexistent", "/", "json", "text", "\n", "%s", "{}"]
    ),
    st.text(alphabet=st.characters(exclude_characters="\0"), max_size=8),
)  # fmt: skip


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Arguments of the scheduler, mostly flags that it has."""
    arguments = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from([option for action in _FLAGS for option in action.option_strings]))
        name = draw(st.sampled_from([name, name, name, name.replace("-", "_"), f"{name}x", draw(_TEXTS)]))
        value = draw(_TEXTS)
        arguments += draw(st.sampled_from([[f"{name}={value}"], [name, value], [name]]))
    return arguments


@fuzzed(250)
@given(arguments=command_lines())
def test_an_invalid_command_line_is_an_error_that_names_the_flag(arguments: list[str]) -> None:
    text, status = "", None
    with measured("command line", arguments), redirect_stdout(StringIO()):
        try:
            flags.parse(arguments)
        except flags.OptionsError as error:
            text = str(error) or "without a text"
        except SystemExit as end:  # after --help
            status = end.code
    assert status in (None, 0)
    if text:
        assert re.search(r"-|Options\.|no command", text), text
        assert "invalid literal" not in text
