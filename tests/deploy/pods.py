"""Deployments of a host cluster, run: what its controllers and kubelets would do, as far as this chart needs it.

A Pod is a process in a root file system of its own: in a mount namespace, with the image's root mounted
read-only if its security context says so, its volumes filled from Secrets and ConfigMaps of the API server,
as its user and group, without capabilities and without a way to new privileges. Its address is one of
127.0.2.0/24. Not done: seccomp (the container runtime brings the profile), limits of resources, network policy.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import requests

from tests.controlplane import ControlPlane, Object
from tests.controlplane.api import ApiError, Client
from tests.controlplane.processes import Process

from .dockerfile import Image

_ENTERING: Final = "sys_chroot,+setuid,+setgid"
_addresses = itertools.count(10)


@dataclass
class Pod:
    """One Pod, as a process that is started again when it ends."""

    name: str
    template: str
    spec: Object
    address: str
    folder: Path
    process: Process | None = None
    starts: int = 0
    problem: str = ""
    due: float = 0.0

    @property
    def is_ready(self) -> bool:
        """Whether its readiness probe, or else its liveness probe, is answered with 200."""
        [container] = self.spec["containers"]
        probe = container.get("readinessProbe") or container["livenessProbe"]
        port = probe["httpGet"]["port"]
        if isinstance(port, str):
            [port] = [entry["containerPort"] for entry in container["ports"] if entry["name"] == port]
        try:
            with requests.Session() as session:
                session.trust_env = False
                url = f"http://{self.address}:{port}{probe['httpGet']['path']}"
                return session.get(url, timeout=2).status_code == 200
        except requests.RequestException:
            return False


@dataclass
class Kubelet:
    """Runs the Deployments of one namespace of an API server while its ``with`` block runs.

    Attributes:
        pods: By the name of their Deployment.
        images: What the names in ``image`` stand for.
    """

    plane: ControlPlane
    host: Client
    images: dict[str, Image]
    folder: Path
    namespace: str = "karmada-system"
    pods: dict[str, list[Pod]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="kubelet", daemon=True)
        self.crash: BaseException | None = None

    @contextmanager
    def running(self) -> Iterator[Kubelet]:
        """Run until the end of the block, then end every Pod."""
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(timeout=30)
            for pod in [pod for pods in self.pods.values() for pod in pods]:
                self._end(pod)
            if self.crash is not None:
                raise self.crash

    def _loop(self) -> None:
        try:
            while not self._stop.wait(0.3):
                try:
                    self._reconcile()
                except (ApiError, requests.RequestException):
                    continue
        except BaseException as error:  # noqa: BLE001 (told at the end of the block)
            self.crash = error

    def _reconcile(self) -> None:
        wanted = {
            deployment["metadata"]["name"]: deployment
            for deployment in self.host.list(f"/apis/apps/v1/namespaces/{self.namespace}/deployments")
        }
        for name in list(self.pods):
            if name not in wanted:
                for pod in self.pods.pop(name):
                    self._end(pod)
        for name, deployment in wanted.items():
            self._serve(name, deployment)

    def _serve(self, name: str, deployment: Object) -> None:
        spec = deployment["spec"]
        template = hashlib.sha256(json.dumps(spec["template"], sort_keys=True).encode()).hexdigest()[:8]
        pods = self.pods.setdefault(name, [])
        current = [pod for pod in pods if pod.template == template]
        old = [pod for pod in pods if pod.template != template]
        replicas = spec.get("replicas", 1)
        if old and (spec.get("strategy", {}).get("type") == "Recreate" or replicas == 0):
            self._drop(pods, old)
        for pod in current[replicas:]:
            self._drop(pods, [pod])
        while sum(pod.template == template for pod in pods) < replicas:
            number = next(_addresses)
            pod_name = f"{name}-{template}-{number}"
            folder = self.folder / pod_name
            pods.append(Pod(pod_name, template, spec["template"]["spec"], f"127.0.2.{number}", folder))
        for pod in pods:
            self._run(pod)
        current = [pod for pod in pods if pod.template == template]
        ready = [pod for pod in current if pod.is_ready]
        if len(ready) >= replicas:
            self._drop(pods, [pod for pod in pods if pod.template != template])
        self._report(deployment, pods=len(pods), current=len(current), ready=len(ready))

    def _report(self, deployment: Object, *, pods: int, current: int, ready: int) -> None:
        metadata = deployment["metadata"]
        status = {
            "observedGeneration": metadata["generation"],
            "replicas": pods,
            "updatedReplicas": current,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max(0, deployment["spec"].get("replicas", 1) - ready),
        }
        known = deployment.get("status", {})
        if any(known.get(key, 0) != value for key, value in status.items()):
            path = f"/apis/apps/v1/namespaces/{metadata['namespace']}/deployments/{metadata['name']}/status"
            self.host.patch(path, {"status": status})

    def _drop(self, pods: list[Pod], leaving: list[Pod]) -> None:
        for pod in leaving:
            pods.remove(pod)
            self._end(pod)

    def _end(self, pod: Pod) -> None:
        if pod.process is not None:
            pod.process.stop(timeout=pod.spec.get("terminationGracePeriodSeconds", 30))
            self.plane.forget(pod.process)
            pod.process = None

    def _run(self, pod: Pod) -> None:
        if pod.process is not None and pod.process.exit_status is None:
            return
        if time.monotonic() < pod.due:
            return
        if pod.process is not None:
            self.plane.forget(pod.process)
        pod.due = time.monotonic() + 2
        if (wanted := pod.spec["containers"][0]["image"]) not in self.images:
            pod.problem = f"there is no image {wanted}"
            return
        try:
            volumes = {volume["name"]: self._fill(pod, volume) for volume in pod.spec.get("volumes", ())}
        except ApiError as error:
            pod.problem = str(error)
            return
        pod.starts += 1
        pod.process = self.plane.spawn(pod.name, ["sh", "-c", self._script(pod, volumes)])
        pod.process.asked_to_stop = True  # its end is the kubelet's business

    def _fill(self, pod: Pod, volume: Object) -> Path:
        """Write the files of a volume, as the group of the Pod may read them."""
        folder = pod.folder / "volumes" / str(volume["name"])
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        group = pod.spec.get("securityContext", {}).get("fsGroup", 0)
        core = f"/api/v1/namespaces/{self.namespace}"
        if "secret" in volume:
            source = volume["secret"]
            found = self.host.get(f"{core}/secrets/{source['secretName']}")
            content = {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
        elif "configMap" in volume:
            source = volume["configMap"]
            found = self.host.get(f"{core}/configmaps/{source['name']}")
            content = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        else:
            assert "emptyDir" in volume, volume
            os.chown(folder, 0, group)
            folder.chmod(0o2777)
            return folder
        paths = {item["key"]: item["path"] for item in source.get("items") or ()} or {
            key: key for key in content
        }
        for key, name in paths.items():
            path = folder / name
            path.write_bytes(content[key])
            os.chown(path, 0, group)
            path.chmod(source.get("defaultMode", 0o644))
        return folder

    def _script(self, pod: Pod, volumes: dict[str, Path]) -> str:
        [container] = pod.spec["containers"]
        image = self.images[container["image"]]
        context = {**pod.spec.get("securityContext", {}), **container.get("securityContext", {})}
        root = pod.folder / "root"
        root.mkdir(exist_ok=True)
        flag = "ro" if context.get("readOnlyRootFilesystem") else "rw"
        lines = [f"mount --bind {image.root} {root}"]
        for mount in container.get("volumeMounts", ()):
            point = mount["mountPath"].lstrip("/")
            (image.root / point).mkdir(parents=True, exist_ok=True)
            lines.append(f"mount --bind {volumes[mount['name']]} {root}/{point}")
            if mount.get("readOnly"):
                lines.append(f"mount -o remount,bind,ro {root}/{point}")
        (image.root / "proc").mkdir(exist_ok=True)
        (image.root / "dev").mkdir(exist_ok=True)
        lines += [f"mount -t proc proc {root}/proc", f"mount --rbind /dev {root}/dev"]
        lines += [f"mount -o remount,bind,{flag} {root}", f"hostname {pod.name}"]
        inside = shlex.join(self._command(pod, container, image, context, root))
        script = "set -e; " + "; ".join(lines) + "; exec " + inside
        return "exec " + shlex.join(
            ["unshare", "--mount", "--uts", "--propagation=private", "sh", "-c", script]
        )

    def _command(self, pod: Pod, container: Object, image: Image, context: Object, root: Path) -> list[str]:
        user, group = image.user.split(":")
        user, group = str(context.get("runAsUser", user)), str(context.get("runAsGroup", group))
        assert not (context.get("runAsNonRoot") and user == "0"), "runAsNonRoot and the user is root"
        environment = dict(image.environment)
        for entry in container.get("env", ()):
            reference = entry.get("valueFrom", {}).get("fieldRef", {})
            is_address = reference.get("fieldPath") == "status.podIP"
            environment[entry["name"]] = pod.address if is_address else entry["value"]

        def filled_in(text: str) -> str:
            return re.sub(r"\$\(([A-Z_]+)\)", lambda match: environment[match[1]], text)

        words = [*(container.get("command") or image.entrypoint), *container.get("args", ())]
        chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin") or "chroot"
        return [
            *("env", "-i", *(f"{name}={value}" for name, value in environment.items())),
            *(shutil.which("setpriv") or "setpriv", f"--bounding-set=-all,+{_ENTERING}", "--inh-caps=-all"),
            *(() if context.get("allowPrivilegeEscalation", True) else ("--no-new-privs",)),
            *(chroot, f"--userspec={user}:{group}", f"--groups={context.get('fsGroup', group)}", str(root)),
            *map(filled_in, words),
        ]
