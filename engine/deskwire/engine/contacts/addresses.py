"""E-mail addresses and telephone numbers of contacts: parsing of common spellings, and comparison."""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from urllib.parse import unquote

EMAIL_MAX: Final = 320
"""Maximum length of an address: 64 characters before the `@`, 255 after it (RFC 3696, 3)."""
PHONE_MAX: Final = 50
PHONE_DIGITS_MIN: Final = 1
"""Minimum number of digits. Extensions and short codes are valid numbers, too."""

_NAMED: Final = re.compile(r"[^<>]*<([^<>]*)>")
"""An address in angle brackets, optionally after a name (RFC 5322, 3.4)."""
_LOCAL: Final = re.compile(r'[^\s@<>()\[\],;:\\"]{1,64}|"[^"\\<>\r\n]{1,62}"')
_LABEL: Final = re.compile(r"\w(?:[\w-]{0,61}\w)?")
_LITERAL: Final = re.compile(r"\[[0-9A-Fa-f.:IPv]+\]")
_DASHES: Final = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")
_NUMBER: Final = re.compile(r"\+?[0-9()./ \-*#,]+(?:(?:ext\.?|x|extension|#)[ .:]?[0-9]+)?", re.IGNORECASE)
_TRUNK: Final = re.compile(r"\(0\)")
"""A trunk prefix that is dialled only within the country, as in `+49 (0)30 1234`."""
_EXTENSION: Final = re.compile(r"(?:ext|x|#|,|;).*", re.IGNORECASE | re.DOTALL)
_COUNTRY: Final = re.compile(r"1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[2-9][0-9]{2}")
"""The country codes of ITU-T E.164. All codes that are not listed with one or two digits have three."""


def clean_email(text: str) -> str:
    """Return the address in a text such as `Ada <ada@example.org>` or `mailto:ada@example.org`, with its case unchanged.

    Surrounding blanks and zero-width characters are dropped, and full-width characters become normal ones.

    Raises ValueError, with a reason, if the text is not exactly one address.
    """
    address = _visible(text)
    named = _NAMED.fullmatch(address)
    address = address if named is None else named[1].strip()
    if address[:7].lower() == "mailto:":
        address = unquote(address[7:].partition("?")[0]).strip()
    local, at, domain = address.rpartition("@")
    if not at or not _LOCAL.fullmatch(local) or not _is_domain(domain):
        raise ValueError("This must be one e-mail address, such as ada@example.org.")
    if len(address) > EMAIL_MAX:
        raise ValueError(f"An e-mail address has at most {EMAIL_MAX} characters.")
    return address


def _is_domain(domain: str) -> bool:
    if _LITERAL.fullmatch(domain):
        return True
    return len(domain) <= 255 and all(
        _LABEL.fullmatch(label) for label in _marks_as_letters(domain).split(".")
    )


def _marks_as_letters(text: str) -> str:
    """Return the text with a letter in place of each combining mark.

    Domain names in Indic scripts contain such marks.
    """
    return "".join("a" if unicodedata.category(each)[0] == "M" else each for each in text)


def clean_phone(text: str) -> str:
    """Return the telephone number in a text, with its grouping unchanged, without `tel:` and surrounding blanks.

    Raises ValueError, with a reason, if the text is not a telephone number.
    """
    number = " ".join(_visible(text).translate(_DASHES).split())
    if number[:4].lower() == "tel:":
        number = unquote(number[4:]).partition(";")[0].strip()
    number = "".join(str(unicodedata.decimal(each)) if each.isdecimal() else each for each in number)
    digits = sum(map(str.isdecimal, number))
    if digits < PHONE_DIGITS_MIN or not _NUMBER.fullmatch(number):
        raise ValueError("This must be a telephone number, such as +44 20 7946 0000.")
    if len(number) > PHONE_MAX:
        raise ValueError(f"A telephone number has at most {PHONE_MAX} characters.")
    return number


def _visible(text: str) -> str:
    """Return a text in NFKC, without surrounding blanks and zero-width characters."""
    plain = unicodedata.normalize("NFKC", text)
    return "".join(each for each in plain if unicodedata.category(each) != "Cf").strip()


def digits_of(number: str) -> str:
    """Return the digits of a number as dialled from abroad: without `(0)`, a leading `00`, and an extension."""
    main = _EXTENSION.sub("", _TRUNK.sub("", unicodedata.normalize("NFKC", number).removeprefix("tel:")))
    digits = "".join(str(unicodedata.decimal(each)) for each in main if each.isdecimal())
    return digits.removeprefix("00") if "+" not in main else digits


def national_digits(number: str) -> str:
    """Return the digits without country code and trunk prefix, the same for the national and international spelling."""
    number = unicodedata.normalize("NFKC", number)
    digits = digits_of(number)
    international = "+" in number or number.removeprefix("tel:").strip(" (").startswith("00")
    found = _COUNTRY.match(digits) if international else None
    return (digits[found.end() :] if found is not None else digits).removeprefix("0")
