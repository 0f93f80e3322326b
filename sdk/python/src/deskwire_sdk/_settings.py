"""Settings of a client, from its arguments and the environment."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from deskwire_sdk._requests import Request
from deskwire_sdk.errors import DeskwireError

API_KEY_VARIABLE: Final = "DESKWIRE_API_KEY"
URL_VARIABLE: Final = "DESKWIRE_URL"
TIMEOUT_S: Final = 30.0
MAX_RETRIES: Final = 4


def own_version() -> str:
    """Return the version of the SDK; `0+unknown` if it is not installed."""
    try:
        return version("deskwire-sdk")
    except PackageNotFoundError:
        return "0+unknown"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a client; `timeout` is in seconds."""

    base_url: str
    api_key: str | None = field(repr=False)
    project: str | None
    timeout: float
    max_retries: int

    def headers(self, request: Request, key: str | None) -> dict[str, str]:
        """Return the headers of an attempt.

        Args:
            key: the `Idempotency-Key` of all attempts, or None.

        Raises:
            DeskwireError: the call needs a credential, and there is none.
        """
        sent = {
            "User-Agent": f"deskwire-sdk-python/{own_version()} python/{platform.python_version()}",
            **{name: value for name, value in request.headers.items() if value is not None},
        }
        if request.credential:
            if self.api_key is None:
                raise DeskwireError(
                    f"This call needs a credential: give `api_key` or set {API_KEY_VARIABLE}."
                )
            sent["Authorization"] = f"Bearer {self.api_key}"
        if request.project and self.project is not None:
            sent["project"] = self.project
        if key is not None:
            sent["Idempotency-Key"] = key
        return sent


def settings(
    api_key: str | None, base_url: str | None, project: str | None, timeout: float, max_retries: int
) -> Settings:
    """Return the settings of a client; the environment has address and credential if they are None.

    Raises:
        DeskwireError: no address is given, or it is not one, or the credential cannot be one.
    """
    url = base_url or os.environ.get(URL_VARIABLE)
    if not url:
        raise DeskwireError(f"Where is the service? Give `base_url` or set {URL_VARIABLE}.")
    if not url.startswith(("http://", "https://")):
        raise DeskwireError(f"The address must begin with http:// or https://, not as {url!r} does.")
    key = (api_key or os.environ.get(API_KEY_VARIABLE) or "").strip() or None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise DeskwireError("The credential has a character that no credential has.")  # it is never shown
    return Settings(url.rstrip("/").removesuffix("/v3"), key, project, timeout, max_retries)
