"""The real service, for tests that send bytes."""

from tests.api.conftest import service

__all__ = ["service"]
