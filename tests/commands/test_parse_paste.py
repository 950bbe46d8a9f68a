"""`verlwatch parse --paste` reads what people pasted."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from verlwatch.cli import main

PASTED = """(TaskRunner pid=4242) step:7
 - actor/lr:1e-06
 - timing_s/gen:41.5
 - timing_s/step:77.25
"""


@pytest.mark.parametrize(("options", "values"), [([], {}), (["--paste"], {"timing_s/step": 77.25})])
def test_rows_are_put_together_where_it_is_asked_for(
    options: list[str], values: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "issue.txt"
    path.write_text(PASTED)
    assert main(["parse", "--json", *options, str(path)]) == 0
    (record,) = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert values.items() <= record["values"].items()
    assert bool(record["values"]) == bool(options)
