"""Headers that may come once: of two, a proxy and the service might each take another (decisions 1)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.api.service import Service


async def sent(service: Service, method: str, path: str, *headers: tuple[str, str], **more: Any) -> Any:
    """The answer to a request with just these headers, status included."""
    async with httpx.AsyncClient(base_url=f"{service.url}/v3") as http:
        answer = await http.request(method, path, headers=list(headers), **more)
    return answer.json() | {"status": answer.status_code}


@pytest.mark.parametrize("second", ["same", "other", "foreign"])
async def test_a_second_authorization_header_is_refused(service: Service, second: str) -> None:
    key = f"Bearer {service.demo['serverKey']}"
    values = {"same": key, "other": f"Bearer {service.demo['token']}", "foreign": "Basic dXNlcjpw"}
    answer = await sent(
        service, "GET", "/s2s/project", ("Authorization", key), ("Authorization", values[second])
    )
    assert (answer["status"], answer["code"]) == (400, "repeated_header")
    (problem,) = answer["errors"]
    assert (problem["in"], problem["pointer"]) == ("header", "/Authorization")


async def test_a_second_project_header_is_refused(service: Service) -> None:
    token, project = f"Bearer {service.demo['token']}", service.demo["projectId"]
    for second in (project, "prj_other", ""):
        headers = (("Authorization", token), ("project", project), ("Project", second))
        answer = await sent(service, "GET", "/conversations", *headers)
        assert (answer["status"], answer["code"]) == (400, "repeated_header"), second
        answer = await sent(service, "GET", "/users/me/permissions", *headers)
        assert (answer["status"], answer["code"]) == (400, "repeated_header"), second


async def test_a_header_and_a_parameter_that_name_different_projects_are_refused(service: Service) -> None:
    token, project = f"Bearer {service.demo['token']}", service.demo["projectId"]
    headers = (("Authorization", token), ("project", project))
    answer = await sent(service, "GET", f"/stream?project=prj_{'0' * 26}", *headers)
    assert (answer["status"], answer["code"]) == (400, "bad_query")


async def test_a_second_content_type_is_refused(service: Service) -> None:
    headers = (
        ("Authorization", f"Bearer {service.demo['serverKey']}"),
        ("Content-Type", "application/json"),
        ("Content-Type", "text/plain"),
    )
    body = b'{"contact": {"userId": "u1"}}'
    answer = await sent(service, "POST", "/s2s/conversations", *headers, content=body)
    assert (answer["status"], answer["code"]) == (400, "repeated_header")
