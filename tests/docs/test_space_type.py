"""SpaceType: the annotation of the workload decides."""

from __future__ import annotations

from karmada_scheduler.testing import binding, cluster, schedule
from tests.docs.conftest import Example

MEMBERS = [cluster("station").label("spacecloud.example.com/orbit", "low"), cluster("ground")]


def test_workloads_of_type_space_go_to_space_and_others_do_not(example: Example) -> None:
    satellite = binding("satellite").workload(annotations={"type": "space"})
    run = schedule(satellite, *MEMBERS, plugins=example("space_type"))
    assert run.placed == {"station": 0}
    assert run.refused == {"ground": "cluster(s) were not in space"}
    run = schedule(binding("shop").workload(), *MEMBERS, plugins=example("space_type"))
    assert run.placed == {"ground": 0}
    assert run.refused == {"station": "cluster(s) were for workloads of type space"}


def test_a_workload_that_cannot_be_read_keeps_its_place(example: Example) -> None:
    lost = binding("lost").on("ground").without_workload("Deployment default/lost was deleted")
    run = schedule(lost, *MEMBERS, plugins=example("space_type"))
    assert "Deployment default/lost was deleted" in str(run.error)
    assert [target.name for target in run.binding.spec.clusters] == ["ground"]
