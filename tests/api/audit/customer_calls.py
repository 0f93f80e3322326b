"""The recorded calls about channels and the sessions of customers, and what their records say."""

from __future__ import annotations

from typing import Any

from tests.api.audit.stage import Stage, done
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.log_leaks import plant


async def create_channel(stage: Stage) -> Any:
    async def create() -> Any:
        answer = await stage.owner.post("/channels", json={"name": "Shop", "native": True})
        plant(answer.json()["identity"]["secret"])
        return answer

    settings = {
        "name": "Shop",
        "enabled": True,
        "origins": [],
        "identityMode": "optional",
        "publicKeys": [],
        "visitorsAllowed": True,
        "visitorsAsk": [],
        "colour": "#1f5eff",
        "position": "right",
        "texts": {},
        "startsWorkflow": None,
        "survey": None,
        "native": True,
    }
    changes = {name: {"before": None, "after": value} for name, value in settings.items()}
    return done(create, "user", changes=changes)


async def change_channel(stage: Stage) -> Any:
    path = f"/channels/{(await make_channel(stage.service))['id']}"
    changes = {"enabled": {"before": True, "after": False}}
    return done(lambda: stage.backend.patch(path, json={"enabled": False}), "server_key", changes=changes)


async def rotate_channel_secret(stage: Stage) -> Any:
    path = f"/channels/{(await make_channel(stage.service))['id']}/rotate-secret"

    async def rotate() -> Any:
        answer = await stage.owner.post(path)
        plant(answer.json()["identity"]["secret"])
        return answer

    return done(rotate, "user", changes={})


async def delete_channel(stage: Stage) -> Any:
    path = f"/channels/{(await make_channel(stage.service))['id']}"
    return done(lambda: stage.owner.delete(path), "user", changes={})


async def end_contact_session(stage: Stage) -> Any:
    contact = await stage.contact()
    channel = await make_channel(stage.service)
    async with Browser(stage.service, channel) as browser:
        assert (await browser.start(signed(channel, "u1"))).status_code == 200
    who = contact["id"] if stage.by_user else "u1"
    path = f"{stage.base}/contacts/{who}/sessions"
    (session,) = (await stage.caller.get(path)).json()["items"]
    return done(
        lambda: stage.caller.delete(f"{path}/{session['id']}"),
        stage.actor,
        details={"session": session["id"]},
        object={"type": "contact", "id": contact["id"], "name": None},
    )
