"""The real service for the command."""

from tests.api.conftest import service

__all__ = ["service"]
