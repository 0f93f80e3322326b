"""Parsers of settings: the values that they accept and refuse, and the secrets that they never repeat."""

from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.config import parsers as setting
from deskwire.config.settings import SETTINGS

WHOLE = setting.integer(0, 65_535)
TENTHS = setting.number(0.1, 3_600)


@given(st.integers(0, 65_535))
def test_a_whole_number_in_its_range_is_read_back(value: int) -> None:
    assert WHOLE(setting.as_text(value)) == value


@given(st.integers(max_value=-1) | st.integers(min_value=65_536))
def test_a_whole_number_outside_its_range_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="from 0 to 65535"):
        WHOLE(str(value))


@given(st.floats(0.1, 3_600))
def test_a_number_in_its_range_is_read_back_exactly(value: float) -> None:
    assert TENTHS(setting.as_text(value)) == value


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "", "0", "5s", "1e9", "0,5"])
def test_number_out_of_range_or_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"from 0\.1 to 3600"):
        TENTHS(text)


@pytest.mark.parametrize("text", ["1_000", "\u0661", "+1", " 1", "1.0", "0x1", "9" * 5_000])
def test_a_whole_number_is_plain_digits_only(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        WHOLE(text)


@pytest.mark.parametrize(
    ("text", "value"), [("TRUE", True), ("on", True), ("1", True), ("No", False), ("0", False)]
)
def test_flag_accepts_the_usual_words(text: str, value: bool) -> None:
    assert setting.flag(text) is value


def test_a_flag_refuses_any_other_word() -> None:
    with pytest.raises(ValueError, match="true or false, not 'maybe'"):
        setting.flag("maybe")


@pytest.mark.parametrize("text", ["2,6", "2,6,12,24", "2,6,x", ""])
def test_a_list_of_numbers_has_exactly_as_many_as_it_must(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        setting.numbers(3, TENTHS)(text)


def test_a_list_of_numbers_may_have_blanks_after_its_commas() -> None:
    assert setting.numbers(3, TENTHS)("2, 6, 12.5") == (2.0, 6.0, 12.5)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://help.example", "https://help.example"),
        ("https://help.example/", "https://help.example"),
        ("http://[::1]:8080/support/", "http://[::1]:8080/support"),
    ],
)
def test_a_url_loses_the_slash_at_its_end_only(text: str, url: str) -> None:
    assert setting.http_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "help.example",
        "ftp://help.example",
        "https://",
        "https:///path",
        "https://me:hunter2@help.example",
        "https://help.example/?a=hunter2",
        "https://help.example/#hunter2",
        "https://help.example:0",
        "https://help.example:99999",
        "https://[::1",
        "https://help .example",
        "https://help.example\\@evil.example",
    ],
)
def test_url_that_is_not_plain_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="must be an http or https URL") as refusal:
        setting.http_url(text)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "http://proxy.example",
        "http://proxy.example:3128/",
        "https://me:hunter2@proxy.example:3128",
        "http://me:hunter2%40@[fd00::1]:3128",
    ],
)
def test_proxy_url_is_accepted_unchanged(text: str) -> None:
    assert setting.proxy_url(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "proxy.example:3128",
        "socks5://me:hunter2@proxy.example",
        "http://me:hunter2@",
        "http://:hunter2@proxy.example",
        "http://me:hunter2@proxy.example:port",
        "http://me:hunter2@proxy.example:0",
        "http://me:hunter2@proxy.example/path",
        "http://me:hunter2@proxy.example?a",
        "http://me:hunter2#@proxy.example",
        "http://me:hunter 2@proxy.example",
        "http://me:hunter2@pröxy.example",
        "http://me:hunter2@[fd00::1",
        "http://me:hunter2\r\n@proxy.example",
    ],
)
def test_invalid_proxy_url_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ValueError, match="must be an http or https URL") as refusal:
        setting.proxy_url(text)
    assert "hunter2" not in str(refusal.value)


def test_networks_of_both_families_are_read() -> None:
    assert setting.networks("10.0.0.0/8, fd00::/8") == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/8,", "intranet", "10.0.0.0/33"])
def test_a_network_with_host_bits_or_a_typo_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be CIDR blocks"):
        setting.networks(text)


@pytest.mark.parametrize("text", ["", " ", "two\nlines", " blank"])
def test_words_are_printable_and_not_empty(text: str) -> None:
    with pytest.raises(ValueError, match="printable"):
        setting.words(text)


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_a_path_is_not_empty_and_has_no_null(text: str) -> None:
    with pytest.raises(ValueError, match="must be a path"):
        setting.path(text)
    assert setting.path("a b") == Path("a b")


@pytest.mark.parametrize(
    "each", [each for each in SETTINGS.values() if each.secret], ids=lambda each: each.name
)
def test_a_secret_setting_never_repeats_a_bad_value(each: setting.Setting) -> None:
    with pytest.raises(ValueError, match="must") as refusal:
        each.parse("hunter2 \u00e9")
    assert "hunter2" not in str(refusal.value)


ORIGINS = [
    "https://desk.example.com",
    "https://desk.example.com:8443",
    "http://localhost:3000",
    "http://[::1]:3000",
]


@pytest.mark.parametrize("text", ORIGINS)
def test_origin_is_accepted_in_a_browsers_spelling(text: str) -> None:
    assert setting.web_origin(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "null",
        "desk.example.com",
        "https://",
        "https://*.example.com",
        "https://desk.example.com/",
        "https://Desk.example.com",
        "HTTPS://desk.example.com",
        "https://desk.example.com:443",
        "https://desk.example.com:port",
        "https://me@desk.example.com",
        "http://desk.example.com",
        "https://desk.example.com?",
        "https://d\u00e9sk.example.com",
        "https://[::1",
    ],
)
def test_text_that_is_no_exact_secure_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="exact origins"):
        setting.web_origin(text)
