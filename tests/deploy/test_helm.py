"""The Helm chart: accepted by Helm, equal to the kustomizations, refusing mistakes, and settings that the service takes."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deskwire.config.config import Config
from tests.deploy import chart
from tests.deploy.helm import lint, notes, package, refusals, template
from tests.deploy.test_kubernetes import IMAGE, LOG_AND_WEBHOOKS_S, NODES, ONE, SECRETS, VERSIONS, Manifests
from tests.deploy.tools import needs
from tests.support.root import ROOT

NEEDED: Final[dict[str, Any]] = {
    "image": {"repository": "registry.example.com/deskwire"},
    "publicUrl": "https://support.example.com",
}
"""The values that every installation sets."""
AS_KUSTOMIZED: Final[dict[str, Any]] = {
    **NEEDED,
    "trustedProxies": ["10.0.0.0/8"],
    "ingress": {"enabled": True},
}
EVERYTHING: Final[dict[str, Any]] = {
    **AS_KUSTOMIZED,
    "image": {**NEEDED["image"], "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "settings": {"DESKWIRE_LOG_LEVEL": "debug"},
    "ingress": {"enabled": True, "className": "nginx"},
    "persistence": {"size": "50Gi", "storageClass": "fast", "accessMode": "ReadWriteOnce"},
    "service": {"type": "LoadBalancer", "port": 8080, "annotations": {"example.com/a": "b"}},
    "networkPolicy": {"extraEgress": [{"to": [{"podSelector": {}}], "ports": [{"port": 443}]}]},
    "serviceAccountName": "deskwire",
    "podAnnotations": {"example.com/a": "b"},
    "podLabels": {"example.com/a": "b"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "priorityClassName": "high",
    "topologySpreadConstraints": [
        {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "extraEnvFrom": [{"secretRef": {"name": "bucket"}}],
    "extraVolumes": [{"name": "ca", "secret": {"secretName": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "grafanaDashboard": {"enabled": True, "annotations": {"grafana_folder": "Deskwire"}},
}
LITTLE: Final[dict[str, Any]] = {
    **AS_KUSTOMIZED,
    "ingress": {"enabled": True, "tlsSecret": "", "annotations": None},
    "networkPolicy": {"fromNamespaces": [], "database": {"to": []}},
    "resources": {"limits": None},
    "podDisruptionBudget": {"enabled": False},
}
OPERATOR: Final = {"PodMonitor", "PrometheusRule"}
"""Kinds of the Prometheus operator, whose schemas Kubernetes does not have."""
OF_HELM: Final = re.compile(r"app\.kubernetes\.io/(?!name$)|helm\.sh/")

each_mode = pytest.mark.parametrize("mode", ["one", "nodes"])
each_set = pytest.mark.parametrize(
    ("mode", "manifests"), [("one", ONE), ("nodes", NODES)], ids=["one", "nodes"]
)


def by_kind(values: dict[str, Any], **changed: Any) -> dict[str, dict[str, Any]]:
    """Return the rendered objects by kind; the second ConfigMap has its name's suffix in its key."""
    objects = template({**values, **changed})
    return {each["kind"] + each["metadata"]["name"].removeprefix("deskwire"): each for each in objects}


def workload(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the StatefulSet or Deployment."""
    (kind,) = objects.keys() & {"StatefulSet", "Deployment"}
    return objects[kind]


def container(objects: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the only container of the pods."""
    (found,) = workload(objects)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def environment(objects: dict[str, dict[str, Any]], secrets: set[str]) -> dict[str, str]:
    """Return the variables that a container starts with."""
    return {
        **IMAGE.environment({}),
        **objects["ConfigMap"]["data"],
        **{name: value for name, value in SECRETS.items() if name in secrets},
        **{each["name"]: each.get("value", "deskwire-7f9c") for each in container(objects)["env"]},
    }


def bare(node: Any) -> Any:
    """Return an object without Helm's own labels and annotations."""
    if isinstance(node, dict):
        return {key: bare(value) for key, value in node.items() if not OF_HELM.match(key)}
    return [bare(each) for each in node] if isinstance(node, list) else node


def values_of(text: str) -> dict[str, Any]:
    """Return values.yaml."""
    found: dict[str, Any] = yaml.safe_load(text)
    return found


@needs("helm_python")
@pytest.mark.parametrize(
    "values",
    [{}, AS_KUSTOMIZED, LITTLE, EVERYTHING],
    ids=["defaults", "usual", "little", "everything"],
)
@each_mode
def test_helm_lints_the_chart_strictly_without_a_finding(mode: str, values: dict[str, Any]) -> None:
    assert lint(values={**values, "mode": mode}) == []


@needs("helm_python")
def test_lint_finds_a_broken_template(tmp_path: Path) -> None:
    broken = shutil.copytree(chart.CHART, tmp_path / "deskwire")
    (broken / "templates/service.yaml").write_text("kind: {{ .Values.service.typ.name }}\n")
    assert any("typ" in each for each in lint(broken))


@needs("helm_python")
@each_set
def test_chart_makes_the_objects_of_the_kustomization(mode: str, manifests: Manifests) -> None:
    made = by_kind(AS_KUSTOMIZED, mode=mode)
    literals = [each for made in manifests.kustomization["configMapGenerator"] for each in made["literals"]]
    assert made.pop("ConfigMap")["data"] == dict(each.split("=", 1) for each in literals)
    (image,) = manifests.kustomization["images"]
    wanted = {kind: each for kind, each in manifests.resources.items() if kind != "Namespace"}
    (kind,) = wanted.keys() & {"StatefulSet", "Deployment"}
    pod = wanted[kind]["spec"]["template"]["spec"]
    pod["containers"][0] |= {
        "image": f"{image['newName']}:{chart.version()}",
        "imagePullPolicy": "IfNotPresent",
    }
    wanted["Service"]["spec"]["type"] = "ClusterIP"
    for each in made.values():
        assert each["metadata"].pop("namespace") == "deskwire"
    made[kind]["spec"]["template"]["metadata"].pop("annotations")
    assert {name: bare(each) for name, each in made.items()} == wanted


@needs("helm_python")
@needs("kubernetes_validate")
@pytest.mark.parametrize("values", [AS_KUSTOMIZED, LITTLE, EVERYTHING], ids=["usual", "little", "everything"])
@pytest.mark.parametrize("version", VERSIONS)
@each_mode
def test_output_is_valid_by_the_schemas_of_kubernetes(
    version: str, mode: str, values: dict[str, Any]
) -> None:
    from kubernetes_validate import validate

    database = {"databaseUrl": {"secretName": "deskwire-db-app"}} if mode == "nodes" else {}
    checked = set()
    for each in template({**values, "mode": mode, **database}, release="support", namespace="help"):
        assert each["metadata"]["namespace"] == "help"
        assert each["metadata"]["name"].startswith("support-deskwire")
        if each["kind"] not in OPERATOR:
            validate(each, version, strict=True)
            checked.add(each["kind"])
    assert checked >= {"ConfigMap", "Service", "Ingress", "NetworkPolicy"}


MISTAKES: Final[list[tuple[dict[str, Any], str]]] = [
    ({"imge": {}}, "imge"),
    ({"image": {**NEEDED["image"], "tga": "1"}}, "tga"),
    ({"image": {"repository": "a@sha256:0"}}, "repository"),
    ({"mode": "node"}, "mode"),
    ({"replicas": "3"}, "replicas"),
    ({"replicas": 0}, "replicas"),
    ({"publicUrl": "support.example.com"}, "publicUrl"),
    ({"trustedProxies": ["10.0.0.1"]}, "trustedProxies"),
    ({"settings": {"DESKWIRE_LOG_LEVL": "debug"}}, "DESKWIRE_LOG_LEVL"),
    ({"settings": {"DESKWIRE_SECRET": "in a ConfigMap"}}, "DESKWIRE_SECRET"),
    ({"settings": {"DESKWIRE_PORT": 80}}, "DESKWIRE_PORT"),
    ({"existingSecret": ""}, "existingSecret"),
    ({"ingress": {"host": "support.example.com"}}, "host"),
    ({"ingress": {"enabled": "yes"}}, "enabled"),
    ({"persistence": {"size": "20 GB"}}, "size"),
    ({"networkPolicy": {"namespaces": []}}, "namespaces"),
    ({"podMonitor": {"interval": 30}}, "interval"),
    ({"extraEnv": [{"value": "1"}]}, "name"),
    ({"image": {}}, "image.repository: push the image"),
    ({"publicUrl": ""}, "publicUrl: the URL"),
    ({"ingress": {"enabled": True}}, "trustedProxies: with an ingress"),
    ({"databaseUrl": {"secretName": "db"}}, "set mode to nodes"),
]
"""Wrong values, and the words that the refusal must contain."""


@needs("helm_python")
def test_a_mistake_in_the_values_is_refused_by_its_name() -> None:
    accepted, *refused = refusals([NEEDED, *({**NEEDED, **values} for values, _ in MISTAKES)])
    assert accepted == ""
    for (values, named), reason in zip(MISTAKES, refused, strict=True):
        assert named in reason, (values, reason)


def test_every_value_has_a_default_and_a_place_in_the_schema() -> None:
    schema = json.loads(chart.SCHEMA.read_text())

    def compare(values: Any, described: dict[str, Any], path: str) -> None:
        names = described.get("properties", {})
        if described.get("additionalProperties") is False and path != ".settings":
            assert values.keys() == names.keys() - ({"global"} if not path else {"claims"}), path
            for name, each in values.items():
                compare(each, names[name], f"{path}.{name}")

    compare(values_of((chart.CHART / "values.yaml").read_text()), schema, "")


def test_generated_parts_are_those_of_the_service() -> None:
    assert chart.SCHEMA.read_text() == chart.schema(), "run `make docs`"
    assert chart.METADATA.read_text() == chart.metadata(), "run `make docs`"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.1.0", "0.1.0"),
        ("0.2.0.dev1", "0.2.0-dev.1"),
        ("1.0.0rc2", "1.0.0-rc.2"),
        ("0.2.0.dev0+gab", "0.2.0-dev.0+gab"),
    ],
)
def test_a_version_is_written_as_helm_requires(version: str, expected: str) -> None:
    assert chart.semantic(version) == expected


@needs("helm_python")
@pytest.mark.parametrize("shutdown", [1, 20, 90])
@each_mode
def test_the_service_takes_its_settings_and_has_time_to_stop(mode: str, shutdown: int) -> None:
    numbers = {
        "DESKWIRE_LOG_RING_BYTES": 1_073_741_824,
        "DESKWIRE_WEBHOOK_RETRY_JITTER": 0.15,
        "DESKWIRE_DEMO": False,
    }
    made = by_kind(AS_KUSTOMIZED, mode=mode, settings=numbers, shutdownSeconds=shutdown)
    secrets = {"DESKWIRE_SECRET", "DESKWIRE_METRICS_TOKEN"} | (
        {"DESKWIRE_DATABASE_URL"} if mode == "nodes" else set()
    )
    config = Config.load(environment(made, secrets), {})
    assert (config.database_url is None) == (mode == "one")
    assert (config.log_ring_bytes, config.demo) == (1_073_741_824, False)
    assert config.webhook_retry_jitter == pytest.approx(0.15)
    pause = 5 if mode == "nodes" else 0
    grace = workload(made)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert pause + config.shutdown_s + LOG_AND_WEBHOOKS_S < grace


@needs("helm_python")
def test_a_change_of_settings_restarts_the_pods_and_a_change_of_labels_does_not() -> None:
    def annotations(**changed: Any) -> dict[str, str]:
        found = workload(by_kind(NEEDED, **changed))["spec"]["template"]["metadata"]["annotations"]
        return {name: text for name, text in found.items() if name == "checksum/settings"}

    assert annotations(settings={"DESKWIRE_LOG_LEVEL": "debug"}) != annotations()
    assert annotations(service={"annotations": {"a": "b"}}) == annotations()


@needs("helm_python")
def test_url_of_the_database_can_be_in_a_secret_of_its_operator() -> None:
    made = by_kind(NEEDED, mode="nodes", databaseUrl={"secretName": "deskwire-db-app"})
    found = {each["name"]: each for each in container(made)["env"]}["DESKWIRE_DATABASE_URL"]
    assert found["valueFrom"] == {"secretKeyRef": {"name": "deskwire-db-app", "key": "uri"}}


@needs("helm_python")
@pytest.mark.parametrize(("replicas", "left"), [(1, None), (2, 1), (5, 4)])
def test_a_budget_never_blocks_the_last_machine(replicas: int, left: int | None) -> None:
    made = by_kind(NEEDED, mode="nodes", replicas=replicas)
    budget = made.get("PodDisruptionBudget", {"spec": {"minAvailable": None}})
    assert budget["spec"]["minAvailable"] == left
    assert "PodDisruptionBudget" not in by_kind(NEEDED, mode="one", replicas=replicas)


@needs("helm_python")
def test_monitoring_is_that_of_the_repository_and_asks_with_the_token() -> None:
    made = by_kind(EVERYTHING, mode="nodes")
    rules = yaml.safe_load((ROOT / "docs/monitoring/alerts.yml").read_text())
    assert made["PrometheusRule"]["spec"] == rules
    assert made["ConfigMap-dashboard"]["data"]["deskwire.json"].strip() == (
        (ROOT / "docs/monitoring/dashboard.json").read_text().strip()
    )
    (endpoint,) = made["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "deskwire", "key": "DESKWIRE_METRICS_TOKEN"}
    assert endpoint["port"] in {each["name"] for each in container(made)["ports"]}
    labels = workload(made)["spec"]["template"]["metadata"]["labels"]
    assert made["PodMonitor"]["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for kind in OPERATOR:
        assert made[kind]["metadata"]["labels"]["release"] == "prometheus"


@needs("helm_python")
@each_mode
def test_two_releases_in_a_namespace_do_not_select_each_others_pods(mode: str) -> None:
    first, second = (template({**NEEDED, "mode": mode}, release=name) for name in ("a", "b"))
    assert not {(each["kind"], each["metadata"]["name"]) for each in first} & {
        (each["kind"], each["metadata"]["name"]) for each in second
    }
    selectors = [each["spec"]["selector"] for each in [*first, *second] if each["kind"] == "Service"]
    assert selectors[0] != selectors[1]


@needs("helm_python")
def test_names_leave_room_for_the_hash_of_a_statefulset() -> None:
    names = [each["metadata"]["name"] for each in template(NEEDED, release="s" * 53)]
    assert {len(name) for name in names} == {52}


@needs("helm_python")
def test_little_network_policy_lets_no_pod_in_and_keeps_dns_and_webhooks() -> None:
    spec = by_kind(LITTLE, mode="nodes")["NetworkPolicy"]["spec"]
    assert spec["ingress"] == []
    assert len(spec["egress"]) == 2
    assert "limits" not in container(by_kind(LITTLE))["resources"]


@needs("helm_python")
def test_notes_name_the_workload_and_the_next_command() -> None:
    assert "exec statefulset/deskwire -- deskwire org create" in notes(NEEDED)
    assert "exec deployment/deskwire -- deskwire org create" in notes({**NEEDED, "mode": "nodes"})


@needs("helm_python")
def test_an_archive_of_the_chart_contains_alerts_dashboard_and_schema(tmp_path: Path) -> None:
    with tarfile.open(package(tmp_path)) as archive:
        names = {each.name.removeprefix("deskwire/") for each in archive.getmembers() if each.isfile()}
        alerts = archive.extractfile("deskwire/files/alerts.yml")
        assert alerts is not None
        assert alerts.read() == (ROOT / "docs/monitoring/alerts.yml").read_bytes()
    assert names >= {"Chart.yaml", "values.yaml", "values.schema.json", "files/dashboard.json"}
