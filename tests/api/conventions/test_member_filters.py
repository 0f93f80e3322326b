"""A filter by an unknown user is refused, a filter by a former member is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api.service import Service
from tests.support.api.staff import hire, organisation_of
from tests.support.api.surveys import survey


async def refusal(service: Service, path: str, **params: str) -> list[tuple[str, str]]:
    answer = await service.dashboard.get(path, params=params)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_query"), answer.text
    return [(each["pointer"], each["code"]) for each in answer.json()["errors"]]


@pytest.mark.parametrize(
    "nobody", ["", "nobody", "usr_00000000000000000000000000", "con_00000000000000000000000000"]
)
async def test_filter_by_an_unknown_user_is_refused_by_its_parameter(service: Service, nobody: str) -> None:
    await service.create()
    assert await refusal(service, "/conversations", contact=nobody) == [("/contact", "unknown")]
    assert await refusal(service, "/conversations", assignee=nobody) == [("/assignee", "unknown")]
    assert await refusal(service, "/conversations", team=nobody) == [("/team", "unknown")]
    if nobody:  # these two say that they are too short
        assert await refusal(service, "/tickets", contact=nobody) == [("/contact", "unknown")]
        assert await refusal(service, "/tickets", assignee=nobody) == [("/assignee", "unknown")]
    responses = f"/engagement/surveys/{(await survey(service))['id']}/responses"
    assert await refusal(service, responses, contact=nobody) == [("/contact", "unknown")]


async def test_a_user_is_no_team(service: Service) -> None:
    me = (await service.dashboard.get("/users/me")).json()["id"]
    assert await refusal(service, "/conversations", team=me) == [("/team", "unknown")]
    for path in ("/conversations", "/tickets"):
        assert (await service.dashboard.get(path, params={"assignee": me})).json()["items"] == []


async def test_conversations_of_a_former_member_are_found(service: Service) -> None:
    who = (await hire(service, "agent"))["id"]
    conversation = await service.create()
    await service.do(conversation, "assign", assignee={"type": "user", "id": who})
    new: dict[str, Any] = {"title": "A", "processingUser": who}
    ticket = (await service.dashboard.post("/tickets", json=new)).json()
    members = f"/organisations/{await organisation_of(service)}/members"
    assert (await service.dashboard.delete(f"{members}/{who}")).status_code == 200
    for path, expected in (("/conversations", conversation["id"]), ("/tickets", ticket["id"])):
        found = (await service.dashboard.get(path, params={"assignee": who})).json()["items"]
        assert [each["id"] for each in found] == [expected]
