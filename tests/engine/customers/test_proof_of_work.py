"""Proofs of work: bound to session, network and channel, expiring, and spent once."""

from __future__ import annotations

from itertools import count

import pytest

from deskwire.engine.customers.proof_of_work import (
    CHALLENGE_LIFETIME_MS,
    Proof,
    ProofsOfWork,
    ProofSubject,
    VisitorLimitReached,
    zero_bits,
)
from tests.support.builders import NOON

SUBJECT = ProofSubject("cse_1", "192.0.2.1", "chn_1")
DIFFICULTY = 8


def proofs(*keys: bytes) -> ProofsOfWork:
    """Return the proofs of a service with these keys."""
    return ProofsOfWork(lambda: keys or (b"k" * 32,), DIFFICULTY)


def solved(challenge: str, bits: int = DIFFICULTY) -> Proof:
    """Solve a challenge."""
    return next(proof for n in count() if zero_bits(proof := Proof(challenge, str(n))) >= bits)


def test_solved_challenge_is_accepted_once() -> None:
    work = proofs()
    proof = solved(work.challenge(SUBJECT, NOON))
    assert work.accepts(proof, SUBJECT, NOON)
    work.spend(proof)
    assert not work.accepts(proof, SUBJECT, NOON)
    work.give_back(proof)
    assert work.accepts(proof, SUBJECT, NOON)


def test_every_node_accepts_a_challenge_of_another() -> None:
    assert proofs().accepts(solved(proofs().challenge(SUBJECT, NOON)), SUBJECT, NOON)
    old = solved(proofs(b"o" * 32).challenge(SUBJECT, NOON))
    assert proofs(b"k" * 32, b"o" * 32).accepts(old, SUBJECT, NOON)  # after a rotation of the secret
    assert not proofs().accepts(old, SUBJECT, NOON)


@pytest.mark.parametrize(
    "other",
    [
        ProofSubject("cse_2", "192.0.2.1", "chn_1"),
        ProofSubject("cse_1", "192.0.2.2", "chn_1"),
        ProofSubject("cse_1", "192.0.2.1", "chn_2"),
        ProofSubject("cse_1\n192.0.2.1", "chn_1", ""),
    ],
)
def test_proof_of_another_subject_is_refused(other: ProofSubject) -> None:
    assert not proofs().accepts(solved(proofs().challenge(SUBJECT, NOON)), other, NOON)


def test_proof_expires() -> None:
    proof = solved(proofs().challenge(SUBJECT, NOON))
    assert proofs().accepts(proof, SUBJECT, NOON + CHALLENGE_LIFETIME_MS - 1)
    assert not proofs().accepts(proof, SUBJECT, NOON + CHALLENGE_LIFETIME_MS)


def test_challenge_can_not_be_made_easier_or_later() -> None:
    challenge = proofs().challenge(SUBJECT, NOON)
    version, difficulty, expires_at, mac = challenge.split("-", 3)
    easier = f"{version}-0-{expires_at}-{mac}"
    later = f"{version}-{difficulty}-{int(expires_at) + 1}-{mac}"
    assert not proofs().accepts(Proof(easier, "0"), SUBJECT, NOON)
    assert not proofs().accepts(solved(later), SUBJECT, NOON)


@pytest.mark.parametrize("nonce", ["", "-1", "1.0", "\u0661", "9" * 21, "a", "1 "])
def test_number_in_another_form_is_refused(nonce: str) -> None:
    assert not proofs().accepts(Proof(proofs().challenge(SUBJECT, NOON), nonce), SUBJECT, NOON)


@pytest.mark.parametrize(
    "text", ["", "1", "1-8-1-", "1-8-x-" + "A" * 43, "2-0-9999999999999-" + "A" * 43, "x" * 200]
)
def test_malformed_challenge_is_refused(text: str) -> None:
    assert not proofs().accepts(Proof(text, "0"), SUBJECT, NOON)


def test_unsolved_challenge_is_refused() -> None:
    challenge = proofs().challenge(SUBJECT, NOON)
    wrong = next(proof for n in count() if zero_bits(proof := Proof(challenge, str(n))) < DIFFICULTY)
    assert not proofs().accepts(wrong, SUBJECT, NOON)


def test_refusal_shows_the_challenge_with_its_parts() -> None:
    challenge = proofs().challenge(SUBJECT, NOON)
    shown = VisitorLimitReached(challenge, 60).shown["challenge"]
    assert (shown["algorithm"], shown["challenge"], shown["difficulty"]) == ("SHA-256", challenge, DIFFICULTY)
    assert shown["expiresAt"].endswith("Z")
