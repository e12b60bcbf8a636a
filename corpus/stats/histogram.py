"""Exact distributions: counts of each value, mean, percentiles, histogram.

Values are counted individually and the counts of all batches are added, so every statistic is exact and
memory depends on the number of distinct values.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.ui.chart import round_up_to_nice_number

MAX_BINS: Final = 40
"""Bins of a histogram without the open last one: bars of 7 pixels in a chart of 360."""
_SUMMARY_FIELDS: Final = ("mean", "min", "p5", "median", "p95", "max", "histogram")


def add_counts(counts: Counter[int], numbers: pa.Array) -> None:
    """Add the number of occurrences of each value to ``counts``."""
    value_counts = pc.value_counts(numbers)
    distinct_values, occurrences = (
        value_counts.field("values").to_pylist(),
        value_counts.field("counts").to_pylist(),
    )
    counts.update(dict(zip(distinct_values, occurrences, strict=True)))


def summarise_distribution(counts: Counter[int]) -> dict[str, Any]:
    """Summarise a distribution of values >= 0 as JSON data.

    Percentiles are nearest-rank; the median is the 50th.

    Returns:
        ``count``, ``sum`` and :data:`_SUMMARY_FIELDS`, which are None for an empty distribution.
    """
    sorted_counts = sorted(counts.items())
    total, total_sum = counts.total(), sum(number * occurrences for number, occurrences in sorted_counts)
    if not total:
        return {"count": 0, "sum": 0, **dict.fromkeys(_SUMMARY_FIELDS)}
    summary = (
        total_sum / total,
        sorted_counts[0][0],
        *(_compute_percentile(sorted_counts, total, percent) for percent in (5, 50, 95)),
        sorted_counts[-1][0],
        _build_histogram(sorted_counts, total),
    )
    return {"count": total, "sum": total_sum, **dict(zip(_SUMMARY_FIELDS, summary, strict=True))}


def _compute_percentile(sorted_counts: list[tuple[int, int]], total: int, percent: int) -> int:
    cumulative = 0
    for number, occurrences in sorted_counts:
        cumulative += occurrences
        if 100 * cumulative >= percent * total:
            return number
    raise ValueError(f"{percent} is no percentage, or the counts are more than {total}")


def _build_histogram(sorted_counts: list[tuple[int, int]], total: int) -> dict[str, Any]:
    """Build bins of equal width up to the 99th percentile, and one bin for all larger values.

    The width is the smallest of 1, 2, 5, 10, 20, 50 ... that needs at most :data:`MAX_BINS` bins. Bins start
    at 1, or at 0 if that occurs. ``from`` and ``to`` are inclusive.
    """
    least, greatest = min(1, sorted_counts[0][0]), sorted_counts[-1][0]
    span = _compute_percentile(sorted_counts, total, 99) - least + 1
    width = int(round_up_to_nice_number(-(-span // MAX_BINS)))
    num_bins = -(-span // width)
    bin_counts = [0] * (num_bins + 1)
    for value, occurrences in sorted_counts:
        bin_counts[min((value - least) // width, num_bins)] += occurrences
    starts = [least + width * index for index in range(num_bins + 1)]
    ends = [min(start + width - 1, greatest) for start in starts[:num_bins]] + [greatest]
    bins = [
        {"from": start, "to": end, "count": occurrences}
        for start, end, occurrences in zip(starts, ends, bin_counts, strict=True)
        if start <= end  # the open bin may be empty
    ]
    return {"width": width, "bins": bins}
