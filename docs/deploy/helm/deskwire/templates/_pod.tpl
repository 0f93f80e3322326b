{{- /* The pod's template of both modes. */ -}}
{{- define "deskwire.pod" -}}
{{- $nodes := eq .Values.mode "nodes" -}}
metadata:
  labels:
    {{- include "deskwire.selectorLabels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # The pods restart after a change of settings.
    checksum/settings: {{ include "deskwire.settings" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  automountServiceAccountToken: false
  # The variables that Kubernetes makes of a service named deskwire look like settings.
  enableServiceLinks: false
  # A pause for balancers, shutdownSeconds, and some seconds more, or the stop is cut off.
  terminationGracePeriodSeconds: {{ add .Values.shutdownSeconds (ternary 25 10 $nodes) }}
  {{- with .Values.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
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
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if $nodes }}
  topologySpreadConstraints:
    - topologyKey: kubernetes.io/hostname
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "deskwire.selectorLabels" . | nindent 10 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    {{- if not $nodes }}
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    {{- end }}
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: deskwire
      image: {{ include "deskwire.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      envFrom:
        - configMapRef:
            name: {{ include "deskwire.fullname" . }}
        - secretRef:
            name: {{ .Values.existingSecret }}
        {{- with .Values.extraEnvFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      env:
        {{- if $nodes }}
        # The name of the node in its log and in the database.
        - name: DESKWIRE_NODE
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- else }}
        # A folder that the service makes for itself alone: the volume's own is open to its group.
        - name: DESKWIRE_DATA
          value: /var/lib/deskwire/data
        {{- end }}
        - name: DESKWIRE_SHUTDOWN_S
          value: {{ .Values.shutdownSeconds | quote }}
        {{- if and $nodes .Values.databaseUrl.secretName }}
        - name: DESKWIRE_DATABASE_URL
          valueFrom:
            secretKeyRef:
              name: {{ .Values.databaseUrl.secretName }}
              key: {{ .Values.databaseUrl.key }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: 8080
      {{- if $nodes }}
      # The balancers learn that the node goes before it stops to accept connections.
      lifecycle:
        preStop:
          exec:
            command: [sleep, "5"]
      {{- end }}
      startupProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 5
        failureThreshold: {{ div (add .Values.startupSeconds 4) 5 }}
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: {{ ternary 2 5 $nodes }}
        timeoutSeconds: {{ ternary 2 3 $nodes }}
        failureThreshold: 2
      livenessProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: data
          mountPath: /var/lib/deskwire
        - name: tmp
          mountPath: /tmp
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- if $nodes }}
    - name: data
      emptyDir: {}
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
