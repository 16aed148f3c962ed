{{- define "pyscheduler.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "pyscheduler.fullname" -}}
{{- $own := ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) .Chart.IsRoot -}}
{{- default $own .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "pyscheduler.selector" -}}
app.kubernetes.io/name: {{ include "pyscheduler.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pyscheduler.labels" -}}
{{ include "pyscheduler.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: scheduler
app.kubernetes.io/part-of: karmada
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "pyscheduler.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Neither null nor "", of which the second also unsets a default of a subchart. */}}
{{- define "pyscheduler.isSet" -}}
{{- if not (has (toString .) (list "" "<nil>")) }}yes{{ end -}}
{{- end -}}

{{- define "pyscheduler.podSecurityContext" -}}
{{- $set := dict -}}
{{- range $key, $value := .Values.podSecurityContext -}}
{{- if include "pyscheduler.isSet" $value -}}{{- $_ := set $set $key $value -}}{{- end -}}
{{- end -}}
{{- toYaml $set -}}
{{- end -}}

{{/* A duration in milliseconds: sprig parses durations only to add them to a time. */}}
{{- define "pyscheduler.milliseconds" -}}
{{- (toDate "2006" "1970" | dateModify .).UnixMilli -}}
{{- end -}}

{{- define "pyscheduler.lease" -}}
{{- $own := ternary "karmada-scheduler" .Values.schedulerName (eq .Values.schedulerName "default-scheduler") -}}
{{- default $own .Values.leaderElection.leaseName -}}
{{- end -}}

{{- define "pyscheduler.configMap" -}}
{{- if .Values.config.existingConfigMap -}}
{{ .Values.config.existingConfigMap }}
{{- else if .Values.config.content -}}
{{ include "pyscheduler.fullname" . }}-configuration
{{- end -}}
{{- end -}}

{{- define "pyscheduler.configFile" -}}
apiVersion: pyscheduler.karmada.io/v1alpha1
kind: KarmadaSchedulerConfiguration
{{ toYaml .Values.config.content }}
{{- end -}}

{{- define "pyscheduler.pluginConfigMap" -}}
{{- if .Values.pluginFiles.existingConfigMap -}}
{{ .Values.pluginFiles.existingConfigMap }}
{{- else if .Values.pluginFiles.files -}}
{{ include "pyscheduler.fullname" . }}-plugin-files
{{- end -}}
{{- end -}}

{{- define "pyscheduler.args" -}}
- --kubeconfig=/etc/karmada/config/{{ .Values.kubeconfig.key }}
- --scheduler-name={{ .Values.schedulerName }}
- --metrics-bind-address=$(POD_IP):{{ .Values.ports.metrics }}
- --health-probe-bind-address=$(POD_IP):{{ .Values.ports.health }}
{{- if .Values.metrics.secure }}
- --metrics-tls-cert-file=/etc/karmada/metrics/tls.crt
- --metrics-tls-key-file=/etc/karmada/metrics/tls.key
{{- end }}
{{- with .Values.leaderElection }}
{{- if .enabled }}
- --leader-elect-resource-name={{ include "pyscheduler.lease" $ }}
- --leader-elect-resource-namespace={{ .leaseNamespace }}
- --leader-elect-lease-duration={{ .leaseDuration }}
- --leader-elect-renew-deadline={{ .renewDeadline }}
- --leader-elect-retry-period={{ .retryPeriod }}
{{- else }}
- --leader-elect=false
{{- end }}
{{- end }}
- --plugins={{ join "," .Values.plugins }}
{{- with .Values.featureGates }}
- --feature-gates={{ range $index, $gate := keys . | sortAlpha }}{{ if $index }},{{ end }}{{ $gate }}={{ get $.Values.featureGates $gate }}{{ end }}
{{- end }}
{{- with .Values.decisionsOf }}
- --decisions-of={{ . }}
{{- end }}
{{- if include "pyscheduler.configMap" . }}
- --config=/etc/karmada/scheduler/{{ .Values.config.key }}
{{- end }}
{{- if include "pyscheduler.pluginConfigMap" . }}
- --plugin-dir=/etc/karmada/plugins
{{- end }}
{{- with .Values.estimator }}
{{- if .enabled }}
- --enable-scheduler-estimator=true
- --disable-scheduler-estimator-in-pull-mode={{ .disableInPullMode }}
- --scheduler-estimator-timeout={{ .timeout }}
- --scheduler-estimator-port={{ .port }}
- --scheduler-estimator-service-namespace={{ .serviceNamespace }}
- --scheduler-estimator-service-prefix={{ .servicePrefix }}
{{- if .tls.secretName }}
- --scheduler-estimator-ca-file=/etc/karmada/pki/scheduler-estimator-client/{{ .tls.caKey }}
- --scheduler-estimator-cert-file=/etc/karmada/pki/scheduler-estimator-client/{{ .tls.certKey }}
- --scheduler-estimator-key-file=/etc/karmada/pki/scheduler-estimator-client/{{ .tls.keyKey }}
{{- end }}
{{- if .tls.insecureSkipVerify }}
- --insecure-skip-estimator-verify=true
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.explain }}
{{- if .enabled }}
{{- if .tls.secretName }}
- --explain-bind-address=$(POD_IP):{{ .port }}
- --explain-allowed-host={{ include "pyscheduler.recordsHost" $ }}
- --explain-tls-cert-file=/etc/karmada/records/tls.crt
- --explain-tls-key-file=/etc/karmada/records/tls.key
{{- else }}
- --explain-bind-address=127.0.0.1:{{ .port }}
{{- end }}
- --explain-memory={{ .memory }}
{{- end }}
{{- end }}
- --logging-format={{ .Values.logging.format }}
- --v={{ .Values.logging.verbosity }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "pyscheduler.servesRecords" -}}
{{- if and .Values.explain.enabled .Values.explain.tls.secretName }}yes{{ end -}}
{{- end -}}

{{- define "pyscheduler.recordsHost" -}}
{{ include "pyscheduler.fullname" . }}-records.{{ .Release.Namespace }}.svc
{{- end -}}

{{- define "pyscheduler.recordsAccount" -}}
{{ .Values.schedulerName }}-records
{{- end -}}

{{- define "pyscheduler.subjects" -}}
{{- range default (list (dict "kind" "User" "name" (printf "system:karmada:%s" .Values.schedulerName))) .Values.rbac.subjects }}
- kind: {{ .kind }}
  name: {{ .name | quote }}
  {{- if eq .kind "ServiceAccount" }}
  namespace: {{ .namespace }}
  {{- else }}
  apiGroup: rbac.authorization.k8s.io
  {{- end }}
{{- end }}
{{- end -}}

{{- define "pyscheduler.webSelector" -}}
app.kubernetes.io/name: {{ include "pyscheduler.name" . }}-web
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pyscheduler.webArgs" -}}
- web
- --kubeconfig=/etc/karmada/config/{{ .Values.web.kubeconfig.key }}
- --metrics-bind-address=:{{ .Values.ports.metrics }}
- --health-probe-bind-address=:{{ .Values.ports.health }}
{{- if eq .Values.web.auth.mode "token" }}
- --bind-address=:{{ .Values.web.port }}
- --auth=token
- --reveal={{ .Values.web.reveal }}
- --audit-log=-
{{- range .Values.web.auth.audiences }}
- --audience={{ . }}
{{- end }}
- --auth-cache={{ .Values.web.auth.cache }}
- --allowed-host={{ .Values.web.host }}
{{- if .Values.web.auth.sessionKeysSecret }}
- --session-keys-file=/etc/karmada/sessions/keys
- --session={{ .Values.web.auth.session }}
{{- end }}
{{- if .Values.web.tls.secretName }}
- --tls-cert-file=/etc/karmada/tls/tls.crt
- --tls-key-file=/etc/karmada/tls/tls.key
{{- end }}
{{- range .Values.web.tls.behindProxy }}
- --behind-proxy={{ . }}
{{- end }}
{{- else }}
- --bind-address=127.0.0.1:{{ .Values.web.port }}
{{- end }}
{{- if .Values.web.records }}
- --records=https://{{ include "pyscheduler.recordsHost" . }}:{{ .Values.explain.port }}
- --records-ca-file=/etc/karmada/records/ca.crt
- --records-lease={{ .Values.leaderElection.leaseNamespace }}/{{ include "pyscheduler.lease" . }}
- --records-account={{ .Values.leaderElection.leaseNamespace }}/{{ include "pyscheduler.recordsAccount" . }}
{{- end }}
- --scheduler-name={{ .Values.schedulerName }}
- --plugins={{ join "," .Values.plugins }}
{{- with .Values.featureGates }}
- --feature-gates={{ range $index, $gate := keys . | sortAlpha }}{{ if $index }},{{ end }}{{ $gate }}={{ get $.Values.featureGates $gate }}{{ end }}
{{- end }}
{{- with .Values.decisionsOf }}
- --decisions-of={{ . }}
{{- end }}
{{- if include "pyscheduler.configMap" . }}
- --config=/etc/karmada/scheduler/{{ .Values.config.key }}
{{- end }}
{{- if include "pyscheduler.pluginConfigMap" . }}
- --plugin-dir=/etc/karmada/plugins
{{- end }}
{{- end -}}

{{- define "pyscheduler.webSubjects" -}}
{{- range default (list (dict "kind" "User" "name" (printf "system:karmada:%s:web" .Values.schedulerName))) .Values.web.subjects }}
- kind: {{ .kind }}
  name: {{ .name | quote }}
  {{- if eq .kind "ServiceAccount" }}
  namespace: {{ .namespace }}
  {{- else }}
  apiGroup: rbac.authorization.k8s.io
  {{- end }}
{{- end }}
{{- end -}}

{{- define "pyscheduler.commonIngress" -}}
# From any address: probes come from the node, which some networks count as external.
- ports: [{port: health, protocol: TCP}]
- ports: [{port: metrics, protocol: TCP}]
  {{- if .Values.networkPolicy.metricsFrom }}
  from: {{- toYaml .Values.networkPolicy.metricsFrom | nindent 4 }}
  {{- else }}
  from: [{namespaceSelector: {}}]
  {{- end }}
{{- end -}}

{{- define "pyscheduler.commonEgress" -}}
# Names
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
# The Karmada API server
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end -}}
