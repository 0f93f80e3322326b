"""The desk's page and files: public, cacheable for a year, and limited to its own files."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.support.api.service import Service, running
from tests.support.root import ROOT

FOLDER = ROOT / "http/deskwire/http/pages/desk"


@pytest.fixture
async def anybody(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client without credentials, which follows no redirects."""
    async with httpx.AsyncClient(base_url=service.url) as client:
        yield client


async def test_every_desk_path_serves_the_same_page_with_relative_addresses(
    anybody: httpx.AsyncClient,
) -> None:
    for path, up in (
        ("/desk", ""),
        ("/desk/tickets", "../"),
        ("/desk/webhooks/whk_01KZ0000000000000000000W01?type=message.created&days=7", "../../"),
        ("/desk/tickets?status=OPEN&q=a%2Fb&status=", "../"),
        ("/desk/c/cnv_01KZ000000000000000000C0NV", "../../"),
    ):
        page = await anybody.get(path)
        assert page.status_code == 200
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        addresses = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
        assert len(addresses) > 5
        for address in addresses:
            assert re.fullmatch(rf"{re.escape(up)}web/[0-9a-f]{{16}}/[\w./-]+", address)
            assert (await anybody.get(str(httpx.URL(path).join(address)))).status_code == 200


async def test_page_has_a_strict_policy_and_is_always_revalidated(
    anybody: httpx.AsyncClient,
) -> None:
    headers = (await anybody.get("/desk")).headers
    policy = dict(each.strip().split(" ", 1) for each in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["trusted-types"] == "deskwire-worker deskwire-notifications"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Permissions-Policy"] == "microphone=(self), camera=(), geolocation=()"
    assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer")
    assert headers["Cache-Control"] == "no-cache"


async def test_cached_page_or_file_is_not_sent_again(anybody: httpx.AsyncClient) -> None:
    for path in ("/desk", await address(anybody, "app.js")):
        first = await anybody.get(path)
        again = await anybody.get(path, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        head = await anybody.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["ETag"] == first.headers["ETag"]


async def address(anybody: httpx.AsyncClient, name: str) -> str:
    """Return the URL of a file as the page refers to it."""
    found = re.search(rf'"(web/[0-9a-f]{{16}})/{re.escape(name)}"', (await anybody.get("/desk")).text)
    assert found is not None
    return f"/{found[1]}/{name}"


async def test_file_is_cached_for_a_year_and_compressed_if_accepted(
    anybody: httpx.AsyncClient,
) -> None:
    path = await address(anybody, "app.js")
    for coding in ("gzip", "identity"):
        file = await anybody.get(path, headers={"Accept-Encoding": coding})
        assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert file.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert file.headers.get("Content-Encoding", "identity") == coding
        assert file.text == (FOLDER / "app.js").read_text()


async def test_worker_may_call_only_the_service(anybody: httpx.AsyncClient) -> None:
    worker = (await address(anybody, "app.js")).replace("app.js", "core/feed-worker.js")
    policy = (await anybody.get(worker)).headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; connect-src 'self'; ")


@pytest.mark.parametrize(
    "path",
    [
        "index.html",
        "../explorer.py",
        "..%2Fexplorer.py",
        "%2e%2e/explorer.py",
        "vendor",
        "vendor/",
        "vendor/preact.LICENSE",
        "vendor/preact.d.ts",
        "/etc/passwd",
        "%2Fetc%2Fpasswd",
        "app.js/",
        "App.js",
        "app.js%00",
        "vendor\\preact.js",
    ],
)
async def test_nothing_but_the_files_of_the_page_is_there(anybody: httpx.AsyncClient, path: str) -> None:
    folder = (await address(anybody, "app.js")).removesuffix("app.js")
    answer = await anybody.get(
        httpx.URL(raw_path=f"{folder}{path}".encode(), scheme="http", host="x").raw_path.decode()
    )
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


async def test_another_version_than_this_one_has_no_files(anybody: httpx.AsyncClient) -> None:
    assert (await anybody.get("/web/0123456789abcdef/app.js")).status_code == 404


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 303),
        ("text/html", 303),
        ("*/*", 200),
        ("application/json", 200),
        ("application/json, text/html;q=0.5", 200),
        ("text/html;q=0", 200),
        (None, 200),
    ],
)
async def test_root_redirects_browsers_to_the_desk_and_shows_programs_the_version(
    service: Service, accept: str | None, status: int
) -> None:
    async with httpx.AsyncClient(base_url=service.url, headers={"Accept": accept or ""}) as client:
        if accept is None:
            del client.headers["Accept"]
        answer = await client.get("/")
    assert answer.status_code == status
    if status == 303:
        assert answer.headers["Location"] == "desk"
        assert answer.headers["Vary"] == "Accept"
    else:
        assert answer.json()["service"] == "deskwire"


async def test_without_a_desk_its_addresses_are_404_and_the_root_is_for_programs(tmp_path: Path) -> None:
    async with running(tmp_path, ui=False) as service, httpx.AsyncClient(base_url=service.url) as anybody:
        for path in ("/desk", "/desk/c/x", "/web/0123456789abcdef/app.js"):
            answer = await anybody.get(path)
            assert answer.status_code == 404
            assert "DESKWIRE_UI" in answer.json()["detail"]
        root = await anybody.get("/", headers={"Accept": "text/html"})
        assert root.json()["service"] == "deskwire"


async def test_a_folder_is_served_as_it_is_at_that_moment(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    page = '<html><head><script type="module" src="web/app.js"></script></head></html>'
    (folder / "index.html").write_text(page)
    (folder / "app.js").write_text('import { a } from "./a.js";\n')
    (folder / "a.js").write_text("export const a = 1;\n")
    async with (
        running(tmp_path / "data", web_dir=folder) as service,
        httpx.AsyncClient(base_url=service.url) as anybody,
    ):
        path = await address(anybody, "a.js")
        assert (await anybody.get(path)).headers["Cache-Control"] == "no-cache"
        (folder / "a.js").write_text("export const a = 2;\n")
        assert (await anybody.get(path)).text == "export const a = 2;\n"
        assert (await anybody.get("/desk")).text.count("modulepreload") == 1


async def test_an_address_of_the_page_may_have_filters_of_its_own(anybody: httpx.AsyncClient) -> None:
    plain = await anybody.get("/desk/tickets")
    filtered = await anybody.get("/desk/tickets?status=OPEN&tag=a&tag=b&q=%00")
    assert (filtered.status_code, filtered.text) == (200, plain.text)
