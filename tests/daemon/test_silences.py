"""People silence, look and accept by the command line, while the real daemon runs and is killed."""

from __future__ import annotations

from pathlib import Path

from tests.core.training import Training
from tests.daemon.conftest import Starter
from tests.daemon.harness import Sink
from tests.daemon.test_live import run_to_end


async def test_what_is_silenced_is_told_when_the_silence_is_removed_and_accepted_is_the_end_of_it(
    tmp_path: Path, start: Starter, sink: Sink
) -> None:
    log, training = tmp_path / "train.log", Training()
    where = ("--state-dir", tmp_path / "state")
    log.write_text("".join(training.steps(1, 60).lines))
    arguments = ("--log", log, "--webhook-url", sink.url, *where)
    daemon = await start(*arguments)
    await daemon.caught_up(log)
    code, said = await run_to_end("silence", "add", *where, "--run", "train", "--for", "2h", "--comment", "known")
    assert code == 0, said
    silence = said.split()[0]

    training.lines.clear()
    with log.open("a") as file:
        file.write("".join(training.steps(61, 80, gen=80.0).lines))
    await daemon.until(lambda status: bool(status["incidents"]))
    await daemon.kill()
    daemon = await start(*arguments)
    await daemon.caught_up(log)
    assert sink.received == []
    code, said = await run_to_end("incidents", *where)
    assert (code, f"not told: silenced by {silence}" in said) == (0, True), said
    code, said = await run_to_end("silence", "list", *where)
    assert said.startswith(f"{silence}  run train  until ")
    assert said.rstrip().endswith("known")

    assert (await run_to_end("silence", "remove", silence, *where))[0] == 0
    await daemon.until(lambda _: len(sink.received) == 1)
    (opened,) = (body for _, _, body in sink.received)
    assert opened["reason"] == "opened"
    assert (await run_to_end("accept", opened["incident"], *where))[0] == 0
    await daemon.until(lambda _: len(sink.received) == 2)
    assert [body["reason"] for _, _, body in sink.received] == ["opened", "accepted"]
    code, said = await run_to_end("accept", opened["incident"], *where)
    assert (code, "no open incident" in said) == (1, True), said
    code, said = await run_to_end("incidents", "--all", *where)
    assert "accepted" in said
