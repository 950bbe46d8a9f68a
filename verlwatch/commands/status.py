"""`verlwatch status`: asks a running daemon how things stand."""

from __future__ import annotations

import argparse
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import orjson

from verlwatch import config as configuration
from verlwatch.fields import SecretError, read_secret
from verlwatch.shell.printable import printable
from verlwatch.shell.state_dir import served_url

EPILOG = """examples:
  verlwatch status
  verlwatch status --state-dir /var/lib/verlwatch         (the daemon that systemd runs; as root)
  verlwatch status --url http://127.0.0.1:9878/ --json
  verlwatch status --quiet        (exit code only: 0 ready, 1 not ready or not reachable)

Without --url the daemon that holds the state directory is asked, whatever port it got.
"""
TIMEOUT_S = 5.0
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
        body = _get(f"{url.rstrip('/')}/api/v1/status", read_secret(token_file).reveal() if token_file else None)
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, ValueError, SecretError) as error:
        if not args.quiet:
            print(error, file=sys.stderr)
        return 1
    status: dict[str, Any] = orjson.loads(body)
    if args.json:
        sys.stdout.buffer.write(body + b"\n")
    elif not args.quiet:
        print("\n".join(map(printable, render(status).splitlines())))
    return 0 if status["ready"] else 1


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


def _get(url: str, token: str | None) -> bytes:
    """The body of a GET.

    Raises:
        OSError: not reachable, or refused; the text names the URL.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url}: not an http(s) URL")
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})  # noqa: S310 - checked above
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            body: bytes = response.read()
            return body
    except urllib.error.HTTPError as error:
        raise OSError(f"{url}: {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise OSError(f"{url}: {error.reason}; is the daemon running, and is this its address? (--url)") from None


def render(status: dict[str, Any]) -> str:
    """A status as a person reads it, at most 100 columns."""
    lines = [f"verlwatch {status['version']}: {'ready' if status['ready'] else 'NOT READY'}"]
    lines += [f"  ! {reason}" for reason in status["not_ready"]]
    lines += [f"  - {notice}" for notice in status["notices"]]
    for run in status["runs"]:
        total = f" of {run['total_steps']}" if run["total_steps"] else ""
        age = f", {run['age_s']:.0f} s ago" if run["age_s"] is not None else ""
        step = f"step {run['step']}{total}{age}" if run["step"] is not None else "no step yet"
        lines.append(f"\n{run['name']}: {run['state']}, {step}, attempt {run['attempt']}")
        lines += [_phase(phase) for phase in run["phases"]]
    if status["incidents"]:
        lines.append("\nincidents")
    for incident in status["incidents"]:
        end = f" ({incident['closed_as']})" if incident["closed_as"] else ""
        lines.append(f"  {incident['id']}  {incident['state']}{end}  {incident['run']}: {incident['summary']}")
    lines.append("\nsources")
    lines += [
        f"  {source['state']:<18} {source['lag_bytes']:>11} B behind  {source['source']}"
        + (f"  {source['error']}" if source["error"] else "")
        for source in status["sources"]
    ]
    for receiver in status["receivers"]:
        counts = f"{receiver['delivered']} delivered, {receiver['pending']} waiting, {receiver['dead']} given up"
        lines.append(f"\nreceiver {receiver['name']} ({receiver['type']}): {counts}")
        if receiver["last_error"]:
            lines.append(f"  last error: {receiver['last_error']}")
    return "\n".join(lines)


def _phase(phase: dict[str, Any]) -> str:
    def cell(value: float | None, form: str) -> str:
        return "-" if value is None else format(value, form)

    if phase["baseline_s"] is None:
        return f"  {phase['name']:<15} {cell(phase['now_s'], '.3g'):>8} s   {phase['state']}"
    now, baseline, ratio = (cell(phase[k], f) for k, f in (("now_s", ".3g"), ("baseline_s", ".3g"), ("ratio", ".2f")))
    return f"  {phase['name']:<15} {now:>8} s   baseline {baseline:>8} s   ×{ratio:<6} {phase['state']}"
