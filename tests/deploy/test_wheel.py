"""The wheel installs from the lock into a clean environment of every supported Python, and runs there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from karmada_scheduler import __version__
from tests.deploy.chart import ROOT
from tests.e2e.workload import Workload, named
from tools.controlplane import ControlPlane, binaries

pytestmark = pytest.mark.e2e

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def _interpreter(version: str) -> Path | None:
    """Return a Python of that version: on PATH, or of pyenv or uv, which do not put all of theirs there."""
    found = shutil.which(f"python{version}")
    homes = [
        *sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python")),
        *sorted((Path.home() / ".local/share/uv/python").glob(f"cpython-{version}.*/bin/python{version}")),
    ]
    for candidate in ([Path(found)] if found else []) + homes:
        code = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
        answer = subprocess.run([candidate, "-c", code], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return candidate
    return None


def _with_what_is_locked(python: Path, version: str) -> Path:
    """Return an environment with requirements/runtime.txt, whose hashes were checked; made once for a lock and a Python."""
    lock = ROOT / "requirements" / "runtime.txt"
    shown = subprocess.run([python, "-VV"], capture_output=True, check=True).stdout
    key = hashlib.sha256(lock.read_bytes() + shown + str(python.resolve()).encode()).hexdigest()[:12]
    made = binaries.cache_folder().with_name("deploy") / f"runtime-{version}-{key}"
    if not made.is_dir():
        unfinished = made.with_name(f"unfinished-{os.getpid()}-{made.name}")
        subprocess.run([python, "-m", "venv", unfinished], check=True)
        uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--compile-bytecode"]
        install = ["--only-binary=:all:", "--require-hashes", "-r", str(lock)]
        subprocess.run([*uv, "--python", str(unfinished / "bin" / "python"), *install], check=True)
        unfinished.rename(made)
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.parametrize("version", VERSIONS)
def test_the_wheel_installs_from_the_lock_and_schedules(
    version: str, wheel: Path, plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version} with ensurepip")
    home = tmp_path / "environment"
    subprocess.run([python, "-m", "venv", "--without-pip", home], check=True)
    locked = _with_what_is_locked(python, version)
    packages = f"lib/python{version}/site-packages"
    shutil.copytree(locked / packages, home / packages, dirs_exist_ok=True)
    pip = [str(locked / "bin" / "python"), "-m", "pip", "--python", str(home / "bin" / "python")]
    subprocess.run([*pip, "install", "--quiet", "--no-compile", "--no-deps", str(wheel)], check=True)
    subprocess.run([*pip, "check"], check=True, capture_output=True)
    program = home / "bin" / "karmada-pyscheduler"
    shown = subprocess.run([program, "version"], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == f"karmada-pyscheduler version: {__version__}"

    name = f"on-python-{version.replace('.', '-')}"
    kubeconfig = plane.kubeconfig_for_scheduler(name)
    flags = [f"--kubeconfig={kubeconfig}", f"--scheduler-name={name}", f"--leader-elect-resource-name={name}"]
    ports = ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
    process = plane.spawn(name, [str(program), *flags, *ports], env={"PYTHONWARNINGS": "default"})
    try:
        web = Workload(plane, namespace).create(named("sim-a1"), replicas=1, scheduler=name)
        plane.wait_for(web.binding, "the binding")
        web.wait_placed({"sim-a1": 1}, timeout=60)
    finally:
        process.stop()
        plane.forget(process)
    assert process.exit_status == 0


def test_the_bill_of_materials_names_everything_that_is_installed(tmp_path: Path) -> None:
    answer = subprocess.run(["make", "sbom"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    sbom = json.loads((ROOT / "dist" / "sbom.cdx.json").read_text())
    assert sbom["bomFormat"] == "CycloneDX"
    assert sbom["metadata"]["component"]["name"] == "karmada-pyscheduler"
    listed = {component["name"].lower().replace("_", "-") for component in sbom["components"]}
    lock = (ROOT / "requirements" / "runtime.txt").read_text()
    pinned = re.findall(r"^([A-Za-z0-9._-]+)==[^\s;]+ *(;[^\\]*)?\\?$", lock, re.MULTILINE)
    everywhere = {name.lower() for name, marker in pinned if not marker}
    assert len(everywhere) > 20
    assert everywhere <= listed | {"karmada-pyscheduler"}
