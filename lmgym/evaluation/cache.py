"""Log of calls on disk: an exchange is recorded before it starts, a reply before it is used.

After a crash, recorded replies are not paid for again. Exchanges that were in flight have no end in the log; they may
have been paid for in vain.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError
from lmgym.evaluation.budget import Budget
from lmgym.policy.endpoints.calls import CallLedger, Halted, ParsedReply, StoredReply

SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, reply TEXT NOT NULL, seconds REAL NOT NULL,
    tokens_in INTEGER, tokens_out INTEGER, cost REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS exchanges (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL, key TEXT NOT NULL, draw TEXT NOT NULL,
    began REAL NOT NULL, ended REAL, outcome TEXT, note TEXT
);
"""  # draw: numbers of episode, try, seat and turn; outcome: "reply" or the error; NULL while in flight

SUMMED = ("tokens_in", "tokens_out", "cost")  # columns of replies, NULL if not reported


class Calls(CallLedger):
    """`calls.sqlite` of a run, for one process at a time and any of its threads."""

    def __init__(self, path: Path, budget: Budget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        try:
            self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing, a machine seconds
            self._file.executescript(SCHEMA)
        except sqlite3.DatabaseError as error:
            raise RecipeError(
                f"{path} is not a log of calls: {error}; restore it, or start a new run with --out"
            ) from error
        (latest,) = self._file.execute("SELECT coalesce(max(session), 0) FROM exchanges").fetchone()
        self._session = latest + 1
        for tokens_in, tokens_out, cost in self._file.execute("SELECT tokens_in, tokens_out, cost FROM replies"):
            budget.add(_sum(tokens_in, tokens_out), cost)

    def find(self, key: str) -> StoredReply | None:
        """Return the recorded reply to a call; None if there is none."""
        with self._lock:
            row = self._file.execute("SELECT reply, seconds FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else StoredReply(raw=json.loads(row[0]), seconds=row[1])

    def begin(self, key: str, draw: Sequence[int]) -> int:
        """Record that an exchange is about to start, and return its id. Raises Halted if a budget is used up."""
        with self._lock:
            if reason := self._budget.reached():
                raise Halted(reason)
            self._budget.flying += 1
            row = (self._session, key, json.dumps(list(draw)), time.time())
            sql = "INSERT INTO exchanges (session, key, draw, began) VALUES (?, ?, ?, ?)"
            return int(self._file.execute(sql, row).lastrowid or 0)

    def fail(self, exchange: int, outcome: str, note: str) -> None:
        """Record that an exchange failed."""
        with self._lock:
            self._budget.flying -= 1
            self._end(exchange, outcome, note)

    def store(self, exchange: int, key: str, stored: StoredReply, reply: ParsedReply) -> None:
        """Record the reply of an exchange."""
        cost = reply.usage.get("cost")
        tokens = reply.usage.get("in"), reply.usage.get("out")
        row = (key, json.dumps(stored.raw, ensure_ascii=True), stored.seconds, *tokens, cost)
        with self._lock:
            self._budget.flying -= 1
            self._budget.add(_sum(*tokens), cost)
            self._file.execute("BEGIN")
            self._file.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", row)
            self._end(exchange, "reply", "")
            self._file.execute("COMMIT")

    def account(self) -> dict[str, Any]:
        """Return exchanges by outcome, the cost of replies, and the exchanges possibly paid for in vain."""
        with self._lock:
            ended = dict(
                self._file.execute("SELECT coalesce(outcome, 'lost'), count(*) FROM exchanges GROUP BY 1 ORDER BY 1")
            )
            sums = ", ".join(f"CASE WHEN count({name}) = count(*) THEN total({name}) END" for name in SUMMED)
            (replies,) = self._file.execute("SELECT count(*) FROM replies").fetchone()
            *tokens, cost = self._file.execute(f"SELECT {sums} FROM replies").fetchone()  # NULL where a reply lacks it
            lost = self._file.execute(
                "SELECT e.id, e.session, e.draw, r.key IS NOT NULL FROM exchanges e LEFT JOIN replies r USING (key) "
                "WHERE e.outcome IS NULL ORDER BY e.id"
            ).fetchall()
        return {
            "exchanges": sum(ended.values()),
            "by_outcome": ended,
            "replies": replies,
            **{name: None if count is None else int(count) for name, count in zip(SUMMED[:2], tokens, strict=True)},
            "cost": cost,
            "possibly_paid_twice": [
                {"exchange": number, "session": session, "draw": json.loads(draw), "asked_again": bool(again)}
                for number, session, draw, again in lost
            ],
        }

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._budget.flying = 0
            self._file.close()

    def _end(self, exchange: int, outcome: str, note: str) -> None:
        sql = "UPDATE exchanges SET ended = ?, outcome = ?, note = ? WHERE id = ?"
        self._file.execute(sql, (time.time(), outcome, note, exchange))


def _sum(tokens_in: int | None, tokens_out: int | None) -> int | None:
    """Return the tokens of a call; None if the reply does not report both."""
    return None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
