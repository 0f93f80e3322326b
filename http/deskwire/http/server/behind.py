"""The server of every request that the fast path leaves, as the front knows it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from deskwire.http.server.connection import FrontStream


class HttpServer(Protocol):
    """A server of whole connections, whatever is asked on them."""

    def up(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which it serves; left when no connection is."""

    async def serve(self, stream: FrontStream) -> bool:
        """Serve a connection; return True if its next request is for others, with its bytes pushed back."""

    async def stop(self) -> None:
        """Let connections end: those that wait for a request at once, the others with their response."""
