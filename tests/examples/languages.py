"""The languages of the examples: how each is run where it is at hand, and what is missing where it is not."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.clients.generating import go, jar
from tests.support.root import ROOT

EXAMPLES: Final = ROOT / "docs/examples"
VECTORS: Final = Path(__file__).parent / "vectors"
NODE_MODULES: Final = ROOT / "tests/interop/node_modules"
GORILLA: Final = Path("/usr/share/gocode/src/github.com/gorilla/websocket")
"""The websocket library of Go as Debian installs it (golang-github-gorilla-websocket-dev)."""
GO_CACHE: Final = ROOT / "build/go-cache"
"""The compiled standard library of Go, which takes minutes and is the same in every run."""
_GO: Final[Mapping[str, str]] = {
    "GOFLAGS": "-mod=mod",
    "GOPROXY": "off",
    "GOTOOLCHAIN": "local",
    "GOSUMDB": "off",
}
_BUILD_S: Final = 300.0


def _module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@dataclass(eq=False)
class Language:
    """A language, with the commands of its examples in a folder of this run.

    Args:
        workshop: where compiled languages have their programs.
    """

    name: str
    workshop: Path
    _built: dict[str, list[str]] = field(default_factory=dict)

    def missing(self, example: str) -> str | None:
        """Return what the machine lacks to run an example; None if that is nothing."""
        lacking = [words for there, words in _needs(self.name, example) if not there]
        return None if not lacking else f"{self.name}: {', '.join(lacking)}"

    def command(self, example: str) -> list[str]:
        """Return the command that runs `verify`, `subscribe`, `send` or `vectors`, made ready."""
        if example not in self._built:
            self._built[example] = _COMMANDS[self.name](self.workshop, example)
        return list(self._built[example])

    def receiver(self, port: int) -> list[str]:
        """Return the command that receives webhooks at this port."""
        if self.name == "php":
            return ["php", "-S", f"127.0.0.1:{port}", str(EXAMPLES / "verify.php")]
        return [*self.command("verify"), str(port)]


def _needs(language: str, example: str) -> Sequence[tuple[bool, str]]:
    """Return what an example needs: whether it is there, and its name."""
    subscribing = example == "subscribe"
    match language:
        case "python":
            return [(not subscribing or _module("pysher"), "Pysher is not installed")]
        case "javascript":
            there = (NODE_MODULES / "pusher-js").is_dir()
            return [
                (shutil.which("node") is not None, "Node.js is not installed"),
                (not subscribing or there, "no pusher-js"),
            ]
        case "go":
            library = (not subscribing or GORILLA.is_dir(), "no golang-github-gorilla-websocket-dev")
            return [(_module("go"), "no compiler of Go; `make clients` installs it"), library]
        case "ruby":
            there = not subscribing or _ruby_has("websocket")
            return [(shutil.which("ruby") is not None, "Ruby is not installed"), (there, "no ruby-websocket")]
        case "php":
            return [(shutil.which("php") is not None, "PHP is not installed")]
        case _:
            jackson = (_module("openapi_generator_cli"), "no Jackson; `make clients` installs it")
            return [(shutil.which("javac") is not None, "no JDK is installed"), jackson]


def _ruby_has(library: str) -> bool:
    found = shutil.which("ruby")
    return (
        found is not None and _run([found, "-e", f"require '{library}'"], ROOT, check=False).returncode == 0
    )


def _run(
    command: Sequence[str], directory: Path, environ: Mapping[str, str] | None = None, *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    from tests.support.sockets.server_process import environment

    done = subprocess.run(
        command,
        cwd=directory,
        env={**environment(), **(environ or {})},
        capture_output=True,
        text=True,
        timeout=_BUILD_S,
        check=False,
    )
    assert not check or done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done


def _python(_workshop: Path, example: str) -> list[str]:
    if example == "vectors":
        return [sys.executable, str(VECTORS / "vectors.py"), str(EXAMPLES / "verify.py")]
    return [sys.executable, str(EXAMPLES / f"{example}.py")]


def _javascript(workshop: Path, example: str) -> list[str]:
    if example == "vectors":
        return ["node", str(VECTORS / "vectors.mjs"), str(EXAMPLES / "verify.mjs")]
    modules = workshop / "node_modules"
    if example == "subscribe" and not modules.exists():
        modules.symlink_to(NODE_MODULES)
    return ["node", str(shutil.copy(EXAMPLES / f"{example}.mjs", workshop / f"{example}.mjs"))]


def _go(workshop: Path, example: str) -> list[str]:
    """Build an example as a module of its own. Nothing is fetched: the one library is replaced by Debian's."""
    folder, main = workshop / example, "verify" if example == "vectors" else example
    folder.mkdir()
    written = (EXAMPLES / f"{main}.go").read_text()
    if example == "vectors":  # one program has one `main`
        written = written.replace("func main() {", "func serve() {")
        shutil.copy(VECTORS / "vectors.go", folder)
    (folder / f"{main}.go").write_text(written)
    module = "module example\n\ngo 1.21\n"
    if example == "subscribe":
        module += f"\nrequire github.com/gorilla/websocket v1.5.0\n\nreplace github.com/gorilla/websocket => {GORILLA}\n"
    (folder / "go.mod").write_text(module)
    environ = {**_GO, "GOCACHE": str(GO_CACHE), "GOPATH": str(workshop / "path")}
    _run([str(go()), "vet", "."], folder, environ)
    _run([str(go()), "build", "-o", "program", "."], folder, environ)
    return [str(folder / "program")]


def _ruby(_workshop: Path, example: str) -> list[str]:
    if example == "vectors":
        return ["ruby", "-w", str(VECTORS / "vectors.rb"), str(EXAMPLES / "verify.rb")]
    return ["ruby", "-w", str(EXAMPLES / f"{example}.rb")]


def _php(_workshop: Path, example: str) -> list[str]:
    if example == "vectors":
        return ["php", str(VECTORS / "vectors.php"), str(EXAMPLES / "verify.php")]
    return ["php", str(EXAMPLES / f"{example}.php")]


def _java(workshop: Path, example: str) -> list[str]:
    """Compile an example. The generator of clients brings Jackson with it."""
    folder, name = workshop / example, example.title()
    folder.mkdir()
    sources = (
        [VECTORS / "Vectors.java", EXAMPLES / "Verify.java"]
        if example == "vectors"
        else [EXAMPLES / f"{name}.java"]
    )
    options = ["-Xlint:all,-try,-serial", "-Werror", "-proc:none", "-cp", str(jar()), "-d", str(folder)]
    _run(["javac", *options, *map(str, sources)], workshop)
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jar()}:{folder}", name]


_COMMANDS: Final = {
    "python": _python,
    "javascript": _javascript,
    "go": _go,
    "ruby": _ruby,
    "php": _php,
    "java": _java,
}
LANGUAGES: Final = tuple(_COMMANDS)
