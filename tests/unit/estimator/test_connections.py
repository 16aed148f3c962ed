"""Connections to estimators, over real gRPC on 127.0.0.1."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from karmada_pyscheduler.estimator import connections, transport
from karmada_pyscheduler.estimator.accurate import Estimation
from karmada_pyscheduler.estimator.connections import Connections
from karmada_pyscheduler.estimator.transport import ConnectionState, EstimatorCallError
from karmada_pyscheduler.estimator.wire import MAX_AVAILABLE_REPLICAS, replicas_request
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.config.options import EstimatorOptions
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import cluster
from tests.unit.estimator.fault_server import free_port, serving, speaking_garbage, swallowing
from tools.controlplane.pki import Authority, Credentials

M1 = cluster("m1").build()
REQUEST = replicas_request(None)


class CountingObserver:
    """Counts attempts to connect."""

    def __init__(self) -> None:
        self.additions = self.retries = self.begins = self.ends = 0

    def added(self) -> None:
        self.additions += 1

    def retried(self) -> None:
        self.retries += 1

    def taken(self, waited: float, /) -> None:
        assert 0 <= waited < 600
        self.begins += 1

    def finished(self, worked: float, /) -> None:
        self.ends += 1


class ConnectionsHarness:
    """Connections with Services by cluster name, and manual retries."""

    def __init__(self, settings: EstimatorOptions) -> None:
        self.ports: dict[str, int] = {}
        self.failure: Exception | None = None
        self.reads: list[tuple[str, str]] = []
        self.observer = CountingObserver()
        self.pauses: list[float] = []
        self._again = asyncio.Event()
        self.connections = Connections(
            settings,
            self._read_service,
            observer=self.observer,
            clock=time.monotonic,
            pause=self._pause,
        )

    async def _read_service(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        self.reads.append((namespace, name))
        if self.failure is not None:
            raise self.failure
        port = self.ports.get(name.rpartition("-")[2])
        if port is None:
            return None
        ports = [{"port": 10352, "targetPort": port}]
        return {"spec": {"type": "ExternalName", "externalName": "127.0.0.1", "ports": ports}}

    async def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self._again.wait()
        self._again.clear()

    def retry_now(self) -> None:
        """End the pause between two attempts."""
        self._again.set()

    async def until(self, state: Callable[[], object]) -> None:
        """Wait for a condition."""
        async with asyncio.timeout(20):
            while not state():
                await asyncio.sleep(0.005)

    async def until_state(self, wanted: ConnectionState, name: str = "m1") -> None:
        await self.until(lambda: self.connections.state(name) is wanted)

    async def call(self, name: str = "m1", *, timeout: float = 10.0) -> int:
        request = REQUEST.encode(name, ())
        payload = await self.connections.call(
            name, MAX_AVAILABLE_REPLICAS, request, timeout=timeout, about="kind=K, name=ns/n"
        )
        return REQUEST.decode(payload)

    async def connect(self, port: int, member: Cluster = M1) -> None:
        self.ports[member.name] = port
        self.connections.on_cluster(None, member)
        await self.until_state(ConnectionState.CONNECTED, member.name)


MakeHarness = Callable[..., ConnectionsHarness]


@pytest.fixture
async def make_harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MakeHarness]:
    harnesses: list[ConnectionsHarness] = []
    monkeypatch.setattr(transport, "LOST_SECONDS", 0.1)

    def make(settings: EstimatorOptions | None = None, *, dial_seconds: float = 5.0) -> ConnectionsHarness:
        monkeypatch.setattr(connections, "DIAL_SECONDS", dial_seconds)
        harnesses.append(ConnectionsHarness(settings or EstimatorOptions()))
        return harnesses[-1]

    yield make
    for each in harnesses:
        await each.connections.close()


async def test_an_estimator_is_found_by_its_service_and_called(make_harness: MakeHarness) -> None:
    harness = make_harness(EstimatorOptions(namespace="sys", prefix="est"))
    async with serving() as server:
        await harness.connect(server.port)
        assert harness.reads == [("sys", "est-m1")]
        assert await harness.call() == 7
        assert [each.cluster for each in server.requests_received()] == ["m1"]
        ((method, _, about),) = server.requests
        assert method == "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas"
        assert about == "kind=K, name=ns/n"
        assert (harness.observer.additions, harness.observer.retries, harness.observer.ends) == (1, 0, 1)


async def test_a_call_without_a_connection_has_upstreams_error(make_harness: MakeHarness) -> None:
    with pytest.raises(EstimatorCallError, match=r"^cluster m1 does not exist in estimator cache$"):
        await make_harness().call()


async def test_an_error_response_has_upstreams_text(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        await harness.connect(server.port)
        server.answer = grpc.StatusCode.FAILED_PRECONDITION
        with pytest.raises(EstimatorCallError) as refusal:
            await harness.call()
    assert str(refusal.value) == (
        "gRPC request cluster(m1) estimator error when calling MaxAvailableReplicas: "
        "rpc error: code = FailedPrecondition desc = as configured"
    )
    assert not refusal.value.timed_out


async def test_a_call_of_a_hanging_estimator_ends_at_the_deadline(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        await harness.connect(server.port)
        server.hangs = True
        with pytest.raises(EstimatorCallError, match="code = DeadlineExceeded") as refusal:
            await harness.call(timeout=0.05)
        assert refusal.value.timed_out
        server.let_go()
        assert await harness.call() == 7


async def test_adding_a_cluster_does_not_wait_for_its_connection(make_harness: MakeHarness) -> None:
    harness = make_harness(dial_seconds=0.2)
    async with swallowing() as port:
        harness.ports["m1"] = port
        harness.connections.on_cluster(None, M1)
        assert harness.connections.state("m1") is ConnectionState.NEW
        await harness.until_state(ConnectionState.ABSENT)
        await harness.connections.wait_first_attempt("m1")


async def test_the_wait_for_the_first_attempt_ends_at_its_first_failure(make_harness: MakeHarness) -> None:
    harness = make_harness(dial_seconds=600)
    harness.ports["m1"] = free_port()
    harness.connections.on_cluster(None, M1)
    async with asyncio.timeout(20):
        await harness.connections.wait_first_attempt("m1")


async def test_an_estimator_that_comes_late_is_connected_at_the_next_attempt(
    make_harness: MakeHarness,
) -> None:
    harness = make_harness(dial_seconds=0.1)
    port = harness.ports["m1"] = free_port()
    harness.connections.on_cluster(None, M1)
    await harness.until_state(ConnectionState.ABSENT)
    async with serving(port=port):
        await harness.until(lambda: harness.pauses)
        harness.retry_now()
        await harness.until_state(ConnectionState.CONNECTED)
        assert await harness.call() == 7
    assert harness.observer.retries >= 1


async def test_attempts_become_rarer_up_to_every_half_minute(make_harness: MakeHarness) -> None:
    harness = make_harness()
    harness.failure = LookupError("503")
    harness.connections.on_cluster(None, M1)
    for count in range(1, 10):
        await harness.until(lambda count=count: len(harness.pauses) == count)  # type: ignore[misc]
        harness.retry_now()
    assert harness.pauses[:9] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


async def test_a_problem_is_logged_once(make_harness: MakeHarness, caplog: pytest.LogCaptureFixture) -> None:
    harness = make_harness()
    harness.failure = LookupError("the API server is away")
    harness.connections.on_cluster(None, M1)
    for count in range(1, 4):
        await harness.until(lambda count=count: len(harness.pauses) == count)  # type: ignore[misc]
        harness.retry_now()
    logged = [record for record in caplog.records if "Failed to establish" in record.message]
    assert len(logged) == 1
    assert logged[0].__dict__["error"] == "the API server is away"


async def test_the_connection_of_a_removed_cluster_is_closed(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        await harness.connect(server.port)
        channel = harness.connections._connections["m1"].channel
        assert channel is not None
        harness.connections.on_cluster(M1, None)
        assert harness.connections.state("m1") is ConnectionState.ABSENT
        with pytest.raises(EstimatorCallError, match="does not exist in estimator cache"):
            await harness.call()
        await harness.until(lambda: not harness.connections._closing)
        assert not channel.is_ready


async def test_after_the_end_there_are_no_connections(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        await harness.connect(server.port)
        await harness.connections.close()
        assert not any(harness.connections.count_by_state().values())
        with pytest.raises(EstimatorCallError, match="does not exist in estimator cache"):
            await harness.call()


async def test_a_connection_that_cannot_be_closed_does_not_keep_the_others(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        for member in (M1, replace(M1, name="m2")):
            await harness.connect(server.port, member)
        first, second = (each.channel for each in harness.connections._connections.values())
        assert first is not None
        assert second is not None
        close = first.close

        async def fail() -> None:
            await close()
            raise OSError("broken")

        first.close = fail  # type: ignore[method-assign]
        await harness.connections.close()
        assert not second.is_ready


async def test_a_pending_call_fails_when_its_cluster_is_removed(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        await harness.connect(server.port)
        server.hangs = True
        call = asyncio.create_task(harness.call())
        await harness.until(lambda: server.requests)
        harness.connections.on_cluster(M1, None)
        with pytest.raises(EstimatorCallError, match="m1"):
            await call


async def test_a_cluster_that_is_added_again_gets_a_new_connection(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as old, serving() as new:
        new.answer = 8
        await harness.connect(old.port)
        harness.connections.on_cluster(M1, None)
        await harness.connect(new.port)
        assert await harness.call() == 8


@pytest.mark.parametrize(
    ("left_out", "state"), [(True, ConnectionState.ABSENT), (False, ConnectionState.CONNECTED)]
)
async def test_pull_clusters_have_no_connection_if_the_option_is_set(
    make_harness: MakeHarness, left_out: bool, state: ConnectionState
) -> None:
    harness = make_harness(EstimatorOptions(not_in_pull_mode=left_out))
    async with serving() as server:
        harness.ports |= {"m1": server.port, "m2": server.port}
        harness.connections.on_cluster(None, replace(M1, sync_mode="Pull"))
        await harness.connect(server.port, cluster("m2").build())
        await harness.until_state(state)


async def test_the_connection_of_a_cluster_that_changes_to_pull_mode_is_closed(
    make_harness: MakeHarness,
) -> None:
    harness = make_harness(EstimatorOptions(not_in_pull_mode=True))
    async with serving() as server:
        await harness.connect(server.port)
        harness.connections.on_cluster(M1, replace(M1, sync_mode="Pull", generation=2))
        assert harness.connections.state("m1") is ConnectionState.ABSENT


async def test_the_service_is_read_again_when_the_cluster_changes(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as old, serving() as new:
        new.answer = 8
        await harness.connect(old.port)
        harness.ports["m1"] = new.port
        harness.connections.on_cluster(M1, replace(M1, generation=2))
        await harness.until(lambda: harness.observer.ends == 2)
        assert await harness.call() == 8


async def test_a_status_update_of_a_cluster_changes_nothing(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        await harness.connect(server.port)
        harness.connections.on_cluster(M1, replace(M1, resource_version="2"))
        assert await harness.call() == 7
        assert len(harness.reads) == 1


async def test_an_estimator_that_restarts_is_reconnected(make_harness: MakeHarness) -> None:
    harness = make_harness()
    port = free_port()
    for answer in (1, 2, 3):
        async with serving(port=port) as server:
            server.answer = answer
            if answer == 1:
                await harness.connect(port)
            harness.retry_now()
            await harness.until_state(ConnectionState.CONNECTED)
            assert await harness.call() == answer
        await harness.until_state(ConnectionState.LOST)
        with pytest.raises(EstimatorCallError, match="code = Unavailable"):
            await harness.call()


async def test_a_connection_that_breaks_while_its_service_is_read_in_vain_is_lost(
    make_harness: MakeHarness,
) -> None:
    async def breaks(_namespace: str, _name: str) -> None:
        await stack.aclose()
        await harness.until(lambda: not channel.is_ready)
        raise LookupError("503")

    harness = make_harness()
    async with AsyncExitStack() as stack:
        await harness.connect((await stack.enter_async_context(serving())).port)
        channel: Any = harness.connections._connections["m1"].channel
        harness.connections.read_service = breaks
        harness.connections.on_cluster(M1, replace(M1, generation=2))
        await harness.until(lambda: harness.pauses)
        assert harness.connections.state("m1") is ConnectionState.LOST


async def test_an_estimator_that_moved_after_it_was_lost_is_found(make_harness: MakeHarness) -> None:
    harness = make_harness(dial_seconds=0.5)
    async with serving() as old:
        await harness.connect(old.port)
    await harness.until_state(ConnectionState.LOST)
    async with serving() as new:
        new.answer = 8
        harness.ports["m1"] = new.port
        await harness.until(lambda: len(harness.reads) > 1)
        harness.retry_now()
        await harness.until_state(ConnectionState.CONNECTED)
        assert await harness.call() == 8


async def test_reconnect_replaces_the_connection(make_harness: MakeHarness) -> None:
    harness = make_harness()
    async with serving() as server:
        await harness.connect(server.port)
        before = harness.connections._connections["m1"].channel
        harness.connections.reconnect("m1")
        await harness.until(lambda: harness.observer.ends == 2)
        assert harness.observer.begins >= 2
        assert await harness.call() == 7
        assert harness.connections._connections["m1"].channel is not before


async def test_a_server_without_http2_is_not_connected(make_harness: MakeHarness) -> None:
    harness = make_harness(dial_seconds=0.2)
    async with speaking_garbage() as port:
        harness.ports["m1"] = port
        harness.connections.on_cluster(None, M1)
        await harness.until_state(ConnectionState.ABSENT)


class TestTLS:
    @pytest.fixture
    def authority(self, tmp_path: Path) -> Authority:
        return Authority(tmp_path / "ca")

    @pytest.fixture
    def server(self, authority: Authority) -> Credentials:
        return authority.issue("estimator", server=True)

    @pytest.fixture
    def client(self, authority: Authority) -> Credentials:
        return authority.issue("scheduler")

    def settings(self, authority: Authority, client: Credentials | None = None) -> EstimatorOptions:
        settings = EstimatorOptions(ca_file=str(authority.certificate))
        if client is None:
            return settings
        return dataclasses.replace(settings, cert_file=str(client.certificate), key_file=str(client.key))

    async def test_both_sides_show_their_certificates(
        self, make_harness: MakeHarness, authority: Authority, server: Credentials, client: Credentials
    ) -> None:
        harness = make_harness(self.settings(authority, client))
        async with serving(tls=server, clients_of=authority.certificate) as estimator:
            await harness.connect(estimator.port)
            assert await harness.call() == 7

    async def test_without_a_client_certificate_mutual_tls_fails(
        self, make_harness: MakeHarness, authority: Authority, server: Credentials, client: Credentials
    ) -> None:
        half = dataclasses.replace(self.settings(authority, client), key_file="")
        harness = make_harness(half, dial_seconds=0.3)
        async with serving(tls=server, clients_of=authority.certificate) as estimator:
            harness.ports["m1"] = estimator.port
            harness.connections.on_cluster(None, M1)
            await harness.until_state(ConnectionState.ABSENT)

    async def test_a_certificate_of_another_authority_is_refused(
        self, make_harness: MakeHarness, authority: Authority, tmp_path: Path
    ) -> None:
        stranger = Authority(tmp_path / "other").issue("estimator", server=True)
        harness = make_harness(self.settings(authority), dial_seconds=0.3)
        async with serving(tls=stranger) as estimator:
            harness.ports["m1"] = estimator.port
            harness.connections.on_cluster(None, M1)
            await harness.until_state(ConnectionState.ABSENT)
            assert estimator.requests == []

    async def test_certificates_that_appear_later_are_read_at_the_next_attempt(
        self, make_harness: MakeHarness, authority: Authority, server: Credentials, tmp_path: Path
    ) -> None:
        late = tmp_path / "late.crt"
        harness = make_harness(EstimatorOptions(ca_file=str(late)))
        async with serving(tls=server) as estimator:
            harness.ports["m1"] = estimator.port
            harness.connections.on_cluster(None, M1)
            await harness.until_state(ConnectionState.ABSENT)
            late.write_bytes(authority.certificate.read_bytes())
            harness.retry_now()
            await harness.until_state(ConnectionState.CONNECTED)
            assert await harness.call() == 7

    async def test_without_verification_any_certificate_is_accepted(
        self, make_harness: MakeHarness, tmp_path: Path
    ) -> None:
        harness = make_harness(EstimatorOptions(skip_verify=True))
        async with serving(tls=expired_certificate_of_nobody(tmp_path)) as estimator:
            await harness.connect(estimator.port)
            assert await harness.call() == 7
            assert await harness.call() == 7

    async def test_without_verification_the_client_certificate_is_sent(
        self, make_harness: MakeHarness, authority: Authority, server: Credentials, client: Credentials
    ) -> None:
        harness = make_harness(
            dataclasses.replace(self.settings(authority, client), ca_file="", skip_verify=True)
        )
        async with serving(tls=server, clients_of=authority.certificate) as estimator:
            await harness.connect(estimator.port)
            assert await harness.call() == 7

    async def test_without_verification_a_lost_connection_is_detected(
        self, make_harness: MakeHarness, server: Credentials
    ) -> None:
        harness = make_harness(EstimatorOptions(skip_verify=True))
        async with serving(tls=server) as estimator:
            await harness.connect(estimator.port)
        await harness.until_state(ConnectionState.LOST)

    async def test_without_tls_options_connections_are_plain(
        self, make_harness: MakeHarness, server: Credentials, client: Credentials
    ) -> None:
        plain = EstimatorOptions(cert_file=str(client.certificate), key_file=str(client.key))
        harness = make_harness(plain, dial_seconds=0.3)
        async with serving() as estimator:
            await harness.connect(estimator.port)
        async with serving(tls=server) as estimator:
            harness.ports["m2"] = estimator.port
            harness.connections.on_cluster(None, cluster("m2").build())
            await harness.until_state(ConnectionState.ABSENT, "m2")


def expired_certificate_of_nobody(folder: Path) -> Credentials:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=2))
        .not_valid_after(now - dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    files = Credentials(folder / "nobody.crt", folder / "nobody.key")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files


async def test_estimation_is_measured_from_its_start_and_closed_as_a_whole() -> None:
    async def read_service(_namespace: str, _name: str) -> None:
        return None

    class Closing:
        async def close(self) -> None:
            closed.append(self)

    metrics, closed = Metrics(), list[object]()
    made = Estimation.make(EstimatorOptions(), read_service, metrics=metrics, clock=time.monotonic)
    made.connections.on_cluster(None, M1)
    name = "karmada_scheduler_estimators"
    states = {
        state: metrics.registry.get_sample_value(name, {"standing": state}) for state in ("new", "lost")
    }
    await made.close()
    assert states == {"new": 1, "lost": 0}
    parts = Closing(), Closing()
    await Estimation(*reversed(parts)).close()  # type: ignore[arg-type]
    assert closed == [*parts]
