"""Sign-ins at an OpenID provider, as a browser goes through them, and the published provider `oidc-provider-mock`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx

from deskwire.config.oidc import OidcProvider
from deskwire.engine.accounts.identity.oidc.role_rules import RoleRule
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.log_leaks import plant

CLIENT_ID = "deskwire-client"
SECRET = plant("a secret of the client & more")
NAVIGATION = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}


def provider(folder: Path, issuer: str, name: str = "oidc", **settings: Any) -> OidcProvider:
    """Return the settings of a provider, with the client's secret in a file of the folder.

    Rules are given as `roles={"value": "role"}`.
    """
    file = folder / "oidc-secret"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{SECRET}\n")
    settings.setdefault("client_secret_file", file)
    rules = tuple(RoleRule(value, role) for value, role in settings.pop("roles", {}).items())
    return OidcProvider(name=name, issuer=issuer, client_id=CLIENT_ID, roles=rules, **settings)


@dataclass
class MockProvider:
    """The running `oidc-provider-mock`."""

    issuer: str

    def user(self, subject: str, **claims: Any) -> None:
        """Create a user of the provider."""
        httpx.put(f"{self.issuer}/users/{subject}", json=claims).raise_for_status()

    async def approve(self, url: str, subject: str | None) -> str:
        """Sign in at the page of the provider, or deny it; return the URL of the callback."""
        form = {"action": "deny"} if subject is None else {"sub": subject}
        async with httpx.AsyncClient() as http:
            answer = await http.post(url, data=form)
        assert answer.status_code == 302, answer.text
        return str(answer.headers["Location"])


_MOCK: Final = """
import sys, oidc_provider_mock
with oidc_provider_mock.run_server_in_thread() as server:
    print(server.server_port, flush=True)
    sys.stdin.read()
"""


@contextmanager
def mock_provider() -> Iterator[MockProvider]:
    """Run `oidc-provider-mock` in a process of its own, because it uses deprecated parts of its libraries."""
    command = [sys.executable, "-W", "ignore", "-c", _MOCK]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield MockProvider(f"http://localhost:{int(process.stdout.readline())}")
        finally:
            process.stdin.close()
            process.wait(HANG_TIMEOUT_S)


@dataclass
class Browser:
    """A browser with its cookies, which leaves the strict ones out of requests that another site leads to."""

    service: Service
    http: httpx.AsyncClient
    cookies: dict[str, str] = field(default_factory=dict)

    async def go(
        self, path: str, *, foreign: bool = False, site: str | None = "same-origin"
    ) -> httpx.Response:
        """Open a page, and keep the cookies that it sets. `site` is the `Sec-Fetch-Site`, None for an old browser."""
        shown = {
            name: value
            for name, value in self.cookies.items()
            if not foreign or name.startswith("deskwire-oidc-")
        }
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in shown.items())} if shown else {}
        named = NAVIGATION if foreign else {} if site is None else {"Sec-Fetch-Site": site}
        answer = await self.http.get(f"{self.service.url}{path}", headers={**headers, **named})
        for cookie in answer.headers.get_list("set-cookie"):
            name, _, rest = cookie.partition("=")
            self.cookies[name] = rest.partition(";")[0]
        return answer

    async def start(self, name: str = "oidc", **parameters: str) -> str:
        """Begin a sign-in; return where the browser is led to."""
        query = httpx.QueryParams({"provider": name, **parameters})
        answer = await self.go(f"/v3/auth/oidc/start?{query}")
        assert answer.status_code == 303, answer.text
        return str(answer.headers["Location"])

    async def come_back(self, url: str) -> str:
        """Open the callback's URL; return where the browser is led to."""
        parts = urlsplit(url)
        answer = await self.go(f"{parts.path}?{parts.query}", foreign=True)
        assert answer.status_code == 303, answer.text
        return str(answer.headers["Location"])

    async def sign_in(self, at: MockProvider, subject: str, name: str = "oidc", **parameters: str) -> str:
        """Sign in at a provider; return where the browser is led to."""
        return await self.come_back(await at.approve(await self.start(name, **parameters), subject))

    async def session(self) -> dict[str, Any]:
        """Return the session that the page sees."""
        answer = await self.go("/v3/auth/session")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@asynccontextmanager
async def browsing(service: Service) -> AsyncIterator[Browser]:
    """Yield a browser without cookies."""
    async with caller(service.url, {}) as http:
        yield Browser(service, http)


def parameters(url: str) -> Mapping[str, str]:
    """Return the parameters of a URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def state_of(url: str) -> str:
    """Return the state in a URL."""
    found = re.search(r"[?&]state=([\w-]+)", url)
    assert found is not None, url
    return found[1]
