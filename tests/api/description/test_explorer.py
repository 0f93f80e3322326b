"""The explorer: served by the service alone, and it works."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.api.description.browser import CHROMIUM, browsing
from tests.support.api.service import Service
from tests.support.root import ROOT

pytestmark = pytest.mark.long

OPERATION = "#operations-Project_of_a_server_key-getOwnProject"

ANSWER = f"""(() => {{
  const answer = document.querySelector('{OPERATION} .live-responses-table tbody')?.innerText;
  const button = document.querySelector('{OPERATION} button.execute');
  const ready = document.querySelector('{OPERATION} .responses-inner');
  if (!answer && button && ready && Date.now() - (window.clickedAt ?? 0) > 3000) {{
    window.clickedAt = Date.now();
    button.click();
  }}
  return answer;
}})()"""
"""Sends the call, and gives what came of it. A click before the operation is there as a whole keeps all others from working."""


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: the explorer can't be looked at")
async def test_explorer_makes_an_authorised_call_and_contacts_no_other_host(
    service: Service, tmp_path: Path
) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    async with browsing(profile) as tab:
        await tab.open(f"{service.url}/docs")
        await tab.click(".btn.authorize")
        await tab.type("input#auth-bearer-value, .auth-container input", service.demo["serverKey"])
        await tab.click(".auth-btn-wrapper button.authorize")
        await tab.click(".auth-btn-wrapper button.btn-done")
        await tab.click("#operations-tag-Project_of_a_server_key")
        await tab.click(f"{OPERATION} .opblock-summary-control")
        shown = await tab.until(ANSWER)
        await tab.call(
            "Runtime.evaluate", expression=f"document.querySelector('{OPERATION}').scrollIntoView()"
        )
        picture = await tab.screenshot()
    assert shown.startswith("200")
    assert service.demo["projectId"] in shown
    (tmp_path / "explorer.png").write_bytes(picture)
    assert len(picture) > 20_000
    asked = {urlsplit(url)._replace(path="", query="", fragment="").geturl() for url in tab.requested}
    assert {each for each in asked if not each.startswith("data:")} == {service.url}
    assert tab.complaints == []


async def test_the_page_names_files_that_never_change_and_may_call_only_the_service(service: Service) -> None:
    async with httpx.AsyncClient(base_url=service.url) as anybody:
        page = await anybody.get("/docs")
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        names = re.findall(r'(?:src|href)="(docs/[^"]+)"', page.text)
        assert len(names) == 3
        for name in names:
            asset = await anybody.get(f"/{name}")
            assert asset.status_code == 200
            assert "immutable" in asset.headers["Cache-Control"]
            assert re.search(r"\.[0-9a-f]{16}\.(js|css)$", name)
        assert (await anybody.get("/docs/explorer.js")).status_code == 404
        assert (await anybody.get("/docs/explorer.html")).status_code == 404


async def test_no_address_stands_in_the_page_and_its_script(service: Service) -> None:
    folder = ROOT / "http/deskwire/http/pages/assets"
    for name in ("explorer.html", "explorer.js"):
        assert "//" not in re.sub(r"(?m)(^| )// .*$", "", (folder / name).read_text())


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_description_is_sent_only_if_the_client_lacks_it(service: Service, coding: str) -> None:
    async with httpx.AsyncClient(base_url=service.url, headers={"Accept-Encoding": coding}) as anybody:
        first = await anybody.get("/v3/openapi.json")
        assert first.json()["openapi"] == "3.1.0"
        assert first.headers.get("Content-Encoding", "identity") == coding
        again = await anybody.get("/v3/openapi.json", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
