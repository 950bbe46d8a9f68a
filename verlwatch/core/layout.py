"""How a run's GPUs are laid out: as configured, as printed where somebody prints it, and what does not fit.

Source of the sizes: verl ``workers/fsdp_workers.py`` and ``megatron_workers.py``: the mini batch is multiplied by
rollout.n and divided by the data-parallel size, which is the world divided by the sequence-parallel size (FSDP) or by
tensor x pipeline x context (Megatron), rounding down without a word; each copy of the model that generates takes
tensor x pipeline GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Literal, NamedTuple

from verlwatch.core.statement import Statement, state
from verlwatch.core.types import Severity
from verlwatch.core.verl_keys import ACTOR, REF, ROLLOUT, Config, is_on, misplaced, unknown, whole

ROLLOUT_TP = f"{ROLLOUT}.tensor_model_parallel_size"
ROLLOUT_N = f"{ROLLOUT}.n"
TRAIN_BATCH = "data.train_batch_size"
MINI_BATCH = f"{ACTOR}.ppo_mini_batch_size"
MICRO_BATCH = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
SEQUENCE_PARALLEL = (f"{ACTOR}.ulysses_sequence_parallel_size", f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size")
OFFLOADS = tuple(
    f"{ACTOR}.{block}.{what}_offload" for block in ("fsdp_config", "megatron") for what in ("param", "optimizer")
)
_GENERATING = ("infer_tp", "tp", "tensor")
"""Names of the dimension over which one copy of the model is split, in meshes of the rollout."""


class Mesh(NamedTuple):
    """A printed device mesh: the lengths of its dimensions with their names, ``step`` the last one before it."""

    name: str
    sizes: tuple[int, ...]
    dims: tuple[str, ...]
    step: int


class Shape(NamedTuple):
    """A printed shape of a batch: its name and its sizes, the sequence length last."""

    tensor: str
    sizes: tuple[int, ...]
    step: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes by name; None and absent where the log does not tell.  ``n`` is how many answers each prompt gets."""

    world: int | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    rollout_world: int | None = None
    strategy: str = ""
    engine: str = ""
    actor: Mapping[str, int] = field(default_factory=dict)
    rollout: Mapping[str, int] = field(default_factory=dict)
    n: int | None = None
    prompts_per_copy: float | None = None
    mini_batch_per_rank: float | None = None


class Mismatch(NamedTuple):
    """Something that does not fit, and how sure that is."""

    name: str
    severity: Severity
    confidence: Literal["certain", "likely", "possible"]
    said: Statement
    keys: tuple[str, ...] = ()


def layout(config: Config) -> Layout:
    """The layout as configured."""
    nodes, each = whole(config, "trainer.nnodes"), whole(config, "trainer.n_gpus_per_node")
    world = nodes * each if nodes and each else None
    strategy = str(config.get(f"{ACTOR}.strategy", ""))
    apart = [
        whole(config, f"{block}.nnodes") and whole(config, f"{block}.n_gpus_per_node") for block in ("rollout", ROLLOUT)
    ]
    rollout_world = world
    if any(apart):
        block = "rollout" if apart[0] else ROLLOUT
        rollout_world = int(config[f"{block}.nnodes"]) * int(config[f"{block}.n_gpus_per_node"])
    actor = _training(config, strategy, world)
    rollout = _generating(config, rollout_world)
    n, prompts, mini = whole(config, ROLLOUT_N), whole(config, TRAIN_BATCH), whole(config, MINI_BATCH)
    return Layout(
        world,
        nodes,
        each,
        rollout_world,
        strategy,
        str(config.get(f"{ROLLOUT}.name", "")),
        actor,
        rollout,
        n,
        prompts / rollout["copies"] if prompts and rollout.get("copies") else None,
        mini * (n or 1) / actor["dp"] if mini and actor.get("dp") else None,
    )


def _training(config: Config, strategy: str, world: int | None) -> dict[str, int]:
    if strategy == "megatron":
        block = f"{ACTOR}.megatron"
        sizes = {
            short: whole(config, f"{block}.{name}_parallel_size") or 1
            for short, name in (("tp", "tensor_model"), ("pp", "pipeline_model"), ("cp", "context"))
        }
        split = sizes["tp"] * sizes["pp"] * sizes["cp"]
    elif config:
        split = max([whole(config, key) or 1 for key in SEQUENCE_PARALLEL])
        sizes = {"sp": split}
    else:
        return {}
    return {"dp": world // split, **sizes} if world else sizes


def _generating(config: Config, world: int | None) -> dict[str, int]:
    tp = whole(config, ROLLOUT_TP)
    if tp is None:
        return {}
    pp = whole(config, f"{ROLLOUT}.pipeline_model_parallel_size") or 1
    copies = {"copies": world // (tp * pp)} if world and world >= tp * pp else {}
    return {"tp": tp, "pp": pp, **copies}


def mismatches(
    config: Config,
    release: str = "",
    meshes: Sequence[Mesh] = (),
    shapes: Sequence[Shape] = (),
    offloads: Mapping[str, bool] | None = None,
) -> tuple[Mismatch, ...]:
    """What does not fit; ``offloads`` are what processes print of theirs (param, optimizer -> on)."""
    found = layout(config)
    return (
        *_of_blocks(config, release),
        *_of_meshes(config, meshes),
        *_of_sizes(found),
        *_of_batches(config, found),
        *_of_shapes(config, shapes),
        *_of_offload(config, offloads or {}),
    )


def _of_blocks(config: Config, release: str) -> Iterator[Mismatch]:
    for key, value, instead in misplaced(config):
        yield Mismatch(
            "misplaced_key",
            "warning",
            "certain",
            state(
                "{key} = {value} stands in a block where no verl release reads it: it has no effect. "
                "It belongs to {instead}{now}.",
                key=key,
                value=value,
                instead=instead,
                now=state(", which is {value}", value=config[instead]) if instead in config else "",
            ),
            (key, *([instead] if instead in config else [])),
        )
    for key, value, instead in unknown(config, release):
        yield Mismatch(
            "unknown_key",
            "warning",
            "likely",
            state("verl {release} does not read {key} = {value}{instead}.", release=release, key=key, value=value,
                  instead=state("; there it is {key}", key=instead) if instead else ""),
            (key,),
        )  # fmt: skip


def _of_meshes(config: Config, meshes: Sequence[Mesh]) -> Iterator[Mismatch]:
    """A mesh says over how many GPUs each copy is split; the configuration, or an earlier mesh, what was meant.

    Somebody who set the size in a block where nothing reads it meant that one.
    """
    astray = [i.key for i in misplaced(config) if i.key.rpartition(".")[2] == ROLLOUT_TP.rpartition(".")[2]]
    key = next((key for key in astray if whole(config, key)), ROLLOUT_TP)
    configured = whole(config, key)
    first: int | None = None
    told: set[int] = set()
    for mesh in meshes:
        split = tensor_parallel(mesh)
        if split is None:
            continue
        meant = configured or first
        if meant is not None and split != meant and split not in told:
            told.add(split)
            yield _not_taken_up(mesh, split, meant, key if configured else "")
        first = first or split


def _not_taken_up(mesh: Mesh, split: int, meant: int, key: str) -> Mismatch:
    shown = "x".join(map(str, mesh.sizes))
    if key:
        said = state(
            "Tensor parallelism is not taken up: the mesh {mesh} ({shown}) splits each copy of the model over {split} "
            "GPU(s), and {key} is {meant}.",
            mesh=mesh.name, shown=shown, split=split, meant=meant, key=key,
        )  # fmt: skip
    else:
        said = state(
            "Tensor parallelism is not taken up any more: the mesh {mesh} ({shown}) splits each copy of the model over "
            "{split} GPU(s); an earlier mesh of this log had {meant}. The log shows no configuration to judge by.",
            mesh=mesh.name, shown=shown, split=split, meant=meant,
        )  # fmt: skip
    return Mismatch(
        "tensor_parallel_not_taken_up",
        "warning",
        "certain" if key else "likely",
        said,
        (key,) if key else (),
    )


def tensor_parallel(mesh: Mesh) -> int | None:
    """Over how many GPUs one copy of the model that generates is split; None for a mesh that is of something else."""
    named = dict(zip(mesh.dims, mesh.sizes, strict=False))
    for dim in _GENERATING:
        if dim in named:
            return named[dim]
    is_plain = not mesh.dims and "rollout" in mesh.name and len(mesh.sizes) > 1
    return mesh.sizes[-1] if is_plain else None


def _of_sizes(found: Layout) -> Iterator[Mismatch]:
    tp, each = found.rollout.get("tp"), found.gpus_per_node
    if tp and each and tp <= each and each % tp:
        yield Mismatch("tensor_parallel_does_not_divide", "warning", "certain", state(
            "{key} = {tp} does not divide the {each} GPUs of a node: copies of the model reach over nodes, or GPUs "
            "stay unused.",
            key=ROLLOUT_TP, tp=tp, each=each), (ROLLOUT_TP, "trainer.n_gpus_per_node"))  # fmt: skip
    elif tp and each and tp > each:
        yield Mismatch("tensor_parallel_across_nodes", "info", "certain", state(
            "{key} = {tp} is more than the {each} GPUs of a node: each token goes over the network between nodes. That "
            "is legal, and slow without a fast one.", key=ROLLOUT_TP, tp=tp, each=each),
            (ROLLOUT_TP, "trainer.n_gpus_per_node"))  # fmt: skip
    split = tp * found.rollout.get("pp", 1) if tp else 0
    if split and found.rollout_world and found.rollout_world % split:
        yield Mismatch("world_does_not_divide", "warning", "certain", state(
            "{world} GPUs cannot be shared out among copies of the model that take {split} each.",
            world=found.rollout_world, split=split), (ROLLOUT_TP,))  # fmt: skip
    parts = {name: size for name, size in found.actor.items() if name != "dp" and size > 1}
    product = 1
    for size in parts.values():
        product *= size
    if found.world and found.world % product:
        yield Mismatch("world_does_not_divide", "warning", "certain", state(
            "{world} GPUs cannot be divided by {parts} of training.", world=found.world,
            parts=" x ".join(f"{name} {size}" for name, size in parts.items())))  # fmt: skip


def _of_batches(config: Config, found: Layout) -> Iterator[Mismatch]:
    batch, mini, n, dp = whole(config, TRAIN_BATCH), whole(config, MINI_BATCH), found.n or 1, found.actor.get("dp")
    if mini and dp and mini * n % dp:
        yield Mismatch("mini_batch_does_not_divide", "warning", "certain", state(
            "{mini} prompts x {n} answers of a mini batch do not divide by the {dp} data-parallel ranks: {rest} "
            "samples of each are lost or spread unevenly.", mini=mini, n=n, dp=dp, rest=mini * n % dp),
            (MINI_BATCH, ROLLOUT_N))  # fmt: skip
    elif mini and dp and (micro := whole(config, MICRO_BATCH)) and not is_on(config, f"{ACTOR}.use_dynamic_bsz"):
        per_rank = mini * n // dp
        if per_rank % micro:
            yield Mismatch("micro_batch_does_not_divide", "warning", "certain", state(
                "Each rank gets {per_rank} samples of a mini batch, which {key} = {micro} does not divide: the last "
                "micro batch is smaller.", per_rank=per_rank, key=MICRO_BATCH, micro=micro),
                (MICRO_BATCH, MINI_BATCH))  # fmt: skip
    each = mini * n // dp if mini and dp else 0
    if each > 1 and 2 ** round(log2(each)) != each:
        yield Mismatch("mini_batch_no_power_of_two", "info", "possible", state(
            "Each rank gets {each} samples of a mini batch; near a power of two ({near}) kernels are fuller.",
            each=each, near=2 ** round(log2(each))), (MINI_BATCH, ROLLOUT_N))  # fmt: skip
    if batch and mini and (batch < mini or batch % mini):
        yield Mismatch("batch_does_not_divide", "warning", "certain", state(
            "{batch_key} = {batch} is no multiple of {mini_key} = {mini}: the last mini batch of a step is smaller.",
            batch_key=TRAIN_BATCH, batch=batch, mini_key=MINI_BATCH, mini=mini), (TRAIN_BATCH, MINI_BATCH))  # fmt: skip
    if batch and dp and batch * n % dp:
        yield Mismatch("batch_does_not_divide", "warning", "certain", state(
            "{batch} prompts x {n} answers of a step do not divide by the {dp} data-parallel ranks.",
            batch=batch, n=n, dp=dp), (TRAIN_BATCH, ROLLOUT_N))  # fmt: skip


def answers(shapes: Sequence[Shape]) -> tuple[int, int] | None:
    """Batch into and out of generation, as the latest printed shapes have them."""
    into = [shape.sizes[0] for shape in shapes if shape.tensor.startswith("gen_batch") and "output" not in shape.tensor]
    out = [shape.sizes[0] for shape in shapes if shape.tensor.startswith("gen_batch_output")]
    return (into[-1], out[-1]) if into and out and into[-1] > 0 else None


def _of_shapes(config: Config, shapes: Sequence[Shape]) -> Iterator[Mismatch]:
    seen, n, batch = answers(shapes), whole(config, ROLLOUT_N), whole(config, TRAIN_BATCH)
    if seen is None:
        return
    into, out = seen
    if n and out != into * n and not (batch and into == out == batch * n):
        yield Mismatch("rollout_n_not_taken_up", "warning", "certain", state(
            "{into} prompts went into generation and {out} samples came out: {seen} each, and {key} is {n}.",
            into=into, out=out, seen=f"{out / into:.3g}", key=ROLLOUT_N, n=n), (ROLLOUT_N,))  # fmt: skip
    if batch and into not in {batch, batch * (n or 1)}:
        yield Mismatch("batch_not_taken_up", "info", "possible", state(
            "{into} prompts went into generation, and {key} is {batch}: a filter, a last batch, or another trainer.",
            into=into, key=TRAIN_BATCH, batch=batch), (TRAIN_BATCH,))  # fmt: skip


def _of_offload(config: Config, printed: Mapping[str, bool]) -> Iterator[Mismatch]:
    keys = tuple(key for key in OFFLOADS if config.get(key) == "true")
    parallel = next((key for key in SEQUENCE_PARALLEL if (whole(config, key) or 1) > 1), None)
    if keys and parallel:
        yield Mismatch("offload_with_sequence_parallel", "warning", "certain", state(
            "{keys} is on together with {parallel} = {size}: parameters are copied to and from the host again and "
            "again.",
            keys=", ".join(keys), parallel=parallel, size=config[parallel]), (*keys, parallel))  # fmt: skip
    for what, on in printed.items():
        configured = [key for key in OFFLOADS if key.endswith(f".{what}_offload") and key in config]
        ref = is_on(config, f"{REF}.fsdp_config.{what}_offload", f"{REF}.megatron.{what}_offload")
        if on and configured and not is_on(config, *configured) and not ref:
            yield Mismatch("offload_not_configured", "warning", "likely", state(
                "A process prints that it offloads its {what}, and {key} is false.", what=what, key=configured[0]),
                tuple(configured))  # fmt: skip
