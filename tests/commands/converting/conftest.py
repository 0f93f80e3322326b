"""The real service for the lines that conversions make."""

from tests.api.conftest import service

__all__ = ["service"]
