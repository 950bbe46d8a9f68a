r"""The envelope: what Ray, log shippers and terminals put around a message.

    {ESC}[36m(TaskRunner pid=9263[, ip=10.0.0.7]){ESC}[0m [INFO:2026-01-02 03:04:05,678:]text
        [{ESC}[32m [repeated 3x across cluster][ (Ray deduplicates logs ...)]{ESC}[0m]
    {ESC}[33m(raylet[, ip=10.0.0.7]){ESC}[0m text

Source: Ray ``_private/worker.py:print_worker_logs`` and ``_private/ray_logging``; ``verl/utils/logging_utils.py``.
What log shippers add is taken off before (`_shipping`).
Writers do not wait for each other, so one physical line may hold several messages: the prefix of another writer glued
behind a broken one, updates of a progress bar separated by ``\r``, or text right behind a bar.

Looking for one character costs next to nothing and tells most lines; only then are patterns tried.
"""

from __future__ import annotations

import re

from verlwatch.core.lines._line import Line
from verlwatch.core.types import NOBODY, Writer

WANDB_LIMIT = 4096
"""wandb's output.log cuts lines at this many characters: a line of exactly that length has lost its end."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[@-~]")
_ANSI_IN_CARETS = re.compile(r"\^\[\[[0-9;?]*[@-~]")  # as less and vim show ESC, and as people paste it
_NAME = r"[\w.:<>-]{1,80}(?:\([\w=,. ]{0,60}\))?"  # a class, a function, or what an actor's __repr__ says
_PREFIX = re.compile(
    rf"\((?:({_NAME}) pid=([0-9]{{1,10}})|(raylet|gcs_server|autoscaler))"
    r"(?:, ip=([^)\s]{1,64})| \+[0-9hms]{1,12})?\) ?"
)
_LEVEL = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},[0-9]{3}|[\w.]{1,80}):"
)
_RAY_DRIVER = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},[0-9]{3}[ \t]{1,4}[A-Z]{4,8} [\w.]{1,60}:[0-9]{1,6} -- "
)
_REPEATED = re.compile(r" \[repeated ([0-9]{1,9})x across cluster\]")
_BAR = re.compile(r"%\|[^|]{0,1000}\|[^\[\]|]{0,100}\[[^\]]{0,200}\]")  # tqdm, from its percent sign on
_BAR_TITLE = re.compile(r"(?:[A-Za-z][\w ()-]*: *)?[0-9]{1,3}$")
_BAR_TITLE_LENGTH = 40
_QUOTING = " \t\"'`"


def messages(text: str, *, cut: bool | None = None, writer: Writer = NOBODY) -> list[Line]:
    """The messages of one physical line, in order; ``cut`` says whether the physical line is known to miss its end.

    ``writer`` is who writes what has no prefix.
    """
    if len(text) == WANDB_LIMIT:
        cut = True
    if "\x1b" in text:
        text = _without_codes(text)
    if "^" in text:
        text = _ANSI_IN_CARETS.sub("", text)
    if "\r" not in text:
        return _segments(text, writer, cut)
    lines: list[Line] = []
    *broken, last = text.rstrip("\r").split("\r")
    for part in filter(None, broken):
        lines += _segments(part, lines[-1].writer if lines else writer, cut=True)
    lines += _segments(last, lines[-1].writer if lines else writer, cut)
    return [line for line in lines if line.text]


def _without_codes(text: str) -> str:
    """Takes out ANSI escape sequences; they stand at the beginning, and trying the pattern on the rest costs more."""
    last = text.rfind("\x1b")
    code = _ANSI.match(text, last)
    end = code.end() if code else last + 1
    return _ANSI.sub("", text[:end]) + text[end:]


def _segments(part: str, writer: Writer, cut: bool | None) -> list[Line]:
    """Splits at the prefixes of writers; a part without one belongs to the writer of the part before."""
    prefixes = _prefixes(part) if _may_hold_prefix(part) else []
    if not prefixes:
        return _unwrapped(part, writer, cut)
    if len(prefixes) == 1 and not prefixes[0].start():
        return _unwrapped(part[prefixes[0].end() :], _writer(prefixes[0]), cut)
    ends = [*(prefix.start() for prefix in prefixes[1:]), len(part)]
    lines: list[Line] = []
    if begin := prefixes[0].start():
        lines = _unwrapped(part[:begin], writer, cut=True)
    for prefix, end in zip(prefixes, ends, strict=False):
        lines += _unwrapped(part[prefix.end() : end], _writer(prefix), cut if end == len(part) else True)
    return lines


def _writer(prefix: re.Match[str]) -> Writer:
    name, pid, daemon, ip = prefix.groups()
    return Writer(name or daemon, int(pid or 0), ip or "")


def _may_hold_prefix(part: str) -> bool:
    return " pid=" in part or "(raylet" in part or "(gcs_server" in part or "(autoscaler" in part


def _prefixes(part: str) -> list[re.Match[str]]:
    """Complete prefixes: at the start, or glued to what another writer left unfinished.

    Those that people and models quote follow a blank or a quotation mark.
    """
    first = _PREFIX.match(part)
    if first and not _may_hold_prefix(part[first.end() :]):
        return [first]
    return [
        prefix for prefix in _PREFIX.finditer(part) if not prefix.start() or part[prefix.start() - 1] not in _QUOTING
    ]


def _unwrapped(message: str, writer: Writer, cut: bool | None) -> list[Line]:
    """Takes log level and dedup suffix off, and splits at progress bars."""
    if len(message) == WANDB_LIMIT:
        cut = True
    repeated = 0
    if "[" in message and (suffix := _REPEATED.search(message)):
        repeated = int(suffix[1])
        message = message[: suffix.start()]
    if level := _LEVEL.match(message) or _RAY_DRIVER.match(message):
        message = message[level.end() :]
    if "%" not in message:
        return [Line(message, writer, cut, repeated)]
    lines: list[Line] = []
    at = 0
    for bar in _BAR.finditer(message):
        title = _BAR_TITLE.search(message, max(at, bar.start() - _BAR_TITLE_LENGTH), bar.start())
        begin = title.start() if title else bar.start()
        lines.append(Line(message[at:begin], writer, cut=True, repeated=repeated))
        lines.append(Line(message[begin : bar.end()], writer, cut=False, repeated=repeated, is_bar=True))
        at = bar.end()
    lines.append(Line(message[at:], writer, cut, repeated))
    return [line for line in lines if line.text]
