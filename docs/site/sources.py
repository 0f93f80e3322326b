"""Prepare the sources of the site: a copy of `docs/` with the generated pages of the API reference.

python docs/site/sources.py build/site-source
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import api_pages

DOCS = Path(__file__).parent.parent


def prepare(folder: Path) -> None:
    """Write the sources into `folder`, which is emptied first; unchanged files keep their time for the next build."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("site"))
    (folder / "reference/api.md").write_text(api_pages.overview())
    for name, text in api_pages.pages().items():
        path = folder / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
