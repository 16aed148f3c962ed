"""The page asks the scheduler that leads for its records, with the rights of the chart, over a real control plane."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from karmada_advisor.web.decisions import RECORDS
from karmada_pyscheduler.records.endpoints import AUDIENCE
from tests.commands import run
from tests.deploy.chart import objects
from tests.e2e.conftest import running
from tests.e2e.token_page import SYSTEM, asked, signed_elsewhere, token_of
from tests.e2e.workload import Workload, is_settled, named
from tools.controlplane import ControlPlane
from tools.controlplane.ours import Scheduler, start_scheduler, start_web
from tools.controlplane.pki import Authority
from tools.controlplane.processes import free_port

NAME: Final = "my-recorded"
NAMESPACE: Final = "records"
USER: Final = f"system:karmada:{NAME}"
FOUND_SECONDS: Final = 10
"""How long after a switch the page may take to find the new leader."""


@dataclass(frozen=True)
class Site:
    """Two replicas of a scheduler, and a page that knows their addresses."""

    plane: ControlPlane
    page: str
    authority: Authority
    records: dict[str, Scheduler] = field(default_factory=dict)

    def ask(self, url: str, token: str = "", path: str = "v1/state") -> tuple[int, dict[str, Any]]:
        """Return status and content of what a replica answers."""
        status, text = asked(f"{url}/{path}", token, self.authority)
        return status, json.loads(text)

    def token(self, account: str, audience: str = AUDIENCE) -> str:
        """Return a token of an account."""
        return token_of(self.plane.client, account, audience)

    def shown(self) -> dict[str, Any]:
        """Return what the page shows of the last decisions."""
        with urllib.request.urlopen(f"{self.page}v1/decisions", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


@pytest.fixture(scope="module")
def site(controlplane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    controlplane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    values = {
        "schedulerName": NAME,
        "explain": {"enabled": True, "tls": {"secretName": "records"}},
        "web": {"enabled": True, "kubeconfig": {"secretName": "web"}, "records": True},
    }
    for each in objects(values, side="karmada"):
        controlplane.client.apply(each)
    stranger = {"name": "stranger", "namespace": SYSTEM}
    controlplane.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": stranger})
    authority = Authority(tmp_path_factory.mktemp("records-pki"))
    issued = authority.issue("records", server=True)
    records: dict[str, Scheduler] = {}
    with ExitStack() as stack:
        for number in (1, 2):
            address = f"127.0.0.1:{free_port()}"
            records[f"https://{address}"] = scheduler = start_scheduler(
                controlplane,
                f"--explain-bind-address={address}",
                f"--explain-tls-cert-file={issued.certificate}",
                f"--explain-tls-key-file={issued.key}",
                name=NAME,
                process_name=f"{NAME}-{number}",
                kubeconfig=controlplane.kubeconfig_for(USER),
                started=running.append,
            )
            stack.callback(scheduler.process.stop)
        process, url = start_web(
            controlplane,
            *(f"--records={each}" for each in records),
            f"--records-ca-file={authority.certificate}",
            f"--records-lease={SYSTEM}/{NAME}",
            f"--records-account={SYSTEM}/{NAME}-records",
            name="web-records",
            kubeconfig=controlplane.kubeconfig_for(f"{USER}:web"),
        )
        stack.callback(process.stop)
        yield Site(controlplane, url, authority, records)


def _placed(site: Site, name: str) -> None:
    workload = Workload(site.plane, NAMESPACE, name)
    workload.create(named("sim-a1"), replicas=1, scheduler=NAME)
    workload.wait(is_settled, "settled")


def test_records_auth_is_by_a_token_for_records_of_somebody_who_may_read_them(site: Site) -> None:
    good = site.token(f"{NAME}-records")
    for url in site.records:
        assert site.ask(url)[0] == 401
        assert site.ask(url, site.token(f"{NAME}-records", "karmada-pyscheduler-web"))[0] == 401
        status, found = site.ask(url, signed_elsewhere(good))
        assert (status, "Is it one of the cluster that hosts Karmada" in found["error"]["message"]) == (
            401,
            True,
        )
        status, found = site.ask(url, site.token("stranger"))
        assert (status, "may not get /karmada-pyscheduler/records" in found["error"]["message"]) == (
            403,
            True,
        )
        assert site.ask(url, good)[0] == 200
    leading = [site.ask(url, good)[1]["leading"] for url in site.records]
    assert sorted(leading) == [False, True]


def test_a_command_with_a_token_has_the_record_of_the_leader_and_one_without_says_what_is_missing(
    site: Site, tmp_path: Path
) -> None:
    _placed(site, "asked")
    good, token = site.token(f"{NAME}-records"), tmp_path / "token"
    token.write_text(good)
    [leader] = [url for url in site.records if site.ask(url, good)[1]["leading"]]
    port = leader.rpartition(":")[2]
    explain = (
        "explain", f"{NAMESPACE}/asked-deployment", "--width=300", f"--kubeconfig={site.plane.kubeconfig}",
        f"--from=https://127.0.0.1:{port}", f"--from-ca-file={site.authority.certificate}",
    )  # fmt: skip

    for flags in ((), ("--from-server-name=localhost",)):
        site.plane.wait_for(
            partial(run, *explain, f"--from-token-file={token}", *flags),
            "the record",
            until=lambda it: it.status == 0 and "recorded 20" in it.out,
            timeout=30,
        )
    unnamed = run(*explain, f"--from-token-file={token}", "--from-server-name=elsewhere")
    assert "certificate" in unnamed.out + unnamed.err

    without = run(*explain)
    assert (without.status, f"needs a bearer token for the audience {AUDIENCE}" in without.err) == (2, True)
    token.write_text(site.token("stranger"))
    stranger = run(*explain, f"--from-token-file={token}")
    assert (stranger.status, "may not get /karmada-pyscheduler/records" in stranger.err) == (2, True)


def test_the_leader_s_records_are_on_the_page_and_after_a_switch_those_of_the_next_one(site: Site) -> None:
    def newest() -> str:
        items = site.shown()["items"]
        return str(items[0]["name"]) if items else ""

    _placed(site, "before")
    site.plane.wait_for(
        site.shown, "records on the page", until=lambda it: it["source"] == RECORDS, timeout=30
    )
    site.plane.wait_for(newest, "the first decision", until=lambda it: "before" in it, timeout=30)

    good = site.token(f"{NAME}-records")
    [leader] = [url for url in site.records if site.ask(url, good)[1]["leading"]]
    [other] = [url for url in site.records if url != leader]
    site.records[leader].process.stop()
    site.plane.wait_for(
        lambda: site.ask(other, good)[1]["leading"], "the other replica to lead", until=bool, timeout=60
    )
    switched = time.monotonic()
    site.plane.wait_for(
        site.shown, "the new leader", until=lambda it: it["source"] == RECORDS, timeout=FOUND_SECONDS
    )
    assert time.monotonic() - switched < FOUND_SECONDS

    _placed(site, "after")
    site.plane.wait_for(newest, "its decision", until=lambda it: "after" in it, timeout=30)


def test_neither_process_was_refused_anything_that_it_asked_for(site: Site) -> None:
    """The roles of the chart suffice."""
    site.plane.wait_for(
        site.shown, "records on the page", until=lambda it: it["source"] == RECORDS, timeout=30
    )
    with urllib.request.urlopen(f"{site.page}v1/quotas/{NAMESPACE}", timeout=30) as answer:
        assert json.load(answer)["problem"] == ""
    for user in (USER, f"{USER}:web"):
        found = site.plane.requests(user)
        refused = [
            event["requestURI"]
            for event in found
            if event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
        ]
        assert found
        assert not refused
    events = [
        each for each in site.plane.requests(f"{USER}:web") if "objectRef" in each
    ]  # others are about APIs
    done = {f"{each['verb']} {each['objectRef']['resource']}" for each in events}
    assert "list federatedresourcequotas" in done
    assert {each for each in done if each.split()[0] not in {"get", "list", "watch"}} == {
        "create serviceaccounts"
    }
