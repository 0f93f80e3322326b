"""The widget's pages and files: sites that may show the panel, languages, and policies."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import AsyncIterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest

from tests.support.api.service import Service, running

CHANNEL: Final = {
    "type": "widget",
    "name": 'Shop & <b>"Sons"</b>',
    "origins": ["https://shop.example", "https://*.shop.example:8443"],
    "look": {
        "colour": "#1f5eff",
        "position": "left",
        "texts": {
            "en": {"title": "Help", "greeting": "</script> Hello"},
            "de": {"title": "Hilfe", "greeting": "Hallo"},
        },
    },
}
FRAMED: Final = {"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"}


@pytest.fixture
async def anybody(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client without credentials, which follows no redirects and accepts no particular language."""
    async with httpx.AsyncClient(base_url=service.url) as client:
        yield client


async def made(service: Service, **changes: Any) -> str:
    """Create a channel and return its id."""
    answer = await service.http.post("/channels", json={**CHANNEL, **changes})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def policy(answer: httpx.Response) -> Mapping[str, str]:
    """Return the directives of an answer's policy."""
    parts = [each.strip().split(" ", 1) for each in answer.headers["Content-Security-Policy"].split(";")]
    return {name: "".join(value) for name, *value in parts}


def loaded(script: str) -> dict[str, Any]:
    """Return the settings in a loader."""
    found = re.search(r"settings = (\{.*\});", script)
    assert found is not None
    settings: dict[str, Any] = json.loads(found[1])
    return settings


async def test_loader_has_the_settings_of_its_channel_and_may_be_used_by_every_site(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    channel = await made(service)
    answer = await anybody.get(f"/widget/{channel}.js", headers={"Accept-Language": "de-CH, en;q=0.5"})
    assert answer.status_code == 200
    assert loaded(answer.text) == {
        "id": channel,
        "enabled": True,
        "colour": "#1f5eff",
        "ink": "#ffffff",
        "side": "left",
        "query": "lang=de",
        "open": "Hilfe",
    }
    assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert {"Accept-Language", "Accept-Encoding"} <= set(answer.headers["Vary"].split(", "))


async def test_query_tries_out_another_look_in_loader_and_demo(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    channel = await made(service)
    tried = {"lang": "de", "colour": "#FFD400", "position": "right", "utm_source": "x"}
    settings = loaded((await anybody.get(f"/widget/{channel}.js", params=tried)).text)
    assert (settings["colour"], settings["ink"], settings["side"]) == ("#FFD400", "#000000", "right")
    assert settings["query"] == "lang=de&colour=%23FFD400&position=right"
    demo = unescape((await anybody.get(f"/widget/{channel}/demo", params=tried)).text)
    assert f'src="../{channel}.js?lang=de&colour=%23FFD400&position=right"' in demo


@pytest.mark.parametrize(
    "query", ["colour=red", "colour=%23fff", "colour=%231f5eff;}", "position=top", f"lang={'x' * 36}"]
)
async def test_look_that_is_none_is_refused(service: Service, anybody: httpx.AsyncClient, query: str) -> None:
    channel = await made(service)
    for path in (f"/widget/{channel}.js", f"/widget/{channel}", f"/widget/{channel}/demo"):
        answer = await anybody.get(f"{path}?{query}")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")


async def test_panel_may_be_framed_by_the_origins_of_the_channel_alone(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    channel = await made(service)
    answer = await anybody.get(f"/widget/{channel}")
    found = policy(answer)
    assert found["frame-ancestors"] == "'self' https://shop.example https://*.shop.example:8443"
    assert (
        found["default-src"]
        == found["base-uri"]
        == found["form-action"]
        == found["trusted-types"]
        == "'none'"
    )
    assert found["script-src"] == found["style-src"] == found["connect-src"] == "'self'"
    assert found["img-src"] == "'self' blob:"
    assert found["require-trusted-types-for"] == "'script'"
    nobody = await made(service, origins=[])
    assert policy(await anybody.get(f"/widget/{nobody}"))["frame-ancestors"] == "'self'"


async def test_texts_of_a_channel_never_become_markup(service: Service, anybody: httpx.AsyncClient) -> None:
    channel = await made(service)
    page = (await anybody.get(f"/widget/{channel}")).text
    found = re.search(r'<meta name="deskwire" content="([^"]*)">', page)
    assert found is not None
    settings = json.loads(unescape(found[1]))
    assert settings["name"] == CHANNEL["name"]
    assert settings["own"] == {"title": "Help", "greeting": "</script> Hello"}
    assert "<b>" not in page
    assert page.count("</script>") == 1
    assert "<b>" not in (await anybody.get(f"/widget/{channel}/demo")).text


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({**FRAMED, "Referer": "https://shop.example/"}, False),
        ({**FRAMED, "Referer": "https://a.shop.example:8443/"}, False),
        ({**FRAMED, "Referer": "https://a.shop.example/"}, True),
        ({**FRAMED, "Referer": "https://evil.example/"}, True),
        ({**FRAMED, "Referer": "https://shop.example.evil.example/"}, True),
        ({**FRAMED, "Referer": 'https://evil.example/"><script>call us'}, True),
        ({**FRAMED, "Referer": "https://shop.example/cart?token=x"}, False),
        ({**FRAMED, "Referer": "null"}, False),  # the policy decides
        ({"Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "same-origin", "Referer": "http://own/"}, False),
        (
            {
                "Sec-Fetch-Dest": "document",
                "Sec-Fetch-Site": "cross-site",
                "Referer": "https://evil.example/",
            },
            False,
        ),
        (FRAMED, False),
        ({}, False),
    ],
)
async def test_site_that_is_not_allowed_gets_a_page_that_names_it(
    service: Service, anybody: httpx.AsyncClient, headers: dict[str, str], refused: bool
) -> None:
    channel = await made(service)
    answer = await anybody.get(f"/widget/{channel}", headers=headers)
    assert answer.status_code == 200
    assert ("not allowed on this site" in answer.text) == refused
    assert ("<script" in answer.text) != refused
    assert ("frame-ancestors *" in answer.headers["Content-Security-Policy"]) == refused
    if refused:
        origin = "/".join(headers["Referer"].split("/")[:3])
        assert f"add {origin} to the origins" in answer.text
        assert answer.headers["Cache-Control"] == "no-store"


async def test_disabled_channel_says_so_in_the_language_of_the_customer(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    channel = await made(service, enabled=False)
    answer = await anybody.get(f"/widget/{channel}?lang=de")
    assert answer.status_code == 200
    assert '<html lang="de" dir="ltr">' in answer.text
    assert "Dieser Chat ist zurzeit geschlossen." in answer.text
    assert loaded((await anybody.get(f"/widget/{channel}.js")).text)["enabled"] is False
    assert "disabled" in (await anybody.get(f"/widget/{channel}/demo")).text


@pytest.mark.parametrize(
    "name", ["chn_01KZ000000000000000000CHAN", "chn_x", "%3Cscript%3E", "cnv_01KZ000000000000000000CHAN"]
)
async def test_unknown_channel_has_a_page_and_no_loader(anybody: httpx.AsyncClient, name: str) -> None:
    for path in (f"/widget/{name}", f"/widget/{name}/demo"):
        answer = await anybody.get(path, headers={"Accept-Language": "ar"})
        assert answer.status_code == 404
        assert '<html lang="ar" dir="rtl">' in answer.text
        assert "<script" not in answer.text.lower()
    answer = await anybody.get(f"/widget/{name}.js")
    assert (answer.status_code, answer.json()["code"]) == (404, "channel_not_found")


async def test_change_of_a_channel_shows_at_once(service: Service, anybody: httpx.AsyncClient) -> None:
    channel = await made(service)
    first = await anybody.get(f"/widget/{channel}.js")
    again = await anybody.get(f"/widget/{channel}.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    body = {"look": {**CHANNEL["look"], "colour": "#a81d33"}}  # type: ignore[dict-item]
    assert (await service.http.patch(f"/channels/{channel}", json=body)).status_code == 200
    after = await anybody.get(f"/widget/{channel}.js", headers={"If-None-Match": first.headers["ETag"]})
    assert loaded(after.text)["colour"] == "#a81d33"


async def test_every_address_in_the_panel_and_the_demo_is_a_file_that_stays(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    channel = await made(service)
    for path in (f"/widget/{channel}", f"/widget/{channel}/demo"):
        page = (await anybody.get(path)).text
        addresses = re.findall(r'(?:src|href)="([^"]*files/[^"]+)"', page)
        assert len(addresses) >= 2
        for address in addresses:
            file = await anybody.get(str(httpx.URL(path).join(address)))
            assert file.status_code == 200, address
            assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"
            assert file.headers["Access-Control-Allow-Origin"] == "*"


async def test_modules_for_open_pages_and_own_interfaces_lead_to_the_current_version(
    anybody: httpx.AsyncClient,
) -> None:
    for name in ("host.js", "customer.js"):
        moved = await anybody.get(f"/widget/{name}")
        assert moved.status_code == 302
        assert (moved.headers["Cache-Control"], moved.headers["Access-Control-Allow-Origin"]) == (
            "no-cache",
            "*",
        )
        module = await anybody.get(str(httpx.URL(f"/widget/{name}").join(moved.headers["Location"])))
        assert module.status_code == 200
        assert "export" in module.text


@pytest.mark.parametrize(
    "path",
    [
        "widget/panel.html",
        "widget/customer.d.ts",
        "../widget.py",
        "..%2Fwidget.py",
        "desk/app.js",
        "desk/vendor/preact.LICENSE",
        "widget/",
        "widget/panel.js%00",
    ],
)
async def test_nothing_but_the_files_of_the_widget_is_there(anybody: httpx.AsyncClient, path: str) -> None:
    (location,) = re.findall(
        r"files/[0-9a-f]{16}/", (await anybody.get("/widget/host.js")).headers["Location"]
    )
    answer = await anybody.get(
        httpx.URL(raw_path=f"/widget/{location}{path}".encode(), scheme="http", host="x").raw_path.decode()
    )
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert (await anybody.get("/widget/files/0123456789abcdef/widget/host.js")).status_code == 404


async def test_demo_shows_the_two_lines_with_the_address_that_the_browser_used(
    service: Service, anybody: httpx.AsyncClient
) -> None:
    channel = await made(service)
    page = unescape((await anybody.get(f"/widget/{channel}/demo")).text)
    assert f'<script async src="{service.url}/widget/{channel}.js"></script>' in page
    assert "<script>window.Deskwire = window.Deskwire || []</script>" in page
    found = policy(await anybody.get(f"/widget/{channel}/demo"))
    assert (found["script-src"], found["frame-src"], found["frame-ancestors"]) == (
        "'self'",
        "'self'",
        "'self'",
    )


async def test_public_url_is_the_address_in_the_two_lines(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    public = f"http://localhost:{port}"
    async with running(tmp_path, port=port, public_url=public) as service:
        channel = await made(service)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as anybody:
            page = unescape((await anybody.get(f"/widget/{channel}/demo")).text)
    assert f'src="{public}/widget/{channel}.js"' in page


async def test_widget_stays_without_the_desk(tmp_path: Path) -> None:
    async with running(tmp_path, ui=False) as service, httpx.AsyncClient(base_url=service.url) as anybody:
        channel = await made(service)
        for path in (f"/widget/{channel}.js", f"/widget/{channel}", f"/widget/{channel}/demo"):
            assert (await anybody.get(path)).status_code == 200


@pytest.mark.parametrize(
    "name", ["Your account is locked: call 0900 1", "<script>alert(1)</script>x", "chn_1"]
)
async def test_notice_repeats_no_text_of_its_address(anybody: httpx.AsyncClient, name: str) -> None:
    answer = await anybody.get(f"/widget/{quote(name, safe='')}")
    assert answer.status_code == 404
    assert name not in unescape(answer.text)
