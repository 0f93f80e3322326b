"""The health of a project, as all members who read its conversations see it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.endpoint import Endpoint, unhealthy_code
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit
from tests.support.api.service import Service
from tests.support.api.staff import person
from tests.support.deadlines import HANG_TIMEOUT_S


async def health_of(service: Service) -> dict[str, Any]:
    answer = await service.dashboard.get(f"/projects/{service.demo['projectId']}/health")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def closed_port() -> int:
    """Return a port of this machine that nothing listens on."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listener.socket.getsockname()[1]
    await listener.aclose()
    return port


async def test_a_project_without_anything_is_well(service: Service) -> None:
    found = await health_of(service)
    assert (found["healthy"], found["endpoints"], found["consumers"]) == (True, [], [])
    assert (found["outstanding"], found["oldestWaiting"]) == (0, None)
    assert found["uploads"] == {"usedBytes": 0, "quotaBytes": 10 << 30}


async def test_longest_wait_is_that_of_the_unanswered_contact(service: Service) -> None:
    first = await service.create("u1", message={"text": "Hello?"})
    second = await service.create("u2", message={"text": "Hello?"})
    assert (await health_of(service))["oldestWaiting"]["conversationId"] == first["id"]
    await service.dashboard.post(f"/conversations/{first['id']}/messages", json={"text": "Here I am."})
    waiting = (await health_of(service))["oldestWaiting"]
    assert waiting["conversationId"] == second["id"]
    assert waiting["waitingSince"] >= second["createdAt"]


async def test_endpoint_is_named_without_its_url_and_a_disabled_one_is_unhealthy(
    service: Service,
) -> None:
    made = await service.http.post("/s2s/webhooks", json={"url": "http://127.0.0.1:8123/hook?t=s"})
    assert made.status_code == 200, made.text
    await service.http.patch(f"/s2s/webhooks/{made.json()['id']}", json={"status": "disabled"})
    found = await health_of(service)
    (endpoint,) = found["endpoints"]
    assert (found["healthy"], endpoint["name"], endpoint["status"]) == (False, "127.0.0.1", "disabled")
    assert "hook" not in str(endpoint)


async def test_an_endpoint_that_fails_or_has_lost_something_is_no_good_health(service: Service) -> None:
    """One meaning of healthy: `failingSince` is null, and nothing of the last 24 hours is lost."""
    made = await service.http.post("/s2s/webhooks", json={"url": f"http://127.0.0.1:{await closed_port()}/"})
    assert made.status_code == 200, made.text
    assert (await health_of(service))["healthy"]
    await service.create("u1", message={"text": "Hello?"})
    with trio.fail_after(HANG_TIMEOUT_S):
        while (found := await health_of(service))["endpoints"][0]["failingSince"] is None:  # noqa: ASYNC110
            await trio.sleep(0.05)  # poll: there is no notification when the outcome is stored
    assert (found["healthy"], found["endpoints"][0]["healthy"]) == (False, False)


def test_healthy_means_that_nothing_fails_and_nothing_is_lost() -> None:
    at = 1_790_000_000_000
    well = Endpoint(1, "whk_1", 1, "https://example.org/", frozenset(), b"", "tail", at, at)
    assert unhealthy_code(well, 0) is None
    assert unhealthy_code(well, 1) == "dropped"
    assert unhealthy_code(replace(well, status="disabled"), 0) == "disabled"
    assert unhealthy_code(replace(well, circuit=Circuit(1, at)), 0) == "failing"
    assert unhealthy_code(replace(well, circuit=Circuit(20, at, 0, at + 10_000, "why")), 0) == "circuit_open"


@pytest.mark.parametrize("status", ["disabled", "enabled"])
async def test_health_and_lists_of_endpoints_agree(service: Service, status: str) -> None:
    """The health of the project, the list and one endpoint: one rule, with one reason."""
    made = await service.http.post("/s2s/webhooks", json={"url": f"http://127.0.0.1:{await closed_port()}/"})
    assert made.status_code == 200, made.text
    assert (made.json()["healthy"], made.json()["healthReason"]) == (True, None)
    path = f"/s2s/webhooks/{made.json()['id']}"
    if status == "disabled":
        await service.http.patch(path, json={"status": "disabled"})
    else:
        await service.create("u1", message={"text": "Hello?"})
    with trio.fail_after(HANG_TIMEOUT_S):
        while (one := (await service.http.get(path)).json())["healthy"]:  # noqa: ASYNC110
            await trio.sleep(0.05)  # poll: there is no notification when the outcome is stored
    (listed,) = (await service.http.get("/s2s/webhooks")).json()["items"]
    (summary,) = (await health_of(service))["endpoints"]
    fields = ("healthy", "healthCode", "healthReason", "dropped")
    assert len({tuple(each[field] for field in fields) for each in (one, listed, summary)}) == 1
    assert one["healthCode"] == ("disabled" if status == "disabled" else "failing")


async def test_storage_figures_include_uploads(service: Service) -> None:
    file = {"file": ("a.txt", b"x" * 1000, "text/plain")}
    (await service.dashboard.post("/uploads", files=file)).raise_for_status()
    assert (await health_of(service))["uploads"]["usedBytes"] == 1000


async def test_a_viewer_reads_it_and_a_stranger_finds_no_such_project(service: Service) -> None:
    path = f"/projects/{service.demo['projectId']}/health"
    async with person(service, "viewer") as viewer:
        assert (await viewer.http.get(path)).status_code == 200
        missing = await viewer.http.get("/projects/prj_00000000000000000000000000/health")
    assert missing.status_code == 404
