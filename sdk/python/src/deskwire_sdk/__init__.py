"""The Python SDK of Deskwire: `Deskwire` and `AsyncDeskwire`, webhooks, mirrors and the realtime stream."""

from deskwire_sdk import types, webhooks
from deskwire_sdk._async.client import AsyncDeskwire
from deskwire_sdk._async.pages import AsyncPage
from deskwire_sdk._requests import OMIT
from deskwire_sdk._settings import own_version
from deskwire_sdk._sync.client import Deskwire
from deskwire_sdk._sync.pages import Page
from deskwire_sdk.errors import (
    APIError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    DeskwireError,
    ExportCut,
    Gone,
    InvalidResponse,
    NotFound,
    NotModified,
    PermissionDenied,
    PreconditionFailed,
    RateLimited,
    ServerError,
    ServiceUnavailable,
    StreamEnded,
    Superseded,
    Timeout,
    TooLarge,
    Unauthenticated,
    ValidationFailed,
    WebhookVerificationError,
)

__all__ = [
    "OMIT",
    "APIError",
    "AsyncDeskwire",
    "AsyncPage",
    "BadRequest",
    "Conflict",
    "ConnectionFailed",
    "Deskwire",
    "DeskwireError",
    "ExportCut",
    "Gone",
    "InvalidResponse",
    "NotFound",
    "NotModified",
    "Page",
    "PermissionDenied",
    "PreconditionFailed",
    "RateLimited",
    "ServerError",
    "ServiceUnavailable",
    "StreamEnded",
    "Superseded",
    "Timeout",
    "TooLarge",
    "Unauthenticated",
    "ValidationFailed",
    "WebhookVerificationError",
    "types",
    "webhooks",
]

__version__ = own_version()
