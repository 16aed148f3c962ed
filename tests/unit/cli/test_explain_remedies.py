"""``explain`` of a binding that is not placed: changes that place it, each verified, in a bounded time."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_scheduler import command
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.explain.fleet import billing, fleet, placed_checkout
from tests.unit.views.test_schema import problems, schema_of_file
from tests.unit.whynot.json_patch import applied

LONG = "--timeout=5m"


class Files:
    """Objects in files, and what commands print about them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.manifests: list[dict[str, Any]] = []

    def put(self, *builders: BindingBuilder | ClusterBuilder) -> None:
        """Use these objects."""
        self.manifests = [copy.deepcopy(each.manifest()) for each in builders]

    def patch(self, remedies: Sequence[dict[str, Any]]) -> Files:
        """Return the files after patches."""
        changed = Files(self._folder, self._capsys)
        changed.manifests = copy.deepcopy(self.manifests)
        for each in remedies:
            wanted = each["object"]
            [index] = [
                index
                for index, found in enumerate(changed.manifests)
                if (found["kind"], found["metadata"].get("namespace", ""), found["metadata"]["name"])
                == (wanted["kind"], wanted["namespace"], wanted["name"])
            ]
            changed.manifests[index] = applied(changed.manifests[index], each["patch"])
        return changed

    def explain(self, name: str, *flags: str) -> tuple[int, str]:
        """Return exit status and output."""
        clusters = [each for each in self.manifests if each["kind"] == "Cluster"]
        bindings = [each for each in self.manifests if each["kind"] != "Cluster"]
        (self._folder / "clusters.yaml").write_text(yaml.safe_dump_all(clusters))
        (self._folder / "bindings.yaml").write_text(yaml.safe_dump_all(bindings))
        named = [f"--clusters={self._folder}/clusters.yaml", f"--bindings={self._folder}/bindings.yaml"]
        status = command.main(["explain", name, *named, *flags])
        return status, self._capsys.readouterr().out

    def fields(self, name: str, *flags: str) -> dict[str, Any]:
        """Return the JSON output."""
        found: dict[str, Any] = json.loads(self.explain(name, "-o", "json", *flags)[1])
        return found


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


def stuck() -> BindingBuilder:
    """Return a placed binding whose scaled-up replicas fit nowhere."""
    asked = binding("web").replicas(4, cpu=1).dynamic_weight().on(m1=4).applied()
    return asked.last_scheduled("2026-11-22T10:00:00Z").replicas(40, cpu=1)


@pytest.mark.parametrize(
    ("asked", "namespace", "clusters", "sides"),
    [
        (billing(), "pay", fleet(), {"policy", "cluster"}),
        (stuck(), "default", [cluster("m1").capacity(cpu=9)], {"workload", "cluster"}),
        (binding("web").replicas(2).suspended(), "default", [cluster("m1")], {"trigger"}),
    ],
    ids=["refused", "stuck", "suspended"],
)
def test_each_change_places_the_binding_as_it_says(
    files: Files, asked: BindingBuilder, namespace: str, clusters: list[ClusterBuilder], sides: set[str]
) -> None:
    files.put(asked, *clusters)
    name = asked.manifest()["metadata"]["name"]

    fields = files.fields(name, "-n", namespace, LONG)

    assert fields["remedySearch"]["endedBy"] == ""
    assert 1 <= len(fields["remedies"]) <= 3
    assert {each["side"] for remedy in fields["remedies"] for each in remedy["edits"]} >= sides
    for remedy in fields["remedies"]:
        after = files.patch(remedy["apply"]).fields(name, "-n", namespace)
        assert after["wouldBe"]["outcome"] == "placed"
        assert after["wouldBe"]["placement"] == remedy["result"]
        assert [each["object"] for each in remedy["apply"]] == [each["object"] for each in remedy["edits"]]
    assert list(problems(fields, schema_of_file(), schema_of_file())) == []


def test_no_part_of_a_change_can_be_left_out(files: Files) -> None:
    tainted = [cluster(name).taint(f"{name}=b:NoSchedule").region("eu") for name in ("m1", "m2")]
    files.put(binding("web").replicas(2).duplicated().spread("cluster", 2, 2), *tainted)

    remedies = files.fields("web-deployment", LONG)["remedies"]

    several = [each for each in remedies if len(each["apply"]) > 1]
    assert several
    for remedy in several:
        for index in range(len(remedy["apply"])):
            rest = [*remedy["apply"][:index], *remedy["apply"][index + 1 :]]
            status, _ = files.patch(rest).explain("web-deployment", "-q")
            assert status == 1


def test_a_placed_binding_has_no_changes_and_no_search(files: Files) -> None:
    files.put(placed_checkout(), *fleet())

    fields = files.fields("checkout-deployment", "-n", "shop")

    assert (fields["remedies"], fields["remedySearch"]) == ([], None)


@pytest.mark.parametrize("flag", ["--no-remedies", "-q"])
def test_the_search_can_be_left_out(files: Files, flag: str) -> None:
    files.put(billing(), *fleet())

    status, out = files.explain("billing-deployment", "-n", "pay", flag)

    assert status == 1
    assert "verified by deciding again" not in out
    assert "search" not in out


def test_a_search_that_ends_by_its_time_says_so(files: Files) -> None:
    files.put(billing(), *fleet())

    status, out = files.explain("billing-deployment", "-n", "pay", "--timeout", "0.0001ms", "--width", "200")
    fields = files.fields("billing-deployment", "-n", "pay", "--timeout", "0.0001ms")

    assert status == 1
    assert "The search for changes ended after 1e-07 s (--timeout), and no change that places it" in out
    assert "`why-not --placed --timeout 30s` searches on" in out
    assert (fields["remedies"], fields["remedySearch"]["endedBy"]) == ([], "timeout")


def test_a_search_without_result_says_how_much_was_tried(files: Files) -> None:
    files.put(binding("web").replicas(2).duplicated(), cluster("m1").deleting())

    status, out = files.explain("web-deployment", LONG)

    assert status == 1
    assert "No change that why-not knows places it" in out


def test_nothing_is_looked_for_that_places_what_is_placed(files: Files) -> None:
    placed = binding("web").replicas(2).dynamic_weight().on(m1=2).applied().generation(1)
    placed.condition(type="Scheduled", status="False", reason="SchedulerError", message="before")
    files.put(placed, cluster("m1"))

    status, out = files.explain("web-deployment", LONG)

    assert status == 0
    assert "No change that why-not knows" not in out


def test_a_binding_that_is_not_decided_yet_needs_no_change(files: Files) -> None:
    files.put(binding("web").replicas(2).duplicated(), cluster("m1"))

    _, out = files.explain("web-deployment", LONG)

    assert "It is not decided yet: the decision that is due places it." in out
    assert "No change that why-not knows" not in out


def test_a_wrong_time_is_refused(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.put(billing(), *fleet())
    with pytest.raises(SystemExit) as ended:
        files.explain("billing-deployment", "--timeout", "soon")
    assert ended.value.code == 2
    assert "expected a time such as 2s or 500ms, got 'soon'" in capsys.readouterr().err


@pytest.mark.parametrize("width", [80, 100, 160])
def test_changes_are_written_in_full_at_any_width(files: Files, width: int) -> None:
    files.put(billing(), *fleet())

    _, out = files.explain("billing-deployment", "-n", "pay", LONG, f"--width={width}")

    assert max(map(len, out.splitlines())) <= width
    written = " ".join(out.split())
    assert "uncordon it (cluster.karmada.io/unschedulable:NoSchedule) -> us-east-2 6" in written


def test_a_peer_of_a_workload_group_may_leave_it(files: Files) -> None:
    def grouped(name: str) -> BindingBuilder:
        return (
            binding(name)
            .replicas(2)
            .duplicated()
            .groups(anti_affinity="g")
            .workload_affinity(anti_affinity="app")
        )

    peer = grouped("one").on(m1=2).applied().last_scheduled("2026-11-22T10:00:00Z")
    files.put(grouped("two"), peer, cluster("m1"))

    fields = files.fields("two-deployment", LONG, "--feature-gates=WorkloadAffinity=true")

    assert fields["causes"][0]["code"] == "GroupAntiAffinity"
    changed = {each["object"]["name"] for remedy in fields["remedies"] for each in remedy["edits"]}
    assert "one-deployment" in changed


def test_more_capacity_of_a_cluster_places_it_after_the_explanation_was_decided(files: Files) -> None:
    made = binding("web").request({"cpu": "200", "memory": "64Mi"}).replicas(4).dynamic_weight().names("m1")
    files.put(made, cluster("m1").capacity(cpu=16, memory="64Gi", pods=110))

    _, out = files.explain("web-deployment", LONG)

    assert "784 cpu free: 4 replicas fit (0 now) (3 is not enough)" in " ".join(out.split())


@pytest.mark.parametrize("is_held", [False, True])
def test_what_lets_changes_arrive_places_nothing(files: Files, *, is_held: bool) -> None:
    made = binding("web").replicas(4, cpu="1").dynamic_weight().on(m1=2 if is_held else 4).applied()
    made.manifest()["spec"]["suspension"] = {"dispatching": True, "scheduling": is_held}
    files.put(made, cluster("m1"))

    _, out = files.explain("web-deployment", LONG)

    places, arrives = "Any one of these places it", "After any one of these, changes arrive on its clusters:"
    assert (places in out) is is_held
    assert out.index("resume dispatching") > out.index(arrives) > out.find(places)
