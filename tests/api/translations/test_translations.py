"""Translatable entries through the wire (contract 2.8, 4.6; decisions 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.translations.translation import parse_entry_id
from tests.api.contacts.test_memory import change
from tests.support.api.service import Service, running

ARTICLE = f"article:{'0123456789abcdef' * 2}"[: len("article:") + 24]
ALL = "/translations/entries"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Yield a service whose project has three languages."""
    async with running(tmp_path) as started:
        change(tmp_path, "projects", "languages", "en,de,pt-BR")
        yield started


def path(entry_id: str) -> str:
    return f"{ALL}/{quote(entry_id, safe='/:')}"


async def put(service: Service, entry_id: str, language: str, **fields: str) -> dict[str, Any]:
    """Store an entry's content in a language; the answer."""
    body = {"language": language, "fields": fields}
    answer = await service.dashboard.put(path(entry_id), json=body)
    assert answer.status_code == 200, answer.text
    entry: dict[str, Any] = answer.json()
    return entry


async def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def test_entry_is_stored_per_language_and_read_in_the_primary_by_default(
    service: Service,
) -> None:
    """Contract 4.6."""
    made = await put(service, ARTICLE, "en", title="Refunds", body="…")
    assert made.keys() == {"entryId", "type", "id", "language", "languages", "fields", "updatedAt"}
    assert (made["entryId"], made["type"], made["id"]) == (ARTICLE, "article", ARTICLE[8:])
    german = await put(service, ARTICLE, "DE", title="Erstattung")
    assert (german["language"], german["languages"]) == ("de", ["de", "en"])
    english = (await service.dashboard.get(path(ARTICLE))).json()
    assert (english["language"], english["fields"]) == ("en", {"title": "Refunds", "body": "…"})
    assert (await service.dashboard.get(path(ARTICLE), params={"language": "de"})).json() == german
    replaced = await put(service, ARTICLE, "en", title="Money back")
    assert replaced["fields"] == {"title": "Money back"}


async def test_a_language_that_an_entry_lacks_is_named_with_those_it_has(service: Service) -> None:
    await put(service, ARTICLE, "en", title="Refunds")
    answer = await service.dashboard.get(path(ARTICLE), params={"language": "pt-br"})
    assert await refusal(answer) == (404, "translation_not_found")
    assert "only in: en" in answer.json()["detail"]
    unknown = await service.dashboard.get(path("statictranslation:none"))
    assert await refusal(unknown) == (404, "entry_not_found")


@pytest.mark.parametrize(
    "entry_id",
    ["article", "page:1", "article:xyz", f"article:{'A' * 24}", "collection:", "statictranslation:"],
)
async def test_bad_entry_id_is_refused_with_the_reason(service: Service, entry_id: str) -> None:
    assert await refusal(await service.dashboard.get(path(entry_id))) == (400, "bad_entry_id")


@pytest.mark.parametrize("key", ["checkout.title", "a:b", "de/checkout/title", "Grüße & Co. 100%?", "#1"])
async def test_a_translation_key_may_hold_any_printable_character(service: Service, key: str) -> None:
    await put(service, f"statictranslation:{key}", "en", text="x")
    entry = (await service.dashboard.get(f"{ALL}/{quote(f'statictranslation:{key}', safe='')}")).json()
    assert (entry["id"], entry["fields"]) == (key, {"text": "x"})


async def test_entries_are_listed_newest_first_by_type_and_language_and_pages(service: Service) -> None:
    for number in range(4):
        await put(service, f"statictranslation:key{number}", "en", text="x")
    await put(service, ARTICLE, "en", title="x")
    await put(service, "statictranslation:key1", "de", text="y")

    async def listed(**params: str) -> list[str]:
        answer = await service.dashboard.get(ALL, params=params)
        assert answer.status_code == 200, answer.text
        return [entry["entryId"] for entry in answer.json()["items"]]

    keys = [f"statictranslation:key{number}" for number in (3, 2, 1, 0)]
    assert await listed() == [ARTICLE, *keys]
    assert await listed(type="statictranslation") == keys
    assert await listed(language="de") == ["statictranslation:key1"]
    assert await listed(missing="de", type="statictranslation") == [keys[0], keys[1], keys[3]]
    first = (await service.dashboard.get(ALL, params={"limit": "2"})).json()
    assert await listed(cursor=first["nextCursor"]) == keys[1:]
    assert first["items"][0].keys() == {"entryId", "type", "id", "languages", "updatedAt"}


async def test_words_find_entries_by_their_key_and_by_their_texts(service: Service) -> None:
    await put(service, "statictranslation:checkout.title", "en", text="Pay now")
    await put(service, "statictranslation:footer", "en", text="Imprint", note='a "quoted" \\ sign')
    await put(service, "statictranslation:footer", "de", text="Bezahlt wird später")
    await put(service, ARTICLE, "en", title="Refunds")

    async def found(q: str, **params: str) -> list[str]:
        answer = await service.dashboard.get(ALL, params={"q": q, **params})
        assert answer.status_code == 200, answer.text
        return [entry["id"] for entry in answer.json()["items"]]

    assert await found("CHECKOUT.") == ["checkout.title"]
    assert await found("bezahlt") == ["footer"]
    assert await found('"quoted" \\') == ["footer"]
    assert await found("später") == ["footer"]
    assert await found("text") == [], "the name of a field is no text"
    assert await found("%") == []
    assert await found("e", type="article") == [ARTICLE[8:]]
    assert await found("footer", missing="de") == []


async def test_report_counts_missing_texts_of_each_language(service: Service) -> None:
    for number in range(3):
        await put(service, f"statictranslation:key{number}", "en", text="x")
    await put(service, "statictranslation:key1", "de", text="y")
    report = (await service.dashboard.get("/translations/missing")).json()
    assert report == {
        "entries": 3,
        "languages": [
            {"language": "en", "translated": 3, "missing": 0},
            {"language": "de", "translated": 1, "missing": 2},
            {"language": "pt-BR", "translated": 0, "missing": 3},
        ],
    }


async def test_one_language_or_the_whole_entry_is_removed(service: Service) -> None:
    await put(service, ARTICLE, "en", title="x")
    await put(service, ARTICLE, "de", title="y")
    one = await service.dashboard.delete(path(ARTICLE), params={"language": "de"})
    assert one.json() == {"entryId": ARTICLE, "id": ARTICLE[8:], "deleted": True, "language": "de"}
    again = await service.dashboard.delete(path(ARTICLE), params={"language": "de"})
    assert await refusal(again) == (404, "translation_not_found")
    await service.dashboard.delete(path(ARTICLE), params={"language": "en"})
    assert await refusal(await service.dashboard.get(path(ARTICLE))) == (404, "entry_not_found")
    await put(service, ARTICLE, "en", title="x")
    assert (await service.dashboard.delete(path(ARTICLE))).json()["deleted"] is True
    assert (await service.dashboard.get(ALL)).json()["items"] == []


async def test_everything_wrong_with_a_translation_is_named(service: Service) -> None:
    for body, pointers in (
        ({}, ["/language", "/fields"]),
        ({"language": "english", "fields": {}}, ["/fields"]),
        (
            {"language": "e", "fields": {"a": 1, "b" * 65: "x"}},
            ["/language", "/fields/a", f"/fields/{'b' * 65}"],
        ),
        ({"language": "fr", "fields": {"a": "x"}}, ["/language"]),
    ):
        answer = await service.dashboard.put(path(ARTICLE), json=body)
        assert await refusal(answer) == (422, "invalid_input")
        found = {each["pointer"].removesuffix("/[key]") for each in answer.json()["errors"]}
        assert set(pointers) <= found
    for params in ({"language": "e!"}, {"type": "page"}, {"missing": ""}):
        assert await refusal(await service.dashboard.get(ALL, params=params)) == (400, "bad_query")


async def test_a_viewer_reads_and_does_not_write(service: Service, tmp_path: Path) -> None:
    await put(service, ARTICLE, "en", title="x")
    change(tmp_path, "memberships", "role", "viewer")
    assert (await service.dashboard.get(path(ARTICLE))).status_code == 200
    refused = await service.dashboard.put(path(ARTICLE), json={"language": "en", "fields": {"a": "b"}})
    assert await refusal(refused) == (403, "permission_denied")
    assert await refusal(await service.dashboard.delete(path(ARTICLE))) == (403, "permission_denied")


@given(st.text(max_size=300))
def test_any_text_is_an_entry_id_or_refused_with_the_reason(text: str) -> None:
    try:
        read: str = parse_entry_id(text).entry_id
    except ValueError as error:
        read = str(error)
    assert read
    assert read == text or "id" in read or "key" in read


async def test_stale_update_is_refused_and_overwrites_nothing(service: Service) -> None:
    await put(service, ARTICLE, "en", title="Refunds")
    await put(service, ARTICLE, "de", title="Erstattung")
    seen = (await service.dashboard.get(path(ARTICLE), params={"language": "de"})).headers["etag"]
    await put(service, ARTICLE, "pt-BR", title="Reembolsos")
    body = {"language": "de", "fields": {"title": "Erstattungen"}}
    first = await service.dashboard.put(path(ARTICLE), json=body, headers={"If-Match": seen})
    assert first.status_code == 200, "another language is no change of this one"
    body = {"language": "de", "fields": {"title": "Geld zurück"}}
    second = await service.dashboard.put(path(ARTICLE), json=body, headers={"If-Match": seen})
    assert await refusal(second) == (412, "changed_meanwhile")
    now = await service.dashboard.get(path(ARTICLE), params={"language": "de"})
    assert now.json()["fields"] == {"title": "Erstattungen"}
    assert now.headers["etag"] == first.headers["etag"]
    await service.dashboard.request("DELETE", path(ARTICLE), json={}, params={"language": "de"})
    third = await service.dashboard.put(path(ARTICLE), json=body, headers={"If-Match": first.headers["etag"]})
    assert await refusal(third) == (412, "changed_meanwhile"), "it is not there any more"


async def test_concurrent_first_texts_of_a_language_conflict(service: Service) -> None:
    first, second = [
        await service.dashboard.put(
            path(ARTICLE),
            json={"language": "en", "fields": {"title": title}},
            headers={"If-None-Match": "*"},
        )
        for title in ("Refunds", "Money back")
    ]
    assert first.status_code == 200
    assert await refusal(second) == (412, "changed_meanwhile")
    assert "there already" in second.json()["detail"]
    assert second.headers["etag"] == first.headers["etag"]
    now = await service.dashboard.get(path(ARTICLE), params={"language": "en"})
    assert now.json()["fields"] == {"title": "Refunds"}
    german = {"language": "de", "fields": {"title": "Erstattung"}}
    new = await service.dashboard.put(path(ARTICLE), json=german, headers={"If-None-Match": "*"})
    assert new.status_code == 200, "what another language says is no matter"


async def test_any_tag_asks_for_a_text_that_is_there(service: Service) -> None:
    body = {"language": "en", "fields": {"title": "Refunds"}}
    missing = await service.dashboard.put(path(ARTICLE), json=body, headers={"If-Match": "*"})
    assert await refusal(missing) == (412, "changed_meanwhile")
    assert "etag" not in missing.headers
    assert (await service.dashboard.get(path(ARTICLE), params={"language": "en"})).status_code == 404
    await put(service, ARTICLE, "en", title="Money back")
    there = await service.dashboard.put(path(ARTICLE), json=body, headers={"If-Match": "*"})
    assert there.status_code == 200
