"""Runs `support.py` of the guide for FastAPI with a sign-in by a header: python fastapi_host.py PORT."""

from __future__ import annotations

import sys

import support
import uvicorn
from fastapi import HTTPException, Request


async def user(request: Request) -> str:
    """Return the user whom the test names."""
    name: str | None = request.headers.get("X-User")
    if name is None:
        raise HTTPException(401)
    return name


support.app.dependency_overrides[support.current_user] = user
uvicorn.run(support.app, port=int(sys.argv[1]), log_level="warning")
