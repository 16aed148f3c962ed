"""``simulate``: decisions about the objects of files, for people and CI jobs."""

from __future__ import annotations

import argparse
import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.cli import simulate
from karmada_advisor.cli.commands import run as run_command
from karmada_advisor.cli.flags.offline import simulate_parser
from karmada_advisor.cli.output import NO_ANSWER
from karmada_advisor.cli.simulate import with_progress
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests import commands
from tests.plugin_sources import BY_TYPE


class Ran(commands.Ran):
    @property
    def results(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.out)
        return found

    @property
    def clusters(self) -> dict[str, dict[str, int]]:
        return {each["name"]: {c["name"]: c["replicas"] for c in each["clusters"]} for each in self.results}


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:

    def run_(clusters: object, bindings: object, *flags: str, output: str = "json") -> Ran:
        paths = [tmp_path / "clusters.yaml", tmp_path / "bindings.yaml"]
        for path, content in zip(paths, (clusters, bindings), strict=True):
            path.write_text(written(content))
        files = [f"--clusters={paths[0]}", f"--bindings={paths[1]}"]
        status = run_command(["simulate", *files, "-o", output, *flags], ())
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err.replace(f"{tmp_path}/", ""))

    return run_


def written(content: object) -> str:
    """Return the List that kubectl prints for several objects; text is returned unchanged."""
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "List", "items": [each.manifest() for each in content]}
    )


def documents(*parts: BindingBuilder | ClusterBuilder | str) -> str:
    """Return a YAML stream with one document for each part."""
    return "---\n".join(part if isinstance(part, str) else yaml.safe_dump(part.manifest()) for part in parts)


FLEET = [cluster("m1").capacity(pods=4), cluster("m2").capacity(pods=8), cluster("m3").taint("x:NoSchedule")]
WEB = binding("web").replicas(6).dynamic_weight()


EXPECTED_NUMBER = "expected an integer, got str 'on_one_cluster'"
EXPECTED_BINDING = "expected ClusterResourceBinding or ResourceBinding, got '{}'"
EXPECTED_VERSION = "expected 'work.karmada.io/v1alpha2', got 'work.karmada.io/v1alpha1'"
TWICE = "metadata.name: is there twice; the first counts"


def test_each_binding_has_its_stable_decision_in_the_output(run: Run) -> None:
    ran = run(FLEET, [WEB])
    assert ran.status == 0
    assert ran.results == [
        {
            "kind": "ResourceBinding",
            "namespace": "default",
            "name": "web-deployment",
            "schedulerName": "default-scheduler",
            "otherScheduler": False,
            "heldAt": None,
            "scheduleType": "First",
            "clusters": [{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 4}],
            "affinityName": "",
            "condition": {
                "type": "Scheduled",
                "status": "True",
                "reason": "Success",
                "message": "Binding has been scheduled successfully.",
            },
        }
    ]
    assert ran.err == "1 binding on 3 clusters: 1 placed, 0 not, 0 problems in the input\n"


def test_an_unplaced_binding_fails_the_job(run: Run) -> None:
    ran = run(FLEET, [WEB, binding("big").replicas(99).dynamic_weight(), binding("lost").names("m9")])
    assert ran.status == 1
    conditions = [each["condition"] for each in ran.results]
    assert [each["reason"] for each in conditions] == ["Success", "Unschedulable", "NoClusterFit"]
    assert conditions[1]["message"].endswith("Clusters available replicas 12 are not enough to schedule.")
    assert ran.err.endswith("1 placed, 2 not, 0 problems in the input\n")


def test_problems_of_the_input_are_reported_and_the_rest_is_decided(run: Run) -> None:
    bad = binding("bad").replicas(1)
    bad.manifest()["spec"]["replicas"] = "on_one_cluster"
    nameless = binding("x")
    del nameless.manifest()["metadata"]["name"]
    bindings = documents(
        WEB,
        bad,
        "kind: ResourceBinding\nspec: {a: [\n",
        "kind: Deployment\nmetadata: {name: d}\n",
        nameless,
        "just text\n",
        "# only a comment\n",
        "apiVersion: work.karmada.io/v1alpha1\nkind: ResourceBinding\nmetadata: {name: old, namespace: ns}\n",
        binding("gone").placement(None),
        WEB,
        binding("other").replicas(1),
    )
    ran = run(documents(FLEET[0], "kind: Node\nmetadata: {name: node}\n"), bindings)
    assert ran.status == 2
    assert set(ran.clusters) == {"web-deployment", "other-deployment"}
    line = bindings.splitlines().index("spec: {a: [") + 2
    *problems, summary = ran.err.splitlines()
    assert [text.partition(" not YAML: ")[0] for text in problems] == [
        "clusters.yaml: document 2 (Node node): kind: expected Cluster, got 'Node'",
        "bindings.yaml: document 2 (ResourceBinding default/bad-deployment): spec.replicas: "
        + EXPECTED_NUMBER,
        f"bindings.yaml: document 3: line {line}, column 1:",
        "bindings.yaml: document 4 (Deployment d): kind: " + EXPECTED_BINDING.format("Deployment"),
        "bindings.yaml: document 5: metadata.name: is missing",
        "bindings.yaml: document 6: expected an object, got str",
        "bindings.yaml: document 7 (ResourceBinding ns/old): apiVersion: " + EXPECTED_VERSION,
        "bindings.yaml: document 8 (ResourceBinding default/gone-deployment): spec.placement: is missing",
        f"bindings.yaml: document 9 (ResourceBinding default/web-deployment): {TWICE}",
    ]
    assert summary == "2 bindings on 1 cluster: 1 placed, 1 not, 9 problems in the input"


def test_an_item_of_a_list_is_named(run: Run) -> None:
    content = yaml.safe_dump({"kind": "List", "items": [WEB.manifest(), {"kind": "Pod"}, "text"]})
    ran = run(FLEET, content)
    assert ran.err.splitlines()[:2] == [
        "bindings.yaml: document 1, item 2: kind: " + EXPECTED_BINDING.format("Pod"),
        "bindings.yaml: document 1, item 3: expected an object, got str",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "bindings.yaml: holds no objects", id="empty-file"),
        pytest.param("---\n---\n", "bindings.yaml: holds no objects", id="empty-documents"),
        pytest.param("{", "bindings.yaml: document 1: line ", id="broken-json"),
        pytest.param(
            '\n{\n  "kind": "List",\n  "items": [\n',
            "bindings.yaml: document 1: line 5, column 1: not JSON: ",
            id="truncated-json",
        ),
        pytest.param(
            '{"kind": [}', "bindings.yaml: document 1: line 1, column 11: not JSON: ", id="odd-json"
        ),
    ],
)
def test_an_empty_or_broken_file_is_a_problem(run: Run, content: str, message: str) -> None:
    ran = run(FLEET, content)
    assert ran.status == 2
    assert ran.results == []
    assert ran.err.startswith(message)


def test_an_empty_list_is_no_problem(run: Run) -> None:
    ran = run(FLEET, "apiVersion: v1\nkind: List\nitems: []\n")
    assert (ran.status, ran.results) == (0, [])


def test_a_missing_file_is_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = argparse.Namespace(
        clusters=["/nowhere/clusters.yaml"],
        bindings=["/nowhere/bindings.yaml"],
        workloads=[],
        as_new=False,
        ignore_other_schedulers=False,
        output="table",
        plugins=None,
        config=None,
        plugin_dir=[],
        feature_gates=[],
        scheduler_name=None,
        decisions_of=None,
        enable_empty_workload_propagation="false",
    )
    with pytest.raises(NoAnswerError):
        simulate.run(arguments)
    assert "/nowhere/clusters.yaml: cannot be read: No such file or directory\n" in capsys.readouterr().err


def test_files_may_be_json_and_standard_input(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(
        json.dumps({"kind": "ClusterList", "items": [FLEET[0].manifest()]}),
        json.dumps(binding("w").manifest()),
    )
    assert ran.clusters == {"w-deployment": {"m1": 0}}
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(written([binding("piped")]).encode())))
    arguments = simulate_parser().parse_args(
        ["--clusters", str(tmp_path / "clusters.yaml"), "--bindings", "-", "-ojson"]
    )
    assert simulate.run(arguments) == 0
    assert "piped-deployment" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param([], {"m1": 1, "m2": 1}, id="default"),
        pytest.param(["--plugins=*,-TaintToleration"], {"m1": 1, "m2": 1, "m3": 1}, id="plugins"),
        pytest.param(["--plugins", "ClusterAffinity"], {"m1": 1, "m2": 1, "m3": 1}, id="one-plugin"),
    ],
)
def test_the_plugins_flag_selects_plugins_as_upstream(
    run: Run, flags: Sequence[str], expected: dict[str, int]
) -> None:
    ran = run(FLEET, [binding("w").replicas(1).duplicated()], *flags)
    assert dict.fromkeys(ran.clusters["w-deployment"], 1) == expected


def test_a_disabled_plugin_is_reported(run: Run) -> None:
    assert run(FLEET, [WEB], "--plugins=*,-TaintToleration").err.startswith('"TaintToleration" is disabled\n')


PROFILES = """
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
  - schedulerName: picky
    plugins:
      multiPoint: {enabled: [{name: OnlyTwo}]}
"""
ONLY_TWO = """
import asyncio

from karmada_scheduler.framework import SUCCESS, FilterContext, PreFilterContext, Result


class OnlyTwo:
    name = "OnlyTwo"

    async def pre_filter(self, context: PreFilterContext) -> Result:
        await asyncio.sleep(0)
        return SUCCESS

    def filter(self, context: FilterContext) -> Result:
        return SUCCESS if context.cluster.name == "m2" else Result.unschedulable("cluster(s) are not m2")
"""


def test_each_binding_is_decided_by_the_plugins_of_its_profile(run: Run, tmp_path: Path) -> None:
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "only_two.py").write_text(ONLY_TWO)
    ran = run(
        FLEET,
        [
            binding("any").replicas(1).duplicated(),
            binding("picky").scheduler("picky").replicas(1).duplicated(),
            binding("foreign").scheduler("volcano").replicas(1).duplicated().on(m3=1),
        ],
        f"--config={tmp_path / 'profiles.yaml'}",
        f"--plugin-dir={plugins}",
    )
    assert ran.clusters == {
        "any-deployment": {"m1": 1, "m2": 1},
        "picky-deployment": {"m2": 1},
        "foreign-deployment": {"m3": 1},
    }
    assert ran.status == 1
    assert [each["otherScheduler"] for each in ran.results] == [False, False, True]
    assert "2 placed, 0 not, 1 of other schedulers" in ran.err


def test_a_schedulername_without_a_profile_is_named_and_fails_the_job_unless_a_flag_ignores_it(
    run: Run, tmp_path: Path
) -> None:
    config = tmp_path / "profiles.yaml"
    config.write_text(PROFILES.partition("  - schedulerName: picky")[0])
    bindings = [binding("typo").scheduler("defualt-scheduler").replicas(1).duplicated()]
    ran = run(FLEET, bindings, f"--config={config}", output="table")
    assert ran.status == 1
    assert 'OtherScheduler  -         no profile has the schedulerName "defualt-scheduler"' in ran.out
    assert run(FLEET, bindings, f"--config={config}", "--ignore-other-schedulers").status == 0


def test_output_of_plugins_goes_to_stderr(run: Run, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    noisy = ONLY_TWO.replace("        await", '        print("deciding")\n        await')
    (plugins / "only_two.py").write_text('print("loading")\n' + noisy)
    ran = run(FLEET, [WEB], f"--plugin-dir={plugins}")
    assert ran.clusters == {"web-deployment": {"m2": 6}}
    assert "loading\n" in ran.err
    assert "deciding\n" in ran.err


SLEEPY = """
import time

from karmada_scheduler.framework import SUCCESS


class Sleepy:
    name = "Sleepy"

    def filter(self, context):
        print("called", flush=True)
        while context.cycle.binding.key.name == "slow-deployment":
            time.sleep(1)
        {end}
"""


def test_a_plugin_that_hangs_is_stopped_and_called_for_the_next_binding(run: Run, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    plugins, config = tmp_path / "plugins", tmp_path / "config.yaml"
    plugins.mkdir()
    (plugins / "sleepy.py").write_text(SLEEPY.format(end="return SUCCESS"))
    config.write_text(
        "{apiVersion: pyscheduler.karmada.io/v1alpha1, kind: KarmadaSchedulerConfiguration, pluginTimeoutSeconds: 0.1,"
        " profiles: [{schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Sleepy}]}}}]}"
    )
    ran = run(FLEET, [binding("slow").names("m1"), binding("next").names("m1")],
              f"--plugin-dir={plugins}", f"--config={config}")  # fmt: skip
    slow, after = ran.results
    assert slow["condition"]["reason"] == "SchedulerError"
    assert 'plugin "Sleepy" took longer than 0.1s at Filter' in slow["condition"]["message"]
    assert [target["name"] for target in after["clusters"]] == ["m1"]
    assert ran.status == 1
    assert signal.getsignal(signal.SIGALRM) is before


def test_an_interrupt_is_not_treated_as_an_error_of_the_plugin(run: Run, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    (tmp_path / "p.py").write_text(SLEEPY.format(end="raise KeyboardInterrupt"))
    with pytest.raises(KeyboardInterrupt):
        run(FLEET, [WEB], f"--plugin-dir={tmp_path}")
    assert signal.getsignal(signal.SIGALRM) is before


def test_ctrl_c_during_a_plugin_call_ends_the_command_at_once(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(SLEEPY.format(end="raise AssertionError"))
    clusters, bindings = tmp_path / "clusters.json", tmp_path / "bindings.json"
    clusters.write_text(written(FLEET))
    bindings.write_text(written([binding("slow")]))
    files = [f"--clusters={clusters}", f"--bindings={bindings}", f"--plugin-dir={tmp_path}"]
    with subprocess.Popen(
        [sys.executable, "-m", "karmada_scheduler", "simulate", *files], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "called\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 128 + signal.SIGINT
        assert process.stderr.read() == ""


def test_a_flag_decides_placed_bindings_from_scratch(run: Run) -> None:
    unplaced = run(FLEET, [WEB])
    assert unplaced.clusters == {"web-deployment": {"m1": 2, "m2": 4}}
    placed = binding("web").replicas(6).dynamic_weight().on(m1=6).applied()
    assert run(FLEET, [placed]).clusters == {"web-deployment": {"m1": 6}}
    again = run(FLEET, [placed], "--anew")
    assert again.clusters == {"web-deployment": {"m1": 2, "m2": 4}}
    assert again.results[0]["scheduleType"] == "First"


def _attached() -> BindingBuilder:
    made = binding("attached").placement(None)
    made.manifest()["metadata"]["labels"] = {}
    return made


@pytest.mark.parametrize(
    ("made", "status", "summary", "message"),
    [
        (binding("paused").replicas(1).suspended(), 1, "0 placed, 0 not, 1 left alone", "suspended"),
        (binding("paused").replicas(1).suspended().on(m1=1).applied(), 0, "1 placed, 0 not", ""),
        (
            binding("part").replicas(3).suspended().on(m1=1).applied().dynamic_weight(),
            1,
            "0 placed, 1 not",
            "suspended",
        ),
        (binding("gone").replicas(1).deleting(), 1, "1 left alone", "being deleted"),
        (binding("idle").replicas(0, cpu=1), 0, "1 placed, 0 not", ""),
        (_attached(), 0, "1 left alone", "attached-deployment"),
    ],
)
def test_what_nobody_decides_about_is_not_placed_unless_it_needs_no_cluster(
    run: Run, made: BindingBuilder, status: int, summary: str, message: str
) -> None:
    ran = run(FLEET, [made])

    assert (ran.status, summary in ran.err) == (status, True)
    assert message in run(FLEET, [made], "-o=table").out


def test_several_files_are_combined_and_may_be_gzipped(run: Run, tmp_path: Path) -> None:
    more = tmp_path / "more.yaml.gz"
    more.write_bytes(gzip.compress(written([binding("more").replicas(1).duplicated()]).encode()))
    ran = run(FLEET[:1], [WEB], f"--bindings={more}")
    assert ran.clusters == {"web-deployment": {"m1": 4}, "more-deployment": {"m1": 1}} or ran.status == 1
    assert set(ran.clusters) == {"web-deployment", "more-deployment"}


def test_a_file_that_is_not_utf_8_is_a_problem(run: Run, tmp_path: Path) -> None:
    noise = tmp_path / "noise.bin"
    noise.write_bytes(b"apiVersion: \xff\xfe")
    ran = run(FLEET, [WEB], f"--bindings={noise}")
    assert ran.status == 2
    assert ran.err.startswith("noise.bin: line 1, column 13: is no text in UTF-8\n")


def test_a_broken_gzip_file_is_a_problem(run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(b"x" * 1000)[:-10])
    ran = run(FLEET, [WEB], f"--bindings={broken}")
    assert ran.status == 2
    assert "broken.gz: cannot be read: " in ran.err


def test_items_of_a_list_of_the_api_server_have_the_kind_of_the_list(run: Run) -> None:
    def bare(kind: str, builders: Sequence[BindingBuilder | ClusterBuilder]) -> str:
        items = [dict(each.manifest()) for each in builders]
        version = items[0]["apiVersion"]
        for item in items:
            del item["kind"], item["apiVersion"]
        return json.dumps({"kind": kind, "apiVersion": version, "items": items})

    ran = run(bare("ClusterList", FLEET), bare("ResourceBindingList", [WEB]))
    assert ran.status == 0
    assert ran.clusters == {"web-deployment": {"m1": 2, "m2": 4}}


def test_without_a_cluster_file_nothing_is_decided(run: Run) -> None:
    ran = run("", [WEB])
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err.splitlines() == [
        "clusters.yaml: holds no objects",
        "Error: No cluster could be read, so nothing is decided.",
    ]


def test_standard_input_is_read_once_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["simulate", "--clusters=-", "--bindings=-"], ()) == 2
    assert "standard input (-) can be read once only" in capsys.readouterr().err


def test_an_invalid_configuration_is_reported_and_nothing_is_decided(run: Run, tmp_path: Path) -> None:
    (tmp_path / "profiles.yaml").write_text(PROFILES)
    ran = run(FLEET, [WEB], f"--config={tmp_path / 'profiles.yaml'}")
    assert ran.status == 2
    assert 'profiles[1].plugins.multiPoint.enabled[0].name: no plugin named "OnlyTwo"' in ran.err


@pytest.mark.parametrize(
    "flag", ["--enable-empty-workload-propagation", "--enable-empty-workload-propagation=true"]
)
def test_clusters_without_replicas_become_targets_if_the_option_is_set(run: Run, flag: str) -> None:
    web = binding("w").replicas(2).static_weights(m1=1)
    assert run(FLEET, [web]).clusters["w-deployment"] == {"m1": 2}
    assert run(FLEET, [web], flag).clusters["w-deployment"] == {"m1": 2, "m2": 0}


def test_feature_gates_change_the_decision(run: Run) -> None:
    fleet = [cluster("m1").capacity(cpu=9).grade(1, nodes=1, cpu=1), cluster("m2").capacity(cpu=9)]
    web = binding("w").replicas(10, cpu=1).dynamic_weight()
    assert run(fleet, [web]).clusters["w-deployment"] == {"m1": 1, "m2": 9}
    off = run(fleet, [web], "--feature-gates=CustomizedClusterResourceModeling=false")
    assert off.clusters["w-deployment"] == {"m1": 5, "m2": 5}


def test_the_decisions_of_1_17_use_the_summary_for_what_is_in_no_model(run: Run) -> None:
    gpus = cluster("m1").allocatable({"cpu": 9, "pods": 9, "nvidia.com/gpu": 2}).grade(0, nodes=2, cpu=4)
    asked = binding("w").replicas(2).request({"cpu": 1, "nvidia.com/gpu": 1}).dynamic_weight()

    assert run([gpus], [asked]).status == 1
    assert run([gpus], [asked], "--decisions-of=1.17").clusters["w-deployment"] == {"m1": 2}


def test_an_unknown_version_of_decisions_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        simulate_parser().parse_args(["--clusters=-", "--bindings=-", "--decisions-of=1.16"])
    assert "invalid choice: '1.16'" in capsys.readouterr().err


def test_an_unknown_gate_is_refused(run: Run) -> None:
    ran = run(FLEET, [WEB], "--feature-gates=Nonsense=true")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Error: --feature-gates: unrecognized feature gate: Nonsense; known: ")


def test_with_overcommit_protection_earlier_bindings_reduce_the_capacity(run: Run) -> None:
    fleet = [cluster("m1").capacity(cpu=3), cluster("m2").capacity(cpu=2)]
    one, other = (binding(name).replicas(1, cpu=2).aggregated() for name in ("one", "other"))
    assert run(fleet, [one, other]).clusters == {"one-deployment": {"m1": 1}, "other-deployment": {"m1": 1}}
    protected = run(fleet, [one, other], "--feature-gates=SchedulingOvercommitProtection=true")
    assert protected.clusters == {"one-deployment": {"m1": 1}, "other-deployment": {"m2": 1}}


def test_with_workload_affinity_earlier_bindings_are_peers_of_later_ones(run: Run) -> None:
    one, other = (
        binding(name).replicas(1).dynamic_weight().spread("cluster", 1, 1).groups(anti_affinity="app=a")
        for name in ("one", "other")
    )
    ran = run(FLEET, [one, other], "--feature-gates=WorkloadAffinity=true")
    assert ran.clusters == {"one-deployment": {"m2": 1}, "other-deployment": {"m1": 1}}


def needing_no_scheduling() -> list[BindingBuilder]:
    suspended = binding("suspended").on(m1=1)
    suspended.manifest()["spec"]["suspension"] = {"scheduling": True}
    deleting = binding("deleting").on(m1=1)
    deleting.manifest()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    attached = binding("attached").placement(None).on(m1=1)
    attached.manifest()["metadata"]["labels"] = {}
    unchanged = binding("unchanged").replicas(1).dynamic_weight().on(m1=1).applied()
    return [suspended, deleting, attached, unchanged]


def test_bindings_that_need_no_scheduling_stay_unchanged(run: Run) -> None:
    with_condition = binding("old").replicas(1).dynamic_weight().on(m1=1).applied().observing("a")
    with_condition.condition(type="Scheduled", status="False", reason="Unschedulable", message="m", other="x")
    ran = run(FLEET, [*needing_no_scheduling(), with_condition])
    assert {each["scheduleType"] for each in ran.results} == {"Avoid"}
    assert set(map(str, ran.clusters.values())) == {str({"m1": 1})}
    assert [each["condition"] for each in ran.results[:4]] == [None] * 4
    assert ran.results[4]["condition"] == {
        "type": "Scheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "m",
    }
    assert ran.results[4]["affinityName"] == "a"


def test_the_output_names_the_affinity_term_in_use(run: Run) -> None:
    ran = run(FLEET, [binding("w").term("first", "m9").term("second", "m1")])
    assert [(each["affinityName"], each["condition"]["status"]) for each in ran.results] == [
        ("second", "True")
    ]


def test_the_table_has_one_line_per_binding(run: Run) -> None:
    ran = run(
        FLEET, [WEB, binding("role", namespace="").names("m9"), needing_no_scheduling()[0]], output="table"
    )
    assert ran.out == (
        "BINDING                                        TYPE   SCHEDULED     CLUSTERS    MESSAGE\n"
        "ResourceBinding(default/web-deployment)        First  True          m1:2, m2:4\n"
        "ClusterResourceBinding(role)                   First  NoClusterFit  -           0/3 clusters are available: "
        "3 cluster(s) did not match the placement cluster affinity constraint.\n"
        "ResourceBinding(default/suspended-deployment)  Avoid  -             m1:1        held; scheduling is suspended "
        "(spec.suspension.scheduling of the binding)\n"
    )


def test_a_name_cannot_add_a_line_to_the_table_or_control_a_terminal(run: Run) -> None:
    ran = run([cluster("m1\n\x1b[31mPLACED")], [binding("web").replicas(1)], output="table")
    assert len(ran.out.splitlines()) == 2
    assert "\x1b" not in ran.out
    assert r"m1 \x1b[31mPLACED:1" in ran.out


def test_yaml_output_equals_json_output(run: Run) -> None:
    bindings = [WEB, binding("lost").names("m9")]
    assert yaml.safe_load(run(FLEET, bindings, output="yaml").out) == run(FLEET, bindings).results


def test_times_and_other_scalars_are_read_as_the_api_server_reads_them(run: Run) -> None:
    text = written([WEB]).replace("status: {}", "status: {lastScheduledTime: 2026-01-01T00:00:00Z}")
    assert "lastScheduledTime: 2026" in text
    ran = run(FLEET, text)
    assert (ran.status, ran.results[0]["scheduleType"]) == (0, "Reconcile")


def test_progress_is_shown_on_a_terminal_and_ends_with_an_empty_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    assert list(with_progress([WEB], total=1)) == [WEB]
    assert terminal.getvalue() == "\r\x1b[K"


def deployments(**type_by_name: str) -> dict[str, Any]:
    items = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-of-{name}",
                "annotations": {"type": type_},
            },
            "spec": {"replicas": 1},
        }
        for name, type_ in type_by_name.items()
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def test_plugins_see_the_workloads_of_files(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "by_type.py").write_text(BY_TYPE)
    first, second = tmp_path / "deploy.yaml", tmp_path / "more.json.gz"
    first.write_text(yaml.safe_dump(deployments(sat="space", web="ground", old="space")))
    second.write_bytes(gzip.compress(json.dumps(deployments(station="space")).encode()))
    bindings = [
        binding(name).uid(f"uid-of-{name}").replicas(1).duplicated()
        for name in ("sat", "web", "station", "lost")
    ]
    bindings.append(binding("old").uid("another").replicas(1).duplicated())
    flags = (f"--plugin-dir={folder}", f"--workloads={first}", f"--workloads={second}")
    ran = run([cluster("m1")], bindings, *flags)
    assert [each for each, clusters in ran.clusters.items() if clusters] == [
        "sat-deployment",
        "station-deployment",
    ]
    messages = {each["name"]: each["condition"]["message"] for each in ran.results}
    assert "not of type space" in messages["web-deployment"]
    assert "Deployment default/lost is not in the files of --workloads" in messages["lost-deployment"]
    assert "has the uid uid-of-old, the binding names another" in messages["old-deployment"]
    without = run([cluster("m1")], bindings, flags[0])
    assert all("no --workloads were given" in each["condition"]["message"] for each in without.results)


def test_problems_of_workloads_are_reported(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "deploy.yaml"
    path.write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: [a]}\n")
    ran = run([cluster("m1")], [binding("web")], f"--workloads={path}")
    assert ran.status == NO_ANSWER
    assert "deploy.yaml: document 1 (Deployment web): metadata.labels: expected an object" in ran.err


ONE_PER_CLUSTER = """
from karmada_scheduler.framework import SUCCESS, Result


class OnePerCluster:
    name = "OnePerCluster"

    def __init__(self, args, handle):
        self.handle = handle

    def filter(self, context):
        key = context.cycle.binding.key
        assert self.handle.binding(key).key == key
        others = [each for each in self.handle.bindings() if each.key != key]
        taken = {name for each in others for name in each.spec.target_names}
        return SUCCESS if context.cluster.name not in taken else Result.unschedulable("cluster(s) were taken")
"""
POINT = """
from karmada_scheduler.framework import SUCCESS, Result


class Local:
    name = "Local"
"""
GANG = Path(__file__).parents[3] / "docs/examples/plugins"


def on_one_cluster(*names: str) -> list[BindingBuilder]:
    return [binding(name).replicas(1).duplicated().spread("cluster", at_least=1, at_most=1) for name in names]


def with_plugin(directory: Path, text: str) -> str:
    (directory / "plugins").mkdir()
    (directory / "plugins" / "local.py").write_text(text)
    return f"--plugin-dir={directory / 'plugins'}"


def test_each_binding_is_decided_as_if_the_decisions_before_it_were_written(run: Run, tmp_path: Path) -> None:
    ran = run(FLEET[:2], on_one_cluster("a", "b", "c"), with_plugin(tmp_path, ONE_PER_CLUSTER))
    assert [set(each) for each in ran.clusters.values()] == [{"m2"}, {"m1"}, set()]
    assert ran.status == 1
    assert "2 placed, 1 not, 0 problems" in ran.err


@pytest.mark.parametrize(
    ("method", "counted", "message"),
    [
        ("def pre_enqueue(self, context): return no", "0 not, 2 gated at PreEnqueue", "gated at PreEnqueue: Local: not now"),
        ("def reserve(self, context): return no\n    def unreserve(self, context): pass", "2 not", "not now"),
        ("async def permit(self, context): return no", "2 not", "not now"),
        ("async def permit(self, context): return Result.wait(60, 'for the gang')",
         "0 not, 2 waiting at Permit", "waits at Permit: Local: for the gang"),
        ("def pre_enqueue(self, context): raise ValueError('broken')", "2 not", "broken"),
    ],
)  # fmt: skip
def test_a_binding_that_a_plugin_gates_or_refuses_is_not_placed(
    run: Run, tmp_path: Path, method: str, counted: str, message: str
) -> None:
    plugin = f"{POINT}\n    {method}\nno = Result.unschedulable('not now')\n"
    ran = run(FLEET[:2], on_one_cluster("a", "b"), with_plugin(tmp_path, plugin), output="table")
    assert ran.status == 1
    assert f": 0 placed, {counted}, 0 problems" in ran.err
    rows = ran.out.splitlines()[1:]
    assert [message in row for row in rows] == [True, True]
    assert not any("m1" in row or "m2" in row for row in rows)


def test_the_json_output_names_the_plugin_that_holds_a_binding(run: Run, tmp_path: Path) -> None:
    plugin = f"{POINT}\n    async def permit(self, context): return Result.wait(60, 'for more')\n"
    ran = run(FLEET[:2], on_one_cluster("a"), with_plugin(tmp_path, plugin))
    assert ran.results[0]["heldAt"] == {"point": "permit", "plugins": {"Local": "for more"}}
    assert ran.results[0]["condition"] is None


def test_a_gang_is_placed_when_its_last_member_is_decided(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump({"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration",
                        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Gang"}]}},
                                      "pluginConfig": [{"name": "Gang", "args": {"size": 2}}]}]})
    )  # fmt: skip
    found, path = deployments(a="", b=""), tmp_path / "deploy.yaml"
    for each in found["items"]:
        each["metadata"]["labels"] = {"gang": "band"}
    path.write_text(yaml.safe_dump(found))
    flags = (
        f"--config={config}",
        f"--workloads={path}",
        with_plugin(tmp_path, (GANG / "gang.py").read_text()),
    )
    members = [each.uid(f"uid-of-{name}") for name, each in zip("ab", on_one_cluster("a", "b"), strict=True)]
    ran = run(FLEET[:2], members, *flags)
    assert (ran.status, [set(each) for each in ran.clusters.values()]) == (0, [{"m2"}, {"m2"}])
    assert "not called" not in ran.err, "PostBind decides nothing"
    assert "0 placed, 0 not, 1 waiting at Permit" in run(FLEET[:2], members[:1], *flags).err


def test_only_plugins_of_the_user_that_could_refuse_a_write_are_named_as_not_called(
    run: Run, tmp_path: Path
) -> None:
    plugin = f"{POINT}\n    async def pre_bind(self, context): return SUCCESS\n"
    ran = run(FLEET[:2], on_one_cluster("a"), with_plugin(tmp_path, plugin))
    assert "not called, because nothing is written: Local (PreBind)\n" in ran.err
    assert "not called" not in run(FLEET[:2], on_one_cluster("a")).err


def test_a_binding_that_is_rejected_while_it_waits_is_not_placed(run: Run, tmp_path: Path) -> None:
    plugin = (
        f"{POINT}\n    def __init__(self, args, handle): self.handle = handle\n"
        "    async def permit(self, context):\n"
        "        for each in self.handle.waiting(): each.reject(self.name, 'too late')\n"
        "        return SUCCESS if self.handle.waiting() else Result.wait(60)\n"
    )
    ran = run(FLEET[:2], on_one_cluster("a", "b"), with_plugin(tmp_path, plugin))
    assert ran.results[0]["condition"]["message"] == "too late"
    assert "1 placed, 1 not, 0 problems" in ran.err


def test_bindings_that_wait_at_permit_are_added_for_pre_filter_plugins(run: Run, tmp_path: Path) -> None:
    plugin = (
        f"{POINT}\n    def pre_filter(self, context): return SUCCESS\n"
        "    def add_binding(self, context):\n"
        "        print('counted in', context.peer.key.name, context.cluster.name)\n        return SUCCESS\n"
        "    def remove_binding(self, context): return SUCCESS\n"
        "    async def permit(self, context): return Result.wait(60)\n"
    )
    ran = run(FLEET[:2], on_one_cluster("a", "b"), with_plugin(tmp_path, plugin))
    assert "counted in a-deployment m2\n" in ran.err


def test_with_a_scheduler_name_bindings_of_others_are_reported_and_not_decided(run: Run) -> None:
    bindings = [*on_one_cluster("a"), *(each.scheduler("my-scheduler") for each in on_one_cluster("b"))]
    assert "2 placed, 0 not, 0 problems" in run(FLEET, bindings).err
    ran = run(FLEET, bindings, "--scheduler-name=my-schedulre", output="table")
    assert "0 placed, 0 not, 2 of other schedulers" in ran.err
    assert ran.status == 1
    assert [row.split()[1:3] for row in ran.out.splitlines()[1:]] == [["-", "OtherScheduler"]] * 2
    ran = run(FLEET, bindings, "--scheduler-name=my-scheduler", "--ignore-other-schedulers")
    assert (ran.status, ran.clusters["b-deployment"], ran.clusters["a-deployment"]) == (0, {"m2": 1}, {})


PER_APP = """
from karmada_scheduler.framework import SUCCESS, Result


class PerApp:
    name = "PerApp"
    needs_workload = {needs}

    def __init__(self, args, handle):
        self.handle = handle

    def filter(self, context):
        app = context.workload.labels.get("app")
        taken = [
            name
            for each in self.handle.bindings()
            if (found := self.handle.workload(each.key)) is not None and found.labels.get("app") == app
            for name in each.spec.target_names
            if each.key != context.cycle.binding.key
        ]
        return Result.unschedulable("has this app") if context.cluster.name in taken else SUCCESS
"""


def test_plugins_see_the_workloads_of_bindings_decided_earlier(run: Run, tmp_path: Path) -> None:
    folder, path = tmp_path / "plugins", tmp_path / "deploy.yaml"
    folder.mkdir()
    plugin = folder / "per_app.py"
    plugin.write_text(PER_APP.format(needs=True))
    found = deployments(web="", api="", blog="")
    for each in found["items"]:
        each["metadata"]["labels"] = {"app": "blog" if each["metadata"]["name"] == "blog" else "shop"}
    path.write_text(yaml.safe_dump(found))
    bindings = [
        binding(name).replicas(1).aggregated().uid(f"uid-of-{name}") for name in ("web", "api", "blog")
    ]
    flags = (f"--plugin-dir={folder}", f"--workloads={path}")
    ran = run([cluster("m1"), cluster("m2")], bindings, *flags)
    assert ran.clusters["web-deployment"] != ran.clusters["api-deployment"]
    assert ran.clusters["blog-deployment"]
    plugin.write_text(PER_APP.format(needs=False).replace('context.workload.labels.get("app")', "''"))
    ran = run([cluster("m1")], bindings, *flags)
    assert "no plugin of this profile has needs_workload = True" in ran.results[0]["condition"]["message"]
