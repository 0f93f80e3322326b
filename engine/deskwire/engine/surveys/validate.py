"""Everything that is wrong with a survey definition, whatever JSON it is (contract 4.1, decisions 7)."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from deskwire.engine.surveys.flow import flow_errors
from deskwire.engine.surveys.rules import DefinitionError
from deskwire.engine.surveys.shape import definition_shape, first

ERRORS_MAX: Final = 1_000
"""Errors that are listed at most: a megabyte of nonsense has hundreds of thousands."""


def definition_errors(value: Any) -> list[DefinitionError]:
    """All problems, at most ERRORS_MAX, in the order of the document; none if the definition is sound."""
    return first(chain(definition_shape(value), flow_errors(value)), ERRORS_MAX)
