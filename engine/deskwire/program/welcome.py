"""What the first start prints: commands that can be pasted as they are."""

from __future__ import annotations

from pathlib import Path

from deskwire.program.first_start import Demo


def welcome(demo: Demo, base_url: str, written: Path) -> str:
    """The text for a terminal."""
    return f"""
Deskwire is running at {base_url}

  A demo project has been made. Its credentials are shown only now; they are also in {written}.

    server key   {demo.server_key}
    stream key   {demo.stream_key}
    user         {demo.email}
    password     {demo.password}

  Try it (paste into another terminal):

    # 1. a conversation comes in
    curl -s {base_url}/v3/s2s/conversations \\
      -H 'Authorization: Bearer {demo.server_key}' -H 'Content-Type: application/json' \\
      -d '{{"contact": {{"userId": "u1", "name": "Ada"}}, "message": {{"text": "Hello!"}}}}'

    # 2. ordered events come out
    curl -s '{base_url}/v3/s2s/events' -H 'Authorization: Bearer {demo.server_key}'

    # 3. what an agent sees
    curl -s {base_url}/v3/conversations -H 'project: {demo.project_id}' \\
      -H 'Authorization: Bearer {demo.token}'

  All calls can be tried in a browser, too: {base_url}/docs

  Stop it with Ctrl-C.
"""


def running(base_url: str, written: Path) -> str:
    """What every other start prints."""
    where = f"The demo project's credentials are in {written}.\n" if written.exists() else ""
    return f"Deskwire is running at {base_url}\n{where}Stop it with Ctrl-C."
