"""After the placement: Works that are not dispatched, or that a member refuses."""

from __future__ import annotations

import re

from tests.e2e.state.model import situation
from tests.e2e.state.plane import MINE
from tests.e2e.state.scene import Scene
from tests.e2e.state.situations.apis import GADGET, gadget_definition, make_gadget
from tests.e2e.state.situations.expectations import not_running
from tests.e2e.workload import DUPLICATED, DYNAMIC, named
from tools import manifests
from tools.controlplane import Object
from tools.controlplane.karmada import CLUSTERS


def wait_reported(
    scene: Scene, cluster: str, *, applied: bool, message: str = "", health: str = ""
) -> Object:
    """Wait until the status of the binding has the report of a cluster."""

    def is_there(found: Object) -> bool:
        return any(
            each["clusterName"] == cluster
            and bool(each.get("applied")) is applied
            and re.search(message, each.get("appliedMessage", "")) is not None
            and health in ("", each.get("health"))
            for each in found.get("status", {}).get("aggregatedStatus") or ()
        )

    return scene.wait(is_there, f"reported by {cluster}", name=scene.notes["binding"], timeout=60)


def _denies(scene: Scene) -> bool:
    member = scene.karmada.members["real2"].client
    member.apply(manifests.namespace(scene.namespace))
    answer = member.send(
        "POST",
        f"/apis/apps/v1/namespaces/{scene.namespace}/deployments",
        body=_foreign(scene, "probe"),
        params={"dryRun": "All"},
    )
    return answer.status_code == 422


def _foreign(scene: Scene, name: str) -> Object:
    made = manifests.deployment(scene.namespace, name, 1)
    own = {"app": "web"}  # the selector is immutable, so with another one it cannot be overwritten
    made["spec"]["selector"]["matchLabels"] = made["spec"]["template"]["metadata"]["labels"] = own
    return made


def _gadgets_on_real3(scene: Scene, schema: Object) -> str:
    member = scene.karmada.members["real3"].client
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    member.apply(gadget_definition(version))
    _wait_api(scene, "real3", served=True)
    return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com"


def _wait_api(scene: Scene, cluster: str, *, served: bool) -> None:
    scene.karmada.wait_for(
        lambda: [each["groupVersion"] for each in scene.client.get(f"{CLUSTERS}/{cluster}")["status"]["apiEnablements"]],
        f"{cluster} to serve {GADGET}: {served}",
        until=lambda found: (GADGET in found) is served,
        timeout=60,
    )  # fmt: skip


def table(cluster: str, **values: object) -> dict[str, object]:
    """Return what the row of a cluster has to say, as patterns of JSON values."""
    shown = rf'"name": "{cluster}"[^{{}}]*'
    shown += "[^{}]*".join(rf'"{name}": {value}' for name, value in values.items())
    return {"state.rows": re.compile(shown, re.DOTALL)}


@situation(
    not_running(
        headline=r"real1 2.*real2 2.*dispatching",
        cause=r"^\w+: .*dispatching.*(policy|PropagationPolicy).*web",
        remedy=r"resume dispatching|dispatching",
        quiet="dispatching",
        fields=table("real1", wanted=2, applied='"(no|not reported)"'),
    ),
    page="not running",
)
def dispatching_suspended(scene: Scene) -> None:
    """The policy suspends dispatching."""
    placement = named("real1", "real2", replicaScheduling=DUPLICATED)
    scene.policy(placement, suspension={"dispatching": True})
    scene.deployment(replicas=2)
    scene.wait_placed({"real1": 2, "real2": 2})
    scene.wait(
        lambda found: found["spec"].get("suspension", {}).get("dispatching"), "its dispatching suspended"
    )


@situation(
    not_running(
        headline=r"real1 2.*real2 2.*dispatching.*real2",
        cause=r"^\w+: .*dispatching.*real2",
        remedy=r"dispatching",
    )
)
def dispatching_suspended_on_one_cluster(scene: Scene) -> None:
    """The policy suspends dispatching on one of two clusters."""
    placement = named("real1", "real2", replicaScheduling=DUPLICATED)
    only = {"dispatchingOnClusters": {"clusterNames": ["real2"]}}
    scene.policy(placement, suspension=only)
    scene.deployment(replicas=2)
    scene.wait_placed({"real1": 2, "real2": 2})
    wait_reported(scene, "real1", applied=True)


@situation(
    not_running(
        headline=r"real1 1.*real2 1.*real2.*(owner label|refus|not applied)",
        cause=r"^\w+: .*every workload needs an owner label",
        remedy="^$|.",
        fields=table("real2", applied='"no"'),
    ),
    applies=False,
    page="not running",
)
def admission_refuses(scene: Scene) -> None:
    """An admission policy of a member refuses the workload."""
    member = scene.karmada.members["real2"].client
    api = "admissionregistration.k8s.io/v1"
    name = f"{scene.namespace}-owner"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}  # fmt: skip
    validation = {
        "expression": "has(object.metadata.labels) && 'owner' in object.metadata.labels",
        "message": "every workload needs an owner label",
    }
    member.apply(
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "resourceRules": [rule],
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.namespace}},
                },
                "validations": [validation],
            },
        }
    )
    member.apply(
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }
    )
    scene.karmada.wait_for(lambda: _denies(scene), "the admission policy to be in force", timeout=30)
    scene.web(named("real1", "real2", replicaScheduling=DUPLICATED), replicas=1)
    wait_reported(scene, "real2", applied=False, message="owner label")
    wait_reported(scene, "real1", applied=True, health="Healthy")


@situation(
    not_running(
        headline=r"real1 1.*real2 1.*real2",
        cause=r"^\w+: .*(exist|conflict)",
        remedy=r"conflictResolution.*Overwrite|Overwrite",
        fields=table("real2", applied='"no"'),
    )
)
def object_exists_there(scene: Scene) -> None:
    """An object of the same name exists in a member, with conflictResolution Abort."""
    member = scene.karmada.members["real2"].client
    member.apply(manifests.namespace(scene.namespace))
    member.create(_foreign(scene, "web"))
    scene.policy(named("real1", "real2", replicaScheduling=DUPLICATED), conflictResolution="Abort")
    scene.deployment(replicas=1)
    wait_reported(scene, "real2", applied=False, message="exist|conflict")
    wait_reported(scene, "real1", applied=True, health="Healthy")


@situation(
    not_running(
        headline=r"real2 2.*real2",
        cause=r"^\w+: .*namespace.*not found",
        remedy="^$|namespace",
    ),
    applies=False,
    labels={"namespace.karmada.io/skip-auto-propagation": "true"},
)
def namespace_missing_there(scene: Scene) -> None:
    """The namespace does not exist in the member."""
    scene.web(named("real2", replicaScheduling=DYNAMIC), replicas=2)
    wait_reported(scene, "real2", applied=False, message="not found")


@situation(
    not_running(
        headline=r"real3.*(could not find|no match)",
        cause=r"^\w+: .*(could not find|no match)",
        remedy="^$|install|API",
    ),
    ask="gadget/web",
    applies=False,
    alone=True,
)
def api_gone_there(scene: Scene) -> None:
    """The API of a placed custom resource goes from its member.

    The API is there when it is placed, and then no more.
    """
    path = _gadgets_on_real3(scene, {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    make_gadget(scene, "real3", scheduler=MINE)
    wait_reported(scene, "real3", applied=True)
    scene.karmada.members["real3"].client.delete(path)
    _wait_api(scene, "real3", served=False)
    gadget = f"/apis/{GADGET}/namespaces/{scene.namespace}/gadgets/web"
    scene.client.patch(gadget, {"spec": {"size": 4}})
    wait_reported(scene, "real3", applied=False, message="Failed to apply.*(could not find|no match)")


@situation(
    not_running(headline=r"real3.*owner", cause=r"^\w+: .*spec\.owner.*[Rr]equired", remedy="^$|."),
    ask="gadget/web",
    applies=False,
    alone=True,
)
def schema_refuses_there(scene: Scene) -> None:
    """A member serves the API of a custom resource with a schema that refuses it.

    The member serves the API with a schema of its own, which requires a field.
    """
    spec = {"type": "object", "required": ["owner"], "properties": {"owner": {"type": "string"}}}
    _gadgets_on_real3(scene, {"type": "object", "properties": {"spec": spec}})
    make_gadget(scene, "real3", scheduler=MINE)
    wait_reported(scene, "real3", applied=False, message="owner")
