"""`Idempotency-Key` through the wire (decisions 1, ADR 24)."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.engine.ports import Transaction
from deskwire.http.app import ROUTES
from deskwire.http.schemas.base import model_of
from tests.support.api.machines import credentials_of, make
from tests.support.api.service import Service, running, tapping
from tests.support.api.staff import organisation_of
from tests.support.api.surveys import DEFINITION, survey
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.stores import AnyStore, beside, chosen, stored

KEY: Final = {"Idempotency-Key": "order-1001"}
JSON: Final = {"Content-Type": "application/json"}
REPLAYED: Final = "Idempotent-Replayed"

NOT_IDEMPOTENT: Final = {
    "close, reopen, assign, read, rating, block, unblock, unmerge": "a second one changes nothing more",
    "typing": "is to be repeated, and is not stored",
    "recover": "what was made again is not made once more",
    "replay": "is asked for to happen again, and leaves out what is on its way",
    "test": "is asked for to happen again",
    "validate, simulate, check": "change nothing",
    "refresh": "joins the one that is running",
    "revoke": "a second one changes nothing more",
    "merge": "a second one changes nothing more, and is answered as the first one was",
    "token, session, password": "give a new token each time, or a new cookie",
    "send": "a second one sends nothing more, and is answered with the message",
    "auth": "makes nothing",
    "voice-reply": "stores nothing",
    "invitations, renew, password-link": "a second one gives another link, or is refused; the first link ends",
    "use, confirm, factor, passkey, passkeys, proof": "use up a link, code or challenge, which is good once",
    "password-links": "sends another mail, of which an address gets three an hour",
    "options, passkey-options, inspect": "change nothing that counts",
    "totp, recovery-codes": "give a new secret each time; the earlier one ends",
    "backchannel-logout": "a token of the provider counts once",
    "cancel, undo": "a second one is refused, because the job is in another state",
    "import": "knows each of its records again by the id that it has elsewhere",
}
"""The last word of each POST that takes no key, and why it needs none."""


def test_every_post_takes_a_key_or_has_a_reason_not_to() -> None:
    excused = {word for words in NOT_IDEMPOTENT for word in words.split(", ")}
    posts = {route.path.rpartition("/")[2]: route for route in ROUTES if route.method == "POST"}
    assert {name for name, route in posts.items() if not route.idempotent} == excused
    assert {route.method for route in ROUTES if route.idempotent} == {"POST"}


FLOWS: Final = [{"id": "main", "actions": [{"id": 1, "type": "message", "text": "Hello"}]}]
ASKING: Final = [
    {
        "id": "main",
        "actions": [{"id": 1, "type": "buttons", "text": "Yes?", "options": [{"id": "yes", "label": "Yes"}]}],
    }
]

Requests = dict[str, tuple[httpx.AsyncClient, str, dict[str, Any]]]


async def requests(service: Service) -> Requests:
    """Return a valid request to every route that takes a key."""
    conversation = await service.create()
    organisation = await organisation_of(service)
    made = await survey(service)
    url = {"url": "https://127.0.0.1:9443/"}
    endpoint = (await service.http.post("/s2s/webhooks", json=url)).json()["id"]
    delivery = (await service.http.post(f"/s2s/webhooks/{endpoint}/test")).json()["id"]
    await service.http.patch(f"/s2s/webhooks/{endpoint}", json={"status": "disabled"})
    await service.http.patch(f"/s2s/webhooks/{endpoint}", json={"status": "enabled"})
    other = {**DEFINITION, "title": "Another"}
    backend, agent, contact = service.http, service.dashboard, conversation["contact"]["id"]
    asking = {"name": "Ask", "trigger": {"type": "manual"}, "flows": ASKING}
    begin = {"workflowId": (await agent.post("/workflows", json=asking)).json()["id"]}
    second, machine = await service.create("u1"), await make(service)
    await agent.put(f"/organisations/{organisation}/audit/push", json={"url": "https://127.0.0.1:9446/"})
    cards = [(await service.say(second, "Card 4111"))["id"] for _ in range(2)]
    asked = [(await service.say(second, "And my address has changed."))["id"]]
    messages = f"/conversations/{second['id']}/messages"
    return {
        "/s2s/conversations": (backend, "/s2s/conversations", {"contact": {"userId": "u2"}, "message": {"text": "Hi"}}),
        "/s2s/conversations/<conversation_id>/messages": (
            backend, f"/s2s/conversations/{conversation['id']}/messages", {"text": "Hello"},
        ),
        "/conversations/<conversation_id>/messages": (
            agent, f"/conversations/{conversation['id']}/messages", {"text": "A note", "internal": True},
        ),
        "/s2s/conversations/<conversation_id>/messages/<message_id>/redact": (
            backend, f"/s2s{messages}/{cards[0]}/redact", {"text": True},
        ),
        "/conversations/<conversation_id>/messages/<message_id>/redact": (
            agent, f"{messages}/{cards[1]}/redact", {"text": True},
        ),
        "/conversations/<conversation_id>/split": (
            agent, f"/conversations/{second['id']}/split", {"messageIds": asked},
        ),
        "/channels": (agent, "/channels", {"name": "Shop"}),
        "/organisations/<organisation_id>/roles": (
            agent, f"/organisations/{organisation}/roles", {"name": "Reader", "permissions": ["tickets.read"]},
        ),
        "/channels/<channel_id>/rotate-secret": (agent, f"/channels/{service.demo['channelId']}/rotate-secret", {}),
        "/s2s/webhooks": (backend, "/s2s/webhooks", {"url": "https://127.0.0.1:9444/"}),
        "/s2s/webhooks/<endpoint_id>/rotate-secret": (backend, f"/s2s/webhooks/{endpoint}/rotate-secret", {}),
        "/s2s/deliveries/<delivery_id>/redeliver": (backend, f"/s2s/deliveries/{delivery}/redeliver", {}),
        "/webhooks": (agent, "/webhooks", {"url": "https://127.0.0.1:9445/"}),
        "/webhooks/<endpoint_id>/rotate-secret": (agent, f"/webhooks/{endpoint}/rotate-secret", {}),
        "/deliveries/<delivery_id>/redeliver": (agent, f"/deliveries/{delivery}/redeliver", {}),
        "/tickets": (agent, "/tickets", {"title": "A", "conversationId": conversation["id"]}),
        "/teams": (agent, "/teams", {"name": "Night shift"}),
        "/conversations": (agent, "/conversations", {"contact": {"userId": "u1"}, "message": {"text": "Hi"}}),
        "/snippets": (agent, "/snippets", {"shortcut": "hi", "title": "Hello", "text": "Hello"}),
        "/views": (agent, "/views", {"name": "Open", "filter": {"status": "OPEN"}}),
        "/bulk-jobs": (agent, "/bulk-jobs", {"filter": {"tag": "none"}, "action": {"type": "close"}}),
        "/workflows": (agent, "/workflows", {"name": "W", "trigger": {"type": "manual"}, "flows": FLOWS}),
        "/s2s/conversations/<conversation_id>/workflow/start": (
            backend, f"/s2s/conversations/{conversation['id']}/workflow/start", begin,
        ),
        "/s2s/conversations/<conversation_id>/workflow/reply": (
            backend, f"/s2s/conversations/{conversation['id']}/workflow/reply", {"actionId": 1, "value": "yes"},
        ),
        "/conversations/<conversation_id>/workflow/start": (
            agent, f"/conversations/{second['id']}/workflow/start", begin,
        ),
        "/sessions/<session_id>/memory": (agent, f"/sessions/{contact}/memory", {"name": "n", "content": "c"}),
        "/engagement/surveys": (agent, "/engagement/surveys", {"name": "S", "definition": DEFINITION}),
        "/engagement/surveys/<survey_id>/versions": (
            agent, f"/engagement/surveys/{made['id']}/versions", {"definition": other},
        ),
        "/s2s/surveys/<survey_id>/responses": (backend, f"/s2s/surveys/{made['id']}/responses", {"answers": {"score": 9, "plan": "pro"}}),
        "/organisations/<organisation_id>/members": (
            agent, f"/organisations/{organisation}/members", {"email": "new@example.com", "role": "agent"},
        ),
        "/organisations/<organisation_id>/audit/push/rotate-secret": (
            agent, f"/organisations/{organisation}/audit/push/rotate-secret", {},
        ),
        "/organisations/<organisation_id>/projects": (agent, f"/organisations/{organisation}/projects", {"name": "P"}),
        "/projects/<project_id>/keys": (agent, f"/projects/{service.demo['projectId']}/keys", {"label": "L"}),
        "/projects/<project_id>/credentials": (
            agent, credentials_of(service), {"name": "N", "permissions": ["tickets.read"]},
        ),
        "/projects/<project_id>/credentials/<credential_id>/rotate": (
            agent, f"{credentials_of(service)}/{machine['id']}/rotate", {},
        ),
    }  # fmt: skip


OF_CUSTOMERS: Final = frozenset(
    {"/customer/uploads", "/customer/conversations/<conversation_id>/workflow/reply"}
)
"""The routes of customers that take a key, which tests/api/customers/test_keys_of_customers.py calls."""

SECRETS: Final = frozenset({"secret", "key", "password"})
"""The fields of answers that show a secret once."""
NO_SECRETS: Final = frozenset({"tokenType", "streamKey", "passwordEndsAt"})
"""Fields that sound like secrets: the stream's key is public, and a time opens nothing."""


def replay_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer as it is given again: a secret, which is shown once, is masked."""
    masked: dict[str, Any] = {
        name: "…" if name == "password" else f"{secret.partition('_')[0]}_…{secret[-4:]}"
        for name, secret in secrets_in(answer).items()
    }
    if "identity" in answer:
        masked = {"identity": {**answer["identity"], **masked}}
    return {**answer, **masked}


def secrets_in(answer: dict[str, Any]) -> dict[str, str]:
    """The secrets in an answer; the secret of a channel is in its `identity`."""
    holder = answer.get("identity", answer)
    return {name: holder[name] for name in SECRETS if holder.get(name) is not None}


def test_every_answer_that_may_be_kept_has_its_secrets_named_here() -> None:
    sounding = re.compile("secret$|password|token|key$", re.IGNORECASE)
    shown = {
        field.alias or name
        for route in ROUTES
        if route.idempotent and isinstance(route.answer, type)
        for name, field in model_of(route.answer).model_fields.items()
    }
    assert {name for name in shown if sounding.search(name)} - NO_SECRETS == SECRETS


async def test_every_route_that_takes_a_key_answers_the_same_twice_and_acts_once(tmp_path: Path) -> None:
    async with running(tmp_path, webhook_timeout_s=0.2, webhook_retry_after_s=(0, 0, 0)) as service:
        table = await requests(service)
        keyed = {route.path.removeprefix("/v3") for route in ROUTES if route.idempotent}
        assert set(table) == keyed - {"/uploads"} - OF_CUSTOMERS
        for http, path, body in table.values():
            first = await http.post(path, json=body, headers=KEY)
            assert first.status_code == 200, (path, first.text)
            assert REPLAYED not in first.headers
            events, rows = await service.types(), counted(tmp_path)
            again = await http.post(path, json=body, headers=KEY)
            assert (again.status_code, again.json()) == (200, replay_of(first.json())), path
            assert not any(secret in again.text for secret in secrets_in(first.json()).values()), path
            assert again.headers[REPLAYED] == "true"
            assert again.headers["Content-Type"] == first.headers["Content-Type"]
            now = counted(tmp_path)
            assert {t: (rows[t], n) for t, n in now.items() if n != rows[t]} == {}, path
            assert await service.types() == events, path


_TABLES: Final = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table'",
    "postgres": "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
    "AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'search%'",
}
"""Those of the search index grow a moment later where it has tables in the same database; partitions count with their table."""


def counted(directory: Path) -> dict[str, int]:
    """Return the number of rows of each table, except tables that background tasks change."""
    with beside(directory) as connection:
        names = connection.execute(_TABLES[chosen()]).fetchall()
        own = {"attempts", "couriers", "search_changes"}
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for (name,) in names
            if name not in own
        }


async def test_another_body_is_refused_and_another_order_of_fields_is_no_other_body(service: Service) -> None:
    path = "/tickets"
    first = await service.dashboard.post(path, content=b'{"title": "A", "type": "b"}', headers=JSON | KEY)
    same = await service.dashboard.post(path, content=b'{"type":"b","title":"A"}', headers=JSON | KEY)
    assert same.content == first.content
    other = await service.dashboard.post(path, json={"title": "B"}, headers=KEY)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert REPLAYED not in other.headers
    assert len((await service.dashboard.get(path)).json()["items"]) == 1


async def test_a_key_belongs_to_its_credential_and_its_path(service: Service) -> None:
    path = f"/projects/{service.demo['projectId']}/keys"
    second = (await service.dashboard.post(path, json={"label": "second"})).json()["key"]
    one, two = await service.create("u1"), await service.create("u2")
    ids = set()
    for conversation in (one, two):
        for key in (service.demo["serverKey"], second):
            answer = await service.http.post(
                f"/s2s/conversations/{conversation['id']}/messages",
                json={"text": "Hello"},
                headers={**KEY, "Authorization": f"Bearer {key}"},
            )
            assert REPLAYED not in answer.headers
            ids.add(answer.json()["id"])
    assert len(ids) == 4


@pytest.mark.parametrize("key", [b"", b"x" * 256, "ä".encode(), b"tab\there"])
async def test_a_key_that_can_not_be_one_is_refused_by_name(service: Service, key: bytes) -> None:
    headers = [(b"Idempotency-Key", key)]
    answer = await service.http.post("/s2s/conversations", json={"contact": {"userId": "u"}}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_idempotency_key")
    assert answer.json()["errors"][0]["pointer"] == "/Idempotency-Key"
    assert await service.types() == []


async def test_two_keys_in_one_request_are_refused_and_255_characters_are_not(service: Service) -> None:
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    body = {"contact": {"userId": "u"}}
    assert (await service.http.post("/s2s/conversations", json=body, headers=twice)).status_code == 400
    longest = {"Idempotency-Key": "~" * 255}
    assert (await service.http.post("/s2s/conversations", json=body, headers=longest)).status_code == 200


async def test_a_refused_request_is_carried_out_when_it_is_sent_again_under_its_key(service: Service) -> None:
    body = {"name": "Night shift"}
    first = (await service.dashboard.post("/teams", json=body)).json()
    refused = await service.dashboard.post("/teams", json=body, headers=KEY)
    assert (refused.status_code, refused.json()["code"]) == (409, "team_name_taken")
    await service.dashboard.delete(f"/teams/{first['id']}")
    made = await service.dashboard.post("/teams", json=body, headers=KEY)
    assert made.status_code == 200
    assert REPLAYED not in made.headers


async def test_it_survives_a_restart_and_ends_with_its_time(tmp_path: Path) -> None:
    body = {"contact": {"userId": "u"}}
    async with running(tmp_path) as service:
        first = await service.http.post("/s2s/conversations", json=body, headers=KEY)
    async with running(tmp_path) as service:
        again = await service.http.post("/s2s/conversations", json=body, headers=KEY)
        assert (again.content, again.headers[REPLAYED]) == (first.content, "true")
    async with running(tmp_path, idempotency_s=0.001) as service:
        late = await service.http.post("/s2s/conversations", json=body, headers=KEY)
        assert late.json()["id"] != first.json()["id"]


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[AnyStore]:
    return tapping(monkeypatch)


class Held:
    """A writer that waits until it is released."""

    def __init__(self, store: AnyStore, nursery: trio.Nursery) -> None:
        self._go = threading.Event()
        self._there = threading.Event()
        nursery.start_soon(store.write, self._hold)

    def _hold(self, _: Transaction) -> None:
        self._there.set()
        self._go.wait(10)

    async def there(self) -> None:
        await trio.to_thread.run_sync(self._there.wait)

    def let_go(self) -> None:
        self._go.set()


async def queued(store: AnyStore, count: int) -> None:
    """Return once this number of jobs waits for the writer."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while len(store.backlog) < count:  # noqa: ASYNC110  # a queue between threads rings no bell
            await trio.sleep(0.005)  # real time: the other side is a thread


@pytest.mark.sqlite  # holds the writer's thread: with PostgreSQL that is Trio's
async def test_duplicate_is_refused_while_the_first_is_under_way(
    stores: list[AnyStore], service: Service
) -> None:
    conversation = await service.create()
    path, answers = f"/s2s/conversations/{conversation['id']}/messages", []

    async def send() -> None:
        answers.append(await service.http.post(path, json={"text": "Hello"}, headers=KEY))

    async with trio.open_nursery() as nursery:
        held = Held(stores[0], nursery)
        await held.there()
        nursery.start_soon(send)
        await queued(stores[0], 1)
        duplicate = await service.http.post(path, json={"text": "Hello"}, headers=KEY)
        assert (duplicate.status_code, duplicate.json()["code"]) == (409, "idempotency_in_progress")
        assert duplicate.headers["Retry-After"] == "1"
        held.let_go()
    again = await service.http.post(path, json={"text": "Hello"}, headers=KEY)
    assert (again.content, again.headers[REPLAYED]) == (answers[0].content, "true")


@pytest.mark.sqlite  # holds the writer's thread: with PostgreSQL that is Trio's
async def test_caller_that_disconnects_before_the_commit_finds_the_response(
    stores: list[AnyStore], service: Service
) -> None:
    """Leave before the response: the command is carried out, and its response is in the commit."""
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/messages"
    async with trio.open_nursery() as nursery:
        held = Held(stores[0], nursery)
        await held.there()
        with trio.CancelScope() as leaving:
            nursery.start_soon(_cancel_when, leaving, stores[0])
            await service.http.post(path, json={"text": "Hello"}, headers=KEY)
        assert leaving.cancelled_caught
        held.let_go()
    again = await service.http.post(path, json={"text": "Hello"}, headers=KEY)
    while again.status_code == 409:  # still under way
        again = await service.http.post(path, json={"text": "Hello"}, headers=KEY)
    assert again.status_code == 200, again.text
    messages = (await service.http.get(path)).json()["items"]
    assert [message["id"] for message in messages] == [again.json()["id"]]
    assert again.headers[REPLAYED] == "true"


async def _cancel_when(leaving: trio.CancelScope, store: AnyStore) -> None:
    await queued(store, 1)
    leaving.cancel()


async def test_fifty_at_once_under_one_key_make_one_conversation(service: Service) -> None:
    answers: list[httpx.Response] = []

    async def send() -> None:
        body = {"contact": {"userId": "u"}}
        answers.append(await service.http.post("/s2s/conversations", json=body, headers=KEY))

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(send)
    good = {answer.content for answer in answers if answer.status_code == 200}
    assert len(good) == 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert await service.types() == ["conversation.created"]


async def test_removed_object_is_neither_replayed_nor_created_again(service: Service) -> None:
    conversation = await service.create("u1")
    made = [
        (service.http, "/s2s/conversations", {"contact": {"userId": "u2", "name": "<<marker>>"}}),
        (service.http, f"/s2s/conversations/{conversation['id']}/messages", {"text": "<<marker>>"}),
        (service.dashboard, "/tickets", {"title": "<<marker>>"}),
    ]
    answers = [(await http.post(path, json=body, headers=KEY)).json() for http, path, body in made]
    await service.http.delete("/s2s/contacts/u2")
    await service.http.delete(f"/s2s/conversations/{conversation['id']}")
    await service.dashboard.delete(f"/tickets/{answers[2]['id']}")
    for http, path, body in made:
        again = await http.post(path, json=body, headers=KEY)
        assert (again.status_code, again.json()["code"]) == (410, "idempotency_answer_erased"), path
    with beside(service.directory) as connection:
        kept = connection.execute(
            "SELECT count(*), count(sealed), count(subject) FROM kept_answers"
        ).fetchone()
    assert kept == (3, 0, 0)


async def test_every_removal_erases_the_stored_responses(tmp_path: Path) -> None:
    async with running(tmp_path, webhook_timeout_s=0.2, webhook_retry_after_s=(0, 0, 0)) as service:
        table = await requests(service)
        made = {}
        for route, (http, path, body) in table.items():
            answer = await http.post(path, json=body, headers=KEY)
            made[route] = answer.json()
        upload = await service.http.post("/uploads", files={"file": ("a.txt", b"a")}, headers=KEY)
        removed = [*removals(service, table, made), (service.http, f"/uploads/{upload.json()['id']}")]
        for http, path in removed:
            done = await (http.post(path) if path.endswith("/revoke") else http.delete(path))
            assert done.status_code == 200, (path, done.text)
        with beside(tmp_path) as connection:
            kept = connection.execute("SELECT subject FROM kept_answers WHERE sealed IS NOT NULL").fetchall()
        # A delivery's answer has ids only, and a bulk job is kept after its end.
        lasting = [each for each in made if each.endswith(("/redeliver", "/bulk-jobs"))]
        assert {subject for (subject,) in kept} == {made[each]["id"] for each in lasting}


def removals(
    service: Service, table: Requests, made: dict[str, dict[str, Any]]
) -> list[tuple[httpx.AsyncClient, str]]:
    """Yield the requests that remove everything those requests have made."""
    backend, agent = service.http, service.dashboard
    credentials = table["/projects/<project_id>/credentials"][1]
    roles = "/organisations/<organisation_id>/roles"
    response, member = "/s2s/surveys/<survey_id>/responses", "/organisations/<organisation_id>/members"
    versions = table["/engagement/surveys/<survey_id>/versions"][1].removesuffix("/versions")
    endpoint = table["/s2s/webhooks/<endpoint_id>/rotate-secret"][1].removesuffix("/rotate-secret")
    return [
        (agent, f"/webhooks/{made['/webhooks']['id']}"),
        (agent, f"/workflows/{made['/workflows']['id']}"),
        (agent, f"{versions}/responses/{made[response]['id']}"),
        (agent, versions),
        (agent, f"/engagement/surveys/{made['/engagement/surveys']['id']}"),
        (agent, f"{table['/sessions/<session_id>/memory'][1]}/n"),
        (agent, f"/tickets/{made['/tickets']['id']}"),
        (agent, f"/teams/{made['/teams']['id']}"),
        (agent, f"/snippets/{made['/snippets']['id']}"),
        (agent, f"/views/{made['/views']['id']}"),
        (agent, f"{table[member][1]}/{made[member]['id']}"),
        (agent, f"{table[roles][1]}/{made[roles]['id']}"),
        (
            agent,
            table["/organisations/<organisation_id>/audit/push/rotate-secret"][1].removesuffix(
                "/rotate-secret"
            ),
        ),
        (agent, f"/projects/{made['/organisations/<organisation_id>/projects']['id']}"),
        (
            agent,
            f"{table['/projects/<project_id>/keys'][1]}/{made['/projects/<project_id>/keys']['id']}/revoke",
        ),
        (agent, f"{credentials}/{made['/projects/<project_id>/credentials']['id']}"),
        (
            agent,
            table["/projects/<project_id>/credentials/<credential_id>/rotate"][1].removesuffix("/rotate"),
        ),
        (agent, f"/channels/{made['/channels']['id']}"),
        (agent, table["/channels/<channel_id>/rotate-secret"][1].removesuffix("/rotate-secret")),
        (backend, f"/s2s/webhooks/{made['/s2s/webhooks']['id']}"),
        (backend, endpoint),
        (backend, f"/s2s/conversations/{made['/s2s/conversations']['id']}"),
        (backend, "/s2s/contacts/u1"),
    ]


async def test_no_secret_of_an_answer_stands_on_the_disk(service: Service) -> None:
    url = {"url": "https://127.0.0.1:9443/"}
    secret = (await service.http.post("/s2s/webhooks", json=url, headers=KEY)).json()["secret"]
    keys = f"/projects/{service.demo['projectId']}/keys"
    key = (await service.dashboard.post(keys, json={"label": "x"}, headers=KEY)).json()["key"]
    content = stored(service.directory)
    for plain in (secret, key, KEY["Idempotency-Key"]):
        assert plain.encode() not in content


async def test_an_upload_is_the_same_by_its_name_and_content(service: Service) -> None:
    async def send(content: bytes, name: str = "a.txt") -> httpx.Response:
        return await service.http.post("/uploads", files={"file": (name, content)}, headers=KEY)

    first = await send(b"content")
    again = await send(b"content")
    assert (again.content, again.headers[REPLAYED]) == (first.content, "true")
    for other in (await send(b"other content"), await send(b"content", "b.txt")):
        assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    fetched = await service.http.get(first.json()["url"])
    assert fetched.content == b"content"
    with beside(service.directory) as connection:
        assert connection.execute("SELECT count(*) FROM uploads").fetchone() == (1,)
