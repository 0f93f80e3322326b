"""Compiles the desk's texts, `make languages`: Fluent files, which translators keep, into the modules that browsers load.

English is complete, and its texts name the variables of each message. Another language may leave texts out: those are
written in English, and a report counts them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.languages.messages import Message, Unusable, read_messages, used_variables
from tests.languages.modules import BASES, FORMS, module_of
from tests.support.root import ROOT

DESK: Final = ROOT / "http/deskwire/http/pages/desk"
ENGLISH: Final = "en"
COMPLETE: Final = (ENGLISH, "de")
"""The languages that lack no text."""
INDEX: Final = "languages/languages.json"
_ABOUT: Final = "language"


@dataclass(frozen=True)
class Language:
    """A language with its texts by part.

    `name` is its name in English, `own_name` its own one, and `direction` the way of its writing.
    """

    tag: str
    name: str
    own_name: str
    direction: str
    parts: Mapping[str, Mapping[str, Message]]


def read_language(folder: Path) -> Language:
    """Read the Fluent files of a language.

    Raises:
        Unusable: some can't be compiled.
    """
    problems: list[str] = []
    parts: dict[str, dict[str, Message]] = {}
    for file in sorted(folder.glob("**/*.ftl")):
        part = file.relative_to(folder).with_suffix("").as_posix()
        try:
            parts[part] = read_messages(file, f"{folder.name}/{part}.ftl")
        except Unusable as error:
            problems += error.problems
    about = {key: "".join(str(part) for part in each.pattern) for key, each in parts.pop(_ABOUT, {}).items()}
    if set(about) != {"name", "own-name", "direction"} or about["direction"] not in {"ltr", "rtl"}:
        problems.append(f"{folder.name}/{_ABOUT}.ftl needs name, own-name, and direction = ltr or rtl.")
    if problems:
        raise Unusable(*problems)
    return Language(folder.name, about["name"], about["own-name"], about["direction"], parts)


def problems_of(language: Language, english: Language) -> Iterator[str]:
    """Yield what contradicts the English texts: messages that it does not have, and other variables."""
    for part, messages in language.parts.items():
        known = english.parts.get(part, {})
        for key, message in messages.items():
            where = f"{language.tag}/{part}.ftl: {key}"
            if key not in known:
                yield f"{where} is not in English."
                continue
            expected, used = set(known[key].variables), set(used_variables(message.pattern))
            if expected != used:
                yield f"{where} uses {_listed(used)}, and has to use {_listed(expected)}."
            kinds, own = known[key].variables, used_variables(message.pattern)
            for name in used & expected:
                if own[name] == "number" and kinds[name] != "number":
                    yield f"{where} takes ${name} for a number."


def _listed(names: set[str]) -> str:
    return ", ".join(f"${each}" for each in sorted(names)) or "no variables"


def missing_in(language: Language, english: Language) -> dict[str, list[str]]:
    """Return the messages that a language lacks, by part."""
    return {
        part: lacking
        for part, messages in english.parts.items()
        if (lacking := [key for key in messages if key not in language.parts.get(part, {})])
    }


def modules_of(language: Language, english: Language) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each module of a language, below the folder of the desk.

    Those of English stand where the desk's modules import them. Another language has its own beside its sources, for each
    part: a module is in English if the language has none of its texts.
    """
    for part, messages in english.parts.items():
        own = language.parts.get(part, {})
        texts = {key: own.get(key, message) for key, message in messages.items()}
        base = english.parts[BASES[part]] if part in BASES else {}
        folder = "" if language.tag == ENGLISH else f"languages/{language.tag}/"
        yield f"{folder}{part}.js", module_of(part, language.tag, language.name, texts, messages, base)


def compiled(desk: Path) -> dict[str, str]:
    """Return all files that belong to the Fluent files of a desk's folder, by path.

    Raises:
        Unusable: a file can't be compiled.
    """
    folders = sorted(each.parent for each in (desk / "languages").glob(f"*/{_ABOUT}.ftl"))
    languages = {each.name: read_language(each) for each in folders}
    english = languages[ENGLISH]
    problems = [each for language in languages.values() for each in problems_of(language, english)]
    if problems:
        raise Unusable(*problems)
    files = {path: text for each in languages.values() for path, text in modules_of(each, english)}
    forms = (desk / f"{FORMS}.js").read_text()
    files |= {f"languages/{tag}/{FORMS}.js": forms for tag in languages if tag != ENGLISH}
    ordered = sorted(languages.values(), key=lambda each: (each.tag != ENGLISH, each.own_name))
    index = {each.tag: {"name": each.own_name, "direction": each.direction} for each in ordered}
    files[INDEX] = json.dumps(index, ensure_ascii=False, indent=1) + "\n"
    return files


def write(desk: Path) -> list[str]:
    """Write all files that differ, and remove modules that no Fluent file stands for. Returns the report."""
    files = compiled(desk)
    for path, text in files.items():
        file = desk / path
        if not file.is_file() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    for file in (desk / "languages").glob("*/**/*.js"):
        if file.relative_to(desk).as_posix() not in files:
            file.unlink()
    return _report(desk)


def _report(desk: Path) -> list[str]:
    languages = [read_language(each.parent) for each in sorted((desk / "languages").glob(f"*/{_ABOUT}.ftl"))]
    english = next(each for each in languages if each.tag == ENGLISH)
    whole = sum(len(each) for each in english.parts.values())
    lines = []
    for each in languages:
        missing = missing_in(each, english)
        count = sum(len(keys) for keys in missing.values())
        lines.append(f"{each.tag} {each.own_name}: {whole - count} of {whole} texts")
        lines += [f"  {part}.ftl lacks {key}" for part, keys in missing.items() for key in keys]
    return lines


if __name__ == "__main__":
    try:
        print("\n".join(write(DESK)))
    except Unusable as error:
        sys.exit(str(error))
