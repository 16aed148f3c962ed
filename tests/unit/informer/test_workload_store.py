"""The metadata of the objects of a kind that bindings need."""

from __future__ import annotations

from karmada_pyscheduler.informer.workloads.metadata_store import MetadataStore, Missing, Name, State
from karmada_scheduler.api.workload import LAST_APPLIED_ANNOTATION, OwnerReference, Workload

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


class StoreHarness:
    """A store, and the changes that it reported."""

    def __init__(self, *, recent: int = 3) -> None:
        self.reported: list[tuple[Name, State, State]] = []
        self.store = MetadataStore("Deployment", lambda *change: self.reported.append(change), recent=recent)

    def listed(self, *found: Workload) -> None:
        self.store.begin_list()
        self.store.take(found)
        self.store.end_list()

    def reason(self, uid: str = "u1") -> str:
        state = self.store.find(WEB, uid)
        assert isinstance(state, Missing)
        return state.reason


def wanting(**options: int) -> StoreHarness:
    """Return a store of which the workload web is wanted."""
    harness = StoreHarness(**options)
    harness.store.want(WEB)
    return harness


def test_only_needed_objects_and_a_few_recent_ones_are_kept() -> None:
    harness = wanting(recent=3)
    harness.listed(web(), *(web(name=f"other{number}") for number in range(5000)))
    assert harness.store.find(WEB, "u1") == web()
    assert len(harness.store) == 1 + 3


def test_an_object_that_was_delivered_shortly_before_it_is_needed_is_found() -> None:
    harness = StoreHarness()
    harness.listed()
    harness.store.put(web(5))
    harness.store.want(WEB)
    assert harness.store.find(WEB, "u1") == web(5)
    assert len(harness.store) == 1


def test_an_object_that_is_needed_later_is_uncertain_not_missing() -> None:
    harness = StoreHarness()
    harness.listed()
    harness.store.want(WEB)
    assert harness.store.find(WEB, "u1") is None


def test_an_object_that_is_needed_during_a_list_is_uncertain_not_missing() -> None:
    harness = StoreHarness()
    harness.store.begin_list()
    harness.store.want(WEB)
    harness.store.end_list()
    assert harness.store.find(WEB, "u1") is None


def test_objects_that_are_not_in_a_list_are_missing_or_deleted() -> None:
    harness = wanting()
    harness.listed()
    assert harness.reason() == "Deployment default/web does not exist"
    harness.listed(web())
    harness.listed()
    assert harness.reason() == "Deployment default/web was deleted"


def test_an_object_that_was_read_singly_and_is_not_listed_is_uncertain() -> None:
    harness = StoreHarness()
    harness.listed()
    harness.store.want(WEB)
    harness.store.begin_list()
    harness.store.confirm(WEB, web(9))
    harness.store.end_list()
    assert harness.store.find(WEB, "u1") is None


def test_a_change_is_reported_only_if_plugins_can_see_it() -> None:
    harness = wanting()
    harness.listed(web(1))
    harness.store.put(web(2))
    harness.store.put(web(3, type="space"))
    harness.store.put(web(4, type="space"))
    assert harness.reported == [(WEB, None, web(1)), (WEB, web(2), web(3, type="space"))]
    assert harness.store.find(WEB, "u1") == web(4, type="space")


def test_an_older_version_of_the_watch_does_not_replace_a_single_read() -> None:
    harness = StoreHarness()
    harness.listed()
    harness.store.want(WEB)
    harness.store.confirm(WEB, web(9, type="space"))
    harness.store.put(web(7))
    assert harness.store.find(WEB, "u1") == web(9, type="space")


def test_a_list_replaces_newer_versions() -> None:
    harness = wanting()
    harness.listed(web(90, type="space"))
    harness.listed(web(5))
    assert harness.store.find(WEB, "u1") == web(5)


def test_another_uid_is_reported_when_a_single_read_confirms_it() -> None:
    harness = wanting()
    harness.listed(web(uid="u1"))
    assert harness.store.find(WEB, "u2") is None
    harness.store.confirm(WEB, web(uid="u1"))
    assert "has the uid u1, the binding names u2: it was created again" in harness.reason("u2")
    harness.store.put(web(8, uid="u2"))
    assert harness.store.find(WEB, "u2") == web(8, uid="u2")


def test_a_deleted_object_may_exist_again_with_another_uid() -> None:
    harness = wanting()
    harness.listed(web())
    harness.store.deleted(WEB, "u1")
    assert harness.reason("u1") == "Deployment default/web was deleted"
    assert harness.store.find(WEB, "u2") is None
    harness.store.confirm(WEB, None)
    assert harness.reason("u2") == "Deployment default/web does not exist"


def test_a_late_deletion_of_another_uid_changes_nothing() -> None:
    harness = wanting()
    harness.listed(web(uid="u2"))
    harness.store.deleted(WEB, "u1")
    assert harness.store.find(WEB, "u2") == web(uid="u2")


def test_a_binding_without_a_uid_gets_the_object_with_the_name() -> None:
    harness = wanting()
    harness.listed(web(uid="u7"))
    assert harness.store.find(WEB, "") == web(uid="u7")


def test_a_dropped_object_is_deleted() -> None:
    harness = wanting()
    harness.listed(web())
    harness.store.drop(WEB)
    assert len(harness.store) == 0
    harness.store.confirm(WEB, web())
    assert harness.store.find(WEB, "u1") is None


def test_metadata_omits_the_last_applied_configuration() -> None:
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
