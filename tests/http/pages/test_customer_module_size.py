"""The size of `customer.js` as a site loads it: bundled, minified and compressed."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.root import ROOT

ESBUILD = ROOT / "tests/web/tools/node_modules/.bin/esbuild"
BYTES_MAX = 12_100


@pytest.mark.skipif(not ESBUILD.is_file() or not shutil.which("node"), reason="esbuild is not installed")
def test_the_module_and_its_eager_imports_stay_small(tmp_path: Path) -> None:
    options = [
        "--bundle",
        "--splitting",
        "--format=esm",
        "--minify",
        "--target=es2022",
        f"--outdir={tmp_path}",
    ]
    entries = ["customer.js", "host-storage.js"]
    widget = ROOT / "http/deskwire/http/pages/widget"
    subprocess.run([ESBUILD, *entries, *options, "--log-level=error"], cwd=widget, check=True, timeout=120)
    found, waiting = set(), ["customer.js"]
    while waiting:
        name = waiting.pop()
        found.add(name)
        source = (tmp_path / name).read_text()
        waiting += set(re.findall(r'(?:from|import)"\./([\w.-]+)"', source)) - found
    assert sum(len(gzip.compress((tmp_path / name).read_bytes(), 9)) for name in found) <= BYTES_MAX, found
