"""The validation of a survey definition, whatever JSON it is (contract 4.1, decisions 7)."""

from __future__ import annotations

from itertools import chain
from typing import Any

from deskwire.engine.definitions.checks import ERRORS_MAX, first, nul_errors
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.surveys.validation.flow import flow_errors
from deskwire.engine.surveys.validation.shape import definition_shape


def definition_errors(value: Any) -> list[DefinitionError]:
    """Return all problems, at most ERRORS_MAX, in the order of the document; none if the definition is sound."""
    return first(chain(definition_shape(value), nul_errors(value), flow_errors(value)), ERRORS_MAX)
