"""Builds the image and runs its containers without a container engine: each stage of the Dockerfile has its own root.

A mount namespace and an overlay over this machine's root replace the engine; this machine, with its Python, replaces
the base image. Files that an instruction writes land in a layer, and nothing outside is touched. Requires Linux and
root.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from tests.deploy.dockerfile import Stage, defaults, sent, stages
from tests.support.root import ROOT

NEEDED: Final = ("unshare", "nsenter", "setpriv", "chroot", "mount")
_PYTHON: Final = Path(sys.executable).resolve()
PATH: Final = f"{_PYTHON.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

_ROOT: Final = """
set -e
rw=$1; root=$2; layer=$3
mount --make-rprivate /
mkdir -p "$rw" "$root"
mount -t tmpfs tmpfs "$rw"
mkdir "$rw/upper" "$rw/work"
if [ -d "$layer" ]; then cp -a "$layer/." "$rw/upper/"; fi
mount -t overlay overlay -o "lowerdir=/,upperdir=$rw/upper,workdir=$rw/work" "$root"
mount --rbind /dev "$root/dev"
"""
"""The root of a stage or a container, an overlay over this machine's, with a layer in it."""


def unable() -> str | None:
    """Return the reason why no image can be built here; None if one can."""
    missing = [each for each in NEEDED if shutil.which(each) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    tried = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "sh",
        "-c",
        'mount -t tmpfs tmpfs "$0"',
        os.fspath(ROOT),
    ]
    done = subprocess.run(tried, capture_output=True, check=False)
    return None if done.returncode == 0 else "needs root, and a system that lets it make namespaces"


@dataclass(frozen=True, slots=True)
class Image:
    """The result of a build: its last layer, the final stage, and the files of the build stage's `dist`."""

    layer: Path
    stage: Stage
    dist: Path

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that a container starts with."""
        return self.stage.environment({"PATH": PATH})


def build(folder: Path, **arguments: str) -> Image:
    """Return the image that the Dockerfile makes of the repository's own files, those not committed included.

    Args:
        folder: where the layers go.
        arguments: as of `--build-arg`.
    """
    context = folder / "context"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for path in sent(Path(name) for name in names if name and (ROOT / name).is_file()):
        (context / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, context / path)
    (_, first, last) = stages()
    _run_stage(first, folder, context, {**defaults(first), **arguments}, {})
    _run_stage(
        last, folder, context, {**defaults(last), **arguments}, {first.name: folder / first.name / "layer"}
    )
    return Image(folder / "image/layer", last, folder / first.name / "layer/src/dist")


def _run_stage(
    stage: Stage, folder: Path, context: Path, arguments: Mapping[str, str], earlier: Mapping[str, Path]
) -> None:
    """Carry out a stage's instructions from top to bottom; the files that they write become its layer."""
    here = folder / (stage.name or "image")
    root = here / "root"
    script = [_ROOT, 'mount -t proc proc "$root/proc"', *_base(root)]
    directory = "/"
    environ = {"PATH": PATH, **_passed_on()}
    for name, rest in stage.instructions:
        match name:
            case "ENV":
                environ = Stage("", [(name, rest)]).environment(environ)
            case "ARG" if "=" in rest:
                argument = rest.partition("=")[0]
                environ[argument] = arguments[argument]
            case "WORKDIR":
                directory = rest
                script.append(f'mkdir -p "$root{directory}"')
            case "COPY":
                script += _copy(rest, root, directory, context, earlier)
            case "RUN":
                given = " ".join(shlex.quote(f"{key}={value}") for key, value in environ.items())
                inside = shlex.quote(f"cd {directory} && {rest}")
                script.append(f'env -i {given} chroot "$root" /bin/sh -c {inside}')
    script.append(f'cp -a "$rw/upper" {shlex.quote(str(here / "layer"))}')
    command = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", "\n".join(script), "build"]
    done = subprocess.run(
        [*command, str(here / "rw"), str(root), "none"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def _base(root: Path) -> Iterator[str]:
    """Yield commands that make this machine a base image: a `python` that every user can find and run."""
    yield f'ln -sf {_PYTHON.name} "$root{_PYTHON.parent}/python"'
    for parent in list(_PYTHON.parents)[:-1]:
        yield f'chmod a+rx "$root{parent}"'


def _copy(rest: str, root: Path, directory: str, context: Path, earlier: Mapping[str, Path]) -> Iterator[str]:
    """Yield the commands of a COPY instruction: files go into a folder, and folders are copied by their contents."""
    words = shlex.split(rest)
    origin = context
    if words[0].startswith("--from="):
        origin = earlier[words.pop(0).removeprefix("--from=")]
    *sources, target = words
    where = shlex.quote(f"{root}{os.path.normpath(os.path.join(directory, target))}")
    yield f"mkdir -p {where}"
    for source in sources:
        path = origin / source.lstrip("/")
        assert path.exists(), f"COPY {source}: .dockerignore leaves it out, or it is not there"
        yield f"cp -a {shlex.quote(f'{path}/.' if path.is_dir() else str(path))} {where}/"


def _passed_on() -> dict[str, str]:
    """Return the variables that configure pip's package sources; elsewhere the engine's configuration does that."""
    return {
        key: value
        for key, value in os.environ.items()
        if key.lower().endswith("_proxy") or key.startswith(("PIP_", "SSL_CERT", "REQUESTS_CA"))
    }


class Container:
    """A running container: the command of ENTRYPOINT and CMD as process 1 of its own namespace, with a read-only root."""

    def __init__(self, image: Image, process: subprocess.Popen[str], environ: Mapping[str, str]) -> None:
        self._image = image
        self.process = process
        self.environ = environ

    @property
    def pid(self) -> int:
        """Return the id of its process 1 as seen from outside."""
        (child,) = self._children()
        return child

    def _children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(each) for each in path.read_text().split()]

    def execute(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in it as its user, as `docker exec` does."""
        user, group = self._image.stage.only("USER").split(":")
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--root", "--wd"]
        given = [f"{key}={value}" for key, value in self.environ.items()]
        return subprocess.run(
            [*enter, f"--setuid={user}", f"--setgid={group}", "env", "-i", *given, *command],
            capture_output=True,
            text=True,
            check=False,
        )

    def stop(self, seconds: float) -> int:
        """Send the STOPSIGNAL, as `docker stop` does; return the exit status. Raises TimeoutExpired where an engine would kill it."""
        os.kill(self.pid, getattr(signal, self._image.stage.only("STOPSIGNAL")))
        return self.process.wait(seconds)

    def kill(self) -> None:
        """Kill it with all its processes: `--kill-child` does not reach a process that has changed its user (prctl(2))."""
        if self.process.poll() is None:
            for child in self._children():
                os.kill(child, signal.SIGKILL)
            self.process.kill()
            self.process.wait()


@contextmanager
def container(
    image: Image,
    folder: Path,
    volume: Path,
    log: IO[str],
    command: Sequence[str] = (),
    at_mnt: Path | None = None,
    **environ: str,
) -> Iterator[Container]:
    """Yield a container of the image; it is killed at the end if it still runs.

    Args:
        volume: the folder that is mounted where VOLUME says.
        log: where its output goes.
        command: in place of CMD.
        at_mnt: a folder that is mounted at /mnt, to be read only.
        environ: as of `--env`.
    """
    stage = image.stage
    user, group = stage.only("USER").split(":")
    given = {**image.environment, **environ}
    variables = " ".join(shlex.quote(f"{key}={value}") for key, value in given.items())
    words = [*stage.command("ENTRYPOINT"), *(command or stage.command("CMD"))]
    nobody = f"setpriv --reuid {user} --regid {group} --clear-groups --no-new-privs --bounding-set -all --inh-caps -all"
    inside = f"cd / && exec env -i {variables} {nobody} {shlex.join(words)}"
    script = [
        _ROOT,
        f'mount --bind {shlex.quote(str(volume))} "$root{stage.only("VOLUME")}"',
        f'mount --bind -o ro {shlex.quote(str(at_mnt))} "$root/mnt"' if at_mnt else "",
        'mount -t tmpfs tmpfs "$root/tmp"',
        'mount -t proc proc "$root/proc"',
        'mount -o remount,ro,bind "$root"',
        f'exec chroot "$root" /bin/sh -c {shlex.quote(inside)}',
    ]
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", "\n".join(script), "run"]
    process = subprocess.Popen(
        [*alone, str(folder / "rw"), str(folder / "root"), str(image.layer)],
        stdout=log,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    running = Container(image, process, given)
    try:
        yield running
    finally:
        running.kill()
