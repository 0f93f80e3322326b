"""Proofs of work: a visitor's browser computes for a moment before a network with many visitors may go on.

A challenge is signed and not stored. It names its end, and is valid for one channel, one network and one session only, so it can't
be solved in advance or be passed on. A proof is a number for which SHA-256 over the challenge, a dot and the number begins with
as many zero bits as the challenge demands (Hashcash). To check one takes two hashes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections import OrderedDict
from typing import Final

from msgspec import Struct

from deskwire.engine.core.clock import iso
from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.core.secret import Keyring

PROOF_KEY: Final = "proof of work"  # purpose of the keys derived from the installation's secrets
DIFFICULTY: Final = 17  # leading zero bits: 131,072 hashes on average
CHALLENGE_LIFETIME_MS: Final = 10 * 60_000
NONCE_MAX: Final = 20  # digits of the number

_MAC_CHARACTERS: Final = 43
_CHALLENGE: Final = re.compile(rf"1-(\d{{1,3}})-(\d{{1,15}})-[A-Za-z0-9_-]{{{_MAC_CHARACTERS}}}", re.ASCII)
_NONCE: Final = re.compile(rf"\d{{1,{NONCE_MAX}}}", re.ASCII)
# Spent challenges in memory, some 4 MB. Without room, the oldest is forgotten, and then its session's own limit holds.
_SPENT_MAX: Final = 20_000


class ProofSubject(Struct, frozen=True):
    """The subject of a challenge: a session's id, the network that it calls from, and its channel's id."""

    session: str
    network: str
    channel: str


class Proof(Struct, frozen=True):
    """A solved challenge."""

    challenge: str
    nonce: str


class ProofsOfWork:
    """Makes challenges and checks proofs.

    Args:
        keys: the keys of the purpose PROOF_KEY.
        difficulty: leading zero bits of new challenges.
    """

    def __init__(self, keys: Keyring, difficulty: int = DIFFICULTY) -> None:
        self._keys = keys
        self._difficulty = difficulty
        self._spent: OrderedDict[str, None] = OrderedDict()

    def challenge(self, subject: ProofSubject, now: int) -> str:
        """Return a challenge for the subject. `now` is in milliseconds."""
        expires_at = now + CHALLENGE_LIFETIME_MS
        return f"1-{self._difficulty}-{expires_at}-{_mac(self._keys()[0], subject, self._difficulty, expires_at)}"

    def accepts(self, proof: Proof, subject: ProofSubject, now: int) -> bool:
        """Return whether a proof is right for the subject, and was not spent on this node."""
        found = _CHALLENGE.fullmatch(proof.challenge)
        if found is None or _NONCE.fullmatch(proof.nonce) is None or proof.challenge in self._spent:
            return False
        difficulty, expires_at = int(found[1]), int(found[2])
        mac = proof.challenge[-_MAC_CHARACTERS:]
        signed = any(
            hmac.compare_digest(_mac(key, subject, difficulty, expires_at), mac) for key in self._keys()
        )
        return signed and now < expires_at and zero_bits(proof) >= difficulty

    def spend(self, proof: Proof) -> None:
        """Accept a proof no longer."""
        self._spent[proof.challenge] = None
        if len(self._spent) > _SPENT_MAX:
            self._spent.popitem(last=False)

    def give_back(self, proof: Proof) -> None:
        """Accept a proof again, because it was not used."""
        self._spent.pop(proof.challenge, None)


def zero_bits(proof: Proof) -> int:
    """Return the number of zero bits at the beginning of a proof's hash."""
    digest = hashlib.sha256(f"{proof.challenge}.{proof.nonce}".encode()).digest()
    return len(digest) * 8 - int.from_bytes(digest, "big").bit_length()


class VisitorLimitReached(TooManyRequests):
    """Too many conversations of visitors come from a network or to a channel.

    A proof of work for `challenge` is accepted in place of the wait.
    """

    code = "visitor_limit"

    def __init__(self, challenge: str, retry_after_s: int) -> None:
        _, difficulty, expires_at, _ = challenge.split("-", 3)
        wanted = {
            "algorithm": "SHA-256",
            "challenge": challenge,
            "difficulty": int(difficulty),
            "expiresAt": iso(int(expires_at)),
        }
        super().__init__(
            "Many new conversations of visitors come from this network, or to this channel. Send the request again with "
            "a `proof` for the challenge, or wait.",
            retry_after_s=retry_after_s,
            shown={"challenge": wanted},
        )


def _mac(key: bytes, subject: ProofSubject, difficulty: int, expires_at: int) -> str:
    text = "\n".join((subject.session, subject.network, subject.channel, str(difficulty), str(expires_at)))
    return base64.urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")).rstrip(b"=").decode()
