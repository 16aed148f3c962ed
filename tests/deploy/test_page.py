"""The page's Deployment, the dashboard and the alerts of the chart."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from karmada_advisor.cli.flags.web import web_parser
from karmada_advisor.web.metrics import WebMetrics
from karmada_pyscheduler.metrics.metrics import Metrics
from tests.deploy.chart import CHART, PAGE, TEAM_PAGE, Object, objects, one, pod_of

_NAME = re.compile(r"\b([a-z][a-z0-9_]+)\{")
_DASHBOARDS: dict[str, dict[str, Any]] = {
    name: json.loads((CHART / "files" / name).read_text())
    for name in ("dashboard.json", "web-dashboard.json")
}
of_each = pytest.mark.parametrize("dashboard", _DASHBOARDS.values(), ids=_DASHBOARDS)


@cache
def _rendered() -> list[Object]:
    return objects(PAGE)


def _metrics() -> set[str]:
    """Return the names of all series that the scheduler and the page serve."""
    metrics, of_page = Metrics(), WebMetrics()
    metrics.workqueues.of("scheduler-queue")
    of_page.expose_certificate(lambda: 0.0)
    collected = (*metrics.registry.collect(), *of_page.registry.collect())
    families = {family.name: family.type for family in collected}
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}
    return {f"{name}{suffix}" for name, kind in families.items() for suffix in suffixes.get(kind, ("",))} | {
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "up",
    }


def test_the_page_is_off_by_default() -> None:
    assert not [each for each in objects() if each["metadata"]["name"].endswith(("-web", "-dashboard"))]
    assert not [each for each in objects(side="karmada") if each["metadata"]["name"].endswith(":web")]


def test_the_command_accepts_the_arguments_of_the_chart() -> None:
    [container] = pod_of(_rendered(), "-web")["containers"]
    command, *flags = container["args"]
    assert command == "web"
    chosen = web_parser().parse_args(flags)
    assert chosen.bind_address == "127.0.0.1:10401"
    assert chosen.kubeconfig == "/etc/karmada/config/web.config"
    assert chosen.plugins == ["*,-TaintToleration"]
    assert str(chosen.plugin_dir[0]) == "/etc/karmada/plugins"


def test_the_page_has_its_own_kubeconfig_and_no_token() -> None:
    pod = pod_of(_rendered(), "-web")
    assert pod["automountServiceAccountToken"] is False
    [secret] = [volume["secret"] for volume in pod["volumes"] if "secret" in volume]
    assert (secret["secretName"], secret["items"][0]["key"]) == ("web-kubeconfig", "web.config")
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_scheduler_s_selectors_do_not_select_the_page() -> None:
    labels = one(_rendered(), "Deployment", "-web")["spec"]["template"]["metadata"]["labels"]
    found = [each for each in _rendered() if each["kind"] in {"PodDisruptionBudget", "NetworkPolicy"}]
    selecting = set()
    for each in found:
        selector = (each["spec"].get("selector") or each["spec"]["podSelector"])["matchLabels"]
        if selector.items() <= labels.items():
            selecting.add(each["metadata"]["name"])
    assert selecting == {"my-scheduler-web"}
    assert len(found) == 3


def test_the_dashboards_are_a_config_map_for_the_sidecar_and_that_of_the_page_comes_with_it() -> None:
    found = one(_rendered(), "ConfigMap", "-dashboard")
    assert found["metadata"]["namespace"] == "monitoring"
    assert found["metadata"]["labels"].items() >= {"grafana_dashboard": "1", "team": "platform"}.items()
    assert [json.loads(text) for text in found["data"].values()] == [*_DASHBOARDS.values()]
    without = objects({**PAGE, "web": {"enabled": False}})
    assert one(without, "ConfigMap", "-dashboard")["data"].keys() == {"karmada-pyscheduler.json"}


def _expressions(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]


@pytest.mark.parametrize(("name", "more_than"), [("dashboard.json", 20), ("web-dashboard.json", 5)])
def test_the_dashboard_uses_metrics_and_labels_that_exist(name: str, more_than: int) -> None:
    dashboard = _DASHBOARDS[name]
    served = _metrics()
    names = {name for expression in _expressions(dashboard) for name in _NAME.findall(expression)}
    assert len(names) > more_than
    assert names <= served, names - served
    for variable in dashboard["templating"]["list"]:
        for name in re.findall(r"label_values\((\w+)", str(variable["query"])):
            assert name in served


def test_the_dashboard_covers_what_operators_ask_for() -> None:
    text = " ".join(chain.from_iterable(map(_expressions, _DASHBOARDS.values())))
    for name in (
        "queue_wait_seconds",
        "e2e_scheduling_duration_seconds",
        "unplaced_bindings",
        "api_writes_total",
        "rest_client_requests_total",
        "estimator_estimating_request_total",
        "plugin_execution_duration_seconds",
        "web_bindings",
        "web_replicas",
        "web_watch_age_seconds",
        "web_certificate_expiry_seconds",
    ):
        assert name in text


@of_each
def test_panels_have_distinct_ids_and_do_not_overlap(dashboard: dict[str, Any]) -> None:
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells


@of_each
def test_the_dashboard_is_one_that_grafana_s_schema_knows(dashboard: dict[str, Any]) -> None:
    """Fields that the types of Grafana's foundation SDK do not have are lost on the way through them."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    known = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(dashboard)))
    assert _lost(dashboard, known, "dashboard") == []


def _lost(given: Any, known: Any, path: str) -> list[str]:
    if isinstance(given, dict) and isinstance(known, dict):
        return [
            lost
            for key, value in given.items()
            for lost in (_lost(value, known[key], f"{path}.{key}") if key in known else [f"{path}.{key}"])
        ]
    if isinstance(given, list) and isinstance(known, list):
        pairs = zip(given, known, strict=True)
        return [lost for index, pair in enumerate(pairs) for lost in _lost(*pair, f"{path}[{index}]")]
    return []


def _promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not there: `make promtool` installs Debian's package prometheus")
    return found


def _check(folder: Path, rules: list[Object]) -> subprocess.CompletedProcess[str]:
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "rules", "rules": rules}]}))
    return subprocess.run(
        [_promtool(), "check", "rules", str(file)], capture_output=True, text=True, check=False
    )


@cache
def _team_page() -> list[Object]:
    return objects(TEAM_PAGE)


def _alerts() -> list[Object]:
    [group] = one(_team_page(), "PrometheusRule")["spec"]["groups"]
    rules: list[Object] = group["rules"]
    return rules


def test_prometheus_accepts_the_alerts(tmp_path: Path) -> None:
    rules = _alerts()
    answer = _check(tmp_path, rules)
    assert answer.returncode == 0, answer.stderr
    assert f"SUCCESS: {len(rules)} rules found" in answer.stdout


@of_each
def test_prometheus_accepts_the_expressions_of_the_dashboard(
    dashboard: dict[str, Any], tmp_path: Path
) -> None:
    rules = [
        {"record": f"panel:{index}", "expr": expression.replace("$__rate_interval", "5m")}
        for index, expression in enumerate(_expressions(dashboard))
    ]
    answer = _check(tmp_path, rules)
    assert answer.returncode == 0, answer.stderr


BINDINGS = {"scheduler": "default-scheduler", "state": "not running"}
WATCH = {"pod": "a", "kind": "Work"}
FIRING = {
    "the page is down": ("PySchedulerPageStale", "up", {}, "0x60", 6, {}),
    "its watch is silent": ("PySchedulerPageStale", "web_watch_age_seconds", WATCH, "151x60", 6, WATCH),
    "its certificate ends": (
        "PySchedulerPageCertificate",
        "web_certificate_expiry_seconds",
        {},
        "600000x70",
        61,
        {},
    ),
    "nobody decides": (
        "PySchedulerNobodyDecides",
        "web_bindings",
        {"scheduler": "my-schedler", "state": "nobody decides", "cause": "SchedulerMissing"},
        "1x60",
        11,
        {"scheduler": "my-schedler", "cause": "SchedulerMissing"},
    ),
    "decisions of another scheduler fail": (
        "PySchedulerOthersUnplaced",
        "web_bindings",
        {"scheduler": "default-scheduler", "state": "stuck", "cause": "NoClusterFit"},
        "2x60",
        31,
        {"scheduler": "default-scheduler", "cause": "NoClusterFit"},
    ),
    "bindings do not run": (
        "PySchedulerNotRunning",
        "web_bindings",
        BINDINGS | {"cause": "Unhealthy"},
        "3x60",
        31,
        {"scheduler": "default-scheduler", "cause": "Unhealthy"},
    ),
}
"""By what happens: the alert, a series and its labels, its value of each minute, the minute at which it fires, and the labels of the alert."""
UP = ("up", {"pod": "a"}, "1x60")
QUIET: Final[tuple[tuple[str, dict[str, str], str], ...]] = (
    ("web_certificate_expiry_seconds", {}, "700000x70"),
    ("web_watch_age_seconds", WATCH, "149x60"),
    ("web_bindings", BINDINGS | {"cause": "RollingOut"}, "3x60"),
    ("web_bindings", BINDINGS | {"state": "placed", "cause": ""}, "3x60"),
    ("web_bindings", {"scheduler": "my-scheduler", "state": "stuck", "cause": "NoClusterFit"}, "2x60"),
)
"""Series with which no alert about the page or its bindings fires."""


@pytest.mark.parametrize("what", FIRING)
def test_an_alert_of_the_page_fires_after_its_time_and_not_before(what: str, tmp_path: Path) -> None:
    alert, name, labels, values, minute, shown = FIRING[what]
    series = [*([] if name == "up" else [UP]), (name, labels, values)]
    wanted = [{"exp_labels": {**shown, "severity": _rule(alert)["labels"]["severity"]}}]
    assert _tested(tmp_path, alert, series, [(minute - 2, []), (minute, wanted)]) == ""


def test_no_alert_of_the_page_fires_of_a_roll_out_a_fresh_watch_or_what_this_scheduler_s_own_alerts_are_about(
    tmp_path: Path,
) -> None:
    alerts = {alert for alert, *_ in FIRING.values()}
    assert alerts == {each["alert"] for each in _alerts()[16:]}
    for alert in sorted(alerts):
        assert _tested(tmp_path, alert, [UP, *QUIET], [(59, [])]) == ""
    assert _tested(tmp_path, "PySchedulerPageStale", [UP], [(59, [{"exp_labels": {}}])])


def _rule(alert: str) -> Object:
    [found] = [each for each in _alerts() if each["alert"] == alert]
    return found


def _tested(
    folder: Path,
    alert: str,
    series: list[tuple[str, dict[str, str], str]],
    cases: list[tuple[int, list[Object]]],
) -> str:
    """Return what Prometheus finds wrong with the alerts that fire at some minutes; "" for nothing."""
    rule = {name: value for name, value in _rule(alert).items() if name != "annotations"}
    job = {"namespace": "karmada-system", "service": "my-scheduler-web-metrics"}

    def line(name: str, labels: dict[str, str]) -> str:
        written = ",".join(f'{key}="{value}"' for key, value in {**job, **labels}.items())
        return f"{'' if name == 'up' else 'karmada_scheduler_'}{name}{{{written}}}"

    test = {
        "interval": "1m",
        "input_series": [{"series": line(*each[:2]), "values": each[2]} for each in series],
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected}
            for minute, expected in cases
        ],
    }
    rules, tests = folder / "rules.yaml", folder / "test.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "rules", "rules": [rule]}]}))
    tests.write_text(yaml.safe_dump({"rule_files": [str(rules)], "tests": [test]}))
    command = [_promtool(), "test", "rules", str(tests)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if answer.returncode == 0 else answer.stdout + answer.stderr


def test_prometheus_s_checker_refuses_a_wrong_expression(tmp_path: Path) -> None:
    assert _check(tmp_path, [{"record": "a:b", "expr": "rate(x[5m]"}]).returncode != 0
