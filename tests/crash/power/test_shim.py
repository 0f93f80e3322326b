"""The recorder sees all data that a process can send, with every system call."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.crash.shim import Shim, missing, shim_environment_works

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "there is a shim")

SENDING = """
import os, socket, sys, tempfile
one, other = socket.socketpair()
reader, pipe = os.pipe()
with tempfile.TemporaryFile() as file:
    file.write(b"skipped, by sendfile")
    file.flush()
    {call}
    sys.stdout.flush()
"""
CALLS = {
    "os.write": 'os.write(one.fileno(), b"answer, by write")',
    "os.writev": 'os.writev(one.fileno(), [b"answer, ", b"", b"by writev"])',
    "send": 'one.send(b"answer, by send")',
    "sendall": 'one.sendall(b"answer, by sendall")',
    "sendmsg": 'one.sendmsg([b"answer, ", b"by sendmsg"])',
    "sendmsg with a descriptor": 'socket.send_fds(one, [b"answer, with a file"], [0])',
    "sendfile": 'os.sendfile(one.fileno(), file.fileno(), 9, 100)',
    "print": 'print("answer, by print")',
}  # fmt: skip
DATAGRAM = """
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    to.bind(("127.0.0.1", 0))
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"answer, by sendto", to.getsockname())
"""


def _texts(call: str) -> bytes:
    """Return the literals of a script's call, joined: the bytes that it sends."""
    return "".join(re.findall(r'"(answer, [^"]*|by [^"]*)"', call)).encode()


def recorded(tmp_path: Path, call: str) -> list[tuple[str, bytes]]:
    """Run a script that makes one call under the recorder; return the calls that were recorded."""
    shim = Shim(tmp_path, tmp_path / "disk", recording=True)
    environ = {**os.environ, **shim.environ}
    code = SENDING.format(call=call)
    subprocess.run([sys.executable, "-c", code], env=environ, cwd=shim.root, check=True, capture_output=True)
    return [(op.kind, op.data) for op in shim.ops()]


@pytest.mark.parametrize("call", [*CALLS.values(), DATAGRAM.strip()], ids=[*CALLS, "sendto"])
def test_recorder_sees_sent_bytes(tmp_path: Path, call: str) -> None:
    ((kind, data),) = recorded(tmp_path, call)
    assert kind == "N"
    assert data.strip() == (_texts(call) or b"by sendfile")


def test_the_recorder_passes_over_pipes_and_wake_ups(tmp_path: Path) -> None:
    assert recorded(tmp_path, 'os.write(pipe, b"to another thread"); one.send(bytes(8))') == []


def test_a_copy_by_the_kernel_into_the_tree_is_recorded_as_writes(tmp_path: Path) -> None:
    copied = recorded(tmp_path, 'import shutil; shutil.copyfile(sys.executable, "copy")')
    size = Path(sys.executable).stat().st_size
    assert sum(len(data) for kind, data in copied if kind == "W") == size


def test_several_parts_in_one_write_are_recorded_in_their_order(tmp_path: Path) -> None:
    call = 'os.writev(os.open("file", os.O_CREAT | os.O_WRONLY), [b"one, ", b"two"])'
    assert ("W", b"one, two") in recorded(tmp_path, call)


def test_layer_sees_the_writes_of_this_interpreter(tmp_path: Path) -> None:
    assert shim_environment_works(tmp_path)
