"""How fast logs are read, and what following them costs: `python benchmarks/tail.py [--only reading|following]`.

- reading: a finished log in the page cache is searched for its step lines, by plain read(), wc, grep, the line finder,
  the Reader (every key of every step line a number), each in a process of its own, the best of three; and by mtail and
  rsyslog, which get the first part of the log only.  MB per CPU second.
- following: a real tail with its thread, inotify and inbox.  CPU is of the whole process, up to the records.

With 1 GB it takes about six minutes, half of it mtail and rsyslog.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from benchmarks import _following, _others, _reading, _verl_log

BACKLOG = 500_000_000
MTAIL = "mtail, 11 numbers"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", choices=("reading", "following"))
    parser.add_argument("--mb", type=int, default=1000, help="size of the log that is read, MB (default 1000)")
    parser.add_argument("--others-mb", type=int, default=200, help="what mtail and rsyslog get of it (default 200)")
    parser.add_argument(
        "--quiet-s", type=float, default=0.0, help="seconds that the sparse log is quiet (default none)"
    )
    parser.add_argument("--gap-s", type=float, default=0.3, help="between its lines, about (default 0.3)")
    parser.add_argument("--appends", type=int, default=_following.APPENDS, help="lines for each delay (default 200)")
    args = parser.parse_args()
    if args.only != "following":
        with tempfile.TemporaryDirectory(dir=_roomy(args.mb)) as name:
            reading(Path(name), args.mb * 10**6, args.others_mb * 10**6)
    if args.only != "reading":
        with tempfile.TemporaryDirectory() as name:
            following(Path(name), quiet_s=args.quiet_s, gap_s=args.gap_s, appends=args.appends)


def _roomy(mb: int) -> str | None:
    """Memory where the log fits twice, else the disk."""
    shm = Path("/dev/shm")  # noqa: S108  # a directory of its own is made in it
    return str(shm) if shm.is_dir() and shutil.disk_usage(shm).free > 4 * mb * 10**6 else None


def reading(folder: Path, size: int, part: int) -> None:
    """The first table."""
    folder.chmod(0o755)  # mtail and rsyslog run as another user
    log, first = folder / "train.log", folder / "first.log"
    size, lines = _verl_log.write(log, size)
    print(f"{size / 1e6:,.0f} MB, {lines:,} lines of {size / lines:.0f} bytes, in {folder.parent}")
    rows: list[tuple[str, _reading.Cost | None]] = [*_reading.table(log)]
    _verl_log.write(first, min(part, size))
    steps = _reading.tool("grep", "-c", "-e", _reading.NEEDLE, log=first).found
    for label in (MTAIL, "rsyslog, a filter"):
        own = folder / label.split(",")[0]
        own.mkdir()
        rows.append((label, _others.mtail(first, own) if label == MTAIL else _others.rsyslog(first, own, steps)))
    floor = next(cost.rate for _, cost in rows if cost)
    mtail = dict(rows)[MTAIL]
    print(f"{'':<32}{'MB/s':>8}{'CPU s/GB':>10}{'÷ read()':>10}{'÷ mtail':>9}{'RSS MB':>8}{'found':>9}")
    for label, cost in rows:
        if cost is None:
            print(f"{label:<32}  not installed")
            continue
        ratio = f"{cost.rate / mtail.rate:.1f}" if mtail else "-"
        print(
            f"{label:<32}{cost.rate:>8,.0f}{1e3 / cost.rate:>10.2f}{cost.rate / floor:>10.3f}{ratio:>9}"
            f"{f'{cost.rss_mb:.0f}' if cost.rss_mb else '-':>8}{cost.found:>9,}"
        )


def following(folder: Path, *, quiet_s: float, gap_s: float, appends: int) -> None:
    """The second table."""
    ended, live, busy, sparse = (folder / name for name in ("ended", "live", "busy", "sparse"))
    for part in (ended, live, busy, sparse):
        part.mkdir()
    log = folder / "backlog.log"
    rate = asyncio.run(_following.backlog(log, _verl_log.write(log, BACKLOG)[0]))
    _row(f"{log.stat().st_size / 1e6:,.0f} MB that were there before, to chunks", f"{rate:,.0f} MB per CPU second")
    count = f"{_following.FILES:,}"
    share = asyncio.run(_following.idle(ended, live=False))
    _row(f"{count} idle files that ended long ago", f"{share:.2%} of a core")
    share = asyncio.run(_following.idle(live, live=True))
    _row(f"{count} idle files that have just been written", f"{share:.2%} of a core")
    share, rate = asyncio.run(_following.busy(busy))
    _row(f"{rate:,.0f} writes/s over {_following.BUSY_FILES} files", f"{share:.1%} of a core")
    log = folder / "train.log"
    seconds = asyncio.run(_following.delays(log, beside=None, quiet_s=0.0, gap_s=gap_s, appends=appends))
    _row("append -> record", _delays(seconds))
    log = sparse / "driver.out"
    seconds = asyncio.run(_following.delays(log, beside=sparse, quiet_s=quiet_s, gap_s=gap_s, appends=appends))
    _row(f"the same among {count} idle files, after {quiet_s:.0f} s", _delays(seconds))
    _row("resident memory at most", f"{_following.peak_mb():.0f} MB")


def _delays(seconds: list[float]) -> str:
    p50, p99 = (seconds[len(seconds) * percent // 100] * 1e3 for percent in (50, 99))
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {seconds[-1] * 1e3:.0f} ms"


def _row(label: str, value: str) -> None:
    print(f"{label:<48}  {value}", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main()
