"""Random sequences of requests, right and wrong ones, for the comparison with a real API server."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from tools.apiserver_model.comparison import CONTINUE_OF, OBJECT_OF, UID_OF, VERSION_OF, Step
from tools.apiserver_model.kinds import BY_NAME, Kind, Object
from tools.apiserver_model.random_manifests import change_of, manifest, status_of
from tools.apiserver_model.writer import MERGE_PATCH, STRATEGIC_MERGE_PATCH

KINDS: Final = {
    "ResourceBinding": 6, "ClusterResourceBinding": 2, "PropagationPolicy": 1, "ClusterPropagationPolicy": 1,
    "Cluster": 3, "Lease": 3, "Event": 2, "Service": 1, "ConfigMap": 1, "Deployment": 3,
}  # fmt: skip
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_WRONG_UID: Final = "00000000-0000-0000-0000-000000000000"


class RandomRequests:
    """One sequence; it keeps to a namespace and to names with a prefix of its own."""

    def __init__(self, number: int) -> None:
        """Draw from the number alone."""
        self.prefix = f"s{number}-"
        self.namespace = f"seq-{number}"
        self.steps: list[Step] = []
        self._random = Random(f"{number}:requests")
        self._touched: dict[tuple[str, str], list[int]] = {}
        self._generated: set[str] = set()
        drawn = self._random.choices(list(KINDS), weights=list(KINDS.values()), k=2)
        self._kinds = [BY_NAME[name] for name in drawn]
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.steps.append(Step("POST", "/api/v1/namespaces", body=manifest))
        for _ in range(self._random.randint(12, 24)):
            self._add()

    def _add(self) -> None:
        kind = self._random.choice(self._kinds)
        name = self.prefix + self._random.choice("ab")
        draw = self._random.choices(
            [self._create, self._get, self._list, self._patch, self._patch_status, self._replace, self._delete,
             self._wrong, self._end_namespace],
            weights=[4, 2, 2, 8, 4, 4, 3, 1, 0.15],
        )[0]  # fmt: skip
        if not self._known(kind, name) and self._random.random() < 0.7:
            draw = self._create
        draw(kind, name)

    def _known(self, kind: Kind, name: str) -> list[int]:
        return self._touched.get((kind.name, name), [])

    def _send(self, kind: Kind, name: str, step: Step) -> None:
        if name:
            self._touched.setdefault((kind.name, name), []).append(len(self.steps))
        self.steps.append(step)

    def _collection(self, kind: Kind) -> str:
        if not kind.namespaced:
            return kind.path
        group = kind.path.rpartition("/")[0]
        return f"{group}/namespaces/{self.namespace}/{kind.plural}"

    def _path(self, kind: Kind, name: str) -> str:
        return f"{self._collection(kind)}/{name}"

    def _create(self, kind: Kind, name: str) -> None:
        body = manifest(kind, name, self.namespace, self._random)
        metadata = body["metadata"]
        draw = self._random.random()
        if draw < 0.15:
            metadata["finalizers"] = ["example.com/keep"]
        elif draw < 0.2:
            metadata |= {"generation": 7, "uid": _WRONG_UID, "creationTimestamp": "2020-01-01T00:00:00Z"}
        elif draw < 0.25:
            metadata["resourceVersion"] = "1"
        elif draw < 0.3 and kind.name not in self._generated:
            self._generated.add(kind.name)  # two would come in any order
            metadata["generateName"] = metadata.pop("name")
            name = ""
        elif draw < 0.35 and kind.has_status:
            body["status"] = status_of(kind, self._random)
        elif draw < 0.38 and kind.namespaced:
            metadata["namespace"] = "elsewhere"
        elif draw < 0.44:
            metadata |= {"labels": {}, "annotations": {}}
        self._send(kind, name, Step("POST", self._collection(kind), body=body))

    def _get(self, kind: Kind, name: str) -> None:
        accept = self._random.choice(["application/json", _METADATA])
        subresource = "/status" if kind.has_status and self._random.random() < 0.3 else ""
        self.steps.append(Step("GET", self._path(kind, name) + subresource, accept=accept))

    def _list(self, kind: Kind, name: str) -> None:
        accept = self._random.choice(["application/json", _METADATA_LIST, _METADATA])
        query = {"limit": "1"} if kind.namespaced and self._random.random() < 0.6 else {}
        path = self._collection(kind)
        self.steps.append(Step("GET", path, query, accept=accept))
        if query:
            first = len(self.steps) - 1
            if self._random.random() < 0.5:
                self._patch(kind, name)
            if self._random.random() < 0.3:
                self._delete(kind, name)
            query = {"limit": "1", "continue": f"{CONTINUE_OF}{first}"}
            self.steps.append(Step("GET", path, query, accept=accept))

    def _guarded(self, kind: Kind, name: str) -> Object:
        """Return metadata for a patch: often a resourceVersion, the last one mostly."""
        known = self._known(kind, name)
        draw = self._random.random()
        if not known or draw < 0.4:
            return {}
        if draw < 0.75:
            return {"resourceVersion": f"{VERSION_OF}{known[-1]}"}
        if draw < 0.85:
            return {"resourceVersion": f"{VERSION_OF}{self._random.choice(known)}"}
        if draw < 0.88:
            return {"resourceVersion": "1"}
        if draw < 0.9:
            return {"resourceVersion": None}
        if draw < 0.94:
            return {"uid": f"{UID_OF}{known[-1]}"}
        if draw < 0.97:
            return {"uid": _WRONG_UID}
        return {"uid": None}

    def _metadata_change(self) -> Object:
        value = self._random.choice(["x", "y", None])
        return self._random.choice(
            [
                {},
                {"labels": {"color": value}},
                {"annotations": {"example.com/note": value}},
                {"labels": None},
                {"finalizers": ["example.com/keep"]},
                {"finalizers": None},
                {"finalizers": []},
                {"finalizers": ["example.com/keep", "example.com/too"]},
                {"generation": 40},
                {"creationTimestamp": None},
                {"deletionTimestamp": None},
                {"deletionGracePeriodSeconds": None},
            ]
        )

    def _patch(self, kind: Kind, name: str) -> None:
        body: Object = {}
        if self._random.random() < 0.7:
            body |= change_of(kind, self._random)
        if kind.has_status and self._random.random() < 0.15:
            body["status"] = status_of(kind, self._random)
        metadata = self._guarded(kind, name)
        if self._random.random() < 0.4:
            metadata |= self._metadata_change()
        if metadata:
            body["metadata"] = metadata
        types = [MERGE_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH]
        content_type = self._random.choice(types) if _is_flat(body) else MERGE_PATCH
        self._send(kind, name, Step("PATCH", self._path(kind, name), body=body, content_type=content_type))

    def _patch_status(self, kind: Kind, name: str) -> None:
        if not kind.has_status:
            return
        body: Object = {"status": status_of(kind, self._random)}
        if metadata := self._guarded(kind, name):
            body["metadata"] = metadata
        if self._random.random() < 0.2:
            body |= change_of(kind, self._random)
        path = f"{self._path(kind, name)}/status"
        self._send(kind, name, Step("PATCH", path, body=body, content_type=MERGE_PATCH))

    def _replace(self, kind: Kind, name: str) -> None:
        known = self._known(kind, name)
        if not known:
            body: Object = manifest(kind, name, self.namespace, self._random)
            subresource = ""
        else:
            of_status = kind.has_status and self._random.random() < 0.25
            base = self._random.choice([known[-1], known[-1], self._random.choice(known)])
            patch = change_of(kind, self._random) if self._random.random() < 0.8 else {}
            metadata = self._random.choice(
                [{}, {}, {}, {"resourceVersion": None}, {"uid": None}, {"uid": _WRONG_UID}, {"generation": None},
                 {"creationTimestamp": None}, {"labels": {"put": "x"}}, {"finalizers": None}, {"name": "other"}]
            )  # fmt: skip
            if of_status:
                # A real server stores who tried to change the metadata, even if it stays as it is.
                base = known[-1]
                metadata = self._random.choice(
                    [{}, {"resourceVersion": None}, {"uid": None}, {"uid": _WRONG_UID}]
                )
            identity = {"apiVersion": kind.api_version, "kind": kind.name}
            body = {OBJECT_OF: base, "patch": {**identity, **patch, "metadata": metadata}}
            subresource = "/status" if of_status else ""
        self._send(kind, name, Step("PUT", self._path(kind, name) + subresource, body=body))

    def _delete(self, kind: Kind, name: str) -> None:
        known = self._known(kind, name)
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        draw = self._random.random()
        if known and draw < 0.15:
            body["preconditions"] = {"uid": f"{UID_OF}{known[-1]}"}
        elif known and draw < 0.3:
            body["preconditions"] = {"resourceVersion": f"{VERSION_OF}{self._random.choice(known)}"}
        elif draw < 0.4:
            body["preconditions"] = {"uid": _WRONG_UID}
        self.steps.append(Step("DELETE", self._path(kind, name), body=body))

    def _wrong(self, kind: Kind, name: str) -> None:
        path = self._path(kind, name)
        nameless = manifest(kind, "", self.namespace, self._random)
        self.steps.append(
            self._random.choice(
                [
                    Step("GET", f"{self._collection(kind)}/{name}/nothing"),
                    Step("GET", f"{path}-missing"),
                    Step("PATCH", f"{path}-missing", body={}, content_type=MERGE_PATCH),
                    Step("DELETE", f"{path}-missing"),
                    Step("PATCH", path, body={"metadata": {"name": "other"}}, content_type=MERGE_PATCH),
                    Step("GET", self._collection(kind), {"resourceVersion": "abc"}),
                    Step("GET", path, {"resourceVersion": "abc"}),
                    Step("GET", kind.path.rpartition("/")[0] + "/nothing"),
                    Step("POST", self._collection(kind), body=nameless),
                ]
            )
        )

    def _end_namespace(self, kind: Kind, name: str) -> None:
        self.steps.append(Step("DELETE", f"/api/v1/namespaces/{self.namespace}"))
        self._create(kind, name)


def _is_flat(body: Any) -> bool:
    """Return whether a patch has no lists, which a strategic merge patch merges."""
    if isinstance(body, dict):
        return all(map(_is_flat, body.values()))
    return not isinstance(body, list)
