"""The Dockerfile as a text, and the locks that it installs from."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.deploy.chart import ROOT

LOCKS = ROOT / "requirements"
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", "")


def test_every_downloaded_file_has_a_hash() -> None:
    commands = [
        part for line in DOCKERFILE.splitlines() if line.startswith("RUN ") for part in line.split("&&")
    ]
    from_outside = [part for part in commands if "install" in part and "--no-deps" not in part]
    assert len(from_outside) == 2
    for part in from_outside:
        assert "--require-hashes" in part
        assert "--only-binary=:all:" in part  # nothing is compiled, and no setup.py is executed


def test_every_stage_begins_with_the_base_that_is_an_argument_and_nothing_is_executed_in_the_last() -> None:
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    assert "\nRUN " not in DOCKERFILE.rpartition("\nFROM ")[2]


def test_make_image_requires_a_digest_and_prints_how_to_find_it() -> None:
    command = ["make", "image", "PYTHON_IMAGE=python:3.11-slim-bookworm"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode != 0
    assert "the base is not pinned" in answer.stderr
    assert "docker buildx imagetools inspect" in answer.stderr


@pytest.mark.parametrize("engine", ["docker", "podman", "buildah"])
def test_make_image_uses_the_engine_that_is_named(engine: str) -> None:
    settings = [f"ENGINE={engine}", "ENGINE_ARGS=--network=host", "PYTHON_IMAGE=python@sha256:0"]
    command = ["make", "--dry-run", "image", *settings]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"\n{engine} build --network=host --build-arg PYTHON_IMAGE=python@sha256:0 " in answer.stdout


@pytest.mark.parametrize("name", ["runtime.txt", "build.txt"])
def test_shipped_dependencies_have_the_tested_versions(name: str) -> None:
    def pins(lock: str) -> dict[str, str]:
        return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", (LOCKS / lock).read_text(), re.MULTILINE))

    assert pins(name).items() <= pins("dev.txt").items()


@pytest.mark.parametrize("lock", sorted(LOCKS.glob("*.txt")), ids=lambda path: path.name)
def test_every_pin_of_a_lock_has_a_hash(lock: str) -> None:
    entries = re.split(r"^(?=[A-Za-z0-9])", (LOCKS / lock).read_text(), flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert "--hash=sha256:" in entry, entry
