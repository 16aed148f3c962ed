"""A fake kubelet for the Pods of a host cluster, as far as the commands of docs/operations.md need it.

kube-controller-manager makes Pods of Deployments. A Pod here is a process of this machine, not a container: it has the
args and variables of its container, the Pod's name as its host name, and an address of its own in 127.0.2.0/24. Its volumes
are folders, whose paths stand in its args in place of the mount paths. How the container is confined is for test_image.py.
"""

from __future__ import annotations

import base64
import itertools
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tools.controlplane import ControlPlane, Object
from tools.controlplane.api import ApiError, Client
from tools.controlplane.processes import Process

_addresses = itertools.count(10)


@dataclass
class Pod:
    """One Pod, as a process that is started again when it ends."""

    spec: Object
    address: str
    folder: Path
    process: Process | None = None
    starts: int = 0

    @property
    def container(self) -> Object:
        """Its only container."""
        only: Object = self.spec["containers"][0]
        return only

    @property
    def runs_once(self) -> bool:
        """Whether it is not started again: the Pod of `helm test`."""
        return str(self.spec["restartPolicy"]) == "Never"

    def is_ready(self) -> bool:
        """Whether its readiness probe, or else its liveness probe, is answered with 200."""
        probe = (self.container.get("readinessProbe") or self.container["livenessProbe"])["httpGet"]
        ports = {entry["name"]: entry["containerPort"] for entry in self.container.get("ports", ())}
        url = f"http://{self.address}:{ports.get(probe['port'], probe['port'])}{probe['path']}"
        try:
            with requests.Session() as session:
                session.trust_env = False
                return session.get(url, timeout=2).status_code == 200
        except requests.RequestException:
            return False


@dataclass
class Kubelet:
    """Runs the Pods of one namespace of an API server while its ``with`` block runs.

    Attributes:
        programs: The command that stands for an image, by the name of the image.
        pods: The Pods that run, by name.
    """

    plane: ControlPlane
    host: Client
    programs: dict[str, list[str]]
    folder: Path
    namespace: str = "karmada-system"
    pods: dict[str, Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._core = f"/api/v1/namespaces/{self.namespace}"

    @contextmanager
    def running(self) -> Iterator[Kubelet]:
        """Run until the end of the block, then end every Pod."""
        done = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            loop = pool.submit(self._loop, done)
            try:
                yield self
            finally:
                done.set()
                wait([loop])
                for pod in self.pods.values():
                    self._end(pod)
                loop.result()

    def _loop(self, done: threading.Event) -> None:
        while not done.wait(0.3):
            try:
                self._sync()
            except (ApiError, requests.RequestException):
                continue  # such as a Secret that is not there yet

    def _sync(self) -> None:
        found = {pod["metadata"]["name"]: pod for pod in self.host.list(f"{self._core}/pods")}
        for name in self.pods.keys() - found.keys():
            self._end(self.pods.pop(name))
        for name, manifest in found.items():
            if name not in self.pods:
                self.pods[name] = Pod(manifest["spec"], f"127.0.2.{next(_addresses)}", self.folder / name)
            self._run(name, self.pods[name])
            self._report(name, self.pods[name], manifest["status"])

    def _run(self, name: str, pod: Pod) -> None:
        if pod.process is not None:
            if pod.process.exit_status is None or pod.runs_once:
                return
            self.plane.forget(pod.process)
        container = pod.container
        replaced = {"$(POD_IP)": pod.address, **self._services()}
        for mount in container.get("volumeMounts", ()):
            [volume] = [entry for entry in pod.spec["volumes"] if entry["name"] == mount["name"]]
            replaced[mount["mountPath"]] = str(self._fill(pod.folder / "volumes" / volume["name"], volume))
        words = [*container.get("command", ())[1:], *container.get("args", ())]
        known = re.compile("|".join(map(re.escape, replaced)))
        words = [known.sub(lambda match: replaced[match[0]], word) for word in words]
        # A host name of its own, where user namespaces are permitted.
        script = f'hostname {name}; exec "$@"'
        own_name = ["unshare", "--user", "--map-root-user", "--uts", "sh", "-ec", script, "sh"]
        is_python = container.get("command", ())[:1] == ["python"]
        program = [sys.executable] if is_python else self.programs[container["image"]]
        pod.process = self.plane.spawn(name, [*own_name, *program, *words])
        pod.process.stop_requested = True  # its end is the kubelet's business
        pod.starts += 1

    def _services(self) -> dict[str, str]:
        """Return the names of Services with the address of one of their Pods: there is no DNS here."""
        pods = {each["metadata"]["name"]: each["metadata"] for each in self.host.list(f"{self._core}/pods")}
        return {
            f"{service['metadata']['name']}.{self.namespace}.svc": pod.address
            for service in self.host.list(f"{self._core}/services")
            for name, pod in self.pods.items()
            if name in pods and service["spec"]["selector"].items() <= pods[name].get("labels", {}).items()
        }

    def _fill(self, path: Path, volume: Object) -> Path:
        """Write the files of a volume into a folder, and return it."""
        path.mkdir(parents=True, exist_ok=True)
        content: dict[str, bytes] = {}
        source = volume.get("secret") or volume.get("configMap") or {}
        if "secret" in volume:
            data = self.host.get(f"{self._core}/secrets/{source['secretName']}")["data"]
            content = {key: base64.b64decode(value) for key, value in data.items()}
        elif "configMap" in volume:
            data = self.host.get(f"{self._core}/configmaps/{source['name']}")["data"]
            content = {key: value.encode() for key, value in data.items()}
        for item in source.get("items") or [{"key": key, "path": key} for key in content]:
            (path / item["path"]).write_bytes(content[item["key"]])
        return path

    def _report(self, name: str, pod: Pod, known: Object) -> None:
        if pod.runs_once:
            if pod.process is not None and (code := pod.process.exit_status) is not None:
                ended = {"phase": "Failed" if code else "Succeeded"}
                self.host.patch(f"{self._core}/pods/{name}/status", {"status": ended})
            return
        ready = [{"type": "Ready", "status": str(pod.is_ready())}]
        if [{key: entry[key] for key in ready[0]} for entry in known.get("conditions", ())] != ready:
            status = {"phase": "Running", "podIP": pod.address, "conditions": ready}
            self.host.patch(f"{self._core}/pods/{name}/status", {"status": status})

    def _end(self, pod: Pod) -> None:
        if pod.process is not None:
            pod.process.stop(timeout=pod.spec["terminationGracePeriodSeconds"])
            self.plane.forget(pod.process)
