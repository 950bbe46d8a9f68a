"""deploy/grafana/verlwatch.json: a dashboard whose every expression can have data."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.shell.http.fake import exposed
from tests.tools import ROOT, need

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "verlwatch.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[str]:
    for panel in PANELS:
        yield from (target["expr"] for target in panel["targets"])
    yield from (variable["definition"] for variable in DASHBOARD["templating"]["list"] if "definition" in variable)
    yield from (annotation["expr"] for annotation in DASHBOARD["annotations"]["list"])


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_uses_metrics_and_labels_that_exist(expression: str) -> None:
    names = exposed()
    used = re.findall(r"((?:verlwatch|process)_\w+)(?:\{([^}]*)\})?", expression)
    assert used
    for name, matchers in used:
        assert name in names, name
        labels = set(re.findall(r"(\w+)!?=", matchers))
        assert labels <= names[name] | {"instance", "job"}, name


def test_prometheus_can_read_every_expression(tmp_path: Path) -> None:
    promtool = need("promtool", package="prometheus")
    queries = [re.sub(r"\$\w+", ".*", text) for text in expressions() if not text.startswith("label_values(")]
    rules = [{"record": f"expression:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "expressions.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "grafana", "rules": rules}]}))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_panel_has_a_title_a_data_source_and_a_place_of_its_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert panel["title"]
        assert not taken & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert all(panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"} for panel in PANELS)


def test_ids_are_unique() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def legends(panel: dict[str, Any]) -> set[str]:
    return {name for target in panel["targets"] for name in re.findall(r"\{\{(\w+)}}", target.get("legendFormat", ""))}


def test_legends_name_labels_that_exist() -> None:
    labels = {label for names in exposed().values() for label in names} | {"instance"}
    assert all(legends(panel) <= labels for panel in PANELS)
