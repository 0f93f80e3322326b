"""The published OpenID provider `oidc-provider-mock`, and a service that signs people in with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page

from tests.support.api.openid import mock_provider
from tests.web.harness.sign_in import staged_at_localhost
from tests.web.harness.stage import Stage


@dataclass
class Provider:
    """The running provider. Its address has a host name."""

    issuer: str

    def person(self, subject: str, **claims: Any) -> None:
        """Create a person of the company."""
        httpx.put(f"{self.issuer}/users/{subject}", json=claims, trust_env=False).raise_for_status()

    def approve(self, page: Page, subject: str) -> None:
        """Sign in at the provider's page."""
        page.wait_for_url(f"{self.issuer}/**")
        page.locator("input[name=sub]").fill(subject)
        page.get_by_role("button", name="Authorize").click()

    def deny(self, page: Page) -> None:
        """Refuse the sign-in at the provider's page."""
        page.wait_for_url(f"{self.issuer}/**")
        page.get_by_role("button", name="Deny").click()


@contextmanager
def staged_with_provider(directory: Path, **environ: str) -> Iterator[tuple[Stage, Provider]]:
    """Start a provider, and a service that signs people in with it, named Example Ltd."""
    secret = directory / "client-secret"
    secret.write_text("a secret of the client\n")
    with mock_provider() as server:
        provider = Provider(server.issuer)
        settings = {
            "DESKWIRE_OIDC_ISSUER": provider.issuer,
            "DESKWIRE_OIDC_CLIENT_ID": "deskwire",
            "DESKWIRE_OIDC_CLIENT_SECRET_FILE": str(secret),
            "DESKWIRE_OIDC_LABEL": "Example Ltd",
            **environ,
        }
        with staged_at_localhost(directory, **settings) as stage:
            yield stage, provider
