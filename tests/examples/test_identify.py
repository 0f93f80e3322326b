"""The examples that sign identities: the service accepts each identity, with any characters in the name."""

from __future__ import annotations

import subprocess
import time

import pytest

from deskwire.engine.customers.identity import SignedIdentity, verify_identity
from tests.engine.customers.test_identity import ID, SECRET, channel
from tests.examples.languages import Language
from tests.support.sockets.server_process import environment

pytestmark = pytest.mark.long

EXAMPLE = "identify"


def test_signed_identity_is_accepted(at_hand: Language) -> None:
    user_id, name = "user \u00fc/1", 'Ada "\u00c5sa" \U0001f600 \\ </script>'
    done = subprocess.run(
        [*at_hand.command(EXAMPLE), user_id, name],
        env={
            **environment(),
            "CHANNEL_ID": ID,
            "CHANNEL_SECRET": SECRET,
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    found = verify_identity(channel(), (SECRET,), done.stdout.strip(), int(time.time() * 1000))
    assert found == SignedIdentity(user_id, {"name": name})
