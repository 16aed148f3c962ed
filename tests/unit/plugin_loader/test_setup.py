"""Plugins of all sources in one registry, profiles from it, and reloads while the scheduler runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.config.configuration_file import read
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import SchedulerConfiguration
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler_plugins.registry import in_tree, warnings_about
from tests.unit.plugin_loader.conftest import Write, source

Make = Callable[..., PluginSetup]


class Own:
    name = "Own"

    def score(self, context: object) -> int:
        return 0


@pytest.fixture
def make(folder: Path) -> Make:
    def make(**kwargs: Any) -> PluginSetup:
        return PluginSetup(
            in_tree(FeatureGates()),
            handle_for=PluginHandle,
            **{"packages": list, "directories": [folder], **kwargs},
        )

    return make


def started(setup: PluginSetup) -> PluginSetup:
    setup.start()
    return setup


def scorers(built: BuiltProfiles | None) -> list[str]:
    assert built is not None
    [plugins] = built.by_name.values()
    return [plugin.name for plugin in plugins.at(Point.SCORE)][2:]


def score(built: BuiltProfiles | None, name: str) -> int:
    assert built is not None
    plugin: Any = built.made["default-scheduler", name].plugin
    return int(plugin.score(None))


def configuration(**profile: Any) -> SchedulerConfiguration:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return read({**kind, "profiles": [profile]})


def enabling(*names: str) -> SchedulerConfiguration:
    return configuration(plugins={"multiPoint": {"enabled": [{"name": name} for name in names]}})


def test_plugins_of_all_sources_are_registered(make: Make, write: Write) -> None:
    write("a.py", source("FromFile"))
    setup = make(
        own=[Registration("Own", Own, "main")],
        packages=lambda: [Registration("Packed", type("P", (Own,), {"name": "Packed"}), "acme 1.2")],
    )
    assert scorers(setup.start()) == ["Own", "Packed", "FromFile"]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    path = tmp_path / "other"
    path.mkdir()
    return path


def test_several_directories_have_their_own_helper_files(make: Make, folder: Path, other: Path) -> None:
    for value, each in enumerate((folder, other)):
        (each / "_value.py").write_text(f"VALUE = {value}\n")
        plugin = source(f"P{value}").replace("return 1", "return VALUE")
        (each / "p.py").write_text("from ._value import VALUE\n" + plugin)
    built = make(directories=[other, folder, other]).start()
    assert scorers(built) == ["P1", "P0"]
    assert (score(built, "P0"), score(built, "P1")) == (0, 1)


def test_the_name_of_a_plugin_can_move_to_another_directory(make: Make, write: Write, other: Path) -> None:
    file = write("a.py", source("A", score=1))
    setup = started(make(directories=[file.parent, other]))
    (other / "b.py").write_text(source("A", score=2))
    assert setup.reload() is None
    assert score(setup.built, "A") == 1
    file.unlink()
    setup.reload()
    built = setup.reload() or setup.built
    assert score(built, "A") == 2


def test_no_directory_is_reloaded_while_one_cannot_be_read(
    make: Make, write: Write, other: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = write("a.py", source("A", score=1))
    setup = started(make(directories=[file.parent, other]))
    other.rmdir()
    write("a.py", source("A", score=2))
    assert setup.reload() is None
    assert [record.getMessage() for record in caplog.records] == [
        f"{other}: cannot be read: No such file or directory; the plugins stay as they are"
    ]
    other.mkdir()
    assert score(setup.reload(), "A") == 2


def test_messages_about_the_flag_have_upstreams_texts(make: Make) -> None:
    setup = started(make(tokens=["ClusterAffinity"]))
    assert [message.text for message in setup.messages] == ['Enable Scheduler plugin "ClusterAffinity"']


@pytest.mark.parametrize("token", ["TaintTolerance", "-TaintTolerance"])
def test_an_unknown_name_in_the_flag_is_an_error_with_a_suggestion(make: Make, token: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make(tokens=["*", token]).start()
    [problem] = refused.value.problems
    expected = (
        '--plugins: no plugin named "TaintTolerance"; did you mean "TaintToleration"? known: APIEnablement, '
    )
    assert str(problem).startswith(expected)


def test_the_flag_may_name_a_plugin_that_a_feature_gate_disables(make: Make) -> None:
    make(tokens=["*", "-WorkloadAffinity"], disabled_by_gates=["WorkloadAffinity"]).start()


def test_at_the_start_all_problems_are_raised(make: Make, write: Write) -> None:
    write("a.py", source("Own"))
    broken, duplicate = write("b.py", "broken("), write("c.py", source("ClusterAffinity"))
    setup = make(own=[Registration("Own", Own, "main")])
    with pytest.raises(ConfigError) as refused:
        setup.start()
    assert str(refused.value).splitlines() == [
        f"{broken}: SyntaxError: '(' was never closed (b.py, line 1)",
        f"a plugin named Own already exists: main and {broken.parent / 'a.py'}",
        f"a plugin named ClusterAffinity already exists: in-tree and {duplicate}",
    ]


def test_a_problem_in_a_profile_names_the_configuration_file(make: Make) -> None:
    from karmada_scheduler.structs import replace

    setup = make(configuration=replace(enabling("Unknown"), source="/etc/config.yaml"))
    with pytest.raises(
        ConfigError,
        match=r'^/etc/config.yaml: profiles\[0\]\.plugins\.multiPoint\.enabled\[0\]\.name: no plugin named "Unknown"',
    ):
        setup.start()


def test_without_a_change_nothing_is_reloaded(make: Make, write: Write) -> None:
    write("a.py", source("A"))
    setup = started(make())
    assert setup.reload() is None


def test_a_new_file_is_used(make: Make, write: Write, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    setup = started(make())
    path = write("a.py", source("A"))
    assert scorers(setup.reload()) == ["A"]
    [record] = caplog.records
    assert record.getMessage() == "Loaded plugin"
    assert (record.__dict__["plugin"], record.__dict__["path"]) == ("A", path)


def test_a_saved_file_is_used_and_the_plugins_of_other_files_stay(make: Make, write: Write) -> None:
    write("a.py", source("A", score=1))
    write("b.py", source("B"))
    setup = make()
    before = setup.start()
    write("a.py", source("A", score=2))
    after = setup.reload()
    assert after is not None
    assert score(after, "A") == 2
    assert score(before, "A") == 1
    assert after.made["default-scheduler", "B"].plugin is before.made["default-scheduler", "B"].plugin


def test_a_broken_file_is_refused_with_its_traceback_and_the_previous_version_stays(
    make: Make, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    path = write("a.py", source("A", score=1))
    setup = started(make())
    write("a.py", "raise RuntimeError('not today')\n")
    assert setup.reload() is None
    assert score(setup.built, "A") == 1
    [record] = caplog.records
    assert record.getMessage() == (
        "Refused a new version of a file, the previous version stays: RuntimeError: not today"
    )
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], RuntimeError)
    assert record.__dict__["path"] == path
    caplog.clear()
    assert setup.reload() is None
    assert not caplog.records


def test_a_file_whose_plugin_cannot_be_made_is_refused(
    make: Make, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    write("a.py", source("A", score=1))
    setup = started(make())
    path = write(
        "a.py", source("A", score=2) + "    def __init__(self):\n        raise RuntimeError('no prices')\n"
    )
    assert setup.reload() is None
    assert score(setup.built, "A") == 1
    [record] = caplog.records
    assert record.getMessage().endswith(
        f'stays: failed to initialize plugin "A": RuntimeError: no prices (line 10 of {path})'
    )
    assert record.exc_info


def test_a_name_that_is_taken_is_refused_with_both_origins(
    make: Make, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    first = write("a.py", source("A"))
    setup = started(make())
    second = write("b.py", source("A"))
    assert setup.reload() is None
    assert f"a plugin named A already exists: {first} and {second}" in caplog.text


def test_a_file_with_problems_does_not_affect_other_files(make: Make, write: Write) -> None:
    setup = started(make())
    write("a.py", source("A"))
    write("b.py", source("ClusterAffinity"))
    write("c.py", "broken(")
    write("d.py", source("D"))
    assert scorers(setup.reload()) == ["A", "D"]
    write("c.py", source("C"))
    assert scorers(setup.reload()) == ["A", "C", "D"]


def test_the_plugins_of_a_deleted_file_are_removed(make: Make, write: Write) -> None:
    path = write("a.py", source("A"))
    setup = make()
    assert scorers(setup.start()) == ["A"]
    path.unlink()
    assert scorers(setup.reload()) == []


def test_the_removal_of_a_file_that_a_profile_needs_is_refused(
    make: Make, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    path = write("a.py", source("A"))
    setup = started(make(configuration=enabling("A")))
    path.unlink()
    assert setup.reload() is None
    assert scorers(setup.built) == ["A"]
    assert "Refused to remove the plugins of a file, the previous version stays: profiles[0]" in caplog.text


def test_a_renamed_file_keeps_its_plugins(make: Make, write: Write) -> None:
    path = write("a.py", source("A"))
    setup = started(make(configuration=enabling("A")))
    path.rename(path.with_name("renamed.py"))
    assert scorers(setup.reload()) == ["A"]
    assert setup.registry()["A"].origin.endswith("renamed.py")


def test_two_files_may_exchange_their_plugins(make: Make, write: Write) -> None:
    write("a.py", source("A", score=1))
    write("b.py", source("B", score=2))
    setup = started(make())
    write("a.py", source("B", score=3))
    write("b.py", source("A", score=4))
    after = setup.reload()
    assert (score(after, "A"), score(after, "B")) == (4, 3)


def test_a_plugin_that_no_profile_enables_is_a_warning(
    make: Make, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    setup = started(make(configuration=configuration()))
    write("a.py", source("A"))
    assert scorers(setup.reload()) == []
    assert "Loaded plugin, but no profile enables it" in caplog.text


def test_a_deleted_directory_is_logged_once(
    make: Make, write: Write, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write("a.py", source("A"))
    setup = started(make())
    folder.rename(folder.with_name("elsewhere"))
    assert setup.reload() is None
    assert setup.reload() is None
    [record] = caplog.records
    assert record.getMessage().endswith("No such file or directory; the plugins stay as they are")


def test_without_a_directory_reload_does_nothing() -> None:
    setup = PluginSetup(in_tree(FeatureGates()), handle_for=PluginHandle, packages=list)
    setup.start()
    assert setup.reload() is None


@pytest.mark.parametrize(("graceful", "count"), [(True, 0), (False, 1), (None, 1)])
def test_fail_back_without_graceful_moves_is_a_warning(make: Make, graceful: bool | None, count: int) -> None:
    names = ["FailBack"] if graceful is None else ["FailBack", "PlacementGuard"]
    args = {"graceful": {"enabled": bool(graceful)}}
    profile = {
        "schedulerName": "mine",
        "plugins": {"multiPoint": {"enabled": [{"name": name} for name in names]}},
        "pluginConfig": [{"name": "PlacementGuard", "args": args}] if graceful is not None else [],
    }
    kind = {"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration"}
    built = make(configuration=read({**kind, "profiles": [profile]})).start()
    assert len(list(warnings_about(built.by_name))) == count
