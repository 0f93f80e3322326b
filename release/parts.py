"""The third-party parts of a release, each with its licence: the source of the notices and the SBOM.

The libraries are those of the locks, looked up among the installed ones. The parts of the desk and of the explorer, and
VADER's rules and lexicon, are in the repository; the executable also contains Python itself, and C libraries from the machine that builds it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import ssl
import sys
import sysconfig
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
KEPT: Final = Path(__file__).with_name("licences")
"""Licence texts of parts that are distributed without one."""
LOCKS: Final = ("run.txt", "extra-postgres.txt", "extra-s3.txt")
_PIN: Final = re.compile(r"([a-z0-9.-]+)==([^\s;]+)")
_TEXT: Final = re.compile(r"(?:licen[cs]e|copying|notice)(?!.*\.py$)", re.IGNORECASE)
_WORDS: Final = {
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-2-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Public Domain": "LicenseRef-Public-Domain",
    "The MIT License (MIT)": "MIT",
}
"""SPDX expressions (spdx.org/licenses) for older metadata.

`BSD License`: all libraries that use it have the 3-clause licence. `BSD`: pyasn1-modules only, which has the 2-clause licence.
"""


class UnknownLicence(Exception):
    """Raised if the licence of a part of the release is unknown; the text names all such parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """A third-party part.

    Args:
        kind: its type in package URLs; `generic` if it is in no package index.
        licence: an SPDX expression.
        texts: its full licence texts, with required notices.
        needs: the names of the parts that it needs.
        direct: whether Deskwire itself needs it.
        optional: whether it is needed only for several nodes or a bucket.
    """

    name: str
    version: str | None
    kind: str
    licence: str
    texts: tuple[str, ...]
    needs: tuple[str, ...] = ()
    direct: bool = True
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Pin:
    """A line of a lock, with the names of the libraries that require it."""

    name: str
    version: str
    via: tuple[str, ...]


def pins(lock: Path) -> list[Pin]:
    """Return the pins of a lock."""
    found: list[Pin] = []
    for line in lock.read_text().splitlines():
        if pin := _PIN.match(line):
            found.append(Pin(pin[1], pin[2], ()))
        elif asked := re.match(r"    #(?: via|  ) ([a-z0-9].*)", line):
            last = found[-1]
            found[-1] = replace(last, via=(*last.via, asked[1].strip().partition(" ")[0]))
    return found


def libraries(root: Path = ROOT) -> list[Part]:
    """Return the libraries of the locks, sorted.

    Raises:
        UnknownLicence: one of them has no licence text, or is installed here in another version.
    """
    locked = {pin.name: pin for lock in reversed(LOCKS) for pin in pins(root / "requirements" / lock)}
    plain = {pin.name for pin in pins(root / "requirements" / LOCKS[0])}
    wrong, parts = [], []
    for name, pin in sorted(locked.items()):
        needs = tuple(sorted(other.name for other in locked.values() if name in other.via))
        try:
            found = distribution(name)
            if found.version != pin.version:
                wrong.append(f"{name} {found.version} is installed, but {pin.version} is locked")
            parts.append(
                Part(
                    name,
                    pin.version,
                    "pypi",
                    licence(found),
                    texts(name, found),
                    needs,
                    direct="deskwire" in pin.via,
                    optional=name not in plain,
                )
            )
        except PackageNotFoundError:
            wrong.append(f"{name} is not installed")
        except UnknownLicence as error:
            wrong.append(str(error))
    if wrong:
        raise UnknownLicence("\n".join(wrong))
    return parts


def licence(found: Distribution) -> str:
    """Return a library's licence from its metadata, as an SPDX expression."""
    said = found.metadata.json  # fields that occur several times are lists
    if expression := said.get("license_expression"):
        return str(expression)
    classifiers = list(said.get("classifier", []))
    words = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: ")]
    words = [_WORDS.get(each, each) for each in words if each in _WORDS]
    named = str(said.get("license", "")).strip()
    for each in (_WORDS.get(named, named), *words):
        if re.fullmatch(r"[A-Za-z0-9.-]+(?: (?:OR|AND) [A-Za-z0-9.-]+)*", each):
            return each
    raise UnknownLicence(f"{found.name}: its metadata names no licence")


def texts(name: str, found: Distribution) -> tuple[str, ...]:
    """Return a library's licence texts: the installed ones, or the one that is kept here."""
    inside = re.compile(r"[^/]+\.dist-info/(?:licenses/)?[^/]+(?:/[^/]+)?")
    files = [each for each in found.files or () if inside.fullmatch(str(each)) and _TEXT.match(each.name)]
    read = [each.read_text("utf-8").strip() for each in sorted(files, key=str)]
    if read:
        return tuple(read)
    kept = KEPT / f"{name}.txt"
    if not kept.is_file():
        raise UnknownLicence(f"{name}: it comes without a licence text, and release/licences has none")
    return (kept.read_text("utf-8").strip(),)


def vendored(root: Path = ROOT) -> list[Part]:
    """Return the parts that are in the repository: those of the desk and of the explorer, and VADER."""
    pages = root / "http/deskwire/http/pages"
    tools = json.loads((root / "tests/web/tools/package-lock.json").read_text())["packages"]
    explorer = re.findall(r"^SWAGGER_UI := ([a-z-]+)@(\S+)$", (root / "Makefile").read_text(), re.MULTILINE)[
        0
    ]

    def text(*paths: str) -> tuple[str, ...]:
        return tuple((pages / path).read_text("utf-8").strip() for path in paths)

    sentiment = root / "engine/deskwire/engine/surveys/insights/text_analysis/vader_lexicon/LICENSE"
    assets = ("LICENSE.swagger-ui", "NOTICE.swagger-ui", "swagger-ui-bundle.js.LICENSE.txt")
    made = [
        Part(explorer[0], explorer[1], "npm", "Apache-2.0", text(*(f"assets/{each}" for each in assets))),
        Part("inter", None, "generic", "OFL-1.1", text("desk/vendor/inter.LICENSE")),
        Part("vadersentiment", "3.3.2", "pypi", "MIT", (sentiment.read_text("utf-8").strip(),)),
    ]
    for name, spdx in {
        "preact": "MIT",
        "@noble/ciphers": "MIT",
        "htm": "Apache-2.0",
        "@preact/signals": "MIT",
        "@preact/signals-core": "MIT",
    }.items():
        file = f"desk/vendor/{name.removeprefix('@').replace('/', '-')}.LICENSE"
        made.append(Part(name, tools[f"node_modules/{name}"]["version"], "npm", spdx, text(file)))
    return made


SHARED: Final = {
    "libbz2": ("bzip2", "bzip2-1.0.6"),
    "libcrypto": ("openssl", "Apache-2.0"),
    "libffi": ("libffi", "MIT"),
    "libgcc_s": ("libgcc", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    "liblzma": ("xz", "LicenseRef-Public-Domain"),
    "libsqlite3": ("sqlite", "blessing"),
    "libssl": ("openssl", "Apache-2.0"),
    "libuuid": ("libuuid", "BSD-3-Clause"),
    "libz": ("zlib", "Zlib"),
}
"""The project and licence of each shared library that the executable takes from the build machine."""


def executable(shared: Iterable[str]) -> list[Part]:
    """Return the parts that only the executable contains.

    Args:
        shared: the file names of its shared libraries.

    Raises:
        UnknownLicence: the licence of one of them is unknown here.
    """
    stems = {each.partition(".so")[0] for each in shared}
    stems = {each for each in stems if not each.startswith("libpython")}
    if unknown := sorted(stems - SHARED.keys()):
        raise UnknownLicence(
            f"the executable has {', '.join(unknown)} in it, which release/parts.py does not know"
        )
    known = {
        "openssl": ssl.OPENSSL_VERSION.split()[1],
        "sqlite": sqlite3.sqlite_version,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
    }
    python = Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"
    told = (python.read_text("utf-8").strip(), (KEPT / "cpython.txt").read_text("utf-8").strip())
    tool = distribution("pyinstaller")
    return [
        Part("cpython", ".".join(map(str, sys.version_info[:3])), "generic", "PSF-2.0", told),
        Part(
            "pyinstaller",
            tool.version,
            "pypi",
            "GPL-2.0-or-later WITH Bootloader-exception",
            texts("pyinstaller", tool),
        ),
        *(
            Part(name, known.get(name), "generic", spdx, ((KEPT / f"{name}.txt").read_text("utf-8").strip(),))
            for name, spdx in sorted({SHARED[each] for each in stems})
        ),
    ]
