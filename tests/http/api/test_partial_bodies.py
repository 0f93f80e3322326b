"""The valid part of a body has its valid fields, and is the whole body if that is valid."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from deskwire.engine.core.errors import Invalid
from deskwire.http.api.input.partial_bodies import valid_part
from deskwire.http.api.input.validation import Body, parse_body
from deskwire.http.app import ROUTES
from deskwire.http.description.openapi.samples import BODIES
from deskwire.http.schemas.base import public_name

MODELS: Final = sorted({each.body for each in ROUTES if each.further and each.body}, key=public_name)
ODD: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [None, True, 0, 1.5, "", "x", [], {}, [None], [{}], {"id": 1}, [[]], {"x": {}}]
)


def held(model: type[BaseModel], made: BaseModel) -> None:
    """Raise AssertionError if a field of a partial body is neither None nor something that its model could have."""
    for name, field in model.model_fields.items():
        value = getattr(made, name)
        if isinstance(value, Body):
            assert isinstance(value, field.annotation), name  # type: ignore[arg-type]  # a model, or none
            held(type(value), value)
        elif (
            value not in (None, "") and name in made.model_fields_set
        ):  # an empty text depends on another field
            model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value)


@pytest.mark.thorough
@settings(max_examples=400)
@given(st.sampled_from(MODELS), st.data())
def test_valid_part_contains_only_valid_fields(model: type[Body], data: st.DataObject) -> None:
    sample: Any = BODIES[public_name(model)]
    sent = {name: data.draw(st.just(value) | ODD) for name, value in sample.items()}
    names = [field.alias or name for name, field in model.model_fields.items()]
    sent |= data.draw(st.dictionaries(st.sampled_from(names), ODD, max_size=2))
    raw = orjson.dumps(sent)
    made = valid_part(model, sent)
    held(model, made)
    try:
        parsed = parse_body(model, raw)
    except Invalid:
        return
    assert made == parsed
    assert made.model_fields_set == parsed.model_fields_set


@pytest.mark.parametrize("value", [{}, None, [], 5, "x"])
def test_value_that_is_no_object_has_no_valid_field(value: object) -> None:
    for model in MODELS:
        assert valid_part(model, value).model_fields_set == set()
