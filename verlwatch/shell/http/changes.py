"""What people may change of what they are told, while the daemon runs: silences, and incidents that they accept.

    GET    /api/v1/silences
    POST   /api/v1/silences                {"run": "my-run", "phase": "gen", "for": "2h", "comment": "…", "author": "…"}
    DELETE /api/v1/silences/ID
    POST   /api/v1/incidents/ID/accept     {}

A change goes through the inbox to the judge, who alone touches the engine, and is answered once it is committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from verlwatch.core.engine import Engine
from verlwatch.core.incidents import Silence, silence_id, silence_state
from verlwatch.core.types import Json, Outcome
from verlwatch.fields import parse_duration
from verlwatch.shell.clock import Clock
from verlwatch.shell.inbox import Inbox, Request
from verlwatch.shell.store import StoreUnavailable

if TYPE_CHECKING:
    from verlwatch.shell.http._actions import Actions

ANSWER_S = 10.0
SILENCES_MOST = 500
PATTERNS = ("run", "rule", "phase", "host", "rank")
PATTERN_LENGTH, TEXT_LENGTH = 200, 300
LONGEST_S = 30 * 86_400.0
SILENCES = "/api/v1/silences"
ACCEPT = "/api/v1/incidents/{id}/accept"

Work = Callable[[Engine, float], Outcome | None]


class Changes:
    """What may be changed, through the ``inbox`` of the judge."""

    def __init__(self, inbox: Inbox, clock: Clock, engine: object) -> None:
        self._inbox = inbox
        self._clock = clock
        self._engine = engine

    def actions(self) -> Actions:
        """By method and path."""
        return {
            ("POST", SILENCES): self._silence,
            ("DELETE", f"{SILENCES}/{{id}}"): self._end_silence,
            ("POST", ACCEPT): self._accept,
        }

    async def _silence(self, asked: Json) -> Mapping[str, Any]:
        silence = silence_of(asked, self._clock.now())
        covers: dict[str, Any] = {}

        def take(engine: Engine, now: float) -> Outcome | None:
            if _is_full(engine):
                return None
            covers.update(_covered(engine, silence))
            return engine.silence(silence, now)

        await self._ask(take, _FULL)
        return {**silence_state(silence), "covers": covers}

    async def _end_silence(self, asked: Json) -> Mapping[str, Any]:
        key = str(asked["id"])
        missing = f"no silence is called {key}; `verlwatch silence list` shows those there are"
        await self._ask(lambda engine, now: engine.end_silence(key, now), missing)
        return {"removed": key}

    async def _accept(self, asked: Json) -> Mapping[str, Any]:
        key = str(asked["id"])
        missing = f"no open incident of a run is called {key}; `verlwatch incidents` shows those there are"
        await self._ask(lambda engine, now: engine.accept_incident(key, now), missing)
        return {"accepted": key}

    async def _ask(self, work: Work, missing: str) -> None:
        """Has something changed and committed.

        Raises:
            LookupError: there is nothing to change; the text is ``missing``.
            ValueError: an agent has neither incidents nor silences.
            StoreUnavailable: it was not committed in time.
        """
        if not isinstance(self._engine, Engine):
            raise ValueError("this is an agent, which judges nothing; ask its hub")  # noqa: TRY004 - see `Action`
        request = Request(work, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._inbox.put(request)
                found = await request.answer
        except (TimeoutError, RuntimeError):
            raise StoreUnavailable(
                "not committed in time: the daemon stops, or its disk does not take it; see later whether it was done"
            ) from None
        if not found:
            raise LookupError(missing)


def _covered(engine: Engine, silence: Silence) -> dict[str, Any]:
    """What it has to do with at present: the runs that have not ended, and how many of their open incidents."""
    runs = [run for run in engine.runs.values() if not run.finished and silence.fits_run(run.name)]
    incidents = sum(silence.covers(incident) for run in runs for incident in run.incidents)
    return {"runs": [run.name for run in runs], "incidents": incidents}


def _is_full(engine: Engine) -> bool:
    return sum(1 for _ in engine.silences) >= SILENCES_MOST


_FULL = f"there are {SILENCES_MOST} silences already; remove some"


def silence_of(body: Mapping[str, Any], now: float) -> Silence:
    """The silence that a request describes.  Raises ValueError."""
    known = {*PATTERNS, "for", "comment", "author"}
    if unknown := sorted(map(str, body.keys() - known)):
        raise ValueError(f"unknown: {', '.join(unknown)[:TEXT_LENGTH]}; known are {', '.join(sorted(known))}")
    patterns = {name: _pattern(_text(body, name, "*", PATTERN_LENGTH)) for name in PATTERNS}
    if set(patterns.values()) == {"*"}:
        raise ValueError(f"that would silence everything; give at least one of {', '.join(PATTERNS)}")
    lasts = body.get("for")
    try:
        seconds = None if lasts is None else parse_duration(lasts)
    except ValueError as error:
        raise ValueError(f"for: {error}") from None
    if seconds is not None and not 0 < seconds <= LONGEST_S:
        raise ValueError("for: must be more than 0s and at most 30d; leave it out for until the run's end")
    words = {name: _text(body, name, "", TEXT_LENGTH) for name in ("comment", "author")}
    fields = {**patterns, **words, "for": seconds}
    return Silence(
        id=silence_id(fields, now),
        starts_at=now,
        ends_at=None if seconds is None else now + seconds,
        **patterns,
        **words,
    )


def _pattern(pattern: str) -> str:
    """``*`` for what fits every name, however it is written."""
    return "*" if "*" in pattern and set(pattern) <= set("*?") else pattern


def _text(body: Mapping[str, Any], name: str, default: str, most: int) -> str:
    """What stands there; the default where nothing does, which for a pattern is not the same as an empty text."""
    text = body.get(name)
    if text is None:
        return default
    if not isinstance(text, str) or not text.isprintable() or len(text) > most or (default and not text):
        raise ValueError(f"{name}: must be a text of {'1 to' if default else 'at most'} {most} printable characters")
    return text
