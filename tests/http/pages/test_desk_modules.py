"""Tests of the desk's pure modules, run by Node.js."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.root import ROOT
from tests.web.tools.description import typed

MODULES = Path(__file__).parent / "modules"
TOOLS = ROOT / "tests/web/tools"

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Return what Node.js says."""
    command = ["node", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@needs_node
@pytest.mark.parametrize("name", sorted(path.name for path in MODULES.glob("*.test.mjs")))
def test_modules_of_the_page_pass_their_own_tests(name: str) -> None:
    done = run("--test", str(MODULES / name))
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^\W pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    assert int(passed[1]) > 3


def test_the_types_of_the_api_are_those_that_the_service_describes() -> None:
    recorded = (TOOLS / "api.d.ts").read_text()
    assert recorded.startswith(typed()), "run `make web-types`, and then `make web-lint`"


@needs_node
def test_the_modules_of_the_page_keep_to_their_types() -> None:
    compiler = TOOLS / "node_modules/typescript/bin/tsc"
    if not compiler.is_file():
        pytest.skip("TypeScript is not installed: `make web-lint` does that")
    done = run(str(compiler), "-p", str(TOOLS))
    assert done.returncode == 0, done.stdout
