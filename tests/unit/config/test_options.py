"""Flags: upstream's names and spellings, and errors that name the flag."""

from pathlib import Path

import pytest

from karmada_advisor.cli.flags.shared import DECISIONS_OF
from karmada_scheduler.config import flags
from karmada_scheduler.config.features import DEFAULT_RULES, RULES
from karmada_scheduler.config.flags import OptionsError, parse
from karmada_scheduler.config.options import LeaderElection

UPSTREAM_FLAGS = """
kubeconfig master leader-elect leader-elect-resource-name leader-elect-resource-namespace
leader-elect-lease-duration leader-elect-renew-deadline leader-elect-retry-period metrics-bind-address
health-probe-bind-address kube-api-qps kube-api-burst enable-scheduler-estimator
disable-scheduler-estimator-in-pull-mode scheduler-estimator-timeout scheduler-estimator-service-namespace
scheduler-estimator-service-prefix scheduler-estimator-port scheduler-estimator-cert-file
scheduler-estimator-key-file scheduler-estimator-ca-file insecure-skip-estimator-verify
enable-empty-workload-propagation plugins scheduler-name feature-gates enable-pprof profiling-bind-address
rate-limiter-base-delay rate-limiter-max-delay rate-limiter-qps rate-limiter-bucket-size v vmodule
logging-format log-flush-frequency log-text-split-stream log-text-info-buffer-size log-json-split-stream
log-json-info-buffer-size add-dir-header alsologtostderr log-backtrace-at log-dir log-file log-file-max-size
logtostderr one-output skip-headers skip-log-headers stderrthreshold
""".split()


def test_the_defaults_are_upstreams() -> None:
    found = parse([])
    assert found.scheduler_name == "default-scheduler"
    assert found.plugins == ("*",)
    assert found.metrics_address == ":8080"
    assert found.health_address == ":10351"
    assert found.leader_election == LeaderElection(
        enabled=True,
        name="karmada-scheduler",
        namespace="karmada-system",
        lease_duration=15,
        renew_deadline=10,
        retry_period=2,
    )


@pytest.mark.parametrize("name", UPSTREAM_FLAGS)
def test_every_flag_of_upstream_is_known(name: str) -> None:
    known = {text for action in flags.make_parser()._actions for text in action.option_strings}
    assert f"--{name}" in known


@pytest.mark.parametrize(
    ("arguments", "enabled"),
    [
        (["--leader-elect=false"], False),
        (["--leader-elect"], True),
        (["--leader_elect=false"], False),
        (["--leader-elect=F"], False),
    ],
    ids=["value", "bare", "underscore", "go-spelling"],
)
def test_booleans_are_read_as_pflag_reads_them(arguments: list[str], enabled: bool) -> None:
    assert parse(arguments).leader_election.enabled is enabled


def test_plugins_come_as_lists_and_repeated() -> None:
    assert parse(["--plugins=*,-Foo", "--plugins=Bar"]).plugins == ("*", "-Foo", "Bar")


def test_an_empty_plugin_list_enables_nothing() -> None:
    assert parse(["--plugins="]).plugins == ()


def test_durations_have_gos_syntax() -> None:
    found = parse(["--leader-elect-lease-duration=1m30s", "--rate-limiter-base-delay", "500ms"])
    assert found.leader_election.lease_duration == 90
    assert found.retry_limits.base_delay == 0.5


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        (["--health-probe-bind-address=0"], ""),
        (["--health-probe-bind-address=127.0.0.1:1"], "127.0.0.1:1"),
        (["--bind-address=127.0.0.1", "--secure-port=2"], "127.0.0.1:2"),
        (["--secure-port=3"], ":3"),
        (["--bind-address=0.0.0.0"], "0.0.0.0:10351"),
        (["--secure-port=0"], ""),
    ],
)
def test_the_older_flags_of_the_health_address_are_accepted(arguments: list[str], address: str) -> None:
    assert parse(arguments).health_address == address


def test_limits_that_are_not_positive_get_the_default() -> None:
    found = parse(["--rate-limiter-qps=0", "--rate-limiter-base-delay=-1s"])
    assert (found.retry_limits.qps, found.retry_limits.base_delay) == (10, 0.005)


def test_gates_of_a_group_follow_it_unless_they_are_set() -> None:
    gates = parse(["--feature-gates=AllAlpha=true,WorkloadAffinity=false,AllBeta=false"]).feature_gates
    assert gates.enabled("PriorityBasedScheduling")
    assert not gates.enabled("WorkloadAffinity")
    assert not gates.enabled("CustomizedClusterResourceModeling")


def test_decisions_of_is_a_part_of_what_is_handed_down() -> None:
    assert parse([]).feature_gates.rules is DEFAULT_RULES
    options = parse(["--decisions-of=1.17", "--feature-gates=Failover=true"])
    assert options.feature_gates.rules is RULES["1.17"]
    assert options.feature_gates.enabled("Failover")
    assert tuple(RULES) == DECISIONS_OF


@pytest.mark.parametrize(
    ("flags", "is_on"),
    [
        (["--decisions-of=1.19"], True),
        (["--decisions-of=1.18"], False),
        (["--decisions-of=1.17"], False),
        (["--decisions-of=1.19", "--feature-gates=PriorityBasedScheduling=false"], False),
        (["--decisions-of=1.19", "--feature-gates=AllBeta=false"], False),
        (["--decisions-of=1.18", "--feature-gates=AllAlpha=true"], True),
        (["--decisions-of=1.19", "--feature-gates=AllAlpha=true,AllBeta=false"], False),
    ],
)
def test_priority_based_scheduling_is_a_beta_gate_that_is_on_by_default_since_1_19(
    flags: list[str], is_on: bool
) -> None:
    assert parse(flags).feature_gates.enabled("PriorityBasedScheduling") is is_on


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nope=1"], "unknown flag: --nope"),
        (
            ["x"],
            'no command "x"; commands: completion, explain, plan, plugins, rebalance, scheduler, simulate, status, survive, test, web, why-not, version, help; or none, with flags',
        ),
        (["simulat"], 'no command "simulat"; did you mean "simulate"? commands: completion, explain'),
        (["--leader-elect=maybe"], "'maybe' is not true or false"),
        (["--leader-elect-retry-period=2"], "is not a duration such as 15s"),
        (["--scheduler-name="], 'Options.SchedulerName: Invalid value: "": should not be empty'),
        (["--scheduler-estimator-port=70000"], "must be a valid port between 0 and 65535 inclusive"),
        (["--feature-gates=Nope=true"], "unrecognized feature gate: Nope"),
        (["--feature-gates=Failover"], "missing bool value for Failover"),
        (["--feature-gates=Failover=2"], "invalid value of Failover=2"),
        (["--leader-elect-lease-duration=5s"], "--leader-elect-lease-duration must be greater than"),
        (
            ["--leader-elect-lease-duration=10.5s", "--leader-elect-renew-deadline=10.5s"],
            "--leader-elect-lease-duration must be greater than",
        ),
        (
            ["--leader-elect-lease-duration=600000h"],
            "--leader-elect-lease-duration must be at most 2147483647s, the most that a Lease can have",
        ),
        (["--metrics-bind-address=localhost"], "--metrics-bind-address: 'localhost' is not host:port"),
        (["--metrics-bind-address=:²"], "--metrics-bind-address: ':²' is not host:port"),
        ([f"--kube-api-burst={'9' * 400}"], "--kube-api-burst: '99999999999999999999"),
        (["--max-in-flight=many"], "--max-in-flight: 'many' is not an integer"),
        (
            ["--kubeconfig=/no/such/file"],
            "--kubeconfig: cannot read /no/such/file: No such file or directory",
        ),
        (["--logging-format=xml"], "invalid choice: 'xml'"),
        (
            ["--decisions-of=1.16"],
            "argument --decisions-of: invalid choice: '1.16' (choose from '1.18', '1.19', '1.17')",
        ),
    ],
)
def test_a_problem_names_the_flag_and_what_is_wrong(arguments: list[str], message: str) -> None:
    with pytest.raises(OptionsError) as caught:
        parse(arguments)
    assert message in str(caught.value)


def test_the_longest_duration_of_a_lease_and_one_with_a_fraction_are_accepted() -> None:
    assert parse(["--leader-elect-lease-duration=2147483647s"]).leader_election.lease_seconds == 2**31 - 1
    fraction = parse(["--leader-elect-lease-duration=10.9s", "--leader-elect-renew-deadline=10.5s"])
    assert fraction.leader_election.lease_seconds == 11


def test_several_problems_are_reported_at_once() -> None:
    with pytest.raises(OptionsError) as caught:
        parse(["--scheduler-name=", "--resync-period=0s", "--feature-gates=Nope=true"])
    assert len(str(caught.value).splitlines()) == 3


def test_a_readable_kubeconfig_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("{}")
    assert parse([f"--kubeconfig={path}"]).kubeconfig == str(path)


def test_the_configuration_file_and_plugin_directories_must_exist(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.touch()
    found = parse([f"--config={file}", f"--plugin-dir={tmp_path}"])
    assert (found.config, found.plugin_dirs) == (file, (tmp_path,))
    with pytest.raises(OptionsError) as refused:
        parse([f"--config={tmp_path}", f"--plugin-dir={file}"])
    assert str(refused.value).splitlines() == [
        f"--config: cannot read {tmp_path}: Is a directory",
        f"--plugin-dir: cannot read {file}: Not a directory",
    ]


def test_several_plugin_directories_are_kept_in_order(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    given = [f"--plugin-dir={tmp_path}", "--plugin-dir", str(other)]
    assert parse(given).plugin_dirs == (tmp_path, other)
    assert parse(["--plugin-dir="]).plugin_dirs == ()
    with pytest.raises(OptionsError) as refused:
        parse([*given, "--plugin-dir=/nowhere", "--plugin-dir=/nor/here"])
    assert str(refused.value).splitlines() == [
        "--plugin-dir: cannot read /nowhere: No such file or directory",
        "--plugin-dir: cannot read /nor/here: No such file or directory",
    ]


def test_without_a_configuration_file_there_is_none() -> None:
    assert (parse([]).config, parse([]).plugin_dirs) == (None, ())


@pytest.mark.parametrize("address", ["127.0.0.1:10353", "[::1]:10353", "localhost:1", "127.9.9.9:80"])
def test_records_are_served_on_loopback_addresses(address: str) -> None:
    found = parse([f"--explain-bind-address={address}"]).explain
    assert (found.address, found.enabled) == (address, True)


@pytest.mark.parametrize("address", ["0.0.0.0:10353", ":10353", "10.0.0.7:10353", "example.org:1", "[::]:1"])
def test_records_are_not_served_on_other_addresses(address: str) -> None:
    with pytest.raises(
        OptionsError, match=r"--explain-bind-address: .* is not a loopback address .* port-forward"
    ):
        parse([f"--explain-bind-address={address}"])


@pytest.mark.parametrize("address", ["0.0.0.0:10353", ":10353", "127.0.0.1:10353"])
def test_records_with_a_certificate_are_served_on_any_address(address: str) -> None:
    pair = ["--explain-tls-cert-file=tls.crt", "--explain-tls-key-file=tls.key"]
    found = parse([f"--explain-bind-address={address}", *pair]).explain
    assert (found.address, str(found.tls_cert_file), str(found.tls_key_file)) == (
        address,
        "tls.crt",
        "tls.key",
    )
    with pytest.raises(OptionsError, match="belong together: name both"):
        parse([f"--explain-bind-address={address}", pair[0]])


def test_metrics_with_a_certificate_ask_the_api_server_of_the_host(tmp_path: Path) -> None:
    (host := tmp_path / "host").touch()
    pair = ["--metrics-tls-cert-file=tls.crt", "--metrics-tls-key-file=tls.key"]
    found = parse([*pair, f"--metrics-kubeconfig={host}"])
    assert (str(found.metrics_tls_cert_file), str(found.metrics_tls_key_file)) == ("tls.crt", "tls.key")
    assert found.metrics_kubeconfig == str(host)
    assert parse(pair).metrics_kubeconfig == ""
    assert parse([]).metrics_tls_cert_file is None

    for arguments, problem in (
        (pair[:1], "--metrics-tls-cert-file and --metrics-tls-key-file belong together: name both"),
        (pair[1:], "--metrics-tls-cert-file and --metrics-tls-key-file belong together: name both"),
        ([f"--metrics-kubeconfig={host}"], "without --metrics-tls-cert-file nobody is asked about readers"),
        ([*pair, "--metrics-kubeconfig=/none"], "--metrics-kubeconfig: cannot read /none: No such file"),
        (
            [*pair, f"--metrics-kubeconfig={host}", f"--kubeconfig={host}"],
            "is that of the Karmada API server",
        ),
        ([*pair, "--metrics-bind-address=0"], "--metrics-bind-address is 0, so nothing is served"),
        (
            [*pair, "--metrics-bind-address=:10351"],
            ":10351 is the address of the probes, too, and the kubelet has no token",
        ),
    ):
        with pytest.raises(OptionsError, match=problem):
            parse(arguments)


def test_decisions_are_recorded_only_if_the_records_can_be_read(tmp_path: Path) -> None:
    assert not parse([]).explain.enabled
    assert not parse(["--explain-bind-address=0"]).explain.enabled
    found = parse([f"--decision-log={tmp_path / 'log'}", "--explain-memory=8Mi"]).explain
    assert (found.enabled, found.address, found.memory) == (True, "", 8 * 2**20)


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--explain-memory=1Ki", "--explain-memory must be at least 1Mi"),
        ("--explain-memory=much", "'much' is not a size such as 32Mi"),
        ("--explain-allowed-host=http://x", "is not a name of a host"),
        ("--explain-allowed-host=*", "is not a name of a host"),
        ("--decision-log=/", "Is a directory"),
        ("--explain-bind-address=127.0.0.1", "is not host:port"),
    ],
)
def test_flags_of_records_that_cannot_be_used_are_named(flag: str, problem: str) -> None:
    with pytest.raises(OptionsError, match=problem.replace("*", r"\*")):
        parse([flag])


def test_the_size_of_records_is_shown_as_a_quantity(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    assert "(default 32Mi)" in " ".join(capsys.readouterr().out.split())
