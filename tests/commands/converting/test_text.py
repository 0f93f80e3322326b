"""Markup becomes the text that a reader sees of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.convert.text import clean, plain


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
        ("<pre>a\n  b</pre>", "a\nb"),
        ("<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>", "1 2\n3"),
        ("<p>broken <b>markup<p>goes on", "broken markup\n\ngoes on"),
        ("<!-- hidden --><p>shown</p>", "shown"),
        ("<p></p><p>&nbsp;</p>", ""),
    ],
)
def test_markup_becomes_text(markup: str, text: str) -> None:
    assert plain(markup) == text


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200))
def test_whatever_is_given_becomes_text_that_an_import_takes(given_text: str) -> None:
    for text in (plain(given_text), clean(given_text), plain(f"<p>{given_text}")):
        assert "\0" not in text
        text.encode()
