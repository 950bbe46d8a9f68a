"""`verlwatch status`: asks a running daemon how things stand."""

from __future__ import annotations

import argparse
import sys

import orjson
from pydantic import TypeAdapter, ValidationError

from verlwatch import config as configuration
from verlwatch.commands import _cards, _daemon, silence
from verlwatch.commands._output import say, say_json
from verlwatch.fields import SecretError
from verlwatch.shell.fleet.tls import TlsError
from verlwatch.shell.printable import printable, shortened
from verlwatch.status import AgentStatus, HeartbeatStatus, PhaseStatus, Status

EPILOG = """examples:
  verlwatch status
  sudo verlwatch status --state-dir /var/lib/verlwatch    (the daemon that systemd runs)
  verlwatch status --url http://127.0.0.1:9878/ --json
  verlwatch status --url https://hub.example.org:9878/ --ca ca.pem --token-file token
  verlwatch status --quiet        (exit code only: 0 ready, 1 not ready or not reachable)

Without --url the daemon that holds the state directory is asked, whatever port it got.  Where it serves HTTPS it has
noted its certificate there, and that one is believed, whoever has signed it.
"""
_NAMED, _NAME_LIMIT = 3, 80
"""So many files that an agent cannot read are named, each with so many characters."""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "status",
        help="ask a running daemon how things stand",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _daemon.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the whole status as JSON")
    parser.add_argument("--quiet", action="store_true", help="print nothing; the exit code answers")
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Prints the status; 1 when the daemon is not ready or cannot be reached."""
    try:
        url, body = _daemon.ask(args, _daemon.config_of(args), "/api/v1/status")
        status = _read(url, body)
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


def _read(url: str, body: bytes) -> Status:
    """The status in an answer.

    Raises:
        ValueError: it is none.
    """
    try:
        return TypeAdapter(Status).validate_json(body)
    except ValidationError:
        raise ValueError(f"{url}: what answers is no verlwatch, or one of another version; {_daemon.IS_IT}") from None


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
    if hints := list(_cards.hints(status.runs)):
        lines += ["", *hints]
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
    if status.silences:
        lines.append("\nsilences")
    lines += [f"  {silence.line(one)}" for one in sorted(status.silences, key=lambda one: one.starts_at)]
    if status.heartbeat is not None:
        lines.append(f"\nheartbeat: {_heartbeat(status.heartbeat, status.now)}")
    return "\n".join(lines)


def _heartbeat(heartbeat: HeartbeatStatus, now: float) -> str:
    if heartbeat.withheld:
        return f"WITHHELD: {'; '.join(heartbeat.withheld)}"
    if heartbeat.error:
        return f"not taken: {heartbeat.error}"
    return f"{heartbeat.sent} sent" + (f", {now - heartbeat.sent_at:.0f} s ago" if heartbeat.sent_at else "")


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
