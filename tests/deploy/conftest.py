"""The images, and the files to deploy with, as the programs read them that they are for.

`make containers` installs those programs and fails where something is missing; elsewhere each test that needs one is
skipped, and says so.
"""

from __future__ import annotations

import os

import pytest

from tests.deploy.container import Image, build, unable
from tests.deploy.tools import missing

if os.environ.get("CONTAINERS") == "required" and (gone := [*missing(), *filter(None, [unable()])]):
    raise pytest.UsageError(f"The files to deploy with can't be tried: {'; '.join(gone)}.")


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image that the Dockerfile makes."""
    return build(tmp_path_factory.mktemp("image"), VERSION="1.2.3", COMMIT="abc")
