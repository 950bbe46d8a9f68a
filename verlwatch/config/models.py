"""Everything a user can set.  Defaults are written as the user would write them and read by the same parsers.

A field's description is what docs/CONFIG.md, the JSON schema and an editor show.  The kinds of receiver come from
the notifiers themselves.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from verlwatch import fields
from verlwatch.config._delivery import Delivery, Heartbeat
from verlwatch.config._detection import Detection
from verlwatch.config._fleet import Agent, Hub, is_loopback
from verlwatch.config._gpu import Gpu
from verlwatch.config._own import OwnLine, readable
from verlwatch.config._run import JobId, Pid, Room, WallLimit
from verlwatch.config._stalls import Stalls
from verlwatch.config._telling import Incidents, Maintenance, Route, Timezone, Window
from verlwatch.fields import (
    Duration,
    FilePath,
    Model,
    ReceiverConfig,
    SecretPath,
    Size,
    Start,
    Url,
    within,
)
from verlwatch.shell.notifiers import NOTIFIERS
from verlwatch.shell.run_names import NAME_LIMIT, PARTS, run_of, unknown_part

if TYPE_CHECKING:
    Receiver = ReceiverConfig
else:
    Receiver = Annotated[reduce(or_, (notifier.Config for notifier in NOTIFIERS)), Field(discriminator="type")]

_GLOB = frozenset("*?[")
_LAST_PORT = 65_535


class Address(NamedTuple):
    """Where the HTTP server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if only this host can reach it."""
        return is_loopback(self.host)


def parse_listen(value: object) -> Address | None:
    """``127.0.0.1:9878``, ``[::1]:9878`` or ``off`` (None)."""
    if value == "off" or isinstance(value, Address):
        return value if isinstance(value, Address) else None
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not (colon and fields.is_host(host) and port.isascii() and port.isdigit()):
        raise ValueError("must be HOST:PORT or off; write for example 127.0.0.1:9878")
    if (":" in host) != bracketed:
        raise ValueError("an IPv6 address stands in brackets; write for example [::1]:9878")
    if int(port[:6]) > _LAST_PORT:
        raise ValueError("the port must lie between 0 (any free one) and 65535; write for example 9878")
    return Address(host, int(port))


def parse_run_name(text: str) -> str:
    """``text`` if it can be shown on one line, and what stands in braces in it is known."""
    if not text.strip() or not text.isprintable() or len(text) > NAME_LIMIT:
        raise ValueError("must be 1 to 100 printable characters; give the run a short name")
    if (part := unknown_part(text)) is not None:
        known = ", ".join(f"{{{name}}}" for name in PARTS)
        raise ValueError(f"{{{part}}} stands for nothing; write one of {known}, or leave the braces out")
    return text


def parse_host(text: str) -> str:
    """``text`` if it can be the host of a Host header."""
    if set(text) & set("/?#@") or not fields.host_of(text):
        raise ValueError("must be a host name or address without scheme and path; write for example watch.example.org")
    return text


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def run_name(first_log: str) -> str:
    """The name of a run that has none: the stem of its first log, or the folder's name if that is a pattern."""
    path = PurePath(first_log)
    if not _GLOB & set(path.name):
        return path.stem or "run"
    while _GLOB & set(path.name):
        path = path.parent
    return path.name or "run"


Listen = Annotated[
    Address | None,
    PlainValidator(parse_listen),
    PlainSerializer(lambda address: str(address or "off"), return_type=str),
    WithJsonSchema({"type": "string", "examples": ["127.0.0.1:9878", "off"]}),
]
Host = Annotated[str, AfterValidator(parse_host)]
RunName = Annotated[str, AfterValidator(parse_run_name)]


class Run(Room):
    """One training run and the files that tell of it."""

    name: RunName = Field(
        default="",
        description="Unique name, shown in every message. Default: the first log's name without its ending. "
        "`{folder}` and `{file}` in it stand for the folder that a log lies in and for the log's name without its "
        "ending, `{session}` for its Ray session: each different name is a run of its own.",
    )
    logs: tuple[FilePath, ...] = Field(
        min_length=1,
        description="Paths or glob patterns (`*`, `?`, `[…]`, `**`) of the console log and of verl's JSONL file log, "
        "or the folder of a Ray session, for the logs of its newest training. Relative ones start at the folder of "
        "this file; `~` is expanded.",
    )
    start: Start = Field(
        default="last-run",
        alias="from",
        description="What to do with what a log holds when it is first seen: `last-run` reads it all for the baselines "
        "and tells of what still holds, not of what ended before; `beginning` tells everything; `end` reads only what "
        "comes. A log that appears later is told from its first line.",
    )
    pid: Pid = Field(
        default=None,
        description="Process on this host that trains: that it has ended is told at once, also where no log says so.",
    )
    slurm_job: JobId = Field(
        default=None,
        description="Slurm job that trains (`4711`, `4711_3`): Slurm is asked every 30 s how it stands and until when "
        "it may run.",
    )
    wall_limit: WallLimit = Field(
        default=None,
        description="How long the run may take from its start (1m to 3650d), where something ends it then. Default: "
        "what Slurm says of `slurm_job`.",
    )

    @field_validator("pid", "slurm_job")
    @classmethod
    def _is_of_one_run(cls, value: Any, info: ValidationInfo) -> Any:
        name = info.data.get("name", "")
        if value is not None and run_of(name, "/") != name:
            raise ValueError("belongs to one run, and the name stands for several; give that run an entry of its own")
        return value

    @model_validator(mode="before")
    @classmethod
    def _named_after_its_log(cls, data: Any) -> Any:
        match data:
            case {"logs": [str(first), *_]} if data.get("name") is None:
                return {**data, "name": run_name(first)}
        return data


class Http(Model):
    """The status page, the API and the metrics."""

    token_file: SecretPath | None = Field(
        default=None,
        description="File with the bearer token that clients must send. Required to listen beyond loopback.",
    )
    listen: Listen = Field(
        default="127.0.0.1:9878",
        validate_default=True,
        description="HOST:PORT of the status page, API and metrics; port 0 takes any free one; `off` serves nothing.",
    )
    allowed_hosts: tuple[Host, ...] = Field(
        default=(),
        description="Host names under which the page may be asked for besides loopback and the listen address.",
    )
    tls_key: FilePath | None = Field(default=None, description="File with the key of `http.tls_certificate` (PEM).")
    tls_certificate: FilePath | None = Field(
        default=None,
        description="File with a certificate and its chain (PEM): then everything is served by HTTPS.",
    )
    client_ca: FilePath | None = Field(
        default=None,
        description="File with the authority (PEM) by which the certificates of clients must be signed; needs TLS.",
    )

    @field_validator("tls_certificate")
    @classmethod
    def _has_a_key(cls, certificate: str | None, info: ValidationInfo) -> str | None:
        if certificate and not info.data.get("tls_key"):
            raise ValueError("needs its key; set http.tls_key")
        return certificate

    @field_validator("client_ca")
    @classmethod
    def _has_a_certificate(cls, authority: str | None, info: ValidationInfo) -> str | None:
        if authority and not info.data.get("tls_certificate"):
            raise ValueError("needs TLS; set http.tls_certificate and http.tls_key")
        return authority

    @field_validator("listen")
    @classmethod
    def _is_guarded(cls, listen: Address | None, info: ValidationInfo) -> Address | None:
        if listen and not listen.is_loopback and info.data.get("token_file", "") is None:
            raise ValueError(
                "is reachable from other hosts without authentication; set http.token_file, "
                f"or listen on 127.0.0.1:{listen.port}"
            )
        return listen

    @property
    def listen_is_default(self) -> bool:
        """True if nobody chose the address, so that another port will do if this one is taken."""
        return "listen" not in self.model_fields_set


class Reading(Model):
    """How logs are read."""

    poll_interval: Annotated[Duration, within(fields.parse_duration, "10ms", "10s")] = Field(
        default="100ms",
        validate_default=True,
        description="How often the file of a live run is looked at (10ms to 10s).",
    )
    watch: Literal["auto", "poll"] = Field(
        default="auto",
        description="How new, moved and vanished files are noticed: `auto` by inotify at once where the file system "
        "tells of changes (not NFS, Lustre, FUSE, overlay), elsewhere and with `poll` by looking once a second.",
    )
    line_limit: Annotated[Size, within(fields.parse_size, "64KiB", "64MiB")] = Field(
        default="1MiB", validate_default=True, description="Longer lines are cut and counted (64KiB to 64MiB)."
    )
    max_files: int = Field(
        default=1024,
        ge=1,
        le=100_000,
        description="Most files watched at once; more are reported, not read (1 to 100000).",
    )
    hydra: Literal["auto", "off"] = Field(
        default="auto", description="`auto` reads `.hydra/config.yaml` beside the logs of a run, `off` does not."
    )


class Storage(Model):
    """What is kept on disk."""

    keep_steps: Annotated[Duration, within(fields.parse_duration, "1h", "3650d")] = Field(
        default="90d",
        validate_default=True,
        description="How long the values of each step are kept, and where reading stands in a log that is gone "
        "(1h to 3650d).",
    )
    max_size: Annotated[Size, within(fields.parse_size, "16MiB", "1TiB")] = Field(
        default="256MiB",
        validate_default=True,
        description="Largest size of the database with its write-ahead log; the oldest samples of GPUs go first, then "
        "the oldest steps (16MiB to 1TiB).",
    )


class Logging(Model):
    """verlwatch's own log, on stdout."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        default="info", description="Least level logged: debug, info, warning or error."
    )
    format: Literal["auto", "json", "text"] = Field(
        default="auto", description="json, text, or auto: text on a terminal and JSON elsewhere."
    )


class Config(Model):
    """The whole configuration."""

    runs: tuple[Run, ...] = Field(default=(), description="The training runs to watch.")
    lines: Annotated[tuple[OwnLine, ...], BeforeValidator(readable)] = Field(
        default=(), description="Lines of your own to read besides those that verlwatch knows (at most 32)."
    )
    state_dir: FilePath | None = Field(
        default=None,
        description="Folder of the database, on a local file system. Default: systemd's `$STATE_DIRECTORY`, else "
        "`$XDG_STATE_HOME/verlwatch` (`~/.local/state/verlwatch`).",
    )
    http: Http = Field(default_factory=Http, description="The status page, the API and the metrics.")
    agent: Agent = Field(default_factory=Agent, description="What this host's agent ships to which hub.")
    hub: Hub = Field(default_factory=Hub, description="Who may deliver what it has read to this hub.")
    receivers: tuple[Receiver, ...] = Field(default=(), description="Who is told.")
    routes: tuple[Route, ...] = Field(
        default=(),
        description="Who hears of what: the first route that takes an incident counts. Default: all, of all.",
    )
    incidents: Incidents = Field(default_factory=Incidents, description="How often people are told of an incident.")
    quiet_hours: tuple[Window, ...] = Field(
        default=(),
        description="When only critical incidents are told, for example `22:00-08:00` or `sat,sun 00:00-24:00`.",
    )
    maintenance: tuple[Maintenance, ...] = Field(default=(), description="When nobody is told of some runs.")
    timezone: Timezone | None = Field(
        default=None, description="Time zone of these times, for example `Europe/Berlin`. Default: the host's."
    )
    detection: Detection = Field(default_factory=Detection, description="How readily a change is told.")
    stalls: Stalls = Field(default_factory=Stalls, description="How long a new run may go without progress.")
    reading: Reading = Field(default_factory=Reading, description="How logs are read.")
    gpu: Gpu = Field(default_factory=Gpu, description="Where numbers of GPUs come from.")
    storage: Storage = Field(default_factory=Storage, description="What is kept on disk.")
    delivery: Delivery = Field(default_factory=Delivery, description="How receivers are told.")
    heartbeat: Heartbeat = Field(default_factory=Heartbeat, description="Who is told that verlwatch itself watches.")
    logging: Logging = Field(default_factory=Logging, description="verlwatch's own log, on stdout.")
    external_url: Url | None = Field(
        default=None, description="URL under which people reach the status page; messages link to it."
    )

    @field_validator("hub")
    @classmethod
    def _is_private(cls, hub: Hub, info: ValidationInfo) -> Hub:
        http, agent = info.data.get("http"), info.data.get("agent")
        if hub.agents and agent and agent.hub:
            raise ValueError("is set, and agent.hub too; one verlwatch is either a hub or an agent of one")
        if hub.agents and http and http.listen is None:
            raise ValueError("takes deliveries at http.listen, which is off; set an address there")
        is_private = not http or not http.listen or http.listen.is_loopback or http.tls_certificate
        if hub.agents and not is_private and hub.plain_http != "allowed":
            raise ValueError(
                "would take deliveries from other hosts unencrypted; set http.tls_certificate and http.tls_key, or "
                "set hub.plain_http to allowed"
            )
        return hub
