"""The case that the tutorials walk through, from its log alone and with a configuration in it."""

from __future__ import annotations

from pathlib import Path

from tests.report.made import WORDS, config, names, read, written
from verlwatch import report

TP = "actor_rollout_ref.rollout.tensor_model_parallel_size"


def test_the_case_of_the_tutorials_end_to_end(recorded: Path) -> None:
    found = report.build(read(recorded / "tutorial-forms.log"), WORDS)
    (incident,) = (i for i in found.incidents if i.attribution is not None)
    assert (incident.phase, incident.onset, incident.few) == ("gen", 500, True)
    assert incident.attribution
    assert (incident.attribution.lead, incident.attribution.basis) == ("gen", "seconds")
    assert "few steps" in incident.text
    assert "few steps" in found.headline

    memory = next(f for f in found.findings if f.name == "memory_unequal")
    assert memory.title == "GPU 0 holds 48.2 GB, the others 12.1 GB"
    assert memory.severity == "warning"

    (mesh,) = found.mismatches
    assert (mesh.name, mesh.confidence) == ("tensor_parallel_not_taken_up", "likely")
    assert [(m.text, m.sizes[1]) for m in found.layout.meshes] == [("3x2", ("infer_tp", 2)), ("6x1", ("infer_tp", 1))]
    assert "60 prompts and gave 720 samples: 12 each" in found.layout.text
    assert {g.name: g.median for g in found.communication}["busbw_gb_s"] == 110.534
    assert {g.name: g.median for g in found.supply}["dataloader_fetch_time_s"] == 0.045
    assert found.advice == ()
    assert any("configured" in m.what for m in found.missing)


def test_the_misplaced_key_is_named_when_the_configuration_is_in_the_log(recorded: Path, tmp_path: Path) -> None:
    rows = config(
        trainer__nnodes=1,
        trainer__n_gpus_per_node=6,
        data__train_batch_size=60,
        actor_rollout_ref__actor__tensor_model_parallel_size=2,
        actor_rollout_ref__rollout__tensor_model_parallel_size=1,
        actor_rollout_ref__rollout__n=12,
        actor_rollout_ref__rollout__enforce_eager=True,
    )
    log = written(tmp_path / "r.log", *rows, (recorded / "tutorial-forms.log").read_text())
    found = report.build(read(log), WORDS)
    misplaced, mesh = found.mismatches
    assert (misplaced.name, misplaced.confidence) == ("misplaced_key", "certain")
    assert misplaced.text.startswith("actor_rollout_ref.actor.tensor_model_parallel_size = 2 stands in a block")
    assert mesh.name == "tensor_parallel_not_taken_up"
    first = found.advice[0]
    assert (first.key, first.value, first.attempt) == (TP, 1, "2")
    assert not any(a.finding == "gen_slow" for a in found.advice)
    assert "no verl release reads it" in found.headline


def test_a_mesh_that_is_as_configured_is_right(recorded: Path, tmp_path: Path) -> None:
    rows = config(actor_rollout_ref__rollout__tensor_model_parallel_size=2, actor_rollout_ref__rollout__n=12)
    lines = (recorded / "tutorial-forms.log").read_text().splitlines()
    right = [line for line in lines if "[[0], [1]" not in line and "After rollout generation" not in line]
    found = report.build(read(written(tmp_path / "r.log", *rows, *right)), WORDS)
    assert found.mismatches == ()
    assert names(found) >= {"gen_slow"}
    assert "memory_unequal" not in names(found)
    assert {a.key for a in found.advice} == set()
