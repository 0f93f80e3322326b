"""Generates the Python SDK's types and resources from the description: `python -m sdk.generate.python`.

The synchronous half of the hand-written modules is made from the asynchronous one.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from sdk.generate.description import described
from sdk.generate.python_resources import resources
from sdk.generate.python_types import types
from sdk.generate.synchronous import MODULES, synchronous

PACKAGE: Final = Path(__file__).parents[1] / "python/src/deskwire_sdk"


def generated() -> dict[Path, str]:
    """Return the text of each generated module of the SDK."""
    said = described()
    texts = {
        PACKAGE / "types.py": types(said),
        PACKAGE / "_async/resources.py": resources(said, asynchronous=True),
        PACKAGE / "_sync/resources.py": resources(said, asynchronous=False),
    }
    for name in MODULES:
        texts[PACKAGE / "_sync" / name] = synchronous((PACKAGE / "_async" / name).read_text("utf-8"))
    return {path: _formatted(path, text) for path, text in texts.items()}


def _formatted(path: Path, text: str) -> str:
    """Return the text as `ruff format` lays it out and `ruff check` sorts its imports."""
    for arguments in (("check", "--fix-only", "--quiet"), ("format", "--quiet")):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", path, "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


if __name__ == "__main__":
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
