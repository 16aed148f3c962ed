"""What ``explain`` costs on a live control plane: the part of ``make bench-adviser`` about API servers.

The control plane is real, but without controllers, so that nobody changes what is measured.
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import orjson

from tools.bench import plane
from tools.bench.command_fleet import write
from tools.bench.plane_http import BINDINGS, session
from tools.controlplane import ControlPlane
from tools.controlplane.parallel import in_parallel
from tools.manifests import Manifest, namespace

MOST_RATIO: Final = 4.0
"""Wall time of an explanation, in units of ``kubectl get resourcebindings -A`` next to it."""
MOST_SECONDS: Final = 10.0
MOST_MIB: Final = 500.0
_SMALL: Final = (8, 40)
_LARGE: Final = (1000, 10_000)
"""Clusters and bindings."""
_TURNS: Final = 9
_PATHS: Final = {
    "clusters": "/apis/cluster.karmada.io/v1alpha1/clusters",
    "policies": "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies",
    "templates": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "bindings": BINDINGS,
}
_PATCH: Final = {"Content-Type": "application/merge-patch+json"}

Explain = Callable[..., tuple[float, float]]
"""Runs our command and returns its wall time in seconds and its largest resident set in MiB."""


def measures(folder: Path, run: Explain, only: str) -> Iterator[tuple[str, Callable[[], tuple[str, bool]]]]:
    """Yield what is measured with its name; the control plane runs until the last one was taken."""
    small, large = "live, explain, next to kubectl", f"live, explain -A, {_LARGE[1]:,} bindings"
    if only not in small and only not in large:
        return
    with plane.running(controllers=False) as (karmada, _):
        yield small, partial(_next_to_kubectl, karmada, folder / "live-small", run)
        yield large, partial(_all, karmada, folder / "live-large", run)


def _next_to_kubectl(karmada: ControlPlane, folder: Path, run: Explain) -> tuple[str, bool]:
    """Run both in turns; the best of each counts."""
    _load(karmada, folder, *_SMALL)
    binding = orjson.loads((folder / "bindings.json").read_bytes())["items"][0]["metadata"]
    explain = [
        "explain",
        f"rb/{binding['name']}",
        "-n",
        binding["namespace"],
        f"--kubeconfig={karmada.kubeconfig}",
    ]
    get = [
        str(karmada.binaries.path("kubectl")),
        f"--kubeconfig={karmada.kubeconfig}",
        "get",
        "resourcebindings",
        "-A",
    ]
    ours, theirs = [], []
    for _ in range(_TURNS):
        began = time.perf_counter()
        subprocess.run(get, stdout=subprocess.DEVNULL, check=True)
        theirs.append(time.perf_counter() - began)
        ours.append(run(*explain)[0])
    ratio = min(ours) / min(theirs)
    return f"{min(ours):.3f} s and {min(theirs):.3f} s: {ratio:.1f} times", ratio <= MOST_RATIO


def _all(karmada: ControlPlane, folder: Path, run: Explain) -> tuple[str, bool]:
    _load(karmada, folder, *_LARGE)
    seconds, mib = run("explain", "-A", f"--kubeconfig={karmada.kubeconfig}")
    return f"{seconds:.2f} s, {mib:.0f} MiB", seconds <= MOST_SECONDS and mib <= MOST_MIB


def _load(karmada: ControlPlane, folder: Path, clusters: int, bindings: int) -> None:
    """Create a fleet with its statuses, policies, and a Deployment for each binding; what is there already stays."""
    write(folder, clusters, bindings)
    kinds = ("clusters", "policies", "bindings")
    objects = {kind: orjson.loads((folder / f"{kind}.json").read_bytes())["items"] for kind in kinds}
    spaces = sorted({manifest["metadata"]["namespace"] for manifest in objects["bindings"]})
    in_parallel(lambda name: karmada.client.apply(namespace(name)), spaces, workers=8)
    asyncio.run(_create(karmada.kubeconfig, objects))


async def _create(kubeconfig: Path, objects: dict[str, list[Manifest]]) -> None:
    async with session(kubeconfig, connections=32) as client:

        async def create(kind: str, manifest: Manifest) -> Manifest:
            path = _PATHS[kind].format(namespace=manifest["metadata"].get("namespace"))
            async with client.post(path, json=manifest) as answer:
                created: Manifest = await answer.json()
            if not answer.ok and answer.status != 409:
                raise RuntimeError(f"{path}: {created}")
            if "status" in manifest and answer.ok:
                await _write_status(
                    client, f"{path}/{manifest['metadata']['name']}/status", manifest["status"]
                )
            return created

        async def create_all(kind: str, manifests: Sequence[Manifest]) -> list[Manifest]:
            return await asyncio.gather(*(create(kind, manifest) for manifest in manifests))

        await create_all("clusters", objects["clusters"])
        await create_all("policies", objects["policies"])
        for binding, template in zip(
            objects["bindings"],
            await create_all("templates", list(map(_template, objects["bindings"]))),
            strict=True,
        ):
            binding["spec"]["resource"]["uid"] = template["metadata"].get("uid", "")
        await create_all("bindings", objects["bindings"])


async def _write_status(client: aiohttp.ClientSession, path: str, status: Manifest) -> None:
    body = orjson.dumps({"status": status})
    async with client.patch(path, data=body, headers=_PATCH, raise_for_status=True):
        pass


def _template(binding: Manifest) -> Manifest:
    """Return the Deployment of a binding, claimed by the policy of the binding."""
    metadata, resource = binding["metadata"], binding["spec"]["resource"]
    named = {"name": resource["name"], "namespace": resource["namespace"]}
    pod = {
        "metadata": {"labels": {"app": resource["name"]}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    return {
        "apiVersion": resource["apiVersion"],
        "kind": resource["kind"],
        "metadata": {**named, "labels": metadata["labels"], "annotations": metadata["annotations"]},
        "spec": {
            "replicas": binding["spec"]["replicas"],
            "selector": {"matchLabels": {"app": resource["name"]}},
            "template": pod,
        },
    }
