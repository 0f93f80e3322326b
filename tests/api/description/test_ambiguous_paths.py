"""Paths of the description that one address fits alike (OpenAPI 3.1.1, 4.8.8): readers may choose either, so their methods differ."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tests.support.api.openapi_check import described


def parts(path: str) -> list[str | None]:
    """The segments of a path, None for a parameter."""
    return [None if each.startswith("{") else each for each in path.split("/")]


def ambiguous(one: str, other: str) -> bool:
    """Whether an address fits both paths, and neither is the more specific of the two."""
    pairs = list(zip(parts(one), parts(other), strict=False))
    if len(parts(one)) != len(parts(other)) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return False
    return any(a is None and b is not None for a, b in pairs) and any(
        b is None and a is not None for a, b in pairs
    )


def found() -> Iterator[tuple[str, str, set[str]]]:
    """Yield the pairs of ambiguous paths, with the methods that both take."""
    paths = described()["paths"]
    for one, other in combinations(paths, 2):
        if ambiguous(one, other):
            yield one, other, paths[one].keys() & paths[other].keys()


def test_two_paths_that_an_address_fits_alike_share_no_method() -> None:
    pairs = list(found())
    assert [pair for pair in pairs if pair[2]] == []
    assert {frozenset(pair[:2]) for pair in pairs} == {
        frozenset(("/v3/stream/consumers/{consumerId}", "/v3/stream/{streamId}/view"))
    }


def test_ambiguous_paths_are_distinguished_from_similar_ones() -> None:
    assert ambiguous("/a/{x}/c", "/a/b/{y}")
    assert not ambiguous("/a/{x}", "/a/b")
    assert not ambiguous("/a/{x}/c", "/a/b/d")
    assert not ambiguous("/a/{x}", "/a/{x}/c")
