"""The verdict of an audit of the pins: no finding, findings, or no source reached."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

LONGEST: Final = timedelta(days=90)
"""How far ahead an exception may end: a longer one has to be reviewed again."""

_UNREACHED: Final = re.compile(
    r"(?:Connection|Proxy|SSL|NameResolution|Service)Error|Timeout|Could not connect|not redirecting properly"
)


class BadExceptions(Exception):
    """The file of exceptions is invalid; the text names the fault."""


@dataclass(frozen=True, slots=True)
class Pardon:
    """An advisory that is let pass."""

    package: str
    advisory: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class Finding:
    """An advisory that names a pin, under all its ids."""

    package: str
    version: str
    ids: frozenset[str]
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        """Return one line with the remedy."""
        fixed = f"fixed in {', '.join(self.fixed_in)}" if self.fixed_in else "no fix is known"
        return f"{self.package} {self.version}: {', '.join(sorted(self.ids))}; {fixed}"


@dataclass(frozen=True, slots=True)
class Asked:
    """The tool's result for one lock.

    Args:
        known: packages that the source has answered for.
        unknown: reasons why it has not answered, each with its package.
        unreached: True if the source could not be reached at all.
    """

    known: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    unreached: bool = False


def pardons(path: Path, today: date) -> list[Pardon]:
    """The exceptions in a file. Raises BadExceptions if one has no reason, has expired, or ends too late."""
    found = tomllib.loads(path.read_text()).get("exception", [])
    return [_pardon(each, today) for each in found]


def _pardon(entry: dict[str, Any], today: date) -> Pardon:
    match entry:
        case {
            "package": str(package),
            "advisory": str(advisory),
            "reason": str(reason),
            "until": date() as until,
            **others,
        } if reason.strip() and not others:
            pass
        case _:
            raise BadExceptions(
                f"not an exception: {entry}; it has package, advisory, reason and until (a date)"
            )
    if until < today:
        raise BadExceptions(f"the exception for {advisory} of {package} has expired on {until}")
    if until > today + LONGEST:
        raise BadExceptions(
            f"the exception for {advisory} of {package} ends after more than {LONGEST.days} days"
        )
    return Pardon(package, advisory, reason, until)


def asked(status: int, out: str, err: str) -> Asked:
    """Parse the result of a run of the tool; output that can't be parsed counts as unknown."""
    try:
        dependencies: list[dict[str, Any]] = json.loads(out)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = err.strip().splitlines()[-1:] or [f"it ended with {status} and without a word"]
        return Asked(unknown=(f"the tool failed: {last[0]}",), unreached=bool(_UNREACHED.search(err)))
    told = [each for each in dependencies if "skip_reason" not in each]
    return Asked(
        known=frozenset(each["name"] for each in told),
        unknown=tuple(each["skip_reason"] for each in dependencies if "skip_reason" in each),
        findings=tuple(_findings(told)),
        unreached=bool(dependencies) and not told,
    )


def _findings(told: Iterable[dict[str, Any]]) -> Iterator[Finding]:
    for each in told:
        for found in each["vulns"]:
            ids = frozenset([found["id"], *found.get("aliases", ())])
            yield Finding(each["name"], each["version"], ids, tuple(found.get("fix_versions", ())))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of an audit: the objections, the excused findings, and whether a source was reached."""

    wrong: tuple[str, ...]
    passed: tuple[str, ...]
    reached: bool
    packages: int


def verdict(answers: Sequence[Asked], excused: Sequence[Pardon]) -> Verdict:
    """Judge all answers together. A source that answers for some packages and not for others was reached."""
    known = frozenset[str]().union(*(each.known for each in answers))
    if not known and answers and all(each.unreached for each in answers):
        return Verdict((), (), reached=False, packages=0)
    findings = {finding for each in answers for finding in each.findings}
    pardoned = {
        finding: pardon
        for finding in findings
        for pardon in excused
        if pardon.package == finding.package and pardon.advisory in finding.ids
    }
    unknown = {reason for each in answers for reason in each.unknown}
    idle = [each for each in excused if each not in pardoned.values()]
    return Verdict(
        (
            *sorted(str(each) for each in findings - pardoned.keys()),
            *sorted(unknown),
            *(
                f"the exception for {each.advisory} of {each.package} is not needed: remove it"
                for each in idle
            ),
        ),
        tuple(
            f"{finding} (let pass until {each.until}: {each.reason})" for finding, each in pardoned.items()
        ),
        reached=True,
        packages=len(known),
    )
