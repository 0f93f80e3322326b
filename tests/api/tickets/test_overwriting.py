"""A change of a ticket that names the version it was made from: refused if another change was faster (ADR 56, RFC 9110 13.1.1)."""

from __future__ import annotations

import pytest

from tests.api.tickets.test_tickets import fetch, make, patch
from tests.support.api.service import Service


async def test_stale_update_is_refused_and_overwrites_nothing(service: Service) -> None:
    ticket = await make(service)
    path = f"/tickets/{ticket['id']}"
    seen = (await service.dashboard.get(path)).headers["etag"]
    first = await service.dashboard.patch(path, json={"priority": "HIGH"}, headers={"If-Match": seen})
    assert first.status_code == 200
    second = await service.dashboard.patch(path, json={"title": "Mine"}, headers={"If-Match": seen})
    assert (second.status_code, second.json()["code"]) == (412, "changed_meanwhile")
    assert (await fetch(service, ticket))["title"] == "Parcel lost"
    again = await service.dashboard.patch(
        path, json={"title": "Mine"}, headers={"If-Match": first.headers["etag"]}
    )
    assert (again.status_code, again.json()["priority"], again.json()["title"]) == (200, "HIGH", "Mine")
    assert again.headers["etag"] == (await service.dashboard.get(path)).headers["etag"]


async def test_a_change_without_a_precondition_is_made_as_before(service: Service) -> None:
    ticket = await make(service)
    await patch(service, ticket, priority="LOW")
    anyhow = await service.dashboard.patch(
        f"/tickets/{ticket['id']}", json={"priority": "HIGH"}, headers={"If-Match": "*"}
    )
    assert anyhow.json()["priority"] == "HIGH"


@pytest.mark.parametrize("wrap", ['W/{}, "other"', '"other",{}'])
async def test_one_of_several_tags_is_enough_and_a_proxy_may_have_weakened_it(
    service: Service, wrap: str
) -> None:
    ticket = await make(service)
    path = f"/tickets/{ticket['id']}"
    seen = wrap.format((await service.dashboard.get(path)).headers["etag"])
    answer = await service.dashboard.patch(path, json={"title": "New"}, headers={"If-Match": seen})
    assert answer.status_code == 200


@pytest.mark.parametrize("tags", ['"other"', "nonsense", '""'])
async def test_a_tag_of_something_else_refuses_also_a_deletion(service: Service, tags: str) -> None:
    ticket = await make(service)
    refused = await service.dashboard.delete(f"/tickets/{ticket['id']}", headers={"If-Match": tags})
    assert (refused.status_code, refused.json()["code"]) == (412, "changed_meanwhile")
    assert await fetch(service, ticket) == ticket


async def test_a_message_of_the_conversation_is_no_change_of_its_ticket(service: Service) -> None:
    conversation = await service.create()
    ticket = await make(service, conversationId=conversation["id"])
    path = f"/tickets/{ticket['id']}"
    seen = (await service.dashboard.get(path)).headers["etag"]
    said = await service.http.post(f"/s2s/conversations/{conversation['id']}/messages", json={"text": "Hm?"})
    assert said.status_code == 200
    answer = await service.dashboard.patch(path, json={"title": "New"}, headers={"If-Match": seen})
    assert answer.status_code == 200


async def test_a_ticket_that_moves_to_another_conversation_is_compared_before_the_move(
    service: Service,
) -> None:
    first, second = await service.create(), await service.create(user="u2")
    ticket = await make(service, conversationId=first["id"])
    path = f"/tickets/{ticket['id']}"
    seen = (await service.dashboard.get(path)).headers["etag"]
    moved = await service.dashboard.patch(
        path, json={"conversationId": second["id"]}, headers={"If-Match": seen}
    )
    assert (moved.status_code, moved.json()["conversationId"]) == (200, second["id"])
    back = await service.dashboard.patch(
        path, json={"conversationId": first["id"]}, headers={"If-Match": seen}
    )
    assert (back.status_code, back.json()["code"]) == (412, "changed_meanwhile")
    assert (await fetch(service, ticket))["conversationId"] == second["id"]
