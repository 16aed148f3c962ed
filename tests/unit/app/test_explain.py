"""The configuration in the state of the process, and its hash in records."""

from pathlib import Path

from karmada_pyscheduler.app.records import RecordedConfiguration, default_profiles
from karmada_scheduler.config import flags
from karmada_scheduler.framework.profile.profiles import Profiles
from karmada_scheduler.testing import framework


def _hash(*arguments: str, select: tuple[str, ...] = ("*",)) -> str:
    return RecordedConfiguration(flags.parse(arguments), Profiles({"ours": framework(select=select)})).hash()


def test_the_same_configuration_has_the_same_hash() -> None:
    assert _hash() == _hash()
    assert _hash("--v=4", "--explain-bind-address=127.0.0.1:1") == _hash()


def test_gates_plugins_and_files_change_the_hash(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("a: 1")
    with_file = _hash(f"--config={config}")
    config.write_text("a: 2")
    hashes = {
        _hash(),
        _hash("--feature-gates=PriorityBasedScheduling=true"),
        _hash("--decisions-of=1.17"),
        _hash("--decisions-of=1.19"),
        _hash("--enable-empty-workload-propagation"),
        _hash(select=("*", "-TaintToleration")),
        with_file,
        _hash(f"--config={config}"),
    }
    assert len(hashes) == 8


def test_a_replaced_plugin_file_changes_the_hash(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("A = 1")
    profiles = Profiles({"ours": framework()})
    configuration = RecordedConfiguration(flags.parse([f"--plugin-dir={tmp_path}"]), profiles)
    before = configuration.hash()
    file.write_text("A = 2")
    assert configuration.hash() == before  # read only when profiles are replaced
    profiles.replace({"ours": framework()})
    assert configuration.hash() != before


def test_a_plugin_file_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to(tmp_path / "nothing")
    assert RecordedConfiguration(
        flags.parse([f"--plugin-dir={tmp_path}"]), Profiles({"ours": framework()})
    ).hash()


def test_the_fields_name_gates_plugins_and_weights() -> None:
    options = flags.parse(["--feature-gates=PriorityBasedScheduling=true"])
    fields = RecordedConfiguration(options, Profiles({"ours": framework()})).fields()
    assert fields["featureGates"]["PriorityBasedScheduling"] is True
    [profile] = fields["profiles"]
    assert profile["schedulerName"] == "ours"
    assert "TaintToleration" in profile["plugins"]["filter"]
    assert fields["hash"] != ""


def test_addresses_and_files_of_credentials_are_no_part_of_it() -> None:
    options = flags.parse(
        [
            "--master=https://secret.example",
            "--scheduler-estimator-key-file=/secret/key",
            "--leader-elect=false",
        ]
    )
    assert "secret" not in str(RecordedConfiguration(options, Profiles({"ours": framework()})).fields())


def test_a_profile_is_a_default_one_by_its_plugins_weights_and_gates_whatever_file_it_is_in(
    tmp_path: Path,
) -> None:
    class Own:
        name = "Own"

        def filter(self, _: object) -> None: ...

    profiles = Profiles(
        {
            "stock": framework(),
            "fewer": framework(select=("*", "-TaintToleration")),
            "own": framework(Own),
        }
    )
    (tmp_path / "config.yaml").write_text("{}")
    for arguments, expected in (
        ((), ["stock"]),
        ((f"--config={tmp_path / 'config.yaml'}",), ["stock"]),
        (("--feature-gates=PriorityBasedScheduling=true",), []),
        (("--decisions-of=1.17",), []),
        (("--enable-empty-workload-propagation",), []),
    ):
        assert default_profiles(flags.parse(arguments), profiles) == expected
