"""The command survive: its output, its exit status, and what it says about bad input."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import yaml

from karmada_advisor.whatif.survive.closed import spreading_edits
from karmada_advisor.whatif.survive.model import SurvivalReport
from karmada_advisor.whynot.json_patch import patched
from karmada_scheduler.framework.edits import ObjectRef
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests import commands
from tests.commands import Ran
from tests.document_schema import document_schema
from tests.unit.plan.fleet import write
from tests.unit.rebalance.proposing import settled
from tests.unit.views.test_schema import problems

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "survivalreport.v1alpha1.json"
Run = Callable[..., Ran]

CLUSTERS = [
    cluster("a").region("x"),
    cluster("b").region("x"),
    cluster("c").region("y"),
    cluster("d").region("y"),
]


def _bindings() -> list[BindingBuilder]:
    pinned = settled(binding("pinned").replicas(3, cpu="1").dynamic_weight().names("a").on(a=3))
    return [
        pinned.annotation("propagationpolicy.karmada.io/name", "one").annotation(
            "propagationpolicy.karmada.io/namespace", "default"
        ),
        settled(binding("wide", namespace="shop").replicas(4, cpu="1").dynamic_weight().on(a=2, c=2)),
    ]


def _files(
    folder: Path,
    clusters: Iterable[ClusterBuilder] = CLUSTERS,
    bindings: Iterable[BindingBuilder] | None = None,
) -> list[str]:
    made = _bindings() if bindings is None else bindings
    return write(
        folder, clusters=[each.manifest() for each in clusters], bindings=[each.manifest() for each in made]
    )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run ``survive`` on the files."""
    files = _files(tmp_path)
    return lambda *flags: commands.run("survive", *files, *flags)


def test_the_first_sentence_has_the_points_of_failure_the_worst_and_what_happens_without_hands(
    run: Run,
) -> None:
    ran = run()
    assert " ".join(ran.out.split()).startswith(
        "Survive: 1 of 4 clusters is a single point of failure; 1 of 2 regions is. Worst: cluster a (1 workload dark, "
        "3 replicas missing). Whatever went now, NOTHING would be evicted by itself: Failover is off (defaults assumed)."
    )
    assert (ran.status, ran.err) == (1, "")
    assert ran.out.endswith(
        "Survive: 1 workload goes dark with some loss; 2 of 6 domains fail --fail-on dark.\n"
    )


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_line_is_wider_than_asked_for(run: Run, width: int) -> None:
    lines = run("--width", str(width), "--top", "1").out.splitlines()
    words = max(len(word) for line in lines for word in line.split())
    assert max(map(len, lines)) <= max(width, words + 8)


def test_json_follows_the_schema_in_the_repository_and_yaml_holds_the_same(run: Run) -> None:
    fields = run("-o", "json", "--all").fields

    schema = document_schema(SurvivalReport)
    assert SCHEMA.read_text() == json.dumps(schema, indent=2) + "\n"
    assert list(problems(fields, schema, schema)) == []
    other = yaml.safe_load(run("-o", "yaml", "--all").out)
    fields["provenance"].pop("at"), other["provenance"].pop("at")
    assert other == fields


def test_the_classes_of_each_domain_add_up_to_the_bindings(run: Run) -> None:
    fields = run("-o", "json").fields
    assert fields["totals"]["bindings"] == 2
    for domain in fields["domains"]:
        assert sum(domain["chosen"]["counts"].values()) == sum(domain["itself"]["counts"].values()) == 2


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        (["--fail-on=dark"], 1),
        (["--fail-on=none"], 0),
        (["--fail-on=swept"], 0),
        (["--fail-on=unplaced@region"], 1),
        (["--fail-on=dark@zone"], 0),
        (["--fail-on=spof@cluster", "c"], 0),
        (["--fail-on=interrupted,missing", "a"], 1),
        (["-n", "shop"], 0),
        (["--policy", "one"], 1),
        (["--policy", "default/one"], 1),
        (["--policy", "other"], 2),
    ],
)
def test_the_exit_status_says_whether_a_loss_does_something_of_fail_on(
    run: Run, flags: list[str], status: int
) -> None:
    assert run(*flags).status == status


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--fail-on=drak"], "--fail-on: drak is none of"),
        (["--fail-on=drak"], "nearest: dark"),
        (
            ["--fail-on=dark@planet"],
            "--fail-on: expected cluster, zone, region, provider or label=KEY after @",
        ),
        (
            ["--domain=regoin"],
            "--domain: expected cluster, zone, region, provider or label=KEY, got regoin; nearest: region",
        ),
        (["--domain=label="], "--domain: expected"),
        (["--domain=zone"], "no cluster has a value for zone"),
        (["--domain=label=rack"], "no cluster has a value for label=rack"),
        (["aa"], "aa: such a domain (cluster, region) does not exist. Nearest: a"),
        (["--expect=012345"], "--expect 012345: the fleet is"),
    ],
)
def test_what_cannot_be_answered_is_said_in_a_sentence(run: Run, flags: list[str], text: str) -> None:
    ran = run(*flags)
    assert (ran.status, ran.out) == (2, "")
    assert text in ran.err
    assert "Traceback" not in ran.err


def test_without_bindings_nothing_is_lost(tmp_path: Path) -> None:
    ran = commands.run("survive", *_files(tmp_path, bindings=[]))
    assert ran.status == 0
    assert ran.out.startswith(
        "Survive: no binding that was asked about is placed, so no loss takes one down."
    )


def test_without_clusters_there_is_no_answer(tmp_path: Path) -> None:
    ran = commands.run("survive", *_files(tmp_path, clusters=[]))
    assert (ran.status, ran.out) == (2, "")


def test_an_object_that_cannot_be_read_makes_the_status_2_and_the_rest_is_still_decided(
    tmp_path: Path,
) -> None:
    broken = binding("broken")
    broken.manifest()["spec"]["replicas"] = "many"
    ran = commands.run("survive", *_files(tmp_path, bindings=[*_bindings(), broken]), "--fail-on=none")
    assert ran.status == 2
    assert "broken-deployment): spec.replicas" in ran.err
    assert "Worst: cluster a" in ran.out


@pytest.mark.parametrize("output", ["text", "markdown", "html", "junit"])
def test_what_a_scheduler_of_unknown_rules_decides_is_not_judged_and_counted(
    tmp_path: Path, output: str
) -> None:
    other = settled(binding("web").replicas(2, cpu="1").dynamic_weight().on(a=2).scheduler("other"))
    flags = [*_files(tmp_path, bindings=[other]), "--scheduler-name=mine", "a"]

    ran = commands.run("survive", *flags, "-o=json")
    [found] = ran.fields["bindings"][0]["losses"]
    written = commands.run("survive", *flags, "-o", output)

    assert (found["effect"], found["dark"], found["missing"]) == ("not-judged", False, 0)
    assert (
        ran.status,
        ran.fields["totals"]["not_judged" if "not_judged" in ran.fields["totals"] else "notJudged"],
    ) == (1, 1)
    assert "not judged" in written.out
    assert "decided by other, whose plugins are not known here: --from" in " ".join(written.out.split())


def test_what_karmada_scheduler_decides_moves_by_its_rules_next_to_another_one(tmp_path: Path) -> None:
    stock = settled(binding("web").replicas(2, cpu="1").dynamic_weight().on(a=2))

    ran = commands.run(
        "survive", *_files(tmp_path, bindings=[stock]), "--scheduler-name=mine", "-o=json", "--all", "a"
    )

    assert (ran.status, ran.fields["bindings"][0]["losses"][0]["effect"]) == (0, "moves")
    assert ran.fields["totals"]["dark"] == 0


def test_what_has_no_class_is_counted_and_said(tmp_path: Path) -> None:
    follower = binding("follower").placement(None).on(a=1)
    follower.manifest()["metadata"]["labels"].clear()
    made = [binding("pending").replicas(1, cpu="1"), follower, binding("leaving").on(a=1).deleting()]
    files = _files(tmp_path, clusters=[*CLUSTERS, cluster("gone").deleting()], bindings=made)
    ran = commands.run("survive", *files)
    assert "not judged: 1 pending before, 1 follower, 1 being deleted" in ran.out
    assert "1 cluster is being deleted already, and in no domain: gone" in ran.out
    assert "cluster gone is being deleted already" in commands.run("survive", *files, "gone").err


def test_copies_besides_those_of_the_placement_are_named_as_not_judged(tmp_path: Path) -> None:
    both = settled(binding("both").replicas(2, cpu=1).dynamic_weight().on(a=2))
    both.manifest()["spec"]["requiredBy"] = [
        {"namespace": "default", "name": "app", "clusters": [{"name": "b"}]}
    ]
    moving = settled(binding("moving").replicas(2, cpu=1).dynamic_weight().on(a=2)).evicted_from("c")
    alone = settled(binding("alone").replicas(2, cpu=1).dynamic_weight().on(a=2))

    ran = commands.run("survive", *_files(tmp_path, bindings=[both, moving, alone]), "-o=json")

    [note] = [note for note in ran.fields["notes"] if note.startswith("not judged")]
    assert note.endswith("default/both-deployment on b, default/moving-deployment on c")


def test_a_binding_without_an_applied_placement_is_never_evicted(tmp_path: Path) -> None:
    made = binding("web").replicas(2, cpu="1").dynamic_weight().on(a=2).last_scheduled("2026-11-22T10:00:00Z")
    # A decision is due, because nothing was applied. It changes nothing, and writes the annotation.
    suspended = made.suspended()
    ran = commands.run("survive", *_files(tmp_path, bindings=[suspended]), "a", "-o=json")
    [found] = ran.fields["bindings"]
    assert found["losses"][0]["effect"] == "not-evicted"
    assert "1 binding has no applied placement" in " ".join(ran.fields["notes"])


def test_a_name_with_control_characters_is_escaped(tmp_path: Path) -> None:
    odd = cluster("a").region("x\x1b[31m")
    ran = commands.run("survive", *_files(tmp_path, clusters=[odd, *CLUSTERS[1:]]))
    assert "\x1b" not in ran.out
    assert "x\\x1b[31m" in ran.out


def test_a_pair_shows_only_what_neither_domain_does_alone(run: Run) -> None:
    fields = run("--pairs", "a+c", "-o=json", "--domain=cluster").fields
    [pair] = [each for each in fields["domains"] if each["kind"] == "pair"]
    assert (pair["name"], pair["clusters"]) == ("a+c", ["a", "c"])
    # Both clusters of "wide" are lost, so it is interrupted; "pinned" is dark with a alone.
    assert (pair["chosen"]["dark"], pair["chosen"]["interrupted"], pair["isSpof"]) == (0, 1, False)
    assert fields["totals"]["spofs"] == 1
    [note] = fields["notes"]
    assert note == (
        "0 of 1 pair of domains, of 6 possible ones of clusters, take a workload down that neither takes down alone; what is "
        "shown about pairs is what is new in that way"
    )


def test_drawn_pairs_are_the_same_again_and_not_more_than_there_are(run: Run) -> None:
    def names(count: str) -> list[str]:
        domains = run("--pairs", count, "-o=json", "--domain=cluster", "--no-remedies").fields["domains"]
        return sorted(each["name"] for each in domains if each["kind"] == "pair")

    assert names("3") == names("3")
    assert len(names("3")) == 3
    assert names("100") == ["a+b", "a+c", "a+d", "b+c", "b+d", "c+d"]


@pytest.mark.parametrize(
    ("pair", "text"),
    [
        ("a", "--pairs: expected A+B or a number from 1, got a"),
        ("a+a", "--pairs: expected A+B"),
        ("0", "--pairs: expected A+B"),
        ("a+zz", "--pairs: zz: such a domain does not exist"),
    ],
)
def test_what_is_no_pair_is_said_in_a_sentence(run: Run, pair: str, text: str) -> None:
    ran = run("--pairs", pair)
    assert (ran.status, ran.out) == (2, "")
    assert text in ran.err


def test_to_hold_is_more_than_to_return(tmp_path: Path) -> None:
    moving = settled(binding("web").replicas(2, cpu="1").dynamic_weight().on(a=2))
    files = _files(tmp_path, bindings=[moving])
    assert commands.run("survive", *files, "a").status == 0
    ran = commands.run("survive", *files, "a", "--demand=holds")
    assert (ran.status, ran.out.splitlines()[-1]) == (
        1,
        "Survive: nothing goes dark; 1 of 1 domain fails --fail-on dark,interrupted.",
    )


def test_what_is_interrupted_is_spread_over_two_clusters_where_nothing_shall_be(tmp_path: Path) -> None:
    moving = binding("web").replicas(4, cpu="1").dynamic_weight().spread("cluster", 1, 1).on(a=4)
    claimed = settled(moving).annotation("propagationpolicy.karmada.io/name", "one")
    files = _files(
        tmp_path, bindings=[claimed.annotation("propagationpolicy.karmada.io/namespace", "default")]
    )
    flags = ("--domain=cluster", "--no-remedies", "-o=json")
    assert commands.run("survive", *files, *flags).fields["domains"][0]["chosen"]["interrupted"] == 1
    by_region, by_cluster, _ = commands.run("survive", *files, "a", "--demand=holds", "-o=json").fields[
        "remedies"
    ]
    rebalancer = "a WorkloadRebalancer of its workloads"
    assert [each["text"] for each in by_region["edits"]] == [
        "spreadConstraints: region minGroups 2, maxGroups 2",
        rebalancer,
    ]
    assert [each["text"] for each in by_cluster["edits"]] == [
        "spreadConstraints: cluster minGroups 2",
        "cluster maxGroups 2",
        rebalancer,
    ]
    for found in (by_region, by_cluster):
        assert (found["effect"], found["verified"], found["movesToday"]) == ("moves", True, 2)
    paths = ["/spec/placement/spreadConstraints/0/maxGroups", "/spec/placement/spreadConstraints/0/minGroups"]
    assert [each["patch"][0]["path"] for each in by_cluster["apply"]] == paths


@pytest.mark.parametrize("listed", [[], [{"spreadByField": "cluster", "minGroups": 1}]])
def test_a_new_constraint_allows_all_clusters_since_one_without_a_maximum_selects_nothing(
    listed: list[dict[str, object]],
) -> None:
    made = {"spec": {"placement": {"spreadConstraints": listed}}}
    clusters = [cluster(name).build() for name in "abc"]
    by_cluster, _ = spreading_edits(ObjectRef("ResourceBinding", "default", "web"), made, clusters)
    found = patched(by_cluster, {by_cluster[0].target: made})
    assert found is not None
    [constraint] = found.manifests[by_cluster[0].target]["spec"]["placement"]["spreadConstraints"]
    assert constraint == {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 3}


def test_bindings_of_lower_priority_are_not_reported(tmp_path: Path) -> None:
    made = _bindings()
    made[0].manifest()["spec"]["schedulePriority"] = {"priority": 5}
    files = _files(tmp_path, bindings=made)
    assert commands.run("survive", *files, "-o=json", "--min-priority=5").fields["totals"]["bindings"] == 1


def test_a_zone_of_one_cluster_is_said_to_be_the_loss_of_that_cluster(tmp_path: Path) -> None:
    clusters = [cluster("a").region("x"), cluster("b").region("y"), cluster("c").region("y")]
    fields = commands.run("survive", *_files(tmp_path, clusters=clusters), "-o=json").fields
    assert fields["notes"] == ["1 region has one cluster: losing it is losing that cluster"]


def test_a_fleet_without_regions_has_clusters_only_and_says_so_when_it_is_asked_for_more(
    tmp_path: Path,
) -> None:
    files = _files(tmp_path, clusters=[cluster("a"), cluster("b")])
    fields = commands.run("survive", *files, "-o=json").fields
    assert {each["kind"] for each in fields["domains"]} == {"cluster"}
    assert "no cluster has a value for region" in commands.run("survive", *files, "--domain=region").err


def test_a_search_without_time_says_what_it_has_not_looked_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karmada_advisor.whatif.survive.remedies.SECONDS", 0)
    [note] = run("-o=json", "--domain=cluster").fields["notes"]
    assert (
        note
        == "no remedy was looked for, for 1 group of failing bindings: there are too many, or the time was over"
    )


SELECTOR = '''
from karmada_scheduler.framework import SelectContext


class First:
    """Choose the first cluster."""

    name = "First"

    def select(self, context: SelectContext, /):
        return context.candidates[:1]
'''


def test_a_workload_on_all_clusters_goes_where_a_plugin_of_the_user_selects(tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "first.py").write_text(SELECTOR)
    files = _files(tmp_path, CLUSTERS[:2], [settled(binding("web").replicas(2, cpu="1").on(a=2, b=2))])

    found = commands.run("survive", "a", *files, "-o", "json", "--plugin-dir", str(tmp_path / "plugins"))

    (domain,) = json.loads(found.out)["domains"]
    assert domain["chosen"]["counts"]["moves"] == 1
