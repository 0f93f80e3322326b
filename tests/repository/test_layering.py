"""The layers are separate, and the check of that covers all three source roots."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.root import ROOT

ROOTS = ("engine", "http", "storage")
LINT = "from importlinter.cli import lint_imports_command as c; c(['--no-cache', '--no-logo'])"

VIOLATIONS = [
    ("engine/deskwire/engine", "deskwire.http"),
    ("engine/deskwire/engine", "deskwire.storage"),
    ("engine/deskwire/engine/core", "deskwire.config"),
    ("storage/deskwire/storage", "deskwire.http"),
    ("storage/deskwire/storage/tables", "deskwire.logs"),
    ("http/deskwire/http", "deskwire.storage"),
    ("http/deskwire/http/resources", "deskwire.cli"),
    ("engine/deskwire/commands/api_client", "deskwire.program"),
    ("engine/deskwire/commands/listen", "deskwire.storage"),
    ("engine/deskwire/commands/import_", "deskwire.commands.demo"),
    ("engine/deskwire/commands/deliveries", "deskwire.http"),
    ("engine/deskwire/engine/core", "deskwire.engine.accounts"),
    ("engine/deskwire/engine/core", "deskwire.engine.definitions"),
    ("engine/deskwire/engine/accounts", "deskwire.engine.contacts"),
    ("engine/deskwire/engine/contacts", "deskwire.engine.events"),
    ("engine/deskwire/engine/events", "deskwire.engine.webhooks"),
    ("engine/deskwire/engine/workflows", "deskwire.engine.surveys"),
    ("engine/deskwire/engine/webhooks", "deskwire.engine.stream"),
    ("engine/deskwire/engine/stream", "deskwire.engine.conversations"),
    ("engine/deskwire/engine/conversations", "deskwire.engine.tickets"),
    ("engine/deskwire/engine/tickets", "deskwire.engine.importing"),
    ("engine/deskwire/engine/importing", "deskwire.engine.privacy"),
    ("engine/deskwire/engine/privacy", "deskwire.engine.voice"),
    ("engine/deskwire/engine/voice", "deskwire.engine.ports"),
    ("http/deskwire/http/transport", "deskwire.http.measurements"),
    ("http/deskwire/http/schemas", "deskwire.http.api"),
    ("http/deskwire/http/api", "deskwire.http.metrics"),
    ("http/deskwire/http/api", "deskwire.http.stream"),
    ("http/deskwire/http/stream", "deskwire.http.metrics"),
    ("http/deskwire/http/metrics", "deskwire.http.resources"),
    ("http/deskwire/http/resources", "deskwire.http.server"),
    ("http/deskwire/http/pages", "deskwire.http.resources"),
    ("http/deskwire/http/server", "deskwire.http.app"),
    ("http/deskwire/http/server", "deskwire.http.description"),
    ("storage/deskwire/storage/tables", "deskwire.storage.search"),
    ("storage/deskwire/storage/search", "deskwire.storage.check"),
    ("storage/deskwire/storage/check", "deskwire.storage.sqlite"),
    ("storage/deskwire/storage/sqlite", "deskwire.storage.postgres"),
    ("storage/deskwire/storage/postgres", "deskwire.storage.copying"),
    ("storage/deskwire/storage/copying", "deskwire.storage.file_stores"),
]
FLOORS = ["engine/deskwire/engine", "http/deskwire/http", "storage/deskwire/storage"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the sources that tests may modify."""
    for name in ROOTS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on a tree; `-S` keeps an editable install of the real sources off the path."""
    paths = [*(str(tree / name) for name in ROOTS), sysconfig.get_path("purelib")]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-S", "-c", LINT]
    return subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)


def test_the_sources_as_they_are_keep_the_layers(copy: Path) -> None:
    answer = lint(copy)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize(("folder", "target"), VIOLATIONS)
def test_a_planted_import_across_the_layers_is_found(copy: Path, folder: str, target: str) -> None:
    (copy / folder / "planted.py").write_text(f"import {target}\n")
    answer = lint(copy)
    assert answer.returncode == 1
    assert f"is not allowed to import {target}" in answer.stdout


def test_a_domain_that_asks_for_the_whole_store_is_found(copy: Path) -> None:
    (copy / "engine/deskwire/engine/tickets/planted.py").write_text("import deskwire.engine.ports\n")
    answer = lint(copy)
    assert answer.returncode == 1
    assert "deskwire.engine.tickets.planted -> deskwire.engine.ports" in answer.stdout


def test_a_top_level_module_without_a_place_in_the_contract_is_found(copy: Path) -> None:
    (copy / "engine/deskwire/planted.py").touch()
    answer = lint(copy)
    assert answer.returncode == 1
    assert "planted" in answer.stdout


@pytest.mark.parametrize("layer", FLOORS)
def test_a_room_without_a_floor_is_found(copy: Path, layer: str) -> None:
    (copy / layer / "planted").mkdir()
    (copy / layer / "planted/__init__.py").touch()
    answer = lint(copy)
    assert answer.returncode == 1
    assert "planted" in answer.stdout


@pytest.mark.parametrize("layer", FLOORS)
def test_a_module_without_a_floor_is_found(copy: Path, layer: str) -> None:
    (copy / layer / "planted.py").touch()
    answer = lint(copy)
    assert answer.returncode == 1
    assert "planted" in answer.stdout
