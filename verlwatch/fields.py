"""The kinds of value a configuration is made of: durations, sizes, shares, URLs and secrets.

Each is read from the text the user wrote (``100ms``, ``1MiB``, ``2%``), never from what a YAML parser guesses of it.
A Python number passes as it stands, in the unit the type states.  Errors are ValueErrors whose text says what is
wrong and what to write; they never repeat a URL or a secret.
"""

from __future__ import annotations

import errno
import math
import os
import re
import stat
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from yarl import URL

CREDENTIAL = "credential:"
"""Prefix of a secret's path that names a file of ``$CREDENTIALS_DIRECTORY`` (systemd's LoadCredential)."""

_SECRET_LIMIT = 64 * 1024
_HOST_LIMIT = 253
_LABEL = re.compile(r"[a-z0-9_-]{1,63}", re.IGNORECASE)
_NETLOC = re.compile(r"(?:[^\[\]:@]*|\[[^\[\]:@]*:[^\[\]@]*\])(?::[0-9]*)?")
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_BYTES = {
    "B": 1,
    "KB": 10**3,
    "KiB": 1 << 10,
    "MB": 10**6,
    "MiB": 1 << 20,
    "GB": 10**9,
    "GiB": 1 << 30,
    "TB": 10**12,
    "TiB": 1 << 40,
}
_PERIODS = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0, "month": 30 * 86_400.0, "year": 365 * 86_400.0}


Start = Literal["beginning", "end", "last-run"]
"""What to do with what a log holds when it is first seen."""


class Model(BaseModel):
    """Base of everything that is configured: values are fixed once read, and a key nobody knows is an error.

    A key with nothing (null) behind it is the same as no key, so that a section may have all its lines commented out.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.by_key()}

    @classmethod
    def by_key(cls) -> dict[str, FieldInfo]:
        """The settings under the keys that a user writes."""
        return {field.alias or name: field for name, field in cls.model_fields.items()}


class SecretError(Exception):
    """A secret cannot be read; the text names the file and the remedy, never the content."""


class Secret:
    """A text that shows as ``***`` wherever it is printed, logged or formatted."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not serialised")

    def reveal(self) -> str:
        """The text itself."""
        return self._text


def _number(value: object) -> float | None:
    """A Python number that stands for itself; None if ``value`` is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.isfinite(value) or value < 0:
        raise ValueError("must be a finite number, not negative")
    return float(value)


def _with_unit(value: object, units: Mapping[str, float], example: str) -> float:
    """``<number><unit>`` in the base unit."""
    text = value.strip() if isinstance(value, str) else ""
    match = re.fullmatch(_NUMBER + r"\s*([A-Za-z]*)", text)
    if match is None:
        raise ValueError(f"must be a number with a unit; write for example {example}")
    number, unit = match.groups()
    factor = {name.lower(): factor for name, factor in units.items()}.get(unit.lower())
    if factor is None:
        wrong = f"unknown unit {unit[:20]!r}" if unit else "has no unit"
        raise ValueError(f"{wrong}; write for example {example} (units: {', '.join(units)})")
    return float(number) * factor


def parse_duration(value: object) -> float:
    """Seconds of ``100ms``, ``5s``, ``2m``, ``1h``, ``90d``, ``2w``."""
    number = _number(value)
    return _with_unit(value, _SECONDS, "100ms, 5s, 2m, 1h or 90d") if number is None else number


def parse_size(value: object) -> int:
    """Bytes of ``64KiB``, ``1MiB``, ``2GB`` (KiB = 1024, KB = 1000)."""
    number = _number(value)
    return int(_with_unit(value, _BYTES, "64KiB, 1MiB or 2GB") if number is None else number)


def parse_share(value: object) -> float:
    """0.0 to 1.0 of ``1%``.  A text without ``%`` is refused: 1 could mean 1 % or all."""
    number = _number(value)
    if number is None:
        match = re.fullmatch(_NUMBER + r"\s*%", value.strip() if isinstance(value, str) else "")
        if match is None:
            raise ValueError("must be a percentage; write for example 1%")
        number = float(match[1]) / 100
    if number > 1:
        raise ValueError("must not be over 100%")
    return number


def parse_rate(value: object) -> float:
    """Occurrences per month (30 days) of ``1 per month per run``, ``2 per week per run``."""
    number = _number(value)
    if number is not None:
        return number
    periods = "|".join(_PERIODS)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    match = re.fullmatch(rf"{_NUMBER} per ({periods})(?: per run)?", text)
    if match is None:
        raise ValueError("must be a rate; write for example 1 per month per run (hour, day, week, month or year)")
    return float(match[1]) * _PERIODS["month"] / _PERIODS[match[2]]


def is_host(text: str) -> bool:
    """Whether ``text`` is an IP address or a name that can be looked up (RFC 1035, 2.3.4; RFC 3490).

    The socket module raises a UnicodeError for other names, when it is too late to say where the name stands.
    """
    try:
        name = text.encode("idna")
        name.decode("idna")
        labels = name.decode().removesuffix(".").split(".")
        if ":" in text or labels[-1].isdigit():
            return bool(ip_address(text))
    except ValueError:
        return False
    return len(text) <= _HOST_LIMIT and all(map(_LABEL.fullmatch, labels))


def host_of(text: str) -> str:
    """The host in ``name``, ``name:port``, ``[v6]:port`` or ``v6``, in one spelling; empty if malformed."""
    bare = text.count(":") > 1 and not text.startswith("[")
    try:
        host = (urlsplit(f"//[{text}]" if bare else f"//{text}").hostname or "").rstrip(".")
    except ValueError:
        return ""
    return host if is_host(host) else ""


def parse_url(text: str) -> str:
    """``text`` if it is an http(s) URL without user name and password, of a host that can be looked up."""
    example = "write for example https://host.example/path"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        URL(text)  # who asks for it knows characters that no host has
    except ValueError:
        usable = False
    if not usable or not text.isprintable() or " " in text:
        raise ValueError(f"must be a URL with a host; {example}")
    if "@" in parts.netloc:
        raise ValueError("has a user name or password in it; take it out and put what is secret into a file")
    if not _NETLOC.fullmatch(parts.netloc) or not is_host(parts.hostname or ""):
        raise ValueError(f"has a host that can be neither a name nor an address; {example}")
    return text


def parse_name(text: str) -> str:
    """``text`` if it can be the name of a receiver: it appears in metric labels, URLs and command lines."""
    if not re.fullmatch(r"[a-z0-9_-]{1,64}", text):
        raise ValueError("must consist of a-z, 0-9, _ and - (at most 64); write for example team-slack")
    return text


def within(parse: Callable[[object], float], low: str, high: str) -> AfterValidator:
    """Bounds in the words of the user; the error names them."""
    least, most = parse(low), parse(high)

    def check(value: float) -> float:
        if not least <= value <= most:
            raise ValueError(f"must lie between {low} and {high}")
        return value

    return AfterValidator(check)


def absolute(text: str, info: ValidationInfo) -> str:
    """``~`` expanded and, if relative, taken from the folder of the configuration (context ``folder``)."""
    if not text or "\0" in text:
        raise ValueError("must be the path of a file; it is empty or holds a NUL")
    context: Mapping[str, Any] = info.context or {}
    path = _expanded(text)
    try:
        os.fsencode(text)
        return str(path if path.is_absolute() else Path(context.get("folder") or Path.cwd()) / path)
    except FileNotFoundError:
        raise ValueError("is relative to a working directory that is gone; write the whole path") from None
    except UnicodeEncodeError:
        raise ValueError("holds a character that no file name can have") from None


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError("begins with ~ but there is no such home directory; write the whole path") from None


def _secret_path(text: str, info: ValidationInfo) -> str:
    if not text.startswith(CREDENTIAL):
        return absolute(text, info)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", text.removeprefix(CREDENTIAL)):
        raise ValueError(f"must name a systemd credential; write for example {CREDENTIAL}slack")
    return text


def secret_file(path: str, env: Mapping[str, str] = os.environ) -> Path:
    """The file a SecretPath stands for; raises SecretError where a credential is asked for and systemd gave none."""
    if not path.startswith(CREDENTIAL):
        return Path(path)
    folder = env.get("CREDENTIALS_DIRECTORY")
    if not folder:
        raise SecretError(
            f"{path}: systemd passed no credentials ($CREDENTIALS_DIRECTORY is not set); "
            "add LoadCredential= to the unit, or give the path of a file"
        )
    return Path(folder) / path.removeprefix(CREDENTIAL)


def open_to_others(path: str) -> str | None:
    """What is wrong with who may read a secret file; of a credential systemd itself decides that."""
    if path.startswith(CREDENTIAL):
        return None
    mode = stat.S_IMODE(Path(path).stat().st_mode)
    return f"{path} is open to other users (mode {mode:04o}); chmod 600 it" if mode & 0o077 else None


def read_regular(path: Path, limit: int) -> bytes:
    """The first ``limit`` + 1 bytes of a regular file.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    # Without O_NONBLOCK a FIFO would wait for ever for someone who writes.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        return stream.read(limit + 1)


def read_secret(path: str, env: Mapping[str, str] = os.environ) -> Secret:
    """The content of the file behind a SecretPath without its trailing newline.

    Raises SecretError if it is missing, unreadable, no regular file, empty, over 64 KiB or not UTF-8.
    """
    file = secret_file(path, env)
    try:
        data = read_regular(file, _SECRET_LIMIT)
    except OSError as error:
        raise SecretError(
            f"{file}: {(error.strerror or 'cannot be read').lower()}; create it with the secret as its only line, "
            "readable by the user verlwatch runs as (mode 0600)"
        ) from None
    if len(data) > _SECRET_LIMIT:
        raise SecretError(f"{file}: is over 64 KiB; it must hold the secret only")
    try:
        text = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise SecretError(f"{file}: is no UTF-8 text; it must hold the secret as plain text") from None
    if not text.strip():
        raise SecretError(f"{file}: is empty; write the secret into it")
    return Secret(text)


def _text_schema(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [example]})


Duration = Annotated[float, BeforeValidator(parse_duration), _text_schema("5s")]
"""Seconds."""
Size = Annotated[int, BeforeValidator(parse_size), _text_schema("1MiB")]
"""Bytes."""
Share = Annotated[float, BeforeValidator(parse_share), _text_schema("1%")]
"""0.0 to 1.0."""
Rate = Annotated[float, BeforeValidator(parse_rate), _text_schema("1 per month per run")]
"""Occurrences per month of 30 days."""
Url = Annotated[str, AfterValidator(parse_url), _text_schema("https://host.example/path")]
"""An http(s) URL as the user wrote it, without credentials in it."""
FilePath = Annotated[str, AfterValidator(absolute), _text_schema("/path/to/file")]
"""An absolute path; relative ones start at the folder of the configuration file."""
SecretPath = Annotated[str, AfterValidator(_secret_path), _text_schema("/path/to/secret")]
"""An absolute path, or ``credential:NAME``; see read_secret."""
Name = Annotated[str, AfterValidator(parse_name), WithJsonSchema({"type": "string", "pattern": "^[a-z0-9_-]{1,64}$"})]
"""The name of a receiver."""


class ReceiverConfig(Model):
    """What every receiver has.  A notifier's ``Config`` derives from it and narrows ``type`` to a Literal.

    A field that holds a SecretPath has a name ending in ``_file``, and in ``url_file`` if the file holds a URL.
    """

    name: Name = Field(description="Unique name: a-z, 0-9, _ and -.")
    type: str
    language: Literal["en", "zh"] = Field(
        default="en", description="Language of its messages: `en`, or `zh` for Chinese."
    )
