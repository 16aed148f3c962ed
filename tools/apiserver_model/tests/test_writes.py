"""Creates, patches, replacements and deletions."""

from __future__ import annotations

from typing import Any

import pytest

from tools.apiserver_model import ApiServerModel, Object
from tools.apiserver_model.messages import ok
from tools.apiserver_model.tests.client import (
    BINDINGS,
    EVENTS,
    WEB,
    binding,
    new_model,
    send,
    stored,
    version,
)

STATUS = {"schedulerObservedGeneration": 1}


@pytest.fixture
def model() -> ApiServerModel:
    """A model with the binding ``web``."""
    model = new_model()
    model.put(binding())
    return model


class TestCreate:
    def test_generated_names_differ(self) -> None:
        model = new_model()
        made = {"kind": "Event", "apiVersion": "v1", "metadata": {"generateName": "web."}}
        found = [send(model, "POST", EVENTS, made)[1]["metadata"]["name"] for _ in range(3)]
        assert len(set(found)) == 3
        assert all(name.startswith("web.") and len(name) == 9 for name in found)

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
    def test_one_and_true_are_different_values(self, model: ApiServerModel) -> None:
        assert send(model, "PATCH", WEB, {"spec": {"replicas": True}})[1]["metadata"]["generation"] == 2

    def test_a_patch_that_changes_nothing_stores_nothing(self, model: ApiServerModel) -> None:
        before = version(model)
        status, found = send(model, "PATCH", WEB, {"spec": {"replicas": 1}})
        assert (status, found["metadata"]["resourceVersion"]) == (200, before)
        assert model.revision == 101
        assert len(model.writes) == 1

    @pytest.mark.parametrize("body", [[], "text", None])
    def test_a_patch_that_is_no_object_is_refused(self, model: ApiServerModel, body: Any) -> None:
        assert send(model, "PATCH", WEB, body)[0] == 400


class TestDelete:
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
