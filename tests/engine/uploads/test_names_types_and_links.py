"""The pure parts of uploads: names, types, signed URLs."""

from __future__ import annotations

import unicodedata
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.core.errors import Forbidden
from deskwire.engine.uploads.file_type import sniff
from deskwire.engine.uploads.links import Links
from deskwire.engine.uploads.upload import NAME_MAX, Attachment, Upload, clean_name
from deskwire.http.api.output.downloads import disposition

NOW = 1_790_000_000_000
DAY_MS = 86_400_000
UPLOAD = "upl_01KZ00000000000000000000VP"
LINKS = Links(lambda: (b"key",), "https://files.test/v3/uploads", lifetime_s=30 * 86_400)


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("photo.png", "photo.png"),
        ("C:\\Users\\Ada\\photo.png", "photo.png"),
        ("../../etc/passwd", "passwd"),
        ("..", "file"),
        ("", "file"),
        (".bashrc", "bashrc"),
        ("in\r\nvoice\x00.pdf", "in voice.pdf"),
        ("annual\u202egnp.exe", "annualgnp.exe"),
        ('a"b<c>.txt', "a_b_c_.txt"),
        ("  many   blanks .txt", "many blanks .txt"),
        ("Ru\u0308ckgabe.pdf", "R\u00fcckgabe.pdf"),
        ("x" * 300 + ".jpeg", "x" * 195 + ".jpeg"),
    ],
)
def test_any_name_becomes_a_harmless_one(given_name: str, name: str) -> None:
    assert clean_name(given_name) == name


@given(st.text())
def test_any_name_becomes_a_short_stable_last_part_of_a_path(given_name: str) -> None:
    name = clean_name(given_name)
    assert 1 <= len(name) <= NAME_MAX
    assert not set(name) & set('/\\"\r\n\0')
    assert name not in (".", "..")
    assert all(unicodedata.category(each)[0] != "C" for each in name)
    header = disposition(Upload(UPLOAD, 1, name, "application/pdf", 1, "0" * 64, NOW))
    assert header.isascii()
    assert header.isprintable()


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (bytes.fromhex("89504e470d0a1a0a"), "image/png"),
        (bytes.fromhex("ffd8ffe000104a464946"), "image/jpeg"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
        (b"ID3\x03\0\0\0\0\0\x21", "audio/mpeg"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"<!DOCTYPE html><script>", "text/plain"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'>", "text/plain"),
        ("gr\u00fc\u00dfe".encode()[:-1] + b"e", "text/plain"),
        ("caf\u00e9".encode()[:-1], "text/plain"),
        (b"\xff\xfe\x00\x01", "application/octet-stream"),
        (b"a\x00b", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
)
def test_the_type_is_found_in_the_bytes(head: bytes, kind: str) -> None:
    assert sniff(head) == kind


@given(st.binary(max_size=300))
def test_any_bytes_have_a_type_that_is_a_valid_header(head: bytes) -> None:
    kind, slash, subtype = sniff(head).partition("/")
    assert kind
    assert slash
    assert subtype
    assert sniff(head).isprintable()


def test_a_url_is_valid_for_thirty_days_and_not_a_moment_longer() -> None:
    url, expires = LINKS.url(UPLOAD, "a b.png", NOW)
    assert expires == NOW + 30 * DAY_MS
    assert LINKS.upload_id(url, expires - 1) == UPLOAD
    assert LINKS.upload_id(url, expires) is None


def test_url_in_a_payload_changes_each_second() -> None:
    attachment = Attachment(UPLOAD, "a.png", "image/png", 3)
    (first,) = LINKS.shown([attachment], NOW)
    (second,) = LINKS.shown([attachment], NOW + 1_000)
    assert first["url"] != second["url"]
    assert {**first, "url": ""} == {**second, "url": ""}


@given(st.text(min_size=1), st.integers(0, 400), st.characters())
def test_a_url_with_a_changed_letter_is_refused(name: str, at: int, letter: str) -> None:
    url, _ = LINKS.url(UPLOAD, name, NOW)
    assert LINKS.upload_id(url, NOW) == UPLOAD
    place = at % len(url)
    altered = url[:place] + letter + url[place + 1 :]
    assert (LINKS.upload_id(altered, NOW) == UPLOAD) == (altered == url)


@given(st.text(), st.text(), st.text())
def test_unsigned_link_is_refused(name: str, expires: str, signature: str) -> None:
    with pytest.raises(Forbidden):
        LINKS.check(UPLOAD, name, expires, signature, NOW)


def test_another_installations_url_is_refused() -> None:
    url, _ = Links(lambda: (b"other",), "https://files.test/v3/uploads").url(UPLOAD, "a", NOW)
    assert LINKS.upload_id(url, NOW) is None
    assert urlsplit(url).path == f"/v3/uploads/{UPLOAD}/a"
