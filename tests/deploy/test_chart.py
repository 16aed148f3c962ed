"""The chart: what Helm makes of values, and which values it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from karmada_advisor.cli.flags.web import web_parser
from karmada_advisor.web.metrics import WebMetrics
from karmada_pyscheduler.metrics.metrics import Metrics
from karmada_scheduler.config import flags
from karmada_scheduler.config.options import LeaderElection
from tests.deploy.chart import (
    CHART,
    EVERYTHING,
    PAGE,
    ROOT,
    SECURE_METRICS,
    TEAM_PAGE,
    HelmError,
    Object,
    Values,
    container,
    helm,
    named,
    objects,
    one,
    pod_of,
    profiles,
    render,
)

TOKENS: Values = {
    "enabled": True,
    "kubeconfig": {"secretName": "web"},
    "auth": {"mode": "token"},
}


@pytest.mark.parametrize(
    "values",
    [{}, {"side": "karmada"}, EVERYTHING, PAGE, TEAM_PAGE, SECURE_METRICS],
    ids=["default", "karmada", "everything", "page", "page for tokens", "secure metrics"],
)
def test_helm_lint_finds_nothing(values: Values) -> None:
    answer = helm("lint", "--strict", str(CHART), "--values=-", stdin=json.dumps(dict(values)))
    assert "[WARNING]" not in answer
    assert "[ERROR]" not in answer


def test_every_default_value_is_in_the_schema_and_every_value_of_the_schema_has_a_default() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(part: Any, known: Any, where: str) -> None:
        if (
            isinstance(part, dict)
            and known.get("additionalProperties") is False
            and not where.endswith("Probe")
        ):
            assert part.keys() | {"global"} == known["properties"].keys() | {"global"}, where
            for key, value in part.items():
                compare(value, known["properties"][key], f"{where}.{key}")

    compare(values, schema, "values")


def test_the_defaults_are_two_replicas_of_which_one_leads() -> None:
    found = objects()
    assert [document["kind"] for document in found] == ["PodDisruptionBudget", "Deployment"]
    assert one(found, "Deployment")["spec"]["replicas"] == 2
    assert one(found, "PodDisruptionBudget")["spec"]["minAvailable"] == 1
    chosen = flags.parse(_without_files(container(found)["args"]))
    assert chosen.leader_election == LeaderElection(name="my-scheduler")
    assert chosen.scheduler_name == "my-scheduler"
    assert chosen.plugins == ("*",)


def test_the_pod_meets_the_restricted_pod_security_standard() -> None:
    found = objects()
    pod, own = pod_of(found), container(found)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= {
        "secret",
        "emptyDir",
        "configMap",
    }


def test_the_probes_use_the_health_port() -> None:
    own = container(objects())
    assert own["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health", "scheme": "HTTP"}
    assert own["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health", "scheme": "HTTP"}
    assert {port["name"]: port["containerPort"] for port in own["ports"]} == {
        "metrics": 8080,
        "health": 10351,
    }


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
def test_the_scheduler_accepts_the_arguments_of_the_chart(values: Values) -> None:
    arguments = _without_files(container(objects(values))["args"])
    chosen = flags.parse(arguments)
    assert chosen.health_address == "10.0.0.1:10351"
    assert chosen.metrics_address == "10.0.0.1:8080"


def _without_files(arguments: list[str]) -> list[str]:
    """Return a Pod's arguments as its container gets them, without those that name a file of its volumes."""
    return [
        argument.replace("$(POD_IP)", "10.0.0.1")
        for argument in arguments
        if not argument.startswith(("--kubeconfig=", "--config=", "--plugin-dir="))
    ]


def test_every_value_reaches_its_place() -> None:
    found = objects(EVERYTHING)
    pod, own = pod_of(found), container(found)
    assert own["image"] == "registry.example/team/karmada-pyscheduler@sha256:" + "0" * 64
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    for argument in (
        "--plugins=*,-TaintToleration",
        "--explain-bind-address=127.0.0.1:10400",
        "--explain-memory=64Mi",
        "--feature-gates=MultiplePodTemplatesScheduling=false,PriorityBasedScheduling=true",
        "--decisions-of=1.17",
        "--config=/etc/karmada/scheduler/config.yaml",
        "--plugin-dir=/etc/karmada/plugins",
        "--enable-scheduler-estimator=true",
        "--scheduler-estimator-ca-file=/etc/karmada/pki/scheduler-estimator-client/ca.crt",
        "--resync-period=10m",
    ):
        assert argument in own["args"]
    assert {mount["name"] for mount in own["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert one(found, "PodDisruptionBudget")["spec"]["maxUnavailable"] == "50%"
    assert one(found, "NetworkPolicy")["spec"]["egress"][-1]["ports"][0]["port"] == 8443
    assert one(found, "ServiceMonitor")["metadata"]["labels"]["release"] == "prometheus"
    config, plugins = (document for document in found if document["kind"] == "ConfigMap")
    assert yaml.safe_load(config["data"]["config.yaml"]) == {
        "apiVersion": "pyscheduler.karmada.io/v1alpha1",
        "kind": "KarmadaSchedulerConfiguration",
        "profiles": [{"schedulerName": "my-scheduler"}],
    }
    assert plugins["data"] == {"cheapest_first.py": "# nothing\n"}


def test_a_changed_configuration_rolls_the_pods() -> None:
    def annotations(text: str) -> Object:
        found = objects({"pluginFiles": {"files": {"mine.py": text}}})
        wanted: Object = one(found, "Deployment")["spec"]["template"]["metadata"]["annotations"]
        return wanted

    assert annotations("a = 1\n") == annotations("a = 1\n")
    assert annotations("a = 1\n") != annotations("a = 2\n")


def test_as_a_replacement_it_uses_the_lease_of_karmada_scheduler() -> None:
    assert (
        "--leader-elect-resource-name=karmada-scheduler"
        in container(objects({"schedulerName": "default-scheduler"}))["args"]
    )
    [lease] = one(objects({"schedulerName": "default-scheduler"}, side="karmada"), "Role")["rules"][1][
        "resourceNames"
    ]
    assert lease == "karmada-scheduler"


def test_rbac_objects_are_rendered_only_for_the_karmada_side() -> None:
    rbac = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    assert {document["kind"] for document in objects(EVERYTHING, side="karmada")} == rbac
    assert not rbac & {document["kind"] for document in objects(EVERYTHING)}


def test_metrics_are_open_and_no_token_of_the_host_is_mounted_unless_they_are_secure() -> None:
    for values in ({}, EVERYTHING):
        found = objects(values)
        assert pod_of(found)["automountServiceAccountToken"] is False
        assert "serviceAccountName" not in pod_of(found)
        assert not [each for each in container(found)["args"] if each.startswith("--metrics-tls")]
        assert "ServiceAccount" not in {each["kind"] for each in found}
    assert [each["port"] for each in one(objects(EVERYTHING), "ServiceMonitor")["spec"]["endpoints"]] == [
        "metrics"
    ]


def test_secure_metrics_have_a_certificate_and_an_account_that_may_ask_the_host_who_somebody_is() -> None:
    found = objects(SECURE_METRICS)
    pod = pod_of(found, "my-scheduler")
    own = pod["containers"][0]
    account = one(found, "ServiceAccount")["metadata"]
    binding = one(found, "ClusterRoleBinding")

    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == (account["name"], True)
    assert binding["roleRef"]["name"] == "system:auth-delegator"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    ]
    assert not {"ClusterRole", "Role", "RoleBinding"} & {each["kind"] for each in found}
    assert {
        "--metrics-tls-cert-file=/etc/karmada/metrics/tls.crt",
        "--metrics-tls-key-file=/etc/karmada/metrics/tls.key",
    } <= set(own["args"])
    chosen = flags.parse(_without_files(own["args"]))
    assert (chosen.metrics_address, chosen.metrics_kubeconfig) == ("10.0.0.1:8080", "")
    assert {"name": "metrics", "mountPath": "/etc/karmada/metrics", "readOnly": True} in own["volumeMounts"]
    [volume] = [each["secret"] for each in pod["volumes"] if each["name"] == "metrics"]
    assert volume["secretName"] == "metrics-tls"
    for probe in ("livenessProbe", "readinessProbe"):
        assert own[probe]["httpGet"]["port"] == "health"

    assert pod_of(found, "-web")["automountServiceAccountToken"] is False
    assert "ServiceAccount" not in {each["kind"] for each in objects(SECURE_METRICS, side="karmada")}


def test_secure_metrics_are_scraped_by_https_under_the_name_of_their_service() -> None:
    found = objects(SECURE_METRICS)
    services = {
        each["metadata"]["name"]: each["spec"]["ports"][0]["name"] for each in named(found, "Service")
    }
    secure, of_page = one(found, "ServiceMonitor")["spec"]["endpoints"]

    assert services["my-scheduler-metrics"] == secure["port"] == "https-metrics"
    assert services["my-scheduler-web-metrics"] == of_page["port"] == "metrics"
    assert secure["scheme"] == "https"
    assert secure["tlsConfig"] == {
        "serverName": "my-scheduler-metrics.karmada-system.svc",
        "ca": {"secret": {"name": "metrics-tls", "key": "ca.crt"}},
    }
    assert secure["bearerTokenFile"]
    assert "scheme" not in of_page

    policies = {each["metadata"]["name"]: each["spec"] for each in named(found, "NetworkPolicy")}
    egress = {
        name: {port["port"] for rule in spec["egress"] for port in rule["ports"]}
        for name, spec in policies.items()
    }
    assert {443, 6443} <= egress["my-scheduler"]
    assert not {443, 6443} & egress["my-scheduler-web"]
    assert not {443, 6443} & {
        port["port"]
        for rule in one(objects(EVERYTHING), "NetworkPolicy")["spec"]["egress"]
        for port in rule["ports"]
    }


def _page(found: list[Object]) -> Object:
    own: Object = pod_of(found, "-web")["containers"][0]
    return own


def test_a_page_without_tokens_has_no_service_and_listens_in_its_pod_only() -> None:
    found = objects(PAGE)

    assert web_parser().parse_args(_page(found)["args"][1:]).bind_address == "127.0.0.1:10401"
    assert not named(found, "Service", "-web")
    assert {each["name"] for each in _page(found)["ports"]} == {"metrics", "health"}


def test_no_service_of_the_page_that_an_ingress_may_have_leads_to_its_probes_or_metrics() -> None:
    found = objects(TEAM_PAGE)
    ports = {
        each["metadata"]["name"]: [port["targetPort"] for port in each["spec"]["ports"]]
        for each in named(found, "Service")
    }
    given = web_parser().parse_args(_page(found)["args"][1:])
    own = {each["name"]: each["containerPort"] for each in _page(found)["ports"]}

    assert ports["my-scheduler-web"] == ["web"]
    assert ports["my-scheduler-web-metrics"] == ["metrics"]
    assert given.metrics_bind_address == f":{own['metrics']}"
    assert given.health_probe_bind_address == f":{own['health']}"
    assert len(set(own.values())) == 3
    for probe in ("readinessProbe", "livenessProbe"):
        assert _page(found)[probe]["httpGet"]["port"] == "health"


def test_a_page_for_tokens_has_a_service_and_asks_who_they_are() -> None:
    found = objects(TEAM_PAGE)
    given = web_parser().parse_args(_page(found)["args"][1:])

    assert (given.bind_address, given.auth, given.auth_cache) == (":10401", "token", 5.0)
    assert (given.audience, given.allowed_host) == (["web", "api"], ["placements.example.org"])
    assert given.audit_log == "-"
    assert given.tls_cert_file
    assert not given.behind_proxy
    assert (str(given.session_keys_file), given.session) == ("/etc/karmada/sessions/keys", 4 * 3600)
    assert one(found, "Service", "-web")["spec"]["ports"][0]["port"] == 443


def test_a_page_behind_proxies_names_them_and_needs_no_certificate() -> None:
    networks = ["10.244.0.0/16", "2001:db8::1"]
    tls = {"secretName": "", "behindProxy": networks}
    found = objects({**TEAM_PAGE, "web": {**TEAM_PAGE["web"], "tls": tls}})
    given = web_parser().parse_args(_page(found)["args"][1:])

    assert [*map(str, given.behind_proxy)] == ["10.244.0.0/16", "2001:db8::1/128"]
    assert not given.tls_cert_file


def test_keys_of_sessions_are_mounted_and_made_by_nobody() -> None:
    found = objects(TEAM_PAGE)

    assert "Secret" not in {each["kind"] for each in found}
    assert {"name": "session-keys", "mountPath": "/etc/karmada/sessions", "readOnly": True} in _page(found)[
        "volumeMounts"
    ]
    assert "web-session" in {
        each.get("secret", {}).get("secretName") for each in pod_of(found, "-web")["volumes"]
    }


def test_the_page_finds_the_records_under_the_name_that_the_scheduler_answers_to() -> None:
    found = objects(TEAM_PAGE)
    scheduler = pod_of(found, "my-scheduler")
    own = scheduler["containers"][0]
    records = one(found, "Service", "-records")
    given = web_parser().parse_args(_page(found)["args"][1:])
    host = f"my-scheduler-records.{records['metadata']['namespace']}.svc"

    assert given.records == [f"https://{host}:10400"]
    assert (given.records_lease, given.records_account) == (
        ("karmada-system", "my-scheduler"),
        ("karmada-system", "my-scheduler-records"),
    )
    assert {
        "--explain-bind-address=$(POD_IP):10400",
        f"--explain-allowed-host={host}",
        "--explain-tls-cert-file=/etc/karmada/records/tls.crt",
    } <= set(own["args"])
    assert records["spec"]["clusterIP"] == "None"
    assert {"name": "records", "containerPort": 10400, "protocol": "TCP"} in own["ports"]
    [volume] = [each["secret"] for each in scheduler["volumes"] if each["name"] == "records"]
    assert volume["secretName"] == "records-tls"


def test_the_page_gets_the_authority_of_the_records_and_not_their_key() -> None:
    volumes = pod_of(objects(TEAM_PAGE), "-web")["volumes"]
    [volume] = [each["secret"] for each in volumes if each["name"] == "records"]
    assert [each["key"] for each in volume["items"]] == ["ca.crt"]


def test_the_account_of_the_records_may_read_them_and_nothing_else() -> None:
    found = objects(TEAM_PAGE, side="karmada")
    name = one(found, "ServiceAccount")["metadata"]["name"]
    roles = [
        each["roleRef"]["name"]
        for each in found
        if any(subject["name"] == name for subject in each.get("subjects", ()))
    ]
    [role] = [each for each in found if each["kind"] == "ClusterRole" and each["metadata"]["name"] in roles]
    assert (name, roles) == ("my-scheduler-records", [role["metadata"]["name"]])
    assert role["rules"] == [{"nonResourceURLs": ["/karmada-pyscheduler/records"], "verbs": ["get"]}]


def test_several_replicas_of_the_page_are_drained_one_by_one() -> None:
    assert one(objects(TEAM_PAGE), "PodDisruptionBudget", "-web")["spec"]["maxUnavailable"] == 1
    assert named(objects(PAGE), "PodDisruptionBudget", "-web") == []


def test_only_named_peers_reach_a_page_for_tokens_and_none_reach_one_without() -> None:
    def ingress(values: Values) -> list[Any]:
        peers = [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]
        found = objects({**values, "networkPolicy": {"enabled": True, "webFrom": peers}})
        rules: list[Any] = one(found, "NetworkPolicy", "-web")["spec"]["ingress"]
        return rules

    of_platform = ingress(PAGE)
    assert [each["ports"][0]["port"] for each in of_platform] == ["health", "metrics"]
    assert ingress(TEAM_PAGE) == [
        *of_platform,
        {
            "ports": [{"port": "web", "protocol": "TCP"}],
            "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
        },
    ]


@pytest.mark.parametrize("values", [PAGE, TEAM_PAGE], ids=["without records", "with records"])
def test_the_page_reaches_names_the_karmada_api_server_records_and_what_is_added_and_nothing_else(
    values: Values,
) -> None:
    found = objects(values)
    policy, own = one(found, "NetworkPolicy", "-web")["spec"], _page(found)
    scheduler = one(found, "Deployment", "my-scheduler")["spec"]
    records = {
        "ports": [{"port": 10400, "protocol": "TCP"}],
        "to": [{"podSelector": scheduler["selector"]}],
    }
    has_records = any(each.startswith("--records=") for each in own["args"])

    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["podSelector"] == one(found, "Deployment", "-web")["spec"]["selector"]
    assert policy["egress"] == [
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
        {"ports": [{"port": 5443, "protocol": "TCP"}]},
        *([records] if has_records else []),
        *EVERYTHING["networkPolicy"]["extraEgress"],
    ]
    assert has_records is (values is TEAM_PAGE)
    assert (
        not has_records
        or {"name": "records", "containerPort": 10400, "protocol": "TCP"}
        in (scheduler["template"]["spec"]["containers"][0]["ports"])
    )


def test_one_value_turns_the_policies_of_scheduler_and_page_on() -> None:
    for enabled in (True, False):
        found = objects({**TEAM_PAGE, "networkPolicy": {"enabled": enabled}})
        assert len(named(found, "NetworkPolicy")) == 2 * enabled


def test_the_identity_of_the_page_may_create_reviews_and_list_role_bindings_only_if_it_needs_them() -> None:
    def may(values: Values) -> set[str]:
        return {
            f"{verb} {resource}"
            for document in named(objects(values, side="karmada"), "ClusterRole", ":web")
            for rule in document["rules"]
            for verb in rule["verbs"]
            for resource in rule["resources"]
        }

    auth = {**TEAM_PAGE["web"]["auth"], "namespaceHints": False}
    without_hints = {**TEAM_PAGE, "web": {**TEAM_PAGE["web"], "auth": auth}}
    reviews = {"create tokenreviews", "create subjectaccessreviews"}

    assert {each.partition(" ")[0] for each in may(PAGE)} == {"get", "list", "watch"}
    assert may(without_hints) - may(PAGE) == reviews
    assert may(TEAM_PAGE) - may(PAGE) == reviews | {"list rolebindings"}


def test_permissions_that_no_value_needs_are_not_granted() -> None:
    def resources(values: Values) -> set[str]:
        return {
            resource
            for document in objects(values, side="karmada")
            for rule in document.get("rules", ())
            for resource in rule["resources"]
        }

    assert resources({}) >= {"leases", "resourcebindings"}
    assert "services" not in resources({})
    assert "services" in resources({"estimator": {"enabled": True}})
    assert "leases" not in resources({"leaderElection": {"enabled": False}, "replicas": 1})


def test_the_metadata_of_workloads_may_be_read_of_the_kinds_that_are_named_and_no_others() -> None:
    def rules(*resources: Object) -> list[Object]:
        values = {"workloadMetadata": {"resources": list(resources)}}
        found: list[Object] = one(objects(values, side="karmada"), "ClusterRole")["rules"]
        return found

    deployments = {"apiGroups": ["apps"], "resources": ["deployments"]}
    maps = {"apiGroups": [""], "resources": ["configmaps"]}
    verbs = {"verbs": ["get", "list", "watch"]}
    assert rules(deployments, maps) == [*rules(), deployments | verbs, maps | verbs]
    assert "deployments" not in str(rules())


@pytest.mark.parametrize(
    "entry",
    [
        {"apiGroups": ["*"], "resources": ["deployments"]},
        {"apiGroups": ["apps"], "resources": ["*"]},
        {"apiGroups": ["apps"], "resources": ["deployments/status"]},
        {"apiGroups": ["apps"], "resources": []},
        {"resources": ["deployments"]},
    ],
)
def test_workload_metadata_without_named_groups_and_resources_is_refused(entry: Object) -> None:
    with pytest.raises(HelmError, match="workloadMetadata"):
        objects({"workloadMetadata": {"resources": [entry]}}, side="karmada")


def test_a_service_account_can_be_the_subject() -> None:
    subject = {"kind": "ServiceAccount", "name": "my-scheduler", "namespace": "karmada-system"}
    found = objects({"rbac": {"subjects": [subject]}}, side="karmada")
    assert one(found, "ClusterRoleBinding")["subjects"] == one(found, "RoleBinding")["subjects"] == [subject]


OF_MINE = {
    "plugins": {
        "multiPoint": {"enabled": [{"name": "Mine", "weight": 2}], "disabled": [{"name": "FailBack"}]},
        "score": {"disabled": [{"name": "Mine"}]},
    },
    "pluginConfig": [{"name": "Mine", "args": {"region": "eu"}}],
}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"leaderElection": {"enabled": False}}, r"replicas is 2 and leaderElection\.enabled is false.*Set replicas to 1"),
        ({"leaderElection": {"leaseName": "karmada-scheduler"}}, "my-scheduler would wait for it for ever"),
        ({"podDisruptionBudget": {"minAvailable": 2}}, "minAvailable is 2 with 2 replicas: no node"),
        ({"podDisruptionBudget": {"minAvailable": "100%"}}, "minAvailable is 100% with 2 replicas"),
        ({"podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}}, 'minAvailable 1 and maxUnavailable 1: set one of them, and the other to ""'),
        ({"podDisruptionBudget": {"maxUnavailable": 0}}, "maxUnavailable is 0"),
        ({"leaderElection": {"renewDeadline": "20s"}}, "renewDeadline is 20s and leaseDuration 15s.*Set renewDeadline below"),
        ({"leaderElection": {"leaseDuration": "1m", "renewDeadline": "1m"}}, "renewDeadline is 1m and leaseDuration 1m"),
        ({"leaderElection": {"retryPeriod": "8334ms"}}, "retryPeriod is 8334ms and renewDeadline 10s, .*set a shorter retryPeriod"),
        ({"leaderElection": {"retryPeriod": "0s"}}, "has to be more than 0"),
        ({"serviceMonitor": {"scrapeTimeout": "31s"}}, "scrapeTimeout is 31s and interval 30s"),
        ({"featureGates": {"PriorityBasedSchedulin": True}}, "featureGates has PriorityBasedSchedulin.*one of AllAlpha, .* WorkloadAffinity"),
        ({"plugins": ["*", "-TaintTolerations"]}, r"plugins has -TaintTolerations.* TaintToleration, .*add TaintTolerations to image\.plugins"),
        ({"plugins": ["*", "Othr"], "pluginFiles": {"files": {"a.py": "class Other: ..."}}}, "plugins has Othr"),
        ({"config": {"content": {"profiles": [{"schedulerName": "my-scheduler"}, {}]}}}, "two profiles of config.content have schedulerName my-scheduler"),
        (profiles({"plugins": {"filter": {"disabled": [{"name": "*"}, {"name": "TaintTolerations"}]}}}), r"config\.content\.profiles\[0\]\.plugins\.filter\.disabled has TaintTolerations.* TaintToleration, .*image\.plugins"),
        (profiles({"plugins": {"multiPoint": {"enabled": [{"name": "PlacementGuard"}, {"name": "Othr"}]}}}, {"schedulerName": "b"}), r"profiles\[0\]\.plugins\.multiPoint\.enabled has Othr"),
        (profiles({}, {"schedulerName": "b", "plugins": {"filter": {"enabled": [{"name": "*"}]}}}), r"profiles\[1\]\.plugins\.filter\.enabled has \*, and there is no such plugin"),
        (profiles({"pluginConfig": [{"name": "PlacementGard", "args": {}}]}), r"profiles\[0\]\.pluginConfig has PlacementGard"),
        (profiles({"plugins": {"filter": {"disabled": ["TaintToleration"]}}}), "/config/content/profiles/0/plugins/filter/disabled/0"),
        (profiles({"plugins": {"filter": {"disabled": [{"weight": 1}]}}}), "/config/content/profiles/0/plugins/filter/disabled/0.*name"),
        (profiles({"plugins": ["TaintToleration"]}), "/config/content/profiles/0/plugins"),
        ({"config": {"content": {"profiles": {"schedulerName": "a"}}}}, "/config/content/profiles"),
        ({"config": {"content": {"a": 1}, "existingConfigMap": "b"}}, "config.existingConfigMap are both given"),
        ({"config": {"content": {"kind": "KubeSchedulerConfiguration"}}}, "config.content.kind is given"),
        ({"config": {"content": {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]}}}, "no profile of config.content has it: a, b"),
        ({"pluginFiles": {"files": {"a.py": "b"}, "existingConfigMap": "c"}}, "are both given: set one of them"),
        ({"pluginFiles": {"files": {"a-b.py": "c"}}}, "a-b.py"),
        ({"estimator": {"tls": {"secretName": "a"}}}, "set estimator.enabled to true"),
        ({"estimator": {"tls": {"insecureSkipVerify": True}}}, "estimator.tls is given and estimator.enabled is false"),
        ({"ports": {"metrics": 10351}}, "both 10351: give them different ports"),
        ({"ports": {"metrics": 80}}, "/ports/metrics"),
        ({"plugins": ["-TaintToleration"]}, r'no "\*" to take it out of'),
        ({"plugins": []}, "/plugins"),
        ({"extraArgs": ["--scheduler-name=other"]}, "extraArgs has --scheduler-name=other: set schedulerName instead"),
        ({"extraArgs": ["--leader_elect=false"]}, "set leaderElection.enabled instead"),
        ({"decisionsOf": "1.16"}, r'decisionsOf is 1\.16: set it to "1\.17", "1\.18" or "1\.19"'),
        ({"extraArgs": ["--decisions-of=1.17"]}, "set decisionsOf instead"),
        ({"extraArgs": ["-v=4"]}, "set logging.verbosity instead"),
        ({"extraArgs": ["--resync-perod=10m"]}, "extraArgs has --resync-perod=10m, which is no flag"),
        ({"extraArgs": ["-resync-period=10m"]}, "which is no flag of the scheduler"),
        ({"extraArgs": ["--explain-bind-address=127.0.0.1:1"]}, "set explain.enabled instead"),
        ({"explain": {"memory": "much"}}, "/explain/memory"),
        ({"metrics": {"secure": True}}, "Name a Secret with a certificate"),
        ({"metrics": {"tls": {"secretName": "metrics"}}}, "set metrics.secure to true"),
        ({"extraArgs": ["--metrics-kubeconfig=host"]}, "set metrics.secure instead"),
        ({"web": {**TOKENS, "port": 8080, "auth": {"mode": "none"}}}, "web.port is 8080, which is ports.metrics"),
        ({"web": {"enabled": True, "kubeconfig": {"secretName": "web"}, "records": True}}, "set explain.enabled to true"),
        (
            {
                "explain": {"enabled": True, "tls": {"secretName": "records"}},
                "leaderElection": {"enabled": False},
                "replicas": 1,
                "web": {"enabled": True, "kubeconfig": {"secretName": "web"}, "records": True},
            },
            "the page finds the scheduler by its Lease",
        ),
        ({"web": {"enabled": True}}, "web.kubeconfig.secretName is empty: name a Secret"),
        ({"web": {**TOKENS, "tls": {"secretName": "t"}}}, "web.host is empty: name the host"),
        ({"web": {**TOKENS, "host": "a.example"}}, "tokens would be sent in clear text: name web.tls.secretName"),
        ({"web": {**TOKENS, "auth": {"mode": "token", "cache": "1h"}}}, "/web/auth/cache"),
        ({"web": {**TOKENS, "tls": {"behindProxy": True}}}, "/web/tls/behindProxy"),
        ({"web": {**TOKENS, "tls": {"behindProxy": ["ingress.example"]}}}, "/web/tls/behindProxy"),
        ({"side": "both"}, "/side"),
        ({"replicas": -1}, "/replicas"),
        ({"replicas": "2"}, "/replicas"),
        ({"repicas": 2}, "repicas"),
        ({"schedulerName": ""}, "/schedulerName"),
        ({"kubeconfig": {"secretName": ""}}, "/kubeconfig/secretName"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"leaderElection": {"leaseDuration": "15"}}, "/leaderElection/leaseDuration"),
        ({"securityContext": {"privileged": True}}, "/securityContext/privileged"),
        ({"podSecurityContext": {"runAsUser": 0}}, "/podSecurityContext/runAsUser"),
        ({"rbac": {"subjects": [{"kind": "ServiceAccount", "name": "a"}]}}, "namespace"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_invalid_values_are_refused_with_a_message_that_names_them(values: Values, message: str) -> None:
    with pytest.raises(HelmError) as refusal:
        render(values)
    assert re.search(message, " ".join(str(refusal.value).split()))


@pytest.mark.parametrize(
    "values",
    [
        {"leaderElection": {"retryPeriod": "8333ms", "renewDeadline": "0m10s"}},
        {"plugins": ["*", "Mine"], "image": {"plugins": ["Mine"]}},
        {"plugins": ["*", "-Mine"], "pluginFiles": {"files": {"a.py": "class Mine: ..."}}},
        {"plugins": ["Mine"], "pluginFiles": {"existingConfigMap": "plugins"}},
        {
            "plugins": ["*", "PlacementGuard"],
            "extraArgs": ["--resync_period=10m", "--explain-allowed-host=a"],
        },
        profiles({"plugins": None, "pluginConfig": None}),
        profiles({"plugins": {"filter": None, "score": {"enabled": None, "disabled": [{"name": "*"}]}}}),
        {**profiles(OF_MINE), "image": {"plugins": ["Mine"]}},
        {**profiles(OF_MINE), "pluginFiles": {"files": {"a.py": "class Mine: ..."}}},
        {**profiles(OF_MINE), "pluginFiles": {"existingConfigMap": "plugins"}},
    ],
    ids=json.dumps,
)
def test_values_at_the_limits_and_plugins_of_ones_own_are_rendered(values: Values) -> None:
    assert one(objects(values), "Deployment")


def test_a_topology_spread_constraint_counts_the_pods_of_the_scheduler_unless_it_says_which() -> None:
    constraint = EVERYTHING["topologySpreadConstraints"][0]
    given = {**constraint, "labelSelector": {"matchLabels": {"team": "a"}}}
    found = objects({"topologySpreadConstraints": [constraint, given]})
    spec = one(found, "Deployment")["spec"]
    assert pod_of(found)["topologySpreadConstraints"] == [
        {**constraint, "labelSelector": spec["selector"]},
        given,
    ]


def test_the_alerts_use_metrics_that_exist() -> None:
    page = WebMetrics()
    page.expose_certificate(float)
    served = {family.name for each in (Metrics().registry, page.registry) for family in each.collect()} | {
        "up"
    }
    expressions = [alert["expr"] for alert in _alerts()]
    assert len(expressions) == 21
    assert len(_alerts(EVERYTHING)) == 16, "none of a page that is not there"
    for expression in expressions:
        for name in re.findall(r"([a-z0-9_]+)\{", expression):
            assert re.sub(r"_(total|bucket|count|sum)$", "", name) in served, expression


def _alerts(values: Values = TEAM_PAGE) -> list[Object]:
    [group] = one(objects(values), "PrometheusRule")["spec"]["groups"]
    rules: list[Object] = group["rules"]
    return rules


def test_the_runbook_of_each_alert_is_a_section_of_the_operators_page() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    sections = [heading.lower() for heading in re.findall(r"^### (PyScheduler\w+)$", page, re.MULTILINE)]
    links = [alert["annotations"]["runbook_url"] for alert in _alerts()]
    assert links == [f"docs/operations.md#{section}" for section in sections]
    assert len(set(links)) == len(links)


def test_of_a_page_without_a_scheduler_the_alerts_are_those_about_all_schedulers() -> None:
    alone, all_ = _alerts({**TEAM_PAGE, "replicas": 0}), _alerts()
    assert [each["alert"] for each in alone] == [each["alert"] for each in all_[16:]]
    expressions = [each["expr"] for each in (*alone, *all_) if each["alert"] == "PySchedulerOthersUnplaced"]
    assert ["scheduler!=" in each for each in expressions] == [False, True]
    assert len(_alerts({**EVERYTHING, "replicas": 0})) == 16


def test_runbooks_can_be_read_elsewhere() -> None:
    rule = {**EVERYTHING["prometheusRule"], "runbooks": "https://wiki.example/karmada"}
    links = [alert["annotations"]["runbook_url"] for alert in _alerts({**EVERYTHING, "prometheusRule": rule})]
    assert links[0] == "https://wiki.example/karmada#pyschedulernoleader"


KARMADA = "--api-versions=work.karmada.io/v1alpha2"
OTHER = "--api-versions=v1/Namespace"


@pytest.mark.parametrize(
    ("side", "served", "message"),
    [
        ("host", [KARMADA, OTHER], "this is a Karmada API server: no Pod runs there. Give --kubeconfig of the cluster in"),
        ("karmada", [OTHER], "no Karmada API server: it does not serve work.karmada.io/v1alpha2. Give --kubeconfig of"),
    ],
)  # fmt: skip
def test_the_wrong_side_for_an_api_server_is_refused(side: str, served: list[str], message: str) -> None:
    with pytest.raises(HelmError) as refusal:
        render({}, *served, side=side)
    assert message in " ".join(str(refusal.value).split())


@pytest.mark.parametrize("side", ["host", "karmada"])
def test_an_old_kubernetes_is_refused_with_what_to_do(side: str) -> None:
    with pytest.raises(HelmError) as refusal:
        render({}, "--kube-version=v1.24.17", side=side)
    assert "has Kubernetes v1.24.17, and the chart needs 1.25 or newer: upgrade the cluster" in str(
        refusal.value
    )
    assert "kind: " in render({}, "--kube-version=v1.25.0-gke.1", side=side)


@pytest.mark.parametrize(
    ("side", "served"), [("host", []), ("host", [OTHER]), ("karmada", []), ("karmada", [KARMADA, OTHER])]
)
def test_the_right_side_is_rendered_and_either_without_a_cluster(side: str, served: list[str]) -> None:
    assert "kind: " in render({}, *served, side=side)
