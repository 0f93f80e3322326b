"""E-mail addresses and telephone numbers as people and programs write them."""

from __future__ import annotations

import pytest

from deskwire.engine.contacts.addresses import clean_email, clean_phone


@pytest.mark.parametrize(
    "text",
    [
        " Ada@example.org",
        "Ada@example.org\n",
        "\r\nAda@example.org\t",
        "Ada Lovelace <Ada@example.org>",
        '"Lovelace, Ada" <Ada@example.org>',
        "<Ada@example.org>",
        "< Ada@example.org >",
        "mailto:Ada@example.org",
        "MAILTO:Ada%40example.org?subject=Hi",
        "<mailto:Ada@example.org>",
        "\u200bAda@example.org\u202c",
        "\uff21\uff44\uff41\uff20example.org",
    ],
)
def test_address_is_extracted_from_its_surroundings(text: str) -> None:
    assert clean_email(text) == "Ada@example.org"


@pytest.mark.parametrize(
    "text",
    [
        "ada@example.org", "ada+shop@example.org", "o'neil@example.co.uk", "ärzte@müller.example", "a@b", "ada@[192.0.2.1]",
        '"ada l"@example.org', "अदा@उदाहरण.भारत", "ada@xn--mller-kva.example", "a_b@my_host.example",
    ],
)  # fmt: skip
def test_address_keeps_its_spelling(text: str) -> None:
    assert clean_email(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "", "ada", "ada@", "@example.org", "ada@example..org", "ada@.org", "ada@example.org.", "a da@example.org", "ada@exam ple.org",
        "ada@example.org, bob@example.org", "ada@example.org;bob@example.org", "ada@example.org\nBcc: bob@example.org",
        "ada@@example.org", "<ada@example.org", "mailto:", "Ada <>", "ada@-example.org", f"{'a' * 65}@example.org", "a@b\x00c",
        "mailto:ada@example.org%0ABcc:bob@example.org",
    ],
)  # fmt: skip
def test_text_without_exactly_one_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        clean_email(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" +49 (0)30  123-456\n", "+49 (0)30 123-456"),
        ("tel:+49-30-123456", "+49-30-123456"),
        ("tel:+49-30-123456;ext=7", "+49-30-123456"),
        ("0049 30/123456", "0049 30/123456"),
        ("\uff0b49\u00a030\u2011123456", "+49 30-123456"),
        ("\u0660\u0661\u0662\u0663", "0123"),
        ("+1 212 555 0100 ext. 12", "+1 212 555 0100 ext. 12"),
        ("\u202a+44 20 7946 0000\u202c", "+44 20 7946 0000"),
        ("112", "112"),
    ],
)
def test_a_telephone_number_keeps_its_grouping(text: str, number: str) -> None:
    assert clean_phone(text) == number


@pytest.mark.parametrize("text", ["", "call me", "+", "ada@example.org", "+49 30 123456\nBcc", "12:30"])
def test_invalid_telephone_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="telephone number"):
        clean_phone(text)
