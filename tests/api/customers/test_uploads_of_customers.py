"""Files of customers: for their own messages only, within limits, and erased with them."""

from __future__ import annotations

from typing import Any

import httpx

from tests.api.customers.browsing import Visit, begin, first, get, say
from tests.api.uploads.test_uploads import send
from tests.api.workflows.test_workflows import pointers
from tests.support.api.customers import Browser
from tests.support.api.service import Service
from tests.support.stores import beside

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 64


async def upload(browser: Browser, content: bytes = PNG, name: str = "cart.png") -> httpx.Response:
    return await browser.call("POST", "/uploads", files={"file": (name, content)})


async def uploaded(browser: Browser) -> dict[str, Any]:
    answer = await upload(browser)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_customer_sends_a_file_with_a_message(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser)
    file = await uploaded(browser)
    assert (file["type"], file["size"]) == ("image/png", len(PNG))
    sent = await say(browser, started["id"], "", attachments=[file["id"]])
    assert sent.status_code == 200, sent.text
    (shown,) = sent.json()["attachments"]
    assert (shown["id"], shown["name"]) == (file["id"], "cart.png")
    async with httpx.AsyncClient() as anybody:
        assert (await anybody.get(shown["url"])).content == PNG
    again = await browser.call("POST", "/conversations", json=first())
    assert again.status_code == 200
    seen = (await service.http.get(f"/s2s/conversations/{started['id']}/messages")).json()["items"]
    assert seen[-1]["attachments"][0]["id"] == file["id"]


async def test_customers_leave_a_part_of_the_quota_to_the_backend(service: Service, visit: Visit) -> None:
    browser = await visit()
    await begin(browser)
    settings = {"settings": {"uploadQuotaBytes": 1_000}}
    path = f"/projects/{service.demo['projectId']}"
    assert (await service.dashboard.patch(path, json=settings)).status_code == 200
    assert (await upload(browser, b"a" * 880)).status_code == 200
    refused = await upload(browser, b"b" * 30)
    assert (refused.status_code, refused.json()["code"]) == (409, "upload_quota_exceeded")
    await send(service, b"c" * 100)


async def test_file_is_usable_by_its_own_contact_only(service: Service, visit: Visit) -> None:
    """Files of a backend and of another customer are as unknown as those that do not exist."""
    browser = await visit()
    other = await visit(browser.channel)
    started = await begin(browser)
    await begin(other)
    foreign = [(await uploaded(other))["id"], (await send(service))["id"], "upl_00000000000000000000000000"]
    refused = await say(browser, started["id"], "x", attachments=foreign)
    assert pointers(refused) == [(f"/attachments/{place}", "unknown") for place in range(3)]
    mine = (await uploaded(browser))["id"]
    twice = await say(browser, started["id"], "x", attachments=[mine, mine])
    assert pointers(twice) == [("/attachments/1", "repeated")]


async def test_visitor_sends_files_after_the_first_message_only(visit: Visit) -> None:
    browser = await visit()
    refused = await upload(browser)
    assert (refused.status_code, refused.json()["code"]) == (403, "message_required")
    await begin(browser)
    assert (await upload(browser)).status_code == 200


async def test_files_are_limited_in_size_and_number(visit: Visit) -> None:
    browser = await visit()
    await begin(browser)
    large = await upload(browser, b"0" * (10 * 1024 * 1024 + 1))
    assert (large.status_code, large.json()["code"]) == (413, "body_too_large")
    assert (await upload(browser, b"0" * (10 * 1024 * 1024))).status_code == 200
    codes = [(await upload(browser, b"x")).status_code for _ in range(19)]
    assert codes == [200] * 18 + [429]


async def test_bad_forms_are_refused(visit: Visit) -> None:
    browser = await visit()
    await begin(browser)
    assert (await browser.call("POST", "/uploads", json={})).status_code == 415
    assert (await upload(browser, b"")).status_code == 422
    wrong = await browser.call("POST", "/uploads", files={"other": ("a", b"x")})
    assert wrong.status_code in (400, 422)


async def test_unused_files_are_erased_with_their_contact(service: Service, visit: Visit) -> None:
    browser = await visit()
    started = await begin(browser)
    await uploaded(browser)
    contact = started and (await get(browser, "/me"))["userId"]
    gone = await service.http.delete(f"/s2s/contacts/{contact}")
    assert gone.status_code == 200, gone.text
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM uploads").fetchone()[0] == 0
