"""The table of names has each operation of the service once."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from sdk.generate.description import NAMES, NamesDiffer, description

from tests.support.api import openapi_check


@pytest.fixture
def table() -> dict[str, Any]:
    return tomllib.loads(NAMES.read_text("utf-8"))


def test_the_table_names_each_operation_of_the_service(table: dict[str, Any]) -> None:
    found = description(openapi_check.described(), table)
    assert {each.id for each in found.operations} >= {"createConversation", "listEvents", "uploadFile"}


def test_an_operation_without_a_name_is_reported(table: dict[str, Any]) -> None:
    del table["operations"]["createConversation"]
    with pytest.raises(NamesDiffer, match="no name for createConversation"):
        description(openapi_check.described(), table)


def test_a_name_without_an_operation_is_reported(table: dict[str, Any]) -> None:
    table["operations"]["createCake"] = "cakes.create"
    with pytest.raises(NamesDiffer, match="no operation createCake"):
        description(openapi_check.described(), table)


def test_one_name_for_two_operations_is_reported(table: dict[str, Any]) -> None:
    table["operations"]["getConversation"] = "conversations.create"
    with pytest.raises(NamesDiffer, match=r"two operations have the name conversations\.create"):
        description(openapi_check.described(), table)
