r"""The envelope: what Ray, log shippers and terminals put around a message.

    {ESC}[36m(TaskRunner pid=9263[, ip=10.0.0.7]){ESC}[0m [INFO:2026-01-02 03:04:05,678:]text
        [{ESC}[32m [repeated 3x across cluster][ (Ray deduplicates logs ...)]{ESC}[0m]
    {ESC}[33m(raylet[, ip=10.0.0.7]){ESC}[0m text

Source: Ray ``_private/worker.py:print_worker_logs`` and ``_private/ray_logging``; ``verl/utils/logging_utils.py``.
What log shippers add is taken off before (`_shipping`).
Writers do not wait for each other, so one physical line may hold several messages: the prefix of another writer glued
behind a broken one, updates of a progress bar separated by ``\r``, or text right behind a bar.  A prefix behind
anything else is quoted, and so is every further one where a process writes that prints what models say.

Looking for one character costs next to nothing and tells most lines; only then are patterns tried.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import islice

from verlwatch.core.lines._line import Line
from verlwatch.core.types import NOBODY, Writer

WANDB_LIMIT = 4096
"""wandb's output.log cuts lines at this many characters: a line of exactly that length has lost its end."""

MESSAGES = 2000
"""So many of one physical line are made, the first and the last; more are the updates of a bar, or made up."""

_ANSI = re.compile(r"\x1b\[[0-9;?]*[@-~]")
_ANSI_IN_CARETS = re.compile(r"\^\[\[[0-9;?]*[@-~]")  # as less and vim show ESC, and as people paste it
_NAME = r"[\w.:<>-]{1,80}(?:\([\w=,. ]{0,60}\))?"  # a class, a function, or what an actor's __repr__ says
_PREFIX = re.compile(
    rf"\((?:({_NAME}) pid=([0-9]{{1,10}})|(raylet|gcs_server|autoscaler))"
    r"(?:, ip=([0-9A-Za-z_.:%-]{1,64})| \+[0-9hms]{1,12})?\) ?"
)
_LEVEL = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},[0-9]{3}|[\w.]{1,80}):"
)
_RAY_DRIVER = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},[0-9]{3}[ \t]{1,4}[A-Z]{4,8} [\w.]{1,60}:[0-9]{1,6} -- "
)
_RANK = re.compile(r"\[(rank[0-9]{1,6})\]:")  # torchrun's processes share one output, and their lines mix
_REPEATED = re.compile(r" \[repeated ([0-9]{1,9})x across cluster\]")
_BAR = re.compile(r"%\|[^|]{0,1000}\|[^\[\]|]{0,100}\[[^\]]{0,200}\]")  # tqdm, from its percent sign on
_BAR_TITLE = re.compile(r"(?:[A-Za-z][\w ()-]*: *)?[0-9]{1,3}$")
_BAR_TITLE_LENGTH = 40
_BROKEN_PREFIX = re.compile(
    r"(?:\([\w.:<>-]{0,80}(?: (?:p|pi|pid(?:=[0-9]{0,10}(?:, [ip=0-9A-Fa-f.:]{0,48})?)?)?)?){1,3}"
)
_BAR_AT_END = re.compile(r"%\|[^|]{0,1000}\|[^\[\]|]{0,100}\[[^\]]{0,200}\] *$")
_LONGEST_BAR = 1400


def messages(text: str, *, cut: bool | None = None, writer: Writer = NOBODY) -> list[Line]:
    """The messages of one physical line, in order; ``cut`` says whether the physical line is known to miss its end.

    ``writer`` is who writes all of it, as the file says; nobody where the prefixes say it.  Of very many messages the
    first is made, and the last.
    """
    if len(text) == WANDB_LIMIT:
        cut = True
    if "\x1b" in text:
        text = _without_codes(text)
    if "^" in text:
        text = _ANSI_IN_CARETS.sub("", text)
    is_known = writer != NOBODY
    if "\r" not in text:
        return _segments(text, writer, cut, is_known=is_known)
    text = text.rstrip("\r")
    first, _, others = text.partition("\r")
    parts = [first, *others.rsplit("\r", MESSAGES)[-MESSAGES:]] if others else [first]
    lines: list[Line] = []
    for number, part in enumerate(parts, 1):
        if part:
            before = lines[-1].writer if lines else writer
            is_last = number == len(parts)
            lines += _segments(part, before, cut if is_last else True, is_known=is_known or _has_the_line(before))
    return [line for line in lines if line.text]


def _without_codes(text: str) -> str:
    """Takes out ANSI escape sequences; they stand at the beginning, and trying the pattern on the rest costs more."""
    last = text.rfind("\x1b")
    code = _ANSI.match(text, last)
    end = code.end() if code else last + 1
    return _ANSI.sub("", text[:end]) + text[end:]


def _segments(part: str, writer: Writer, cut: bool | None, *, is_known: bool) -> list[Line]:
    """Splits at the prefixes of writers; a part without one, and all of it where that ``is_known``, is ``writer``'s."""
    prefixes = [] if is_known else _prefixes(part)
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

    Behind text a prefix is quoted, by people and models; one that prints what models say has the line for itself.
    """
    first = _PREFIX.match(part)
    if not _may_hold_prefix(part[first.end() :] if first else part):
        return [first] if first else []
    if first and _has_the_line(_writer(first)):
        return [first]
    found: list[re.Match[str]] = []
    end = 0
    for prefix in islice(_PREFIX.finditer(part), MESSAGES):
        if not _is_unfinished(part, end, prefix.start()):
            break
        found.append(prefix)
        end = prefix.end()
        if _has_the_line(_writer(prefix)):
            break
    return found


def _has_the_line(writer: Writer) -> bool:
    """Whether it prints what models say: whatever follows may be theirs."""
    return Line("", writer).from_rollout


def _is_unfinished(part: str, begin: int, end: int) -> bool:
    """Whether a writer may have been interrupted there: before a message, in its prefix, or behind a bar."""
    if begin == end:
        return not begin or part[begin - 1] != " "
    if end - begin <= _LONGEST_BAR and _BROKEN_PREFIX.fullmatch(part, begin, end):
        return True
    return part[end - 1] in "] " and _BAR_AT_END.search(part, max(begin, end - _LONGEST_BAR), end) is not None


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
    if writer == NOBODY and (rank := _RANK.match(message)):
        writer = Writer(rank[1])
    if "%" not in message:
        return [Line(message, writer, cut, repeated)]
    lines: list[Line] = []
    at = 0
    for bar in _bars(message):
        title = _BAR_TITLE.search(message, max(at, bar.start() - _BAR_TITLE_LENGTH), bar.start())
        begin = title.start() if title else bar.start()
        lines.append(Line(message[at:begin], writer, cut=True, repeated=repeated))
        lines.append(Line(message[begin : bar.end()], writer, cut=False, repeated=repeated, is_bar=True))
        at = bar.end()
    lines.append(Line(message[at:], writer, cut, repeated))
    return [line for line in lines if line.text]


def _bars(message: str) -> list[re.Match[str]]:
    found = _BAR.finditer(message)
    return [*islice(found, 1), *deque(found, maxlen=MESSAGES)]


_HEADS_MAX, _HEAD_LENGTH = 1000, 200
_RESET = b"\x1b[0m"


class Prefixes:
    """The prefixes seen, so that most lines need not be taken apart to know who has written them."""

    def __init__(self) -> None:
        self._writers: dict[bytes, Writer] = {}

    def sole(self, raw: bytes) -> tuple[Writer, bytes] | None:
        """Who has written all of a physical line, and what; None where this is not told by its beginning.

        What has no prefix is not freed of what shippers may have put around it.
        """
        if not raw.isascii():
            return None
        if not raw.startswith((b"(", b"\x1b")):
            return (
                (NOBODY, raw) if not (b"{" in raw or b" P " in raw or b"[rank" in raw or _marked(raw)) else None
            )  # pieces wait
        head, _, rest = raw.partition(b")")
        writer = self._writers.get(head) or self._learn(head)
        if writer is None or _marked(rest):
            return None
        return writer, rest.removeprefix(_RESET).removeprefix(b" ")

    def _learn(self, head: bytes) -> Writer | None:
        prefix = _PREFIX.fullmatch(_without_codes(head.decode()) + ")") if len(head) < _HEAD_LENGTH else None
        if prefix is None:
            return None
        if len(self._writers) >= _HEADS_MAX:
            self._writers.clear()
        return self._writers.setdefault(head, _writer(prefix))


def _marked(raw: bytes) -> bool:
    return b" pid=" in raw or b"(raylet" in raw or b"(gcs_server" in raw or b"(autoscaler" in raw


def plain(raw: bytes, message: bytes, writer: Writer) -> list[Line] | None:
    """What `messages` makes of a line that is ``message`` of ``writer``; None if it has to look further."""
    if b"\x1b" in message or b"^" in message or b"\r" in message or len(raw) == WANDB_LIMIT:
        return None
    return _unwrapped(message.decode(), writer, None)
