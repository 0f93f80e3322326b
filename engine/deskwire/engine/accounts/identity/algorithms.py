"""The signature algorithms of an identity provider's tokens that are taken (decisions 2)."""

from __future__ import annotations

from typing import Final, Literal, get_args

Algorithm = Literal["RS256", "ES256", "EdDSA"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
