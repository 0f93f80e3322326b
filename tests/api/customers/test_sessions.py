"""Sessions of customers on the wire: start, upgrade, own fields, sign-out, and the lists of agents and backends."""

from __future__ import annotations

import pytest
import trio

from deskwire.http.api.auth import customers
from tests.support.api.customers import SITE, Browser, make_channel, signed
from tests.support.api.service import Service
from tests.support.api.staff import organisation_of

STARTED = "contact.session.started"


async def started(service: Service) -> list[dict[str, object]]:
    """Return the sessions in the events of their start."""
    return [event["data"]["session"] for event in await service.events(types=STARTED)]


async def test_visitor_gets_a_session_and_nothing_is_stored(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        answer = (await browser.start()).json()
        assert answer["token"].startswith("cv_")
        assert answer["contact"]["id"] is None
        assert answer["contact"]["userId"].startswith("visitor-")
        assert not answer["contact"]["verified"]
        again = (await browser.start()).json()
        assert (again["token"], again["contact"]) == (answer["token"], answer["contact"])
        me = (await browser.call("GET", "/me")).json()
        assert (me["id"], me["session"]["channelId"]) == (None, channel["id"])
        refused = await browser.call("PATCH", "/me", json={"name": "Ada"})
        assert (refused.status_code, refused.json()["code"]) == (409, "no_contact_yet")
        assert (await browser.call("DELETE", "/me")).json() == {"ended": True}
    assert (await service.http.get("/s2s/contacts")).json()["items"] == []
    assert await started(service) == []


async def test_signed_identity_makes_the_contact_and_continues_its_session(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        profile = {"name": "Ada", "email": "ada@x.example", "attributes": {"plan": "pro"}}
        first = (await browser.start(signed(channel, "u1", **profile))).json()
        assert first["token"].startswith("ct_")
        assert first["contact"]["signed"] == ["name", "email", "attributes"]
        contact = (await service.http.get("/s2s/contacts/u1")).json()
        assert {name: contact[name] for name in profile} == profile
        again = (await browser.start(signed(channel, "u1", name="Ada L."))).json()
        assert again["token"] == first["token"]
        assert (again["contact"]["name"], again["contact"]["email"]) == ("Ada L.", "ada@x.example")
        assert again["contact"]["signed"] == ["name"]
        resumed = (await browser.start()).json()
        assert resumed == {**again, "cursor": resumed["cursor"]}
    types = [event["type"] for event in await service.events(types=f"{STARTED},contact.updated")]
    assert types.count(STARTED) == 1
    assert "contact.updated" in types


async def test_every_browser_of_a_contact_has_a_session_of_its_own(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as laptop, Browser(service, channel) as phone:
        await laptop.start(signed(channel, "u1"))
        await phone.start(signed(channel, "u1"))
        assert laptop.token != phone.token
        assert (await laptop.call("DELETE", "/me")).status_code == 200
        assert (await laptop.call("GET", "/me")).json()["code"] == "session_ended"
        assert (await phone.call("GET", "/me")).status_code == 200


async def test_another_identity_ends_the_session_before(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        await browser.start(signed(channel, "u1", name="Ada"))
        before = browser.token
        answer = (await browser.start(signed(channel, "u2"))).json()
        assert (answer["contact"]["userId"], answer["contact"]["name"]) == ("u2", None)
        assert browser.token != before
        browser.token, after = before, browser.token
        assert (await browser.call("GET", "/me")).json()["code"] == "session_ended"
        assert (await browser.start()).json()["code"] == "session_ended"
        browser.token = after
        assert (await browser.call("GET", "/me")).json()["userId"] == "u2"
    assert (await service.http.get("/s2s/contacts/u1/sessions")).json()["items"] == []
    assert {(await service.http.get(f"/s2s/contacts/{user}")).json()["userId"] for user in ("u1", "u2")} == {
        "u1",
        "u2",
    }


async def test_signed_field_stays_and_an_empty_one_is_filled_once(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        await browser.start(signed(channel, "u1", name="Ada"))
        refused = await browser.call("PATCH", "/me", json={"name": "Eve", "phone": "+44 20 7946 0000"})
        assert (refused.status_code, refused.json()["code"]) == (403, "signed_field")
        assert "name" in refused.json()["detail"]
        filled = await browser.call("PATCH", "/me", json={"name": "Ada", "email": "ada@x.example"})
        assert (filled.json()["email"], filled.json()["phone"]) == ("ada@x.example", None)
        for change in ({"email": "eve@x.example"}, {"email": None}, {"name": None}):
            assert (await browser.call("PATCH", "/me", json=change)).status_code == 403
        await browser.start(signed(channel, "u1", email=None, phone="+1 212 555 0100"))
        assert (await browser.call("PATCH", "/me", json={"phone": "+1"})).status_code == 403


async def test_page_context_is_kept_with_the_session_and_limited(service: Service) -> None:
    channel = await make_channel(service)
    context = {"url": f"{SITE}/cart", "title": "Cart", "language": "en-GB", "custom": {"items": 3}}
    async with Browser(service, channel) as browser:
        await browser.start(signed(channel, "u1"))
        changed = await browser.call("PATCH", "/me", json={"context": context})
        assert changed.json()["session"]["context"] == context
        assert (await browser.call("GET", "/me")).json()["session"]["context"] == context
        (listed,) = (await service.http.get("/s2s/contacts/u1/sessions")).json()["items"]
        assert listed["context"] == context
        large = {**context, "referrer": "x" * 2_000, "url": "https://x.example/" + "\u00e9" * 1_500}
        refused = await browser.call("PATCH", "/me", json={"context": large})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/context")
        cleared = await browser.call("PATCH", "/me", json={"context": None})
        assert cleared.json()["session"]["context"] is None
    contact = (await service.http.get("/s2s/contacts/u1")).json()
    assert contact["attributes"] == {}  # the page's words are not the contact's


@pytest.mark.parametrize("world", ["agent", "backend"])
async def test_agent_and_backend_list_and_end_sessions(service: Service, world: str) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as one, Browser(service, channel) as other:
        await one.start(signed(channel, "u1"))
        await other.start(signed(channel, "u1", name="Ada"))
        contact = (await service.http.get("/s2s/contacts/u1")).json()
        path, caller = (
            (f"/contacts/{contact['id']}/sessions", service.dashboard)
            if world == "agent"
            else ("/s2s/contacts/u1/sessions", service.http)
        )
        listed = (await caller.get(path, params={"limit": "1"})).json()
        assert [item["signed"] for item in listed["items"]] == [["name"]]
        (older,) = (await caller.get(path, params={"cursor": listed["nextCursor"]})).json()["items"]
        assert (older["verified"], older["channelId"], older["context"]) == (True, channel["id"], None)
        assert older["client"].startswith("python-httpx")
        ended = await caller.delete(f"{path}/{older['id']}")
        assert ended.json() == {"id": older["id"], "deleted": True}
        assert (await caller.delete(f"{path}/{older['id']}")).json()["code"] == "customer_session_not_found"
        assert (await one.call("GET", "/me")).json()["code"] == "session_ended"
        assert (await other.call("GET", "/me")).status_code == 200
        await service.create(user="u2")
        others = path.replace(contact["id"], "con_01KZ0000000000000000C0NTCT").replace("u1", "u3")
        assert (await caller.get(others)).json()["code"] == "contact_not_found"
        foreign = await service.http.delete(f"/s2s/contacts/u2/sessions/{listed['items'][0]['id']}")
        assert foreign.json()["code"] == "customer_session_not_found"
    trail = await service.dashboard.get(
        f"/organisations/{await organisation_of(service)}/audit", params={"action": "contact.session_ended"}
    )
    assert [item["details"] for item in trail.json()["items"]] == [{"session": older["id"]}]


async def test_contact_has_at_most_fifty_live_sessions(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as first, Browser(service, channel) as others:
        await first.start(signed(channel, "u1"))
        for _ in range(50):
            others.token = None
            await others.start(signed(channel, "u1"))
        assert (await first.call("GET", "/me")).json()["code"] == "session_ended"
        assert (await others.call("GET", "/me")).status_code == 200
    listed = await service.http.get("/s2s/contacts/u1/sessions", params={"limit": "200"})
    assert len(listed.json()["items"]) == 50


async def test_erasure_ends_sessions_and_their_tokens_stay_refused(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        await browser.start(signed(channel, "u1", name="Ada"))
        await browser.call("PATCH", "/me", json={"context": {"title": "planted title"}})
        export = (await service.http.get("/s2s/contacts/u1/export")).json()
        assert [item["context"] for item in export["sessions"]] == [{"title": "planted title"}]
        assert (await service.http.delete("/s2s/contacts/u1")).status_code == 200
        for _ in range(2):
            assert (await browser.call("GET", "/me")).json()["code"] == "session_ended"
        fresh = (await browser.start(signed(channel, "u1"))).json()  # a new contact, with nothing of the old
        assert fresh["contact"]["name"] is None


async def test_disabled_channel_refuses_calls_until_it_is_enabled(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser, Browser(service, channel) as visitor:
        await browser.start(signed(channel, "u1"))
        await visitor.start()
        await service.http.patch(f"/channels/{channel['id']}", json={"enabled": False})
        for each in (browser, visitor):
            refused = await each.call("GET", "/me")
            assert (refused.status_code, refused.json()["code"]) == (409, "channel_disabled")
            assert (await each.start()).json()["code"] == "channel_disabled"
        await service.http.patch(f"/channels/{channel['id']}", json={"enabled": True})
        for each in (browser, visitor):
            assert (await each.call("GET", "/me")).status_code == 200


async def test_removed_channel_ends_its_sessions(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser, Browser(service, channel) as visitor:
        await browser.start(signed(channel, "u1"))
        await visitor.start()
        assert (await service.http.delete(f"/channels/{channel['id']}")).status_code == 200
        for each in (browser, visitor):
            assert (await each.call("GET", "/me")).json()["code"] == "session_ended"
            assert (await each.start()).json()["code"] == "channel_not_found"
    assert (await service.http.get("/s2s/contacts/u1/sessions")).json()["items"] == []


async def test_visitor_is_refused_once_the_channel_requires_an_identity(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as visitor, Browser(service, channel) as browser:
        await visitor.start()
        await browser.start(signed(channel, "u1"))
        required = {"identity": {"mode": "required", "publicKeys": []}}
        assert (await service.http.patch(f"/channels/{channel['id']}", json=required)).status_code == 200
        refused = await visitor.call("GET", "/me")
        assert (refused.status_code, refused.json()["code"]) == (401, "identity_required")
        assert (await visitor.start()).json()["code"] == "identity_required"
        visitor.token = None
        assert (await visitor.start()).json()["code"] == "identity_required"
        assert (await browser.call("GET", "/me")).status_code == 200


async def test_channel_without_identities_takes_visitors_only(service: Service) -> None:
    channel = await make_channel(service, identity={"mode": "none"})
    async with Browser(service, channel) as browser:
        refused = await browser.start(signed(channel, "u1"))
        assert (refused.status_code, refused.json()["code"]) == (401, "identity_invalid")
        assert (await browser.start()).status_code == 200


async def test_channel_without_visitors_requires_an_identity(service: Service) -> None:
    channel = await make_channel(service, visitors={"allowed": False})
    async with Browser(service, channel) as browser:
        refused = await browser.start()
        assert (refused.status_code, refused.json()["code"]) == (401, "identity_required")
        assert (await browser.start(signed(channel, "u1"))).status_code == 200


async def test_visitor_ids_are_reserved(service: Service) -> None:
    channel = await make_channel(service)
    reserved = "visitor-01KZ00000000000000000000N1"
    survey = {"contact": {"userId": reserved}}
    answers = [
        await service.http.post("/s2s/conversations", json=survey),
        await service.http.put(f"/s2s/contacts/{reserved}", json={"name": "Eve"}),
        await service.dashboard.post("/conversations", json=survey),
    ]
    async with Browser(service, channel) as browser:
        answers.append(await browser.start(signed(channel, reserved)))
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (422, "reserved_user_id")
    for free in (
        "visitor-1",
        "visitor-",
        "Visitor-01KZ00000000000000000000N1",
        "visitor-01kz00000000000000000000n1",
    ):
        assert (await service.http.put(f"/s2s/contacts/{free}", json={})).status_code == 200


async def test_start_of_a_session_names_every_problem_of_its_body(service: Service) -> None:
    async with Browser(service, {"id": "chn_01KZ000000000000000000WDGT"}) as browser:
        assert (await browser.start()).json()["code"] == "channel_not_found"
        wrong = await browser.http.post("/session", json={"channelId": 1, "identity": "", "user": "u1"})
        assert {error["pointer"] for error in wrong.json()["errors"]} == {"/channelId", "/identity", "/user"}


async def test_identity_with_bad_fields_names_them(service: Service) -> None:
    channel = await make_channel(service)
    bad = {"email": "nobody", "name": 7, "attributes": {"n": 1 << 70}}
    async with Browser(service, channel) as browser:
        refused = (await browser.start(signed(channel, "u1", **bad))).json()
        assert refused["code"] == "identity_invalid"
        fields = {"email": "nobody", "name": 7}
        refused = (await browser.start(signed(channel, "u1", **fields))).json()
        assert all(name in refused["detail"] for name in fields)
        many = {f"a{number}": 1 for number in range(101)}
        refused = (await browser.start(signed(channel, "u1", attributes=many))).json()
        assert (refused["code"], "attributes" in refused["detail"]) == ("identity_invalid", True)
    assert (await service.http.get("/s2s/contacts/u1")).status_code == 404


async def test_sessions_that_start_together_are_all_valid(service: Service) -> None:
    channel = await make_channel(service)
    tokens = set()

    async def start() -> None:
        async with Browser(service, channel) as browser:
            assert (await browser.start(signed(channel, "u1", name="Ada"))).status_code == 200
            assert (await browser.call("GET", "/me")).status_code == 200
            tokens.add(browser.token)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(start)
    assert len(tokens) == 10


@pytest.mark.parametrize("field", ["name", "email", "phone", "context"])
async def test_null_is_accepted_for_each_own_field(service: Service, field: str) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        await browser.start(signed(channel, "u1"))
        assert (await browser.call("PATCH", "/me", json={field: None})).status_code == 200


async def test_uses_of_sessions_are_recorded_together(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as ada, Browser(service, channel) as bob:
        for name, browser in (("ada", ada), ("bob", bob)):
            await browser.start(signed(channel, name))

        async def uses() -> list[str]:
            paths = [f"/s2s/contacts/{name}/sessions" for name in ("ada", "bob")]
            return [(await service.http.get(each)).json()["items"][0]["lastUsedAt"] for each in paths]

        monkeypatch.setattr(customers, "TOUCH_INTERVAL_MS", 0)
        monkeypatch.setattr(customers, "USES_INTERVAL_MS", 3_600_000)
        await ada.call("GET", "/me")
        before = await uses()
        for browser in (ada, bob):
            await trio.sleep(0.01)
            await browser.call("GET", "/me")
        assert await uses() == before  # recorded an hour later, or by the next call after it
        monkeypatch.setattr(customers, "USES_INTERVAL_MS", 0)
        await trio.sleep(0.01)
        await ada.call("GET", "/me")
        after = await uses()
        assert [later > earlier for earlier, later in zip(before, after, strict=True)] == [True, True]
