"""The headers of every response for browsers and caches (ADR 25)."""

from __future__ import annotations

import httpx
import pytest
from werkzeug.datastructures import Headers

from deskwire.http.api.output.responses import BASELINE, STRICT_TRANSPORT, add_missing_headers
from tests.support.api.service import Service
from tests.support.api.surveys import survey

NAMES = [name for name, _ in BASELINE]


async def test_every_response_has_all_security_headers_and_no_server(service: Service) -> None:
    sent = (await service.http.post("/uploads", files={"file": ("a.txt", b"a")})).json()
    exported = f"/engagement/surveys/{(await survey(service))['id']}/responses.csv"
    async with httpx.AsyncClient() as fresh:  # a connection of its own, which goes to the stream
        no_websocket = await fresh.get(f"{service.url}/app/x")
    answers = [
        await service.http.get("/s2s/project"),
        await service.http.get("/s2s/project", headers={"Authorization": ""}),
        await service.http.get("/nowhere"),
        await service.http.put("/s2s/project"),
        await service.http.post(
            "/s2s/conversations", content=b"{", headers={"Content-Type": "application/json"}
        ),
        await service.http.get(f"{service.url}/metrics"),
        no_websocket,
        await service.dashboard.get(exported),
        await service.http.get(sent["url"]),
        await service.http.get(sent["url"], headers={"If-None-Match": "*"}),
        await service.http.get(sent["url"].replace("signature=", "signature=x")),
    ]
    assert [each.status_code for each in answers] == [200, 401, 404, 405, 400, 200, 426, 200, 200, 304, 403]
    for answer in answers:
        assert [name for name in NAMES if name not in answer.headers] == [], answer.request.url
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "X-Request-Id" in answer.headers
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert not {"Server", "X-Powered-By", STRICT_TRANSPORT[0]} & answer.headers.keys()


@pytest.mark.parametrize("secure", [True, False])
def test_only_https_responses_have_hsts(secure: bool) -> None:
    headers = Headers()
    add_missing_headers(headers, secure=secure)
    assert (STRICT_TRANSPORT[0] in headers) == secure


def test_header_set_by_a_response_is_kept() -> None:
    headers = Headers({"Cache-Control": "private"})
    add_missing_headers(headers, secure=False)
    assert headers["Cache-Control"] == "private"
    assert sorted(headers.keys()) == sorted(NAMES)
