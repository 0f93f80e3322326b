"""The signature algorithms of an identity provider's tokens, and the claims that may name a user (decisions 2)."""

from __future__ import annotations

from typing import Final, Literal, get_args

Algorithm = Literal["RS256", "ES256", "EdDSA"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
UserClaim = Literal["sub", "email"]
"""The claim by which a token names its user."""
