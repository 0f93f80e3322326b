"""The root of the repository, wherever a test's own file stands."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = next(each for each in Path(__file__).parents if (each / "pyproject.toml").is_file())
