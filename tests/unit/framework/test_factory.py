"""Factories of plugins may have several signatures. Their problems are reported before a plugin runs."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import attrs
import pytest

from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework import SUCCESS, Handle, Result, load_timeout
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.framework.profile.factory import Registration, make, registration_problems
from karmada_scheduler.framework.profile.plugin_problems import plugin_problems
from tests.unit.framework.plugins import answering, plugin

HANDLE = PluginHandle(profile="gpu")


@dataclass(frozen=True)
class Prices:
    file: str
    unit: Literal["cent", "euro"] = "cent"
    refresh: timedelta = timedelta(seconds=30)
    by_cluster: dict[str, int] | None = None

    def __post_init__(self) -> None:
        if self.refresh < timedelta(seconds=1):
            raise ValueError("refresh must be at least 1s")


class Cost:
    name = "Cost"
    args: Any = "none"
    handle: Any = "none"

    def score(self, context: object, /) -> int:
        return 0


class WithBoth(Cost):
    def __init__(self, args: Prices, handle: Handle) -> None:
        self.args, self.handle = args, handle


class WithUntypedArgs(Cost):
    def __init__(self, args: Any, handle: Any) -> None:
        self.args, self.handle = args, handle


class WithNestedArgs(Cost):
    @dataclass
    class Args:
        weight: int = 1

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args, self.handle = args, handle


class WithAttrsArgs(WithUntypedArgs):
    @attrs.define
    class Args:
        weight: int = 1


class WithDefaults(Cost):
    def __init__(self, clock: Callable[[], float] = float, path: str = "/default") -> None:
        self.clock, self.path = clock, path


def function(args: Prices, handle: Handle) -> Cost:
    return WithBoth(args, handle)


def made(factory: Callable[..., Any], args: dict[str, Any] | None = None) -> Any:
    return make(Registration("Cost", factory), args, HANDLE)


def problems(factory: Callable[..., Any], args: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        made(factory, args)
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize(
    ("factory", "given", "args", "handle"),
    [
        pytest.param(Cost, None, "none", "none", id="no-arguments"),
        pytest.param(WithBoth, {"file": "/p"}, Prices("/p"), HANDLE, id="args-and-handle"),
        pytest.param(WithUntypedArgs, {"any": [1]}, {"any": [1]}, HANDLE, id="untyped-args"),
        pytest.param(WithUntypedArgs, None, {}, HANDLE, id="untyped-args-not-given"),
        pytest.param(WithNestedArgs, {"weight": 2}, WithNestedArgs.Args(2), HANDLE, id="nested-args"),
        pytest.param(WithNestedArgs, None, WithNestedArgs.Args(1), HANDLE, id="nested-args-not-given"),
        pytest.param(WithAttrsArgs, {"weight": 2}, WithAttrsArgs.Args(2), HANDLE, id="attrs-args"),
        pytest.param(function, {"file": "/p"}, Prices("/p"), HANDLE, id="function"),
        pytest.param(functools.partial(function), {"file": "/p"}, Prices("/p"), HANDLE, id="partial"),
        pytest.param(
            lambda args, handle: WithBoth(Prices(**args), handle),
            {"file": "/p"},
            Prices("/p"),
            HANDLE,
            id="lambda",
        ),
    ],
)
def test_a_factory_takes_args_and_handle_or_nothing(
    factory: Callable[..., Any], given: dict[str, Any] | None, args: object, handle: object
) -> None:
    plugin = made(factory, given)
    assert (plugin.args, plugin.handle) == (args, handle)


def test_a_factory_whose_parameters_are_all_optional_is_called_without_arguments() -> None:
    plugin = made(WithDefaults)
    assert (plugin.clock, plugin.path) == (float, "/default")


@pytest.mark.parametrize(
    "factory",
    [lambda args: Cost(), lambda args, handle, client: Cost(), lambda *, handle: WithUntypedArgs({}, handle)],
    ids=["one", "three", "keyword-only"],
)
def test_a_factory_with_another_signature_is_an_error(factory: Callable[..., Any]) -> None:
    [text] = problems(factory)
    assert re.fullmatch(r'plugin ".+": its factory .+ must take \(args, handle\), or no arguments', text)


def test_args_may_be_written_as_in_python_or_as_in_kubernetes() -> None:
    assert made(WithBoth, {"file": "", "by_cluster": {"m1": 3}}).args.by_cluster == {"m1": 3}
    assert made(WithBoth, {"file": "", "byCluster": {"m1": 3}}).args.by_cluster == {"m1": 3}
    assert problems(WithBoth, {"file": "", "byCluster": {}, "by_cluster": {}}) == [
        "args.by_cluster: is the same field as byCluster"
    ]


def test_all_problems_in_args_are_reported_with_their_paths() -> None:
    assert problems(WithBoth, {"unit": "dollar", "refresh": 5, "byCluster": {"m1": "3"}, "fil": "x"}) == [
        'args.unit: expected one of "cent", "euro", got "dollar"',
        "args.refresh: expected a duration such as 5s or 1m30s, got 5",
        'args.byCluster[m1]: expected an integer, got "3"',
        "args.fil: unknown field; known: file, unit, refresh, byCluster",
        "args.file: is required",
    ]


def test_an_error_of_the_args_class_is_reported() -> None:
    assert problems(WithBoth, {"file": "x", "refresh": "5ms"}) == ["args: refresh must be at least 1s"]


def test_args_for_a_plugin_without_args_are_an_error() -> None:
    assert problems(Cost, {"file": "x"}) == ["args: the plugin takes none"]
    assert problems(WithDefaults, {"file": "x"}) == ["args: the plugin takes none"]


def test_a_factory_that_raises_is_reported_with_upstreams_text_and_the_exception() -> None:
    def broken() -> Cost:
        raise RuntimeError("no such file")

    with pytest.raises(ConfigError) as refused:
        made(broken)
    [problem] = refused.value.problems
    line = inspect.getsourcelines(broken)[1] + 1
    assert str(problem) == (
        f'failed to initialize plugin "Cost": RuntimeError: no such file (line {line} of {__file__})'
    )
    assert isinstance(problem.cause, RuntimeError)
    assert problem.cause.__traceback__ is not None
    assert problem.cause.__traceback__.tb_frame.f_code.co_name == "broken"


def test_the_line_of_a_factory_that_raises_is_in_the_file_of_the_plugin() -> None:
    def broken() -> Cost:
        json.loads("{")
        return Cost()

    with pytest.raises(ConfigError) as refused:
        made(broken)
    line = inspect.getsourcelines(broken)[1] + 1
    assert str(refused.value.problems[0]).endswith(f"(line {line} of {__file__})")


def test_the_name_of_a_plugin_must_be_the_registered_one() -> None:
    with pytest.raises(ConfigError, match=r"its name is 'Cost', it is registered as 'Price'"):
        make(Registration("Price", Cost), None, HANDLE)


def test_the_result_of_a_factory_must_be_a_plugin() -> None:
    [nameless, pointless] = problems(dict)
    assert nameless == "plugin \"Cost\": its name is None, it is registered as 'Cost'"
    assert pointless.startswith('plugin "Cost": has no extension point; there are: pre_enqueue, less, ')


def test_a_plugin_with_run_alone_is_refused() -> None:
    class Runs:
        name = "Runs"

        async def run(self) -> None: ...

    with pytest.raises(
        ConfigError, match="has no extension point; run alone is not enough; there are: pre_enq"
    ):
        make(Registration("Runs", Runs), None, HANDLE)


class Everything:
    name = "Everything"

    def less(self, a: object, b: object, /) -> bool:
        return False

    def pre_enqueue(self, context: object, /) -> Result:
        return SUCCESS

    pre_filter = filter = post_filter = pre_score = select = assign = reserve = unreserve = pre_enqueue
    add_binding = remove_binding = normalize_score = score = pre_enqueue

    async def permit(self, context: object, /) -> Result:
        return SUCCESS

    pre_bind = bind = post_bind = permit

    def sort_key(self, queued: object, /) -> tuple[float, ...]:
        return (0.0,)


class Waiting(Everything):
    """Talks where that is allowed."""

    pre_filter = pre_score = select = assign = Everything.permit  # type: ignore[assignment]


@pytest.mark.parametrize(
    "plugin",
    [Everything, Everything(), Waiting, Waiting()],
    ids=["class", "instance", "class that waits", "instance that waits"],
)
def test_a_plugin_may_have_all_extension_points(plugin: object) -> None:
    assert list(plugin_problems(plugin)) == []


@pytest.mark.parametrize("method", ["permit", "pre_bind", "bind", "post_bind"])
def test_permit_to_post_bind_must_be_coroutine_functions(method: str) -> None:
    broken = type("Broken", (Everything,), {method: lambda self, context: SUCCESS})
    assert list(plugin_problems(broken)) == [f"{method} must be a coroutine function: async def {method}"]
    assert list(plugin_problems(broken())) == list(plugin_problems(broken))


def test_run_must_be_a_coroutine_function_without_arguments() -> None:
    async def takes_one(self: object, handle: object) -> None: ...

    plain = type("Plain", (Everything,), {"run": lambda self: None})
    assert list(plugin_problems(plain)) == ["run must be a coroutine function: async def run"]
    greedy = type("Greedy", (Everything,), {"run": takes_one})
    assert list(plugin_problems(greedy)) == ["run must take no argument besides self"]


@pytest.mark.parametrize(
    "method",
    [
        "pre_enqueue",
        "filter",
        "score",
        "normalize_score",
        "reserve",
        "unreserve",
        "add_binding",
    ],
)
def test_filter_score_and_the_like_must_be_plain_functions(method: str) -> None:
    broken = type("Broken", (Everything,), {method: Everything.permit})
    assert list(plugin_problems(broken)) == [f"{method} must be a plain function: def {method}"]


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("unreserve", "has reserve but no unreserve, and is called for neither"),
        ("reserve", "has unreserve but no reserve, and is called for neither"),
        ("score", "has normalize_score but no score, and is called for neither"),
        ("less", "has sort_key but no less, and is called for neither"),
        ("remove_binding", "has add_binding but no remove_binding, and is called for neither"),
    ],
)
def test_a_method_without_its_counterpart_is_an_error(method: str, text: str) -> None:
    namespace = {name: each for name, each in vars(Everything).items() if name != method}
    assert list(plugin_problems(type("Half", (), namespace))) == [text]


def test_half_of_a_pair_alone_is_one_problem() -> None:
    half = plugin("Half", unreserve=answering(None))
    assert list(plugin_problems(half)) == ["has unreserve but no reserve, and is called for neither"]


@pytest.mark.parametrize("needs", [True, False])
def test_a_plugin_may_declare_that_it_needs_the_workload(needs: bool) -> None:
    declares = type("Declares", (Everything,), {"needs_workload": needs})
    assert list(plugin_problems(declares)) == []


def test_add_and_remove_binding_require_pre_filter() -> None:
    namespace = {name: each for name, each in vars(Everything).items() if name != "pre_filter"}
    assert list(plugin_problems(type("Half", (), namespace))) == [
        "add_binding is called only for plugins with pre_filter",
        "remove_binding is called only for plugins with pre_filter",
    ]


def test_methods_take_one_context() -> None:
    class Old(Everything):
        def filter(self, binding: object, status: object, cluster: object) -> Result:  # type: ignore[override]
            return SUCCESS

    assert list(plugin_problems(Old)) == ["filter must take 1 argument besides self"]
    assert list(plugin_problems(Old())) == ["filter must take 1 argument besides self"]


def test_a_factory_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def hangs() -> Any:
        while True:
            pass

    monkeypatch.setattr(load_timeout, "LOAD_SECONDS", 0.1)
    with pytest.raises(
        ConfigError, match=r'failed to initialize plugin "X": did not end within 0.1s; it is at'
    ):
        make(Registration("X", hangs), None, HANDLE)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("pre_filtr", "pre_filter"),
        ("preFilter", "pre_filter"),
        ("filters", "filter"),
        ("fliter", "filter"),
        ("post_biind", "post_bind"),
        ("normalise_score", "normalize_score"),
        ("scorekey", "score_key"),
        ("runn", "run"),
    ],
)
def test_a_misspelt_method_is_an_error_with_a_suggestion(written: str, meant: str) -> None:
    plugin = type("P", (), {"name": "P", "assign": lambda self, c: None, written: lambda self, c: None})
    [text] = plugin_problems(plugin)
    assert text.startswith(f"{written} is the method of no extension point; did you mean {meant}?")


@pytest.mark.parametrize("helper", ["price_of", "selected", "_filtr", "bindings", "clusters", "close"])
def test_a_helper_is_not_taken_for_a_misspelt_method(helper: str) -> None:
    plugin = type("P", (), {"name": "P", "assign": lambda self, c: None, helper: lambda self, c: None})
    assert list(plugin_problems(plugin)) == []


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("Cost", []),
        ("Other", ["its name is 'Cost', it is registered as 'Other'"]),
        ("-x", ["'-x' is no name for a plugin", "its name is 'Cost', it is registered as '-x'"]),
    ],
)
def test_problems_of_a_registration_are_known_before_the_plugin_is_made(
    name: str, problems: list[str]
) -> None:
    found = list(registration_problems(Registration(name, WithBoth)))
    assert len(found) == len(problems)
    assert all(text.startswith(problem) for text, problem in zip(found, problems, strict=True))
