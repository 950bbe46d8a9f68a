r"""What log shippers put around a line: a stamp in front, or the line as a field of a JSON object.

    2025-07-31T08:28:47.911109392Z text                    kubectl logs --timestamps, docker logs -t
    2025-07-31T08:28:47.911109392Z stdout P text           a container runtime's file (CRI); P: the line goes on
    {"log":"text\n","stream":"stdout","time":"..."}        docker's json-file; long and without \n the line goes on
    {"log":"text","stream":"stdout","logtag":"F"}          Fluent Bit of CRI; P: the line goes on
    {"message":"text","@timestamp":"..."}                  other shippers: log, message, msg; text, line with a time
    Nov 29 22:43:01 host verl[123]: text                   journalctl, syslog; also with an ISO stamp, or short-full
    <13>1 2025-07-31T08:28:47Z host app 123 - - text       RFC 5424
    ERROR 2025-07-31T08:28:47Z text                        gcloud logging read
    2025-07-31 08:28:47 text                               ts, and others that write no zone
    [pod/name/container] text                              kubectl logs --prefix
    verl-head-0 trainer text                               stern
    trainer-1  | text                                      docker compose logs
    3: text, [default3]:text, [1,3]<stderr>:text           srun -l, torchrun --tee, mpirun --tag-output
    gpu-1 [stderr] text                                    launchers that merge the outputs of hosts

Both container forms cut long lines (16 kB): the pieces follow one another within their stream.  What may as well be
text of the run's own is taken off only in front of what a run is known to begin its lines with.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

_LAYERS = 4  # a shipper that ships what a container runtime has written
_PIECE_BYTES = 16_000  # docker cuts at 16 KiB, escapes of JSON not counted

_CODES = r"(?:\x1b\[[0-9;]{0,20}m){0,4}"
_SURE = (
    rf"(?={_CODES}(?:\([A-Za-z_][\w.:<>(), =-]{{0,140}} pid=[0-9]|\((?:raylet|gcs_server|autoscaler)[,)]|step:[0-9]))"
)
"""A pattern of what is in front of a message of Ray's or a step line."""
_KNOWN = (
    rf"(?:{_SURE}|(?={_CODES}(?: {{2,40}}\S|Traceback \(most recent call last\)|Training Progress:|"
    r"Total training steps|Error executing job with |\[rank[0-9]|[\w.]{0,80}(?:Error|Exception)(?:: |$)|"
    r"[(\"']{0,2}(?:Initial|Final) val)))"
)
"""Also of what begins without a writer's name."""

_DATE = r"20[0-9]{2}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_ZONE = r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
_DAEMON = r"[\w.-]{1,64} [\w.@/-]{1,64}\[[0-9]{1,10}\]: "
_ISO = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ][0-9:.,]{{8,20}}{_ZONE} ")
_CRI = re.compile(r"(stdout|stderr) ([FP]) ")
_SYSLOG = re.compile(_DAEMON)
_FRONTS = {
    **dict.fromkeys(
        "0123456789 ",
        (
            rf"{_DATE}[ T]{_CLOCK} (?![A-Z]{{4,8}} [\w.]{{1,60}}:[0-9]{{1,6}} -- )",  # that is a head of Ray's driver
            rf"{_CLOCK} {_KNOWN}",
            rf" {{0,5}}[0-9]{{1,5}}: {_KNOWN}",
        ),
    ),
    "[": (
        r"\[pod/[\w./-]{1,200}\] ",
        rf"\[{_DATE}[ T]{_CLOCK}{_ZONE}?\] {_KNOWN}",
        r"\[default[0-9]{1,5}\]:",
        r"\[[0-9]{1,5},[0-9]{1,5}\]<std(?:out|err)>: ?",
    ),
    "<": (
        rf"<[0-9]{{1,3}}>1 {_DATE}T{_CLOCK}{_ZONE} [\w.-]{{1,255}} \S{{1,48}} \S{{1,128}} \S{{1,32}} "
        r"(?:-|(?:\[(?:[^\]\\]|\\.){1,400}\]){1,8}) (?:\ufeff)?",
    ),
}
_WORDS = (
    rf"[A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK} {_DAEMON}",
    rf"[A-Z][a-z]{{2}} {_DATE} {_CLOCK} [A-Z]{{3,5}} {_DAEMON}",
    rf"(?:DEFAULT|DEBUG|INFO|NOTICE|WARNING|ERROR|CRITICAL|ALERT|EMERGENCY) {_DATE}T{_CLOCK}Z ",
    r"[\w.-]{1,64} \[std(?:out|err)\] ",
    rf"{_CODES}[A-Za-z][\w.-]{{0,60}}[_-][0-9]{{1,4}} {{1,40}}\|{_CODES} {_CODES}",
    rf"{_CODES}(?=[a-z-]{{0,200}}[0-9])[a-z0-9][a-z0-9.]{{0,60}}-[a-z0-9.-]{{1,200}}{_CODES} "
    rf"{_CODES}[a-z0-9][a-z0-9-]{{0,62}}{_CODES} {_SURE}",
)
_FRONT = {first: re.compile("|".join(fronts)) for first, fronts in _FRONTS.items()}
_WORD = re.compile("|".join(_WORDS))

_FIELDS = ("log", "message", "msg")
_FIELDS_WITH_TIME = ("text", "line")  # a row of a data set has them as well
_TIMES = ("time", "timestamp", "@timestamp", "ts", "_time", "date", "datetime", "stream")


class Shipped(NamedTuple):
    """A line without what shippers put around it; ``goes_on``: it is a piece, the next follows in ``stream``."""

    text: str
    stream: str = ""
    goes_on: bool = False
    unpacked: bool = False


def unshipped(text: str) -> Shipped:
    """Takes off what shippers have put around a line; most lines have nothing, which costs next to nothing to see."""
    shipped = Shipped(text)
    for _ in range(_LAYERS):
        inner = _without_front(shipped) or _without_object(shipped)
        if inner is None:
            break
        shipped = inner
    return shipped


def _without_front(shipped: Shipped) -> Shipped | None:
    text = shipped.text
    first = text[:1]
    if first == "2" and (stamp := _ISO.match(text)):
        end = stamp.end()
        if runtime := _CRI.match(text, end):
            return Shipped(text[runtime.end() :], runtime[1], runtime[2] == "P")
        if daemon := _SYSLOG.match(text, end):
            end = daemon.end()
        return shipped._replace(text=text[end:])
    pattern = _FRONT.get(first) or (_WORD if first.isalpha() or first == "\x1b" else None)
    front = pattern.match(text) if pattern else None
    if front is None and pattern is not _WORD and first.isdecimal():
        front = _WORD.match(text)
    return shipped._replace(text=text[front.end() :]) if front else None


def _without_object(shipped: Shipped) -> Shipped | None:
    text = shipped.text
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return None
    if not any(f'"{name}":' in text for name in (*_FIELDS, *_FIELDS_WITH_TIME)):
        return None
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    names = (*_FIELDS, *_FIELDS_WITH_TIME) if any(name in fields for name in _TIMES) else _FIELDS
    name = next((name for name in names if isinstance(fields.get(name), str)), None)
    if name is None:
        return None
    inner = fields[name]
    stream = fields.get("stream")
    stream = stream if isinstance(stream, str) else ""
    goes_on = name == "log" and bool(stream) and _is_piece(inner, fields.get("logtag"))
    return Shipped(inner.rstrip("\n"), stream, goes_on, unpacked=True)


def _is_piece(inner: str, logtag: Any) -> bool:
    """Whether a container runtime has cut the line here; a short one without its newline is what a process left."""
    if isinstance(logtag, str):
        return logtag == "P"
    return not inner.endswith("\n") and len(inner.encode(errors="replace")) >= _PIECE_BYTES
