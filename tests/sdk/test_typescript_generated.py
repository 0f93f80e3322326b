"""The generated files of the TypeScript SDK are those of the present description."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sdk.generate.description import described
from sdk.generate.typescript import NameTaken, generated, types
from sdk.typescript_package import npm_version

from deskwire.http.description.openapi.document import document


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_the_generated_files_are_current(path: Path) -> None:
    assert path.read_text("utf-8") == generated()[path], "run `make sdk`"


def test_a_schema_with_the_name_of_a_generated_type_is_refused() -> None:
    found = described()
    taken: dict[str, Any] = {**found.schemas, "DeskwireEvent": {"type": "object"}}
    with pytest.raises(NameTaken, match="DeskwireEvent"):
        types(replace(found, schemas=taken), document())


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.2.0", "0.2.0"),
        ("0.2.0.dev0+g0a1b2c3", "0.2.0-dev.0+g0a1b2c3"),
        ("1.0.0rc2", "1.0.0-rc.2"),
        ("1.0.0b1", "1.0.0-beta.1"),
    ],
)
def test_a_version_has_its_form_of_npm(version: str, expected: str) -> None:
    assert npm_version(version) == expected


@pytest.mark.parametrize("version", ["0.2", "0.2.0.post1", "latest", "0.2.0 "])
def test_a_version_without_a_form_of_npm_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="no form for npm"):
        npm_version(version)
