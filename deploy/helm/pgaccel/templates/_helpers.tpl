{{- define "pgaccel.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "pgaccel.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "pgaccel.labels" -}}
{{ include "pgaccel.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "pgaccel.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s%s" .Chart.AppVersion (ternary "-gpu" "" .Values.gpu.enabled)) }}
{{- end -}}

{{/* The Secret that has the password, "" where there is none. */}}
{{- define "pgaccel.secret" -}}
{{- if and .Values.upstream.existingSecret .Values.upstream.password -}}
{{- fail "upstream.existingSecret and upstream.password are both set" -}}
{{- end -}}
{{- .Values.upstream.existingSecret | default (ternary (include "pgaccel.name" .) "" (ne .Values.upstream.password "")) -}}
{{- end -}}

{{/* pgaccel.yml: what the chart decides, and what of the values is passed on. */}}
{{- define "pgaccel.config" -}}
{{- $url := required "upstream.url is missing: the URL of the PostgreSQL server, such as postgres://pgaccel@postgres.default:5432/shop" .Values.upstream.url -}}
{{- if regexMatch "//[^/@]*:[^/@]*@|(^|[?&\\s])password\\s*=" $url -}}
{{- fail "upstream.url has a password, and would be in a ConfigMap: use upstream.existingSecret or upstream.password" -}}
{{- end -}}
{{- $config := dict "upstream" $url "drain-timeout" (printf "%ds" (int .Values.drainSeconds)) -}}
{{- if .Values.persistence.enabled -}}
{{- $_ := set $config "data-dir" "/var/lib/pgaccel/data" -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $config "tls-cert" "/etc/pgaccel-tls/tls.crt" -}}
{{- $_ := set $config "tls-key" "/etc/pgaccel-tls/tls.key" -}}
{{- end -}}
{{- toYaml (merge $config .Values.config) -}}
{{- end -}}

{{/* The pods of the StatefulSet or the Deployment. */}}
{{- define "pgaccel.pod" -}}
metadata:
  labels:
    {{- include "pgaccel.labels" . | nindent 4 }}
  annotations:
    # Another configuration takes a restart. So does another password, but its hash is not for everyone to see.
    checksum/config: {{ include "pgaccel.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # The pause before SIGTERM, the time to drain, and a minute to save the columns.
  terminationGracePeriodSeconds: {{ add 5 .Values.drainSeconds 60 }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- if and .Values.gpu.enabled .Values.gpu.runtimeClassName }}
  runtimeClassName: {{ .Values.gpu.runtimeClassName }}
  {{- end }}
  containers:
    - name: pgaccel
      image: {{ include "pgaccel.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      # The addresses are given here, as the image's environment has some, which come before the file.
      args: [serve, --config, /etc/pgaccel/pgaccel.yml, --listen, ":6432", --http, ":8432"]
      {{- with include "pgaccel.secret" . }}
      env:
        - name: PGPASSWORD
          valueFrom:
            secretKeyRef:
              name: {{ . }}
              key: {{ ternary $.Values.upstream.existingSecretKey "password" (ne $.Values.upstream.existingSecret "") }}
      {{- end }}
      ports:
        - {name: postgresql, containerPort: 6432}
        - {name: http, containerPort: 8432}
      # Ready is who can serve sessions: until the tables are copied PostgreSQL answers.
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      livenessProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      lifecycle:
        # Until no new connections are sent here any more.
        preStop:
          exec: {command: [sleep, "5"]}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      {{- $resources := deepCopy .Values.resources }}
      {{- if .Values.gpu.enabled }}
      {{- $resources = merge (dict "limits" (dict "nvidia.com/gpu" .Values.gpu.count)) $resources }}
      {{- end }}
      {{- with $resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - {name: config, mountPath: /etc/pgaccel, readOnly: true}
        - {name: data, mountPath: /var/lib/pgaccel}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.tls.existingSecret }}
        - {name: tls, mountPath: /etc/pgaccel-tls, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ include "pgaccel.name" . }}}
    - name: tmp
      emptyDir: {}
    {{- if not .Values.persistence.enabled }}
    - name: data
      emptyDir: {}
    {{- end }}
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret: {secretName: {{ . }}}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
