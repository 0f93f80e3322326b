"""`make binary`: the single executable, made from a wheel: `python -m release.binary WHEEL FOLDER` makes FOLDER/deskwire.

The same wheel and the same libraries make the same bytes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from PyInstaller.archive.readers import CArchiveReader

from release.parts import ROOT

NOTICES: Final = "deskwire/program/notices.txt"
"""The path of the third-party notices in the executable; `deskwire --notices` prints them."""


def make(wheel: Path, folder: Path) -> None:
    """Make `deskwire` in that folder.

    Raises:
        CalledProcessError: it can't be made; PyInstaller has said why.
    """
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "tree"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tree)
        command = [sys.executable, "-m", "PyInstaller", "--clean", "--noconfirm", "--log-level", "ERROR"]
        places = [
            "--workpath",
            f"{work}/build",
            "--distpath",
            str(folder),
            str(ROOT / "binary/deskwire.spec"),
        ]
        environ = {**os.environ, "WHEEL_TREE": str(tree), "PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": "0"}
        subprocess.run([*command, *places], env=environ, check=True)


def shared(binary: Path) -> list[str]:
    """Return the file names of the shared libraries in an executable, without those that are modules of Python."""
    names = [name for name in CArchiveReader(str(binary)).toc if ".so" in name and "/" not in name]
    return sorted(name for name in names if not re.search(r"\.(?:cpython-\w+|abi3)[.-]", name))


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
