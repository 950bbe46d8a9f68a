"""`verlwatch init`: a configuration for the trainings that run here, or ran a short time ago."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from verlwatch.commands._draft import described, draft
from verlwatch.commands._output import say
from verlwatch.shell.printable import printable
from verlwatch.shell.survey import ENDINGS, Limits, survey

EPILOG = """examples:
  verlwatch init                                 look below the current folder, write verlwatch.yaml
  verlwatch init /data/logs ~/runs --days 14     look there, also for what ended two weeks ago
  verlwatch init --output -                      print it

Looks also below $VERL_FILE_LOGGER_ROOT and at the latest Ray session (/tmp/ray, $RAY_TMPDIR).  It reads the ends of
recent files only, follows no links and takes 20 s at most.  Exit code 0: written; 1: nothing found, or not written.
"""

_DEFAULT = "verlwatch.yaml"
_DAYS, _MOST_DAYS = 3.0, 3650
_RAY = Path("/tmp/ray")  # noqa: S108  # where Ray writes


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "init",
        help="find trainings and write a configuration for them",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR", help="where to look (default: here)")
    parser.add_argument(
        "--output", default=_DEFAULT, metavar="FILE", help=f"where to write (default: {_DEFAULT}); - prints it"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument(
        "--days", type=_days, default=_DAYS, metavar="N", help="how recent a log must be (default: %(default)g)"
    )
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Looks, and writes what was found."""
    output: Path | None = None if args.output == "-" else Path(args.output)
    if output is not None and not args.force and os.path.lexists(output):
        return _fail(f"{output} exists; --force replaces it, --output FILE writes elsewhere")
    root, sessions = _places(os.environ)
    folders = [str(folder) for folder in args.folders or [Path()]]
    if missing := [folder for folder in folders if not Path(folder).is_dir()]:
        return _fail(*(f"{folder} is no folder that can be looked into" for folder in missing))
    folders += [root] if root is not None else []
    now = time.time()
    found = survey(folders, sessions, Limits(days=args.days), now)
    for note in found.notes:
        print(printable(note), file=sys.stderr)
    if not found.trainings:
        return _fail(
            f"no training of the last {args.days:g} days found.  Looked for verl's step lines in *{' *'.join(ENDINGS)} "
            f"below {', '.join(map(os.path.realpath, folders))}, and at {', '.join(sessions)}.",
            "Name the folders that hold the logs (`verlwatch init DIR`) or the log itself (`verlwatch run --log LOG`).",
        )
    text = draft(found.trainings, now, root)
    if output is None:
        say(text, end="")
        return 0
    try:
        _write(output, text, replace=args.force)
    except OSError as error:
        return _fail(f"{output}: {(error.strerror or 'cannot be written').lower()}; --output FILE writes elsewhere")
    for logs in found.trainings:
        say(printable(f"{logs[0].path}: {described(logs, now)}"))
    say(printable(f"{output} is written.  Name a receiver in it, then: verlwatch run --config {output}"))
    return 0


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days <= _MOST_DAYS:
        raise argparse.ArgumentTypeError(f"must be a number of days up to {_MOST_DAYS}")
    return days


def _places(env: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """Verl's log root if it is set and there, and where the latest Ray session may be."""
    root = env.get("VERL_FILE_LOGGER_ROOT") or None
    own = Path(env["RAY_TMPDIR"]).absolute() if env.get("RAY_TMPDIR") else None
    bases = [*([own / "ray", own] if own else []), _RAY]
    sessions = [str(base / "session_latest") for base in dict.fromkeys(bases)]
    return (str(Path(root).absolute()) if root and Path(root).is_dir() else None), sessions


def _write(path: Path, text: str, *, replace: bool) -> None:
    """Whole or not at all, readable by this user alone; raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if replace:
            Path(name).replace(path)
        else:
            os.link(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _fail(*lines: str) -> int:
    for line in lines:
        print(printable(line), file=sys.stderr)
    return 1
