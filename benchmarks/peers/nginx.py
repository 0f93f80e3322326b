"""nginx before workers of FastCGI, with files of its own alone."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
from pathlib import Path
from typing import Final

_PATH: Final = "/usr/sbin:/sbin"
"""Where it is if the user's own path lacks it."""
_PARAMETERS: Final = {
    "REQUEST_METHOD": "$request_method",
    "REQUEST_URI": "$request_uri",
    "QUERY_STRING": "$query_string",
    "CONTENT_TYPE": "$content_type",
    "CONTENT_LENGTH": "$content_length",
    "REMOTE_ADDR": "$remote_addr",
    "SCRIPT_NAME": '""',
    "PATH_INFO": "$fastcgi_script_name",
    "SERVER_PROTOCOL": "$server_protocol",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
}
"""Parameters of each request.

The port is always 80: Request Tracker puts the port into the name of its session cookie, and one cookie serves all starts.
"""
_TEMPORARY: Final = ("client_body", "fastcgi", "proxy", "scgi", "uwsgi")


def program() -> str | None:
    """Return its path; None if it is not installed."""
    return shutil.which("nginx") or shutil.which("nginx", path=_PATH)


def command(folder: Path, port: int, workers: Path) -> list[str]:
    """Write its configuration into the folder; return the command that starts it on the port, before the workers' socket."""
    found = program()
    assert found is not None, "only an installed nginx is started"
    config = folder / "nginx.conf"
    config.write_text(_settings(folder, port, workers))
    return [found, "-p", str(folder), "-c", str(config), "-e", "stderr"]


def _settings(folder: Path, port: int, workers: Path) -> str:
    passed = "\n".join(f"fastcgi_param {name} {value};" for name, value in _PARAMETERS.items())
    temporary = "\n".join(f"{each}_temp_path {folder}/{each};" for each in _TEMPORARY)
    return f"""{_owner()}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
access_log off;
keepalive_requests 1000000;
{temporary}
server {{
listen 127.0.0.1:{port};
location / {{
{passed}
fastcgi_buffers 16 16k;
fastcgi_read_timeout 300;
fastcgi_pass unix:{workers};
}}
}}
}}
"""


def _owner() -> str:
    """Return the line that keeps the workers root if we are root: only then would nginx choose another user."""
    if os.geteuid() != 0:
        return ""
    return f"user {pwd.getpwuid(0).pw_name} {grp.getgrgid(os.getegid()).gr_name};"
