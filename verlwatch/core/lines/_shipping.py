r"""What log shippers put around a line: a stamp in front, or the line as a field of a JSON object.

    2025-07-31T08:28:47.911109392Z text                    kubectl logs --timestamps, docker logs -t
    2025-07-31T08:28:47.911109392Z stdout P text           a container runtime's file (CRI); P: the line goes on
    {"log":"text\n","stream":"stdout","time":"..."}        docker's json-file; without \n the line goes on
    {"message":"text","@timestamp":"..."}                  other shippers: log, message, msg, text or line
    Nov 29 22:43:01 host verl[123]: text                   journalctl, syslog; also with an ISO stamp
    [pod/name/container] text                              kubectl logs --prefix
    trainer-1  | text                                      docker compose logs

Both container forms cut long lines (16 kB): the pieces follow one another within their stream.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

_LAYERS = 3  # a shipper that ships what a container runtime has written
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{8,20}(?:Z|[+-][0-9]{2}:?[0-9]{2}) ")
_CRI = re.compile(r"(stdout|stderr) ([FP]) ")
_SYSLOG = re.compile(r"(?:[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} )?([\w.-]{1,64}) ([\w.@/-]{1,64})\[[0-9]{1,10}\]: ")
_MONTH = re.compile(r"[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} ")
_POD = re.compile(r"\[pod/[\w./-]{1,200}\] ")
_SERVICE = re.compile(r"[A-Za-z][\w.-]{0,60}[_-][0-9]{1,4} {1,40}\| ")
_FIELDS = ("log", "message", "msg", "text", "line")


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
        inner = _without_stamp(shipped) or _without_object(shipped)
        if inner is None:
            break
        shipped = inner
    return shipped


def _without_stamp(shipped: Shipped) -> Shipped | None:
    text = shipped.text
    first = text[:1]
    if first == "2" and (stamp := _ISO.match(text)):
        end = stamp.end()
        if runtime := _CRI.match(text, end):
            return Shipped(text[runtime.end() :], runtime[1], runtime[2] == "P")
        if daemon := _SYSLOG.match(text, end):
            end = daemon.end()
        return shipped._replace(text=text[end:])
    if first == "[" and (pod := _POD.match(text)):
        return shipped._replace(text=text[pod.end() :])
    if first.isalpha() and text[3:4] == " " and _MONTH.match(text) and (daemon := _SYSLOG.match(text)):
        return shipped._replace(text=text[daemon.end() :])
    if " | " in text[:108] and (service := _SERVICE.match(text)):
        return shipped._replace(text=text[service.end() :])
    return None


def _without_object(shipped: Shipped) -> Shipped | None:
    text = shipped.text
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return None
    name = next((name for name in _FIELDS if f'"{name}":' in text), None)
    if name is None:
        return None
    try:
        fields = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    inner = fields.get(name)
    if not isinstance(inner, str):
        return None
    stream = fields.get("stream", "")
    whole = inner.endswith("\n") or name != "log" or not isinstance(stream, str) or not stream
    return Shipped(inner.rstrip("\n"), stream if isinstance(stream, str) else "", not whole, unpacked=True)
