"""The public document changes only intentionally."""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from deskwire.engine.core.values import replace
from deskwire.http.api.calls import Answer, Call
from deskwire.http.app import ROUTES
from deskwire.http.description.openapi import document as made
from deskwire.http.description.openapi.schemas import Schemas

from .outline import FILE, outline


def test_the_public_document_is_the_one_that_was_recorded() -> None:
    assert outline().splitlines() == FILE.read_text().splitlines(), (
        "If the API's description is meant to change so, run `make docs`; it shows in outline.txt which parts have changed."
    )


def differences(document: dict[str, Any]) -> set[str]:
    """Return the parts whose lines differ from the recorded ones."""
    lines = set(FILE.read_text().splitlines()) ^ set(outline(orjson.dumps(document)).splitlines())
    return {line.rsplit(" ", 1)[0] for line in lines} - {"document"}


def test_a_removed_operation_is_a_difference() -> None:
    document = made.document()
    del document["paths"]["/v3/s2s/project"]["get"]
    assert differences(document) == {"GET /v3/s2s/project getOwnProject ['Project of a server key']"}


def test_a_removed_field_is_a_difference() -> None:
    document = made.document()
    del document["components"]["schemas"]["Conversation"]["properties"]["status"]
    assert differences(document) == {"schemas Conversation"}


def test_no_name_of_a_handler_or_of_its_module_is_in_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    number = count()

    def moved(doc: str | None) -> object:
        async def handler(_call: Call) -> Answer:  # type: ignore[type-arg]  # it is never called
            return {}

        handler.__doc__ = doc
        handler.__name__ = f"renamed_{next(number)}"
        handler.__module__ = "elsewhere"
        return handler

    before = made.document()
    renamed = tuple(replace(route, handler=moved(route.handler.__doc__)) for route in ROUTES)  # type: ignore[arg-type]
    monkeypatch.setattr(made, "ROUTES", renamed)
    assert made.document() == before


def test_a_renamed_model_keeps_its_public_name() -> None:
    class Inner(BaseModel, title="Thing"):
        name: str

    class Outer(BaseModel):
        inner: Inner

    schemas = Schemas([Outer, Inner])
    assert schemas.components.keys() == {"Outer", "Thing"}
    assert schemas.of(Inner) == {"$ref": "#/components/schemas/Thing"}
    assert schemas.components["Outer"]["properties"]["inner"] == {"$ref": "#/components/schemas/Thing"}


def test_two_models_of_one_public_name_are_refused() -> None:
    class First(BaseModel, title="Thing"):
        name: str

    class Second(BaseModel, title="Thing"):
        name: str

    with pytest.raises(LookupError, match="two schemas have the name Thing"):
        Schemas([First, Second])
