"""The demo project of a first start, and the text printed by each start (decisions 2)."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import structlog
from msgspec import Struct

from deskwire.engine.accounts.access_tokens import AccessToken
from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.accounts.members import join
from deskwire.engine.accounts.server_keys import hash_server_key, new_server_key, random_base62
from deskwire.engine.accounts.teams import Team
from deskwire.engine.audit.trail import ChangeOrigin
from deskwire.engine.channels.channel import new_channel, new_channel_secret
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.program.demo_password import DemoPassword
from deskwire.program.secret_file import write_private
from deskwire.storage.sqlite.directory import FILE_NAME, SECRET_FILE
from deskwire.storage.sqlite.search.file import FILE_NAME as SEARCH

log: Final = structlog.get_logger(__name__)

DEMO_FILE: Final = "demo.json"
DEMO_EMAIL: Final = "owner@demo.example"
DEMO_ORIGINS: Final = ("http://127.0.0.1", "http://localhost")
DEMO_TOKEN_S: Final = 30 * 24 * 3_600
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
_DATABASE: Final = (FILE_NAME, f"{FILE_NAME}-wal", SEARCH, f"{SEARCH}-wal")


def exposed(directory: Path) -> list[str]:
    """Return the names in the data directory that other users may read or write; `.` is the directory itself.

    Such modes can come from a restored backup or a volume; the program itself does not create them.
    """
    paths = (directory, *(directory / name for name in (SECRET_FILE, DEMO_FILE, *_DATABASE)))
    return [
        str(path.relative_to(directory))
        for path in paths
        if path.exists() and path.stat().st_mode & (_OTHERS if path != directory else _OTHERS_WRITE)
    ]


def _demo_channel(path: Path) -> str | None:
    """Return the id of the demo's channel; None without the demo's file, or if an older version wrote it."""
    if not path.exists():
        return None
    channel: str | None = json.loads(path.read_text()).get("channelId")
    return channel


def refresh_url(directory: Path, base_url: str) -> None:
    """Update the address in `demo.json`, if the file exists."""
    path = directory / DEMO_FILE
    if not path.exists():
        return
    document = json.loads(path.read_text())
    if document.get("baseUrl") != base_url:
        write_private(path, json.dumps({**document, "baseUrl": base_url}, indent=2) + "\n")


class Demo(Struct, frozen=True):
    """The demo project's credentials, which are shown once."""

    project_id: str
    server_key: str
    stream_key: str
    email: str
    password: str
    token: str
    channel_id: str
    channel_secret: str

    def document(self, base_url: str) -> dict[str, Any]:
        """Return the content of `demo.json`."""
        return {
            "baseUrl": base_url,
            "projectId": self.project_id,
            "serverKey": self.server_key,
            "streamKey": self.stream_key,
            "user": {"email": self.email, "password": self.password},
            "token": self.token,
            "channelId": self.channel_id,
            "channelSecret": self.channel_secret,
        }

    def write(self, directory: Path, base_url: str) -> Path:
        """Write `demo.json`, readable by its owner only. Return its path."""
        path = directory / DEMO_FILE
        write_private(path, json.dumps(self.document(base_url), indent=2) + "\n")
        return path


def keep_demo(demo: Demo, directory: Path, base_url: str, *, needed: bool) -> Path:
    """Write the demo's file. Return its path.

    Args:
        needed: whether a failure is an error; a node without data in its directory does not need the file.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        return demo.write(directory, base_url)
    except OSError as error:
        if needed:
            raise
        log.warning("demo.not_written", directory=str(directory), reason=error.strerror)
        return directory / DEMO_FILE


class DemoPlan(Struct, frozen=True):
    """The demo's ids and hashes, made before the commit."""

    user_id: str
    project_id: str
    password_hash: str
    demo: Demo
    token: AccessToken
    sealed_secret: bytes


def plan_demo(tokens: Tokens, password: DemoPassword, seal: Callable[[str], bytes], now: int) -> DemoPlan:
    """Generate a demo organisation, project, user, server key and channel. `seal` encrypts the channel's secret."""
    user_id, project_id, token_id = new_id("usr", now), new_id("prj", now), new_id("tok", now)
    ends_at = (now // 1000 + DEMO_TOKEN_S) * 1000
    token = AccessToken(token_id, user_id, "operator", "", 0, now, ends_at)
    demo = Demo(
        project_id=project_id,
        server_key=new_server_key(),
        stream_key=random_base62(12),
        email=DEMO_EMAIL,
        password=password.text,
        token=tokens.issue(user_id, now, DEMO_TOKEN_S, token_id=token_id),
        channel_id=new_id("chn", now),
        channel_secret=new_channel_secret(),
    )
    return DemoPlan(user_id, project_id, password.hash, demo, token, seal(demo.channel_secret))


def provision_demo(tx: Transaction, plan: DemoPlan, now: int) -> bool:
    """Store the demo unless there is a project. Return whether it was stored."""
    tx.lock_across_nodes()
    if tx.has_projects():
        return False
    with tx.signed(ChangeOrigin(Actor("system"), now)):
        _provide(tx, plan, now)
    return True


def _provide(tx: Transaction, plan: DemoPlan, now: int) -> None:
    demo = plan.demo
    organisation = tx.insert_organisation(new_id("org", now), "Demo organisation", now)
    project = tx.insert_project(plan.project_id, organisation, "Demo project", demo.stream_key, now)
    user = tx.insert_user(plan.user_id, demo.email, "Demo owner", plan.password_hash, now)
    join(tx, organisation, user, "owner", now)
    tx.insert_access_token(plan.token, user.rowid)
    tx.insert_team(Team(new_id("team", now), project.rowid, "Support", now, now))
    key = demo.server_key
    tx.insert_key(new_id("key", now), project.rowid, hash_server_key(key), key[-4:], "demo", now)
    secret = demo.channel_secret
    channel = new_channel(demo.channel_id, project.rowid, "Demo shop", plan.sealed_secret, secret[-4:], now)
    tx.insert_channel(replace(channel, origins=DEMO_ORIGINS))


def welcome(demo: Demo, base_url: str, written: Path, *, desk: bool = True) -> str:
    """Return the text of the first start, with commands to paste.

    Args:
        desk: whether the service shows the desk.
    """
    program = sys.argv[0] if Path(sys.argv[0]).name == "deskwire" else "deskwire"
    kept = written.exists()
    fill = f"{shlex.quote(program)} demo --desk --data {shlex.quote(str(written.parent))}"
    desk_hint = f"\n  Sign in with user and password at {base_url}/desk" if desk else ""
    inbox_hint = (
        f"\n  To fill its inbox with a demo, leave this running and call: {fill}" if desk and kept else ""
    )
    where = f"; they are also in {written}" if kept else ""
    path = _path_line(sys.argv[0], shutil.which("deskwire"))
    return f"""
Deskwire is running at {base_url}

  A demo project was created. Its credentials are shown only this once{where}.

    server key   {demo.server_key}
    stream key   {demo.stream_key}
    user         {demo.email}
    password     {demo.password}
{desk_hint}
  Write to it as a customer at   {_demo_page(base_url, demo.channel_id)}{inbox_hint}

  Try it (paste into another terminal):

    # 1. a conversation comes in
    curl -s {base_url}/v3/s2s/conversations \\
      -H 'Authorization: Bearer {demo.server_key}' -H 'Content-Type: application/json' \\
      -d '{{"contact": {{"userId": "u1", "name": "Ada"}}, "message": {{"text": "Hello!"}}}}'

    # 2. ordered events come out
    curl -s '{base_url}/v3/s2s/events' -H 'Authorization: Bearer {demo.server_key}'

    # 3. the inbox of an agent
    curl -s {base_url}/v3/conversations -H 'project: {demo.project_id}' \\
      -H 'Authorization: Bearer {demo.token}'
{path}
  All calls can be tried in a browser, too: {base_url}/docs

  Stop it with Ctrl-C.
"""


def _demo_page(base_url: str, channel_id: str) -> str:
    return f"{base_url}/widget/{channel_id}/demo"


def _path_line(called_as: str, found: str | None) -> str:
    """Return lines that add `deskwire` to the shell's path; "" if the path already has it."""
    program = Path(called_as)
    if program.name != "deskwire" or (found is not None and Path(found).resolve() == program.resolve()):
        return ""
    folder = shlex.quote(str(program.absolute().parent))
    return f"""
    # 4. the program by its name, for `deskwire listen`, `deskwire backup` and the other commands
    export PATH={folder}:$PATH
"""


def running(base_url: str, written: Path, first_owner: str | None = None, *, desk: bool = True) -> str:
    """Return the text of every later start, and of a start without a demo.

    Args:
        first_owner: the one-time link for the first account, if there is none yet.
    """
    channel = _demo_channel(written)
    page = f"A page with its chat is at {_demo_page(base_url, channel)}\n" if channel else ""
    desk_hint = f"The desk is at {base_url}/desk\n" if desk else ""
    where = f"The demo project's credentials are in {written}.\n" if written.exists() else ""
    set_up = "" if first_owner is None else _set_up(first_owner)
    return f"Deskwire is running at {base_url}\n{desk_hint}{page}{where}{set_up}Stop it with Ctrl-C."


def _set_up(link: str) -> str:
    return f"""There is no account yet. Create the first one with this link, which works once and for 7 days:

  {link}

`deskwire user first-owner-link` prints another one.
"""
