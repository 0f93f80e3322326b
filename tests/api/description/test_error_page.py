"""The page of error codes, and the types of problem documents that lead to it."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

import httpx

from deskwire.http.description.error_codes import CODES, PROBLEMS
from tests.support.api.service import Service


async def test_the_type_of_a_problem_leads_to_its_code_on_the_page(service: Service) -> None:
    refused = await service.http.get("/s2s/conversations/cnv_01KZ00000000000000000000C1")
    problem = refused.json()
    assert problem["code"] == "conversation_not_found"
    target = urlsplit(urljoin(str(refused.url), problem["type"]))
    async with httpx.AsyncClient() as anybody:
        page = await anybody.get(target._replace(fragment="").geturl())
    assert page.status_code == 200
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert f'<tr id="{target.fragment}">' in page.text


async def test_the_page_has_every_code(service: Service) -> None:
    async with httpx.AsyncClient(base_url=service.url) as anybody:
        page = (await anybody.get("/docs/errors")).text
    assert all(page.count(f'<tr id="{each.code}">') == 1 for each in CODES)
    assert all(page.count(f'<tr id="problem-{code}">') == 1 for code in PROBLEMS)


async def test_a_request_that_no_parser_reads_has_a_type_too(service: Service) -> None:
    status, body = await service.talk(b"GET /v3/healthz HTTP/9.9\r\nHost: x\r\n\r\n")
    assert status >= 400
    assert b'"type":"/docs/errors#' in body
