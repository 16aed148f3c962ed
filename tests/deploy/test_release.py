"""What is published: equal bytes whenever it is built, the files that belong into it, and one version."""

from __future__ import annotations

import datetime as dt
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from karmada_scheduler import __version__
from tests.deploy import release
from tests.deploy.chart import CHART, ROOT, HelmError, helm
from tests.deploy.release import ReleaseError
from tools.controlplane.processes import free_port

EPOCH = "1700000000"
TODAY = dt.date(2026, 12, 24)
PACKAGES = (
    "operator/karmada_pyscheduler",
    "advisor/karmada_advisor",
    "plugins/karmada_scheduler",
    "plugins/karmada_scheduler_plugins",
)


def _tracked(*folders: str) -> set[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {path for path in listed.splitlines() if (ROOT / path).exists()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel, after they were built a second time with equal bytes."""
    folder = tmp_path_factory.mktemp("release")
    twice = [release.distributions(ROOT, folder / each, EPOCH) for each in ("one", "two")]
    [wheel, sdist] = sorted(release.same(twice), key=lambda path: path.suffix, reverse=True)
    return sdist, wheel


def test_the_wheel_holds_the_three_packages_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        files = set(wheel.namelist())
        assert {entry.date_time[:3] for entry in wheel.infolist()} == {(2023, 11, 14)}
    about = f"karmada_pyscheduler-{__version__}.dist-info/"
    described = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert {path.removeprefix(about) for path in files if path.startswith(about)} == described
    packages = {path for path in files if not path.startswith(about)}
    assert packages == {path.partition("/")[2] for path in _tracked(*PACKAGES)}


def test_the_sdist_holds_what_the_wheel_is_built_of(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        files = {entry.name.partition("/")[2] for entry in sdist if entry.isfile()}
    around = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore", "PKG-INFO"}
    assert files == _tracked(*PACKAGES) | around


def test_files_with_other_bytes_are_refused(tmp_path: Path) -> None:
    for name, text in (("one", "1"), ("two", "2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.whl").write_text(text)
    with pytest.raises(ReleaseError, match=r"a\.whl has other bytes when it is built again"):
        release.same([[tmp_path / name / "a.whl"] for name in ("one", "two")])


def test_the_packed_chart_has_the_same_bytes_an_hour_later_and_helm_reads_it(tmp_path: Path) -> None:
    chart = release.archive(ROOT, tmp_path, EPOCH)
    packed = tmp_path / "helm"
    helm("package", str(CHART), f"--destination={packed}")
    [helms] = packed.iterdir()
    with tarfile.open(chart) as one, tarfile.open(helms) as two:
        assert {entry.mtime for entry in one} == {int(EPOCH)} != {entry.mtime for entry in two}
        assert one.getnames() == two.getnames()
        assert "karmada-pyscheduler/values.schema.json" in one.getnames()
    shown = yaml.safe_load(helm("show", "chart", str(chart)))
    assert shown == yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert shown["annotations"]["artifacthub.io/license"] == "Apache-2.0"
    assert helm("template", "x", str(chart)) == helm("template", "x", str(CHART))


@pytest.mark.parametrize("path", release.VERSIONED)
def test_every_place_of_the_version_has_that_of_the_package(path: str) -> None:
    assert set(release.versions(path)) == {__version__}


def test_a_new_version_reaches_every_place_and_heads_the_changes(tmp_path: Path) -> None:
    for path in (*release.VERSIONED, "CHANGELOG.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    release.set_version("9.8.7", TODAY, tmp_path)
    for path in release.VERSIONED:
        text, new = (ROOT / path).read_text(), (tmp_path / path).read_text()
        assert new.count("9.8.7") == len(release.versions(path)) > text.count("9.8.7")
        assert len(new.splitlines()) == len(text.splitlines())
    changes = (tmp_path / "CHANGELOG.md").read_text()
    assert "## [Unreleased]\n\n## [9.8.7] - 2026-12-24\n" in changes
    assert release.notes("9.8.7", tmp_path).startswith("### ")
    with pytest.raises(ReleaseError, match=r"nothing under Unreleased"):
        release.set_version("9.8.8", TODAY, tmp_path)
    assert (tmp_path / "CHANGELOG.md").read_text() == changes


@pytest.mark.parametrize("version", ["", "v1.2.3", "1.2", "1.2.3rc1"])
def test_a_version_of_another_form_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match=r"has to be three numbers: make release VERSION=0\.1\.0$"):
        release.make(version, TODAY)


REGISTRY = """
version: 0.1
storage: {filesystem: {rootdir: FOLDER}}
http: {addr: "127.0.0.1:PORT"}
"""


@pytest.mark.e2e
@pytest.mark.skipif(
    shutil.which("docker-registry") is None, reason="no docker-registry; make test installs Debian's"
)
def test_the_chart_is_pushed_to_a_registry_and_rendered_from_there(tmp_path: Path) -> None:
    port = free_port()
    config = tmp_path / "registry.yaml"
    config.write_text(REGISTRY.replace("FOLDER", str(tmp_path / "registry")).replace("PORT", str(port)))
    chart = release.archive(ROOT, tmp_path, EPOCH)
    registry = subprocess.Popen(["docker-registry", "serve", config], stderr=subprocess.PIPE, text=True)
    try:
        assert registry.stderr is not None
        assert any("listening on" in line for line in registry.stderr)
        charts = f"oci://127.0.0.1:{port}/charts"
        helm("push", str(chart), charts, "--plain-http")
        there = f"{charts}/karmada-pyscheduler"
        assert helm("template", "x", there, "--plain-http", f"--version={__version__}") == helm(
            "template", "x", str(CHART)
        )
        with pytest.raises(HelmError, match="schedulerName"):
            helm("template", "x", there, "--plain-http", "--set=schedulerName=Not_A_Name")
    finally:
        registry.kill()
        registry.communicate()
