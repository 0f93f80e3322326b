"""The time that a survey's insights take, from the call to the stored result, while others post."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from typing import Any, Final

import httpx

from benchmarks.generator import load
from benchmarks.histories import Histories
from benchmarks.report import percentile
from benchmarks.scale import Scale
from benchmarks.searching import dashboard, texts
from benchmarks.service import Server
from deskwire.engine.core.ids import fresh_ids
from deskwire.storage.sqlite.directory import FILE_NAME

SHARE: Final = 10
"""One in this many conversations is followed by a response."""
_SURVEYS: Final = "/v3/engagement/surveys"
_DEFINITION: Final = {
    "schemaVersion": "2.0",
    "title": "After the chat",
    "languages": ["en"],
    "primaryLanguage": "en",
    "questions": [
        {"id": "score", "type": "nps", "title": {"en": "Would you recommend us?"}, "required": True},
        {"id": "why", "type": "text", "title": {"en": "Why?"}},
    ],
    "logic": [],
    "thankYou": {"en": "Thank you!"},
}
_INSERT: Final = (
    "INSERT INTO survey_responses (id, survey, version, contact, language, answers, created_at) "
    "VALUES (?, ?, 1, NULL, 'en', ?, ?)"
)
_MONTH_MS: Final = 30 * 86_400_000


def insights(scale: Scale, database: Histories, server: Server) -> dict[str, float]:
    """Store a survey with its responses, refresh its insights, and read them."""
    job = server.posts(database.ids, connections=16, rate=scale.rate, for_s=scale.rate_s)
    count, beside = database.conversations // SHARE, list[float]()
    with dashboard(server) as api:
        survey = _filled(api, database, count)
        status = api.post(f"{survey}/insights/refresh").raise_for_status().json()
        while status["status"] == "running":
            beside += load(job).latencies
            status = api.get(f"{survey}/insights/refresh").raise_for_status().json()
        if status["status"] != "done":
            raise RuntimeError(f"the insights were not computed: {status['error']}")
        began = time.perf_counter()
        api.get(f"{survey}/insights").raise_for_status()
        read_s = time.perf_counter() - began
    return {
        "responses of a survey": count,
        "its insights, of the newest 20,000": _seconds(status["startedAt"], status["endedAt"]),
        "beside them, p99 ms": percentile(sorted(beside), 0.99),
        "reading them": read_s,
    }


def _filled(api: httpx.Client, database: Histories, count: int) -> str:
    """Store a survey through the API, and its responses of the last month by SQL; return its address."""
    asked = {"name": "After the chat", "definition": _DEFINITION}
    made: dict[str, Any] = api.post(_SURVEYS, json=asked).raise_for_status().json()
    path = str(database.directory / FILE_NAME)
    with closing(sqlite3.connect(path, timeout=60)) as connection, connection:
        (survey,) = connection.execute("SELECT rowid FROM surveys WHERE id = ?", (made["id"],)).fetchone()
        connection.executemany(_INSERT, _responses(survey, count))
        connection.execute("UPDATE surveys SET responses = ? WHERE rowid = ?", (count, survey))
    return f"{_SURVEYS}/{made['id']}"


def _responses(survey: int, count: int) -> Iterator[tuple[str, int, str, int]]:
    now = int(time.time() * 1000)
    ids = fresh_ids("rsp", now, count)
    for number, (row, text) in enumerate(zip(ids, texts(count), strict=True)):
        answers = json.dumps({"score": number % 11, "why": text})
        yield row, survey, answers, now - _MONTH_MS + number * _MONTH_MS // count


def _seconds(began: str, ended: str) -> float:
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(began)).total_seconds()
