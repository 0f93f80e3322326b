"""Copies of values: of Structs that nothing changes once they are made (ADR 29)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The same function for mypy, which then checks names and types of the fields.
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["replace"]
