"""Pages of other origins: only those that the operator lists may call (ADR 25)."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from deskwire.http.api.output.cors import open_to_pages
from deskwire.http.app import ROUTES
from tests.support.api.service import Service, running

DESK = "https://desk.example.com"
ALLOW = "Access-Control-Allow-Origin"
FOREIGN = (
    "https://evil.example",
    f"{DESK}.evil.example",
    f"{DESK}:444",
    "http://desk.example.com",
    "null",
    "*",
)


def asking(origin: str, method: str, headers: str = "authorization,project") -> dict[str, str]:
    """The headers of a browser's preflight request."""
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
    }


def permissions(answer: httpx.Response) -> list[str]:
    return [name for name in answer.headers if name.startswith("access-control-")]


async def test_without_the_setting_no_origin_is_allowed(service: Service) -> None:
    asked = await service.dashboard.options("/conversations", headers=asking(DESK, "GET"))
    assert (asked.status_code, permissions(asked)) == (405, [])
    called = await service.dashboard.get("/conversations", headers={"Origin": DESK})
    assert (called.status_code, permissions(called)) == (200, [])
    assert "Vary" not in called.headers


async def test_page_of_an_allowed_origin_may_call(tmp_path: Path) -> None:
    async with running(tmp_path, cors_origins=(DESK, "http://localhost:3000")) as service:
        for origin in (DESK, "http://localhost:3000"):
            asked = await service.http.options("/conversations", headers=asking(origin, "GET"))
            assert (asked.status_code, asked.content) == (204, b"")
            assert asked.headers[ALLOW] == origin
            assert asked.headers["Access-Control-Allow-Methods"] == "GET"
            assert "Origin" in asked.headers["Vary"]
            assert {"authorization", "content-type", "project", "idempotency-key"} <= {
                each.strip().lower() for each in asked.headers["Access-Control-Allow-Headers"].split(",")
            }
            called = await service.dashboard.get("/conversations", headers={"Origin": origin})
            assert called.headers[ALLOW] == origin
            assert called.headers["Vary"] == "Origin"
            assert {"X-Request-Id", "RateLimit-Remaining", "Retry-After"} <= set(
                called.headers["Access-Control-Expose-Headers"].split(", ")
            )
            assert "Access-Control-Allow-Credentials" not in {**asked.headers, **called.headers}
        refused = await service.http.get("/conversations", headers={"Origin": DESK, "Authorization": ""})
        assert (refused.status_code, refused.headers[ALLOW]) == (401, DESK)


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_page_of_another_origin_may_not(tmp_path: Path, origin: str) -> None:
    async with running(tmp_path, cors_origins=(DESK,)) as service:
        asked = await service.http.options("/conversations", headers=asking(origin, "GET"))
        assert (asked.status_code, permissions(asked)) == (405, [])
        called = await service.dashboard.get("/conversations", headers={"Origin": origin})
        assert (called.status_code, permissions(called)) == (200, [])
        assert (
            called.headers["Vary"] == "Origin"
        )  # otherwise a cache would return this response to an allowed page


async def test_pages_may_not_call_with_a_server_key_except_for_stream_authorization(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, cors_origins=(DESK,)) as service:
        for path, method in (("/s2s/events", "GET"), ("/s2s/webhooks", "POST"), ("/nowhere", "GET")):
            asked = await service.http.options(path, headers=asking(DESK, method))
            assert permissions(asked) == [], path
        assert permissions(await service.http.get("/s2s/events", headers={"Origin": DESK})) == []
        for path, method in (
            ("/s2s/stream/auth", "POST"),
            ("/auth/token", "POST"),
            ("/uploads", "POST"),
            ("/uploads/upl_1/a.txt", "GET"),
        ):
            asked = await service.http.options(path, headers=asking(DESK, method))
            assert asked.headers[ALLOW] == DESK, path
        wrong = await service.http.options("/conversations", headers=asking(DESK, "DELETE"))
        assert (wrong.status_code, permissions(wrong)) == (405, [])


def test_one_server_key_route_is_open_to_pages() -> None:
    opened = [each.public_path for each in ROUTES if each.access.kind == "server_key" and open_to_pages(each)]
    assert opened == ["/v3/s2s/stream/auth"]
    assert not any(open_to_pages(each) for each in ROUTES if each.path in ("/metrics", "/healthz", "/"))
