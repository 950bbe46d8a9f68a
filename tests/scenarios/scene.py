"""A training told line by line, with the times at which its lines arrive: what `write` makes scenarios of.

The lines have the forms of verl's releases (keys, rounding, wrappers), of Ray's prefixes, tqdm, vLLM and SGLang; all
numbers are made up.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, Self

import orjson

Release = Literal["0.2", "0.4", "0.6", "0.9"]
WRITERS = {"0.2": "main_task", "0.4": "TaskRunner", "0.6": "TaskRunner", "0.9": "TaskRunner"}
PHASES = {"gen": 40.0, "old_log_prob": 6.0, "ref": 5.5, "adv": 0.12, "update_actor": 18.0}
INSIDE = {"0.2": ("testing", "save_checkpoint"), "0.4": ("testing", "save_checkpoint"), "0.6": (),
          "0.9": ("save_checkpoint",)}  # fmt: skip
"""What of validation and checkpoint a release counts as part of the step."""
CHATTER_S = 15.0


class Scene:
    """One run: ``now`` is its clock, each `say` a line that arrives then."""

    def __init__(self, release: Release = "0.9", total: int = 200, *, log: str = "run.log", pid: int = 21044) -> None:
        self.release: Release = release
        self.total = total
        self.log, self.pid = log, pid
        self.now = 0.0
        self.noise = random.Random(total + pid)
        self.logs: dict[str, list[str]] = {}
        self.rows: list[tuple[float, str, str]] = []
        self.bar_at = 0.0

    # ------------------------------------------------------------------------------------------------ time and lines
    def wait(self, seconds: float) -> Self:
        """Nothing arrives for so long."""
        self.now = round(self.now + seconds, 2)
        return self

    def raw(self, *lines: str, log: str = "") -> Self:
        """Lines as they are, without a prefix."""
        log = log or self.log
        known = self.logs.setdefault(log, [])
        known += lines
        if self.rows and self.rows[-1][:2] == (self.now, log) and self.rows[-1][2].isdigit():
            self.rows.pop()
        self.rows.append((self.now, log, str(len(known))))
        return self

    def say(self, *lines: str, who: str = "", pid: int = 0, ip: str = "") -> Self:
        """Lines of a process, with Ray's prefix."""
        where = f", ip={ip}" if ip else ""
        prefix = f"\x1b[36m({who or WRITERS[self.release]} pid={pid or self.pid}{where})\x1b[0m "
        return self.raw(*(prefix + line for line in lines))

    def row(self, name: str, what: str = "") -> Self:
        """What is no line: the readability of a log, the end of the story."""
        self.rows.append((self.now, name, what))
        return self

    def observe(self, observer: str, **said: str | float) -> Self:
        """What an observer beside the log tells."""
        return self.row(observer, orjson.dumps(said).decode())

    def end(self, after_s: float) -> Self:
        """Time passes, and nothing more is told."""
        return self.wait(after_s).row("end")

    # ------------------------------------------------------------------------------------------------ the trainer
    def start(self, *, bar: bool = True) -> Self:
        """Ray, the engine and the workers come up; the trainer says what it plans."""
        self.raw("2026-03-02 09:14:07,310\tINFO worker.py:1879 -- Started a local Ray instance.")
        self.wait(9).say(f"TaskRunner hostname: gpu-node-07, PID: {self.pid}")
        self.say(f"Size of train dataloader: {self.total}, Size of val dataloader: 1",
                 f"Total training steps: {self.total}")  # fmt: skip
        self.wait(38).say("Total steps: 400, num_warmup_steps: 0", who="WorkerDict", pid=21399)
        self.say("Before building vllm rollout, memory allocated (GB): 3.50, memory reserved (GB): 3.75, device memory "
                 "used/total (GB): 5.25/79.11", who="WorkerDict", pid=21399)  # fmt: skip
        self.wait(52).say(
            "Checkpoint tracker file does not exist: ckpt/latest_checkpointed_iteration.txt", "Training from scratch"
        )
        return self.bar(0) if bar else self

    def resume(self, step: int, *, pid: int = 0) -> Self:
        """Another process takes up the training after ``step``."""
        self.pid = pid or self.pid
        self.raw("2026-03-02 15:40:21,118\tINFO worker.py:1879 -- Started a local Ray instance.")
        self.wait(8).say(f"TaskRunner hostname: gpu-node-07, PID: {self.pid}", f"Total training steps: {self.total}")
        self.wait(60).say(f"Load from checkpoint folder: /ckpt/math/global_step_{step}",
                          f"Setting global step to {step}", f"Resuming from /ckpt/math/global_step_{step}")  # fmt: skip
        self.bar_at = self.wait(45).now
        return self.bar(step)

    def bar(self, done: int) -> Self:
        """The trainer's progress bar, without its colour: tqdm prints to stderr."""
        full = done * 10 // self.total
        self.bar_at = self.bar_at if done else self.now
        took = self.now - self.bar_at
        speed = f"{took / done:.2f}s/it" if took else "?it/s"
        left = _clock(took / done * (self.total - done)) if took else "?"
        filled = "█" * full + " " * (10 - full)
        share = f"{done * 100 // self.total:3}%"
        return self.say(f"Training Progress: {share}|{filled}| {done}/{self.total} [{_clock(took)}<{left}, {speed}]")

    def steps(self, first: int, last: int, *, lost_s: float = 0.0, **seconds: float) -> Self:
        """Steps, each a line when it is over; ``seconds`` of phases that differ.

        ``lost_s`` of them have passed already.
        """
        for step in range(first, last + 1):
            self.step(step, {}, lost_s=lost_s if step == first else 0.0, **seconds)
        return self

    def step(
        self, number: int, values: Mapping[str, float] = MappingProxyType({}), *, lost_s: float = 0.0, **seconds: float
    ) -> Self:
        """One step; ``values`` are metrics that differ."""
        took = {name: s * self.noise.uniform(0.96, 1.04) for name, s in PHASES.items()} | seconds
        apart = {name: took.pop(name) for name in ("testing", "save_checkpoint") if name in took}
        training = sum(took.values()) + 0.6
        self.wait(max(0.0, training + sum(apart.values()) - lost_s))
        whole = training + sum(s for name, s in apart.items() if name in INSIDE[self.release])
        shown = self._metrics(number, whole)
        shown.update(values)
        for name, s in (took | apart | {"step": whole}).items():
            shown[f"timing_s/{name}"] = s
        self.say(f"step:{number} - " + " - ".join(f"{key}:{self._value(value)}" for key, value in shown.items()))
        return self.bar(number)

    def _metrics(self, number: int, whole: float) -> dict[str, float]:
        tokens = round(410_000 * self.noise.uniform(0.98, 1.02))
        shown = {
            "actor/entropy": 0.4 * self.noise.uniform(0.97, 1.03),
            "actor/pg_loss": self.noise.uniform(-0.02, 0.02),
            "actor/grad_norm": 0.2 * self.noise.uniform(0.9, 1.1),
            "actor/lr": 1e-6,
            "critic/score/mean": 0.3 + number / 1000,
            "response_length/mean": tokens / 512 - 160,
            "response_length/max": 2048.0,
            "prompt_length/mean": 160.0,
            "perf/total_num_tokens": float(tokens),
            "perf/time_per_step": whole,
            "perf/throughput": tokens / whole / 8,
        }
        match self.release:
            case "0.4":
                shown |= {"training/global_step": float(number), "training/epoch": 0.0}
            case "0.6":
                shown |= {"response/aborted_ratio": 0.0, "timing_s/start_profile": 1.2e-05}
            case "0.9":
                shown |= {
                    "actor/perf/max_memory_allocated_gb": 41.5,
                    "response/aborted_ratio": 0.0,
                    "timing_s/update_weights": 1.9,
                    "perf/cpu_memory_used_gb": 120.0 * self.noise.uniform(0.999, 1.001),
                }
        return shown

    def _value(self, value: float) -> str:
        if self.release in {"0.2", "0.4"}:
            return f"{value:.3f}"
        shown = repr(round(value, 7))
        return f"np.float64({shown})" if self.release == "0.9" and self.noise.random() < 0.5 else shown

    # ------------------------------------------------------------------------------------------------ the others
    def chatter(self, seconds: float, *, running: int | None = None) -> Self:
        """Processes that go on printing though nothing goes on.

        Access logs, or the counters of an engine with so many requests.
        """
        for turn in range(int(seconds / CHATTER_S)):
            self.wait(CHATTER_S)
            if running is None:
                port = 40_000 + turn * 37 % 20_000
                self.say(f'INFO:     10.3.0.7:{port} - "GET /metrics HTTP/1.1" 200 OK', who="vLLMHttpServer", pid=21610)
            else:
                speed = 12.5 if running else 0.0
                self.say(
                    f"INFO 03-02 09:{turn // 4 % 60:02}:{turn % 4 * 15:02} [loggers.py:257] Engine 000: Avg prompt "
                    f"throughput: 0.0 tokens/s, Avg generation throughput: {speed} tokens/s, Running: {running} reqs, "
                    "Waiting: 0 reqs, GPU KV cache usage: 1.5%, Prefix cache hit rate: 22.5%",
                    who="vLLMHttpServer",
                    pid=21610,
                )
        return self.wait(seconds % CHATTER_S)

    # ------------------------------------------------------------------------------------------------ files
    def files(self) -> Iterator[tuple[str, str]]:
        """Name and text of each log, and the timeline."""
        for log, lines in self.logs.items():
            yield log, "".join(line + "\n" for line in lines)
        yield "timeline", "".join(f"{at:<11.8g} {name:<15} {what}".rstrip() + "\n" for at, name, what in self.rows)


def _clock(seconds: float) -> str:
    minutes, s = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{s:02}" if minutes >= 60 else f"{minutes:02}:{s:02}"


def together(*scenes: Scene) -> Scene:
    """Runs that go on at the same time, as one story."""
    whole = Scene()
    whole.rows = sorted((row for scene in scenes for row in scene.rows), key=lambda row: row[0])
    whole.logs = {log: lines for scene in scenes for log, lines in scene.logs.items()}
    return whole
