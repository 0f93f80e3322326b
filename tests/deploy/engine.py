"""A fake engine for `docker build`, which records the files that the command sends."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer


@contextmanager
def seen_by_an_engine(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the URL of a fake engine for `docker build`, and the names of the files that were sent to it."""
    names: list[str] = []

    class Engine(BaseHTTPRequestHandler):
        def address_string(self) -> str:
            return "docker"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Api-Version", "1.43")
            self.send_header("Ostype", "linux")
            self.end_headers()

        do_GET = do_HEAD

        def do_POST(self) -> None:
            body = io.BytesIO()
            while size := int(self.rfile.readline(), 16):
                body.write(self.rfile.read(size))
                self.rfile.readline()
            body.seek(0)
            with tarfile.open(fileobj=body) as archive:
                names.extend(each.name for each in archive if each.isfile())
            self.do_HEAD()
            self.wfile.write(b'{"stream": "seen"}\n')

    class Listener(ThreadingMixIn, UnixStreamServer):
        pass

    with Listener(str(folder / "engine"), Engine) as listener:
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        try:
            yield f"unix://{folder}/engine", names
        finally:
            listener.shutdown()
            thread.join()
