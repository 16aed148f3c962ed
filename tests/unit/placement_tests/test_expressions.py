"""CEL expressions: what holds, what does not and why, and what is refused before anything is decided."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from karmada_advisor.whatif.placement_tests.cel import ExpressionError, Expressions, NoCelError, expressions
from karmada_advisor.whatif.placement_tests.expectations import WorkloadData
from tests.commands import run
from tests.unit.placement_tests.files import BEGIN, case, ran, ran_case, with_cases, written

ROWS: list[dict[str, Any]] = [
    {
        "name": "eu-1",
        "region": "eu",
        "provider": "aws",
        "zones": ["a", "b"],
        "labels": {"tier": "prod"},
        "taints": [],
        "ready": True,
        "replicas": 3,
    },
    {
        "name": "us-1",
        "region": "us",
        "provider": "gcp",
        "zones": ["c"],
        "labels": {},
        "taints": [{"key": "k", "value": "", "effect": "NoSchedule"}],
        "ready": False,
        "replicas": 1,
    },
]


EVERY = [*ROWS, {**ROWS[1], "name": "us-2", "replicas": 0}]
RESULT = {"type": "Scale", "stops": 0, "isPlaced": True, "reason": "", "causes": ["SteadyKeeps"]}
WORKLOAD = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 4}}


class Data(WorkloadData):
    """A workload on two clusters."""

    placed = ROWS
    clusters = EVERY
    before = ROWS[:1]
    result = RESULT
    workload = WORKLOAD

    def __init__(self) -> None:
        """Read about no workload of a case."""

    def replicas(self, cluster: str) -> int:
        found = {"eu-1": 3, "us-1": 1, "us-2": 0}
        if cluster not in found:
            raise ValueError(f"the fleet has no cluster {cluster}")
        return found[cluster]

    def values(self, field: str) -> list[str]:
        return {"region": ["eu", "us"], "provider": ["aws", "gcp"], "zone": ["a", "b", "c"]}[field]

    def share(self, field: str, value: str) -> float:
        return 0.75 if (field, value) == ("region", "eu") else 0.0

    def survives(self, what: str) -> bool:
        raise ValueError(what)


TRUE = (
    "placed.size() == 2",
    "placed.all(c, c.replicas > 0)",
    "placed.exists(c, c.region == 'eu')",
    "placed.exists_one(c, c.provider == 'gcp')",
    "placed.filter(c, c.ready).size() == 1",
    "placed.map(c, c.name) == ['eu-1', 'us-1']",
    "placed.map(c, c.ready, c.name) == ['eu-1']",
    "clusters.filter(c, c.replicas == 0).map(c, c.name) == ['us-2']",
    "before.all(b, replicas(b.name) >= b.replicas)",
    "replicas('eu-1') == 3 && replicas('us-2') == 0",
    "total() == 4",
    "total() in [4, 5]",
    "regions() == ['eu', 'us']",
    "'eu' in regions()",
    "!('ap' in regions())",
    "providers().size() == 2",
    "zones().exists(z, z.startsWith('a'))",
    "share('region', 'eu') <= 0.8",
    "share('region', 'eu') <= 1",
    "share('region', 'ap') == 0.0",
    "result.type == 'Scale'",
    "result.stops == 0 && result.isPlaced",
    "'SteadyKeeps' in result.causes",
    "workload.spec.replicas == total()",
    "workload.metadata.name.contains('we')",
    "has(workload.spec.replicas) && !has(workload.spec.paused)",
    "placed.all(c, c.labels.?tier.orValue('prod') == 'prod')",
    "placed[0].labels['tier'] == 'prod'",
    "placed.filter(c, has(c.labels.tier)).size() == 1",
    "placed.map(c, c.replicas).sum() == 4",
    "placed.map(c, c.replicas).max() - placed.map(c, c.replicas).min() <= 2",
    "quantity('500m').isLessThan(quantity('1'))",
    "quantity('1Gi').compareTo(quantity('1024Mi')) == 0",
    "quantity(2).isGreaterThan(quantity(1.5))",
    "placed.all(c, c.taints.size() == 0 || c.taints[0].effect == 'NoSchedule')",
    "placed.exists(c, c.name.matches('^eu-[0-9]$')) ? true : false",
    "math.greatest(replicas('eu-1'), replicas('us-1')) == 3",
    "'%d of %s'.format([total(), 'web']) == '4 of web'",
)

REFUSED = {
    "plced.size() == 2": (1, 1, "undeclared reference to 'plced'"),
    "placed.size( == 2": (1, 14, "Syntax error"),
    "placed.size() ==": (1, 17, "Syntax error: it ends too early"),
    "placed.sizes() == 2": (1, 13, "undeclared reference to 'sizes'"),
    "regions().foo": (1, 10, "expression of type 'list(string)' cannot be the operand of a select operation"),
    "replicas(1) == 1": (1, 9, "found no matching overload for 'replicas' applied to '(int)'"),
    "total": (1, 1, "undeclared reference to 'total'"),
    "regions()": (1, 1, "expected true or false, got list"),
    "total()": (1, 1, "expected true or false, got int"),
    "'a'": (1, 1, "expected true or false, got string"),
    "total() == 'four'": (1, 9, "found no matching overload for '_==_' applied to '(int, string)'"),
    "placed.all(c)": (1, 12, "undeclared reference to 'c'"),
    "": (1, 1, "Syntax error: it ends too early"),
}

FAILING = {
    "placed.all(c, c.labels.tier == 'prod')": "there is no key tier; .?tier.orValue('') allows that",
    "replicas('eu-9') == 1": "the fleet has no cluster eu-9",
    "quantity('much').isLessThan(quantity('1'))": "quantity: expected a quantity like 500m or 2Gi, got 'much'",
    "total() / 0 == 1": "divide by zero",
    "result.typ == 'Scale'": "there is no key typ; .?typ.orValue('') allows that",
    "placed[7].name == 'x'": "Index error: index=7 size=2",
    "result.type": "expected true or false, got Scale",
}


@pytest.mark.parametrize("text", TRUE)
def test_an_expression_as_kubernetes_has_them_holds(text: str) -> None:
    expressions().compile(text)
    assert expressions().evaluate(text, Data()) == (True, "", ())


@pytest.mark.parametrize(("text", "expected"), REFUSED.items())
def test_an_expression_that_can_never_be_evaluated_is_refused_with_its_place(
    text: str, expected: tuple[int, int, str]
) -> None:
    with pytest.raises(ExpressionError) as refused:
        expressions().compile(text)
    found = refused.value
    assert (found.line, found.column) == expected[:2]
    assert expected[2] in str(found)


@pytest.mark.parametrize(("text", "expected"), FAILING.items())
def test_an_expression_that_fails_when_it_is_evaluated_does_not_hold(text: str, expected: str) -> None:
    expressions().compile(text)
    found = expressions().evaluate(text, Data())
    assert not found.holds
    assert expected in found.text


def test_a_false_expression_has_the_values_of_its_parts() -> None:
    text = (
        "regions().size() == 3 && total() < share('region', 'eu') && placed.size() == 9 && result.type == 'x'"
    )
    found = expressions().evaluate(text, Data())
    assert found.parts == [
        'regions() is ["eu", "us"]',
        "total() is 4",
        "share('region', 'eu') is 0.75",
        "placed.size() is 2",
        "result.type is Scale",
    ]


class TestFiles:
    def test_all_expressions_have_to_be_true(self, tmp_path: Path) -> None:
        good = "shop/web: {that: ['total() == 4', \"regions() == ['r1', 'r2']\"]}"
        assert ran_case(tmp_path, good).status == 0
        bad = "shop/web: {that: ['total() == 4', 'regions().size() == 3']}"
        found = ran_case(tmp_path, bad)
        assert found.status == 1
        assert "that[1]      regions().size() == 3" in found.out
        assert 'line 13      false; regions() is ["r1", "r2"]' in found.out

    def test_a_single_expression_may_stand_alone(self, tmp_path: Path) -> None:
        assert ran_case(tmp_path, "shop/web:\n  that: total() == 4").status == 0

    def test_nothing_is_true_of_a_workload_that_is_not_placed(self, tmp_path: Path) -> None:
        found = ran_case(tmp_path, "shop/web: {that: 'placed.all(c, false)'}", given="without: [a, b]")
        assert (found.status, "it is not placed" in found.out) == (1, True)

    def test_expressions_see_the_state_before(self, tmp_path: Path) -> None:
        then = """
            - scale: {shop/web: 8}
              expect:
                shop/web:
                  that:
                  - before.map(b, b.replicas).sum() == 4 && total() == 8
                  - result.type == 'Scale' && result.effect == 'moved' && result.starts == 4
                  - workload.spec.replicas == result.wanted
                  - clusters.filter(c, c.labels.tier == 'test').all(c, c.replicas == 0)
        """
        found = ran_case(tmp_path, then=then)
        assert found.status == 0, found.out

    def test_what_depends_on_the_uid_has_to_hold_for_both(self, tmp_path: Path) -> None:
        then = (
            "- scale: {shop/web: 3}\n  expect: {shop/web: {that: [\"replicas('a') == 2\", 'total() == 3']}}"
        )
        found = ran_case(tmp_path, then=then, given="scale: {shop/web: 1}")
        assert found.status == 1
        assert "it depends on the uid of the template" in found.out
        assert "total() == 3" not in found.out

    @pytest.mark.parametrize(
        ("that", "expected"),
        [
            ("[plced.size() == 2]", "13:23: that[0]: undeclared reference to 'plced'"),
            ("['total() == 4', \"total() == 'x'\"]", "13:48: that[1]: found no matching overload"),
            (
                "[{a: b}]",
                '13:23: that[0]: expected an expression, got a mapping. Put it in quotes: it has ": "',
            ),
            ("[true]", "13:23: that[0]: expected an expression, got true or false. Put it in quotes"),
            ("7", "13:22: that: expected a list, got an integer"),
            ("[]", "13:22: that: there is no expression"),
            ("total()", "13:22: that: expected true or false, got int"),
        ],
    )
    def test_what_is_wrong_has_its_place(self, tmp_path: Path, that: str, expected: str) -> None:
        found = ran(tmp_path, with_cases(case(f"shop/web: {{that: {that}}}")), "--width=300")
        assert found.status == 2
        assert f"web_test.yaml:{expected}" in found.out

    @pytest.mark.parametrize(
        ("lines", "expected"),
        [
            (
                "- total() == 4 # of 4",
                '14:9: that[0]: " #" begins a comment here; put the expression in quotes',
            ),
            ("- total() > 3 ? true : false", "14:9: that[0]: expected an expression, got a mapping"),
            ("- 'eu' in regions()", "14:14: not YAML: "),
            ("- !has(result.x)", "14:9: not YAML: "),
            ("- >-\n  total() ==\n  plced", "14:9: that[0]: undeclared reference to 'plced'"),
        ],
    )
    def test_what_yaml_makes_of_an_expression_is_said(
        self, tmp_path: Path, lines: str, expected: str
    ) -> None:
        indented = lines.replace("\n", "\n      ")
        text = with_cases(f"- name: one\n  expect:\n    shop/web:\n      that:\n      {indented}\n")
        found = ran(
            tmp_path, text.replace("    shop/web:\n      that", "    shop/web:\n      that"), "--width=300"
        )
        assert found.status == 2
        assert f"web_test.yaml:{shifted(expected)}" in found.out

    def test_the_expression_is_shown_with_a_caret(self, tmp_path: Path) -> None:
        found = ran_case(tmp_path, "shop/web: {that: 'total() == plced'}")
        assert "    total() == plced\n               ^\n" in found.out


class TestSurvival:
    @pytest.mark.parametrize(
        ("that", "given"),
        [
            ("survives('cluster')", ""),
            ("survives('region')", ""),
            ("!survives('label=tier')", ""),
            ("!survives('cluster')", "without: a"),
            ("!survives('region')", "label: {a: tier=test}"),
            ("survives('region') && survives('cluster')", "scale: {shop/web: 1}"),
        ],
    )
    def test_is_that_something_runs_after_any_one_loss(self, tmp_path: Path, that: str, given: str) -> None:
        found = ran_case(tmp_path, f'shop/web: {{that: "{that}"}}', given=given)
        assert found.status == 0, found.out

    @pytest.mark.parametrize(
        ("step", "that"),
        [
            ("taint: {a: 'cluster.karmada.io/not-ready:NoSchedule'}", "!survives('cluster')"),
            ("cordon: a", "survives('cluster')"),
            (
                "edit: {PropagationPolicy/shop/web: {spec: {suspension: {dispatching: true}}}}",
                "survives('cluster')",
            ),
        ],
    )
    def test_counts_what_runs_and_can_start(self, tmp_path: Path, step: str, that: str) -> None:
        then = f"""
            - {step}
              expect: {{shop/web: {{that: "placed.size() == 2 && {that}"}}}}
        """
        found = ran_case(tmp_path, then=then)
        assert found.status == 0, found.out

    def test_is_checked_after_each_step(self, tmp_path: Path) -> None:
        then = """
            - without: a
              expect: {shop/web: {that: "!survives('region')"}}
            - add: {d: b}
            - edit: {Cluster/d: {spec: {region: r3}}}
              expect: {shop/web: {that: "survives('region')"}}
        """
        found = ran_case(tmp_path, "shop/web: {that: \"survives('region')\"}", then=then)
        assert found.status == 0, found.out

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            ("rack", "survives is of one of cluster, zone, region, provider or label=KEY, got rack"),
            ("provider", "survives('provider'): no cluster has one"),
        ],
    )
    def test_of_what_there_is_not_does_not_hold(self, tmp_path: Path, kind: str, expected: str) -> None:
        text = with_cases(case(f"shop/web: {{that: \"survives('{kind}')\"}}"))
        found = ran(tmp_path, text, "--width=200")
        assert (found.status, expected in found.out) == (1, True)

    def test_is_not_known_where_decisions_depend_on_others(self, tmp_path: Path) -> None:
        begin = BEGIN + "scheduler: {featureGates: {SchedulingOvercommitProtection: true}}\n"
        text = with_cases(case("shop/web: {that: \"survives('cluster')\"}"), begin=begin)
        found = ran(tmp_path, text, "--width=200")
        assert (found.status, "depend on other bindings" in found.out) == (1, True)


def shifted(expected: str) -> str:
    """Return a place one line below: ``that`` has a line of its own."""
    line, _, rest = expected.partition(":")
    return f"{int(line) + 1}:{rest}"


def test_without_the_library_only_files_with_expressions_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expressions.cache_clear()
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    try:
        with pytest.raises(NoCelError):
            Expressions()
        (tmp_path / "plain").mkdir()
        written(tmp_path / "plain", with_cases(case("shop/web: {replicas: 4}")))
        text = with_cases(case("shop/web: {that: ['total() == 4', 'total() < 5']}"), begin=BEGIN)
        written(tmp_path, text)
        found = run("test", str(tmp_path), "--width=200")
    finally:
        expressions.cache_clear()
    assert found.status == 2
    assert "1 passed, 1 file not run" in found.out
    assert found.out.count("pip install 'karmada-pyscheduler[cel]'") == 1
