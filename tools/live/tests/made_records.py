"""Records of a run that never was: four bindings, two replicas, one change of the leader, nothing wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from tests.fake_apiserver.objects import DUPLICATED, binding, cluster
from tools.live.judge import Judge, Result
from tools.live.records import read

START: Final = 1_800_000_000.0
FACTS: Final = {
    "scheduler": "my-scheduler",
    "other": "default-scheduler",
    "other user": "upstream",
    "users": {"chaos-0": "scheduler-0", "chaos-1": "scheduler-1"},
    "lease": "/registry/leases/karmada-system/my-scheduler",
}
Object = dict[str, Any]


@dataclass
class Made:
    """Builds records and judges them.

    Attributes:
        revision: The last resourceVersion.
        now: Seconds since the beginning.
    """

    folder: Path
    revision: int = 100
    now: float = 0.0
    files: dict[str, list[Object]] = field(default_factory=dict)
    audit: list[Object] = field(default_factory=list)
    stored: dict[str, Object] = field(default_factory=dict)
    final: Object = field(default_factory=dict)

    def add(self, file: str, **line: Any) -> None:
        self.files.setdefault(file, []).append({"at": START + self.now, **line})

    def mark(self, name: str) -> None:
        self.add("marks", mark=name)

    def store(self, kind: str, key: str, value: Object | None) -> int:
        """Store a version, as etcd's watch reports it; return its resourceVersion."""
        self.revision += 1
        self.add(kind, key=f"/registry/{kind}/{key}", revision=self.revision, value=value)
        if value is not None:
            self.stored[key] = value
        return self.revision

    def list_again(self, kind: str, key: str) -> None:
        """Store the last version once more, as a list after a lost watch does."""
        lines = [line for line in self.files[kind] if line.get("key") == f"/registry/{kind}/{key}"]
        self.files[kind].append({**lines[-1], "at": START + self.now})

    def request(
        self,
        user: str,
        verb: str,
        resource: str,
        key: str,
        *,
        code: int = 200,
        sent: float | None = None,
        **rest: Any,
    ) -> None:
        """Add a request to the audit log; ``sent`` is when it was received, now by default."""
        namespace, _, name = key.partition("/")
        at = datetime.fromtimestamp(START + (self.now if sent is None else sent), UTC).isoformat()
        resource, _, sub = resource.partition("/")
        self.audit.append(
            {
                "stage": "ResponseComplete",
                "auditID": f"audit-{len(self.audit)}",
                "requestReceivedTimestamp": at,
                "stageTimestamp": datetime.fromtimestamp(START + self.now, UTC).isoformat(),
                "user": {"username": user},
                "verb": verb,
                "objectRef": {"resource": resource, "namespace": namespace, "name": name, "subresource": sub},
                "responseStatus": {"code": code},
                **rest,
            }
        )

    def lease(self, user: str, holder: str) -> None:
        """Renew or acquire the Lease."""
        value = {"metadata": {}, "spec": {"holderIdentity": holder}}
        version = self.store("leases", "karmada-system/my-scheduler", value)
        answer = {**value, "metadata": {"resourceVersion": str(version)}}
        self.request(user, "update", "leases", "karmada-system/my-scheduler", responseObject=answer)

    def write(
        self, user: str, key: str, *, named: int | None = -1, sent: float | None = None, **changes: Any
    ) -> int:
        """Patch the spec of a binding."""
        value = self.stored[key]
        value = {**value, "spec": {**value["spec"], **changes}}
        before = self.revision_of(key)
        version = self.store("bindings", key, value)
        body: Object = {"spec": changes}
        if named is not None:
            body["metadata"] = {"resourceVersion": str(before if named < 0 else named)}
        answer = {**value, "metadata": {**value["metadata"], "resourceVersion": str(version)}}
        self.request(
            user, "patch", "resourcebindings", key, sent=sent, requestObject=body, responseObject=answer
        )
        return version

    def revision_of(self, key: str) -> int:
        lines = [line for line in self.files["bindings"] if line.get("key", "").endswith(f"/{key}")]
        return int(lines[-1]["revision"])

    def place(self, user: str, key: str, **rest: Any) -> None:
        """Patch a binding as the scheduler decides, with its status."""
        clusters = [{"name": name, "replicas": 2} for name in ("m1", "m2")]
        self.write(user, key, clusters=clusters, **rest)
        self.settle(user, key)

    def settle(self, user: str, key: str) -> None:
        """Write the status of a binding."""
        value = self.stored[key]
        condition = {"type": "Scheduled", "status": "True", "reason": "Success", "message": ""}
        status = {"conditions": [condition], "schedulerObservedGeneration": value["metadata"]["generation"]}
        before = self.revision_of(key)
        version = self.store("bindings", key, {**value, "status": status})
        answer = {**value, "metadata": {"resourceVersion": str(version)}}
        body = {"metadata": {"resourceVersion": str(before)}, "status": status}
        self.request(user, "patch", "resourcebindings/status", key, requestObject=body, responseObject=answer)

    def result(self) -> Result:
        """End the run, write the files, read and judge them."""
        self.now = 200.0
        for name, at in (("settled", 160.0), ("end", 190.0)):
            self.now = at
            self.mark(name)
        records, logs = self.folder / "records", self.folder / "plane" / "logs"
        records.mkdir(parents=True)
        logs.mkdir(parents=True)
        for name, lines in self.files.items():
            (records / f"{name}.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))
        (logs / "audit.log").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in self.audit))
        (records / "facts.json").write_bytes(orjson.dumps(FACTS))
        versions = {
            key.partition("/")[2]: str(self.revision_of(key))
            for key in self.stored
            if key.startswith("chaos/")
        }
        up = {"scheduler-0": 200, "scheduler-1": 200}
        final = {"versions": versions, "ready": up, "healthy": up, "leads": ["scheduler-1"], **self.final}
        (records / "final.json").write_bytes(orjson.dumps(final))
        return Judge(read(self.folder)).judge()


def made(folder: Path) -> Made:
    """Return records without a fault: chaos-0 leads and places two bindings, then chaos-1 leads and places another."""
    found = Made(folder)
    for name in ("bindings", "clusters", "leases"):
        found.add(name, gap=found.revision)
    for name in ("m1", "m2"):
        found.store("clusters", name, cluster(name))
    for name, scheduler in (
        ("a", "my-scheduler"),
        ("b", "my-scheduler"),
        ("c", "my-scheduler"),
        ("d", "default-scheduler"),
    ):
        value = binding(name, replicas=2, placement={"replicaScheduling": DUPLICATED})
        value["metadata"] |= {"namespace": "chaos", "uid": f"uid-{name}", "generation": 1}
        value["spec"]["schedulerName"] = scheduler
        found.store("bindings", f"chaos/{name}", value)
    found.mark("begin")
    found.lease("chaos-0", "one")
    found.place("chaos-0", "chaos/a")
    found.place("chaos-0", "chaos/b")
    found.place("upstream", "chaos/d")
    found.now = 50.0
    found.lease("chaos-1", "two")
    found.place("chaos-1", "chaos/c")
    return found


__all__ = ["FACTS", "START", "Made", "made"]
