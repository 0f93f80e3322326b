"""The image and the deployment files, tested with the programs that read them.

`make containers` installs those programs and fails if one is missing. All other commands leave out the tests that
build the image or run Litestream, and skip tests whose program is not installed.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.deploy.container import Image, build, unable
from tests.deploy.tools import missing
from tests.support.root import ROOT

_ASKED = os.environ.get("CONTAINERS") == "required"
if _ASKED and (gone := [*missing(), *filter(None, [unable()])]):
    raise pytest.UsageError(f"The files to deploy with can't be tried: {'; '.join(gone)}.")

collect_ignore = [] if _ASKED else ["test_container.py", "test_litestream.py"]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Build the image of the Dockerfile, with the commit that `make image` would set."""
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude", "*"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return build(tmp_path_factory.mktemp("image"), COMMIT=commit)
