"""The console's step line: ``step:7 - actor/entropy:0.2 - ... - timing_s/step:77.7``, every number of one step.

Source: verl ``utils/logger/aggregate_logger.py:concat_dict_to_str``, printed by the trainer process.  A value is
``.3f`` up to 0.4.1 (``1.000``, ``-0.000``) and ``pprint`` text since 0.5 (``41.25``, ``1e-06``, ``True``), with numpy 2
also ``np.float64(41.25)``; ``nan`` and ``inf`` occur in all.  Keys hold no colon in verl itself but may in user code.

A line may have lost its end: Ray publishes what a process has flushed so far as a line of its own, other tools cut at
a length.  A number whose last digits are missing looks like a number, so the last value counts only where the line
shows that it goes on behind it, or that it is a whole training line (``timing_s/step``, in 0.1 ``timing/...``), or
that it is no training line (validation alone).  The rest of a cut line is the next fitting message of its writer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import orjson

from verlwatch.core.lines._line import Line, Numbers, Said, Take

NAME: Final = "step_metrics"
NEEDLES: Final = (b"step:",)

NUMBER = r"[-+]?(?:nan|inf|True|False|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
_VALUE = re.compile(rf"\s*(?:np\.\w+\(({NUMBER})\)|({NUMBER}))\s*")
_HEAD = re.compile(r"step:([0-9]{1,18})(?: - (?=[^\s:]+:\S)|$)")
_HEAD_CUT_SHORT = re.compile(r"step:([0-9]{1,18})(?: -?| - [^\s:]*:?)$")
ITEM_CUT_SHORT = re.compile(r"[^\s:]*(?::\S*)?")

_NO_NUMBERS = ("nan", "inf")
_NUMBERS = frozenset({float, int})
_PRINTABLE = bytes(range(0x20, 0x7F))
_DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_WRAPPERS = (b"np.float64(", b"np.int64(", b"np.int32(", b"np.float32(")  # the usual ones first
_TRAINING = ("actor/", "critic/", "response_length/", "global_seqlen/", "timing_s/")
_WHOLE = ("timing_s/step:", "timing/")
_STEPS_MAX = 10**12  # no run gets there: a larger number is something else
_DIALECT_MIN = 4  # so many values with three decimals each are no coincidence: the release prints .3f


class _Cut:
    """A step line that may have lost its end; the rest is the next fitting message of its writer."""

    LINES = 64
    BYTES = 1 << 16

    def __init__(self, line: Line, is_rest: Callable[[str], bool]) -> None:
        self._line = line
        self._is_rest = is_rest
        self._whole: Numbers | None = None

    def take(self, line: Line, said: Said | None) -> Take:
        """The rest is a message that fits; another one that a kind reads shows that no rest is to come.

        Ray publishes the rest of a cut line as its writer's next line: an empty one says that nothing was cut.
        """
        if line.text:
            if line.text.startswith("step:") or not self._is_rest(line.text):
                return Take.IGNORED if said is None else Take.ENDED
            whole = line._replace(text=self._line.text + line.text)
        elif line.writer.pid:
            whole = self._line._replace(cut=False)
        else:
            return Take.IGNORED
        read = _read(whole)
        if read is None:
            return Take.IGNORED
        numbers, is_rest = read
        if is_rest is None:
            self._whole = numbers
            return Take.DONE
        if not line.text:
            return Take.IGNORED
        self._line, self._is_rest = whole, is_rest
        return Take.TAKEN

    def close(self) -> Numbers | None:
        """What came of it, without the last value where that may be shortened."""
        read = _read(self._line._replace(cut=True)) if self._whole is None else (self._whole, None)
        return read[0] if read else None


def parse(line: Line) -> Numbers | _Cut | None:
    """Step and values; a value that is cut or is no number is left out."""
    read = _read(line)
    if read is None:
        return None
    numbers, is_rest = read
    return numbers if is_rest is None else _Cut(line, is_rest)


def _read(line: Line) -> tuple[Numbers, Callable[[str], bool] | None] | None:
    """Step and values, and where the end may be missing what tells whether a later message is that end."""
    text = line.text
    if not text.startswith("step:") or line.from_rollout:
        return None
    head = _HEAD.match(text)
    if head is None:
        short = _HEAD_CUT_SHORT.match(text) if not line.cut else None
        return (Numbers(int(short[1]), {}), partial(_is_rest, text)) if short and int(short[1]) <= _STEPS_MAX else None
    items = text[head.end() :]
    step = int(head[1])
    if step > _STEPS_MAX:
        return None
    if not items:
        return Numbers(step, {}), None if line.cut is False else partial(_is_rest, text)
    if "/" not in items:
        return None  # every key set of verl has a group; a sentence has not
    before, _, last = items.rpartition(" - ")
    if _is_broken(last, before) or (_is_suspect(items) if line.cut is None else line.cut):
        return Numbers(step, _values(before), _decimals(before)), partial(_is_rest, text)
    return Numbers(step, _values(items), _decimals(items)), None


def _is_suspect(items: str) -> bool:
    """Whether a training line does not show what every whole one shows."""
    for mark in _WHOLE:
        if mark in items:
            return False
    return any(group in items for group in _TRAINING)


def _is_broken(last: str, before: str) -> bool:
    """Whether the last item can be seen to miss its end: no KEY:VALUE, or less than three decimals after ``.3f``."""
    key, _, value = last.rpartition(":")
    if not key or not _VALUE.fullmatch(value):
        return True
    if _has_three_decimals(value) or value.endswith(_NO_NUMBERS):
        return False
    return _decimals(before) is not None and before.count(" - ") >= _DIALECT_MIN - 1


def _is_rest(text: str, message: str) -> bool:
    """Whether ``message`` continues ``text``: both written as one, every item from the seam on is KEY:VALUE.

    The message must bring a whole item of its own.  Without one it is taken only where the item at the seam is broken
    for certain: otherwise any number printed by itself would lengthen a whole value.
    """
    joined = text + message
    head = _HEAD.match(joined)
    if head is None:
        return False
    seam = max(head.end(), text.rfind(" - ") + 3)
    *whole, last = joined[seam:].split(" - ")
    if not whole:
        return _is_plain_item(last) and not _is_plain_item(text[seam:])
    if _is_plain_item(last):
        whole.append(last)
    elif not ITEM_CUT_SHORT.fullmatch(last):
        return False
    return all(map(_is_plain_item, whole)) and any("/" in item for item in whole[1:])


def _is_plain_item(item: str) -> bool:
    key, _, value = item.rpartition(":")
    return bool(key) and not any(map(str.isspace, item)) and bool(_VALUE.fullmatch(value))


def _decimals(items: str) -> int | None:
    """3 where every number has exactly three decimals, as ``.3f`` prints them."""
    first = items.partition(" - ")[0]
    if not _has_three_decimals(first) and not first.endswith(_NO_NUMBERS):
        return None  # the usual case, told by one item
    shape = items.encode().translate(_DIGITS_TO_ZERO) + b" - "
    rounded = shape.count(b".000 - ")
    others = shape.count(b" - ") - rounded
    return 3 if rounded and (not others or others == shape.count(b"nan - ") + shape.count(b"inf - ")) else None


def _has_three_decimals(item: str) -> bool:
    return item[-4:-3] == "." and item[-3:].isdigit()


def _values(items: str) -> dict[str, float]:
    """Every readable value under its key; a key with a control character is made up."""
    if not items:
        return {}
    plain = items.encode()
    if plain.translate(None, _PRINTABLE) and not items.isprintable():  # the former costs a sixth of the latter
        return {key: value for key, value in _values_one_by_one(items).items() if key.isprintable()}
    if b"(" in plain:
        plain = _unwrapped(plain)
    if b'"' in plain or b"\\" in plain or b"(" in plain:
        return _values_one_by_one(items)
    try:
        # One pass in C over the whole line; whatever JSON does not take (nan, a colon in a key) goes the slow way.
        # A replacement of the same length costs half.
        values: dict[str, float] = orjson.loads(b'{"' + plain.replace(b":", b'":').replace(b" - ", b', "') + b"}")
        if _NUMBERS.issuperset(map(type, values.values())):
            return values
    except orjson.JSONDecodeError:
        pass
    return _values_one_by_one(items)


def _unwrapped(items: bytes) -> bytes:
    """``np.float64(0.1)`` -> ``0.1`` between blanks for every item; as it was where parentheses do not match."""
    plain = items
    for wrapper in _WRAPPERS:
        plain = plain.replace(wrapper, b" " * len(wrapper))
        if b"(" not in plain:
            break
    plain = plain.replace(b") - ", b"  - ").removesuffix(b")")
    return plain if b")" not in plain and items.count(b"(") == items.count(b")") else items


def _values_one_by_one(items: str) -> dict[str, float]:
    values: dict[str, float] = {}
    for item in items.split(" - "):
        key, _, text = item.rpartition(":")
        match = _VALUE.fullmatch(text)
        if key and match:
            number = match[1] or match[2]
            values[key] = float({"True": "1", "False": "0"}.get(number, number))
    return values
