"""What was read -> the report: one value that says everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isnan, prod

from verlwatch import __version__
from verlwatch.core import advice as trying
from verlwatch.core import layout as laying
from verlwatch.core.statement import Statement, state
from verlwatch.core.verl_keys import ROLLOUT, Config
from verlwatch.core.work import NAMED
from verlwatch.core.work import gpus as configured_gpus
from verlwatch.report import _costs, _findings, _memory
from verlwatch.report._attributed import Stretch, attributed
from verlwatch.report._gauges import gauges
from verlwatch.report._incidents import incidents
from verlwatch.report._missing import missing
from verlwatch.report._model import (
    SCHEMA,
    Advice,
    Attribution,
    Confidence,
    ConfigFact,
    Finding,
    Incident,
    Layout,
    Mesh,
    Mismatch,
    Report,
    RunFacts,
)
from verlwatch.report._reading import Reading
from verlwatch.report._remarks import remarks
from verlwatch.report._series import steps_of
from verlwatch.report._steps import Steps
from verlwatch.report._words import Words
from verlwatch.report._words_zh_form import FORM

JUDGED_FROM = 20
"""Steps that a baseline needs (docs/DETECTION.md)."""
ENDS = 8
"""With fewer steps, the first are not compared with the last."""
STRETCH = 50
OLD = frozenset({"0.1", "0.2-0.3"})
_SLOWED = {
    "all_slow": "Every phase got slower at once, as from the host or the network: {title}.",
    "step_slow": "Time between the phases is what slowed the run: {title}.",
}
_NOT_OVER = frozenset({"", "run ended"})
"""How an incident is closed that nothing has mended."""
_SEVERITY = {"critical": 0, "warning": 1, "info": 2}
SHOWN = (
    *("trainer.nnodes", "trainer.n_gpus_per_node", "actor_rollout_ref.model.path", "actor_rollout_ref.actor.strategy"),
    *(f"{ROLLOUT}.name", f"{ROLLOUT}.mode", f"{ROLLOUT}.n", "data.train_batch_size", "data.max_prompt_length"),
    *("data.max_response_length", "actor_rollout_ref.actor.ppo_mini_batch_size", "algorithm.adv_estimator"),
)
"""Keys of the configuration that a report always shows, besides those that it talks of."""


def build(reading: Reading, words: Words, span: tuple[int, int] | None = None) -> Report:
    """The report of what was read; of the steps of ``span`` where one is given."""
    steps = steps_of(reading, words, span)
    gpus, _ = _gpus(reading)
    phases = _costs.phase_stats(steps, gpus, words)
    found = incidents(reading, steps, gpus, words)
    cost = _costs.cost(steps, found, gpus, words)
    over_run = _over_run(steps, words)
    sections = {name: gauges(name, reading, steps, words) for name in reading.gauges}
    mismatches = laying.mismatches(reading.config, reading.release, reading.meshes, reading.shapes, reading.offloads)
    findings = (
        *_findings.of_incidents(found, words),
        *_findings.of_steps(phases, over_run, found, words),
        *_findings.of_generation(steps, words),
        *_findings.of_lengths(steps, reading.config.get("data.max_response_length"), words),
        *_memory.unequal(reading, steps, words),
        *_memory.growing(reading, steps, words),
        *_findings.of_engine(sections["engine"], words),
        *_findings.of_communication(sections["communication"], steps, words),
        *_findings.of_supply(sections["supply"], steps, cost, words),
        *_findings.of_use(sections["utilisation"], words),
        *_findings.of_interruptions(cost, words),
    )
    findings = tuple(sorted(_once(findings), key=lambda f: _SEVERITY[f.severity]))
    advice = tuple(_advice(findings, mismatches, reading.config, words))
    named = {*SHOWN, *NAMED, *(a.key for a in advice), *(key for m in mismatches for key in m.keys)}
    return Report(
        schema=SCHEMA,
        verlwatch=__version__,
        language=words.language,
        run=run_facts(reading, steps, words),
        config=tuple(
            ConfigFact(key, value) for key, value in reading.config.items() if key in named or _is_of_network(key)
        ),
        layout=_layout(reading, words),
        mismatches=tuple(_mismatch(m, reading.config, words) for m in mismatches),
        steps=remarks(steps, found, words),
        phases=phases,
        over_run=over_run,
        incidents=found,
        cost=cost,
        memory=_memory.tracks(reading, steps, words),
        engine=sections["engine"],
        communication=sections["communication"],
        supply=sections["supply"],
        utilisation=sections["utilisation"],
        findings=findings,
        advice=advice,
        missing=missing(reading, steps, words),
        headline=_headline(steps, found, findings, mismatches, words),
        range=span,
        words={heading: words(heading) for heading in FORM if "{" not in heading},
    )


def _once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Without what says of the whole run what was said of a step already."""
    told: set[str] = set()
    for finding in findings:
        if finding.step is not None or finding.name not in told:
            told.add(finding.name)
            yield finding


def _is_of_network(key: str) -> bool:
    """Environment variables of collectives, where the configuration sets them."""
    return key.rpartition(".")[2].startswith(("NCCL_", "TORCH_DISTRIBUTED", "GLOO_", "HCCL_"))


def _gpus(reading: Reading) -> tuple[int | None, str]:
    """How many GPUs there are, and who says so."""
    configured = configured_gpus(dict(reading.config))
    if configured:
        return configured, "configuration"
    if reading.world:
        return reading.world, "checkpoint names"
    for mesh in reading.meshes:
        if mesh.sizes:
            return prod(mesh.sizes), "device mesh"
    cards = sum(1 for card in reading.cards.known() if card.gpu is not None)
    return (cards, "memory lines") if cards else (None, "")


def run_facts(reading: Reading, steps: Steps, words: Words) -> RunFacts:
    """Which training this is."""
    gpus, gpus_from = _gpus(reading)
    first = steps.step[0] if len(steps) else 0
    last = steps.step[-1] if len(steps) else 0
    old = words("verl {release} is old: much of what slows it has been mended since.", release=reading.release)
    return RunFacts(
        name=reading.run,
        logs=reading.logs,
        release=reading.release,
        remark=old if reading.release in OLD else "",
        steps=len(steps),
        first=first,
        last=last,
        planned=reading.planned if (reading.planned or 0) >= last else None,  # an attempt that was to be shorter
        attempts=len(set(steps.attempt)),
        finished=reading.finished,
        is_async=reading.is_async,
        judged=len(steps) >= JUDGED_FROM,
        seconds=_costs.wall_seconds(steps),
        gpus=gpus,
        gpus_from=words(gpus_from) if gpus_from else "",
        hosts=tuple(reading.hosts),
    )


def _over_run(steps: Steps, words: Words) -> Attribution | None:
    """The last steps against the first: a fifth of them each, 50 at most."""
    count = len(steps)
    if count < ENDS:
        return None
    warm = 3 if count >= JUDGED_FROM else 0
    stretch = min(STRETCH, max(3, count // 5))
    baselines = [column.expected for column in steps.columns.values() if column.expected]
    if any(not isnan(expected[0]) for expected in baselines):  # these steps begin where the run was warm already
        warm = 0
    elif warm and baselines:
        warm = min(JUDGED_FROM, count - 2 * stretch) if count - 2 * stretch >= JUDGED_FROM else warm
    first, last = range(warm, warm + stretch), range(count - stretch, count)
    return attributed(Stretch(steps, first), Stretch(steps, last), words)


def _layout(reading: Reading, words: Words) -> Layout:
    found = laying.layout(reading.config)
    meshes = tuple(
        Mesh(
            m.name,
            tuple(zip(m.dims or map(str, range(len(m.sizes))), m.sizes, strict=False)),
            m.step,
            "x".join(map(str, m.sizes)),
        )
        for m in reading.meshes
    )
    return Layout(
        found.world,
        found.nodes,
        found.gpus_per_node,
        found.strategy,
        found.engine,
        found.actor,
        found.rollout,
        found.prompts_per_copy,
        found.mini_batch_per_rank,
        meshes,
        words.joined(words(said) for said in _said(reading, found)),
    )


def _said(reading: Reading, found: laying.Layout) -> Iterator[Statement]:
    if found.world:
        yield state(
            "{world} GPUs: {nodes} node(s) of {each}.", world=found.world, nodes=found.nodes, each=found.gpus_per_node
        )
    if found.actor.get("dp"):
        yield state("Training: {sizes}.", sizes=", ".join(f"{name} {size}" for name, size in found.actor.items()))
    if found.rollout.get("copies"):
        yield state("Generation: {copies} copies of the model on {tp} GPU(s) each{pp}.", copies=found.rollout["copies"],
                    tp=found.rollout["tp"] * found.rollout["pp"], pp="")  # fmt: skip
    if found.prompts_per_copy:
        yield state("{prompts} prompts a copy and step.", prompts=f"{found.prompts_per_copy:g}")
    if found.mini_batch_per_rank:
        yield state("{count} samples of a mini batch on each rank.", count=f"{found.mini_batch_per_rank:g}")
    for mesh in reading.meshes[:1] + reading.meshes[1:][-1:]:
        split = laying.tensor_parallel(mesh)
        if split is not None:
            yield state("Printed mesh {name} before step {step}: {copies} copies on {split} GPU(s) each.", split=split,
                        name=mesh.name, step=max(1, mesh.step), copies=prod(mesh.sizes) // split)  # fmt: skip
    if seen := laying.answers(reading.shapes):
        yield state("Generation took {into} prompts and gave {out} samples: {n} each.", into=seen[0], out=seen[1],
                    n=f"{seen[1] / seen[0]:g}")  # fmt: skip


def _mismatch(found: laying.Mismatch, config: Config, words: Words) -> Mismatch:
    keys = tuple(ConfigFact(key, config[key]) for key in found.keys if key in config)
    return Mismatch(found.name, found.severity, found.confidence, words(found.said), keys)


def _advice(
    findings: Sequence[Finding], mismatches: Sequence[laying.Mismatch], config: Config, words: Words
) -> Iterator[Advice]:
    """What to try, each key once, for the finding that counts most."""
    concerns = [(m.name, "gen") for m in mismatches if m.severity != "info"]
    concerns += [(f.name, f.phase) for f in findings if _is_acted_on(f)]
    if {name for name, _ in concerns} & trying.FIRST or any(
        f.name == _memory.ACCUMULATES for f in findings
    ):  # gen is slow for that: nothing else is to be turned yet
        concerns = [concern for concern in concerns if concern[0] != "gen_slow"]
    told: set[str] = set()
    found = laying.layout(config)
    for said in (*trying.moves(config), *trying.advise(dict.fromkeys(concerns), config, found)):
        if said.key not in told:
            told.add(said.key)
            confidence: Confidence = said.confidence
            yield Advice(
                said.finding, said.key, said.value, words(said.attempt), words(said.why), confidence, words(said.proof)
            )


def _is_acted_on(finding: Finding) -> bool:
    """A remark about memory is none to act on."""
    return not (finding.name == "memory_unequal" and finding.severity == "info")


def _headline(
    steps: Steps,
    found: Sequence[Incident],
    findings: Sequence[Finding],
    mismatches: Sequence[laying.Mismatch],
    words: Words,
) -> str:
    """The one sentence for somebody who reads no further, and what is critical and is no matter of a phase."""
    faults = [i for i in found if i.severity == "critical" and i.attribution is None and i.closed_as in _NOT_OVER]
    said = [words("{what}.", what=i.text if words.language == "en" else i.title) for i in faults]
    return words.joined((_of_phases(steps, found, findings, mismatches, words), *said))


def _of_phases(
    steps: Steps,
    found: Sequence[Incident],
    findings: Sequence[Finding],
    mismatches: Sequence[laying.Mismatch],
    words: Words,
) -> str:
    if not len(steps):
        return words("No step with timing was found.")
    timed = sorted((i for i in found if i.attribution), key=lambda i: (i.last is not None, -i.lost_s))
    if timed:
        worst = timed[0]
        parts = [words(_SLOWED.get(worst.rule, "{phase} is what slowed the run: {title}."), phase=worst.phase,
                       title=worst.title)]  # fmt: skip
        if worst.few:
            parts.append(words("A judgement from few steps."))
        parts += [words(m.said) for m in mismatches if m.severity == "warning" and worst.phase == "gen"][:1]
        return words.joined(parts)
    growth = next((f for f in findings if f.name == "workload_growth"), None)
    if growth is not None:
        return growth.title + words(". No phase lost efficiency.")
    bound = next((f for f in findings if f.name == "bound_by"), None)
    few = "" if len(steps) >= JUDGED_FROM else words(" There are too few steps to judge.")
    return words("No change of any phase stands out.") + few + (f" {bound.title}." if bound else "")
