"""Cases: what is decided, step by step, and which expectations hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.placement_tests.files import (
    BEGIN,
    FLEET,
    HEAD,
    POLICY,
    USES,
    WORKLOADS,
    case,
    ran,
    ran_case,
    with_cases,
)

ODD = WORKLOADS.replace("replicas: 4", "replicas: 3")


@pytest.mark.parametrize(
    "expect",
    [
        "{placed: true}",
        "{clusters: {a: 2, b: 2}}",
        "{clusters: [b, a]}",
        "{replicas: 4}",
        "{policy: PropagationPolicy/shop/web}",
        "{type: First}",
        "{warnings: none}",
        "{causes: []}",
    ],
)
def test_an_expectation_that_is_right_holds(tmp_path: Path, expect: str) -> None:
    found = ran_case(tmp_path, f"shop/web: {expect}")
    assert found.status == 0, found.out


@pytest.mark.parametrize(
    ("expect", "shown"),
    [
        ("{placed: false}", "expected false, got true"),
        ("{clusters: {a: 3, b: 2}}", "a               3    2"),
        ("{clusters: [a]}", "b               -  yes"),
        ("{replicas: 5}", "expected 5, got 4"),
        ("{policy: none}", "expected none, got PropagationPolicy/shop/web"),
        ("{type: Scale}", "expected Scale, got First"),
        ("{notPlaced: true}", "expected true, got false"),
        ("{notPlaced: NoClusterFit}", "expected NoClusterFit, got false"),
        ("{causes: [NoClusters]}", 'expected ["NoClusters"], got ['),
        ("{warnings: [taint]}", 'expected ["taint"], got []'),
    ],
)
def test_an_expectation_that_is_wrong_fails_with_what_there_is(
    tmp_path: Path, expect: str, shown: str
) -> None:
    found = ran_case(tmp_path, f"shop/web: {expect}")
    assert found.status == 1
    assert shown in found.out


@pytest.mark.parametrize(
    ("before", "after", "warning"),
    [
        ("  placement:\n", "  placment: {}\n  placement:\n", "FieldUnknown: spec.placment"),
        ("{tier: prod}", "{tier: prd}", "LabelValueUnknown: spec.placement.clusterAffinity.labelSelector"),
    ],
)
def test_what_plan_warns_of_in_a_policy_is_a_warning_of_its_workloads_and_a_note(
    tmp_path: Path, before: str, after: str, warning: str
) -> None:
    files = {"policy.yaml": POLICY.replace(before, after)}
    for expect, status in (("{warnings: none}", 1), (f"{{warnings: ['{warning}']}}", 0)):
        found = ran(tmp_path, with_cases(case(f"shop/web: {expect}")), files=files)
        assert found.status == status
        assert f"note: PropagationPolicy/shop/web: {warning}" in " ".join(found.out.split())


def test_a_failure_shows_the_steps_of_the_decision_and_the_command_that_says_more(tmp_path: Path) -> None:
    found = ran_case(tmp_path, "shop/web: {replicas: 5}")
    assert "FILTER  3 -> 2" in found.out
    assert f"more: karmada-pyscheduler test {tmp_path}/web_test.yaml --run one --explain" in found.out


def test_the_whole_explanation_is_shown_if_asked_for(tmp_path: Path) -> None:
    text = with_cases(case("shop/web: {replicas: 5}"))
    assert "CLUSTER  FILTER" in ran(tmp_path, text, "--explain").out


@pytest.mark.parametrize("expect", ["{clusters: {a: 2, b: 2}}", "{clusters: [a]}", "{replicas: 0}"])
def test_nothing_is_true_of_the_clusters_of_a_workload_that_is_not_placed(
    tmp_path: Path, expect: str
) -> None:
    found = ran_case(tmp_path, f"shop/web: {expect}", given="taint: {a: 'x:NoSchedule', b: 'x:NoSchedule'}")
    assert found.status == 1
    assert "it is not placed: NoClusterFit: 0/3 clusters are available" in " ".join(found.out.split())


def test_a_workload_without_a_policy_is_not_claimed(tmp_path: Path) -> None:
    assert ran_case(tmp_path, "shop/settings: {policy: none, notPlaced: NotClaimed}").status == 0
    found = ran_case(tmp_path, "shop/settings: {placed: true}")
    assert "NotClaimed: no policy matches it" in " ".join(found.out.split())


def test_a_policy_without_an_id_claims_and_of_two_new_ones_the_higher_priority_claims(
    tmp_path: Path,
) -> None:
    other = POLICY.replace("name: web, ", "name: other, ").replace("spec:\n", "spec:\n  priority: 5\n", 1)
    expect = case("shop/web: {policy: PropagationPolicy/shop/other}")
    begin = BEGIN.replace("[policy.yaml]", "[policy.yaml, other.yaml]")
    assert ran(tmp_path, with_cases(expect, begin=begin), files={"other.yaml": other}).status == 0


def test_a_template_from_a_control_plane_is_claimed_again(tmp_path: Path) -> None:
    claimed = WORKLOADS.replace(
        "metadata: {name: web, namespace: shop}",
        "metadata: {name: web, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: x}, "
        "annotations: {propagationpolicy.karmada.io/name: gone, propagationpolicy.karmada.io/namespace: shop}}",
    )
    expect = case("shop/web: {policy: PropagationPolicy/shop/web}")
    assert ran(tmp_path, with_cases(expect), files={"workloads.yaml": claimed}).status == 0


def _deployment(name: str, replicas: int) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: {replicas}
  template: {{spec: {{containers: [{{name: web, resources: {{requests: {{cpu: 1}}}}}}]}}}}
"""


THREE = {
    "policy.yaml": POLICY.replace(
        "name: web}", "name: one}\n  - {apiVersion: apps/v1, kind: Deployment, name: two}"
    ),
    "last.yaml": POLICY.replace("name: web,", "name: last,")
    .replace("name: web}", "name: last}")
    .replace("Weighted", "Aggregated"),
    "workloads.yaml": "---\n".join([_deployment("one", 3), _deployment("two", 3), _deployment("last", 10)]),
}
"""Two workloads with three replicas each on two clusters: with equal parities one cluster has four of them, else both have three."""

EXPECT_THREE = case(
    "shop/one: {replicas: 3}\nshop/two: {replicas: 3}\nshop/last: {replicas: 10, that: placed.size() == 1}"
)
CAPACITY = """\
fleet:
  clusters:
    a: {labels: {tier: prod}, room: {cpu: 12}}
    b: {labels: {tier: prod}, room: {cpu: 12}}
policies: [policy.yaml, last.yaml]
workloads: [workloads.yaml]
"""
SEES_OTHERS = "scheduler: {featureGates: {SchedulingOvercommitProtection: true}}\n"


class TestTheUid:
    def test_of_a_template_from_git_decides_no_exact_number(self, tmp_path: Path) -> None:
        text = with_cases(case("shop/web: {clusters: {a: 2, b: 1}}"))
        found = ran(tmp_path, text, files={"workloads.yaml": ODD})
        assert found.status == 1
        assert "it depends on the uid of the template" in found.out
        assert "GOT (EVEN UID)  GOT (ODD UID)" in found.out

    def test_does_not_matter_for_names_and_sums(self, tmp_path: Path) -> None:
        text = with_cases(case("shop/web: {clusters: [a, b], replicas: 3}"))
        assert ran(tmp_path, text, files={"workloads.yaml": ODD}).status == 0

    def test_that_a_file_has_decides(self, tmp_path: Path) -> None:
        given = ODD.replace("{name: web, namespace: shop}", "{name: web, namespace: shop, uid: '{uid}'}")
        outcomes = {
            (uid, expected): ran(
                tmp_path,
                with_cases(case(f"shop/web: {{clusters: {expected}}}")),
                files={"workloads.yaml": given.replace("{uid}", uid)},
            ).status
            for uid in ("0", "1")
            for expected in ("{a: 2, b: 1}", "{a: 1, b: 2}")
        }
        assert sorted(outcomes.values()) == [0, 0, 1, 1]
        assert {outcomes["0", each] for each in ("{a: 2, b: 1}", "{a: 1, b: 2}")} == {0, 1}

    def test_matters_in_later_steps_too(self, tmp_path: Path) -> None:
        then = """
            - scale: {shop/web: 5}
              expect: {shop/web: {clusters: {a: 3, b: 2}}}
        """
        found = ran_case(tmp_path, "shop/web: {clusters: {a: 2, b: 2}}", then=then)
        assert found.status == 1
        assert "it depends on the uid of the template" in found.out

    def test_of_two_templates_is_combined_where_decisions_see_each_other(self, tmp_path: Path) -> None:
        found = ran(tmp_path, with_cases(EXPECT_THREE, begin=HEAD + CAPACITY + SEES_OTHERS), files=THREE)
        assert found.status == 1
        why = "it depends on the uids of Deployment/shop/one, Deployment/shop/two; placed.size() is 2"
        assert why in " ".join(found.out.split())

    def test_is_not_combined_where_they_do_not(self, tmp_path: Path) -> None:
        assert ran(tmp_path, with_cases(EXPECT_THREE, begin=HEAD + CAPACITY), files=THREE).status == 0


class TestSteps:
    def test_begin_where_the_one_before_has_ended(self, tmp_path: Path) -> None:
        then = """
            - cordon: a
              expect: {shop/web: {effect: unchanged, stops: 0, type: Avoid}}
            - without: a
              expect: {shop/web: {effect: moved, type: Failover, stops: 2, clusters: {b: 4}}}
            - uncordon: a
            - scale: {shop/web: 6}
              expect: {shop/web: {type: Scale, clusters: {b: 6}}}
        """
        found = ran_case(tmp_path, then=then)
        assert found.status == 1
        assert "then[2] uncordon a" in found.out
        assert "cluster a does not exist" in found.out
        assert ran_case(tmp_path, then=then.replace("- uncordon: a", "")).status == 0

    def test_a_rebalance_after_the_first_decision_is_a_reconcile(self, tmp_path: Path) -> None:
        then = """
            - rebalance: [shop/web]
              expect: {shop/web: {type: Reconcile, effect: unchanged}}
        """
        assert ran_case(tmp_path, "shop/web: {type: First}", then=then).status == 0

    def test_a_new_cluster_is_used_after_a_rebalance(self, tmp_path: Path) -> None:
        then = """
            - add: {d: a}
              expect: {shop/web: {clusters: {a: 2, b: 2}}}
            - rebalance: shop/web
              expect: {shop/web: {clusters: [a, b, d], replicas: 4}}
        """
        assert ran_case(tmp_path, then=then).status == 0

    def test_an_edited_policy_applies_at_once_and_a_deleted_one_leaves_what_is_placed(
        self, tmp_path: Path
    ) -> None:
        then = """
            - edit:
                PropagationPolicy/shop/web:
                  spec: {placement: {clusterAffinity: {labelSelector: null, clusterNames: [c]}}}
              expect: {shop/web: {clusters: {c: 4}, type: Reconcile, stops: 4}}
            - delete: PropagationPolicy/shop/web
              expect: {shop/web: {clusters: {c: 4}, policy: none, effect: unchanged}}
            - apply: [policy.yaml]
              expect: {shop/web: {clusters: {a: 2, b: 2}, policy: PropagationPolicy/shop/web}}
        """
        found = ran_case(tmp_path, then=then)
        assert found.status == 0, found.out

    def test_a_workload_may_come_and_go(self, tmp_path: Path) -> None:
        then = """
            - delete: Deployment/shop/web
              expect: {shop/web: {effect: deleted, placed: false}}
            - apply: [workloads.yaml]
              expect: {shop/web: {effect: placed, clusters: {a: 2, b: 2}}}
        """
        found = ran_case(tmp_path, "shop/web: {placed: true}", then=then)
        assert found.status == 0, found.out

    def test_a_cluster_that_is_not_ready_gets_nothing_new(self, tmp_path: Path) -> None:
        assert ran_case(tmp_path, "shop/web: {clusters: {b: 4}}", given="ready: {a: false}").status == 0
        then = "- ready: {a: false}\n  expect: {shop/web: {clusters: {a: 2, b: 2}, effect: unchanged}}"
        assert ran_case(tmp_path, then=then).status == 0

    def test_taints_evict_only_with_the_flag_of_the_controller_manager(self, tmp_path: Path) -> None:
        then = "- taint: {a: 'x=y:NoExecute'}\n  expect: {shop/web: {clusters: CLUSTERS}}"
        kept, moved = (then.replace("CLUSTERS", each) for each in ("{a: 2, b: 2}", "{b: 4}"))
        evicting = BEGIN + "controllerManager: {noExecuteTaintEviction: true}\n"
        assert ran_case(tmp_path, then=kept).status == 0
        assert ran_case(tmp_path, then=moved, begin=evicting).status == 0

    def test_a_failure_names_its_step(self, tmp_path: Path) -> None:
        then = "- label: {a: tier=test}\n- without: b\n  expect: {shop/web: {replicas: 1}}"
        found = ran_case(tmp_path, then=then)
        assert "then[1] without b (line 15)" in found.out


class TestGiven:
    def test_the_world_was_always_so(self, tmp_path: Path) -> None:
        assert ran_case(tmp_path, "shop/web: {clusters: {b: 4}, type: First}", given="without: a").status == 0
        assert ran_case(tmp_path, "shop/web: {replicas: 10}", given="scale: {shop/web: 10}").status == 0

    def test_a_list_has_an_order(self, tmp_path: Path) -> None:
        given = "- add: {d: a}\n- label: {d: tier=test}"
        assert ran_case(tmp_path, "shop/web: {clusters: {a: 2, b: 2}}", given=given).status == 0

    def test_cases_share_nothing(self, tmp_path: Path) -> None:
        one = case("shop/web: {clusters: {b: 4}}", given="without: a", name="without a")
        two = case("shop/web: {clusters: {a: 2, b: 2}}", name="with a")
        for cases in ((one, two), (two, one)):
            assert ran(tmp_path, with_cases(*cases)).status == 0


class TestTheScheduler:
    def test_that_does_not_exist_decides_nothing(self, tmp_path: Path) -> None:
        policy = POLICY.replace("spec:\n", "spec:\n  schedulerName: my-schedler\n", 1)
        files = {"policy.yaml": policy}
        begin = BEGIN + "scheduler: {names: [default-scheduler, my-scheduler]}\n"
        expect = case("shop/web: {notPlaced: OtherScheduler}")
        assert ran(tmp_path, with_cases(expect, begin=begin), files=files).status == 0
        found = ran(tmp_path, with_cases(case("shop/web: {clusters: [a]}"), begin=begin), files=files)
        assert found.status == 1
        assert "did you mean my-scheduler" in " ".join(found.out.split())

    def test_has_the_gates_of_the_file(self, tmp_path: Path) -> None:
        policy = (
            POLICY + "  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: high}\n"
        )
        high = (
            "\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 7\n"
        )
        gated = BEGIN + "scheduler: {featureGates: {PriorityBasedScheduling: true}}\n"
        text = with_cases(case("shop/web: {placed: true}"), begin=gated)
        assert ran(tmp_path, text, files={"policy.yaml": policy}).status == 1
        files = {"policy.yaml": policy, "workloads.yaml": WORKLOADS + high}
        assert ran(tmp_path, text, files=files).status == 0

    def test_has_the_gates_and_refusals_of_the_version_of_the_file(self, tmp_path: Path) -> None:
        policy = (
            POLICY + "  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: high}\n"
        )
        placed = case("shop/web: {placed: true}")
        of_1_19 = BEGIN + 'scheduler: {decisionsOf: "1.19"}\n'
        off = of_1_19 + "controllerManager: {featureGates: {PriorityBasedScheduling: false}}\n"
        for begin, status in ((BEGIN, 0), (of_1_19, 1), (off, 0)):
            text = with_cases(placed, begin=begin)
            assert ran(tmp_path, text, files={"policy.yaml": policy}).status == status

    def test_warns_of_a_purge_mode_that_karmada_1_19_refuses(self, tmp_path: Path) -> None:
        policy = (
            POLICY
            + "  propagateDeps: true\n  failover: {application: {decisionConditions: {}, purgeMode: Immediately}}\n"
        )
        of_1_19 = BEGIN + 'scheduler: {decisionsOf: "1.19"}\n'
        for begin, is_warned in ((BEGIN, False), (of_1_19, True)):
            text = with_cases(case("shop/web: {placed: true}"), begin=begin)
            found = ran(tmp_path, text, files={"policy.yaml": policy})
            assert ("PurgeModeRefused" in found.out) is is_warned, found.out


def test_a_kind_with_an_interpreter_needs_its_size(tmp_path: Path) -> None:
    rollout = "\n---\napiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: canary, namespace: shop}\nspec: {replicas: 6}\n"
    policy = POLICY.replace(
        "  placement:", "  - {apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: canary}\n  placement:"
    )
    files = {"workloads.yaml": WORKLOADS + rollout, "policy.yaml": policy}
    text = with_cases(case("shop/canary: {clusters: {a: 3, b: 3}}"))
    found = ran(tmp_path, text, files=files)
    assert found.status == 2
    assert "sizes: {shop/canary: {replicas: N, cpu: 500m}}" in " ".join(found.out.split())
    sized = text.replace("cases:", "sizes: {shop/canary: {replicas: 6, cpu: 500m}}\ncases:")
    assert ran(tmp_path, sized, files=files).status == 0
    scaled = case(
        "shop/canary: {replicas: 6}",
        then="- scale: {shop/canary: 8}\n  expect: {shop/canary: {replicas: 8, type: Scale}}",
    )
    begin = BEGIN + "sizes: {shop/canary: {replicas: 6, cpu: 500m}}\n"
    assert ran(tmp_path, with_cases(scaled, begin=begin), files=files).status == 0


def test_bindings_of_a_file_are_where_the_case_begins(tmp_path: Path) -> None:
    binding = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: web-deployment
  namespace: shop
  generation: 2
  labels: {propagationpolicy.karmada.io/permanent-id: x}
  annotations: {propagationpolicy.karmada.io/namespace: shop, propagationpolicy.karmada.io/name: web}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}
  replicas: 4
  replicaRequirements: {resourceRequest: {cpu: 500m}}
  placement: {clusterAffinity: {labelSelector: {matchLabels: {tier: prod}}}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}
  clusters: [{name: a, replicas: 4}]
status: {lastScheduledTime: '2025-12-01T00:00:00Z', schedulerObservedGeneration: 2}
"""
    then = """
        - rebalance: shop/web
          expect: {shop/web: {clusters: {a: 2, b: 2}, policy: PropagationPolicy/shop/web}}
        - edit: {PropagationPolicy/shop/web: {spec: {placement: {clusterAffinity: null}}}}
          expect: {shop/web: {replicas: 4, policy: PropagationPolicy/shop/web, type: Reconcile}}
    """
    begin = BEGIN + "bindings: [bindings.yaml]\n"
    text = with_cases(case("shop/web: {replicas: 4}", then=then), begin=begin)
    found = ran(tmp_path, text, files={"bindings.yaml": binding})
    assert found.status == 0, found.out


def test_a_fleet_may_come_from_files(tmp_path: Path) -> None:
    fleet = """\
apiVersion: v1
kind: List
items:
- apiVersion: cluster.karmada.io/v1alpha1
  kind: Cluster
  metadata: {name: z, labels: {tier: prod}}
  spec: {syncMode: Push}
  status: {apiEnablements: [{groupVersion: apps/v1, resources: [{name: deployments, kind: Deployment}]}]}
"""
    begin = HEAD + FLEET.replace("fleet:\n", "fleet:\n  files: [fleet.yaml]\n") + USES
    text = with_cases(case("shop/web: {clusters: [a, b, z]}"), begin=begin)
    assert ran(tmp_path, text, files={"fleet.yaml": fleet}).status == 0


def test_a_skipped_case_is_not_run(tmp_path: Path) -> None:
    text = with_cases(case("shop/web: {replicas: 99}") + "  skip: until the sale\n")
    found = ran(tmp_path, text, "-v")
    assert (found.status, "skipped, until the sale" in found.out) == (0, True)
