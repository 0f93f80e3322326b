"""The published OpenID provider `oidc-provider` of the npm registry, with its own pages, and a browser that fills in their forms."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from html import unescape
from subprocess import PIPE
from typing import Any, Final
from urllib.parse import urljoin

import httpx

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.npm_packages import require_packages
from tests.support.root import ROOT

FOLDER: Final = ROOT / "tests/web/openid"
_FORM: Final = re.compile(r'<form\b[^>]*\baction="([^"]+)"')
_HIDDEN: Final = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


@dataclass
class NpmProvider:
    """The running provider, at another site than a service at `localhost`."""

    issuer: str
    process: subprocess.Popen[str]

    @property
    def logout_url(self) -> str:
        """The address of the provider's page for signing out."""
        return f"{self.issuer}/session/end"

    def person(self, subject: str, **claims: Any) -> None:
        """Create or change a person of the company."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps({'sub': subject, **claims})}\n")
        self.process.stdin.flush()
        assert (answered := self.output()) == subject, answered

    def output(self) -> str:
        """Return the next line of the provider's output: `reported` after a logout that the client has accepted."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def npm_provider(
    client_id: str, secret: str, services: Sequence[str], *, sid: bool = True
) -> Iterator[NpmProvider]:
    """Run the provider with one client, the services at these addresses; logouts are reported to the first.

    Args:
        sid: whether tokens name the provider's session (`sid`) besides the person.
    """
    require_packages(FOLDER)
    client = {
        "client_id": client_id,
        "client_secret": secret,
        "redirect_uris": [f"{url}/v3/auth/oidc/callback" for url in services],
        "backchannel_logout_uri": f"{services[0]}/v3/auth/oidc/backchannel-logout",
        "backchannel_logout_session_required": sid,
    }
    command = ["node", str(FOLDER / "provider.mjs"), json.dumps(client)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            issuer = process.stdout.readline().strip()
            assert issuer, "the provider has not started"
            yield NpmProvider(issuer, process)
        finally:
            process.stdin.close()
            process.wait(HANG_TIMEOUT_S)


@dataclass
class ProviderPages:
    """A browser at the provider's pages, with its cookies there."""

    provider: NpmProvider
    http: httpx.AsyncClient

    async def sign_in(self, url: str, subject: str) -> str:
        """Sign in and consent, as far as the provider asks for it; return the URL of the callback."""
        answer = await self.http.get(url)
        while True:
            if answer.is_redirect:
                target = urljoin(str(answer.url), answer.headers["Location"])
                if not target.startswith(self.provider.issuer):
                    return target
                answer = await self.http.get(target)
            else:
                answer = await self._send(answer, login=subject, password="any")

    async def sign_out(self) -> None:
        """Sign out at the provider."""
        answer = await self._send(await self.http.get(self.provider.logout_url), logout="yes")
        assert answer.is_redirect, answer.text

    async def _send(self, page: httpx.Response, **fields: str) -> httpx.Response:
        """Send the form of a page with these fields and its hidden ones."""
        form = _FORM.search(page.text)
        assert form is not None, page.text
        hidden = {name: unescape(value) for name, value in _HIDDEN.findall(page.text)}
        return await self.http.post(urljoin(str(page.url), unescape(form[1])), data={**hidden, **fields})


@asynccontextmanager
async def provider_pages(provider: NpmProvider) -> AsyncIterator[ProviderPages]:
    """Yield a browser without cookies."""
    async with httpx.AsyncClient(trust_env=False) as http:
        yield ProviderPages(provider, http)
