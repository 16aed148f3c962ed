"""Missing permissions are reported together, by the names that RBAC rules use."""

from typing import Any

import pytest

from karmada_pyscheduler.client.permissions import missing_permissions, needed_permissions
from karmada_scheduler.api_error import ApiError
from tests.unit.client.fakes import FakeConnection


async def lacking(answer: Any, **wanted: Any) -> list[str]:
    connection = FakeConnection(answer)
    found = await missing_permissions(connection, needed_permissions(**wanted), namespace="karmada-system")
    for request in connection.requests:
        assert (request.method, request.path.rpartition("/")[2]) == ("POST", "selfsubjectrulesreviews")
        assert request.body["spec"] == {"namespace": "karmada-system"}
    assert connection.requests
    return [str(each) for each in found]


def rules(*rules: dict[str, Any], incomplete: bool = False) -> dict[str, Any]:
    return {"status": {"resourceRules": list(rules), "incomplete": incomplete}}


WORK = {
    "apiGroups": ["work.karmada.io"],
    "resources": ["resourcebindings", "clusterresourcebindings"],
    "verbs": ["get", "list", "watch", "patch"],
}
STATUS = {"apiGroups": ["work.karmada.io"], "resources": ["*/status"], "verbs": ["patch"]}
POLICIES = {"apiGroups": ["policy.karmada.io"], "resources": ["*"], "verbs": ["list", "watch"]}
EVENTS = {"apiGroups": [""], "resources": ["events"], "verbs": ["*"]}
LEASE = {
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "resourceNames": ["mine"],
    "verbs": ["get", "update"],
}


async def test_all_missing_permissions_are_returned() -> None:
    answer = rules(WORK, STATUS, POLICIES, EVENTS, LEASE)
    assert await lacking(answer, lease="mine") == [
        "list clusters.cluster.karmada.io",
        "watch clusters.cluster.karmada.io",
        "get clusters.cluster.karmada.io",
        "create leases.coordination.k8s.io",
    ]
    assert "get leases.coordination.k8s.io/other" in await lacking(answer, lease="other")
    assert "get services" in await lacking(answer, services=True)


async def test_an_administrator_lacks_nothing() -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    assert await lacking(rules(everything), lease="mine", services=True) == []


@pytest.mark.parametrize(
    "answer",
    [ApiError("forbidden", code=403), rules(incomplete=True), None, [], {}, {"status": None}],
)
async def test_without_rules_no_permission_is_reported_missing(answer: Any) -> None:
    assert await lacking(answer) == []
