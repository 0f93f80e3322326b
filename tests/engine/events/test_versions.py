"""Events in older versions: the chain of conversions from the stored envelope."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from deskwire.engine.events.types import API_VERSION
from deskwire.engine.events.versions import EVENT_VERSIONS, EventVersions, OlderVersion


def envelope(version: str, data: dict[str, Any]) -> bytes:
    head = {"id": "evt_1", "type": "message.created", "apiVersion": version, "createdAt": "x"}
    return orjson.dumps({**head, "projectId": "prj_1", "sequence": 7, "data": data})


def noting(step: str) -> Any:
    """Return a conversion that appends its name to the list of steps in the data."""
    return lambda kind, data: {**data, "steps": [*data["steps"], f"{step} {kind}"]}


THREE = EventVersions(
    "2028-01-01", [OlderVersion("2027-01-01", noting("b")), OlderVersion("2026-01-01", noting("a"))]
)


def test_there_is_one_version_today_and_it_sends_the_stored_bytes() -> None:
    body = b"not even JSON: it is not parsed"
    assert EVENT_VERSIONS.names == (API_VERSION,)
    assert EVENT_VERSIONS.render(body, API_VERSION) is body


@pytest.mark.parametrize(
    ("stored", "wanted", "version", "steps"),
    [
        ("2028-01-01", "2028-01-01", "2028-01-01", []),
        ("2028-01-01", "2027-01-01", "2027-01-01", ["b message.created"]),
        ("2028-01-01", "2026-01-01", "2026-01-01", ["b message.created", "a message.created"]),
        ("2027-01-01", "2026-01-01", "2026-01-01", ["a message.created"]),
        ("2027-01-01", "2027-01-01", "2027-01-01", []),
        ("2026-01-01", "2027-01-01", "2026-01-01", []),  # stored before the upgrade: there is no way up
        ("2028-01-01", "2029-01-01", "2028-01-01", []),  # of a newer program, after a downgrade
    ],
)
def test_each_conversion_between_the_versions_is_applied_once_in_order(
    stored: str, wanted: str, version: str, steps: list[str]
) -> None:
    body = envelope(stored, {"steps": []})
    assert THREE.render(body, wanted) == envelope(version, {"steps": steps})


def test_fields_of_the_envelope_keep_their_order() -> None:
    made = orjson.loads(THREE.render(envelope("2028-01-01", {"steps": []}), "2026-01-01"))
    assert list(made) == ["id", "type", "apiVersion", "createdAt", "projectId", "sequence", "data"]


def test_versions_are_listed_newest_first() -> None:
    assert THREE.names == ("2028-01-01", "2027-01-01", "2026-01-01")
    with pytest.raises(AssertionError):
        EventVersions("2026-01-01", [OlderVersion("2027-01-01", noting("b"))])
