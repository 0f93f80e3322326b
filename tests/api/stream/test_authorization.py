"""Authorizations of subscriptions by `POST /s2s/stream/auth`, and their limit (contract 4.4, decisions 5 and 8)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from deskwire.engine.core.ids import new_id
from tests.api.conventions.test_limits import told
from tests.api.operating.test_metrics import scrape
from tests.support.api.service import Service, running


async def authorize(service: Service, channel: str, key: str | None = None) -> httpx.Response:
    """Request a channel, with another project's key if one is given."""
    asked = {"socket_id": "1.2", "channel_name": channel, "consumerId": "c1"}
    headers = None if key is None else {"Authorization": f"Bearer {key}"}
    return await service.http.post("/s2s/stream/auth", json=asked, headers=headers)


async def foreign_key(service: Service) -> str:
    """The server key of another project."""
    organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
    path = f"/organisations/{organisation}/projects"
    project = (await service.dashboard.post(path, json={"name": "Other"})).json()["id"]
    made = (await service.dashboard.post(f"/projects/{project}/keys", json={"label": "x"})).json()
    return str(made["key"])


def words(answer: httpx.Response) -> dict[str, Any]:
    """Return a refusal without its request id."""
    return {name: value for name, value in answer.json().items() if name != "requestId"}


async def test_channel_of_a_missing_object_is_404(service: Service) -> None:
    """Decisions 1: a conversation of another project looks like a missing one."""
    conversation = await service.create("theirs")
    key = await foreign_key(service)
    for channel, unknown, code in (
        (
            f"private-conversation-{conversation['id']}",
            f"private-conversation-{new_id('cnv', 0)}",
            "conversation",
        ),
        ("private-contact-theirs", "private-contact-nobodys", "contact"),
    ):
        assert (await authorize(service, channel)).status_code == 200
        theirs, nobodys = await authorize(service, channel, key), await authorize(service, unknown, key)
        assert (theirs.status_code, theirs.json()["code"]) == (404, f"{code}_not_found")
        assert words(theirs) == words(nobodys) == words(await authorize(service, unknown))


async def test_hidden_conversation_is_authorized_like_a_fetch(service: Service) -> None:
    """Authorize a conversation that its backend knows already; its events begin when it becomes visible."""
    hidden = await service.create(visible=False)
    assert await service.fetch(hidden)
    assert (await authorize(service, f"private-conversation-{hidden['id']}")).status_code == 200


async def test_contact_with_an_unusable_user_id_has_a_channel_by_contact_id(
    service: Service,
) -> None:
    contact = (await service.http.put("/s2s/contacts/auth0%7Cada", json={"name": "Ada"})).json()
    refused = await authorize(service, "private-contact-auth0|ada")
    assert (refused.status_code, refused.json()["code"]) == (403, "unknown_channel")
    assert "private-contact-<contact id>" in refused.json()["detail"]
    assert (await authorize(service, f"private-contact-{contact['id']}")).status_code == 200
    foreign = await authorize(service, f"private-contact-{contact['id']}", await foreign_key(service))
    assert (foreign.status_code, foreign.json()["code"]) == (404, "contact_not_found")


async def test_channel_of_a_deleted_object_is_404(service: Service) -> None:
    """Contract 6.4.8: a client that gets a 404 removes the object from its mirror."""
    conversation = await service.create("u1")
    assert (await service.http.delete("/s2s/contacts/u1")).status_code == 200
    for channel in (f"private-conversation-{conversation['id']}", "private-contact-u1"):
        assert (await authorize(service, channel)).status_code == 404


@pytest.mark.parametrize(
    "channel", ["private-secrets", "presence-x", "private-conversation-1", "private-project-"]
)
async def test_the_refusal_of_an_unknown_channel_names_no_project(service: Service, channel: str) -> None:
    refused = await authorize(service, channel)
    assert (refused.status_code, refused.json()["code"]) == (403, "unknown_channel")
    assert "prj_" not in refused.text
    assert "private-project-<project id>" in refused.json()["detail"]


async def test_authorizations_and_other_calls_have_separate_quotas(tmp_path: Path) -> None:
    """Keep the limits separate, because a 429 here is final for pusher-js: the channel stays dead."""
    limits = {
        "rate_limit_per_minute": 1,
        "rate_limit_burst": 3,
        "stream_auth_per_minute": 1,
        "stream_auth_burst": 4,
    }
    async with running(tmp_path, **limits) as service:
        channel = f"private-project-{service.demo['projectId']}"
        assert told(await service.http.get("/s2s/project")) == [3, 2, 60]
        assert [told(await authorize(service, channel))[:2] for _ in range(4)] == [
            [4, left] for left in (3, 2, 1, 0)
        ]
        refused = await authorize(service, channel)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert "authoriz" in refused.json()["detail"]
        assert 58 <= int(refused.headers["Retry-After"]) <= 60
        assert told(await service.http.get("/s2s/project"))[:2] == [3, 1]
        figures = await scrape(service)
        assert figures("http_rate_limited_total", reason="authorization") == 1
        assert figures("http_rate_limited_total", reason="project") == 0


async def test_a_project_that_calls_too_often_still_gets_its_channels(tmp_path: Path) -> None:
    async with running(tmp_path, rate_limit_per_minute=1, rate_limit_burst=1) as service:
        channel = f"private-project-{service.demo['projectId']}"
        await service.http.get("/s2s/project")
        assert (await service.http.get("/s2s/project")).status_code == 429
        assert (await authorize(service, channel)).status_code == 200


@pytest.mark.long
async def test_fifteen_hundred_authorizations_in_a_row_are_allowed(service: Service) -> None:
    channel = f"private-project-{service.demo['projectId']}"
    answers = {(await authorize(service, channel)).status_code for _ in range(1_500)}
    assert answers == {200}
    assert int((await service.http.get("/s2s/project")).headers["RateLimit-Remaining"]) == 999


async def test_authorizations_without_a_limit_are_not_counted(tmp_path: Path) -> None:
    async with running(tmp_path, stream_auth_per_minute=0) as service:
        answer = await authorize(service, f"private-project-{service.demo['projectId']}")
        assert "RateLimit-Limit" not in answer.headers
