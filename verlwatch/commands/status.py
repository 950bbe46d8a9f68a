"""`verlwatch status`: asks a running daemon how things stand."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from verlwatch import config as configuration
from verlwatch.commands._output import say, say_json
from verlwatch.fields import CREDENTIAL, SecretError, parse_url, read_secret
from verlwatch.shell.printable import printable
from verlwatch.shell.state_dir import served_url
from verlwatch.status import PhaseStatus, Status

EPILOG = """examples:
  verlwatch status
  sudo verlwatch status --state-dir /var/lib/verlwatch    (the daemon that systemd runs)
  verlwatch status --url http://127.0.0.1:9878/ --json
  verlwatch status --quiet        (exit code only: 0 ready, 1 not ready or not reachable)

Without --url the daemon that holds the state directory is asked, whatever port it got.
"""
TIMEOUT_S = 5.0
BODY_LIMIT = 64 << 20
"""Bytes of an answer; the status of a thousand runs has a few million."""
_IS_IT = "is the daemon running, and is this its address? (--url)"
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
    parser.add_argument("--json", action="store_true", help="the whole status as JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing; the exit code answers")
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Prints the status; 1 when the daemon is not ready or cannot be reached."""
    try:
        url, token_file = _where(args)
        body = asyncio.run(_get(url, _token(token_file)))
        status = _read(url, body)
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, ValueError, SecretError) as error:
        if not args.quiet:
            print(printable(str(error)), file=sys.stderr)
        return 1
    if args.json:
        say_json(orjson.Fragment(body))
    elif not args.quiet:
        say("\n".join(map(printable, render(status).splitlines())))
    return 0 if status.ready else 1


def _where(args: argparse.Namespace) -> tuple[str, str | None]:
    """The daemon's URL and the file of its token.

    Never a configured address alone: the daemon may have taken another port, and whoever listens there may be a
    stranger, who must not be shown as ours and not be sent the token.

    Raises:
        OSError: no daemon holds the state directory, or it cannot be looked into.
    """
    path: Path | None = args.config or configuration.find()
    config = configuration.load(path) if path else configuration.Config()
    config = configuration.apply(config, os.environ, {"state_dir": args.state_dir})
    token_file: str | None = args.token_file or config.http.token_file
    if args.url:
        return args.url, token_file
    folder = configuration.state_dir(config)
    try:
        url = served_url(folder)
    except OSError as error:
        raise OSError(f"{folder}: {error.strerror}; {_NAME_IT}") from None
    if url is None:
        raise OSError(f"no daemon that serves its status runs on state directory {folder}; {_NAME_IT}")
    return url, token_file


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


async def _get(url: str, token: str | None) -> bytes:
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
            code, body = await fetch(session, address, headers, BODY_LIMIT)
    except TimeoutError:
        raise OSError(f"{url}: no whole answer within {TIMEOUT_S:g} s; {_IS_IT}") from None
    except DeliveryError as error:
        raise OSError(f"{url}: {error}; {_IS_IT}") from None
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
    lines = [f"verlwatch {status.version}: {'ready' if status.ready else 'NOT READY'}"]
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
