"""Try the single executable as an operator does who has nothing else: `python3 binary/trial.py dist/deskwire`.

It runs in an empty environment, away from the sources, and with the rights that this script has; where that is root,
also inside a directory that holds nothing but the C library, so that no Python can be found. A failure raises.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

READY_S: Final = 60.0
DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Place:
    """Where the executable is run.

    Args:
        folder: holds the executable, a folder for its unpacked files, and the data.
        root: whether the folder is all there is of the file system.
    """

    def __init__(self, folder: Path, root: bool) -> None:
        self.folder = folder
        self.root = root
        self.unpacked = folder / "tmp"
        self.unpacked.mkdir()

    def _inside(self, name: str) -> str:
        return f"/{name}" if self.root else str(self.folder / name)

    def start(self, *arguments: str, output: IO[bytes] | int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """Start it; `--data` is always the same directory."""
        given = [argument.replace("DATA", self._inside("data")) for argument in arguments]
        environ = {"TMPDIR": self._inside("tmp"), "HOME": self._inside("tmp")}
        enter = [str(shutil.which("chroot")), str(self.folder)] if self.root else []
        return subprocess.Popen(
            [*enter, self._inside("deskwire"), *given],
            env=environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def run(self, *arguments: str) -> str:
        """Run it and return its output; the exit status must be 0."""
        process = self.start(*arguments)
        said = process.communicate(timeout=300)[0].decode()
        assert process.returncode == 0, f"{arguments}: {process.returncode}\n{said}"
        return said

    def leftovers(self) -> list[Path]:
        """Return the unpacked directories that were not removed."""
        return list(self.unpacked.glob("_MEI*"))


@contextmanager
def serving(place: Place) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any], float]]:
    """A server that is ready, its demo's credentials, and how many seconds that took."""
    log, began = place.folder / "serve.log", time.monotonic()
    with log.open("wb") as output:
        process = place.start("serve", "--data", "DATA", "--port", "0", output=output)
    try:
        while b"Ctrl-C" not in log.read_bytes():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() - began < READY_S, log.read_text()
            time.sleep(0.02)
        yield process, json.loads((place.folder / "data/demo.json").read_text()), time.monotonic() - began
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def call(demo: dict[str, Any], method: str, path: str, body: object = None) -> Any:
    """One call with the demo's server key."""
    request = urllib.request.Request(
        f"{demo['baseUrl']}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {demo['serverKey']}", "Content-Type": "application/json"},
    )
    with DIRECT.open(request, timeout=30) as answer:
        return json.loads(answer.read())


def looked_at(base: str) -> None:
    """Open the desk: the page, what bounds it, and every file that it names."""
    with DIRECT.open(f"{base}/desk", timeout=30) as answer:
        page, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';"), policy
    assert "require-trusted-types-for 'script'" in policy
    named = re.findall(r'"(web/[0-9a-f]{16}/[^"]+)"', page)
    assert any(each.endswith("/app.js") for each in named), page
    for each in [*named, re.sub(r"(?<=[0-9a-f]{16}/).*", "core/feed-worker.js", named[0])]:
        with DIRECT.open(f"{base}/{each}", timeout=30) as answer:
            assert answer.read(), each


def ended(process: subprocess.Popen[bytes], place: Place) -> None:
    """Stop it in order, and see that it leaves nothing."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 0
    assert place.leftovers() == []


def tried(place: Place, executable: Path) -> list[float]:
    """Everything once; how long each of two starts took."""
    shutil.copy(executable, place.folder / "deskwire")
    assert re.fullmatch(
        r"deskwire, version \d+\.\d+\.\d+\S*, commit (?:[0-9a-f]{40,64}(?:-dirty)?|unknown)\n",
        place.run("--version"),
    )
    told = place.run("--notices")
    assert all(
        re.search(rf"^  {name} [\d.]+\S*: ", told, re.MULTILINE) for name in ("trio", "cpython", "openssl")
    )
    assert "DESKWIRE_PORT" in place.run("config")
    assert "--forward" in place.run("listen", "--help")
    took = []
    with serving(place) as (process, demo, seconds):
        took.append(seconds)
        assert call(demo, "GET", "/readyz")
        made = call(
            demo, "POST", "/v3/s2s/conversations", {"contact": {"userId": "u"}, "message": {"text": "Hi"}}
        )
        looked_at(demo["baseUrl"])
        assert call(demo, "POST", "/v3/auth/token", demo["user"])["tokenType"] == "Bearer"
        assert "Demo" in place.run("org", "list", "--data", "DATA")
        ended(process, place)
    with serving(place) as (process, demo, seconds):
        took.append(seconds)
        assert call(demo, "GET", f"/v3/s2s/conversations/{made['id']}")["sequence"] == 2
        ended(process, place)
    assert '"passed": true' in (said := place.run("demo", "--limit", "3", "--json")), said
    assert place.leftovers() == []
    return took


def furnish(folder: Path, executable: Path) -> None:
    """Put what the dynamic linker needs for the executable into a folder that becomes the root."""
    listed = subprocess.run(["ldd", str(executable)], capture_output=True, text=True, check=True).stdout
    more = [
        f"{Path(path).parent}/{name}" for path in re.findall(r"=> (\S+/libc\.so\.6)", listed) for name in LIBC
    ]
    for path in {*re.findall(r"(/\S+)", listed), *more}:
        if Path(path).exists():
            target = folder / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    (folder / "dev").mkdir()
    os.mknod(folder / "dev/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))


LIBC: Final = ("libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libgcc_s.so.1")
"""The parts of the C library that the bundled libraries load."""


def main() -> None:
    """Try it in an ordinary directory, and in one that is the whole file system."""
    executable = Path(sys.argv[1]).resolve()
    print(f"{executable.name}: {executable.stat().st_size / 1e6:.1f} MB")
    for root in (False, True):
        if root and os.geteuid() != 0:
            print("not root: not tried without Python on the machine")
            continue
        with tempfile.TemporaryDirectory(prefix="deskwire-binary-") as folder:
            place = Place(Path(folder), root)
            if root:
                furnish(place.folder, executable)
            first, second = tried(place, executable)
        where = "alone in a file system" if root else "in an empty environment"
        print(f"{where}: fine; ready after {first:.1f} s, with data after {second:.1f} s")


if __name__ == "__main__":
    main()
