{{- define "deskwire.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* At most 52 characters: the pods of a StatefulSet get a label with its name and a hash. */ -}}
{{- define "deskwire.fullname" -}}
{{- $name := include "deskwire.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "deskwire.selectorLabels" -}}
app.kubernetes.io/name: {{ include "deskwire.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "deskwire.labels" -}}
{{ include "deskwire.selectorLabels" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "deskwire.metadata" -}}
name: {{ include "deskwire.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "deskwire.labels" . | nindent 2 }}
{{- end }}

{{- define "deskwire.image" -}}
{{- $repository := required "image.repository: push the image of `make image` to your registry, and name it here" .Values.image.repository }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "deskwire.publicUrl" -}}
{{- required "publicUrl: the URL of the service for browsers and receivers, such as https://support.example.com" .Values.publicUrl }}
{{- end }}

{{- define "deskwire.host" -}}
{{- get (urlParse (include "deskwire.publicUrl" .)) "hostname" }}
{{- end }}

{{- /* Helm reads numbers as floats, which print as 1e+06: whole ones are printed as they were written. */ -}}
{{- define "deskwire.text" -}}
{{- if kindIs "float64" . }}
{{- if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- else }}{{ . }}{{ end }}
{{- end }}

{{- define "deskwire.settings" -}}
DESKWIRE_PUBLIC_URL: {{ include "deskwire.publicUrl" . | quote }}
{{- with .Values.trustedProxies }}
DESKWIRE_TRUSTED_PROXIES: {{ join "," . | quote }}
{{- end }}
{{- range $name, $value := .Values.settings }}
{{ $name }}: {{ include "deskwire.text" $value | quote }}
{{- end }}
{{- end }}
