"""`verlwatch status`: asks a running daemon how things stand."""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import sys
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from verlwatch import config as configuration
from verlwatch.commands._output import say, say_json
from verlwatch.fields import CREDENTIAL, SecretError, parse_url, read_secret
from verlwatch.shell.fleet import tls
from verlwatch.shell.fleet.tls import TlsError
from verlwatch.shell.printable import printable, shortened
from verlwatch.shell.state_dir import Served, served
from verlwatch.status import AgentStatus, PhaseStatus, Status

EPILOG = """examples:
  verlwatch status
  sudo verlwatch status --state-dir /var/lib/verlwatch    (the daemon that systemd runs)
  verlwatch status --url http://127.0.0.1:9878/ --json
  verlwatch status --url https://hub.example.org:9878/ --ca ca.pem --token-file token
  verlwatch status --quiet        (exit code only: 0 ready, 1 not ready or not reachable)

Without --url the daemon that holds the state directory is asked, whatever port it got.  Where it serves HTTPS it has
noted its certificate there, and that one is believed, whoever has signed it.
"""
TIMEOUT_S = 5.0
BODY_LIMIT = 64 << 20
"""Bytes of an answer; the status of a thousand runs has a few million."""
_IS_IT = "is the daemon running, and is this its address? (--url)"
_IS_KNOWN = (
    "is the daemon running, is this its address (--url), who has signed its certificate (--ca), and does it ask for "
    "one (--certificate, --key)?"
)
_NAMED, _NAME_LIMIT = 3, 80
"""So many files that an agent cannot read are named, each with so many characters."""
_NAME_IT = "name another with --state-dir, or the daemon's address with --url"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "status",
        help="ask a running daemon how things stand",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", metavar="URL", help="the daemon's status page (default: as the daemon noted it)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration of the daemon")
    parser.add_argument("--state-dir", metavar="DIR", help="state directory of the daemon (default: as configured)")
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token, where one is configured")
    parser.add_argument("--ca", metavar="FILE", help="certificate (PEM) of the authority that signed the daemon's")
    parser.add_argument(
        "--certificate", metavar="FILE", help="certificate (PEM) to show, where the daemon asks for one"
    )
    parser.add_argument("--key", metavar="FILE", help="its key (PEM; default: in the same file)")
    parser.add_argument("--json", action="store_true", help="the whole status as JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing; the exit code answers")
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Prints the status; 1 when the daemon is not ready or cannot be reached."""
    try:
        config = _config(args)
        served = Served(args.url) if args.url else _served(config)
        body = asyncio.run(
            _get(served.url, _token(args.token_file or config.http.token_file), _tls(args, served, config))
        )
        status = _read(served.url, body)
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, ValueError, SecretError, TlsError) as error:
        if not args.quiet:
            print(printable(str(error)), file=sys.stderr)
        return 1
    if args.json:
        say_json(orjson.Fragment(body))
    elif not args.quiet:
        say("\n".join(map(printable, render(status).splitlines())))
    return 0 if status.ready else 1


def _config(args: argparse.Namespace) -> configuration.Config:
    """What the daemon is configured with.  Raises ConfigError."""
    path: Path | None = args.config or configuration.find()
    config = configuration.load(path) if path else configuration.Config()
    return configuration.apply(config, os.environ, {"state_dir": args.state_dir})


def _served(config: configuration.Config) -> Served:
    """Where the daemon of the state directory serves its status.

    Never a configured address alone: the daemon may have taken another port, and whoever listens there may be a
    stranger, who must not be shown as ours and not be sent the token.

    Raises:
        OSError: no daemon holds the state directory, or it cannot be looked into.
    """
    folder = configuration.state_dir(config)
    try:
        found = served(folder)
    except OSError as error:
        raise OSError(f"{folder}: {error.strerror}; {_NAME_IT}") from None
    if found is None:
        raise OSError(f"no daemon that serves its status runs on state directory {folder}; {_NAME_IT}")
    return found


def _tls(args: argparse.Namespace, asked: Served, config: configuration.Config) -> ssl.SSLContext | None:
    """How the daemon is known, and what it is shown; None for plain HTTP.

    A daemon of this host that asks for certificates is shown its own, where nothing else is given.

    Raises:
        TlsError: a certificate or key cannot be used.
    """
    if not asked.url.lower().startswith("https:"):
        return None
    certificate, key = args.certificate, args.key
    if asked.certificate and config.http.client_ca and not certificate:
        certificate, key = config.http.tls_certificate, config.http.tls_key
    if asked.certificate and not args.ca:
        return tls.pinned(asked.certificate, certificate, key)
    return tls.client(args.ca, certificate, key)


def _token(path: str | None) -> str | None:
    """The token in a file.

    Raises:
        SecretError: there is none, or only the daemon can read it.
    """
    if path is None:
        return None
    if path.startswith(CREDENTIAL) and not os.environ.get("CREDENTIALS_DIRECTORY"):
        raise SecretError(f"{path}: only the service is given it; name the file itself with --token-file")
    return read_secret(path).reveal()


async def _get(url: str, token: str | None, context: ssl.SSLContext | None) -> bytes:
    """The answer to the question for the status.  The environment's proxies are for other hosts than ours.

    Raises:
        OSError: none within TIMEOUT_S, or a no; the text names the URL.
        ValueError: ``url`` is none.
    """
    # other commands need no HTTP client
    from verlwatch.shell.notifiers import DeliveryError, fetch, open_session  # noqa: PLC0415

    try:
        address = f"{parse_url(url).rstrip('/')}/api/v1/status"
    except ValueError as error:
        raise ValueError(f"--url {error}") from None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with asyncio.timeout(TIMEOUT_S), open_session() as session:
            code, body = await fetch(session, address, headers, BODY_LIMIT, context)
    except TimeoutError:
        raise OSError(f"{url}: no whole answer within {TIMEOUT_S:g} s; {_IS_IT}") from None
    except DeliveryError as error:
        raise OSError(f"{url}: {error}; {_IS_KNOWN if context else _IS_IT}") from None
    if code == 401:  # noqa: PLR2004 - HTTP's word for it
        raise OSError(f"{url}: asks for another token; give its file with --token-file")
    if code != 200:  # noqa: PLR2004 - HTTP's yes
        raise OSError(f"{url}: answered {code}; {_IS_IT}")
    return body


def _read(url: str, body: bytes) -> Status:
    """The status in an answer.

    Raises:
        ValueError: it is none.
    """
    try:
        return TypeAdapter(Status).validate_json(body)
    except ValidationError:
        raise ValueError(f"{url}: what answers is no verlwatch, or one of another version; {_IS_IT}") from None


def render(status: Status) -> str:
    """A status as a person reads it, at most 100 columns."""
    lines = [f"verlwatch {status.version}, {status.role}: {'ready' if status.ready else 'NOT READY'}"]
    lines += [f"  ! {reason}" for reason in status.not_ready]
    lines += [f"  - {notice}" for notice in status.notices]
    for run in status.runs:
        total = f" of {run.total_steps}" if run.total_steps else ""
        age = f", {run.age_s:.0f} s ago" if run.age_s is not None else ""
        step = f"step {run.step}{total}{age}" if run.step is not None else "no step yet"
        lines.append(f"\n{run.name}: {run.state}, {step}, attempt {run.attempt}")
        lines += [_phase(phase) for phase in run.phases]
    if status.incidents:
        lines.append("\nincidents")
    for incident in status.incidents:
        end = f" ({incident.closed_as})" if incident.closed_as else ""
        lines.append(f"  {incident.id}  {incident.state}{end}  {incident.run}: {incident.summary}")
    lines += _agents(status)
    lines.append("\nsources")
    lines += [
        f"  {source.state:<18} {source.lag_bytes:>11} B behind  {source.source}"
        + (f"  {source.error}" if source.error else "")
        for source in status.sources
    ]
    for receiver in status.receivers:
        counts = f"{receiver.delivered} delivered, {receiver.pending} waiting, {receiver.dead} given up"
        lines.append(f"\nreceiver {receiver.name} ({receiver.type}): {counts}")
        if receiver.last_error:
            lines.append(f"  last error: {receiver.last_error}")
    return "\n".join(lines)


def _agents(status: Status) -> list[str]:
    lines = ["\nagents"] if status.agents else []
    for one in sorted(status.agents, key=lambda one: not status.is_silent(one)):
        heard = (
            f"heard {status.now - one.seen_at:.0f} s ago" if one.seen_at is not None else "not heard since the start"
        )
        lines.append(f"  {one.name}: {'SILENT, ' if status.is_silent(one) else ''}{heard}{_of_itself(one)}")
        if one.unreadable:
            more = f" and {len(one.unreadable) - _NAMED} more" if len(one.unreadable) > _NAMED else ""
            names = (shortened(name, _NAME_LIMIT) for name in one.unreadable[:_NAMED])
            lines.append(f"    ! {len(one.unreadable)} cannot be read: {', '.join(names)}{more}")
        if one.thinned or one.lost or one.repeated or one.refused:
            lines.append(
                f"    {one.thinned} samples thinned, {one.lost} shipments lost, {one.repeated} repeated, "
                f"{one.refused} requests refused"
            )
    if status.strangers:
        lines.append(f"  {status.strangers} requests with a token that is nobody's, or another agent's")
    return lines


def _of_itself(agent: AgentStatus) -> str:
    """What an agent says of itself; nothing before it is heard."""
    if agent.seen_at is None:
        return ""
    skew = f", clock {round(agent.skew_s, 1) + 0.0:+.1f} s" if agent.skew_s is not None else ""
    return f", version {agent.version}{skew}, lag {agent.lag_s:.0f} s, {agent.waiting} waiting, {agent.sources} sources"


def _phase(phase: PhaseStatus) -> str:
    def cell(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    if phase.baseline_s is None:
        return f"  {phase.name:<15} {cell(phase.now_s, '.3g'):>8} s   {phase.state}"
    now, baseline, ratio = (
        cell(phase.now_s, ".3g"),
        cell(phase.baseline_s, ".3g"),
        cell(phase.ratio, ".2f"),
    )
    return f"  {phase.name:<15} {now:>8} s   baseline {baseline:>8} s   ×{ratio:<6} {phase.state}"
