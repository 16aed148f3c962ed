"""Creates, patches, replacements and deletions."""

from __future__ import annotations

from typing import Any

import pytest

from tools.apiserver_model import ApiServerModel, Object
from tools.apiserver_model.messages import ok
from tools.apiserver_model.tests.client import (
    BINDINGS,
    CLUSTERS,
    EVENTS,
    LEASES,
    WEB,
    binding,
    cluster,
    new_model,
    send,
    stored,
    version,
)
from tools.apiserver_model.writer import STRATEGIC_MERGE_PATCH

STATUS = {"schedulerObservedGeneration": 1}


@pytest.fixture
def model() -> ApiServerModel:
    """A model with the binding ``web``."""
    model = new_model()
    model.put(binding())
    return model


class TestCreate:
    def test_a_new_object_gets_uid_time_version_and_generation_and_no_status(self) -> None:
        manifest = {**binding(), "status": STATUS}
        status, found = send(new_model(), "POST", BINDINGS, manifest)
        assert status == 201
        assert found["metadata"] == {
            "name": "web",
            "namespace": "default",
            "uid": "uid-1",
            "creationTimestamp": "2026-05-04T03:02:01Z",
            "generation": 1,
            "resourceVersion": "101",
        }
        assert "status" not in found

    def test_what_the_client_says_about_uid_times_and_generation_is_ignored(self) -> None:
        theirs: Object = {
            "uid": "x",
            "creationTimestamp": "2020-01-01T00:00:00Z",
            "generation": 9,
            "deletionTimestamp": "x",
        }
        _, found = send(new_model(), "POST", BINDINGS, binding(**theirs))
        assert found["metadata"]["uid"] == "uid-1"
        assert found["metadata"]["generation"] == 1
        assert "deletionTimestamp" not in found["metadata"]

    def test_an_object_that_exists_is_refused(self, model: ApiServerModel) -> None:
        status, found = send(model, "POST", BINDINGS, binding())
        assert (status, found["reason"]) == (409, "AlreadyExists")
        assert found["details"] == {"name": "web", "group": "work.karmada.io", "kind": "resourcebindings"}

    def test_generated_names_differ(self) -> None:
        model = new_model()
        made = {"kind": "Event", "apiVersion": "v1", "metadata": {"generateName": "web."}}
        found = [send(model, "POST", EVENTS, made)[1]["metadata"]["name"] for _ in range(3)]
        assert len(set(found)) == 3
        assert all(name.startswith("web.") and len(name) == 9 for name in found)

    @pytest.mark.parametrize(
        ("metadata", "status"),
        [
            ({"name": ""}, 422),
            ({"namespace": "other"}, 400),
            ({"resourceVersion": "5"}, 500),
        ],
    )
    def test_wrong_metadata_is_refused(self, metadata: Object, status: int) -> None:
        manifest = binding()
        manifest["metadata"] |= metadata
        assert send(new_model(), "POST", BINDINGS, manifest)[0] == status

    def test_a_namespace_that_is_being_deleted_accepts_no_new_objects(self, model: ApiServerModel) -> None:
        model.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
        model.delete("Namespace", "", "default")
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
        status, found = send(model, "POST", EVENTS, event)
        assert (status, found["reason"]) == (403, "Forbidden")
        assert [cause["reason"] for cause in found["details"]["causes"]] == ["NamespaceTerminating"]
        assert send(model, "PATCH", WEB, {"spec": {"replicas": 2}})[0] == 200

    def test_a_namespace_has_to_exist_only_if_the_model_requires_it(self) -> None:
        model = new_model(requires_namespaces=True)
        status, found = send(model, "POST", BINDINGS, binding())
        assert (status, found["message"]) == (404, 'namespaces "default" not found')


class TestPatch:
    def test_a_merge_patch_sets_replaces_lists_and_removes_with_null(self, model: ApiServerModel) -> None:
        send(model, "PATCH", WEB, {"spec": {"clusters": [{"name": "m1"}], "placement": {"a": 1, "b": 2}}})
        patch = {"spec": {"clusters": [{"name": "m2"}], "placement": {"a": None, "c": {"d": None, "e": 3}}}}
        _, found = send(model, "PATCH", WEB, patch)
        placement = {"b": 2, "c": {"e": 3}}
        assert found["spec"] == {"replicas": 1, "clusters": [{"name": "m2"}], "placement": placement}

    def test_the_generation_counts_changes_of_the_spec_only(self, model: ApiServerModel) -> None:
        def generation(target: str, patch: Object) -> int:
            return int(send(model, "PATCH", target, patch)[1]["metadata"]["generation"])

        assert generation(WEB, {"spec": {"replicas": 2}}) == 2
        assert generation(WEB, {"spec": {"replicas": 2}}) == 2
        assert generation(WEB, {"metadata": {"annotations": {"a": "b"}}}) == 2
        assert generation(f"{WEB}/status", {"status": STATUS}) == 2
        assert generation(WEB, {"metadata": {"generation": 40}, "spec": {"replicas": 3}}) == 3

    def test_one_and_true_are_different_values(self, model: ApiServerModel) -> None:
        assert send(model, "PATCH", WEB, {"spec": {"replicas": True}})[1]["metadata"]["generation"] == 2

    def test_a_patch_that_changes_nothing_stores_nothing(self, model: ApiServerModel) -> None:
        before = version(model)
        status, found = send(model, "PATCH", WEB, {"spec": {"replicas": 1}})
        assert (status, found["metadata"]["resourceVersion"]) == (200, before)
        assert model.revision == 101
        assert len(model.writes) == 1

    def test_a_patch_of_the_status_changes_the_status_only(self, model: ApiServerModel) -> None:
        patch = {"status": STATUS, "spec": {"replicas": 9}, "metadata": {"labels": {"a": "b"}}}
        _, found = send(model, "PATCH", f"{WEB}/status", patch)
        assert found["status"] == STATUS
        assert found["spec"] == {"replicas": 1}
        assert "labels" not in found["metadata"]

    def test_a_patch_of_the_object_does_not_change_the_status(self, model: ApiServerModel) -> None:
        send(model, "PATCH", f"{WEB}/status", {"status": STATUS})
        _, found = send(model, "PATCH", WEB, {"status": {"schedulerObservedGeneration": 7}})
        assert found["status"] == STATUS

    def test_a_patch_of_the_status_of_a_cluster_changes_anything_without_a_new_generation(self) -> None:
        model = new_model()
        model.put(cluster("m1"))
        patch = {
            "status": {"kubernetesVersion": "v1"},
            "spec": {"region": "r"},
            "metadata": {"labels": {"a": "b"}},
        }
        _, found = send(model, "PATCH", f"{CLUSTERS}/m1/status", patch)
        assert found["spec"]["region"] == "r"
        assert found["metadata"]["labels"] == {"a": "b"}
        assert found["metadata"]["generation"] == 1

    def test_a_patch_with_another_version_is_a_conflict(self, model: ApiServerModel) -> None:
        old = version(model)
        send(model, "PATCH", WEB, {"spec": {"replicas": 2}})
        for target in (WEB, f"{WEB}/status"):
            status, found = send(model, "PATCH", target, {"metadata": {"resourceVersion": old}})
            assert (status, found["reason"], found["details"]["name"]) == (409, "Conflict", "web")
        patch = {"metadata": {"resourceVersion": version(model)}, "spec": {"replicas": 3}}
        assert send(model, "PATCH", WEB, patch)[0] == 200

    def test_a_patch_that_removes_the_version_of_a_custom_resource_is_invalid(
        self, model: ApiServerModel
    ) -> None:
        assert send(model, "PATCH", WEB, {"metadata": {"resourceVersion": None}})[0] == 422

    def test_a_patch_with_another_uid_is_invalid_and_one_of_the_status_ignores_it(
        self, model: ApiServerModel
    ) -> None:
        assert send(model, "PATCH", WEB, {"metadata": {"uid": "x"}})[0] == 422
        assert send(model, "PATCH", f"{WEB}/status", {"metadata": {"uid": "x"}, "status": STATUS})[0] == 200

    def test_custom_resources_have_no_strategic_merge_patch(self, model: ApiServerModel) -> None:
        headers = {"Content-Type": STRATEGIC_MERGE_PATCH}
        assert send(model, "PATCH", WEB, {}, headers)[0] == 415
        send(model, "POST", EVENTS, {"metadata": {"name": "e"}, "count": 1})
        assert send(model, "PATCH", f"{EVENTS}/e", {"count": 2}, headers)[1]["count"] == 2

    @pytest.mark.parametrize("body", [[], "text", None])
    def test_a_patch_that_is_no_object_is_refused(self, model: ApiServerModel, body: Any) -> None:
        assert send(model, "PATCH", WEB, body)[0] == 400

    def test_a_missing_object_is_not_found_by_name(self, model: ApiServerModel) -> None:
        status, found = send(model, "PATCH", f"{BINDINGS}/other", {})
        assert (status, found["reason"], found["details"]["name"]) == (404, "NotFound", "other")


class TestReplace:
    def test_a_put_needs_the_version_of_a_custom_resource(self, model: ApiServerModel) -> None:
        assert send(model, "PUT", WEB, binding(replicas=2))[0] == 422
        assert send(model, "PUT", WEB, binding(replicas=2, resourceVersion="7"))[0] == 409
        status, found = send(model, "PUT", WEB, binding(replicas=2, resourceVersion=version(model)))
        assert (status, found["metadata"]["generation"]) == (200, 2)

    def test_a_put_without_a_version_replaces_a_cluster_and_keeps_its_status(self) -> None:
        model = new_model()
        model.put({**cluster("m1"), "status": {"kubernetesVersion": "v1"}})
        status, found = send(model, "PUT", f"{CLUSTERS}/m1", cluster("m1") | {"spec": {"id": "x"}})
        assert (status, found["spec"], found["status"]) == (200, {"id": "x"}, {"kubernetesVersion": "v1"})

    def test_a_put_with_another_uid_is_a_conflict(self, model: ApiServerModel) -> None:
        manifest = binding(resourceVersion=version(model), uid="x")
        status, found = send(model, "PUT", WEB, manifest)
        assert (status, found["reason"]) == (409, "Conflict")

    def test_a_put_of_a_lease_creates_it(self) -> None:
        model = new_model()
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
        assert send(model, "PUT", f"{LEASES}/l", lease)[0] == 201
        assert send(model, "PUT", WEB, binding(resourceVersion="5"))[0] == 404

    @pytest.mark.parametrize("name", ["", "other"])
    def test_a_put_names_its_object(self, model: ApiServerModel, name: str) -> None:
        assert send(model, "PUT", WEB, binding(name, resourceVersion=version(model)))[0] == 400


class TestDelete:
    def test_a_deleted_object_is_gone(self, model: ApiServerModel) -> None:
        status, found = send(model, "DELETE", WEB)
        assert (status, found["status"], found["details"]["uid"]) == (200, "Success", "uid-1")
        assert send(model, "GET", WEB)[0] == 404
        assert send(model, "DELETE", WEB)[0] == 404

    def test_a_deletion_waits_for_finalizers(self, model: ApiServerModel) -> None:
        model.put(binding(finalizers=["a.b/c"]))
        _, found = send(model, "DELETE", WEB)
        assert found["metadata"]["deletionTimestamp"] == "2026-05-04T03:02:01Z"
        assert found["metadata"]["generation"] == 2
        assert send(model, "DELETE", WEB)[1] == found, "the second deletion changes nothing"
        status, refused = send(model, "PATCH", WEB, {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})
        assert status == 422
        assert refused["message"].endswith('found new finalizers []string{"d.e/f"}')
        assert send(model, "POST", BINDINGS, binding())[1]["message"].startswith("object is being deleted: ")
        assert send(model, "PATCH", WEB, {"metadata": {"finalizers": None}})[0] == 200
        assert send(model, "GET", WEB)[0] == 404

    @pytest.mark.parametrize("preconditions", [{"uid": "x"}, {"resourceVersion": "7"}])
    def test_preconditions_have_to_hold(self, model: ApiServerModel, preconditions: Object) -> None:
        status, found = send(model, "DELETE", WEB, {"preconditions": preconditions})
        assert (status, found["reason"]) == (409, "Conflict")
        metadata = stored(model)["metadata"]
        right = {name: metadata[name] for name in preconditions}
        assert send(model, "DELETE", WEB, {"preconditions": right})[0] == 200

    def test_an_object_of_the_same_name_has_another_uid(self, model: ApiServerModel) -> None:
        model.delete("ResourceBinding", "default", "web")
        model.put(binding())
        assert stored(model)["metadata"]["uid"] == "uid-2"


class TestWithoutRequest:
    def test_put_keeps_uid_and_counts_generations(self, model: ApiServerModel) -> None:
        model.put({**binding(replicas=5), "status": STATUS})
        found = model.put(binding(replicas=5, labels={"a": "b"}))
        assert found["metadata"]["uid"] == "uid-1"
        assert found["metadata"]["generation"] == 2
        assert found["status"] == STATUS

    def test_delete_with_force_does_not_wait_for_finalizers(self, model: ApiServerModel) -> None:
        model.put(binding(finalizers=["a.b/c"]))
        model.delete("ResourceBinding", "default", "web")
        assert model.get("ResourceBinding", "default", "web") is not None
        model.delete("ResourceBinding", "default", "web", force=True)
        assert model.get("ResourceBinding", "default", "web") is None

    def test_what_is_not_there_cannot_be_patched_or_deleted(self, model: ApiServerModel) -> None:
        with pytest.raises(KeyError, match="ResourceBinding default/other"):
            model.patch("ResourceBinding", "default", "other", {})
        with pytest.raises(KeyError, match="Cluster m1"):
            model.delete("Cluster", "", "m1")


class TestAdmission:
    def test_a_webhook_changes_what_is_stored(self, model: ApiServerModel) -> None:
        def annotate(kind: str, verb: str, before: Object | None, after: Object | None, user: str) -> Any:
            assert (kind, verb, user) == ("ResourceBinding", "update", "me")
            assert before is not None
            assert after is not None
            return {**after, "metadata": {**after["metadata"], "annotations": {"seen": "yes"}}}

        model.admission.append(annotate)
        _, found = send(model, "PATCH", WEB, {"spec": {"replicas": 2}})
        assert found["metadata"]["annotations"] == {"seen": "yes"}

    def test_a_webhook_refuses_and_nothing_is_stored(self, model: ApiServerModel) -> None:
        refused = ok(b'{"reason":"QuotaExceeded"}', 403)
        model.admission.append(lambda *_: refused)
        for method, target, body in (
            ("PATCH", WEB, {"spec": {"replicas": 2}}),
            ("DELETE", WEB, None),
            ("POST", BINDINGS, binding("other")),
        ):
            assert send(model, method, target, body) == (403, {"reason": "QuotaExceeded"})
        assert len(model.writes) == 1

    def test_changes_without_a_request_pass_no_webhook(self, model: ApiServerModel) -> None:
        model.admission.append(lambda *_: ok(b"{}", 403))
        model.patch("ResourceBinding", "default", "web", {"spec": {"replicas": 2}})
        assert stored(model)["spec"] == {"replicas": 2}
