"""How a batch and the GPUs are laid out, where people print it.

    [DEBUG] gen_batch shape: torch.Size([60, 8192])
    rollout_device_mesh in ...: DeviceMesh('cuda', [[0, 1], [2, 3], [4, 5]], mesh_dim_names=('dp', 'infer_tp'))
    rollout_device_mesh: DeviceMesh((dp=3, infer_tp=2), device: 'cuda', stride: (2, 1))               torch since 2.9
    self._is_offload_param = True

Source: verl tutorials; no release prints them, torch's ``DeviceMesh.__repr__`` apart.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from verlwatch.core.lines._line import TEXT_LENGTH, Fact, Line

NAME: Final = "tutorial_layout"
NEEDLES: Final = (b"shape: torch.Size([", b"DeviceMesh(", b"_is_offload_")

_SHAPE = re.compile(
    r"(?:\[[A-Z]{4,8}\] )?([\w.\[\]'\"]{1,120})[ .]shape: torch\.Size\(\[([0-9]{1,12}(?:, [0-9]{1,12}){0,7})\]\)$"
)
_NAME = re.compile(r"(?:\[[A-Z]{4,8}\] )?(\w{1,80})(?: in [\w.]{1,120})?(?::| =) (?=DeviceMesh\()")
_OF_RANKS = re.compile(
    r"DeviceMesh\('(\w{1,10})', (\[[0-9, \[\]]{1,20000}\])(?:, mesh_dim_names=\(([\w', ]{1,200})\))?\)$"
)
_OF_SIZES = re.compile(
    r"DeviceMesh\(\((\w{1,40}=[0-9]{1,6}(?:, ?\w{1,40}=[0-9]{1,6}){0,7}),?\), ?(?:device: )?'(\w{1,10})'"
)
_OFFLOAD = re.compile(r"(?:self\.)?_is_offload_(param|optimizer|grad) ?= ?(True|False)$")


def parse(line: Line) -> Fact | None:
    """``tensor_shape``, ``device_mesh`` (both with a ``shape`` like 3x2) or ``offload`` (``on`` is 0 or 1)."""
    if line.cut or line.shows_samples:
        return None
    text = line.text.rstrip()
    if shape := _SHAPE.match(text):
        sizes = shape[2].split(", ")
        return Fact("tensor_shape", {"tensor": shape[1], "shape": "x".join(sizes), "batch": int(sizes[0])})
    if offload := _OFFLOAD.match(text):
        return Fact("offload", {"what": offload[1], "on": int(offload[2] == "True")})
    name = _NAME.match(text)
    return _mesh(name[1], text[name.end() :]) if name else None


def _mesh(name: str, text: str) -> Fact | None:
    """``shape`` and, where they have names, ``dims``; the product of the sizes is the number of GPUs."""
    if of_sizes := _OF_SIZES.match(text):
        pairs = [pair.split("=") for pair in of_sizes[1].replace(" ", "").split(",")]
        device, dims, sizes = of_sizes[2], [dim for dim, _ in pairs], [int(size) for _, size in pairs]
    elif of_ranks := _OF_RANKS.match(text):
        device, sizes = of_ranks[1], _sizes(of_ranks[2])
        dims = re.findall(r"\w+", of_ranks[3] or "")
    else:
        return None
    if not sizes or len(dims) not in {0, len(sizes)}:
        return None
    named = {"dims": ", ".join(dims)[:TEXT_LENGTH]} if dims else {}
    return Fact("device_mesh", {"mesh": name, "device": device, "shape": "x".join(map(str, sizes)), **named})


def _sizes(ranks: str) -> list[int]:
    """The lengths of nested lists of ranks, outermost first; none where they are not all alike."""
    try:
        level = [orjson.loads(ranks)]
    except orjson.JSONDecodeError:
        return []
    sizes: list[int] = []
    while level and all(isinstance(part, list) for part in level):
        lengths = {len(part) for part in level}
        if len(lengths) != 1:
            return []
        sizes += lengths
        level = [part for parts in level for part in parts]
    return sizes if level and all(isinstance(rank, int) for rank in level) else []
