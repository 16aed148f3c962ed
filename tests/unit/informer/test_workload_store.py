"""What is known of the objects of a kind."""

from __future__ import annotations

from karmada_scheduler.api.workload import LAST_APPLIED_ANNOTATION, OwnerReference, Workload
from karmada_scheduler.informer.workloads.metadata_store import MetadataStore, Missing, Name, State

WEB: Name = ("default", "web")


def web(version: int = 1, *, name: str = "web", uid: str = "u1", **annotations: str) -> Workload:
    return Workload(
        "apps/v1",
        "Deployment",
        "default",
        name,
        uid=uid,
        annotations=annotations,
        resource_version=str(version),
    )


class World:
    """A cache, and what it told."""

    def __init__(self, *, recent: int = 3) -> None:
        self.told: list[tuple[Name, State, State]] = []
        self.store = MetadataStore("Deployment", lambda *change: self.told.append(change), recent=recent)

    def listed(self, *found: Workload) -> None:
        self.store.begin_list()
        self.store.take(found)
        self.store.end_list()

    def reason(self, uid: str = "u1") -> str:
        state = self.store.find(WEB, uid)
        assert isinstance(state, Missing)
        return state.reason


def test_only_what_is_wanted_is_kept_besides_a_few_recent_objects() -> None:
    world = World(recent=3)
    world.store.want(WEB)
    world.listed(web(), *(web(name=f"other{number}") for number in range(5000)))
    assert world.store.find(WEB, "u1") == web()
    assert len(world.store) == 1 + 3


def test_an_object_that_was_seen_shortly_before_it_is_wanted_is_known() -> None:
    world = World()
    world.listed()
    world.store.put(web(5))
    world.store.want(WEB)
    assert world.store.find(WEB, "u1") == web(5)
    assert len(world.store) == 1


def test_an_object_that_is_wanted_later_is_not_known_rather_than_missing() -> None:
    world = World()
    world.listed()
    world.store.want(WEB)
    assert world.store.find(WEB, "u1") is None


def test_an_object_that_is_wanted_while_the_list_is_read_is_not_known_rather_than_missing() -> None:
    world = World()
    world.store.begin_list()
    world.store.want(WEB)
    world.store.end_list()
    assert world.store.find(WEB, "u1") is None


def test_what_the_list_does_not_have_is_missing_and_what_was_there_was_deleted() -> None:
    world = World()
    world.store.want(WEB)
    world.listed()
    assert world.reason() == "Deployment default/web does not exist"
    world.listed(web())
    world.listed()
    assert world.reason() == "Deployment default/web was deleted"


def test_what_was_read_by_itself_and_is_not_in_the_list_is_not_known() -> None:
    world = World()
    world.listed()
    world.store.want(WEB)
    world.store.begin_list()
    world.store.confirm(WEB, web(9))
    world.store.end_list()
    assert world.store.find(WEB, "u1") is None


def test_a_change_is_told_only_if_a_plugin_can_see_it() -> None:
    world = World()
    world.store.want(WEB)
    world.listed(web(1))
    world.store.put(web(2))
    world.store.put(web(3, type="space"))
    world.store.put(web(4, type="space"))
    assert world.told == [(WEB, None, web(1)), (WEB, web(2), web(3, type="space"))]
    assert world.store.find(WEB, "u1") == web(4, type="space")


def test_an_older_version_from_the_watch_does_not_replace_what_was_read_by_itself() -> None:
    world = World()
    world.listed()
    world.store.want(WEB)
    world.store.confirm(WEB, web(9, type="space"))
    world.store.put(web(7))
    assert world.store.find(WEB, "u1") == web(9, type="space")


def test_a_list_is_the_truth_also_where_versions_go_back() -> None:
    world = World()
    world.store.want(WEB)
    world.listed(web(90, type="space"))
    world.listed(web(5))
    assert world.store.find(WEB, "u1") == web(5)


def test_another_uid_is_believed_when_it_was_read_by_itself() -> None:
    world = World()
    world.store.want(WEB)
    world.listed(web(uid="u1"))
    assert world.store.find(WEB, "u2") is None
    world.store.confirm(WEB, web(uid="u1"))
    assert "has the uid u1, the binding names u2: it was created again" in world.reason("u2")
    world.store.put(web(8, uid="u2"))
    assert world.store.find(WEB, "u2") == web(8, uid="u2")


def test_what_was_deleted_may_be_there_again_under_another_uid() -> None:
    world = World()
    world.store.want(WEB)
    world.listed(web())
    world.store.deleted(WEB, "u1")
    assert world.reason("u1") == "Deployment default/web was deleted"
    assert world.store.find(WEB, "u2") is None
    world.store.confirm(WEB, None)
    assert world.reason("u2") == "Deployment default/web does not exist"


def test_a_late_deletion_of_another_uid_changes_nothing() -> None:
    world = World()
    world.store.want(WEB)
    world.listed(web(uid="u2"))
    world.store.deleted(WEB, "u1")
    assert world.store.find(WEB, "u2") == web(uid="u2")


def test_a_binding_without_a_uid_takes_the_object_of_the_name() -> None:
    world = World()
    world.store.want(WEB)
    world.listed(web(uid="u7"))
    assert world.store.find(WEB, "") == web(uid="u7")


def test_what_is_dropped_is_forgotten() -> None:
    world = World()
    world.store.want(WEB)
    world.listed(web())
    world.store.drop(WEB)
    assert len(world.store) == 0
    world.store.confirm(WEB, web())
    assert world.store.find(WEB, "u1") is None


def test_metadata_is_read_without_what_kubectl_applied_last() -> None:
    manifest = {
        "kind": "PartialObjectMetadata",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "u1",
            "resourceVersion": "7",
            "generation": 3,
            "labels": {"app": "web"},
            "annotations": {"type": "space", LAST_APPLIED_ANNOTATION: "{...}"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u0", "controller": True}
            ],
            "managedFields": [{"manager": "kubectl"}],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
    }
    assert Workload.from_manifest(manifest, api_version="apps/v1", kind="Deployment") == Workload(
        "apps/v1",
        "Deployment",
        "default",
        "web",
        uid="u1",
        labels={"app": "web"},
        annotations={"type": "space"},
        owner_references=(OwnerReference("v1", "ConfigMap", "o", "u0", controller=True),),
        generation=3,
        resource_version="7",
        deleting=True,
    )
