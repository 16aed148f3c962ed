"""Profiles: Kubernetes' rules of precedence, and problems with their paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from karmada_scheduler.config.configuration_file import read
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.framework import SUCCESS, Handle, Result
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles, ProfileInputs
from karmada_scheduler.framework.profile.profile import build
from karmada_scheduler.framework.profile.registry import Registry
from karmada_scheduler.structs import replace
from karmada_scheduler_plugins.registry import in_tree

UPSTREAM_FILTERS = [
    "APIEnablement",
    "ClusterAffinity",
    "ClusterEviction",
    "SpreadConstraint",
    "TaintToleration",
]


def plugin(
    name: str, *methods: str, made: Callable[[Any], None] = lambda _: None
) -> Callable[[Any, Handle], Any]:
    """Make a factory of a plugin with some methods."""

    def plain(self: object, context: object) -> Result:
        return SUCCESS

    def less(self: object, a: object, b: object) -> bool:
        return False

    async def talks(self: object, context: object) -> Result:
        return SUCCESS

    def method(each: str) -> Callable[..., Any]:
        return less if each == "less" else talks if each in ("permit", "pre_bind", "bind") else plain

    kind = type(name, (), {"name": name, **{each: method(each) for each in methods}})

    def factory(args: Any, handle: Handle) -> Any:
        if args.get("broken"):
            raise RuntimeError("broken")
        product: Any = kind()
        product.args = args
        made(product)
        return product

    return factory


OUTSIDE = {
    "Cost": plugin("Cost", "score", "filter"),
    "Gpu": plugin("Gpu", "score"),
    "MyQueue": plugin("MyQueue", "less"),
    "MySelector": plugin("MySelector", "select"),
    "MyAssigner": plugin("MyAssigner", "assign"),
    "MyBinder": plugin("MyBinder", "bind"),
}


def available(
    *names: str, tokens: str = "*", gates: FeatureGates | None = None, previous: BuiltProfiles | None = None
) -> ProfileInputs:
    own = in_tree(gates or FeatureGates())
    registry = Registry(own.values())
    for name in names:
        registry.add(Registration(name, OUTSIDE[name]))
    return ProfileInputs(
        registry=registry,
        selected=frozenset(registry.select(tokens.split(",")).registry),
        defaults=tuple(own),
        handle_for=PluginHandle,
        previous=previous,
    )


def built(profiles: list[dict[str, Any]], plugins: ProfileInputs) -> BuiltProfiles:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return build(read({**kind, "profiles": profiles}).profiles, plugins, scheduler_name="default-scheduler")


def names(made: BuiltProfiles, point: Point, profile: str = "default-scheduler") -> list[str]:
    return [each.name for each in made.by_name[profile].at(point)]


def refs(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def problems(profiles: list[dict[str, Any]], plugins: ProfileInputs) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        built(profiles, plugins)
    return [str(problem) for problem in refused.value.problems]


def test_without_profiles_there_is_one_with_all_plugins() -> None:
    made = built([], available("Cost"))
    assert list(made.by_name) == ["default-scheduler"]
    assert names(made, Point.FILTER) == [*UPSTREAM_FILTERS, "Cost"]
    assert names(made, Point.SCORE) == ["ClusterAffinity", "ClusterLocality", "Cost"]


def test_without_profiles_external_plugins_run_before_the_mandatory_ones() -> None:
    made = built([], available("MySelector", "MyAssigner", "MyBinder", "MyQueue"))
    assert names(made, Point.SELECT) == ["MySelector", "DefaultSelector"]
    assert names(made, Point.ASSIGN) == ["MyAssigner", "DefaultAssigner"]
    assert names(made, Point.BIND) == ["MyBinder", "DefaultBinder"]
    assert names(made, Point.QUEUE_SORT) == ["MyQueue"]


def test_without_profiles_the_flag_disables_plugins() -> None:
    made = built([], available("Cost", tokens="*,-Cost,-ClusterAffinity"))
    assert names(made, Point.SCORE) == ["ClusterLocality"]
    assert names(made, Point.BIND) == ["DefaultBinder"]


def test_a_profile_has_the_in_tree_plugins_and_no_others_by_default() -> None:
    made = built([{"schedulerName": "gpu"}], available("Cost"))
    assert names(made, Point.FILTER, "gpu") == UPSTREAM_FILTERS
    assert made.by_name["gpu"].weights == {"ClusterAffinity": 1, "ClusterLocality": 1}


@pytest.mark.parametrize(
    ("plugins", "filters"),
    [
        pytest.param({"filter": {"disabled": refs("*")}}, [], id="all-off"),
        pytest.param(
            {"filter": {"disabled": refs("*"), "enabled": refs("TaintToleration")}},
            ["TaintToleration"],
            id="only-one",
        ),
        pytest.param(
            {"filter": {"disabled": refs("ClusterEviction", "SpreadConstraint")}},
            ["APIEnablement", "ClusterAffinity", "TaintToleration"],
            id="some-off",
        ),
        pytest.param(
            {"filter": {"enabled": refs("Cost")}}, [*UPSTREAM_FILTERS, "Cost"], id="one-more-comes-last"
        ),
        pytest.param(
            {"filter": {"enabled": refs("Cost", "TaintToleration", "APIEnablement")}},
            [
                "TaintToleration",
                "APIEnablement",
                "ClusterAffinity",
                "ClusterEviction",
                "SpreadConstraint",
                "Cost",
            ],
            id="named-ones-come-first-in-their-order",
        ),
        pytest.param(
            {"filter": {"enabled": refs("APIEnablement"), "disabled": refs("APIEnablement")}},
            [*UPSTREAM_FILTERS[1:], "APIEnablement"],
            id="off-and-on-moves-to-the-end",
        ),
        pytest.param(
            {"multiPoint": {"enabled": refs("Cost")}}, [*UPSTREAM_FILTERS, "Cost"], id="multi-point"
        ),
        pytest.param(
            {"multiPoint": {"enabled": refs("Cost")}, "filter": {"disabled": refs("Cost")}},
            UPSTREAM_FILTERS,
            id="multi-point-but-not-here",
        ),
        pytest.param(
            {"multiPoint": {"disabled": refs("ClusterAffinity")}},
            [name for name in UPSTREAM_FILTERS if name != "ClusterAffinity"],
            id="default-off",
        ),
        pytest.param(
            {"multiPoint": {"enabled": refs("APIEnablement", "Cost"), "disabled": refs("APIEnablement")}},
            [*UPSTREAM_FILTERS[1:], "APIEnablement", "Cost"],
            id="multi-point-off-and-on",
        ),
    ],
)
def test_a_point_beats_multi_point_which_beats_the_defaults(
    plugins: dict[str, Any], filters: list[str]
) -> None:
    assert names(built([{"plugins": plugins}], available("Cost")), Point.FILTER) == filters


@pytest.mark.parametrize(
    ("plugins", "weight"),
    [
        pytest.param({"score": {"enabled": [{"name": "Cost"}]}}, 1, id="none-is-1"),
        pytest.param({"score": {"enabled": [{"name": "Cost", "weight": 3}]}}, 3, id="of-the-point"),
        pytest.param({"multiPoint": {"enabled": [{"name": "Cost", "weight": 2}]}}, 2, id="of-multi-point"),
        pytest.param(
            {
                "score": {"enabled": [{"name": "Cost", "weight": 3}]},
                "multiPoint": {"enabled": [{"name": "Cost", "weight": 2}]},
            },
            3,
            id="the-point-s-counts",
        ),
    ],
)
def test_scores_are_weighted(plugins: dict[str, Any], weight: int) -> None:
    made = built([{"plugins": plugins}], available("Cost"))
    assert made.by_name["default-scheduler"].weights["Cost"] == weight


def test_a_default_keeps_its_place_when_it_gets_a_weight() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "ClusterLocality", "weight": 5}, {"name": "Cost"}]}}
    made = built([{"plugins": plugins}], available("Cost"))
    assert made.by_name["default-scheduler"].weights == {
        "ClusterAffinity": 1,
        "ClusterLocality": 5,
        "Cost": 1,
    }
    assert names(made, Point.SCORE) == ["ClusterAffinity", "ClusterLocality", "Cost"]


def test_mandatory_plugins_run_last_unless_the_profile_lists_them() -> None:
    plugins = available("MyBinder")
    assert names(built([{"plugins": {"bind": {"enabled": refs("MyBinder")}}}], plugins), Point.BIND) == [
        "MyBinder",
        "DefaultBinder",
    ]
    configured = {"bind": {"enabled": refs("DefaultBinder", "MyBinder")}}
    assert names(built([{"plugins": configured}], plugins), Point.BIND) == ["DefaultBinder", "MyBinder"]


def test_a_plugin_is_one_object_at_all_its_points_and_one_per_profile() -> None:
    both = {"multiPoint": {"enabled": refs("Cost")}}
    made = built(
        [{"schedulerName": "a", "plugins": both}, {"schedulerName": "b", "plugins": both}], available("Cost")
    )
    a, b = made.by_name["a"], made.by_name["b"]
    assert a.at(Point.SCORE)[-1] is a.at(Point.FILTER)[-1]
    assert a.at(Point.SCORE)[-1] is not b.at(Point.SCORE)[-1]


def test_a_plugin_gets_its_args() -> None:
    profile = {
        "plugins": {"multiPoint": {"enabled": refs("Cost")}},
        "pluginConfig": [{"name": "Cost", "args": {"file": "/prices"}}],
    }
    plugin: Any = built([profile], available("Cost")).made["default-scheduler", "Cost"].plugin
    assert plugin.args == {"file": "/prices"}


def test_the_flag_disables_plugins_in_all_profiles() -> None:
    profile = {"plugins": {"multiPoint": {"enabled": refs("Cost")}, "filter": {"enabled": refs("Cost")}}}
    made = built([profile], available("Cost", tokens="*,-Cost,-APIEnablement"))
    assert names(made, Point.FILTER) == UPSTREAM_FILTERS[1:]
    assert names(made, Point.QUEUE_SORT) == ["PrioritySort"]
    assert "Cost" not in {name for _, name in made.made}


def test_all_problems_are_reported_together_with_paths_and_known_names() -> None:
    registered = ", ".join(available("Cost", "Gpu").registry)
    profiles = [
        {
            "schedulerName": "a",
            "plugins": {
                "score": {"enabled": refs("Cost", "Foo")},
                "filter": {"enabled": refs("Gpu")},
                "multiPoint": {"enabled": refs("Bar")},
            },
            "pluginConfig": [{"name": "Baz"}],
        },
        {
            "schedulerName": "b",
            "plugins": {"score": {"enabled": refs("Cost", "Gpu")}},
            "pluginConfig": [
                {"name": "Gpu", "args": {"broken": True}},
                {"name": "ClusterLocality", "args": {"x": 1}},
            ],
        },
    ]
    texts = [
        re.sub(r"\(line \d+ of", "(line N of", each) for each in problems(profiles, available("Cost", "Gpu"))
    ]
    assert texts == [
        f'profiles[0].plugins.score.enabled[1].name: no plugin named "Foo"; known: {registered}',
        f'profiles[0].plugins.multiPoint.enabled[0].name: no plugin named "Bar"; known: {registered}',
        f'profiles[0].pluginConfig[0].name: no plugin named "Baz"; known: {registered}',
        'profiles[0].plugins.filter.enabled[0].name: plugin "Gpu" does not extend Filter plugin; it extends: Score',
        "profiles[1].pluginConfig[1].args: the plugin takes none",
        f'profiles[1].pluginConfig[0]: failed to initialize plugin "Gpu": RuntimeError: broken (line N of {__file__})',
    ]


def test_all_profiles_must_have_the_same_queue_sort() -> None:
    two = [{"plugins": {"queueSort": {"enabled": refs("MyQueue")}}}]
    assert problems(two, available("MyQueue")) == [
        (
            "profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name "
            '"default-scheduler", but got 2: PrioritySort, MyQueue'
        )
    ]
    own = {"queueSort": {"enabled": refs("MyQueue"), "disabled": refs("PrioritySort")}}
    different: list[dict[str, Any]] = [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": own}]
    assert problems(different, available("MyQueue")) == [
        'profiles: different queue sort plugins for profile "b": "MyQueue", first: "PrioritySort"'
    ]
    with_args = [
        {"schedulerName": name, "plugins": own, "pluginConfig": [{"name": "MyQueue", "args": {"by": name}}]}
        for name in ("a", "b")
    ]
    assert problems(with_args, available("MyQueue")) == [
        'profiles: different queue sort plugin args for profile "b"'
    ]


@pytest.mark.parametrize("point", ["select", "assign", "bind"])
def test_select_assign_and_bind_require_a_plugin(point: str) -> None:
    assert problems([{"plugins": {point: {"disabled": refs("*")}}}], available()) == [
        (
            f"profiles[0].plugins.{point}: at least one {point} plugin is needed for profile with scheduler name "
            '"default-scheduler"'
        )
    ]


def test_entries_without_effect_are_warnings() -> None:
    profile = {
        "plugins": {"filter": {"disabled": refs("Foo", "*")}},
        "pluginConfig": [{"name": "Cost", "args": {}}],
    }
    plugins = replace(available("Cost"), disabled_elsewhere=None)
    first, second = built([profile], plugins).warnings
    assert first.startswith(
        'plugins.filter.disabled[0] of profile "default-scheduler" has no effect: no plugin named "Foo"; known: '
    )
    assert second == ('pluginConfig[0] of profile "default-scheduler" has no effect: Cost is not enabled')


def test_an_unknown_disabled_name_is_an_error_unless_it_may_be_kube_schedulers() -> None:
    profiles = [{"plugins": {"filter": {"disabled": refs("TaintTolerance")}}}]
    [problem] = problems(profiles, available())
    assert problem.startswith(
        'profiles[0].plugins.filter.disabled[0].name: no plugin named "TaintTolerance"; '
        'did you mean "TaintToleration"? known: '
    )
    gated = replace(available(), disabled_elsewhere={"TaintTolerance"})
    assert len(built(profiles, gated).warnings) == 1


def test_a_plugin_with_the_same_factory_and_args_stays_the_same_object() -> None:
    def profiles(args: dict[str, Any]) -> list[dict[str, Any]]:
        enabled = {"score": {"enabled": refs("Cost", "Gpu")}}
        return [{"plugins": enabled, "pluginConfig": [{"name": "Cost", "args": args}]}]

    first = built(profiles({"a": 1}), available("Cost", "Gpu"))
    second = built(profiles({"a": 2}), available("Cost", "Gpu", previous=first))
    (_, _, cost, gpu), (_, _, new_cost, same_gpu) = (
        each.by_name["default-scheduler"].at(Point.SCORE) for each in (first, second)
    )
    assert gpu is same_gpu
    assert cost is not new_cost
