"""The address of an estimator."""

from typing import Any

import pytest

from karmada_pyscheduler.estimator.transport import DiscoveryError, addresses, service_name


def external(*ports: dict[str, Any], name: str = "example.com") -> dict[str, Any]:
    return {"spec": {"type": "ExternalName", "externalName": name, "ports": list(ports)}}


def find(service: dict[str, Any] | None, port: int = 80) -> list[str]:
    return addresses(service, name="svc", namespace="default", port=port)


def test_a_service_is_named_after_its_cluster() -> None:
    assert service_name("karmada-scheduler-estimator", "m1") == "karmada-scheduler-estimator-m1"


def test_without_a_service_the_names_of_the_host_cluster_are_tried() -> None:
    assert find(None) == ["svc.default.svc.cluster.local:80", "svc.default.svc:80"]


def test_an_external_name_maps_the_port() -> None:
    service = external({"port": 8080, "targetPort": 1}, {"port": 80, "targetPort": 8081})
    assert find(service) == ["example.com:8081"]


@pytest.mark.parametrize(
    ("service", "complaint"),
    [
        pytest.param(
            {"spec": {"type": "ClusterIP"}}, 'unsupported service type "ClusterIP"', id="cluster-ip"
        ),
        pytest.param(
            external({"port": 8080, "targetPort": 8080}),
            'no service port 80 found for service "svc"',
            id="other-port",
        ),
        pytest.param(external(), 'no service port 80 found for service "svc"', id="no-ports"),
        pytest.param(
            {"spec": []}, 'cannot read service "svc": spec: expected an object, got list []', id="no-object"
        ),
        pytest.param(
            external("80"),  # type: ignore[arg-type]
            "cannot read service \"svc\": spec.ports[0]: expected an object, got str '80'",
            id="no-port-object",
        ),
        pytest.param(
            external({"port": 80, "targetPort": 70000}),
            "ExternalName service type should have int target port, current target port: 70000",
            id="large-target-port",
        ),
        pytest.param(
            external({"port": 80, "targetPort": "http"}),
            "ExternalName service type should have int target port, current target port: http",
            id="named-target-port",
        ),
    ],
)
def test_a_service_without_an_address_is_an_error(service: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DiscoveryError) as refusal:
        find(service)
    assert str(refusal.value) == complaint
