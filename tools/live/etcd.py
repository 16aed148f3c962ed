"""A client of etcd's JSON gateway, independent of every API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tools.controlplane.api import local_session

FILL_PREFIX = "/chaos/fill/"


class EtcdError(RuntimeError):
    """etcd answered with an error."""


class CompactedError(EtcdError):
    """The history from the requested revision on has been compacted."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of a key.

    Attributes:
        key: The key.
        revision: etcd's revision of this version, which API servers call resourceVersion.
        value: The object; None if the key was deleted.
    """

    key: str
    revision: int
    value: dict[str, Any] | None


class Etcd:
    """A client. Threads may share it."""

    def __init__(self, url: str) -> None:
        self._url = url

    def call(self, path: str, body: dict[str, Any], *, timeout: float = 10.0) -> dict[str, Any]:
        """Send one request to ``/v3/<path>``; raises EtcdError, and requests' errors without an answer."""
        with local_session() as session:
            response = session.post(f"{self._url}/v3/{path}", json=body, timeout=timeout)
            if response.status_code >= 400:
                raise EtcdError(f"{path}: {response.status_code}: {response.text[:300]}")
            found: dict[str, Any] = response.json()
            return found

    def read(self, prefix: str) -> tuple[int, list[Stored]]:
        """Return the current revision and all objects below a prefix."""
        answer = self.call("kv/range", _range(prefix), timeout=30.0)
        stored = [
            Stored(_text(each["key"]), int(each["mod_revision"]), _object(each["value"]))
            for each in answer.get("kvs", ())
        ]
        return int(answer["header"]["revision"]), stored

    def watch(self, prefix: str, start: int) -> Iterator[Stored]:
        """Yield the versions below a prefix from a revision on, until the connection ends.

        Raises:
            CompactedError: They are not there any more.
        """
        with local_session() as session:
            body = {"create_request": {**_range(prefix), "start_revision": str(start)}}
            with session.post(f"{self._url}/v3/watch", json=body, stream=True, timeout=(5, None)) as response:
                for line in response.iter_lines(chunk_size=None):
                    message = json.loads(line)
                    if "error" in message:
                        raise EtcdError(str(message["error"]))
                    result = message["result"]
                    if result.get("compact_revision"):
                        raise CompactedError(f"compacted up to {result['compact_revision']}")
                    if result.get("canceled"):
                        raise EtcdError(f"the watch was cancelled: {result.get('cancel_reason')}")
                    for event in result.get("events", ()):
                        kv = event["kv"]
                        value = None if event.get("type") == "DELETE" else _object(kv["value"])
                        yield Stored(_text(kv["key"]), int(kv["mod_revision"]), value)

    def fill(self, megabytes: int) -> int:
        """Write until etcd has no space any more; return how many megabytes it took."""
        value = base64.b64encode(b"x" * (1 << 20)).decode()
        for number in range(megabytes):
            try:
                self.call("kv/put", {"key": _base64(f"{FILL_PREFIX}{number}"), "value": value})
            except EtcdError as error:
                if "space exceeded" in str(error):
                    return number
                raise
        raise EtcdError(f"{megabytes} MB do not fill etcd")

    def make_space(self, revision: Callable[[], int | None]) -> bool:
        """Delete what filled etcd, compact, defragment, and end its alarm.

        Args:
            revision: Returns up to which revision etcd may be compacted; None ends the attempt.

        Returns:
            Whether there is space.
        """
        self.call("kv/deleterange", _range(FILL_PREFIX))
        if (compacted := revision()) is None:
            return False
        self.call("kv/compaction", {"revision": compacted, "physical": True}, timeout=60)
        self.call("maintenance/defragment", {}, timeout=60)
        alarms = self.call("maintenance/alarm", {"action": "GET"}).get("alarms", ())
        for alarm in alarms:
            self.call(
                "maintenance/alarm",
                {"action": "DEACTIVATE", "memberID": alarm["memberID"], "alarm": alarm["alarm"]},
            )
        return not self.call("maintenance/alarm", {"action": "GET"}).get("alarms")


def _range(prefix: str) -> dict[str, str]:
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return {"key": _base64(prefix), "range_end": _base64(end)}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


def _object(encoded: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.b64decode(encoded))
    found.get("metadata", {}).pop("managedFields", None)
    return found
