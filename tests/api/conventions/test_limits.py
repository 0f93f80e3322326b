"""Limits of calls: 429 and 503 over the wire (decisions 8, ADR 24)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from quart_trio import QuartTrio

from deskwire.engine.core.errors import Unavailable
from deskwire.http.api.services import Services
from deskwire.http.app import ROUTES
from deskwire.http.server.adapters.quart_app import make_app
from deskwire.program import serve as program
from deskwire.program.parts import services_of
from tests.api.conventions.test_idempotency import Held, queued
from tests.api.operating.test_metrics import scrape
from tests.support.api.browsers import browser, enter
from tests.support.api.service import Service, running, tapping
from tests.support.api.staff import person
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.stores import AnyStore

FIELDS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


def told(answer: httpx.Response) -> list[int]:
    """Return the headers of the limit in a response."""
    return [int(answer.headers[field]) for field in FIELDS]


async def test_every_response_to_a_project_has_rate_limit_headers(tmp_path: Path) -> None:
    async with running(tmp_path, rate_limit_per_minute=1, rate_limit_burst=5) as service:
        assert told(await service.http.get("/s2s/project")) == [5, 4, 60]
        assert told(await service.http.get("/s2s/contacts/nobody")) == [5, 3, 120]  # a refusal, too
        assert told(await service.http.post("/s2s/conversations", json={"x": 1})) == [5, 2, 180]


async def test_a_users_calls_are_counted_for_the_user_and_not_for_the_project(tmp_path: Path) -> None:
    limits = {"rate_limit_per_minute": 6, "rate_limit_burst": 5}
    async with running(tmp_path, **limits) as service, person(service, "agent") as someone:
        project = {"project": service.demo["projectId"]}
        assert told(await someone.http.get("/conversations", headers=project))[:2] == [5, 4]
        async with browser(service) as page:
            await enter(page, someone.email)
            assert told(await page.get("/conversations", headers=project))[:2] == [5, 3], "the same user"
            assert told(await page.get("/users/me"))[:2] == [5, 2]
            assert told(await page.get("/auth/session"))[:2] == [5, 1]
        assert told(await service.http.get("/s2s/project"))[:2] == [5, 4]
        assert told(await service.dashboard.get("/conversations"))[1] == 2, "of the owner's, who has hired"


async def test_user_above_its_rate_delays_no_other_user(tmp_path: Path) -> None:
    limits = {"rate_limit_burst": 2, "user_rate_limit_per_minute": 1}
    async with running(tmp_path, **limits) as service:
        for status in (200, 200, 429):
            answer = await service.dashboard.get("/users/me")
            assert answer.status_code == status
        assert answer.json()["code"] == "rate_limited"
        assert answer.json()["detail"] == "This user calls too often."
        assert (await service.http.get("/s2s/project")).status_code == 200
        figures = await scrape(service)
        assert figures("http_rate_limited_total", reason="user") == 1
        assert figures("http_rate_limited_total", reason="project") == 0


async def test_call_above_the_rate_gets_retry_after_and_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, rate_limit_per_minute=1, rate_limit_burst=1) as service:
        assert (await service.http.get("/s2s/project")).status_code == 200
        body = {"contact": {"userId": "u"}}
        refused = await service.http.post("/s2s/conversations", json=body)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert refused.headers["RateLimit-Remaining"] == "0"
        assert 58 <= int(refused.headers["Retry-After"]) <= 60
        figures = await scrape(service)
        assert figures("http_rate_limited_total", reason="project") == 1
        assert figures("actors_started_total") == 0


async def test_monitoring_routes_are_neither_counted_nor_limited(tmp_path: Path) -> None:
    async with running(tmp_path, rate_limit_per_minute=1, rate_limit_burst=1) as service:
        for path in ("/healthz", "/readyz", "/metrics", "/") * 3:
            answer = await service.http.get(f"{service.url}{path}")
            assert answer.status_code == 200
            assert FIELDS[0] not in answer.headers


async def test_rate_of_zero_is_no_limit_and_has_no_headers(tmp_path: Path) -> None:
    async with running(tmp_path, rate_limit_per_minute=0, rate_limit_burst=1) as service:
        for _ in range(3):
            answer = await service.http.get("/s2s/project")
            assert answer.status_code == 200
            assert FIELDS[0] not in answer.headers


Apps = list[QuartTrio]


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch) -> Apps:
    """The apps of the services that are started from now on: a request into one may come from any address."""
    made: Apps = []

    def tapped(*args: Any) -> Services:
        services = services_of(*args)
        made.append(make_app(services, ROUTES))
        return services

    monkeypatch.setattr(program, "services_of", tapped)
    return made


def calling(app: QuartTrio, key: str, address: str) -> Callable[[], Any]:
    """Call with a key from an address, and return the status and code."""

    async def call() -> tuple[int, str | None]:
        answer = await app.test_client().get(
            "/v3/s2s/project",
            headers={"Authorization": f"Bearer {key}"},
            scope_base={"client": (address, 4000)},
        )
        return answer.status_code, (await answer.get_json(force=True)).get("code")

    return call


async def test_guessing_address_must_wait_but_its_valid_key_is_served(apps: Apps, tmp_path: Path) -> None:
    """Serve a valid key, which can't be guessed: it may belong to another client with the same address."""
    async with running(tmp_path, auth_failures_per_minute=3) as service:
        right, wrong = service.demo["serverKey"], "sk_" + "x" * 43
        guess = calling(apps[0], wrong, "192.0.2.7")
        for _ in range(3):
            assert await guess() == (401, "invalid_server_key")
        assert await guess() == (429, "too_many_failures")
        assert (await calling(apps[0], right, "192.0.2.7")())[0] == 200
        assert await guess() == (429, "too_many_failures")
        assert await calling(apps[0], wrong, "192.0.2.8")() == (401, "invalid_server_key")
        assert (await scrape(service))("http_rate_limited_total", reason="address") == 2


async def test_an_address_of_this_machine_is_never_shut_out(service: Service) -> None:
    """Fail from an address of a proxy, which all its clients share."""
    wrong = {"Authorization": "Bearer sk_" + "x" * 43}
    for _ in range(130):
        assert (await service.http.get("/s2s/project", headers=wrong)).status_code == 401
    assert (await service.http.get("/s2s/project")).status_code == 200


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[AnyStore]:
    return tapping(monkeypatch)


@pytest.mark.sqlite  # holds the writer's thread: with PostgreSQL that is Trio's
async def test_more_requests_than_may_be_under_way_are_refused_before_their_body_is_read(
    stores: list[AnyStore], tmp_path: Path
) -> None:
    async with running(tmp_path, requests_under_way=1) as service, trio.open_nursery() as nursery:
        await service.create("u0")  # the key's use is recorded, so that only conversations wait below
        held = Held(stores[0], nursery)
        await held.there()
        nursery.start_soon(service.create, "u1")
        await queued(stores[0], 1)
        status, body = await service.declare("POST", "/s2s/conversations", 1_000)  # and sends none of it
        assert status == 503
        assert b'"code":"overloaded"' in body
        refused = await service.http.get("/s2s/project")
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert (await service.http.get(f"{service.url}/readyz")).status_code == 200
        figures = await scrape(service)
        assert figures("http_requests_under_way") == 1
        assert figures("http_overloaded_total", reason="requests") == 2
        held.let_go()


async def test_calls_that_wait_in_the_feed_take_no_place_of_those_that_work(tmp_path: Path) -> None:
    async with running(tmp_path, requests_under_way=2, feed_waits=4) as service:
        answers: list[httpx.Response] = []

        async def wait() -> None:
            answers.append(await service.http.get("/s2s/events", params={"wait": "20"}))

        async with trio.open_nursery() as nursery:
            for waits in (1, 2):
                nursery.start_soon(wait)
                await settled(service, waits=waits)
            third = await service.http.get("/s2s/events", params={"wait": "20"})
            assert (third.status_code, third.json()["code"]) == (429, "too_many_at_once")
            await service.create()
        assert [len(answer.json()["items"]) for answer in answers] == [1, 1]
        figures = await settled(service, waits=0)
        assert figures("http_rate_limited_total", reason="at_once") == 1


async def settled(service: Service, waits: int) -> Any:
    """Return the figures once this number of calls waits."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            figures = await scrape(service)
            if figures("feed_waits") == waits:
                return figures


async def test_bodies_that_do_not_fit_into_memory_together_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path, request_bodies_bytes=100) as service:
        body = {"contact": {"userId": "u", "name": "x" * 100}}
        refused = await service.http.post("/s2s/conversations", json=body)
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        await service.create()
        figures = await scrape(service)
        assert figures("http_overloaded_total", reason="bodies") == 1
        assert figures("http_request_bodies_bytes") == 0


@pytest.mark.sqlite  # holds the writer's thread: with PostgreSQL that is Trio's
async def test_changes_are_refused_while_too_many_wait_for_the_disk_and_reads_are_not(
    stores: list[AnyStore], tmp_path: Path
) -> None:
    async with running(tmp_path, writer_queue=16) as service, trio.open_nursery() as nursery:
        with trio.fail_after(HANG_TIMEOUT_S):
            while not (await scrape(service))("retention_done_timestamp_seconds"):
                pass  # it writes at the start, too
        held = Held(stores[0], nursery)
        await held.there()
        for _ in range(7):
            nursery.start_soon(stores[0].write, lambda tx: None)
        nursery.start_soon(service.create)
        await queued(stores[0], 8)
        refused = await service.http.post("/s2s/conversations", json={"contact": {"userId": "u"}})
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        assert (await service.http.get("/s2s/project")).status_code == 200
        for _ in range(8):
            nursery.start_soon(stores[0].write, lambda tx: None)
        await queued(stores[0], 16)
        with pytest.raises(Unavailable):
            await stores[0].write(lambda tx: None)
        held.let_go()
