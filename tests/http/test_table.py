"""The lane's table finds the route that the URL map finds, or none (ADR 28)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

from deskwire.http.app import ROUTES
from deskwire.http.paths import CONVERTERS
from deskwire.http.table import Table

DIRECT = [route for route in ROUTES if route.direct]
TABLE = Table(DIRECT)
MAP = Map(
    [Rule(route.path, endpoint=route.name, methods=[route.method]) for route in ROUTES],
    converters=dict(CONVERTERS),
    strict_slashes=False,
    merge_slashes=False,
).bind("x")
WORDS = sorted({part for route in ROUTES for part in route.path.split("/") if not part.startswith("<")})
PARTS = st.sampled_from([*WORDS, "cnv_00000000000000000000000000", "1", ".", "..", "a:b", "~", "export", "-"])


def mapped(method: str, path: str) -> tuple[str, dict[str, str]] | None:
    """What the URL map finds."""
    try:
        endpoint, values = MAP.match(path, method)
    except HTTPException:
        return None
    return endpoint, dict(values)


def test_every_direct_route_is_found() -> None:
    for route in DIRECT:
        path = "/".join("x1" if part.startswith("<") else part for part in route.path.split("/"))
        found = TABLE.find(route.method, path)
        assert found is not None, path
        assert (found[0].name, found[1]) == mapped(route.method, path)


def test_most_routes_are_direct_and_those_with_bytes_to_carry_are_not() -> None:
    others = {route.name.partition(".")[0] for route in ROUTES if not route.direct}
    assert others == {
        "contact_export",
        "description",
        "imports",
        "metrics",
        "stream",
        "survey_responses",
        "uploads",
    }
    assert len(DIRECT) > 0.9 * len(ROUTES)


@settings(max_examples=2_000)
@given(st.sampled_from(("GET", "POST", "PUT", "PATCH", "DELETE")), st.lists(PARTS, max_size=7), st.booleans())
def test_whatever_is_found_is_what_the_url_map_finds(method: str, parts: list[str], based: bool) -> None:
    path = "/".join(["", *(["v3"] if based else []), *parts])
    found = TABLE.find(method, path)
    if found is not None:
        assert (found[0].name, found[1]) == mapped(method, path), path
