"""The issuer and verifier of access tokens, from the settings."""

from __future__ import annotations

from typing import Final

import httpx
import structlog
from msgspec import Struct

from deskwire.config.config import Config
from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.accounts.identity.provider_keys import (
    BadKeys,
    FileKeys,
    KeySource,
    UrlKeys,
    parse_jwks,
    parse_pem,
)
from deskwire.engine.accounts.identity.verifier import Provider, Verifier
from deskwire.engine.core.secret import Secrets

log: Final = structlog.get_logger(__name__)


class SigningError(Exception):
    """The configured keys can't be used; the text gives the reason."""


class Signing(Struct, frozen=True):
    """The issuer of access tokens and their verifier."""

    tokens: Tokens
    verifier: Verifier
    _keys: KeySource | None

    async def run(self) -> None:
        """Refresh the identity provider's keys, if there is one."""
        if self._keys is not None:
            await self._keys.run()


def signing_of(config: Config, secrets: Secrets) -> Signing:
    """Return the issuer and verifier of tokens. Call it inside Trio. Raises SigningError for an unusable file."""
    tokens = Tokens(secrets, config.jwt_issuer, config.jwt_audience)
    keys = _keys(config)
    provider = None if keys is None else _provider(config, keys)
    if keys is not None and config.jwt_issuer is None and config.jwt_audience is None:
        advice = "set DESKWIRE_JWT_ISSUER and DESKWIRE_JWT_AUDIENCE if the provider has other clients"
        log.warning("identity.tokens_for_others_are_taken", advice=advice)
    return Signing(tokens, Verifier(tokens if config.own_tokens else None, provider), keys)


def _provider(config: Config, keys: KeySource) -> Provider:
    algorithms = frozenset(config.jwt_algorithms)
    return Provider(
        keys,
        algorithms,
        config.jwt_issuer,
        config.jwt_audience,
        config.jwt_user_claim,
        config.jwt_type,
    )


def _keys(config: Config) -> KeySource | None:
    for file, parse in ((config.jwt_public_key_file, parse_pem), (config.jwt_jwks_file, parse_jwks)):
        if file is not None:
            try:
                return FileKeys(file, parse)
            except BadKeys as error:
                raise SigningError(f"The keys in {file} can't be used: {error}.") from error
    if config.jwt_jwks_url is None:
        return None
    trust = httpx.create_ssl_context()  # heeds SSL_CERT_FILE, for a private authority
    return UrlKeys(
        config.jwt_jwks_url,
        refresh_s=config.jwt_jwks_refresh_s,
        keep_s=config.jwt_jwks_keep_s,
        client=httpx.AsyncClient(verify=trust, timeout=None, trust_env=False),
    )
