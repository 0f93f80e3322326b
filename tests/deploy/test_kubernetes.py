"""The manifests for Kubernetes: valid by its schemas, consistent with the image, under the strictest pod standard."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deskwire.config.config import Config, ConfigError
from deskwire.http.app import ROUTES
from tests.deploy.dockerfile import stages
from tests.deploy.tools import needs, program
from tests.support.root import ROOT

FOLDER: Final = ROOT / "docs/deploy/kubernetes"
IMAGE = stages()[-1]
VERSIONS: Final = ("1.29.0", "1.37.0")
"""The oldest version that knows all fields of the manifests, and the newest whose schemas are here."""
LOG_AND_WEBHOOKS_S: Final = 3.0
"""How long a stop may take beyond DESKWIRE_SHUTDOWN_S."""
SECRETS: Final = {
    "DESKWIRE_SECRET": "a secret of more than thirty-two characters",
    "DESKWIRE_METRICS_TOKEN": "a token of more than thirty-two characters",
    "DESKWIRE_DATABASE_URL": "postgresql://deskwire:password@db/deskwire",
}
NAME: Final = {"app.kubernetes.io/name": "deskwire"}


@dataclass(frozen=True)
class Manifests:
    """A folder of manifests, by their kinds."""

    folder: Path

    @property
    def kustomization(self) -> dict[str, Any]:
        return self._read(self.folder / "kustomization.yaml")

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        found = [self._read(self.folder / name) for name in self.kustomization["resources"]]
        return {each["kind"]: each for each in found}

    @property
    def workload(self) -> dict[str, Any]:
        (kind,) = self.resources.keys() & {"StatefulSet", "Deployment"}
        return self.resources[kind]

    @property
    def pod(self) -> dict[str, Any]:
        found: dict[str, Any] = self.workload["spec"]["template"]["spec"]
        return found

    @property
    def container(self) -> dict[str, Any]:
        (found,) = self.pod["containers"]
        return dict(found)

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that a container starts with, including those of the secret."""
        literals = [each for made in self.kustomization["configMapGenerator"] for each in made["literals"]]
        comment = (self.folder / "kustomization.yaml").read_text()
        return {
            **IMAGE.environment({}),
            **dict(each.split("=", 1) for each in literals),
            **{name: value for name, value in SECRETS.items() if f"--from-literal={name}=" in comment},
            **{each["name"]: each.get("value", "deskwire-7f9c") for each in self.container["env"]},
        }

    @staticmethod
    def _read(path: Path) -> dict[str, Any]:
        (found,) = yaml.safe_load_all(path.read_text())
        assert isinstance(found, dict)
        return found


ONE = Manifests(FOLDER / "one")
NODES = Manifests(FOLDER / "nodes")
each_set = pytest.mark.parametrize("manifests", [ONE, NODES], ids=["one", "nodes"])


@needs("kubernetes_validate")
@each_set
@pytest.mark.parametrize("version", VERSIONS)
def test_each_manifest_is_valid_by_the_schemas_of_kubernetes(manifests: Manifests, version: str) -> None:
    from kubernetes_validate import ValidationError, validate

    for each in manifests.resources.values():
        validate(each, version, strict=True)
    wrong = manifests.workload
    wrong["spec"]["template"]["spec"]["containers"][0]["readinessProb"] = {}
    with pytest.raises(ValidationError):
        validate(wrong, version, strict=True)


@needs("kubernetes_validate")
@needs("kubectl")
@each_set
def test_kustomize_output_is_valid_by_the_schemas(manifests: Manifests) -> None:
    from kubernetes_validate import validate

    kubectl = program("kubectl")
    assert kubectl is not None
    command = [kubectl, "kustomize", str(manifests.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    made = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    assert made.keys() == manifests.resources.keys() | {"ConfigMap"}
    for each in made.values():
        validate(each, VERSIONS[-1], strict=True)
    assert {each["metadata"].get("namespace") for each in made.values()} == {"deskwire", None}
    (container,) = made[manifests.workload["kind"]]["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"][0]["configMapRef"]["name"] == made["ConfigMap"]["metadata"]["name"]
    assert re.fullmatch(r"registry\.example\.com/deskwire:\d+\.\d+\.\d+", container["image"])


@each_set
def test_nodes_have_consistent_settings_and_enough_time_to_stop(
    manifests: Manifests,
) -> None:
    config = Config.load(manifests.environment, {})
    assert (config.database_url is None) == (manifests is ONE)
    hook = (
        manifests.container.get("lifecycle", {})
        .get("preStop", {})
        .get("exec", {})
        .get("command", ["sleep", "0"])
    )
    pause = float(hook[1])
    assert pause + config.shutdown_s + LOG_AND_WEBHOOKS_S < manifests.pod["terminationGracePeriodSeconds"]
    assert "command" not in manifests.container
    assert "args" not in manifests.container


def test_service_variables_of_kubernetes_are_disabled_because_they_break_the_start() -> None:
    links = {"DESKWIRE_PORT": "tcp://10.96.0.12:80", "DESKWIRE_SERVICE_HOST": "10.96.0.12"}
    with pytest.raises(ConfigError):
        Config.load({**ONE.environment, **links}, {})
    assert ONE.pod["enableServiceLinks"] is NODES.pod["enableServiceLinks"] is False


@each_set
def test_pod_meets_the_restricted_standard_with_a_read_only_root(manifests: Manifests) -> None:
    labels = manifests.resources["Namespace"]["metadata"]["labels"]
    assert labels == {"pod-security.kubernetes.io/enforce": "restricted"}
    of_pod, of_container = manifests.pod["securityContext"], manifests.container["securityContext"]
    user, group = map(int, IMAGE.only("USER").split(":"))
    assert (of_pod["runAsNonRoot"], of_pod["runAsUser"], of_pod["runAsGroup"]) == (True, user, group)
    assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert of_container == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert manifests.pod["automountServiceAccountToken"] is False
    mounted = {each["mountPath"]: each["name"] for each in manifests.container["volumeMounts"]}
    assert mounted.keys() == {IMAGE.only("VOLUME"), "/tmp"}
    claims = [each["metadata"]["name"] for each in manifests.workload["spec"].get("volumeClaimTemplates", [])]
    assert {*claims, *(each["name"] for each in manifests.pod["volumes"])} == set(mounted.values())
    assert Path(manifests.environment["DESKWIRE_DATA"]).is_relative_to(IMAGE.only("VOLUME"))


@each_set
def test_the_probes_ask_routes_of_the_port_that_the_image_listens_on(manifests: Manifests) -> None:
    (port,) = manifests.container["ports"]
    assert port == {"name": "http", "containerPort": int(IMAGE.only("EXPOSE"))}
    asked = {
        name: manifests.container[f"{name}Probe"]["httpGet"] for name in ("startup", "readiness", "liveness")
    }
    assert {name: each["path"] for name, each in asked.items()} == {
        "startup": "/healthz",
        "readiness": "/readyz",
        "liveness": "/healthz",
    }
    for each in asked.values():
        assert each["port"] == "http"
        assert ("GET", each["path"]) in {(route.method, route.path) for route in ROUTES}


@each_set
def test_everything_that_selects_the_nodes_finds_them(manifests: Manifests) -> None:
    assert manifests.workload["spec"]["template"]["metadata"]["labels"] == NAME
    found = manifests.resources
    assert manifests.workload["spec"]["selector"] == {"matchLabels": NAME}
    assert found["Service"]["spec"]["selector"] == NAME
    assert found["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": NAME}
    (rule,) = found["Ingress"]["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    (port,) = found["Service"]["spec"]["ports"]
    assert path["backend"]["service"] == {
        "name": found["Service"]["metadata"]["name"],
        "port": {"name": port["name"]},
    }
    assert manifests.environment["DESKWIRE_PUBLIC_URL"] == f"https://{rule['host']}"
    files = {path.name for path in manifests.folder.iterdir()} - {"kustomization.yaml"}
    assert files == set(manifests.kustomization["resources"])


def test_single_node_has_an_exclusive_volume_and_several_are_never_all_down() -> None:
    (claim,) = ONE.workload["spec"]["volumeClaimTemplates"]
    assert ONE.workload["spec"]["replicas"] == 1
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    budget = NODES.resources["PodDisruptionBudget"]["spec"]
    assert budget["selector"] == {"matchLabels": NAME}
    assert 0 < budget["minAvailable"] < NODES.workload["spec"]["replicas"]
    assert NODES.workload["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


@each_set
def test_webhooks_reach_the_internet_and_nothing_inside(manifests: Manifests) -> None:
    rules = manifests.resources["NetworkPolicy"]["spec"]["egress"]
    blocks = [each["ipBlock"] for rule in rules for each in rule["to"] if "ipBlock" in each]

    def reached(address: str) -> bool:
        inside = ipaddress.ip_address(address)
        return any(
            inside in ipaddress.ip_network(block["cidr"])
            and not any(inside in ipaddress.ip_network(each) for each in block["except"])
            for block in blocks
        )

    assert reached("1.1.1.1")
    assert reached("2606:4700::1111")
    for address in (
        "10.0.0.1",
        "169.254.169.254",
        "172.20.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "127.0.0.1",
        "::1",
        "fd00::1",
    ):
        assert not reached(address), address
