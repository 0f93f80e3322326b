"""The signature algorithms that an identity provider's tokens may use (decisions 2)."""

from __future__ import annotations

from typing import Final, Literal, get_args

Algorithm = Literal["RS256", "ES256", "EdDSA"]
ALGORITHMS: Final[tuple[Algorithm, ...]] = get_args(Algorithm)
