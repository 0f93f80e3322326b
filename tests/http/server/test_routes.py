"""The table finds the one route whose path has these parts (ADR 7); the lane's finds it, too, or none (ADR 7)."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskwire.engine.core.errors import BadRequest
from deskwire.http.api.route_trie import RouteTrie, path_of, path_segments
from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES

ALL, DIRECT = RouteTrie(ROUTES), RouteTrie(ROUTES, direct=True)
WORDS = sorted({part for route in ROUTES for part in route.path.split("/") if not part.startswith("<")})
PARTS = st.sampled_from([*WORDS, "cnv_00000000000000000000000000", "1", ".", "..", "a:b", "~", "a/b", "-"])
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def found(table: RouteTrie, method: str, parts: list[str]) -> tuple[Route, dict[str, str]] | None:
    """The route, and the values by name."""
    place = table.find(parts)
    route = None if place is None else place[0].routes.get(method)
    return None if place is None or route is None else (route, place[1])


def fits(route: Route, parts: list[str]) -> bool:
    """Whether a path's parts are those of the route, value by value."""
    own = route.path.split("/")
    if own[-1].startswith("<path:") and all(parts[len(own) - 1 : len(own)]):
        parts = [*parts[: len(own) - 1], "/".join(parts[len(own) - 1 :])]
    return len(own) == len(parts) and all(
        bool(part) if word.startswith("<") else part == word for word, part in zip(own, parts, strict=True)
    )


def expected(method: str, parts: list[str]) -> Route | None:
    """The route that fits; of several that with a word where the others have a value, first from the left."""
    fitting = [route for route in ROUTES if fits(route, parts)]
    if not fitting:
        return None
    path = min((route.path.split("/") for route in fitting), key=lambda own: ["<" in word for word in own])
    return next((each for each in fitting if each.path.split("/") == path and each.method == method), None)


def test_every_route_is_found_with_any_value_in_its_path() -> None:
    for route in ROUTES:
        for value in ("x1", "a/b", ".", "ü", "%2F"):
            own = route.path.split("/")
            path = "/".join(quote(value, safe="") if part.startswith("<") else part for part in own)
            place = found(ALL, route.method, path_segments(path))
            assert place is not None, path
            assert place[0] is route
            assert set(place[1].values()) <= {value}
            assert len(place[1]) == route.path.count("<")


def test_most_routes_are_direct_and_those_with_bytes_to_carry_are_not() -> None:
    others = {route.operation_id for route in ROUTES if not route.direct}
    assert others == {
        "exportContact",
        "exportContactWithNotes",
        "importHistory",
        "authorizeStream",
        "endOidcSessions",
        "startOidcSignIn",
        "completeOidcSignIn",
        "uploadFile",
        "uploadMyFile",
        "fetchFile",
        "exportResponses",
        "exportConversations",
        "exportMessages",
        "exportTickets",
        "exportSurveyResponses",
        "exportAuditRecords",
        "metrics",
        "widgetCustomer",
        "widgetHost",
    }
    assert sum(route.direct for route in ROUTES) > 0.85 * len(ROUTES)


@pytest.mark.thorough
@settings(max_examples=2_000)
@given(st.sampled_from(METHODS), st.lists(PARTS | st.just(""), max_size=7), st.booleans())
def test_found_route_matches_the_path(method: str, parts: list[str], based: bool) -> None:
    parts = ["", *(["v3"] if based else []), *parts]
    place, wanted = found(ALL, method, parts), expected(method, parts)
    assert (place and place[0]) is wanted, parts
    in_lane = found(DIRECT, method, parts)
    assert in_lane == (place if wanted is not None and wanted.direct else None)


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_decoded_segments_equal_the_original_ones(parts: list[str]) -> None:
    texts = [part.encode("utf-8", "ignore").decode() for part in parts]
    assert path_segments("/".join(quote(text, safe="") for text in texts)) == texts


@given(st.text("%0aF/c3b.", max_size=12))
def test_invalid_encoding_is_refused_without_another_error(path: str) -> None:
    try:
        parts = path_segments(path)
    except BadRequest:
        assert "%" in path
    else:
        assert len(parts) == path.count("/") + 1


def test_a_get_answers_to_head_and_no_other_method_does() -> None:
    place = ALL.find(path_segments("/v3/s2s/contacts/u1"))
    assert place is not None
    assert set(place[0].routes) == {"GET", "HEAD", "PUT", "PATCH", "DELETE"}


@pytest.mark.parametrize("path", ["/v3/tickets/bulk", "/v3/workflows/validate"])
def test_word_takes_precedence_over_a_value_for_any_method(path: str) -> None:
    place = ALL.find(path_segments(path))
    assert place is not None
    assert len(place[0].routes) == 1


@pytest.mark.parametrize("path", ["", "/v3", "/v3/s2s", "/v3/s2s/stream", "/v3/s2s/contacts/"])
def test_prefix_of_a_route_matches_nothing(path: str) -> None:
    assert ALL.find(path_segments(path)) is None


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/a//b%2F", "/a//b%2F"),
        ("//x/y", "//x/y"),
        ("http://x/a%2Fb", "/a%2Fb"),
        ("http://x", "/"),
        ("HTTPS://X:1/a;b", "/a;b"),
        ("http://x/a#b", ""),
        ("http:/a", ""),
        ("ftp://x/a", ""),
        ("x:/a", ""),
        ("x/a", ""),
        ("*", ""),
        ("", ""),
        ("x:443", ""),
    ],
)
def test_a_target_of_any_form_has_its_path(target: str, path: str) -> None:
    assert path_of(target) == path


def test_a_target_that_is_no_url_is_refused() -> None:
    with pytest.raises(BadRequest, match="none"):
        path_of("http://[")
