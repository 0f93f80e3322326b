"""The panel as it is served, which `make panel` builds from its modules."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT

BUILT = ROOT / "http/deskwire/http/pages/widget/built"


@pytest.mark.journey
def test_built_files_are_those_of_the_modules(tmp_path: Path) -> None:
    script = ROOT / "tests/web/tools/widget.mjs"
    subprocess.run(["node", str(script), str(tmp_path)], check=True, timeout=HANG_TIMEOUT_S)
    built, made = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (BUILT, tmp_path)
    )
    assert set(built) == set(made), "run `make panel`"
    assert [name for name in made if built[name] != made[name]] == [], "run `make panel`"
