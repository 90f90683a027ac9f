"""A seeded stream of clicks with planted faults, drawn block by block and read row by row."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from include.producer.clicks import Clicks, ClickShape, Ints, concatenate, draw_clicks, take
from include.producer.faults import FAULTS, REPEATED_WITHIN, Fault, FaultShares, plant, repeatable
from include.producer.lines import malform, replace_lines, to_lines

BLOCK_ROWS = 250_000
NO_CLICKS = Clicks(*(np.empty(0, np.int64) for _ in Clicks._fields))


class Block(NamedTuple):
    """Rows as columns, with what was planted in each, and as the lines that are written."""

    clicks: Clicks
    codes: NDArray[np.int64]  # index into FAULTS, or NO_FAULT
    malformed: dict[int, str]  # by row, how its line was broken
    lines: pa.StringArray

    def part(self, first: int, count: int) -> "Block":
        rows = slice(first, first + count)
        malformed = {row - first: how for row, how in self.malformed.items() if first <= row < first + count}
        return Block(take(self.clicks, rows), self.codes[rows], malformed, self.lines.slice(first, count))

    def malformed_kinds(self) -> Counter[str]:
        return Counter(self.malformed.values())


class ClickStream:
    """Clicks in the order of their event times; the seed and the sizes of the blocks decide everything.

    With `id_prefix`, every event has an id: the prefix and the event's number.
    """

    def __init__(
        self, shape: ClickShape, shares: FaultShares = FaultShares(), seed: int = 1, id_prefix: str | None = None
    ) -> None:
        self._shape, self._shares, self._id_prefix = shape, shares, id_prefix
        self.rng = np.random.default_rng(seed)
        self._drawn = 0
        self._recent = NO_CLICKS

    def draw(self, ts: Ints) -> Block:
        """One row for each event time."""
        clicks, codes = plant(self.rng, draw_clicks(self.rng, self._shape, ts, self._drawn), self._recent, self._shares)
        self._drawn += len(ts)
        own = take(clicks, np.flatnonzero(repeatable(codes))[-REPEATED_WITHIN:])
        self._recent = take(concatenate(self._recent, own), slice(-REPEATED_WITHIN, None))
        lines = to_lines(clicks, self._id_prefix)
        chosen = codes == FAULTS.index(Fault.MALFORMED)
        broken, kinds = malform(self.rng, lines.filter(pa.array(chosen)).to_pylist())
        malformed = dict(zip(np.flatnonzero(chosen).tolist(), kinds, strict=True))
        return Block(clicks, codes, malformed, replace_lines(lines, chosen, broken))


class BlockReader:
    """Any number of rows at a time from blocks of fixed sizes: the rows do not depend on how they are read."""

    def __init__(self, rows: int, draw: Callable[[int, int], Block]) -> None:
        """`draw(first, count)` gives rows `first`.. of `rows` in all."""
        self._rows, self._draw = rows, draw
        self._drawn = 0
        self._rest = 0
        self._block: Block | None = None

    def read(self, count: int) -> Iterator[Block]:
        """The next `count` rows, as parts of blocks."""
        while count:
            if self._block is None or not self._rest:
                self._rest = min(BLOCK_ROWS, self._rows - self._drawn)
                self._block = self._draw(self._drawn, self._rest)
                self._drawn += self._rest
            part = min(count, self._rest)
            yield self._block.part(len(self._block.codes) - self._rest, part)
            self._rest -= part
            count -= part
