"""The configuration file: kube-scheduler's fields, and all problems together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.config.configuration_file import load
from karmada_scheduler.config.extenders import ExtenderConfig, ExtenderTLS, ManagedResource
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.config.profiles import (
    PluginArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    ProfileConfig,
    SchedulerConfiguration,
    plugin_budget,
)
from karmada_scheduler.framework.extension_points import Point

OURS = "apiVersion: pyscheduler.karmada.io/v1alpha1\nkind: KarmadaSchedulerConfiguration\n"
KUBERNETES = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def loaded(path: Path, text: str, **kwargs: Any) -> SchedulerConfiguration:
    path.write_text(text)
    return load(path, **kwargs)


def problems(path: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        loaded(path, text)
    lines = [str(problem) for problem in refused.value.problems]
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


FULL = """
profiles:
- schedulerName: gpu
  percentageOfNodesToScore: 100
  plugins:
    multiPoint:
      enabled: [{name: Cost, weight: 2}]
    score:
      enabled:
      - name: FreeGpu
        weight: 5
      disabled:
      - name: "*"
    preBind: {enabled: [{name: Quota}]}
    permit:
  pluginConfig:
  - name: Cost
    args: {file: /etc/prices}
  - name: Quota
extenders:
- urlPrefix: https://gpu.example.com/scheduler
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 3
  bindVerb: bind
  enableHTTPS: true
  httpTimeout: 1m30s
  nodeCacheCapable: true
  ignorable: true
  managedResources: [{name: example.com/gpu, ignoredByScheduler: true}]
  tlsConfig: {serverName: gpu, caData: aGVsbG8=}
- {urlPrefix: "http://other", clusterCacheCapable: true, httpTimeout: 0s}
"""


@pytest.mark.parametrize("head", [OURS, KUBERNETES], ids=["ours", "kubernetes"])
def test_a_file_of_kube_scheduler_is_read(path: Path, head: str) -> None:
    assert loaded(path, head + FULL) == SchedulerConfiguration(
        profiles=(
            ProfileConfig(
                scheduler_name="gpu",
                plugins=Plugins(
                    multi_point=PluginSet(enabled=(PluginEntry(name="Cost", weight=2),)),
                    score=PluginSet(
                        enabled=(PluginEntry(name="FreeGpu", weight=5),), disabled=(PluginEntry(name="*"),)
                    ),
                    pre_bind=PluginSet(enabled=(PluginEntry(name="Quota"),)),
                ),
                plugin_config=(
                    PluginArgs(name="Cost", args={"file": "/etc/prices"}),
                    PluginArgs(name="Quota"),
                ),
            ),
        ),
        extenders=(
            ExtenderConfig(
                url_prefix="https://gpu.example.com/scheduler",
                filter_verb="filter",
                prioritize_verb="prioritize",
                weight=3,
                bind_verb="bind",
                enable_https=True,
                http_timeout=90,
                node_cache_capable=True,
                ignorable=True,
                managed_resources=(ManagedResource(name="example.com/gpu", ignored_by_scheduler=True),),
                tls_config=ExtenderTLS(server_name="gpu", ca_data=b"hello"),
            ),
            ExtenderConfig(url_prefix="http://other", node_cache_capable=True, http_timeout=5),
        ),
        warnings=(
            (
                "extenders[0].managedResources[0].ignoredByScheduler has no effect: "
                "example.com/gpu counts when capacity is estimated"
            ),
        ),
        source=str(path),
        is_kubernetes=head == KUBERNETES,
    )


def test_every_extension_point_can_be_configured() -> None:
    assert list(Plugins().by_point) == [*(point.value for point in Point), "multiPoint"]


def test_most_fields_are_optional(path: Path) -> None:
    assert loaded(path, OURS) == SchedulerConfiguration(source=str(path))


def test_a_single_profile_needs_no_name(path: Path) -> None:
    found = loaded(path, OURS + "profiles: [{}]", scheduler_name="mine")
    assert [profile.scheduler_name for profile in found.profiles] == ["mine"]


def test_the_scheduler_name_is_that_of_a_profile(path: Path) -> None:
    text = OURS + "profiles: [{schedulerName: team-a}, {schedulerName: team-b}]"
    assert len(loaded(path, text, scheduler_name="team-b").profiles) == 2
    with pytest.raises(
        ConfigError, match=r"no profile has the schedulerName team-c .* team-a, team-b; did you mean"
    ):
        loaded(path, text, scheduler_name="team-c")


def test_the_default_scheduler_name_needs_no_profile(path: Path) -> None:
    text = OURS + "profiles: [{schedulerName: team-a}]"
    assert [each.scheduler_name for each in loaded(path, text).profiles] == ["team-a"]


def test_the_plugin_timeout_is_optional_and_may_be_a_fraction(path: Path) -> None:
    assert loaded(path, OURS).plugin_timeout_seconds is None
    assert loaded(path, OURS + "pluginTimeoutSeconds: 0.5").plugin_timeout_seconds == 0.5


@pytest.mark.parametrize(
    ("configured", "renew_deadline", "expected"),
    [
        ("", 10.0, 2.0),
        ("", 3.0, 1.5),
        ("", None, 2.0),
        ("pluginTimeoutSeconds: 5", 10.0, 5.0),
        ("pluginTimeoutSeconds: 600", None, 600.0),
    ],
)
def test_the_plugin_timeout_is_half_of_the_renew_deadline_at_most(
    configured: str, renew_deadline: float | None, expected: float, path: Path
) -> None:
    assert plugin_budget(loaded(path, OURS + configured), renew_deadline) == expected


def test_a_longer_plugin_timeout_is_refused_with_both_numbers(path: Path) -> None:
    configuration = loaded(path, OURS + "pluginTimeoutSeconds: 6")
    with pytest.raises(ConfigError) as caught:
        plugin_budget(configuration, 10.0)
    assert str(caught.value) == (
        f"{path}: pluginTimeoutSeconds: must be at most 5, half of --leader-elect-renew-deadline (10s), got 6"
    )


@pytest.mark.parametrize(("seconds", "warns"), [("2", False), ("2.01", True), ("5", True)])
def test_a_plugin_timeout_that_plain_functions_do_not_get_is_a_warning(
    seconds: str, warns: bool, path: Path
) -> None:
    expected = (
        f"pluginTimeoutSeconds: {seconds} seconds are for coroutines; plain functions have 2, because all bindings wait for them",
    )
    assert loaded(path, OURS + f"pluginTimeoutSeconds: {seconds}").warnings == (expected if warns else ())


def test_fields_without_effect_are_warnings(path: Path) -> None:
    text = (
        "parallelism: 16\nleaderElection: {leaderElect: true}\nclientConnection: {qps: 50}\n"
        "percentageOfNodesToScore: 0\npodMaxBackoffSeconds: 10\nextenders: [{urlPrefix: http://x, preemptVerb: p}]\n"
    )
    assert loaded(path, KUBERNETES + text).warnings == (
        (
            "parallelism has no effect: a decision is made in one thread, and --max-in-flight limits what is "
            "being written"
        ),
        "leaderElection has no effect: --leader-elect and its companions set it",
        "clientConnection has no effect: --kubeconfig, --kube-api-qps and --kube-api-burst set it",
        "podMaxBackoffSeconds has no effect: --rate-limiter-max-delay sets it",
        "extenders[0].preemptVerb has no effect: nothing is preempted",
    )


def test_ignored_by_scheduler_is_a_warning(path: Path) -> None:
    text = (
        "extenders:\n- urlPrefix: http://x\n  managedResources:\n"
        "  - {name: a.b/c}\n  - {name: a.b/gpu, ignoredByScheduler: true}\n"
    )
    assert loaded(path, KUBERNETES + text).warnings == (
        "extenders[0].managedResources[1].ignoredByScheduler has no effect: a.b/gpu counts when capacity is estimated",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "expected a mapping with apiVersion and kind, got nothing", id="empty"),
        pytest.param("[]", "expected a mapping with apiVersion and kind, got a list", id="list"),
        pytest.param("a: [", "is no YAML: line 1, column 5: while parsing a flow node", id="broken"),
        pytest.param("a: b\0", "is no YAML: line 1, column 5: the character #x0000", id="control-character"),
        pytest.param("a: !!int x", "is no YAML: line 1, column 4: the value is no int", id="number"),
        pytest.param(
            "a:\n  !!timestamp x",
            "is no YAML: line 2, column 3: the tag !!timestamp is not supported",
            id="date",
        ),
        pytest.param("a: !!bool x", "is no YAML: line 1, column 4: the value is no bool", id="bool"),
        pytest.param("[" * 2000, "is no YAML: line 1, column 201: it is nested too deeply", id="depth"),
        pytest.param(
            "a: 1\n---\nb: 2", "is no YAML: line 2, column 1: expected a single document", id="two-documents"
        ),
        pytest.param("kind: x\nkind: y\n", 'line 2: "kind" stands already in line 1', id="key-twice"),
        pytest.param(
            "a: !!python/object:os.system {}",
            "is no YAML: line 1, column 4: the tag is not supported",
            id="tag",
        ),
    ],
)
def test_a_file_that_has_no_valid_document_is_an_error(path: Path, text: str, expected: str) -> None:
    [line] = problems(path, text)
    assert line.startswith(expected)


def test_a_kind_that_is_no_text_is_an_error(path: Path) -> None:
    assert problems(path, "kind: [a]")[0].startswith("kind: expected KarmadaSchedulerConfiguration or Kube")


def test_all_duplicate_keys_are_reported(path: Path) -> None:
    text = "profiles:\n- schedulerName: a\n  plugins: {score: {}, score: {}}\n  schedulerName: b\n"
    assert sorted(problems(path, OURS + text)) == [
        'line 5: "score" stands already in line 5',
        'line 6: "schedulerName" stands already in line 4',
    ]


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "none.yaml")
    assert str(refused.value) == f"{tmp_path / 'none.yaml'}: cannot be read: No such file or directory"


def test_an_unknown_kind_is_an_error(path: Path) -> None:
    assert problems(path, "apiVersion: v1\nkind: Pod") == [
        'kind: expected KarmadaSchedulerConfiguration or KubeSchedulerConfiguration, got "Pod"'
    ]
    assert problems(path, "apiVersion: v1\nkind: KubeSchedulerConfiguration") == [
        'apiVersion: expected kubescheduler.config.k8s.io/v1 for kind KubeSchedulerConfiguration, got "v1"'
    ]


def test_all_problems_of_structure_are_reported_together(path: Path) -> None:
    text = """
percentageOfNodesToScore: 50
profiles:
- schedulerName: 1
  percentageOfNodesToScore: 10
  plugins:
    scor: {}
    score: {enabled: [Cost], disabled: {}}
    filter: {enabled: [{weight: 1}]}
extenders:
- {httpTimeout: 5}
- urlPrefix: http://x
  nodeCacheCapable: true
  clusterCacheCapable: true
"""
    reason = "can only be 0 or 100: replicas are divided over all clusters that fit, so all have to be found"
    points = ", ".join([*(point.value for point in Point), "multiPoint"])
    assert problems(path, OURS + text) == [
        f"percentageOfNodesToScore: {reason}",
        f"profiles[0].percentageOfNodesToScore: {reason}",
        "profiles[0].schedulerName: expected text, got 1",
        f"profiles[0].plugins.scor: unknown field; known: {points}",
        'profiles[0].plugins.score.enabled[0]: expected a mapping, got "Cost"',
        "profiles[0].plugins.score.disabled: expected a list, got a mapping",
        "profiles[0].plugins.filter.enabled[0].name: is required",
        "extenders[0].httpTimeout: expected a duration such as 5s or 1m30s, got 5",
        "extenders[0].urlPrefix: is required",
        "extenders[1].clusterCacheCapable: is the same field as nodeCacheCapable",
    ]


def test_all_problems_of_values_are_reported_together(path: Path) -> None:
    text = """
pluginTimeoutSeconds: 0
profiles:
- schedulerName: a
  plugins: {score: {enabled: [{name: A}, {name: A}, {name: "*"}, {name: "", weight: -1}]}}
  pluginConfig: [{name: A}, {name: A}]
- schedulerName: a
- {}
"""
    assert problems(path, OURS + text) == [
        "pluginTimeoutSeconds: must be greater than 0",
        'profiles[0].plugins.score.enabled[1].name: plugin "A" already registered as "Score"',
        'profiles[0].plugins.score.enabled[2].name: must be the name of a plugin, got "*"',
        'profiles[0].plugins.score.enabled[3].name: must be the name of a plugin, got ""',
        "profiles[0].plugins.score.enabled[3].weight: must be 0 to 2147483647, got -1",
        "profiles[0].pluginConfig[1].name: repeated config for plugin A",
        'profiles[1].schedulerName: duplicate value "a"',
        "profiles[2].schedulerName: is required where there are several profiles",
    ]


@pytest.mark.parametrize(
    ("extender", "expected"),
    [
        pytest.param("urlPrefix: gpu:80", 'urlPrefix: "gpu:80" is not an address such as https://host:port/path', id="url"),
        pytest.param("urlPrefix: http://x\n  prioritizeVerb: p",
                     "weight: must be 1 or more where there is a prioritizeVerb", id="weight"),
        pytest.param("urlPrefix: http://x\n  httpTimeout: -1s", "httpTimeout: must not be negative", id="timeout"),
        pytest.param("urlPrefix: http://x\n  tlsConfig: {insecure: true, caData: aGk=}",
                     "tlsConfig.insecure: cannot be combined with a CA: either verify the server or do not", id="insecure"),
        pytest.param("urlPrefix: http://x\n  tlsConfig: {certData: aGk=}",
                     "tlsConfig: needs keyFile or keyData for a certificate", id="no-key"),
        pytest.param("urlPrefix: http://x\n  tlsConfig: {keyData: aGk=}",
                     "tlsConfig: needs certFile or certData for a key", id="no-certificate"),
        pytest.param("urlPrefix: http://x\n  tlsConfig: {caFile: /no/ca}",
                     "tlsConfig.caFile: cannot read /no/ca: No such file or directory", id="no-file"),
        pytest.param("urlPrefix: http://x\n  managedResources: [{name: cpu}]",
                     'managedResources[0].name: "cpu" is an invalid extended resource name; valid is: example.com/gpu',
                     id="resource"),
        pytest.param("urlPrefix: http://x\n  managedResources: [{name: a.b/c}, {name: a.b/c}]",
                     'managedResources[1].name: duplicate extender managed resource name "a.b/c"', id="resource-twice"),
    ],
)  # fmt: skip
def test_an_unusable_extender_is_refused(path: Path, extender: str, expected: str) -> None:
    assert problems(path, f"{OURS}extenders:\n- {extender}\n") == [f"extenders[0].{expected}"]


def test_only_one_extender_binds(path: Path) -> None:
    text = "extenders:\n- {urlPrefix: http://x, bindVerb: b}\n- {urlPrefix: http://y, bindVerb: b}\n"
    assert problems(path, OURS + text) == [
        "extenders[1].bindVerb: only one extender can bind, and an earlier one does"
    ]


def test_private_keys_are_not_in_repr() -> None:
    assert "secret" not in repr(ExtenderTLS(key_data=b"secret", cert_data=b"secret"))
