"""The desk's page is sent in a language: that of the cookie, else the best one of the browser."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.api.service import Service

TEXTS = re.compile(r'href="(web/[\w.]+/core/texts\.js)"')


@pytest.fixture
async def anybody(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client without credentials."""
    async with httpx.AsyncClient(base_url=service.url) as client:
        yield client


def language_of(page: httpx.Response) -> str:
    found = re.search(r'<html lang="([\w-]+)" dir="ltr" data-languages="\{', page.text)
    assert found is not None, page.text[:200]
    return found[1]


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        (None, None, "en"),
        (None, "", "en"),
        (None, "*", "en"),
        (None, "de", "de"),
        (None, "de-AT, en;q=0.5", "de"),
        (None, "DE-at", "de"),
        (None, "fr, de;q=0.3, en;q=0.2", "de"),
        (None, "fr, ja", "en"),
        (None, "de;q=0", "en"),
        (None, "de;q=abc, ;;;,=", "en"),
        ("deskwire-language=de", "en", "de"),
        ("deskwire-language=en", "de", "en"),
        ("a=b; deskwire-language=de; c=d", None, "de"),
        ("deskwire-language=", "de", "de"),
        ("deskwire-language=xx", "de", "de"),
        ("deskwire-language=../../etc", None, "en"),
        ('deskwire-language=de"><script>', None, "en"),
        ("deskwire-language=xx; deskwire-language=de", "en", "de"),
    ],
)
async def test_page_is_in_the_chosen_language_else_in_that_of_the_browser(
    anybody: httpx.AsyncClient, cookie: str | None, accepted: str | None, language: str
) -> None:
    headers = {"Accept-Language": accepted, "Cookie": cookie}
    page = await anybody.get(
        "/desk/settings/account", headers={name: each for name, each in headers.items() if each is not None}
    )
    assert page.status_code == 200
    assert language_of(page) == language
    assert "<script>" not in page.text


async def test_page_says_that_it_depends_on_the_language(anybody: httpx.AsyncClient) -> None:
    english = await anybody.get("/desk")
    german = await anybody.get("/desk", headers={"Accept-Language": "de"})
    assert english.headers["Vary"] == german.headers["Vary"] == "Accept-Encoding, Accept-Language, Cookie"
    assert english.headers["ETag"] != german.headers["ETag"]
    known = {"Accept-Language": "de", "If-None-Match": english.headers["ETag"]}
    assert (await anybody.get("/desk", headers=known)).status_code == 200


async def test_page_in_a_language_loads_its_texts_at_once_and_for_good(anybody: httpx.AsyncClient) -> None:
    page = await anybody.get("/desk", headers={"Accept-Language": "de"})
    found = TEXTS.search(page.text)
    assert found is not None
    texts = await anybody.get(f"/{found[1]}")
    assert 'language = "de"' in texts.text
    assert "immutable" in texts.headers["Cache-Control"]
    assert page.text.count("modulepreload") == (await anybody.get("/desk")).text.count("modulepreload")


async def test_modules_without_texts_are_the_same_in_all_languages(anybody: httpx.AsyncClient) -> None:
    english = TEXTS.search((await anybody.get("/desk")).text)
    german = TEXTS.search((await anybody.get("/desk", headers={"Accept-Language": "de"})).text)
    assert english is not None
    assert german is not None
    for path in ("app.js", "style.css", "vendor/inter.woff2"):
        one, other = [
            await anybody.get(f"/{each[1].removesuffix('core/texts.js')}{path}") for each in (english, german)
        ]
        assert one.status_code == other.status_code == 200
        assert one.content == other.content


@pytest.mark.parametrize("suffix", [".xx", ".", ".en", ".de.de", "de", ".DE", ".de%00"])
async def test_an_unknown_language_has_no_files(anybody: httpx.AsyncClient, suffix: str) -> None:
    found = TEXTS.search((await anybody.get("/desk")).text)
    assert found is not None
    path = f"/{found[1]}".replace("/core/", f"{suffix}/core/", 1)
    assert (await anybody.get(path)).status_code == 404
