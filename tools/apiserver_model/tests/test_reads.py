"""Single reads, lists, discovery, and what is not served."""

from __future__ import annotations

import base64

import orjson
import pytest

from tools.apiserver_model import ApiServerModel, request_of
from tools.apiserver_model.tests.client import (
    ALL_BINDINGS,
    BINDINGS,
    CLUSTERS,
    WEB,
    binding,
    names,
    new_model,
    send,
)


@pytest.fixture
def model() -> ApiServerModel:
    """A model with the bindings a, b and c, and one of another namespace."""
    model = new_model()
    for name in ("b", "c", "a"):
        model.put(binding(name))
    other = binding("z")
    other["metadata"]["namespace"] = "default-2"
    model.put(other)
    return model


class TestLists:
    def test_a_list_is_ordered_as_etcd_s_keys_are(self, model: ApiServerModel) -> None:
        _, found = send(model, "GET", ALL_BINDINGS)
        assert names(found) == ["z", "a", "b", "c"], "'-' comes before '/'"
        assert found["kind"] == "ResourceBindingList"
        assert found["metadata"] == {"resourceVersion": "104"}

    def test_pages_are_consistent_at_the_revision_of_the_first(self, model: ApiServerModel) -> None:
        _, first = send(model, "GET", f"{BINDINGS}?limit=1")
        assert first["metadata"]["remainingItemCount"] == 2
        model.put(binding("aa"))
        model.put(binding("b", replicas=7))
        model.delete("ResourceBinding", "default", "c")
        _, second = send(model, "GET", f"{BINDINGS}?limit=5&continue={first['metadata']['continue']}")
        assert names(second) == ["b", "c"]
        assert second["items"][0]["spec"] == {"replicas": 1}
        assert second["metadata"] == {"resourceVersion": "104"}

    def test_an_expired_token_comes_with_one_that_goes_on_in_the_newest_state(
        self, model: ApiServerModel
    ) -> None:
        _, first = send(model, "GET", f"{BINDINGS}?limit=1")
        model.put(binding("aa"))
        model.compact(model.revision)
        status, expired = send(model, "GET", f"{BINDINGS}?limit=1&continue={first['metadata']['continue']}")
        assert (status, expired["reason"]) == (410, "Expired")
        _, rest = send(model, "GET", f"{BINDINGS}?continue={expired['metadata']['continue']}")
        assert names(rest) == ["aa", "b", "c"]
        assert rest["metadata"] == {"resourceVersion": "105"}

    def test_a_list_at_a_version_is_newer_or_exactly_of_it(self, model: ApiServerModel) -> None:
        at_two = f"{BINDINGS}?resourceVersion=102"
        assert names(send(model, "GET", at_two)[1]) == ["a", "b", "c"]
        assert names(send(model, "GET", f"{at_two}&resourceVersionMatch=Exact")[1]) == ["b", "c"]
        assert names(send(model, "GET", f"{at_two}&limit=9")[1]) == ["b", "c"]
        model.compact(103)
        assert send(model, "GET", f"{at_two}&limit=9")[0] == 410
        assert send(model, "GET", at_two)[0] == 200

    def test_a_read_of_the_future_times_out(self, model: ApiServerModel) -> None:
        for target in (BINDINGS, f"{BINDINGS}/a"):
            response = model.handle(request_of("GET", f"{target}?resourceVersion=999", {}))
            found = orjson.loads(response.body)
            assert (response.status, found["reason"]) == (504, "Timeout")
            assert [cause["reason"] for cause in found["details"]["causes"]] == ["ResourceVersionTooLarge"]
            assert response.headers["retry-after"] == "1"

    @pytest.mark.parametrize(
        "token", ["x", "", base64.b64encode(b"[1]").decode(), base64.b64encode(b"{}").decode()]
    )
    def test_a_wrong_token_is_refused(self, model: ApiServerModel, token: str) -> None:
        status, _ = send(model, "GET", f"{BINDINGS}?limit=1&continue={token}")
        assert status == (400 if token else 200)

    def test_selectors_are_refused_not_ignored(self, model: ApiServerModel) -> None:
        assert send(model, "GET", f"{BINDINGS}?labelSelector=a%3Db")[0] == 501


class TestOtherPaths:
    def test_discovery_lists_groups_and_resources(self) -> None:
        model = new_model()
        assert send(model, "GET", "/api")[1]["versions"] == ["v1"]
        groups = [group["name"] for group in send(model, "GET", "/apis")[1]["groups"]]
        assert "work.karmada.io" in groups
        _, found = send(model, "GET", "/apis/work.karmada.io/v1alpha2")
        assert [each["name"] for each in found["resources"]] == [
            "resourcebindings",
            "resourcebindings/status",
            "clusterresourcebindings",
            "clusterresourcebindings/status",
        ]
        assert "watch" in found["resources"][0]["verbs"]

    def test_a_rules_review_has_the_rules(self) -> None:
        model = new_model()
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        status, found = send(model, "POST", path, {"kind": "SelfSubjectRulesReview"})
        assert (status, found["status"]["resourceRules"]) == (201, model.rules)

    @pytest.mark.parametrize(
        "path", ["/", "/apis/work.karmada.io/v1alpha2/nothing", "/apis/nothing/v1/nothing", "/healthz"]
    )
    def test_nothing_is_served_at_other_paths(self, path: str) -> None:
        response = new_model().handle(request_of("GET", path, {}))
        assert (response.status, response.body) == (404, b"404 page not found\n")

    @pytest.mark.parametrize("path", ["/api/v1/nothing", f"{CLUSTERS}/m1/nothing", f"{WEB}/nothing"])
    def test_a_missing_resource_of_a_served_group_has_a_status(self, path: str) -> None:
        status, found = send(new_model(), "GET", path)
        assert (status, found["reason"]) == (404, "NotFound")

    @pytest.mark.parametrize(("method", "target"), [("DELETE", BINDINGS), ("POST", f"{CLUSTERS}/m1")])
    def test_a_method_that_is_not_served_is_refused(self, method: str, target: str) -> None:
        assert send(new_model(), method, target, {})[0] == 405
