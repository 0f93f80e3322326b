"""The recorded calls about members, accounts, their sessions and tokens, and the push of the trail."""

from __future__ import annotations

from typing import Any

import httpx

from deskwire.engine.audit.audited_changes import shown_url
from tests.api.audit.stage import CLIENT, NEW_PASSWORD, Stage, done
from tests.support.api.browsers import PAGE, browser, enter, staff
from tests.support.api.links import invited
from tests.support.api.staff import PASSWORD, client, hire, organisation_of, sign_in
from tests.support.log_leaks import plant


async def add_member(stage: Stage) -> Any:
    path, body = await stage.members(), {"email": "ada@example.com", "role": "agent"}
    changes = {"role": {"before": None, "after": "agent"}}
    return done(lambda: stage.owner.post(path, json=body), "user", changes=changes)


async def change_member(stage: Stage) -> Any:
    path = f"{await stage.members()}/{(await hire(stage.service, 'agent'))['id']}"
    changes = {"role": {"before": "agent", "after": "admin"}}
    return done(lambda: stage.owner.patch(path, json={"role": "admin"}), "user", changes=changes)


ROLE = {"name": "Reader", "description": "", "permissions": ["tickets.read"]}


async def create_role(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}/roles"
    changes = {name: {"before": None, "after": value} for name, value in ROLE.items()}
    return done(lambda: stage.owner.post(path, json=ROLE), "user", changes=changes)


async def new_role(stage: Stage) -> str:
    """Create a role, and return its path."""
    path = f"/organisations/{await organisation_of(stage.service)}/roles"
    answer = await stage.owner.post(path, json=ROLE)
    assert answer.status_code == 200, answer.text
    return f"{path}/{answer.json()['id']}"


async def change_role(stage: Stage) -> Any:
    path, wider = await new_role(stage), ["surveys.read", "tickets.read"]
    changes = {"permissions": {"before": ["tickets.read"], "after": wider}}
    return done(lambda: stage.owner.patch(path, json={"permissions": wider}), "user", changes=changes)


async def delete_role(stage: Stage) -> Any:
    path = await new_role(stage)
    changes = {name: {"before": value, "after": None} for name, value in ROLE.items()}
    return done(lambda: stage.owner.delete(path), "user", changes=changes)


async def remove_member(stage: Stage) -> Any:
    path = f"{await stage.members()}/{(await hire(stage.service, 'agent'))['id']}"
    changes = {"role": {"before": "agent", "after": None}}
    return done(lambda: stage.owner.delete(path), "user", changes=changes)


async def change_me(stage: Stage) -> Any:
    changes = {"name": {"before": "Demo owner", "after": "Ada"}}
    return done(lambda: stage.owner.patch("/users/me", json={"name": "Ada"}), "user", changes=changes)


async def delete_me(stage: Stage) -> Any:
    hired = await hire(stage.service, "agent")
    token = (await sign_in(stage.service, hired["email"], hired["password"], PASSWORD)).json()["token"]

    async def leave() -> httpx.Response:
        async with client(stage.service, token) as http:
            return await http.delete("/users/me")

    return done(leave, "user", address=None)  # hers is gone with her


async def set_password(stage: Stage) -> Any:
    body = {"password": stage.service.demo["user"]["password"], "newPassword": NEW_PASSWORD}

    async def change() -> httpx.Response:
        answer = await stage.owner.post("/users/me/password", json=body)
        stage.owner.headers["Authorization"] = f"Bearer {answer.json()['token']}"  # the old one has ended
        return answer

    return done(change, "user")


async def issue_token(stage: Stage) -> Any:
    user = stage.service.demo["user"]
    return done(
        lambda: sign_in(stage.service, user["email"], user["password"]),
        "user",
        details={"method": "password"},
    )


def page_of(stage: Stage, cookies: httpx.Cookies | None = None) -> httpx.AsyncClient:
    """A browser with these cookies; use it as a context."""
    page = browser(stage.service, {**PAGE, "X-Forwarded-For": CLIENT})
    page.cookies.update(cookies)
    return page


async def session_of(stage: Stage, email: str, password: str = PASSWORD) -> httpx.Cookies:
    """Return the cookies of a user who has signed in with a browser."""
    async with page_of(stage) as page:
        assert (await enter(page, email, password)).status_code == 200
        return page.cookies


async def owners_session(stage: Stage) -> httpx.Cookies:
    user = stage.service.demo["user"]
    return await session_of(stage, user["email"], user["password"])


async def pushed(stage: Stage) -> str:
    """The path of the push of the trail, which is set up."""
    path = f"/organisations/{await organisation_of(stage.service)}/audit/push"
    plant((await stage.owner.put(path, json={"url": stage.receiver})).json()["secret"])
    return path


async def put_push(stage: Stage) -> Any:
    path, url = await pushed(stage), "https://127.0.0.1:9443/siem"
    changes = {"url": {"before": shown_url(stage.receiver), "after": url}}
    return done(lambda: stage.owner.put(path, json={"url": url}), "user", changes=changes)


async def rotate_push_secret(stage: Stage) -> Any:
    path = await pushed(stage)
    return done(lambda: stage.owner.post(f"{path}/rotate-secret"), "user", changes={})


async def delete_push(stage: Stage) -> Any:
    path = await pushed(stage)
    return done(lambda: stage.owner.delete(path), "user")


async def token_of(stage: Stage) -> tuple[str, str]:
    """The id of an access token of a new agent, and that of the agent."""
    hired = await hire(stage.service, "agent")
    issued = (await sign_in(stage.service, hired["email"], hired["password"], PASSWORD)).json()
    return issued["id"], hired["id"]


async def end_token(stage: Stage) -> Any:
    user = stage.service.demo["user"]
    issued = (await sign_in(stage.service, user["email"], user["password"])).json()

    async def end() -> httpx.Response:
        async with client(stage.service, issued["token"]) as http:
            return await http.post("/auth/token/revoke", headers={"X-Forwarded-For": CLIENT})

    return done(end, "user", details={"token": issued["id"]})


async def end_token_by_id(stage: Stage) -> Any:
    user = stage.service.demo["user"]
    issued = (await sign_in(stage.service, user["email"], user["password"])).json()
    path = f"/users/me/tokens/{issued['id']}"
    return done(lambda: stage.owner.delete(path), "user", details={"token": issued["id"]})


async def end_member_token(stage: Stage) -> Any:
    token, user = await token_of(stage)
    path = f"{await stage.members()}/{user}/tokens/{token}"
    return done(lambda: stage.owner.delete(path), "user", details={"token": token})


async def start_session(stage: Stage) -> Any:
    user = stage.service.demo["user"]

    async def start() -> httpx.Response:
        async with page_of(stage) as page:
            return await enter(page, user["email"], user["password"])

    return done(start, "user")


async def prove_session(stage: Stage) -> Any:
    cookies = await owners_session(stage)
    password = stage.service.demo["user"]["password"]

    async def prove() -> httpx.Response:
        async with page_of(stage, cookies) as page:
            return await page.post("/auth/session/proof", json={"password": password})

    return done(prove, "user", details={"method": "password"})


async def end_session(stage: Stage) -> Any:
    cookies = await owners_session(stage)

    async def end() -> httpx.Response:
        async with page_of(stage, cookies) as page:
            return await page.delete("/auth/session")

    return done(end, "user")


async def end_session_by_id(stage: Stage) -> Any:
    await owners_session(stage)
    (session,) = (await stage.owner.get("/users/me/sessions")).json()["items"]
    return done(lambda: stage.owner.delete(f"/users/me/sessions/{session['id']}"), "user")


async def end_sessions(stage: Stage) -> Any:
    await owners_session(stage)
    cookies = await owners_session(stage)

    async def end() -> httpx.Response:
        async with page_of(stage, cookies) as page:
            return await page.delete("/users/me/sessions", params={"others": "true"})

    return done(end, "user")


async def end_member_sessions(stage: Stage) -> Any:
    hired = await staff(stage.service, "agent")
    await session_of(stage, hired["email"])
    path = f"{await stage.members()}/{hired['id']}/sessions"
    return done(lambda: stage.owner.delete(path), "user")


async def end_member_session(stage: Stage) -> Any:
    hired = await staff(stage.service, "agent")
    await session_of(stage, hired["email"])
    path = f"{await stage.members()}/{hired['id']}/sessions"
    (session,) = (await stage.owner.get(path)).json()["items"]
    return done(lambda: stage.owner.delete(f"{path}/{session['id']}"), "user")


async def renew_member_password(stage: Stage) -> Any:
    hired = await staff(stage.service, "agent")
    path = f"{await stage.members()}/{hired['id']}/password"
    return done(lambda: stage.owner.post(path), "user")


async def create_invitation(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}/invitations"
    body, changes = (
        {"email": "ada@example.com", "role": "agent"},
        {"role": {"before": None, "after": "agent"}},
    )
    return done(lambda: stage.owner.post(path, json=body), "user", changes=changes)


async def revoke_invitation(stage: Stage) -> Any:
    path = await invitation_of(stage)
    return done(lambda: stage.owner.delete(path), "user")


async def renew_invitation(stage: Stage) -> Any:
    path = await invitation_of(stage)
    return done(lambda: stage.owner.post(f"{path}/renew"), "user")


async def invitation_of(stage: Stage) -> str:
    """Return the path of a new invitation."""
    organisation, made = await organisation_of(stage.service), await invited(stage.service)
    return f"/organisations/{organisation}/invitations/{made['id']}"


async def create_password_link(stage: Stage) -> Any:
    path = f"{await stage.members()}/{(await hire(stage.service, 'agent'))['id']}/password-link"
    return done(lambda: stage.owner.post(path), "user")


async def use_link(stage: Stage) -> Any:
    token = (await invited(stage.service, name="Ada"))["url"].partition("#")[2]
    body = {"token": token, "password": PASSWORD}
    return done(
        lambda: stage.backend.post("/auth/links/use", json=body, headers={"Authorization": ""}), "user"
    )
