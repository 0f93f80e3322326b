"""Shapes are plain classes, of which models are made when the reference asks."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from deskwire.http.app import ROUTES
from deskwire.http.schemas.base import Shape, model_of, page_of, public_name


class Drink(Shape, title="Beverage"):
    """Something to drink."""

    first_name: Annotated[str, Field(max_length=8)]
    sugar: int | None = None


class Tea(Drink):
    """Drunk hot."""

    from_: Drink | None


def test_a_shape_is_no_model_and_has_one_that_is_made_once() -> None:
    assert not issubclass(Drink, BaseModel)
    assert model_of(Drink) is model_of(Drink)
    assert issubclass(model_of(Tea), model_of(Drink))
    assert model_of(model_of(Drink)) is model_of(Drink)


def test_its_model_has_its_fields_their_limits_its_names_and_its_words() -> None:
    schema = TypeAdapter(Drink).json_schema()
    assert (schema["title"], schema["description"]) == ("Beverage", "Something to drink.")
    assert schema["required"] == ["firstName"]
    assert schema["properties"]["firstName"]["maxLength"] == 8
    assert schema["additionalProperties"] is False
    assert "null" not in str(schema["properties"]["sugar"])


def test_nested_shapes_and_pages_of_shapes_are_models_too() -> None:
    page: Any = TypeAdapter(page_of(Drink)).validate_python(
        {"items": [{"firstName": "Earl"}], "nextCursor": None}
    )
    assert page.items[0].first_name == "Earl"
    with pytest.raises(ValidationError, match="firstName"):
        TypeAdapter(Tea).validate_python({"firstName": "Earl", "from": {}})
    assert [public_name(each) for each in (Drink, Tea, page_of(Drink))] == [
        "Beverage",
        "Beverage",
        "BeveragePage",
    ]


def test_every_request_model_can_be_built_after_deferral() -> None:
    for route in ROUTES:
        for model in (route.body, route.query, *route.lines):
            if model is not None:
                model.model_rebuild(raise_errors=True)
                assert model.__pydantic_complete__, model
