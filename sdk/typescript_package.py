"""Builds the npm package of the TypeScript SDK: `python -m sdk.typescript_package VERSION FOLDER [TOOLS]`.

The package has the version of the server. npm sets the times and modes of its files, so two builds of the same files are the
same bytes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
TOOLS: Final = Path("tests/clients/tools/node_modules/.bin")
_SOURCE: Final = ROOT / "sdk/typescript"
_PEP_440: Final = re.compile(
    r"(?P<release>\d+\.\d+\.\d+)(?:(?P<pre>a|b|rc|\.dev)(?P<number>\d+))?(?P<local>\+[a-z0-9.]+)?"
)
_PHASES: Final = {"a": "alpha", "b": "beta", "rc": "rc", ".dev": "dev"}


class NoNodeTools(Exception):
    """Raised if npm or the TypeScript compiler is missing; the text says which."""


def npm_version(version: str) -> str:
    """Return a Python version in npm's form: `0.2.0.dev0+g1a2b` is `0.2.0-dev.0+g1a2b`.

    Raises:
        ValueError: it has another form.
    """
    found = _PEP_440.fullmatch(version)
    if found is None:
        raise ValueError(f"{version} has no form for npm")
    phase = f"-{_PHASES[found['pre']]}.{found['number']}" if found["pre"] else ""
    return f"{found['release']}{phase}{found['local'] or ''}"


def build(version: str, folder: Path, tools: Path = ROOT / TOOLS) -> Path:
    """Compile and pack the SDK; return the file in `folder`.

    Args:
        version: of the server, in Python's form.
        tools: the folder with `tsc`.

    Raises:
        NoNodeTools: npm or tsc is missing.
        CalledProcessError: one of them failed, and has printed why.
    """
    npm, compiler = shutil.which("npm"), tools / "tsc"
    if npm is None or not compiler.exists():
        raise NoNodeTools("npm is missing" if npm is None else f"{TOOLS}/tsc is missing: run `npm ci` there")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="deskwire-sdk-") as work:
        package = Path(work) / "package"
        _stage(package, npm_version(version))
        _run([compiler, "-p", package], package)
        packed = _run(
            [npm, "pack", "--json", "--ignore-scripts", "--pack-destination", folder.resolve()], package
        )
    # Before npm 12 the report was a list; since then it names the package.
    reported = json.loads(packed)
    (entry,) = reported if isinstance(reported, list) else reported.values()
    return folder / str(entry["filename"])


def _stage(package: Path, version: str) -> None:
    """Copy the sources with their version."""
    ignored = shutil.ignore_patterns("node_modules", "dist", "package-lock.json")
    shutil.copytree(_SOURCE, package, ignore=ignored)
    shutil.copy(ROOT / "LICENSE", package)
    for path, pattern, text in (
        (package / "package.json", r'"version": "[^"]*"', f'"version": "{version}"'),
        (package / "src/version.ts", r'VERSION = "[^"]*"', f'VERSION = "{version}"'),
    ):
        changed, count = re.subn(pattern, text, path.read_text("utf-8"))
        if count != 1:
            raise ValueError(f"{path.name} has no version")
        path.write_text(changed, "utf-8")


def _run(command: Sequence[str | Path], folder: Path) -> str:
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return done.stdout


if __name__ == "__main__":
    print(build(sys.argv[1], *map(Path, sys.argv[2:])).name)
