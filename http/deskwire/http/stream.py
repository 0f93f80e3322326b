"""Authorizations for the realtime stream, and who consumes it (contract 4.4, decisions 5)."""

from __future__ import annotations

from deskwire.http.routing import S2S, Routes

routes = Routes(S2S)
