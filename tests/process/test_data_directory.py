"""A node on a database that has no data directory yet: it starts, and keeps there what it has to."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.postgres import fresh_database
from tests.support.sockets.server_process import Server


@pytest.mark.parametrize("files", ["database", "disk"])
async def test_a_node_without_a_data_directory_starts(tmp_path: Path, files: str) -> None:
    with fresh_database(migrated=False) as url:
        environ = {"DESKWIRE_DATABASE_URL": url, "DESKWIRE_SECRET": "the secret of a node" * 2}
        server = Server(tmp_path, "--no-demo", environ={**environ, "DESKWIRE_FILES": files})
        assert not (tmp_path / "data").exists()
        try:
            await server.start()
            async with httpx.AsyncClient(trust_env=False) as http:
                assert (await http.get(f"{server.url}/readyz")).status_code == 200
        finally:
            await server.stop()
