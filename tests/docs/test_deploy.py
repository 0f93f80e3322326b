"""The deployment files: they agree with the program, and the tools that read them accept them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.config.config import Config
from deskwire.config.settings import SETTINGS, VARIABLES
from deskwire.program.process import DESCRIPTOR_RESERVE
from tests.docs.pages import blocks, guides
from tests.support.root import ROOT
from tests.support.sockets.certificates import Files

DEPLOY: Final = ROOT / "docs/deploy"
GUIDE: Final = ROOT / "docs/guide/deploy.md"
VARIABLE: Final = re.compile(r"DESKWIRE_[A-Z0-9_]+")


class Unit(dict[str, list[str]]):
    """Return the values of a unit file by name; sections don't matter here."""

    def __init__(self, name: str) -> None:
        super().__init__()
        for line in (DEPLOY / name).read_text().splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.startswith("#"):
                self.setdefault(key, []).append(value)

    @property
    def environment(self) -> dict[str, str]:
        return dict(each.split("=", 1) for each in self.get("Environment", []))


def files() -> list[Path]:
    """Return every deployment file."""
    return sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".pyc")


def settings_of(path: Path) -> dict[str, str]:
    """Return the settings of an environment file, including those in comments."""
    return dict(re.findall(r"^#?(DESKWIRE_[A-Z_]+)=(.*)$", path.read_text(), re.MULTILINE))


def accepted(command: list[str]) -> None:
    """Check that the options of a command line exist."""
    done = CliRunner().invoke(cli, [*command, "--help"])
    assert done.exit_code == 0, done.output
    assert all(f" {each} " in done.output for each in command if each.startswith("--"))


def test_every_setting_in_the_files_is_one() -> None:
    for path in files():
        assert set(VARIABLE.findall(path.read_text())) <= VARIABLES, path.name


def test_every_file_is_named_in_a_guide() -> None:
    """The file itself, or the kustomization or Helm chart that it is a part of."""
    linked = {
        (page.parent / target).resolve()
        for page in guides()
        for target in re.findall(r"\]\((\.\./deploy/[\w./-]+)\)", page.read_text())
    }
    assert linked
    for path in files():
        assert linked & {path, path.with_name("kustomization.yaml"), *_chart(path)}, path


def _chart(path: Path) -> set[Path]:
    """Return the Chart.yaml of the chart that a file is a part of."""
    return {chart for folder in path.parents if (chart := folder / "Chart.yaml").is_file()}


@pytest.mark.parametrize("files", [("deskwire.service",), ("deskwire.service", "tls.conf")])
def test_the_unit_starts_the_program_with_settings_that_go_together(files: tuple[str, ...]) -> None:
    environ = settings_of(DEPLOY / "deskwire.env")
    environ = {name: value for name, value in environ.items() if value}
    for name in files:
        environ |= Unit(name).environment
    config = Config.load(environ, {})
    unit = Unit("deskwire.service")
    assert config.data_dir == Path("/var/lib", *unit["StateDirectory"])
    assert float(unit["TimeoutStopSec"][0]) > config.shutdown_s
    (program, *command) = shlex.split(unit["ExecStart"][0])
    assert Path(program).name == "deskwire"
    accepted(command)


def test_socket_uses_the_default_address_of_the_service() -> None:
    config = Config.load({}, {})
    assert Unit("deskwire.socket")["ListenStream"] == [f"{config.host}:{config.port}"]
    assert "deskwire.socket" in Unit("deskwire.service")["After"][0].split()
    assert "Accept" not in Unit("deskwire.socket")


def test_service_start_has_no_timeout() -> None:
    unit = Unit("deskwire.service")
    assert (unit["Type"], unit["NotifyAccess"], unit["TimeoutStartSec"]) == (
        ["notify"],
        ["all"],
        ["infinity"],
    )


def test_the_limit_of_open_files_has_room_for_all_connections() -> None:
    assert int(Unit("deskwire.service")["LimitNOFILE"][0]) > Config().connections + DESCRIPTOR_RESERVE


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze to ask")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """Use a program and a user of this machine, because systemd complains about missing ones."""
    text = (DEPLOY / "deskwire.service").read_text().replace("/usr/local/bin/deskwire", "/bin/true")
    unit = tmp_path / "deskwire.service"
    unit.write_text(text)
    (tmp_path / "deskwire.service.d").mkdir()
    shutil.copy(DEPLOY / "tls.conf", tmp_path / "deskwire.service.d/tls.conf")
    port = shutil.copy(DEPLOY / "deskwire.socket", tmp_path)
    command = ["systemd-analyze", "verify", "--man=no", "--generators=no", str(unit), str(port)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "deskwire" in line or "tls.conf" in line]
    assert (done.returncode, ours) == (0, [])


@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx to ask")
def test_nginx_accepts_its_file(tmp_path: Path) -> None:
    files = Files(tmp_path)
    text = (DEPLOY / "nginx.conf").read_text()
    text = re.sub(r"ssl_certificate /\S+;", f"ssl_certificate {files.chain};", text)
    text = re.sub(r"ssl_certificate_key /\S+;", f"ssl_certificate_key {files.key};", text)
    (tmp_path / "nginx.conf").write_text(f"events {{}}\npid {tmp_path}/pid;\nhttp {{\n{text}\n}}\n")
    command = ["nginx", "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_proxies_accept_bodies_that_the_service_accepts() -> None:
    bodies = {name: (DEPLOY / name).read_text() for name in ("nginx.conf", "Caddyfile")}
    upload = SETTINGS["upload_limit_bytes"].default
    assert isinstance(upload, int)
    for text in bodies.values():
        (allowed,) = re.findall(r"\b(\d+)(?:m|MiB)\b", text)
        assert int(allowed) * 1024 * 1024 > upload
    assert "/app/" in bodies["nginx.conf"]  # Caddy passes websockets on by default
    assert "X-Forwarded-For $proxy_add_x_forwarded_for" in bodies["nginx.conf"]


def test_the_guides_shell_commands_name_files_that_exist() -> None:
    shown = "\n".join(block.text for block in blocks(GUIDE) if block.words == ("sh",))
    named = set(re.findall(r"(?<![\w/])(docs/deploy/[\w./-]*\w|requirements/\w+\.txt)", shown))
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []
