"""The root of the repository, independent of a test's own folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = next(each for each in Path(__file__).parents if (each / "pyproject.toml").is_file())
