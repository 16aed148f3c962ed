"""What a connection tells of a control plane and of its reader: rights, and when certificates end."""

from __future__ import annotations

import shlex
import ssl
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import yaml

from karmada_advisor.fleet.plane_access import LISTED, read_access
from karmada_advisor.fleet.source import ControlPlane
from karmada_pyscheduler.client.connection import Connection
from karmada_pyscheduler.client.identity import validity_of_certificate
from karmada_scheduler.api.manifest import parse_time
from karmada_scheduler.api_error import ApiError
from tests.fake_apiserver import FakeApiServer
from tests.fake_apiserver.process import write_kubeconfig
from tools.controlplane.pki import Authority

DAY: Final = timedelta(days=1)
READER: Final = Path(__file__).parents[3] / "manifests" / "reader.yaml"


def reviewed(monkeypatch: pytest.MonkeyPatch, refused: Iterable[str], reader: str = "o'neil") -> list[Any]:
    """Let the API server answer reviews; return the attributes that it was asked about."""
    asked: list[Any] = []

    async def request(_: Connection, method: str, path: str, *, body: Any = None, timeout: float) -> Any:
        assert (method, timeout) == ("POST", 10.0)
        if path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
            return {"status": {"userInfo": {"username": reader}}} if reader else {}
        assert path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        assert body["kind"] == "SelfSubjectAccessReview"
        asked.append(body["spec"]["resourceAttributes"])
        attributes = asked[-1]
        name = ".".join(filter(None, (attributes["resource"], attributes["group"])))
        return {"status": {"allowed": name not in refused}}

    async def other(self: Connection, method: str, path: str, **more: Any) -> Any:
        if method == "POST":
            return await request(self, method, path, **more)
        raise ApiError("no documents", code=404)

    monkeypatch.setattr(Connection, "request", other)
    return asked


@pytest.fixture
def plane(tmp_path: Path) -> Iterable[ControlPlane]:
    with FakeApiServer() as server:
        yield ControlPlane(kubeconfig=str(write_kubeconfig(server, tmp_path / "config")))


def test_what_the_reader_may_not_list_is_named_with_the_commands_that_grant_it(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = reviewed(monkeypatch, {"events", "clusters.cluster.karmada.io"})
    found = read_access(plane)

    assert (found.reader, found.refused) == ("o'neil", ("clusters.cluster.karmada.io", "events"))
    role, bound = found.grant
    assert role == (
        "kubectl create clusterrole pyscheduler-more --verb=get,list --resource=clusters.cluster.karmada.io,events"
    )
    assert bound.startswith(
        "kubectl create clusterrolebinding pyscheduler-more --clusterrole=pyscheduler-more"
    )
    assert shlex.split(bound)[-1] == "--user=o'neil"
    assert {each["verb"] for each in asked} == {"list"}
    assert [each["resource"] for each in asked if "namespace" in each] == ["leases"]


def test_of_a_reader_with_all_rights_nothing_is_refused_and_one_without_a_name_gets_a_placeholder(
    plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    reviewed(monkeypatch, ())
    assert (read_access(plane).refused, read_access(plane).grant) == ((), ())
    reviewed(monkeypatch, ["pods"], reader="")
    assert read_access(plane).grant[1].endswith("--user=USER")


def test_without_reviews_it_is_not_known_what_the_reader_may_list(plane: ControlPlane) -> None:
    found = read_access(plane)

    assert (found.reader, found.refused, found.grant, found.served) == ("", (), (), "")
    assert found.not_known
    assert [each.ends for each in found.expiries] == ["", ""]


def test_what_is_asked_about_is_what_the_manifest_for_readers_grants() -> None:
    [role] = yaml.safe_load_all(READER.read_text())
    rules = [(group, rule) for rule in role["rules"] for group in rule["apiGroups"]]
    granted = {(group, resource) for group, rule in rules for resource in rule["resources"]}
    named = {(group, plural) for plural, _, group in (each.partition(".") for each in LISTED)}

    assert {each for each in named if each not in granted and (each[0], "*") not in granted} == set()
    assert {each for each in granted if each[1] != "*"} <= named
    assert {group for group, resource in granted if resource == "*"} <= {group for group, _ in named}


def test_the_end_of_both_certificates_is_that_which_the_connection_shows(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    served, mine = authority.issue("server", server=True), authority.issue("reader", valid_for=DAY)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(served.certificate, served.key)
    with FakeApiServer(tls=tls) as server:
        path = tmp_path / "config"
        files = {"client-certificate": str(mine.certificate), "client-key": str(mine.key)}
        write_kubeconfig(server, path, **files)
        document: Mapping[str, Any] = orjson.loads(path.read_bytes())
        document["clusters"][0]["cluster"]["certificate-authority-data"] = authority.bundle
        path.write_bytes(orjson.dumps(document))
        of_reader, of_server = read_access(ControlPlane(kubeconfig=str(path))).expiries

    assert (
        of_reader.what
        == f"the client certificate (client-certificate {mine.certificate}) of kubeconfig {path}"
    )
    for found, credentials in ((of_reader, mine), (of_server, served)):
        ends = validity_of_certificate(credentials.certificate.read_bytes())[1]
        assert parse_time(found.ends).timestamp() == ends
    assert of_server.what == "the certificate of the API server"
