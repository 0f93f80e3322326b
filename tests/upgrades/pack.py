"""Makes `tests/upgrades/<version>.tar.xz`, the data of a release that later versions are tried with: `make upgrade-data`.

The program is the `deskwire` that Python imports, so PYTHONPATH can lead to the tree of an older release.
"""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import httpx

from tests.support.sockets.server_process import free_port
from tests.upgrades.fill import fill

HERE: Final = Path(__file__).parent
START_TIMEOUT_S: Final = 120.0
PACKED: Final = ("deskwire.sqlite3", "secret", "demo.json", "uploads")


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def filled(data: Path) -> dict[str, Any]:
    """Serve an empty directory, fill it, and stop; return the objects as the program showed them."""
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{(port := free_port())}"
    command = [sys.executable, "-m", "deskwire", "serve", "--data", str(data), "--port", str(port)]
    with subprocess.Popen([*command, "--allow-private-webhooks"], stdout=subprocess.DEVNULL) as server:
        try:
            _until_ready(url)
            demo = json.loads((data / "demo.json").read_text())
            return fill(url, demo, f"http://127.0.0.1:{receiver.server_address[1]}/")
        finally:
            server.send_signal(signal.SIGTERM)
            receiver.shutdown()


def pack(data: Path, was: dict[str, Any], target: Path) -> None:
    """Write the archive, without the owners of the files."""
    shown = json.dumps(was, ensure_ascii=False, indent=1).encode()
    with tarfile.open(target, "w:xz") as archive:
        for name in PACKED:
            archive.add(
                data / name, f"data/{name}", filter=lambda member: member.replace(uid=0, gid=0, deep=False)
            )
        entry = tarfile.TarInfo("was.json")
        entry.size = len(shown)
        archive.addfile(entry, io.BytesIO(shown))


def _until_ready(url: str) -> None:
    give_up = time.monotonic() + START_TIMEOUT_S
    with httpx.Client(trust_env=False) as client:
        while time.monotonic() < give_up:
            try:
                if client.get(f"{url}/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    raise TimeoutError(f"{url} was not ready within {START_TIMEOUT_S:g} s")


def main(version: str) -> None:
    """Make the archive of this version."""
    with tempfile.TemporaryDirectory() as work:
        data = Path(work) / "data"
        was = filled(data)
        pack(data, was, HERE / f"{version}.tar.xz")


if __name__ == "__main__":
    main(sys.argv[1])
