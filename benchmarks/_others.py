"""mtail and rsyslog as Debian has them, made to find the step lines of the same log.

Each runs without rights, in a directory of its own, for a limited time, and is ended by its process id.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

from benchmarks._reading import NEEDLE, Cost

LONGEST_S = 300.0

MTAIL = r"""
counter steps
gauge number by key
/ step:\d+ - / {
  steps++
@TIMINGS@
}
"""
# Eleven numbers of each step line, a gauge each.
TIMINGS = (
    "timing_s/gen", "timing_s/reward", "timing_s/old_log_prob", "timing_s/ref", "timing_s/adv", "timing_s/update_actor",
    "timing_s/step", "perf/throughput", "response_length/mean", "critic/score/mean", "actor/entropy",
)  # fmt: skip

RSYSLOG = """
global(workDirectory="{folder}" maxMessageSize="64k")
module(load="imfile")
input(type="imfile" file="{log}" tag="train" ruleset="steps")
template(name="line" type="string" string="%msg%\\n")
ruleset(name="steps") {{
  if $msg contains "{needle}" then {{ action(type="omfile" file="{folder}/found" template="line" asyncWriting="off") }}
}}
"""


def mtail(log: Path, folder: Path) -> Cost | None:
    """Reads the log once; None if it is not installed."""
    if shutil.which("mtail") is None:
        return None
    gauge = '  / {}:(?P<value>[0-9.e-]+)/ {{\n    number["{}"] = float($value)\n  }}'
    gauges = "\n".join(gauge.format(key.replace("/", "\\/"), key) for key in TIMINGS)
    (folder / "steps.mtail").write_text(MTAIL.replace("@TIMINGS@", gauges))
    _give(folder)
    command = [
        "mtail",
        "--one_shot",
        "--progs",
        str(folder),
        "--logs",
        str(log),
        "--address",
        "127.0.0.1",
        "--port",
        "0",
    ]
    with (folder / "told").open("wb") as told, _unprivileged(command, folder, told) as child:
        cpu_s = _wait(child)
    (steps,) = json.loads((folder / "told").read_bytes())["steps"][0]["LabelValues"]
    return Cost(log.stat().st_size, cpu_s, steps["Value"]["Value"], 0.0)


def rsyslog(log: Path, folder: Path, steps: int) -> Cost | None:
    """Reads the log until all steps are found; None if it is not installed."""
    daemon = shutil.which("rsyslogd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if daemon is None:
        return None
    (folder / "rsyslog.conf").write_text(RSYSLOG.format(folder=folder, log=log, needle=NEEDLE))
    found = folder / "found"
    found.touch()
    _give(folder)
    command = [daemon, "-n", "-f", str(folder / "rsyslog.conf"), "-i", str(folder / "pid")]
    with (folder / "told").open("wb") as told, _unprivileged(command, folder, told) as child:
        end, seen = time.monotonic() + LONGEST_S, 0
        while seen < steps and time.monotonic() < end and child.poll() is None:
            time.sleep(0.05)
            seen = found.read_bytes().count(b"\n")
        child.terminate()
        cpu_s = _wait(child)
    return Cost(log.stat().st_size, cpu_s, seen, 0.0)


def _give(folder: Path) -> None:
    """Lets a user without rights work in the folder."""
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "nobody", "nogroup")


def _unprivileged(command: list[str], folder: Path, told: object) -> subprocess.Popen[bytes]:
    who = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen(command, cwd=folder, stdout=told, stderr=subprocess.DEVNULL, **who)  # type: ignore[call-overload,no-any-return]


def _wait(child: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a child that ends, or is ended when its time is over."""
    end = time.monotonic() + LONGEST_S
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.monotonic() > end:
            child.kill()
        time.sleep(0.02)
