{{/*
Rejects values that the schema accepts and that contradict each other or the API server of the release.
Each text names the problem and the values to set instead.
`helm template` without a cluster knows no kinds of the API server, and takes either side.
*/}}
{{- define "pyscheduler.refusals" -}}
{{- $values := .Values -}}
{{- if semverCompare "<1.25.0-0" .Capabilities.KubeVersion.Version -}}
{{- fail (printf "this cluster has Kubernetes %s, and the chart needs 1.25 or newer: upgrade the cluster, or install the chart in a newer one that reaches the Karmada API server." .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- $isKarmada := .Capabilities.APIVersions.Has "work.karmada.io/v1alpha2" -}}
{{- if and (eq .Values.side "host") $isKarmada -}}
{{- fail "side is host, and this is a Karmada API server: no Pod runs there. Give --kubeconfig of the cluster in which Karmada's control plane runs, or set side to karmada, for the scheduler's permissions." -}}
{{- end -}}
{{- if and (eq .Values.side "karmada") (not $isKarmada) (.Capabilities.APIVersions.Has "v1/Namespace") -}}
{{- fail "side is karmada, and this is no Karmada API server: it does not serve work.karmada.io/v1alpha2. Give --kubeconfig of the Karmada API server, or set side to host, for the scheduler itself." -}}
{{- end -}}
{{- if eq .Values.side "host" -}}
{{- if not (has (toString .Values.decisionsOf) (list "" "1.17" "1.18" "1.19")) -}}
{{- fail (printf "decisionsOf is %v: set it to \"1.17\", \"1.18\" or \"1.19\", or leave it empty for the decisions of 1.18." .Values.decisionsOf) -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.leaderElection.enabled) -}}
{{- fail (printf "replicas is %d and leaderElection.enabled is false: the replicas would overwrite each other's decisions. Set replicas to 1 or leaderElection.enabled to true." (int .Values.replicas)) -}}
{{- end -}}
{{- if and .Values.leaderElection.enabled (ne .Values.schedulerName "default-scheduler") (eq (include "pyscheduler.lease" .) "karmada-scheduler") (eq .Values.leaderElection.leaseNamespace "karmada-system") -}}
{{- fail (printf "leaderElection.leaseName is karmada-scheduler, which karmada-scheduler holds: %s would wait for it for ever. Leave leaderElection.leaseName empty, or set schedulerName to default-scheduler to replace karmada-scheduler." .Values.schedulerName) -}}
{{- end -}}
{{- $lease := int64 (include "pyscheduler.milliseconds" .Values.leaderElection.leaseDuration) -}}
{{- $renew := int64 (include "pyscheduler.milliseconds" .Values.leaderElection.renewDeadline) -}}
{{- $retry := int64 (include "pyscheduler.milliseconds" .Values.leaderElection.retryPeriod) -}}
{{- with .Values.leaderElection -}}
{{- if le $lease $renew -}}
{{- fail (printf "leaderElection.renewDeadline is %s and leaseDuration %s: another replica would take the Lease before its holder gives up. Set renewDeadline below leaseDuration." .renewDeadline .leaseDuration) -}}
{{- end -}}
{{- if le (mul 5 $renew) (mul 6 $retry) -}}
{{- fail (printf "leaderElection.retryPeriod is %s and renewDeadline %s, which has to be more than 1.2 times as long: set a shorter retryPeriod." .retryPeriod .renewDeadline) -}}
{{- end -}}
{{- if or (le $retry 0) (gt $lease 2147483647000) -}}
{{- fail (printf "leaderElection.retryPeriod is %s and leaseDuration %s: the first has to be more than 0, and the second at most 2147483647s." .retryPeriod .leaseDuration) -}}
{{- end -}}
{{- end -}}
{{- with .Values.serviceMonitor -}}
{{- if gt (int64 (include "pyscheduler.milliseconds" .scrapeTimeout)) (int64 (include "pyscheduler.milliseconds" .interval)) -}}
{{- fail (printf "serviceMonitor.scrapeTimeout is %s and interval %s: Prometheus refuses a longer timeout. Set scrapeTimeout to interval or less." .scrapeTimeout .interval) -}}
{{- end -}}
{{- end -}}
{{- with .Values.podDisruptionBudget -}}
{{- if and .enabled (gt (int $values.replicas) 1) -}}
{{- if and (include "pyscheduler.isSet" .minAvailable) (include "pyscheduler.isSet" .maxUnavailable) -}}
{{- fail (printf "podDisruptionBudget has minAvailable %v and maxUnavailable %v: set one of them, and the other to \"\"." .minAvailable .maxUnavailable) -}}
{{- end -}}
{{- $blocked := or (and (or (kindIs "float64" .minAvailable) (kindIs "int64" .minAvailable) (kindIs "int" .minAvailable)) (ge (int .minAvailable) (int $values.replicas))) (eq (toString .minAvailable) "100%") -}}
{{- if $blocked -}}
{{- fail (printf "podDisruptionBudget.minAvailable is %v with %d replicas: no node with a replica could be drained. Set it below replicas." .minAvailable (int $values.replicas)) -}}
{{- end -}}
{{- if has (toString .maxUnavailable) (list "0" "0%") -}}
{{- fail "podDisruptionBudget.maxUnavailable is 0: no node with a replica could be drained. Set it to 1 or more." -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.config.content .Values.config.existingConfigMap -}}
{{- fail "config.content and config.existingConfigMap are both given: set one of them." -}}
{{- end -}}
{{- range $key := list "apiVersion" "kind" -}}
{{- if hasKey $values.config.content $key -}}
{{- fail (printf "config.content.%s is given: the chart writes apiVersion and kind itself. Leave them out, or put the whole file into a ConfigMap and name it in config.existingConfigMap." $key) -}}
{{- end -}}
{{- end -}}
{{- $profiles := list -}}
{{- range $index, $each := (default dict .Values.config.content).profiles -}}
{{- $profile := toString (default $values.schedulerName .schedulerName) -}}
{{- if has $profile $profiles -}}
{{- fail (printf "two profiles of config.content have schedulerName %s: give each its own; a profile without one has that of the chart." $profile) -}}
{{- end -}}
{{- $profiles = append $profiles $profile -}}
{{- $lists := dict "pluginConfig" .pluginConfig -}}
{{- range $point, $set := .plugins -}}
{{- range $list, $entries := $set -}}{{- $_ := set $lists (printf "plugins.%s.%s" $point $list) $entries -}}{{- end -}}
{{- end -}}
{{- range $list, $entries := $lists -}}
{{- range $entries -}}
{{- if not (and (eq .name "*") (hasSuffix ".disabled" $list)) -}}
{{- include "pyscheduler.requirePlugin" (list $ (printf "config.content.profiles[%d].%s" $index $list) .name .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $profiles (ne .Values.schedulerName "default-scheduler") (not (has .Values.schedulerName $profiles)) -}}
{{- fail (printf "schedulerName is %s, and no profile of config.content has it: %s. Set schedulerName to one of them, or add a profile with schedulerName: %s; its bindings would wait for ever." .Values.schedulerName (join ", " $profiles) .Values.schedulerName) -}}
{{- end -}}
{{- if and .Values.pluginFiles.files .Values.pluginFiles.existingConfigMap -}}
{{- fail "pluginFiles.files and pluginFiles.existingConfigMap are both given: set one of them." -}}
{{- end -}}
{{- if and (or .Values.estimator.tls.secretName .Values.estimator.tls.insecureSkipVerify) (not .Values.estimator.enabled) -}}
{{- fail "estimator.tls is given and estimator.enabled is false: set estimator.enabled to true, or leave estimator.tls out." -}}
{{- end -}}
{{- if and .Values.metrics.secure (not .Values.metrics.tls.secretName) -}}
{{- fail "metrics.secure is true and metrics.tls.secretName is empty: tokens would be sent in clear text. Name a Secret with a certificate." -}}
{{- end -}}
{{- if and .Values.metrics.tls.secretName (not .Values.metrics.secure) -}}
{{- fail "metrics.tls.secretName is given and metrics.secure is false, so /metrics would be open: set metrics.secure to true, or leave metrics.tls out." -}}
{{- end -}}
{{- if and .Values.web.enabled (not .Values.web.kubeconfig.secretName) -}}
{{- fail "web.enabled is true and web.kubeconfig.secretName is empty: name a Secret with a kubeconfig that can only read (docs/web.md has the commands)." -}}
{{- end -}}
{{- if and .Values.web.enabled .Values.web.records (not (include "pyscheduler.servesRecords" .)) -}}
{{- fail "web.records is true, and the scheduler serves no records to the page: set explain.enabled to true, and name explain.tls.secretName." -}}
{{- end -}}
{{- if and .Values.web.enabled .Values.web.records (not .Values.leaderElection.enabled) -}}
{{- fail "web.records is true and leaderElection.enabled is false: the page finds the scheduler by its Lease. Set leaderElection.enabled to true." -}}
{{- end -}}
{{- if and .Values.web.enabled (eq .Values.web.auth.mode "token") -}}
{{- if not .Values.web.host -}}
{{- fail "web.auth.mode is token and web.host is empty: name the host under which people reach the page." -}}
{{- end -}}
{{- if not (or .Values.web.tls.secretName .Values.web.tls.behindProxy) -}}
{{- fail "web.auth.mode is token, and tokens would be sent in clear text: name web.tls.secretName, or in web.tls.behindProxy the addresses of a proxy that ends TLS." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.web.enabled (has (int .Values.web.port) (list (int .Values.ports.metrics) (int .Values.ports.health))) -}}
{{- fail (printf "web.port is %d, which is ports.metrics or ports.health: give it another one, because no Ingress may reach those." (int .Values.web.port)) -}}
{{- end -}}
{{- if eq (int .Values.ports.metrics) (int .Values.ports.health) -}}
{{- fail (printf "ports.metrics and ports.health are both %d: give them different ports." (int .Values.ports.metrics)) -}}
{{- end -}}
{{- range .Values.plugins -}}
{{- if and (hasPrefix "-" .) (not (has "*" $values.plugins)) -}}
{{- fail (printf "plugins has %s and no \"*\" to take it out of: add \"*\", or list the plugins that are wanted." .) -}}
{{- end -}}
{{- end -}}
{{- $known := .Files.Get "files/known.yaml" | fromYaml -}}
{{- range $gate, $_ := .Values.featureGates -}}
{{- if not (has $gate $known.featureGates) -}}
{{- fail (printf "featureGates has %s, and there is no such gate: correct it to one of %s." $gate (join ", " $known.featureGates)) -}}
{{- end -}}
{{- end -}}
{{- range without .Values.plugins "*" -}}
{{- include "pyscheduler.requirePlugin" (list $ "plugins" . (trimPrefix "-" .)) -}}
{{- end -}}
{{- $owned := dict
  "kubeconfig" "kubeconfig.secretName" "scheduler-name" "schedulerName" "plugins" "plugins" "feature-gates" "featureGates" "decisions-of" "decisionsOf"
  "config" "config" "plugin-dir" "pluginFiles" "logging-format" "logging.format" "v" "logging.verbosity"
  "explain-bind-address" "explain.enabled" "explain-memory" "explain.memory"
  "explain-tls-cert-file" "explain.tls.secretName" "explain-tls-key-file" "explain.tls.secretName"
  "metrics-tls-cert-file" "metrics.secure" "metrics-tls-key-file" "metrics.secure" "metrics-kubeconfig" "metrics.secure"
  "metrics-bind-address" "ports.metrics" "health-probe-bind-address" "ports.health" "bind-address" "ports.health" "secure-port" "ports.health"
  "leader-elect" "leaderElection.enabled" "leader-elect-resource-name" "leaderElection.leaseName"
  "leader-elect-resource-namespace" "leaderElection.leaseNamespace" "leader-elect-lease-duration" "leaderElection.leaseDuration"
  "leader-elect-renew-deadline" "leaderElection.renewDeadline" "leader-elect-retry-period" "leaderElection.retryPeriod"
  "enable-scheduler-estimator" "estimator.enabled" "disable-scheduler-estimator-in-pull-mode" "estimator.disableInPullMode"
  "scheduler-estimator-timeout" "estimator.timeout" "scheduler-estimator-port" "estimator.port"
  "scheduler-estimator-service-namespace" "estimator.serviceNamespace" "scheduler-estimator-service-prefix" "estimator.servicePrefix"
  "scheduler-estimator-ca-file" "estimator.tls.secretName" "scheduler-estimator-cert-file" "estimator.tls.secretName"
  "scheduler-estimator-key-file" "estimator.tls.secretName" "insecure-skip-estimator-verify" "estimator.tls.insecureSkipVerify" -}}
{{- range .Values.extraArgs -}}
{{- $flag := splitList "=" . | first | trimPrefix "-" | trimPrefix "-" | replace "_" "-" -}}
{{- if hasKey $owned $flag -}}
{{- fail (printf "extraArgs has %s: set %s instead." . (get $owned $flag)) -}}
{{- end -}}
{{- if not (and (hasPrefix "--" .) (has $flag $known.flags)) -}}
{{- fail (printf "extraArgs has %s, which is no flag of the scheduler: correct it (karmada-pyscheduler --help lists all, --NAME=VALUE)." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Rejects the name of a plugin that nothing has: the root, the path of the list, its entry, and the name in that. */}}
{{- define "pyscheduler.requirePlugin" -}}
{{- $values := (index . 0).Values -}}
{{- $known := ((index . 0).Files.Get "files/known.yaml" | fromYaml).plugins -}}
{{- $name := index . 3 -}}
{{- if not (or (has $name $known) (has $name $values.image.plugins) $values.pluginFiles.existingConfigMap (contains $name (toString (values $values.pluginFiles.files)))) -}}
{{- fail (printf "%s has %s, and there is no such plugin in-tree (%s) or in pluginFiles: correct it, or, for a plugin of a package in your image, add %s to image.plugins." (index . 1) (index . 2) (join ", " $known) $name) -}}
{{- end -}}
{{- end -}}
