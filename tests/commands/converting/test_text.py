"""Markup becomes the text that a reader sees of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.convert import markup as markup_module
from deskwire.commands.convert.markup import MarkupKind, tokens
from deskwire.commands.convert.text import clean, plain, trimmed

CODE = "def f():\n    return 1\n\n\n\ndef g():\n\treturn 2"
LINKS = "one (https://x.example)two (https://y.example)"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("plain words, 3 < 4 & so on", "plain words, 3 < 4 & so on"),
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("<div>One<br>Two</div><div>Three</div>", "One\nTwo\nThree"),
        ("  <p>  a \n b&nbsp;c  </p> ", "a b c"),
        ("Fish &amp; chips &lt;b&gt; &#8364;", "Fish & chips <b> €"),
        ("<ul><li>one</li><li>two <b>and</b> more</li></ul>after", "- one\n- two and more\n\nafter"),
        (
            'See <a href="https://shop.example/o/1">your order</a>.',
            "See your order (https://shop.example/o/1).",
        ),
        ('<a href="https://shop.example/">https://shop.example</a>', "https://shop.example"),
        ('<a href="mailto:a@b.example">a@b.example</a>', "a@b.example"),
        ('<img src="https://x.example/a.png" alt="a bill">', "[image: a bill https://x.example/a.png]"),
        ('<img src="data:image/png;base64,AAAA">', ""),
        ("<style>p {color: red}</style><script>alert(1)</script><p>Hi</p>", "Hi"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3"),
        ("<p>broken <b>markup<p>goes on", "broken markup\n\ngoes on"),
        ("<!-- hidden --><p>shown</p>", "shown"),
        ("<p></p><p>&nbsp;</p>", ""),
        ("<pre><code>\ndef f():\n    return 1\n\n\n\ndef g():\n\treturn 2\n</code></pre>", CODE),
        ("<p>&nbsp;&nbsp;if x:<br>&nbsp; &nbsp; y</p>", "  if x:\n    y"),
        ('<div style="white-space: pre-wrap">a\n  b<div>c</div>\n d</div> e  f', "a\n  b\nc\n\n d\ne f"),
        ("<ul><li><p>one</p></li><li><div>two</div></li></ul>", "- one\n\n- two"),
        ("a<br><br><br><br>b", "a\n\nb"),
        ("<a title=don't href=https://x.example>b</a> it's", "b (https://x.example) it's"),
        ('<a href="https://x.example">never ends', "never ends (https://x.example)"),
        ('<a href="https://x.example">one<a href="https://y.example">two</a></a>', LINKS),
        ('<a href="javascript:alert(1)">no address</a>', "no address"),
        ('<video src="https://x.example/v.mp4"></video>', "[video: https://x.example/v.mp4]"),
        ("Ada &lt;ada@example.org&gt; <https://x.example/o/1>", "Ada <ada@example.org>"),
        ("a < b && c > d", "a < b && c > d"),
        ("cut off <a href='https://x", "cut off <a href='https://x"),
        ("cut off <!-- in a comment", "cut off <!-- in a comment"),
        ("<head><title>no</title><body>yes", "yes"),
        ("&#00065;&#x0041;&#" + "9" * 5_000 + ";&#x" + "f" * 5_000 + ";&#1114112;", "AA\ufffd\ufffd\ufffd"),
    ],
)
def test_markup_becomes_text(markup: str, text: str) -> None:
    assert plain(markup) == text


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200))
def test_any_text_becomes_one_that_an_import_accepts(given_text: str) -> None:
    for text in (plain(given_text), clean(given_text), plain(f"<p>{given_text}")):
        assert "\0" not in text
        text.encode()


PIECES = [
    "<",
    ">",
    "a",
    "</",
    "!--",
    "-->",
    "!",
    "?",
    "/",
    " ",
    "=",
    '"',
    "'",
    "&",
    "#",
    "script",
    "pre",
    "x",
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_tokens_are_the_whole_of_a_text_one_after_the_other(given_text: str) -> None:
    at = 0
    for token in tokens(given_text):
        assert token.start == at
        at = token.end
    assert at == len(given_text)


HOSTILE = [
    '<a x="',
    "<a x='",
    "<!--",
    "<!",
    "<?",
    "</",
    "<a ",
    "<a b ",
    "<a b = ",
    "<a>",
    "<li><div>",
    "<pre>",
    "<script>",
    "</script",
    "<title>",
    '<p style="white-space:pre">',
    "<a href=x>y</a>",
    "<br>",
    "&",
    "&#",
    "&#9",
    "&amp",
    "&nbsp; ",
    "<![CDATA[",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_each_character_of_crafted_markup_is_scanned_once(
    piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 2_000
    scanned = 0

    class Counted(str):
        """A text that counts the characters which searches of it go over."""

        __slots__ = ()

        def find(self, wanted: str, start: int = 0) -> int:  # type: ignore[override]
            nonlocal scanned
            place = str.find(self, wanted, start)
            scanned += (len(self) if place < 0 else place) - start + 1
            return place

    class Pattern:
        """A pattern that counts likewise."""

        def __init__(self, pattern: Any) -> None:
            self._pattern = pattern

        def match(self, text: str, at: int) -> Any:
            nonlocal scanned
            found = self._pattern.match(text, at)
            scanned += 1 if found is None else found.end() - at + 1
            return found

        def search(self, text: str, at: int) -> Any:
            nonlocal scanned
            found = self._pattern.search(text, at)
            scanned += (len(text) if found is None else found.end()) - at
            return found

    for name in ("_NAME", "_GAP", "_ATTRIBUTE", "_EQUALS", "_UNQUOTED"):
        monkeypatch.setattr(markup_module, name, Pattern(getattr(markup_module, name)))
    raw = {name: Pattern(pattern) for name, pattern in markup_module._RAW.items()}
    monkeypatch.setattr(markup_module, "_RAW", raw)
    text = Counted(piece * count)
    assert sum(token.end - token.start for token in tokens(text)) == len(text)
    assert scanned <= 4 * len(text) + 4 * count


@pytest.mark.parametrize("piece", HOSTILE)
def test_a_megabyte_of_crafted_markup_is_read(piece: str) -> None:
    count = 1_000_000 // len(piece)
    assert isinstance(plain("x" * 200_000 + piece * count), str)  # with quadratic work it is hours


def test_blank_lines_around_a_text_go_and_its_indentation_stays() -> None:
    assert trimmed("\n \n    if x:\n        y\n  ") == "    if x:\n        y"
    assert trimmed(" \n ") == ""
    assert [token.kind for token in tokens("<SCRIPT>a<b</script >c")][1] is MarkupKind.hidden
