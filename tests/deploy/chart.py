"""The generated parts of the Helm chart: its version, and the settings in its schema. `make docs` writes them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from deskwire.config.settings import SETTINGS
from tests.support.root import ROOT

CHART: Final = ROOT / "docs/deploy/helm/deskwire"
SCHEMA: Final = CHART / "values.schema.json"
METADATA: Final = CHART / "Chart.yaml"
FIXED: Final = frozenset(
    {
        "DESKWIRE_DATA",
        "DESKWIRE_HOST",
        "DESKWIRE_NODE",
        "DESKWIRE_PORT",
        "DESKWIRE_PUBLIC_URL",
        "DESKWIRE_SHUTDOWN_S",
        "DESKWIRE_TLS_CERT",
        "DESKWIRE_TLS_KEY",
        "DESKWIRE_TRUSTED_PROXIES",
        "DESKWIRE_WEB_DIR",
    }
)
"""Settings that the chart sets from values of its own, or that the image and the ingress determine."""
_PRERELEASE: Final = {"a": "alpha", "b": "beta", "rc": "rc", ".dev": "dev"}


def settings() -> dict[str, Any]:
    """Return the schema of the value `settings`: every setting that is neither a secret nor fixed."""
    return {
        each.variable: {"type": ["string", "number", "boolean"], "description": each.meaning}
        for each in sorted(SETTINGS.values(), key=lambda each: each.variable)
        if not each.secret and each.variable not in FIXED
    }


def schema() -> str:
    """Return the text of the schema with the current settings."""
    found = json.loads(SCHEMA.read_text())
    found["properties"]["settings"]["properties"] = settings()
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def version() -> str:
    """Return the version of the service, which is also the tag of the image that `make image` builds."""
    found = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def semantic(version: str) -> str:
    """Return a Python version in the form that Helm requires: 0.2.0.dev1 becomes 0.2.0-dev.1."""
    found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:(a|b|rc|\.dev)(\d+))?(\+.*)?", version)
    assert found is not None, version
    release, kind, number, build = found.groups(default="")
    return release + (f"-{_PRERELEASE[kind]}.{number}" if kind else "") + build


def metadata() -> str:
    """Return the text of Chart.yaml with the current version."""
    text = re.sub(r"(?m)^version: .*$", f"version: {semantic(version())}", METADATA.read_text())
    return re.sub(r"(?m)^appVersion: .*$", f'appVersion: "{version()}"', text)


if __name__ == "__main__":
    SCHEMA.write_text(schema())
    METADATA.write_text(metadata())
