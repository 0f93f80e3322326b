"""After a session's end the page shows no data, and stored data is encrypted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.harness.desk import NETWORK, Desk
from tests.web.harness.stage import PASSWORD, Stage

SECRETS = ("Ada Secretson", "I want my parrot back", "Half a sentence", "confidential-tag")

KEPT = """async () => {
  const found = [];
  for (const key of Object.keys(localStorage)) found.push(localStorage.getItem(key));
  const db = await new Promise(done => { const ask = indexedDB.open("deskwire"); ask.onsuccess = () => done(ask.result); });
  for (const name of db.objectStoreNames) {
    const all = await new Promise(done => { const ask = db.transaction(name).objectStore(name).getAll(); ask.onsuccess = () => done(ask.result); });
    for (const each of all) for (const value of Object.values(each)) found.push(value instanceof Blob ? await value.text() : value instanceof Uint8Array ? new TextDecoder("latin1").decode(value) : JSON.stringify(value));
  }
  db.close();
  return found.join("\\n");
}"""
"""All data stored in the browser."""


def end_sessions(stage: Stage, email: str) -> None:
    """End all sessions of a user, like an admin or another device."""
    client = stage.client(email)
    for session in client.get("/users/me/sessions").json()["items"]:
        client.delete(f"/users/me/sessions/{session['id']}").raise_for_status()


@pytest.fixture
def grace(window: Callable[..., Desk], stage: Stage) -> Desk:
    """Grace, with a draft for Ada."""
    conversation = stage.converse("ada", "I want my parrot back", name="Ada Secretson")
    stage.owner.patch(f"/conversations/{conversation['id']}", json={"tags": ["confidential-tag"]})
    desk = window(stage)
    desk.tolerated.append(NETWORK)
    desk.sign_in(stage.person("Grace", "agent"), PASSWORD)
    desk.converse("Ada Secretson")
    expect(desk.said("I want my parrot back")).to_be_visible()
    desk.box.fill("Half a sentence")
    desk.page.locator(".log").focus()
    desk.page.keyboard.press("a")
    expect(desk.page.locator(".toasts")).to_contain_text("Ada Secretson: assigned to you")
    return desk


def readable(desk: Desk) -> str:
    """Return all text of the document: markup, field values, title, and live regions."""
    values = "Array.from(document.querySelectorAll('input, textarea'), each => each.value).join('\\n')"
    return "\n".join(
        [
            desk.page.content(),
            desk.page.title(),
            desk.page.evaluate(values),
            desk.page.locator("body").aria_snapshot(),
        ]
    )


@pytest.mark.journey
def test_page_is_cleared_behind_the_sign_in_dialog(grace: Desk) -> None:
    assert any(each in readable(grace) for each in SECRETS)
    end_sessions(grace.stage, "grace@demo.example")
    dialog = grace.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Your session has ended")
    expect(grace.page.locator(".thread")).to_have_count(0)
    seen = readable(grace)
    assert [each for each in SECRETS if each in seen] == []
    assert grace.page.title() == "Deskwire"
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in").click()
    expect(grace.said("I want my parrot back")).to_be_visible()
    expect(grace.box).to_have_value("Half a sentence")


@pytest.mark.journey
def test_another_user_gets_none_of_the_data(grace: Desk) -> None:
    ken = grace.stage.person("Ken", "agent")
    end_sessions(grace.stage, "grace@demo.example")
    dialog = grace.page.get_by_role("dialog")
    dialog.get_by_label("Email").fill(ken)
    dialog.get_by_label("Password", exact=True).fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in").click()
    expect(grace.said("I want my parrot back")).to_be_visible()  # Ken can read the address, too
    expect(grace.box).to_have_value("")
    assert "Half a sentence" not in readable(grace)


@pytest.mark.journey
def test_stored_data_is_encrypted(grace: Desk) -> None:
    grace.stage.close_road()
    grace.page.locator(".composer input[type=file]").set_input_files(
        {"name": "a.txt", "mimeType": "text/plain", "buffer": b"an attached secret"}
    )
    grace.reply("An unsent secret of Grace")
    grace.box.fill("Half a sentence")
    expect(grace.page.get_by_text("An unsent secret of Grace")).to_be_visible()
    kept = grace.page.evaluate(KEPT)
    for each in (*SECRETS, "An unsent secret", "an attached secret"):
        assert each not in kept
    grace.stage.open_road()


def test_data_of_an_older_version_is_encrypted(grace: Desk) -> None:
    (key,) = grace.page.evaluate(
        "Object.keys(localStorage).filter(each => each.startsWith('deskwire.draft.'))"
    )
    plain: dict[str, Any] = {"text": "From an older version", "internal": False, "files": [], "at": 1}
    old = key.removesuffix(".reply")  # an older version stored one text for a conversation
    assert old != key
    grace.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [old, json.dumps(plain)])
    grace.page.reload()
    expect(grace.box).to_have_value(re.compile("From an older version"))
    assert "From an older version" not in grace.page.evaluate(KEPT)
    grace.page.reload()
    expect(grace.box).to_have_value(re.compile("From an older version"))


def test_draft_under_a_replaced_secret_is_reported(grace: Desk) -> None:
    (key,) = grace.page.evaluate(
        "Object.keys(localStorage).filter(each => each.startsWith('deskwire.draft.'))"
    )
    sealed = grace.page.evaluate("key => localStorage.getItem(key)", key)
    other = "s1." + "A" * 32 + "." + sealed.rsplit(".", 1)[1]
    key = re.sub(r"cnv_\w+", f"cnv_{'0' * 26}", key)  # not the key that the open page keeps writing
    grace.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [key, other])
    grace.page.reload()
    expect(grace.page.locator(".toast.bad")).to_contain_text("can't be decrypted")
    assert grace.page.evaluate("key => localStorage.getItem(key)", key) == other


def test_undecryptable_texts_are_listed_and_removed(grace: Desk) -> None:
    page = grace.page
    (key,) = page.evaluate("Object.keys(localStorage).filter(each => each.startsWith('deskwire.draft.'))")
    sealed = page.evaluate("key => localStorage.getItem(key)", key)
    other = "s1." + "A" * 32 + "." + sealed.rsplit(".", 1)[1]
    page.evaluate("([key, value]) => localStorage.setItem(key, value)", [f"{key}.unopened", other])
    page.reload()
    page.locator(".toast.bad").get_by_role("button", name="Show").click()
    listed = page.get_by_role("dialog", name="Undecryptable texts")
    expect(listed.get_by_text("Draft of a reply")).to_be_visible()
    listed.get_by_role("button", name="Remove", exact=True).click()
    expect(listed.get_by_text("No undecryptable texts.")).to_be_visible()
    assert page.evaluate("key => localStorage.getItem(key)", f"{key}.unopened") is None
    assert page.evaluate("key => localStorage.getItem(key)", key) is not None


def test_storage_keys_require_a_session_and_differ_by_user(grace: Desk) -> None:
    ask = "async () => (await (await fetch('/v3/auth/session')).json()).storageKeys"
    (first,) = grace.page.evaluate(ask)
    assert grace.page.evaluate(ask) == [first]
    assert first not in grace.page.evaluate(KEPT)
    end_sessions(grace.stage, "grace@demo.example")
    expect(grace.page.get_by_role("dialog")).to_be_visible()
    assert grace.page.evaluate(ask) == []
