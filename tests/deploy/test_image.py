"""The image: what is in it, and that it runs as the chart runs it, on the chart's permissions."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest

from karmada_scheduler import __version__
from tests.controlplane import ControlPlane
from tests.controlplane.members import Member
from tests.deploy import rootfs
from tests.deploy.chart import CHART, ROOT, helm, objects
from tests.deploy.dockerfile import Builder, DockerfileError, Image, run
from tests.deploy.pods import Kubelet
from tests.e2e.workload import Workload, named

pytestmark = pytest.mark.e2e


def test_the_image_holds_an_installation_and_no_tools(image: Image) -> None:
    assert run(image, "karmada-pyscheduler version").strip() == f"karmada-pyscheduler version: {__version__}"
    tools = run(image, "for tool in gcc cc make g++; do command -v $tool || true; done")
    assert tools == ""
    assert not (image.root / "src").exists()
    assert not (image.root / "wheels").exists()
    assert not list((image.root / "opt/karmada-pyscheduler").glob("lib/python*/site-packages/pip"))
    megabytes = (rootfs.size(image.root) - rootfs.size(rootfs.base().root)) / 1e6
    print(f"the image adds {megabytes:.0f} MB to its base")
    assert megabytes < 320  # numpy is 73 of them: docs/decisions/0008-incremental-decisions.md


def test_its_user_can_write_nothing_of_it(image: Image) -> None:
    assert image.user == "65532:65532"
    assert run(image, "id -u").strip() == "65532"
    writable = "find /opt /usr /etc -xdev -writable -not -type l 2>/dev/null | head"
    assert run(image, writable) == ""


def test_it_has_the_labels_of_the_open_container_initiative(image: Image) -> None:
    prefix = "org.opencontainers.image."
    assert image.labels[prefix + "title"] == "karmada-pyscheduler"
    assert image.labels[prefix + "version"] == __version__
    assert image.labels[prefix + "licenses"] == "Apache-2.0"
    assert image.labels[prefix + "base.name"] == rootfs.BASE


def test_the_chart_s_deployment_runs_in_it_without_rights_on_a_read_only_root(
    plane: ControlPlane, host: Member, image: Image, namespace: str, tmp_path: Path
) -> None:
    name = f"in-{namespace}"
    for document in objects({"schedulerName": name}, side="karmada", release=name):
        plane.client.apply(document)
    kubeconfig = plane.kubeconfig_for(f"system:karmada:{name}")
    host.client.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"{name}-config", "namespace": "karmada-system"},
            "data": {"karmada.config": base64.b64encode(kubeconfig.read_bytes()).decode()},
        }
    )
    settings = [
        f"--set=schedulerName={name},kubeconfig.secretName={name}-config",
        "--namespace=karmada-system",
    ]
    helm("install", name, str(CHART), *settings, kubeconfig=host.kubeconfig)
    images = {rootfs.OURS: image}
    with Kubelet(plane, host.client, images, tmp_path / "pods").running() as kubelet:
        deployment = f"/apis/apps/v1/namespaces/karmada-system/deployments/{name}"
        plane.wait_for(
            lambda: host.client.get(deployment).get("status", {}).get("readyReplicas"),
            f"two ready replicas; {kubelet.pods}",
            until=lambda ready: ready == 2,
        )
        Workload(plane, namespace).create(named("sim-a1"), replicas=2, scheduler=name).wait_placed(
            {"sim-a1": 2}
        )
        processes = [pod.process for pod in kubelet.pods[name] if pod.process is not None]
        for process in processes:
            status = dict(
                line.split(":\t", 1)
                for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
                if ":\t" in line
            )
            assert set(status["Uid"].split()) == {"65532"}
            assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
            assert status["NoNewPrivs"] == "1"
            root = Path(f"/proc/{process.pid}/root")
            known = {line.split(":")[2] for line in (root / "etc/passwd").read_text().splitlines()}
            assert "65532" not in known
            given = Path(f"/proc/{process.pid}/environ").read_text().split("\0")
            assert not {"HOME", "USER", "LOGNAME"} & {entry.partition("=")[0] for entry in given}
            assert os.statvfs(root).f_flag & os.ST_RDONLY
            assert not os.statvfs(root / "tmp").f_flag & os.ST_RDONLY
        [leader] = [
            lease["spec"]["holderIdentity"]
            for lease in plane.client.list("/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases")
            if lease["metadata"]["name"] == name
        ]
        assert leader.partition("_")[0] in {pod.name for pod in kubelet.pods[name]}
        helm("uninstall", name, "--namespace=karmada-system", kubeconfig=host.kubeconfig)
        plane.wait_for(lambda: name not in kubelet.pods, "the Pods to be gone")
    assert [process.exit_status for process in processes] == [0, 0]


def test_an_image_with_plugins_is_three_lines_on_top(image: Image, tmp_path: Path) -> None:
    """The Dockerfile of docs/operations.md, beside a package of docs/examples."""
    text = (ROOT / "docs" / "operations.md").read_text()
    [dockerfile] = [block.partition("```")[0] for block in text.split("```dockerfile\n")[1:]]
    assert len(dockerfile.strip().splitlines()) == 1 + 3
    context = tmp_path / "testfilter"
    shutil.copytree(ROOT / "docs" / "examples" / "testfilter", context)
    (context / "Dockerfile").write_text(dockerfile)

    def find(reference: str) -> Image:
        assert reference.endswith("karmada-pyscheduler:0.1.0")
        return image

    built = Builder(context, tmp_path / "stages", find=find).build(context / "Dockerfile")
    assert built.user == image.user
    assert built.entrypoint == image.entrypoint
    assert not (built.root / "src").exists()
    assert "TestFilter" in run(built, "karmada-pyscheduler plugins")
    assert "TestFilter" not in run(image, "karmada-pyscheduler plugins")


def test_a_dockerfile_that_copies_what_is_ignored_is_refused(image: Image, tmp_path: Path) -> None:
    (tmp_path / "context").mkdir()
    for name, text in {
        "Dockerfile": "FROM ours\nCOPY secret.txt /\n",
        ".dockerignore": "*\n",
        "secret.txt": "",
    }.items():
        (tmp_path / "context" / name).write_text(text)
    builder = Builder(tmp_path / "context", tmp_path / "stages", find=lambda _: Image(tmp_path / "context"))
    with pytest.raises(DockerfileError, match=r"COPY secret\.txt: \.dockerignore keeps it out"):
        builder.build(tmp_path / "context" / "Dockerfile")
