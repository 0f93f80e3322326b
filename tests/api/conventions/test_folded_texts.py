"""Texts through the wire are compared by one folding: every `q`, names that are unique, addresses and attributes."""

# ruff: noqa: RUF001  # they are real texts

from __future__ import annotations

import unicodedata
from typing import Any

import pytest

from tests.support.api.import_lines import bring, conversation
from tests.support.api.service import Service
from tests.support.api.staff import code, hire, sign_in

TYPED = [
    ("Доставка завтра", "доставка"),
    ("Ärger mit Größe", "ärger"),
    ("Ärger mit Größe", unicodedata.normalize("NFD", "Größe")),
    ("Η Ελλάδα", "ΕΛΛΆΔΑ"),
    ("Ｄｅｓｋ ﬁnance", "desk"),
    ("Straße", "STRASSE"),
    ("İstanbul", "istanbul"),
    ("كـــتاب", "كتاب"),
]


async def ids(service: Service, path: str, q: str, *, key: bool = False) -> list[Any]:
    """The objects that a list finds."""
    answer = await (service.http if key else service.dashboard).get(path, params={"q": q})
    assert answer.status_code == 200, answer.text
    items: list[Any] = answer.json()["items"]
    return items


@pytest.mark.parametrize(("stored", "typed"), TYPED)
async def test_every_list_finds_a_text_as_people_type_it(service: Service, stored: str, typed: str) -> None:
    made = await service.create(user="u1", message={"text": f"see {stored}"})
    titled = await service.create(user="u2", title=stored)
    await service.create(user="u3", message={"text": "nothing of that"})
    await service.http.put("/s2s/contacts/u4", json={"name": stored})
    of_contact = await service.create(user="u4")
    wanted = {each["id"] for each in (made, titled, of_contact)}
    for path, key in (("/conversations", False), ("/s2s/conversations", True)):
        assert {each["id"] for each in await ids(service, path, typed, key=key)} == wanted
    for path, key in (("/contacts", False), ("/s2s/contacts", True)):
        assert [each["userId"] for each in await ids(service, path, typed, key=key)] == ["u4"]
    ticket = (await service.dashboard.post("/tickets", json={"title": stored})).json()
    assert [each["id"] for each in await ids(service, "/tickets", typed)] == [ticket["id"]]
    entry = {"language": "en", "fields": {"text": stored}}
    put = await service.dashboard.put("/translations/entries/statictranslation:greeting", json=entry)
    assert put.status_code == 200, put.text
    assert len(await ids(service, "/translations/entries", typed)) == 1


async def test_a_teams_name_that_reads_like_another_is_taken(service: Service) -> None:
    team = (await service.dashboard.post("/teams", json={"name": "Über Uns"})).json()
    for name in ("über uns", "uber  uns", "U\u0308BER UNS", "Ｕber uns"):
        assert code(await service.dashboard.post("/teams", json={"name": name})) == (409, "team_name_taken")
    renamed = await service.dashboard.patch(f"/teams/{team['id']}", json={"name": "ÜBER UNS"})
    assert renamed.json()["name"] == "ÜBER UNS"
    assert (await service.dashboard.post("/teams", json={"name": "Über alle"})).status_code == 200


async def test_an_account_signs_in_by_its_address_and_no_other_can_read_like_it(service: Service) -> None:
    hired = await hire(service, "agent", "Ärztin@Example.org")
    chosen = "grün-Kaktus-wählt-Möhren"
    typed = unicodedata.normalize("NFD", chosen)
    assert (await sign_in(service, "ärztin@example.org", hired["password"], typed)).status_code == 200
    for password in (chosen, typed, unicodedata.normalize("NFKD", chosen)):
        assert (await sign_in(service, "A\u0308RZTIN@example.org", password)).status_code == 200
    assert code(await sign_in(service, "arztin@example.org", chosen)) == (401, "invalid_login")
    organisation = (await service.dashboard.get("/organisations")).json()["items"][0]["id"]
    body = {"email": "arztin@example.org", "role": "agent", "name": "A"}
    added = await service.dashboard.post(f"/organisations/{organisation}/members", json=body)
    assert code(added) == (409, "email_in_use")


@pytest.mark.parametrize(
    "email", [" ada@Example.org", "ada@Example.org\n", "Ada <ada@Example.org>", "mailto:ada@Example.org"]
)
async def test_address_is_stored_without_surrounding_blanks(service: Service, email: str) -> None:
    put = await service.http.put("/s2s/contacts/u1", json={"email": email})
    assert put.json()["email"] == "ada@Example.org"
    await service.http.put("/s2s/contacts/u2", json={"email": "x@example.org"})
    patched = await service.http.patch("/s2s/contacts/u2", json={"email": email})
    assert patched.json()["email"] == "ada@Example.org"
    made = await service.http.post("/s2s/conversations", json={"contact": {"userId": "u3", "email": email}})
    assert made.json()["contact"]["email"] == "ada@Example.org"
    contact = await service.dashboard.patch(f"/contacts/{put.json()['id']}", json={"email": email})
    assert contact.json()["email"] == "ada@Example.org"
    for asked in ("ADA@example.org", "ada@example.org", "Ada <ada@example.org>"):
        for client, path in ((service.http, "/s2s/contacts"), (service.dashboard, "/contacts")):
            found = (await client.get(path, params={"email": asked})).json()["items"]
            assert sorted(each["userId"] for each in found) == ["u1", "u2", "u3"]


async def test_invalid_address_or_number_is_refused_and_named(service: Service) -> None:
    body = {"email": "ada@example.org\nBcc: eve@example.org", "phone": "call me"}
    for answer in (
        await service.http.put("/s2s/contacts/u1", json=body),
        await service.http.post("/s2s/conversations", json={"contact": {"userId": "u1", **body}}),
    ):
        assert answer.status_code == 422
        assert {each["pointer"].rpartition("/")[2] for each in answer.json()["errors"]} == {"email", "phone"}


async def test_a_telephone_number_is_found_in_any_grouping(service: Service) -> None:
    await service.http.put("/s2s/contacts/u1", json={"phone": "+49 (0)30 123-456"})
    await service.http.put("/s2s/contacts/u2", json={"phone": "030/123456"})
    await service.http.put("/s2s/contacts/u3", json={"phone": "+49 30 999999"})
    for typed in ("+49 30 123456", "0049 (0)30 123 456", "030 123456", "+4930123456", "123-456"):
        assert {each["userId"] for each in await ids(service, "/contacts", typed)} == {"u1", "u2"}


async def test_an_import_makes_one_customer_of_an_address_and_loses_no_conversation(service: Service) -> None:
    records = [
        conversation("z-1", contact={"userId": "Ada@Example.org", "email": "Ada <ada@example.org>"}),
        conversation("z-2", contact={"userId": "ada@example.org", "email": "none given", "phone": "ask"}),
    ]
    report = await bring(service.http, *records)
    assert report["refused"] == 0
    again = await bring(service.http, conversation("z-3", contact={"userId": "ADA@example.org"}))
    assert again["refused"] == 0
    (contact,) = (await service.dashboard.get("/contacts")).json()["items"]
    assert (contact["userId"], contact["email"]) == ("Ada@Example.org", "ada@example.org")
    kept = [each["attributes"] for each in (await service.http.get("/s2s/conversations")).json()["items"]]
    assert {"contactEmail": "none given", "contactPhone": "ask"} in kept


LARGE = 1234567890123456789


@pytest.mark.parametrize(
    ("stored", "found", "not_found"),
    [
        (LARGE, [f"{LARGE}"], [f"{LARGE - 1}", f"{LARGE + 1}", "1.2345678901234568e18"]),
        (2**53 + 1, [f"{2**53 + 1}"], [f"{2**53}", f"{2**53 + 2}"]),
        (2**64 - 1, [f"{2**64 - 1}"], [f"{2**64 - 2}", f"{2**64}", f"{2**63}"]),
        (2**63, [f"{2**63}"], [f"{2**63 - 1}", f"{2**63 + 1}"]),
        (-(2**63), [f"{-(2**63)}"], [f"{-(2**63) + 1}"]),
        (1, ["1", "1.0", "1e0"], ["true", "10", "1.5"]),
        (1.0, ["1", "1.0"], ["2"]),
        (1e15, ["1000000000000000", "1e15"], ["1000000000000001"]),
        (0.1, ["0.1", "1e-1"], ["0", "0.2"]),
        (True, ["true"], ["1", "false"]),
        ("1", ["1"], ["1.0", "true"]),
    ],
)
async def test_an_attribute_is_compared_digit_by_digit(
    service: Service, stored: Any, found: list[str], not_found: list[str]
) -> None:
    made = await service.create(user="u1", attributes={"order": stored})
    await service.http.patch("/s2s/contacts/u1", json={"attributes": {"order": stored}})
    for path, wanted in (("/s2s/conversations", made["id"]), ("/s2s/contacts", made["contact"]["id"])):
        for text in found:
            answer = await service.http.get(path, params={"attribute": f"order:{text}"})
            assert [each["id"] for each in answer.json()["items"]] == [wanted], text
        for text in not_found:
            answer = await service.http.get(path, params={"attribute": f"order:{text}"})
            assert answer.json()["items"] == [], text
