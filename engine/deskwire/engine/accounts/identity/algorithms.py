"""The signature algorithms of identity providers' tokens, and the claims that may name a user (decisions 2).

Separate from `provider_keys` so that the settings do not import cryptography.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

Algorithm = Literal["RS256", "ES256", "EdDSA"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
UserClaim = Literal["sub", "email"]
"""The claim that names the user of a token."""
