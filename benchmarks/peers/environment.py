"""The environment of peers that come from a package index, apart from the project's: pinned and checked by hashes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.peers.peer import NotInstalled

ROOT: Final = Path(__file__).parents[2]
REQUIREMENTS: Final = ROOT / "requirements"
_LIMIT_S: Final = 300.0
_NOTE: Final = "installed"


def python(folder: Path, name: str) -> Path:
    """Return the Python of the environment in `folder`, which is made of the file `name` unless it is there. Raises NotInstalled."""
    program, note, requirements = folder / "bin/python", folder / _NOTE, REQUIREMENTS / name
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if note.exists() and note.read_text() == wanted:
        return program
    options = ("-q", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary", ":all:")
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    _run([str(program), "-m", "pip", "install", *options, "-r", str(requirements)])
    note.write_text(wanted)
    return program


def version(program: Path, package: str) -> str:
    """Return the version of a package in the environment of this Python."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run(
        [str(program), "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise NotInstalled(f"pip does not end within {_LIMIT_S:g} s") from late
    if done.returncode:
        raise NotInstalled((done.stderr.strip().splitlines() or ["pip says nothing"])[-1])
