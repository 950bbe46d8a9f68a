"""verlwatch's own log: one event a line on stdout, JSON for a journal and text for a terminal.

Everything goes through one pipeline: what verlwatch says (structlog), what its libraries say (stdlib logging, from
WARNING on) and an exception nobody caught.  Known secrets are replaced and hostile characters escaped in every value,
nested ones and tracebacks too, before anything is rendered.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, TextIO
from urllib.parse import quote, urlsplit

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from verlwatch.fields import Secret
from verlwatch.shell._log_output import LogOutput
from verlwatch.shell.printable import printable

LogFormat = Literal["auto", "json", "text"]

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_HIDDEN = "[secret]"
_JSON_BITS = 63
_SHORTEST_PART = 8
"""A part of a secret URL (its path, the last name in it) is a secret itself if it has at least so many characters."""


def configure(
    level: str = "info", log_format: LogFormat = "auto", secrets: Iterable[Secret] = (), out: TextIO | None = None
) -> None:
    """Set up logging for the whole process; calling it again, e.g. after a reload, replaces what was set.

    ``level`` is debug, info, warning or error.  ``auto`` means text where ``out`` (default: stdout) is a terminal.
    """
    stream = LogOutput(out)
    text = log_format == "text" or (log_format == "auto" and stream.isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _timestamp,
            structlog.processors.format_exc_info,
            _Cleaner(secrets),
            _text_renderer(stream) if text else _json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(stream),  # type: ignore[arg-type]  # it writes and flushes
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [_ToStructlog()]
    root.setLevel(logging.WARNING)
    sys.excepthook = _log_crash


class _Cleaner:
    """Makes every key and value of an event plain, free of secrets and harmless to look at."""

    def __init__(self, secrets: Iterable[Secret]) -> None:
        forms = {form for secret in secrets for form in _forms(secret.reveal())}
        self._forms = sorted(forms, key=len, reverse=True)  # a whole URL before the token in it

    def __call__(self, _logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        traceback = str(event.pop("exception", ""))
        cleaned = {self._text(str(key)): self._clean(value) for key, value in event.items()}
        if traceback:  # the one text that keeps its lines
            cleaned["exception"] = "\n".join(self._text(line) for line in traceback.split("\n"))
        return cleaned

    def _clean(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return value if value.bit_length() <= _JSON_BITS else str(value)
        if isinstance(value, dict):
            return {self._text(str(key)): self._clean(each) for key, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._clean(each) for each in value]
        return self._text(str(value))

    def _text(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form, _HIDDEN)
        return printable(text)


def _forms(secret: str) -> set[str]:
    """How a secret may show in a text: itself, quoted for a URL, as `repr` writes it, as the path of a request."""
    url = urlsplit(secret)
    parts = {url.path, f"{url.path}?{url.query}", url.query, url.path.rpartition("/")[2]} if url.scheme else set()
    forms = {secret, *(part for part in parts if len(part) >= _SHORTEST_PART)}
    quoted = (
        {quote(form) for form in forms}
        | {quote(form, safe="") for form in forms}
        | {repr(form)[1:-1] for form in forms}
    )
    return {form for form in forms | quoted if form}


def _timestamp(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["timestamp"] = datetime.now().astimezone().isoformat(timespec="milliseconds")
    return event


def _json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    return orjson.dumps(event, option=orjson.OPT_SORT_KEYS).decode()


def _text_renderer(stream: LogOutput) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty() and not os.environ.get("NO_COLOR"),
        exception_formatter=structlog.dev.plain_traceback,
    )


class _ToStructlog(logging.Handler):
    """Hands what libraries log to structlog, so that it is cleaned and rendered alike."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):  # the library's arguments do not fit its own format
            message = str(record.msg)
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)  # structlog has no levels between
        structlog.get_logger().log(level, message, logger=record.name, exc_info=record.exc_info or None)


def _log_crash(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, traceback)  # Ctrl-C is no crash
        return
    structlog.get_logger().critical("crashed", exc_info=(kind, error, traceback))
