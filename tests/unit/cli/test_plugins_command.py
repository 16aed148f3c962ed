"""``karmada-pyscheduler plugins``, and the main program of a user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from karmada_pyscheduler import app
from karmada_scheduler import logs
from karmada_scheduler.command import main, new_scheduler_command, with_plugin
from karmada_scheduler.config.options import Options
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.framework import SUCCESS, Result
from karmada_scheduler.framework.profile.factory import Registration


class Cost:
    """Prefer cheap clusters.

    Prices come from a file.
    """

    name = "Cost"

    def score(self, context: object) -> int:
        return 1

    def filter(self, context: object) -> Result:
        return SUCCESS


FILE = '''
class FreeGpu:
    """Prefer free GPUs."""
    name = "FreeGpu"
    def score(self, context): return 1
'''

CONFIG = """
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: gpu
  plugins:
    multiPoint: {enabled: [{name: FreeGpu}]}
    score: {disabled: [{name: ClusterAffinity}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "plugins"
    path.mkdir()
    (path / "gpu.py").write_text(FILE)
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


def table(capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return the printed table, split at its gaps, by the first column."""
    rows = [
        [cell.strip() for cell in line.split("  ") if cell] for line in capsys.readouterr().out.splitlines()
    ]
    return {row[0]: row[1:] for row in rows}


def test_all_plugins_are_listed_with_their_points_and_origin(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert main(["plugins", f"--plugin-dir={folder}", "--plugins=*,-TaintToleration"]) == 0
    listed = table(capsys)
    assert listed["NAME"] == ["POINTS", "ORIGIN", "ENABLED", "DESCRIPTION"]
    assert listed["ClusterAffinity"][:3] == ["Filter,Score", "in-tree", "yes"]
    assert listed["TaintToleration"][:3] == ["Filter", "in-tree", "no"]
    assert listed["DefaultBinder"][:3] == ["Bind", "in-tree", "yes"]
    assert listed["FreeGpu"] == ["Score", str(folder / "gpu.py"), "yes", "Prefer free GPUs."]


def test_the_table_is_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plugins"])
    lines = capsys.readouterr().out.splitlines()
    assert len({line.index(" in-tree ") for line in lines[1:]}) == 1


def test_with_several_profiles_the_table_names_the_profile(
    capsys: pytest.CaptureFixture[str], folder: Path, config: Path
) -> None:
    assert main(["plugins", f"--plugin-dir={folder}", f"--config={config}"]) == 0
    listed = table(capsys)
    assert listed["ClusterAffinity"][2] == "default-scheduler, gpu (at Filter)"
    assert listed["FreeGpu"][2] == "gpu"


def test_the_list_is_available_as_json(
    capsys: pytest.CaptureFixture[str], folder: Path, config: Path
) -> None:
    assert main(["plugins", f"--plugin-dir={folder}", f"--config={config}", "-o", "json"]) == 0
    [listed] = [each for each in json.loads(capsys.readouterr().out) if each["name"] == "FreeGpu"]
    assert listed == {
        "name": "FreeGpu",
        "points": ["score"],
        "origin": str(folder / "gpu.py"),
        "enabled": {"default-scheduler": [], "gpu": ["score"]},
        "doc": "Prefer free GPUs.",
    }


def test_problems_that_prevent_a_start_are_printed(
    capsys: pytest.CaptureFixture[str], folder: Path, config: Path
) -> None:
    (folder / "gpu.py").write_text("broken(")
    assert main(["plugins", f"--plugin-dir={folder}", f"--config={config}", "--feature-gates=Nope=true"]) == 1
    printed = capsys.readouterr()
    gates, broken, unknown = printed.err.splitlines()
    assert gates.startswith("Error: --feature-gates: ")
    assert broken == f"Error: {folder / 'gpu.py'}: SyntaxError: '(' was never closed (gpu.py, line 1)"
    assert unknown.startswith(
        f'Error: {config}: profiles[1].plugins.multiPoint.enabled[0].name: no plugin named "FreeGpu"; known: '
    )
    assert printed.out == ""


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize(
    ("broken", "path"),
    [("kind: Nope", "kind"), ("profiles: [{schedulerName: 3}]", "profiles[0].schedulerName"), ("a: [", "")],
)
def test_only_the_problems_are_printed_where_the_scheduler_would_not_start(
    capsys: pytest.CaptureFixture[str], folder: Path, config: Path, broken: str, path: str, output: str
) -> None:
    config.write_text(broken)
    assert main(["plugins", f"--plugin-dir={folder}", f"--config={config}", "-o", output]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"Error: {config}: {path}" in printed.err


def test_fields_without_effect_are_printed(
    capsys: pytest.CaptureFixture[str], folder: Path, config: Path
) -> None:
    config.write_text(CONFIG + "clientConnection: {qps: 50}\n")
    assert main(["plugins", f"--plugin-dir={folder}", f"--config={config}"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "Warning: clientConnection has no effect: --kubeconfig, --kube-api-qps and --kube-api-burst set it"
    ]


def test_a_main_program_of_the_user_has_its_plugins(capsys: pytest.CaptureFixture[str]) -> None:
    command = new_scheduler_command(with_plugin("Cost", Cost))
    assert command(["plugins"]) == 0
    points, origin, enabled, doc = table(capsys)["Cost"]
    assert (points, enabled, doc) == ("Filter,Score", "yes", "Prefer cheap clusters.")
    assert origin.endswith("test_plugins_command.Cost")


def test_a_main_program_of_the_user_schedules_with_its_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Options, list[str]]] = []

    async def run(options: Options, plugins: tuple[Registration, ...]) -> None:
        ran.append((options, [plugin.name for plugin in plugins]))

    monkeypatch.setattr(app, "run", run)
    monkeypatch.setattr(logs, "configure", lambda **_: None)
    assert new_scheduler_command(with_plugin("Cost", Cost))(["--scheduler-name=mine"]) == 0
    [(options, plugins)] = ran
    assert (options.scheduler_name, plugins) == ("mine", ["Cost"])


def test_unusable_plugins_are_refused_before_other_checks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = new_scheduler_command(
        with_plugin("Cost", Cost), with_plugin("Cost", Cost), with_plugin("Price", Cost)
    )
    assert command(["plugins"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "Error: Price: its name is 'Cost', it is registered as 'Price'",
        "Error: register out of tree plugins error: a plugin named Cost already exists",
    ]


def test_an_unusable_configuration_ends_the_scheduler_with_all_problems(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(options: Options, plugins: object) -> None:
        raise ConfigError([ConfigProblem("", "one"), ConfigProblem("", "two")])

    monkeypatch.setattr(app, "run", run)
    monkeypatch.setattr(logs, "configure", lambda **_: None)
    assert main([]) == 1
    assert [record.getMessage().partition(": ")[0] for record in caplog.records] == [
        "couldn't create scheduler"
    ] * 2


def test_an_unreadable_configuration_causes_no_errors_about_args(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "needs.py").write_text(
        "from dataclasses import dataclass\n"
        "class Needs:\n    name = 'Needs'\n    @dataclass\n    class Args:\n        size: int\n"
        "    def __init__(self, args, handle): pass\n    def score(self, context): return 1\n"
    )
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG + "nonsense: 1\n")
    assert main(["plugins", f"--plugin-dir={folder}", f"--config={config}"]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "nonsense" in line


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("pyscheduler.karmada.io/v1alpha1\nkind: KarmadaSchedulerConfiguration", 1),
        ("kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration", 0),
    ],
)
def test_a_misspelt_disabled_plugin_is_refused_in_files_of_our_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, status: int
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        f"apiVersion: {kind}\nprofiles: [{{plugins: {{score: {{disabled: [{{name: ClusterLocalty}}]}}}}}}]\n"
    )
    assert main(["plugins", f"--config={config}"]) == status
    assert 'did you mean "ClusterLocality"?' in capsys.readouterr().err


def test_a_plugin_that_a_feature_gate_excludes_may_be_disabled(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        CONFIG.partition("- schedulerName: gpu")[0]
        + "  plugins: {filter: {disabled: [{name: WorkloadAffinity}]}}\n"
    )
    assert main(["plugins", f"--config={config}"]) == 0
