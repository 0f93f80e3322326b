"""The direction in which a list is sorted."""

from __future__ import annotations

from typing import Literal

Order = Literal["asc", "desc"]
