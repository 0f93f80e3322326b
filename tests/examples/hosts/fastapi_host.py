"""Runs `support.py` of the guide for FastAPI with a sign-in by a header: python fastapi_host.py PORT."""

from __future__ import annotations

import sys

import support
import uvicorn
from fastapi import HTTPException, Request


async def user(request: Request) -> str:
    """Return the user whom the test names."""
    if "X-User" not in request.headers:
        raise HTTPException(401)
    return request.headers["X-User"]


support.app.dependency_overrides[support.current_user] = user
uvicorn.run(support.app, port=int(sys.argv[1]), log_level="warning")
