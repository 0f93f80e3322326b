"""The calls about accounts: signing in, members, projects, credentials, the audit trail; and about the service itself."""

from __future__ import annotations

import base64
from contextlib import AsyncExitStack

import httpx

from deskwire.engine.accounts.factors.totp import totp_code
from deskwire.engine.core.clock import wall_clock
from tests.clients.tour.backend import SINCE, UNTIL, owner
from tests.clients.tour.recorder import Recorder
from tests.support.api.browsers import browser, enter, staff
from tests.support.api.openid import CLIENT_ID, browsing, parameters
from tests.support.api.staff import PASSWORD, client, organisation_of, sign_in
from tests.support.authenticator import Authenticator
from tests.support.sockets.push_service import PushBrowser


async def signing_in(call: Recorder) -> None:
    """Call the operations of signing in, as another member than the owner."""
    hired = await staff(call.service, "agent", "sign-in@example.org")
    credentials = {"email": hired["email"], "password": PASSWORD}
    await call("listSignInMethods")
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(browser(call.service))
        issued = await call("issueToken", client=page, body=credentials)
        await call("startSession", client=page, body={**credentials, "newPassword": None})
        await call("getSession", client=page)
        await call("proveSession", client=page, body={"password": PASSWORD})
        await web_push(call, page)
        await second_factor(call, page, credentials)
        await call("endSession", client=page)
        agent = await stack.enter_async_context(client(call.service, issued["token"]))
        await own_account(call, agent, page, hired["email"])


async def web_push(call: Recorder, page: httpx.AsyncClient) -> None:
    """Call the operations of web push in a session."""
    await call("getPushSubscription", client=page)
    its = PushBrowser("https://127.0.0.1:8443/push/tour")
    await call("putPushSubscription", client=page, body=its.subscription)
    await call("listPushes", client=page, limit=10)
    await call("deletePushSubscription", client=page)


async def second_factor(call: Recorder, page: httpx.AsyncClient, credentials: dict[str, str]) -> None:
    """Call the operations of second factors in a session, at a domain that allows passkeys."""
    page.headers["Host"] = f"localhost:{call.service.url.rpartition(':')[2]}"
    key = Authenticator(f"http://{page.headers['Host']}")
    options = await call("beginPasskey", client=page)
    body = {
        "challenge": options["challenge"],
        "credential": key.create(options["publicKey"]),
        "name": "Laptop",
    }
    passkey = (await call("addPasskey", client=page, body=body))["passkey"]
    options = await call("getProofPasskeyOptions", client=page)
    await call("proveSession", client=page, body={"passkey": key.get(options["publicKey"])})
    secret = (await call("beginTotp", client=page))["secret"]
    code = totp_code(base64.b32decode(secret), wall_clock() // 30_000)
    await call("confirmTotp", client=page, body={"code": code})
    await call("getFactors", client=page)
    codes = (await call("renewRecoveryCodes", client=page))["recoveryCodes"]
    waiting = (await page.post("/auth/session", json=credentials)).json()["challenge"]["id"]
    await call("getFactorPasskeyOptions", client=page, body={"challenge": waiting})
    await call("finishSignIn", client=page, body={"challenge": waiting, "recoveryCode": codes[0]})
    options = await call("getPasskeyOptions", client=page)
    signed = {"challenge": options["challenge"], "credential": key.get(options["publicKey"])}
    await call("signInByPasskey", client=page, body=signed)
    await call("removeTotp", client=page)
    await call("removePasskey", passkey["id"], client=page)


async def own_account(call: Recorder, agent: httpx.AsyncClient, page: httpx.AsyncClient, email: str) -> None:
    """Call the operations of the signed-in user, whose account is deleted at the end."""
    await call("getMe", client=agent)
    await call("changeMe", client=agent, body={"name": "Grace Hopper"})
    await call("getPermissions", client=agent, organisationId=await organisation_of(call.service))
    await enter(page, email)
    sessions = await call("listSessions", client=agent, limit=10)
    await call("endSessionById", sessions["items"][0]["id"], client=agent)
    await enter(page, email)
    await call("endSessions", client=agent, others=False)
    other = (await sign_in(call.service, email, PASSWORD)).json()
    await linked(call, email)
    settings = await call("getNotificationSettings", client=agent)
    quiet = {"start": "20:00", "end": "08:00", "days": ["sun"], "timeZone": "Europe/Berlin"}
    await call("putNotificationSettings", client=agent, body={**settings, "quietHours": quiet})
    identities = await call("listIdentities", client=agent)
    await call("unlinkIdentity", identities["items"][0]["id"], client=agent)
    await call("listTokens", client=agent, limit=10)
    await call("endTokenById", other["id"], client=agent)
    body = {"password": PASSWORD, "newPassword": f"{PASSWORD} 2"}
    renewed = await call("setPassword", client=agent, body=body)
    async with client(call.service, renewed["token"]) as again:
        await call("endToken", client=again)
    last = (await sign_in(call.service, email, f"{PASSWORD} 2")).json()["token"]
    async with client(call.service, last) as again:
        await call("deleteMe", client=again)


async def linked(call: Recorder, email: str) -> None:
    """Sign a user in at the identity provider, which binds the account."""
    async with browsing(call.service) as page:
        asked = parameters(await page.start())
        call.issuer.nonce = asked["nonce"]
        token = call.issuer.id_token(CLIENT_ID, email=email, email_verified=True)
        call.issuer.answers["/token"] = {"id_token": token, "token_type": "Bearer"}
        assert await page.come_back(f"/v3/auth/oidc/callback?code=c1&state={asked['state']}") == "/desk"


async def organisations(call: Recorder) -> None:
    """Call the operations of the organisation and its members."""
    organisation = await organisation_of(call.service)
    await call("listOrganisations", limit=10)
    await call("getOrganisation", organisation)
    limits = {"sessionIdleS": 3600, "sessionMaxS": None}
    await call("changeOrganisation", organisation, body={"name": "Demo & Co", **limits})
    body = {"email": "new@example.org", "name": None, "role": "agent"}
    member = (await call("addMember", organisation, body=body, Idempotency_Key="o1"))["id"]
    await call("listMembers", organisation, limit=10)
    await call("changeMember", organisation, member, body={"role": "viewer"})
    await call("getMember", organisation, member)
    hired = await staff(call.service, "agent", "tokens@example.org")
    tokens = await call("listMemberTokens", organisation, hired["id"], limit=10)
    await call("endMemberToken", organisation, hired["id"], tokens["items"][0]["id"])
    async with browser(call.service) as page:
        await enter(page, "tokens@example.org")
        sessions = await call("listMemberSessions", organisation, hired["id"], limit=10)
    await call("endMemberSession", organisation, hired["id"], sessions["items"][0]["id"])
    await call("endMemberSessions", organisation, hired["id"])
    await call("resetMemberFactors", organisation, hired["id"])
    await call("renewMemberPassword", organisation, hired["id"])
    await call("createPasswordLink", organisation, hired["id"])
    await links(call, organisation)
    await call("removeMember", organisation, member)
    await roles(call, organisation)


async def roles(call: Recorder, organisation: str) -> None:
    """Call the operations of roles."""
    await call("listPermissions")
    body = {"name": "Reader", "description": "Reads tickets.", "permissions": ["tickets.read"]}
    role = (await call("createRole", organisation, body=body, Idempotency_Key="o2"))["id"]
    await call("listRoles", organisation, limit=10)
    await call("changeRole", organisation, role, body={"permissions": ["tickets.read", "surveys.read"]})
    await call("getRole", organisation, role)
    await call("deleteRole", organisation, role)


async def links(call: Recorder, organisation: str) -> None:
    """Call the operations of invitations and one-time links."""
    body = {"email": "invited@example.org", "name": None, "role": "agent"}
    invitation = (await call("createInvitation", organisation, body=body))["id"]
    await call("listInvitations", organisation, limit=10)
    token = (await call("renewInvitation", organisation, invitation))["url"].partition("#")[2]
    async with browser(call.service) as page:
        await call("inspectLink", client=page, body={"token": token})
        used = {"token": token, "password": PASSWORD, "name": "Ada", "email": None, "organisationName": None}
        await call("useLink", client=page, body=used)
    again = (await call("createInvitation", organisation, body={**body, "email": "again@example.org"}))["id"]
    await call("revokeInvitation", organisation, again)


async def projects(call: Recorder) -> None:
    """Call the operations of projects, their keys and their credentials."""
    organisation = await organisation_of(call.service)
    await call("listProjects", limit=10)
    await call("listOrganisationProjects", organisation, limit=10)
    settings = {
        "archivedRetentionDays": None,
        "primaryLanguage": "en",
        "languages": ["en", "de"],
        "memoryEnabled": True,
    }
    project = (
        await call(
            "createProject", organisation, body={"name": "Shop", "settings": settings}, Idempotency_Key="p1"
        )
    )["id"]
    await call("changeProject", project, body={"settings": {"archivedRetentionDays": 90}})
    await call("getProject", project)
    key = (await call("createKey", project, body={"label": "CRM"}, Idempotency_Key="p2"))["id"]
    await call("listKeys", project, limit=10)
    await call("revokeKey", project, key)
    await call("getProjectHealth", call.service.demo["projectId"])
    await credentials(call, project)
    await call("deleteProject", project)


async def credentials(call: Recorder, project: str) -> None:
    """Call the operations of machine credentials."""
    body = {
        "name": "CRM",
        "permissions": ["tickets.manage", "tickets.read"],
        "expiresAt": "2027-11-01T12:00:00.000Z",
    }
    made = (await call("createCredential", project, body=body, Idempotency_Key="c1"))["id"]
    await call("listCredentials", project, limit=10)
    await call("changeCredential", project, made, body={"permissions": ["tickets.read"], "expiresAt": None})
    await call("getCredential", project, made)
    await call("rotateCredential", project, made, body={"overlapSeconds": 3600}, Idempotency_Key="c2")
    await call("revokeCredential", project, made)


async def audit(call: Recorder) -> None:
    """Call the operations of the audit trail."""
    organisation = await organisation_of(call.service)
    await call("putAuditPush", organisation, body={"url": call.receiver})
    await call("getAuditPush", organisation)
    await call("rotateAuditPushSecret", organisation, Idempotency_Key="a1")
    await call("deleteAuditPush", organisation)
    await call("listAuditRecords", organisation, limit=200)
    actor = await owner(call)
    await call(
        "listAuditRecords", organisation, actor=actor, action="project.created", since=SINCE, until=UNTIL
    )


async def service(call: Recorder) -> None:
    """Call the operations about the service itself."""
    await call("about")
    await call("healthz")
    await call("readyz")
    await call("openapiDocument")
    await call("asyncapiDocument")
