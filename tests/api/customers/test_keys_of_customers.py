"""`Idempotency-Key` of the calls of customers that have no client id."""

from __future__ import annotations

from tests.api.conventions.test_idempotency import KEY, REPLAYED
from tests.api.customers.browsing import Visit, begin
from tests.api.workflows.test_workflows import CHAT, make
from tests.support.api.service import Service


async def test_repeated_answer_to_a_step_under_a_key_is_answered_the_same(
    service: Service, visit: Visit
) -> None:
    made = await make(service, CHAT)
    browser = await visit(startsWorkflow=made["id"])
    started = await begin(browser)
    path = f"/conversations/{started['id']}/workflow/reply"
    headers = {**KEY, "Authorization": f"Bearer {browser.token}"}
    body = {"actionId": 2, "value": "b0"}
    first, again = [await browser.http.post(path, json=body, headers=headers) for _ in range(2)]
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.json() == first.json()
    assert (first.headers.get(REPLAYED), again.headers[REPLAYED]) == (None, "true")
    other = await browser.http.post(path, json={**body, "value": "b1"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


async def test_file_under_a_key_is_stored_once_for_each_customer(visit: Visit) -> None:
    one = await visit()
    other = await visit(one.channel)
    ids = []
    for browser in (one, other):
        await begin(browser)
        headers = {**KEY, "Authorization": f"Bearer {browser.token}"}
        for _ in range(2):
            file = {"file": ("a.txt", b"a list")}
            answer = await browser.http.post("/uploads", files=file, headers=headers)
            assert answer.status_code == 200, answer.text
            ids.append(answer.json()["id"])
    assert (ids[0], ids[2]) == (ids[1], ids[3])
    assert ids[0] != ids[2]
