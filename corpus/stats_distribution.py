"""A distribution in exact figures: how often each number occurs, its mean and percentiles, and a histogram.

Numbers are counted as they are, not in bins, and the counts of all batches are added up: so every figure is
exact, and memory is a matter of how many different numbers there are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .bar_chart import round_up

MOST_BINS: Final = 40
"""Bins of a histogram, without the last open one: bars of 13 pixels in a chart of 640."""
_OF_NUMBERS: Final = ("mean", "min", "p5", "median", "p95", "max", "histogram")


def count(counts: Counter[int], numbers: pa.Array) -> None:
    """Add to ``counts`` how often each number occurs."""
    found = pc.value_counts(numbers)
    values, times = found.field("values").to_pylist(), found.field("counts").to_pylist()
    counts.update(dict(zip(values, times, strict=True)))


def distribution(counts: Counter[int]) -> dict[str, Any]:
    """The distribution as plain data, of numbers from 0 on.

    A percentile is the least of the numbers that so many per cent of all do not exceed (nearest rank); the
    median is the 50th.  Without any number all but ``count`` and ``sum`` are None.
    """
    ordered = sorted(counts.items())
    total, whole = counts.total(), sum(number * times for number, times in ordered)
    if not total:
        return {"count": 0, "sum": 0, **dict.fromkeys(_OF_NUMBERS)}
    of_numbers = (
        whole / total,
        ordered[0][0],
        *(_percentile(ordered, total, percent) for percent in (5, 50, 95)),
        ordered[-1][0],
        _histogram(ordered, total),
    )
    return {"count": total, "sum": whole, **dict(zip(_OF_NUMBERS, of_numbers, strict=True))}


def _percentile(ordered: list[tuple[int, int]], total: int, percent: int) -> int:
    reached = 0
    for number, times in ordered:
        reached += times
        if 100 * reached >= percent * total:
            return number
    raise ValueError(f"{percent} is no percentage, or the counts are more than {total}")


def _histogram(ordered: list[tuple[int, int]], total: int) -> dict[str, Any]:
    """Bins of the same width up to the 99th percentile, and one for all that is above.

    The width is the least of 1, 2, 5, 10, 20, 50 ... with which there are no more than :data:`MOST_BINS`.
    Bins begin with 1, or with 0 where that occurs; ``from`` and ``to`` are both in the bin.
    """
    least, greatest = min(1, ordered[0][0]), ordered[-1][0]
    span = _percentile(ordered, total, 99) - least + 1
    width = round_up(-(-span // MOST_BINS))
    number = -(-span // width)
    inside = [0] * (number + 1)
    for value, times in ordered:
        inside[min((value - least) // width, number)] += times
    starts = [least + width * at for at in range(number + 1)]
    ends = [min(start + width - 1, greatest) for start in starts[:number]] + [greatest]
    bins = [
        {"from": start, "to": end, "count": times}
        for start, end, times in zip(starts, ends, inside, strict=True)
        if start <= end  # there may be nothing above
    ]
    return {"width": width, "bins": bins}
