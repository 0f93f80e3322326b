"""A service that signs people in with the OpenID provider `oidc-provider` of npm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.api.openid_npm import NpmProvider, npm_provider
from tests.support.sockets.server_process import free_port
from tests.web.harness.sign_in import staged_at_localhost
from tests.web.harness.stage import Stage

_CLIENT = "deskwire"
_SECRET = "a secret: of the client & more"  # must be encoded before it is sent (RFC 6749 2.3.1)


@contextmanager
def staged_with_npm_provider(directory: Path) -> Iterator[tuple[Stage, NpmProvider]]:
    """Start the provider, and a service at another site that signs people in with it, named Example Ltd."""
    port, secret = free_port(), directory / "client-secret"
    secret.write_text(f"{_SECRET}\n")
    with npm_provider(_CLIENT, _SECRET, [f"http://localhost:{port}"]) as provider:
        settings = {
            "DESKWIRE_OIDC_ISSUER": provider.issuer,
            "DESKWIRE_OIDC_CLIENT_ID": _CLIENT,
            "DESKWIRE_OIDC_CLIENT_SECRET_FILE": str(secret),
            "DESKWIRE_OIDC_LABEL": "Example Ltd",
        }
        with staged_at_localhost(directory, port, **settings) as stage:
            yield stage, provider
