"""Which replica of the scheduler the page asks for records: the one that leads, found again after a switch."""

from __future__ import annotations

import argparse
import ssl
from typing import Any

import pytest

from karmada_advisor.cli.flags.web import web_parser
from karmada_advisor.fleet.errors import NoAnswerError
from karmada_advisor.fleet.process_answers import ProcessState
from karmada_advisor.fleet.process_http import ProcessAddress
from karmada_advisor.web.leader import KEPT_SECONDS, LeaderRecords, leader_records
from karmada_pyscheduler.records.endpoints import AUDIENCE
from karmada_scheduler.api_error import ApiError


class Fleet:
    """Two replicas behind one name, and the API server with their Lease."""

    def __init__(self) -> None:
        self.addresses = ["10.0.0.1", "10.0.0.2"]
        self.states: dict[str, Any] = {
            "10.0.0.1": {"process": "a", "leading": True},
            "10.0.0.2": {"process": "b", "leading": False},
        }
        self.holder = "a_1"
        self.now = 0.0
        self.requests: list[tuple[str, str]] = []
        self.is_away = False
        self.asked: list[ProcessAddress] = []
        self.records = LeaderRecords(
            self,
            ["https://records.example:10353"],
            lease=("karmada-system", "mine"),
            account=("karmada-system", "reader"),
            tls=ssl.create_default_context(),
            resolve=self._resolve,
            read=self._read,
            clock=lambda: self.now,
            now=lambda: self.now,
        )

    async def request(self, method: str, path: str, *, body: Any = None, timeout: float) -> dict[str, Any]:
        self.requests.append((method, path))
        if self.is_away:
            raise ApiError("cannot reach it")
        if method == "GET":
            return {"spec": {"holderIdentity": self.holder}}
        assert body["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 600}
        return {"status": {"token": f"token-{self.now:g}"}}

    async def _resolve(self, host: str, port: int) -> list[str]:
        assert (host, port) == ("records.example", 10353)
        return self.addresses

    def _read(self, address: ProcessAddress) -> ProcessState:
        self.asked.append(address)
        found = self.states[address.ip]
        if isinstance(found, Exception):
            raise found
        return ProcessState(name=found["process"], is_leading=found["leading"])

    def switch(self) -> None:
        self.states["10.0.0.1"] = NoAnswerError("10.0.0.1 cannot be read")
        self.states["10.0.0.2"]["leading"] = True
        self.holder = "b_2"


async def test_the_replica_that_leads_by_its_own_word_and_by_the_lease_is_asked_with_a_token_for_records() -> (
    None
):
    fleet = Fleet()

    found = await fleet.records.address()

    assert (found.ip, found.url, found.token) == ("10.0.0.1", "https://records.example:10353", "token-0")
    assert set(fleet.requests) == {
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases/mine"),
        ("POST", "/api/v1/namespaces/karmada-system/serviceaccounts/reader/token"),
    }


async def test_after_a_switch_the_new_leader_is_found_within_the_time_that_the_old_one_is_kept() -> None:
    fleet = Fleet()
    await fleet.records.address()
    fleet.switch()

    fleet.now += KEPT_SECONDS - 0.1
    assert (await fleet.records.address()).ip == "10.0.0.1"
    fleet.now += 0.1
    assert (await fleet.records.address()).ip == "10.0.0.2"


@pytest.mark.parametrize("what", ["another holder", "nobody leads", "no address", "no API server"])
async def test_without_a_leader_the_text_says_why_and_it_is_looked_for_again(what: str) -> None:
    fleet = Fleet()
    if what == "another holder":
        fleet.holder = "b_2"
    elif what == "nobody leads":
        fleet.states["10.0.0.1"]["leading"] = False
    elif what == "no address":
        fleet.addresses = []
    else:
        fleet.is_away = True

    for _ in range(2):
        with pytest.raises(
            NoAnswerError, match=r"leader is not known|no replica leads; the Lease names [ab]_\d"
        ):
            await fleet.records.address()
    assert len(fleet.requests) <= 2

    fleet.now += KEPT_SECONDS
    fleet.is_away, fleet.addresses, fleet.holder = False, ["10.0.0.1", "10.0.0.2"], "a_1"
    fleet.states["10.0.0.1"]["leading"] = True
    assert (await fleet.records.address()).ip == "10.0.0.1"


async def test_a_token_is_renewed_after_half_of_its_life() -> None:
    fleet = Fleet()
    for now, token in ((0.0, "token-0"), (297.0, "token-0"), (300.0, "token-300")):
        fleet.now = now
        assert (await fleet.records.address()).token == token
    assert "token" not in repr(await fleet.records.address())


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--records=http://a:1"], "expected https://NAME:PORT"),
        (["--records=https://a:b"], "expected https://NAME:PORT"),
        (["--records=https://a:1"], "--records needs --records-lease"),
        (["--records=https://a:1", "--records-lease=a/b"], "--records needs --records-account"),
        (["--records=https://a:1", "--from=http://localhost:1"], "use one of them"),
        (
            [
                "--records=https://a:1",
                "--records-lease=a/b",
                "--records-account=a/b",
                "--records-ca-file=/no",
            ],
            "--records-ca-file: /no has no certificates",
        ),
    ],
)
def test_flags_that_do_not_fit_together_are_named(flags: list[str], problem: str) -> None:
    arguments: argparse.Namespace = web_parser().parse_args(flags)
    with pytest.raises(NoAnswerError, match=problem):
        leader_records(arguments, Fleet())
