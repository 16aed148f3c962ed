"""The image: the Dockerfile builds, and the image runs confined as the chart confines it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from karmada_scheduler import __version__
from tests.deploy import buildah
from tests.deploy.buildah import BASE, Buildah
from tests.deploy.chart import ROOT, container, objects, one
from tests.e2e.workload import Workload, named
from tools.controlplane import ControlPlane, Object
from tools.controlplane.processes import Process

pytestmark = pytest.mark.e2e

OURS = f"registry.example/karmada-pyscheduler:{__version__}"
PLUGINS = f"with-testfilter:{__version__}"
INSTALLED = "opt/karmada-pyscheduler"
ADDRESS = "127.0.3.1"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """buildah with a base image, and with our image built on it by ``make image``."""
    if reason := buildah.why_not():
        pytest.skip(reason)
    with Buildah.with_base(tmp_path_factory.mktemp("buildah")) as engine:
        digest = engine.call("images", "--digests", "--format={{.Digest}}", BASE).strip()
        settings = {
            "ENGINE": " ".join(engine.command),
            "ENGINE_ARGS": " ".join(engine.build_options),
            "PYTHON_IMAGE": f"{BASE}@{digest}",
            "IMAGE": OURS,
        }
        buildah.call("make", "image", *(f"{name}={value}" for name, value in settings.items()))
        yield engine


def test_the_image_starts_the_scheduler_as_a_user_without_rights(engine: Buildah) -> None:
    config = engine.config(OURS)
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["karmada-pyscheduler"]
    assert engine.run(OURS, "id", "-u").strip() == "65532"
    version = engine.run(OURS, *config["Entrypoint"], "version")
    assert version.strip() == f"karmada-pyscheduler version: {__version__}"


def test_the_labels_of_the_image_name_version_revision_and_base(engine: Buildah) -> None:
    prefix = "org.opencontainers.image."
    labels = engine.config(OURS)["Labels"]
    assert labels[prefix + "title"] == "karmada-pyscheduler"
    assert labels[prefix + "licenses"] == "Apache-2.0"
    assert labels[prefix + "version"] == __version__
    assert labels[prefix + "revision"] == buildah.call("git", "rev-parse", "HEAD").strip()
    assert labels[prefix + "base.name"].startswith(f"{BASE}@sha256:")


def test_the_image_has_no_sources_compilers_or_pip(engine: Buildah) -> None:
    assert engine.run(OURS, "sh", "-c", "command -v gcc cc make g++ || true") == ""
    with engine.mounted(OURS) as root:
        assert not (root / "src").exists()
        assert not (root / "wheels").exists()
        assert not list((root / INSTALLED).glob("lib/python*/site-packages/pip"))
        size = buildah.call("du", "--summarize", "--block-size=1M", str(root / INSTALLED))
    assert int(size.split()[0]) < 320  # numpy is 70 of them: docs/decisions/0008-incremental-decisions.md


def test_the_user_of_the_image_cannot_write_its_files(engine: Buildah) -> None:
    writable = "find /opt /usr /etc -xdev -writable -not -type l 2>/dev/null || true"
    assert engine.run(OURS, "sh", "-c", writable) == ""


def test_an_image_with_plugins_is_three_lines_on_top(engine: Buildah, tmp_path: Path) -> None:
    """The Dockerfile of docs/operations.md and a package of docs/examples."""
    text = (ROOT / "docs" / "operations.md").read_text()
    [dockerfile] = [block.partition("```")[0] for block in text.split("```dockerfile\n")[1:]]
    assert len(dockerfile.strip().splitlines()) == 1 + 3
    context = tmp_path / "testfilter"
    shutil.copytree(ROOT / "docs" / "examples" / "testfilter", context)
    (context / "Dockerfile").write_text(dockerfile)
    engine.call("build", *engine.build_options, f"--tag={PLUGINS}", str(context))
    above, below = engine.config(PLUGINS), engine.config(OURS)
    assert (above["User"], above["Entrypoint"]) == (below["User"], below["Entrypoint"])
    assert "TestFilter" in engine.run(PLUGINS, "karmada-pyscheduler", "plugins")
    assert "TestFilter" not in engine.run(OURS, "karmada-pyscheduler", "plugins")
    with engine.mounted(PLUGINS) as root:
        assert not (root / "src").exists()


def test_it_schedules_under_the_chart_s_security_context_on_a_read_only_root(
    engine: Buildah, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    name = f"in-{namespace}"
    for document in objects({"schedulerName": name}, side="karmada", release=name):
        plane.client.apply(document)
    kubeconfig = plane.kubeconfig_for(f"system:karmada:{name}")
    rendered = objects({"schedulerName": name}, release=name)
    with engine.mounted(OURS) as root:
        script = _confined(rendered, engine.config(OURS), root, kubeconfig, tmp_path / "volume")
        process = plane.spawn(name, ["unshare", "--mount", "sh", "-euc", script])
        try:
            web = Workload(plane, namespace).create(named("sim-a1"), replicas=2, scheduler=name)
            plane.wait_for(web.binding, "the binding")
            web.wait_placed({"sim-a1": 2}, timeout=60)
            _is_confined(process)
        finally:
            process.stop(timeout=30)
            plane.forget(process)
    assert process.exit_status == 0


def _confined(rendered: list[Object], image: Object, root: Path, kubeconfig: Path, volume: Path) -> str:
    """Return a script that becomes the chart's container, in a mount namespace of its own."""
    pod, own = one(rendered, "Deployment")["spec"]["template"]["spec"], container(rendered)
    context = {**pod["securityContext"], **own["securityContext"]}
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    [secret] = [entry["secret"] for entry in pod["volumes"] if entry["name"] == "kubeconfig"]
    volume.mkdir()
    file = volume / secret["items"][0]["path"]
    shutil.copy(kubeconfig, file)
    file.chmod(secret["defaultMode"])
    os.chown(file, 0, context["fsGroup"])
    [config] = [entry["mountPath"] for entry in own["volumeMounts"] if entry["name"] == "kubeconfig"]
    variables = [*image["Env"], f"POD_IP={ADDRESS}"]
    words = [*image["Entrypoint"], *(word.replace("$(POD_IP)", ADDRESS) for word in own["args"])]
    confinement = [
        f"--reuid={context['runAsUser']}",
        f"--regid={context['runAsGroup']}",
        f"--groups={context['fsGroup']}",
        *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"),
    ]
    return f"""
        mount --bind {root} {root}
        mkdir -p {root}{config}
        mount --bind -o ro {volume} {root}{config}
        mount -t tmpfs -o size=16m tmpfs {root}/tmp
        mount -t proc proc {root}/proc
        mount --rbind /dev {root}/dev
        mount -o remount,bind,ro {root}
        exec {shlex.join(["chroot", str(root), "setpriv", *confinement, "env", "-i", *variables, *words])}
    """


def _is_confined(process: Process) -> None:
    """Assert that the kernel shows the process as confined."""
    proc = Path(f"/proc/{process.pid}")
    status = dict(re.findall(r"^(\w+):\t(.*)$", (proc / "status").read_text(), re.MULTILINE))
    assert set(status["Uid"].split()) == {"65532"}
    assert [int(status[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")] == [0] * 5
    assert status["NoNewPrivs"] == "1"
    assert ":65532:" not in (proc / "root/etc/passwd").read_text()
    assert not re.search(r"(^|\0)(HOME|USER|LOGNAME)=", (proc / "environ").read_text())
    assert os.statvfs(proc / "root").f_flag & os.ST_RDONLY
    assert not os.statvfs(proc / "root/tmp").f_flag & os.ST_RDONLY
