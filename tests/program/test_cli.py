"""The command line: its output, its refusals, and the options that it passes to the program."""

import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from deskwire.cli import cli
from deskwire.commands.reference import settings as reference
from deskwire.config.config import Config
from deskwire.config.settings import SETTINGS
from deskwire.engine.core import build
from deskwire.program.demo_password import DemoPassword
from deskwire.program.port import Port
from deskwire.program.systemd import ServiceManager
from tests.support.root import ROOT

PAGE = ROOT / "docs/reference/settings.md"
SECRET = "correct horse battery staple, and more"


@pytest.fixture(autouse=True)
def _environment_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("DESKWIRE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Config]]:
    """Put another program in place of the real one, and yield the configurations that it is run with; it exits with 7."""
    configs: list[Config] = []

    async def run(
        config: Config,
        port: Port | None,
        manager: ServiceManager,
        password: Callable[[], DemoPassword],
        *,
        new_secret: bool,
    ) -> int:
        assert not new_secret
        configs.append(config)
        for each in () if port is None else port.sockets:
            each.close()
        return 7

    program = ModuleType("deskwire.program.serve")
    program.__dict__["run"] = run
    monkeypatch.setitem(sys.modules, "deskwire.program.serve", program)
    thresholds = gc.get_threshold()
    yield configs
    gc.set_threshold(*thresholds)


def invoke(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(cli, arguments, env=environ)


def test_the_version_is_that_of_the_build_with_its_commit() -> None:
    assert invoke("--version").output == f"deskwire, version {build.version()}, commit {build.commit()}\n"


def test_notices_of_an_installation_name_the_place_of_the_licences() -> None:
    assert invoke("--notices").output == build.notices()


def test_the_module_can_be_run_like_the_script() -> None:
    command = [sys.executable, "-m", "deskwire", "--help"]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("Usage: deskwire ")


def test_serve_runs_the_program_with_the_settings_and_exits_with_its_status(served: list[Config]) -> None:
    options = ("--data", "x", "--host", "::", "--port", "0", "--no-demo", "--allow-private-webhooks")
    more = ("--public-url", "https://a.example/", "--log-format", "json", "--log-level", "error")
    answer = invoke("serve", *options, *more)
    assert answer.exit_code == 7
    assert served == [
        Config(
            data_dir=Path("x"),
            host="::",
            port=0,
            demo=False,
            allow_private_webhooks=True,
            public_url="https://a.example",
            log_format="json",
            log_level="error",
        )
    ]


def test_serve_without_options_uses_the_environment(served: list[Config]) -> None:
    invoke("serve", DESKWIRE_PORT="5")
    (config,) = served
    assert (config.port, config.demo) == (5, True)
    assert {name for name, origin in config.origin.items() if origin != "default"} == {"port"}


def test_serve_with_bad_settings_names_them_all_and_never_starts(served: list[Config]) -> None:
    answer = invoke("serve", "--port", "x", DESKWIRE_SECRET="hunter2", DESKWIRE_PROT="1")
    assert (answer.exit_code, served) == (2, [])
    assert all(name in answer.stderr for name in ("--port", "DESKWIRE_SECRET", "DESKWIRE_PROT"))
    assert "hunter2" not in answer.output


def test_config_lists_every_setting_with_value_and_origin() -> None:
    answer = invoke("config", "--host", "[::1]", DESKWIRE_PORT="81")
    lines = answer.stdout.splitlines()
    for each in SETTINGS.values():
        (line,) = [line for line in lines if line.startswith(f"{each.variable} = ")]
        assert re.search(r"  \((default|environment|option)\)$", line)
    assert "DESKWIRE_PORT = 81  (environment)" in lines
    assert "DESKWIRE_HOST = [::1]  (option)" in lines
    below = lines[lines.index("DESKWIRE_PORT = 81  (environment)") + 1]
    assert below == f"    {SETTINGS['port'].meaning} Option: --port."


def test_config_fits_a_terminal_of_80_columns() -> None:
    assert all(len(line) < 80 for line in invoke("config").stdout.splitlines())


def test_config_as_json_has_every_setting_in_json_types() -> None:
    answer = invoke("config", "--json", DESKWIRE_PORT="81", DESKWIRE_WEBHOOK_ALLOW="10.0.0.0/8,fd00::/8")
    listed = {each["name"]: each for each in json.loads(answer.stdout)}
    assert listed.keys() == SETTINGS.keys()
    assert listed["port"]["value"] == 81
    assert listed["demo"]["value"] is True
    assert listed["public_url"]["value"] is None
    assert listed["webhook_allow"]["value"] == ["10.0.0.0/8", "fd00::/8"]
    assert listed["webhook_retry_after_s"]["value"] == [2.0, 6.0, 12.0]
    assert listed["data_dir"] == {
        "name": "data_dir",
        "variable": "DESKWIRE_DATA",
        "option": "--data",
        "value": "data",
        "origin": "default",
        "meaning": SETTINGS["data_dir"].meaning,
    }


@pytest.mark.parametrize("form", [(), ("--json",), ("--markdown",)])
def test_config_never_shows_a_secret(form: tuple[str, ...]) -> None:
    answer = invoke("config", *form, DESKWIRE_SECRET=SECRET)
    assert answer.exit_code == 0
    assert SECRET not in answer.output


def test_reference_page_equals_the_programs_output_with_any_settings() -> None:
    answer = invoke("config", "--markdown", DESKWIRE_PORT="81")
    assert answer.stdout == reference.markdown() == PAGE.read_text(), "out of date: run `make docs`"


def test_the_reference_page_has_every_setting_and_option() -> None:
    page = PAGE.read_text()
    for each in SETTINGS.values():
        assert f"\n| `{each.variable}` |" in page
        assert each.option is None or f" `{each.option}` |" in page
