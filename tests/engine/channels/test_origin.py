"""Origins of websites: their forms, their problems, and the patterns of channels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.channels.channel import new_channel
from deskwire.engine.channels.origin import Origin, parse_origin, parse_pattern
from deskwire.engine.core.values import replace


def allows(patterns: str, origin: str) -> bool:
    """Return whether a channel with these patterns, separated by blanks, allows an origin."""
    channel = replace(new_channel("chn_1", 1, "x", b"", "", 0), origins=tuple(patterns.split()))
    return channel.allows_origin(origin)


@pytest.mark.parametrize(
    ("given", "usual"),
    [
        ("https://shop.example", "https://shop.example"),
        ("HTTPS://Shop.Example:443", "https://shop.example"),
        ("https://shop.example:8443", "https://shop.example:8443"),
        ("https://shop.example.", "https://shop.example"),
        ("https://*.shop.example", "https://*.shop.example"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://192.168.0.9:8443", "https://192.168.0.9:8443"),
        ("http://localhost", "http://localhost"),
        ("http://localhost:80", "http://localhost"),
        ("http://app.localhost:3000", "http://app.localhost:3000"),
        ("http://127.0.0.1:5173", "http://127.0.0.1:5173"),
        ("http://[::1]", "http://[::1]"),
    ],
)
def test_pattern_is_kept_in_its_usual_form(given: str, usual: str) -> None:
    found = parse_pattern(given)
    assert isinstance(found, Origin)
    assert found.text == usual


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://[fe80::1%a;sandbox]",  # a zone may be any text
        "https://[::1%25x]",
        "null",
        "*",
        "shop.example",
        "//shop.example",
        "http://shop.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "https://",
        "https://*",
        "https://*.example",
        "https://*.127.0.0.1",
        "https://*.*.shop.example",
        "https://www.*.example",
        "https://shop.example/",
        "https://shop.example/path",
        "https://shop.example?x",
        "https://shop.example#x",
        "https://user@shop.example",
        "https://shop.example:0x",
        "https://shop.example:99999",
        "https://shop.example:0",
        "https://shop example",
        "https://shop.example\n",
        "https://[::1",
        "https://-shop.example",
        "https://..example",
        "javascript://shop.example",
        "https://" + "a" * 300 + ".example",
        "https://shop.example https://evil.example",
        "https://shop.example;script-src",
        "https://shop.example,evil",
    ],
)
def test_text_that_is_no_origin_is_refused_with_a_sentence(text: str) -> None:
    reason = parse_pattern(text)
    assert isinstance(reason, str)
    assert reason.endswith(".")


@pytest.mark.parametrize(
    ("patterns", "origin", "expected"),
    [
        ("https://shop.example", "https://shop.example", True),
        ("https://shop.example", "https://shop.example:443", True),
        ("https://shop.example", "https://shop.example:8443", False),
        ("https://shop.example", "http://shop.example", False),
        ("https://shop.example", "https://www.shop.example", False),
        ("https://shop.example", "https://shop.example.evil.example", False),
        ("https://*.shop.example", "https://www.shop.example", True),
        ("https://*.shop.example", "https://a.b.shop.example", True),
        ("https://*.shop.example", "https://shop.example", False),
        ("https://*.shop.example", "https://evilshop.example", False),
        ("https://*.shop.example:8443", "https://www.shop.example:8443", True),
        ("https://*.shop.example:8443", "https://www.shop.example", False),
        ("http://localhost", "http://localhost:5173", True),
        ("http://localhost", "https://localhost:5173", False),
        ("http://localhost:5173", "http://localhost:5174", False),
        ("http://127.0.0.1", "http://127.0.0.1:8000", True),
        ("http://127.0.0.1", "http://localhost", False),
        ("http://[::1]", "http://[0:0::1]:8000", True),
        ("https://shop.example", "null", False),
        ("https://shop.example", "", False),
        ("https://shop.example", "https://*.shop.example", False),
        ("https://shop.example", "https://shop.example/", False),
        ("https://shop.example", "https://shop.example\t", False),
        ("", "https://shop.example", False),
        ("https://a.example https://b.example", "https://b.example", True),
    ],
)
def test_channel_allows_the_origins_that_its_patterns_match(
    patterns: str, origin: str, expected: bool
) -> None:
    assert allows(patterns, origin) is expected


def test_sources_of_frames_match_the_same_pages() -> None:
    origins = ("https://shop.example", "https://*.shop.example", "http://localhost", "http://localhost:3000")
    channel = replace(new_channel("chn_1", 1, "x", b"", "", 0), origins=origins)
    assert channel.frame_sources == (
        "https://shop.example",
        "https://*.shop.example",
        "http://localhost:*",
        "http://localhost:3000",
    )


@given(st.text(max_size=60) | st.text(alphabet="https:/.*[]@?#% \n\x00;,'abz019-_", max_size=60))
def test_any_text_is_an_origin_or_a_sentence(text: str) -> None:
    for each in (text, f"https://{text}"):
        found = parse_pattern(each)
        if isinstance(found, Origin):
            assert parse_pattern(found.text) == found
            assert found.text.isascii()
            assert not set(found.text) & set(" ;,'\"\n")  # it is put into a header
        else:
            assert found
        parsed = parse_origin(each)
        assert parsed is None or parse_origin(parsed.text) == parsed
