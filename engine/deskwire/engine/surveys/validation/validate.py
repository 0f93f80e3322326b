"""Validation of a survey definition from arbitrary JSON (contract 4.1, decisions 7)."""

from __future__ import annotations

from itertools import chain
from typing import Any

from deskwire.engine.definitions.checks import ERRORS_MAX, first, nul_errors
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.surveys.validation.flow import flow_errors
from deskwire.engine.surveys.validation.shape import definition_shape


def definition_errors(value: Any) -> list[DefinitionError]:
    """Return the errors of a definition in document order, at most ERRORS_MAX."""
    return first(chain(definition_shape(value), nul_errors(value), flow_errors(value)), ERRORS_MAX)
