"""deploy/prometheus: the rules are valid, fire when they say and only then, and use metrics that exist."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import yaml

from tests.shell.http.fake import exposed
from tests.tools import ROOT, need

if TYPE_CHECKING:
    from pathlib import Path

RULES = ROOT / "deploy" / "prometheus" / "verlwatch.rules.yaml"
CASES = ROOT / "tests" / "deploy" / "rules_test.yaml"


def alerts() -> dict[str, dict[str, str]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_promtool_accepts_the_rules() -> None:
    promtool = need("promtool", package="prometheus")
    done = subprocess.run([promtool, "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    promtool = need("promtool", package="prometheus")
    cases = tmp_path / "rules_test.yaml"
    cases.write_text(CASES.read_text().replace("RULES", str(RULES)))
    done = subprocess.run([promtool, "test", "rules", cases], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    tests = yaml.safe_load(CASES.read_text())["tests"]
    cases = [case for test in tests for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == set(alerts())
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == set(alerts())


def test_the_rules_use_only_metrics_that_exist() -> None:
    names = exposed()
    for name, rule in alerts().items():
        used = set(re.findall(r"verlwatch_\w+", rule["expr"]))
        assert used <= set(names), name
        assert used or name == "VerlwatchDown"


def test_every_alert_is_in_the_readme() -> None:
    readme = (ROOT / "deploy" / "README.md").read_text()
    assert re.findall(r"^\| (\w+) \|", readme, re.MULTILINE) == ["alert", *alerts()]
