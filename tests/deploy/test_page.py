"""The page's Deployment, the dashboard and the alerts of the chart."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from karmada_advisor.cli.flags import web
from karmada_pyscheduler.metrics.metrics import Metrics
from tests.deploy.chart import CHART, PAGE, Object, objects, one, pod_of

_NAME = re.compile(r"\b([a-z][a-z0-9_]+)\{")
_DASHBOARD: dict[str, Any] = json.loads((CHART / "files" / "dashboard.json").read_text())


@cache
def _rendered() -> list[Object]:
    return objects(PAGE)


def _metrics() -> set[str]:
    """Return the names of all series that the scheduler serves."""
    metrics = Metrics()
    metrics.workqueues.of("scheduler-queue")
    families = {family.name: family.type for family in metrics.registry.collect()}
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
    chosen = web.make_parser().parse_args(flags)
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


def test_the_dashboard_is_a_config_map_for_the_sidecar() -> None:
    found = one(_rendered(), "ConfigMap", "-dashboard")
    assert found["metadata"]["namespace"] == "monitoring"
    assert found["metadata"]["labels"].items() >= {"grafana_dashboard": "1", "team": "platform"}.items()
    assert json.loads(found["data"]["karmada-pyscheduler.json"]) == _DASHBOARD


def _expressions() -> list[str]:
    return [target["expr"] for panel in _DASHBOARD["panels"] for target in panel.get("targets", ())]


def test_the_dashboard_uses_metrics_and_labels_that_exist() -> None:
    served = _metrics()
    names = {name for expression in _expressions() for name in _NAME.findall(expression)}
    assert len(names) > 20
    assert names <= served, names - served
    for variable in _DASHBOARD["templating"]["list"]:
        for name in re.findall(r"label_values\((\w+)", str(variable["query"])):
            assert name in served


def test_the_dashboard_covers_what_operators_ask_for() -> None:
    text = " ".join(_expressions())
    for name in (
        "queue_wait_seconds",
        "e2e_scheduling_duration_seconds",
        "unplaced_bindings",
        "api_writes_total",
        "rest_client_requests_total",
        "estimator_estimating_request_total",
        "plugin_execution_duration_seconds",
    ):
        assert name in text


def test_panels_have_distinct_ids_and_do_not_overlap() -> None:
    panels = _DASHBOARD["panels"]
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


def test_the_dashboard_is_one_that_grafana_s_schema_knows() -> None:
    """Fields that the types of Grafana's foundation SDK do not have are lost on the way through them."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    known = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(_DASHBOARD)))
    assert _lost(_DASHBOARD, known, "dashboard") == []


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


def test_prometheus_accepts_the_alerts(tmp_path: Path) -> None:
    rules = [
        rule for group in one(_rendered(), "PrometheusRule")["spec"]["groups"] for rule in group["rules"]
    ]
    answer = _check(tmp_path, rules)
    assert answer.returncode == 0, answer.stderr
    assert f"SUCCESS: {len(rules)} rules found" in answer.stdout


def test_prometheus_accepts_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{index}", "expr": expression.replace("$__rate_interval", "5m")}
        for index, expression in enumerate(_expressions())
    ]
    answer = _check(tmp_path, rules)
    assert answer.returncode == 0, answer.stderr


def test_prometheus_s_checker_refuses_a_wrong_expression(tmp_path: Path) -> None:
    assert _check(tmp_path, [{"record": "a:b", "expr": "rate(x[5m]"}]).returncode != 0
