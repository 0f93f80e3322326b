"""Generates the Python SDK's types and resources from the description: `python -m sdk.generate.python`.

The synchronous half of the hand-written modules is made from the asynchronous one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sdk.generate.description import described
from sdk.generate.python_resources import resources
from sdk.generate.python_types import types
from sdk.generate.synchronous import MODULES, synchronous

PACKAGE: Final = Path(__file__).parents[1] / "python/src/deskwire_sdk"
_CONFIGURATION: Final = Path(__file__).parents[2] / "pyproject.toml"


def generated(run: Callable[..., object] = subprocess.run) -> dict[Path, str]:
    """Return the text of each generated module of the SDK; `run` starts the formatter."""
    said = described()
    texts = {
        PACKAGE / "types.py": types(said),
        PACKAGE / "_async/resources.py": resources(said, asynchronous=True),
        PACKAGE / "_sync/resources.py": resources(said, asynchronous=False),
    }
    for name in MODULES:
        texts[PACKAGE / "_sync" / name] = synchronous((PACKAGE / "_async" / name).read_text("utf-8"))
    return _formatted(texts, run)


def _formatted(texts: Mapping[Path, str], run: Callable[..., object]) -> dict[Path, str]:
    """Return the texts as `ruff` sorts their imports and lays them out."""
    with TemporaryDirectory() as folder:
        copies = {Path(folder) / path.relative_to(PACKAGE): path for path in texts}
        for copy, path in copies.items():
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(texts[path], "utf-8")
        for arguments in (("check", "--fix-only"), ("format",)):
            command = [
                sys.executable,
                "-m",
                "ruff",
                *arguments,
                "--quiet",
                "--config",
                _CONFIGURATION,
                folder,
            ]
            run(command, check=True)
        return {path: copy.read_text("utf-8") for copy, path in copies.items()}


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, "utf-8")
