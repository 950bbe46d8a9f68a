"""The first source that gives anything, and the next one while it does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from verlwatch.shell.gpu._card import GpuSource, Sample, SourceError

CARDS = 1024
"""No host has more, or instances of them."""
RETRY_S = 60.0
"""How long a source that gave nothing is passed over."""


class Given(NamedTuple):
    """A sample, and the source that gave it."""

    source: str
    sample: Sample


class Choice:
    """Sources in their order, all asked in one thread.  ``avoid``: cards, by source, that do not answer there."""

    def __init__(
        self,
        kinds: Sequence[type[GpuSource]],
        now: Callable[[], float],
        avoid: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        avoid = avoid or {}
        self._now = now
        self._avoid = {kind.NAME: avoid.get(kind.NAME, frozenset()) for kind in kinds}
        self._sources = [kind() for kind in kinds if "" not in self._avoid[kind.NAME]]
        self._open: set[str] = set()
        self._later: dict[str, float] = {}  # when to try again a source that gave nothing
        self.why_not: dict[str, str] = {
            kind.NAME: "a call to it hangs" for kind in kinds if "" in self._avoid[kind.NAME]
        }
        """Why a source gives nothing now, by its name; read in any thread, replaced as a whole."""
        self._current: GpuSource | None = None

    @property
    def asking(self) -> tuple[str, str]:
        """The source that is being asked, and its card; empty where there is none.  Read in any thread."""
        current = self._current
        return (current.NAME, current.asking) if current is not None else ("", "")

    def __call__(self) -> Given:
        """The cards now.

        Raises:
            SourceError: no source gives any; the text says why, each.
        """
        for source in self._sources:
            name = source.NAME
            if self._later.get(name, 0.0) > self._now():
                continue
            self._current = source
            try:
                if name not in self._open:
                    source.open(self._avoid[name])
                    self._open.add(name)
                sample = source.sample()
                given = Given(name, sample._replace(cards=sample.cards[:CARDS]))
            except SourceError as error:
                self._give_up(source, str(error))
                continue
            except Exception as error:  # noqa: BLE001 - what one source answers must not keep the next from being asked
                self._give_up(source, f"unexpected: {error!r}"[:300])
                continue
            finally:
                self._current = None
            self.why_not = {other: why for other, why in self.why_not.items() if other != name}
            return given
        raise SourceError("; ".join(f"{name}: {why}" for name, why in self.why_not.items()) or "no source is left")

    def close(self) -> None:
        """Lets go of all sources."""
        for source in self._sources:
            source.close()

    def _give_up(self, source: GpuSource, why: str) -> None:
        source.close()
        self._open.discard(source.NAME)
        self._later[source.NAME] = self._now() + RETRY_S
        self.why_not = {**self.why_not, source.NAME: why}
