"""What is wrong with a file is shown with its place before anything of the file is decided."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import Ran, run
from tests.unit.placement_tests.files import (
    BEGIN,
    FLEET,
    HEAD,
    POLICY,
    USES,
    WORKLOADS,
    case,
    ran,
    with_cases,
    written,
)

GOOD = case("shop/web: {placed: true}")


def expecting(text: str) -> str:
    """Return a file whose case expects something of shop/web; its keys are in line 13."""
    return with_cases(f"- name: one\n  expect:\n    shop/web: {text}\n")


PROBLEMS = {
    "no YAML": (expecting("[}"), "13:16: not YAML: "),
    "a key twice": (
        with_cases("- name: one\n  expect:\n    shop/web:\n      placed: true\n      placed: false\n"),
        "15:7: placed is there twice (first in line 14)",
    ),
    "an unknown key of a file": (
        BEGIN + "case: []\n" + with_cases(GOOD, begin=""),
        "10:1: unknown key case; nearest: cases",
    ),
    "an unknown key of a case": (
        with_cases(GOOD + "  expects: {}\n"),
        "14:3: unknown key expects; nearest: expect",
    ),
    "an unknown expectation": (
        expecting("{cluster: [a]}"),
        "13:16: shop/web: unknown key cluster; nearest: clusters",
    ),
    "an unknown word": (
        with_cases(case("shop/web: {placed: true}", given="codon: a")),
        "13:5: given: unknown key codon; nearest: cordon",
    ),
    "a cluster that is no name": (
        expecting("{clusters: [no]}"),
        '13:27: false is no name; write "no", in quotes',
    ),
    "an unknown cluster": (
        expecting("{clusters: {eu-a: 1}}"),
        "13:26: clusters: the fleet has no cluster eu-a",
    ),
    "an unknown workload": (
        with_cases(case("shop/wob: {placed: true}")),
        "13:5: shop/wob: no workload has this name; nearest: shop/web",
    ),
    "an unknown policy": (
        expecting("{policy: PropagationPolicy/shop/wob}"),
        "13:24: policy: there is no PropagationPolicy/shop/wob; nearest: PropagationPolicy/shop/web",
    ),
    "an unknown cause": (
        expecting("{causes: [UntoleratedTaints]}"),
        "13:25: explain has no cause UntoleratedTaints; nearest: UntoleratedTaint",
    ),
    "an unknown gate": (
        BEGIN + "scheduler: {featureGates: {Failovr: true}}\n" + with_cases(GOOD, begin=""),
        "10:28: featureGates: unknown key Failovr; nearest: Failover",
    ),
    "an unknown class": (
        with_cases(case(then="- cordon: a\n  expect: {shop/web: {effect: unchangd}}")),
        "14:35: effect unchangd; nearest: unchanged",
    ),
    "an effect without then": (
        expecting("{effect: moved}"),
        "13:24: effect compares with a state before; use it in then",
    ),
    "stops without then": (
        expecting("{stops: 0}"),
        "13:23: stops compares with a placement before; use it in then",
    ),
    "replicas of what has none": (
        with_cases(case("shop/settings: {clusters: {a: 1}}")),
        "13:31: shop/settings has no replicas; write clusters: [a]",
    ),
    "nothing expected": (expecting("{}"), "13:15: shop/web: nothing is expected; use one of placed,"),
    "no clusters expected": (
        expecting("{clusters: {}}"),
        "13:26: clusters: it is empty; write notPlaced: true",
    ),
    "a cluster twice": (expecting("{clusters: [a, a]}"), "13:27: clusters: a is there twice"),
    "replicas that are no number": (
        expecting("{clusters: {a: two}}"),
        "13:30: a: expected an integer, got text",
    ),
    "replicas that are truth": (
        expecting("{replicas: true}"),
        "13:26: replicas: expected an integer, got true or false",
    ),
    "fewer than no replicas": (
        expecting("{replicas: -1}"),
        "13:26: replicas: expected 0 to 2147483647, got -1",
    ),
    "no text": (expecting("{policy: 7}"), "13:24: policy: expected text, got an integer"),
    "no list": (expecting("{causes: NoClusters}"), "13:24: causes: expected a list, got text"),
    "no mapping": (expecting("placed"), "13:15: shop/web: expected a mapping, got text"),
    "an empty expectation": (expecting(""), "13:14: shop/web: expected a mapping, it is empty"),
    "a rebalance of nothing": (
        with_cases(case("shop/web: {placed: true}", given="rebalance: [shop/web]")),
        "13:17: rebalance needs something that is placed; use it in then",
    ),
    "a change of an unknown cluster": (
        with_cases(case("shop/web: {placed: true}", given="cordon: aa")),
        "13:13: cluster aa does not exist. Nearest: a",
    ),
    "a taint without effect": (
        with_cases(case("shop/web: {placed: true}", given="taint: {a: x}")),
        "13:13: taint: expected C=key=value:Effect",
    ),
    "a scale of an unknown workload": (
        with_cases(case("shop/web: {placed: true}", given="scale: {shop/wob: 1}")),
        "13:13: scale: workload shop/wob does not exist. Nearest: shop/web",
    ),
    "an edit of an unknown policy": (
        with_cases(case("shop/web: {placed: true}", given="edit: {PropagationPolicy/shop/wob: {}}")),
        "13:12: edit: PropagationPolicy/shop/wob does not exist. Nearest: PropagationPolicy/shop/web",
    ),
    "an edit that Karmada refuses": (
        with_cases(
            case(
                "shop/web: {placed: true}",
                given="edit: {PropagationPolicy/shop/web: {spec: {resourceSelectors: []}}}",
            )
        ),
        "13:12: PropagationPolicy shop/web: Karmada would refuse it: spec.resourceSelectors: at least one is needed",
    ),
    "a policy that Karmada refuses, applied": (
        with_cases(case("shop/web: {placed: true}", then="- apply: [bad.yaml]")),
        "15:15: PropagationPolicy shop/bad: Karmada would refuse it: spec.placement.spreadConstraints[0]",
    ),
    "a name without a kind": (
        with_cases(case("shop/web: {placed: true}", given="delete: [web]")),
        "13:14: delete: expected KIND/NAME or KIND/NAMESPACE/NAME, got web",
    ),
    "a time that is none": (
        with_cases(case("shop/web: {placed: true}", given="at: noon")),
        "13:9: at: expected a time such as 2026-11-26T12:00:00Z, got noon",
    ),
    "two cases of a name": (with_cases(GOOD, GOOD), "14:9: a case is named one already (line 11)"),
    "a case without a name": (
        with_cases("- expect: {shop/web: {placed: true}}\n"),
        "11:3: a case needs a name",
    ),
    "a case without an end": (with_cases("- name: one\n"), "11:3: one: a case needs expect or then"),
    "no case": (BEGIN + "cases: []\n", "10:8: cases: there is no case"),
    "a step without an event": (
        with_cases(case(then="- expect: {shop/web: {placed: true}}")),
        "13:7: then[0]: nothing happens; use one of apply,",
    ),
    "no step": (with_cases("- name: one\n  then: []\n"), "12:9: then: there is no step"),
    "cases missing": (BEGIN, "1:1: cases is missing"),
    "no cluster": (
        HEAD + "fleet: {}\n" + USES + with_cases(GOOD, begin=""),
        "3:8: fleet: there is no cluster",
    ),
    "another version": (
        with_cases(GOOD).replace("v1alpha1", "v2", 1),
        "1:13: expected apiVersion: test.pysch",
    ),
    "a file that does not exist": (
        with_cases(GOOD).replace("[policy.yaml]", "[polices/]"),
        "8:12: polices/ does not exist (",
    ),
    "a taint of a cluster": (
        with_cases(GOOD).replace("{region: r1,", "{region: r1, taints: [x],"),
        "5:30: taints: expected key=value:Effect with one of NoSchedule, PreferNoSchedule, NoExecute, got x",
    ),
    "what a cluster has free": (
        with_cases(GOOD).replace("{region: r1,", "{region: r1, room: {cpu: much},"),
        "5:33: room: cpu: ",
    ),
    "an API of a cluster": (
        with_cases(GOOD).replace("{region: r1,", "{region: r1, apis: [Deployment],"),
        "5:28: apis: expected one such as apps/v1/Deployment or v1/ConfigMap, got Deployment",
    ),
    "an unknown property of a cluster": (
        with_cases(GOOD).replace("{region: r1,", "{regoin: r1,"),
        "5:9: a: unknown key regoin; nearest: region",
    ),
    "a workload in place without a name": (
        with_cases(GOOD).replace(
            "[workloads.yaml]", "[workloads.yaml, {kind: Deployment, apiVersion: apps/v1}]"
        ),
        "9:29: a manifest needs metadata",
    ),
    "a workload in place whose kind is a list": (
        with_cases(GOOD).replace("[workloads.yaml]", "[workloads.yaml, {kind: [a], metadata: {name: web}}]"),
        "9:36: kind: expected text, got a list",
    ),
    "a version of decisions that is a list": (
        BEGIN + "scheduler: {decisionsOf: [a]}\n" + with_cases(GOOD, begin=""),
        '10:26: decisionsOf: expected "1.18" or "1.19" or "1.17", in quotes, got [\'a\']',
    ),
    "a number in place of expectations": (
        expecting("7"),
        "13:15: shop/web: expected a mapping, got an integer",
    ),
    "a number in place of warnings": (
        expecting("{warnings: 7}"),
        "13:26: warnings: expected a list, got an integer",
    ),
    "no value for warnings": (
        expecting("{warnings: }"),
        "13:26: warnings: expected a list, got nothing",
    ),
    "sizes of nobody": (
        BEGIN + "sizes: {shop/wob: {replicas: 1}}\n" + with_cases(GOOD, begin=""),
        "10:9: sizes: shop/wob: no workload has this name; nearest: shop/web",
    ),
}


def words(found: Ran) -> str:
    """Return the output with single spaces, however its lines are broken."""
    return " ".join(found.out.split())


BAD = POLICY.replace("name: web, namespace: shop}\nspec", "name: bad, namespace: shop}\nspec").replace(
    "  placement:\n",
    "  placement:\n    spreadConstraints:\n    - {spreadByField: cluster, minGroups: 3, maxGroups: 1}\n",
)


@pytest.mark.parametrize(("text", "expected"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_shown_with_its_place_and_nothing_is_decided(
    tmp_path: Path, text: str, expected: str
) -> None:
    found = ran(tmp_path, text, "--width", "400", files={"bad.yaml": BAD})
    assert found.status == 2
    assert f"{tmp_path}/web_test.yaml:{expected}" in found.out
    assert "0 passed, 1 file not run" in found.out
    assert "Traceback" not in found.out + found.err


def test_all_problems_of_a_file_are_shown_at_once(tmp_path: Path) -> None:
    text = with_cases(
        case("shop/web: {cluster: [a]}"), case("shop/web: {policy: 7}", name="two"), case("x: {}", name="one")
    )
    assert ran(tmp_path, text).out.count("web_test.yaml:") == 4


def test_a_policy_that_karmada_refuses_is_shown_in_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    of_other_namespace = POLICY.replace("name: web, namespace: shop", "name: bad, namespace: other")
    files = {"policies/good.yaml": POLICY, "policies/bad.yaml": f"{of_other_namespace}---\n{BAD}"}
    written(tmp_path, with_cases(GOOD).replace("[policy.yaml]", "[policies]"), files)
    found = run("test", "web_test.yaml", "--width=200")
    assert found.status == 2
    assert (
        "policies/bad.yaml:21:7: PropagationPolicy shop/bad: Karmada would refuse it: "
        "spec.placement.spreadConstraints[0]: maxGroups is lower than minGroups"
    ) in found.out


def test_an_object_of_two_files_is_shown_with_both(tmp_path: Path) -> None:
    files = {"other.yaml": POLICY}
    found = ran(tmp_path, with_cases(GOOD).replace("[policy.yaml]", "[policy.yaml, other.yaml]"), files=files)
    assert "PropagationPolicy shop/web is in" in found.out
    assert found.out.count("policy.yaml") == 1
    assert "other.yaml" in found.out


def test_an_object_twice_in_a_file_is_a_problem(tmp_path: Path) -> None:
    files = {"twice.yaml": f"{POLICY}---\n{POLICY}"}
    found = ran(
        tmp_path, with_cases(GOOD).replace("[policy.yaml]", "[twice.yaml]"), "--width=400", files=files
    )
    assert found.status == 2
    assert "twice.yaml: document 2 (PropagationPolicy shop/web): metadata.name: is there twice" in found.out


def test_a_value_that_yaml_takes_for_no_text_is_a_problem_with_what_it_is(tmp_path: Path) -> None:
    policy = POLICY.replace("  placement:\n", "  placement:\n    clusterTolerations: [{key: a, value: on}]\n")
    found = ran(tmp_path, with_cases(GOOD), "--width=400", files={"policy.yaml": policy})
    assert found.status == 2
    assert (
        "spec.placement.clusterTolerations[0].value: expected a string, got bool True: on is true"
        in found.out
    )


def test_a_cluster_of_a_file_and_of_the_test_is_shown_with_both(tmp_path: Path) -> None:
    cluster = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: a}\nspec: {syncMode: Push}\n"
    begin = HEAD + FLEET.replace("fleet:\n", "fleet:\n  files: [fleet.yaml]\n") + USES
    found = ran(tmp_path, with_cases(GOOD, begin=begin), files={"fleet.yaml": cluster})
    assert "web_test.yaml:6:5: the cluster a is in fleet.yaml, too" in words(found)


def test_a_broken_file_does_not_keep_others_from_running(tmp_path: Path) -> None:
    written(tmp_path, with_cases(GOOD))
    (tmp_path / "broken_test.yaml").write_text(with_cases("- expect: 1\n"))
    found = run("test", str(tmp_path))
    assert found.status == 2
    assert "1 passed, 1 file not run" in found.out


def test_aliases_that_grow_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / "laughs_test.yaml"
    path.write_text("\n".join([*HEAD.splitlines(), *lines]))
    found = run("test", str(path))
    assert found.status == 2
    assert "the aliases stand for more than" in words(found)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large_test.yaml"
    with path.open("wb") as file:
        file.truncate(65 * 2**20)
    found = run("test", str(path))
    assert (found.status, "is larger than 64 MiB" in words(found)) == (2, True)


def test_a_file_of_another_kind_is_counted_unless_it_is_named(tmp_path: Path) -> None:
    written(tmp_path, with_cases(GOOD))
    other = tmp_path / "helm_test.yaml"
    other.write_text("suite: a chart\n")
    found = run("test", str(tmp_path))
    assert (found.status, "1 file of another kind" in found.out) == (0, True)
    named = run("test", str(other))
    assert (named.status, "expected kind: PlacementTest, got None" in words(named)) == (2, True)


def test_there_have_to_be_tests(tmp_path: Path) -> None:
    assert "there are no placement tests in" in run("test", str(tmp_path)).err
    path = str(written(tmp_path, with_cases(GOOD)))
    for arguments, expected in (
        ([str(tmp_path / "nowhere")], "does not exist"),
        ([path, "--run", "nothing"], "--run nothing: no case matches"),
        ([path, "--run", "("], "no regular expression"),
    ):
        found = run("test", *arguments)
        assert found.status == 2
        assert expected in found.err


def test_hidden_files_and_links_are_not_searched(tmp_path: Path) -> None:
    written(tmp_path, with_cases(GOOD))
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "web_test.yaml").write_text("kind: PlacementTest\n")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "web_test.yaml").write_text("kind: PlacementTest\n")
    (tmp_path / "link").symlink_to(outside)
    assert run("test", str(tmp_path)).status == 0


def test_paths_may_leave_the_directory(tmp_path: Path) -> None:
    written(tmp_path, "")
    (tmp_path / "web_test.yaml").unlink()
    (tmp_path / "tests").mkdir()
    text = (
        with_cases(GOOD)
        .replace("policy.yaml", "../policy.yaml")
        .replace("workloads.yaml", "../workloads.yaml")
    )
    (tmp_path / "tests" / "web_test.yaml").write_text(text)
    assert run("test", str(tmp_path / "tests")).status == 0


def test_kinds_that_a_test_does_not_read_are_named(tmp_path: Path) -> None:
    files = {"policy.yaml": POLICY + "\n---\nkind: OverridePolicy\nmetadata: {name: x}\nspec: {}\n"}
    found = ran(tmp_path, with_cases(GOOD), files=files)
    assert (found.status, "OverridePolicy are not read" in words(found)) == (0, True)


def test_a_workload_whose_fields_have_wrong_types_is_named(tmp_path: Path) -> None:
    files = {"workloads.yaml": WORKLOADS.replace("replicas: 4", "replicas: four")}
    found = ran(tmp_path, with_cases(GOOD), files=files)
    assert found.status == 2
    assert "Deployment shop/web: spec.replicas" in words(found)
