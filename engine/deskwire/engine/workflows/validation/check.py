"""Validation of a workflow from arbitrary JSON (decisions 7)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from deskwire.engine.definitions.checks import ERRORS_MAX, first, nul_errors, wrong_type
from deskwire.engine.definitions.rules import DefinitionError
from deskwire.engine.workflows.validation.flow import flow_errors
from deskwire.engine.workflows.validation.shape import workflow_shape


def workflow_errors(value: Any) -> list[DefinitionError]:
    """Return the errors of a workflow, at most ERRORS_MAX. Assignees are not looked up."""
    if not isinstance(value, Mapping):
        return [wrong_type("", "an object")]
    return first(chain(workflow_shape(value), nul_errors(value), flow_errors(value)), ERRORS_MAX)
