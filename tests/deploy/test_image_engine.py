"""The image as a container engine builds it, where there is one, on the Debian that stands in for the base.

buildah is the engine that needs no service and, with its isolation ``chroot``, no runtime and no cgroups
either. Its storage is a folder of the test's own. Nothing is fetched but what the Dockerfile installs.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from karmada_scheduler import __version__
from tests.deploy import rootfs
from tests.deploy.chart import ROOT
from tests.deploy.dockerfile import Image

pytestmark = pytest.mark.e2e

BASE: Final = f"docker.io/library/{rootfs.BASE}"
OURS: Final = "registry.example/karmada-pyscheduler:0.1.0"
AUTHORITIES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
INSTALLED: Final = "opt/karmada-pyscheduler"


@dataclass(frozen=True, slots=True)
class Engine:
    """buildah, its storage, and what its builds need to reach the package index as this machine does."""

    command: tuple[str, ...]
    build_options: tuple[str, ...]

    def call(self, *arguments: str) -> str:
        """Run buildah and return what it prints; its complaint is the failure's text."""
        return _call([*self.command, *arguments])

    @contextmanager
    def container(self, image: str) -> Iterator[str]:
        """A container of an image that is here."""
        name = self.call("from", "--pull-never", image).strip()
        try:
            yield name
        finally:
            self.call("rm", name)

    @contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """The root file system of an image."""
        with self.container(image) as name:
            root = Path(self.call("mount", name).strip())
            try:
                yield root
            finally:
                self.call("umount", name)

    def run(self, image: str, *command: str) -> str:
        """Run a command in an image as the image's user."""
        with self.container(image) as name:
            return self.call("run", name, "--", *command)

    def config(self, image: str) -> dict[str, Any]:
        """Return the image's configuration as the Open Container Initiative defines it."""
        inspected = json.loads(self.call("inspect", "--type=image", image))
        config: dict[str, Any] = inspected["OCIv1"]["config"]
        return config


def _call(command: list[str], environment: Mapping[str, str] | None = None) -> str:
    answer = subprocess.run(
        command,
        cwd=ROOT,
        env={"BUILDAH_ISOLATION": "chroot", **os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, f"{' '.join(command)}:\n{answer.stdout[-3000:]}\n{answer.stderr[-3000:]}"
    return answer.stdout


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Return buildah, with the stand-in for the base in its storage under the base's name."""
    program = shutil.which("buildah")
    if program is None:
        pytest.skip("this machine has no buildah")
    try:
        base = rootfs.base()
    except rootfs.CannotBuildError as error:
        pytest.skip(f"there is no base to build on: {error}")
    folder = tmp_path_factory.mktemp("engine")
    options = ["--pull-never", "--network=host"]
    if AUTHORITIES.exists():
        settings = folder / "pip.conf"
        settings.write_text(f"[global]\ncert = {AUTHORITIES}\n")
        options += [f"--volume={settings}:/etc/pip.conf:ro", f"--volume={AUTHORITIES}:{AUTHORITIES}:ro"]
    storage = (f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}")
    engine = Engine((program, *storage), tuple(options))
    container = engine.call("from", "scratch").strip()
    root = engine.call("mount", container).strip()
    _call(["cp", "--archive", f"{base.root}/.", root])
    engine.call("umount", container)
    engine.call("config", f"--env=PATH={base.environment['PATH']}", container)
    engine.call("commit", "--quiet", "--rm", container, BASE)
    yield engine
    engine.call("rm", "--all")
    engine.call("rmi", "--all", "--force")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def built(engine: Engine) -> str:
    """The name of our image, as ``make image`` has the engine build it."""
    digest = engine.call("images", "--digests", "--format={{.Digest}}", BASE).strip()
    settings = {
        "ENGINE": " ".join(engine.command),
        "ENGINE_ARGS": " ".join(engine.build_options),
        "PYTHON_IMAGE": f"{BASE}@{digest}",
        "IMAGE": OURS,
    }
    _call(["make", "image", *(f"{name}={value}" for name, value in settings.items())])
    return OURS


def test_the_engine_s_image_starts_as_its_user(engine: Engine, built: str) -> None:
    config = engine.config(built)
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["karmada-pyscheduler"]
    assert engine.run(built, "id", "-u").strip() == "65532"
    version = engine.run(built, *config["Entrypoint"], "version")
    assert version.strip() == f"karmada-pyscheduler version: {__version__}"
    assert engine.run(built, *config["Entrypoint"], "--help").startswith("usage: karmada-pyscheduler")


def test_the_engine_s_labels_tell_version_revision_and_base(engine: Engine, built: str) -> None:
    prefix = "org.opencontainers.image."
    labels = engine.config(built)["Labels"]
    assert labels[prefix + "version"] == __version__
    assert labels[prefix + "revision"] == _call(["git", "rev-parse", "HEAD"]).strip()
    assert labels[prefix + "base.name"].startswith(f"{BASE}@sha256:")


def test_the_engine_makes_what_the_steps_make_without_one(engine: Engine, built: str, image: Image) -> None:
    config = engine.config(built)
    ours = dict(entry.split("=", 1) for entry in config["Env"])
    assert ours == dict(image.environment)
    assert config["Labels"].keys() - {"io.buildah.version"} == image.labels.keys()
    with engine.mounted(built) as root:
        assert _files(root / INSTALLED) == _files(image.root / INSTALLED)
        assert {entry.name for entry in root.iterdir()} == {entry.name for entry in image.root.iterdir()}
        whole, installed = rootfs.size(root), rootfs.size(root / INSTALLED)
    print(f"the engine's image: {whole / 1e6:.0f} MB, {installed / 1e6:.0f} MB of them ours")


def test_the_engine_builds_an_image_with_plugins_on_top(engine: Engine, built: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    [dockerfile] = [block.partition("```")[0] for block in text.split("```dockerfile\n")[1:]]
    context = tmp_path / "testfilter"
    shutil.copytree(ROOT / "docs" / "examples" / "testfilter", context)
    (context / "Dockerfile").write_text(dockerfile)
    engine.call("build", *engine.build_options, "--tag=with-testfilter:0.1.0", str(context))
    config, below = engine.config("with-testfilter:0.1.0"), engine.config(built)
    assert (config["User"], config["Entrypoint"]) == (below["User"], below["Entrypoint"])
    assert "TestFilter" in engine.run("with-testfilter:0.1.0", "karmada-pyscheduler", "plugins")
    assert "TestFilter" not in engine.run(built, "karmada-pyscheduler", "plugins")
    with engine.mounted("with-testfilter:0.1.0") as root:
        assert not (root / "src").exists()


def _files(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Return mode, owner, group and the content's SHA-256 of everything below a folder.

    Compiled modules count without their content: they hold the time at which their source was installed.
    """
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        has_content = stat.S_ISREG(status.st_mode) and path.suffix != ".pyc"
        content = hashlib.sha256(path.read_bytes()).hexdigest() if has_content else ""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_uid, status.st_gid, content)
    return found
