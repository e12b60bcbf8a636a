"""Do the readers find in a folder's benchmarks what their papers count in them?

A reader that loses a sentence or takes a tag for a word shows here, before a score is computed on it.
So does a set that is not the papers': where it is known why a count is another, the row says so, and any
number but that one is still wrong.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bioshards.corpus.errors import InvalidValueError

from .datasets import BenchmarkFileError, DataSet, Located, Part, Parts, load, locate
from .sets import SETS

Verdict = Literal["ok", "known", "own split", "differs", "absent", "damaged"]
"""``known``: another count than the published one, of which the set says why."""
_WORDS: Final[Mapping[str, str]] = {"known": "differs: see below", "own split": "own split"}
_WIDTH: Final = 105


@dataclass(frozen=True, slots=True)
class Row:
    """A count of a set, or that it cannot be counted.

    Attributes:
        unit, part: what was counted; "" where the whole set is absent or damaged.
        expected, found: None where there is none.
        source: who published what is expected.
        notes: reasons, what is to know of the files, or where those that are missing are to be had.
    """

    set: str
    title: str
    unit: str
    part: str
    expected: int | None
    found: int | None
    verdict: Verdict
    source: str
    notes: tuple[str, ...] = ()


def verify(folder: str, names: Iterable[str] | None = None) -> list[Row]:
    """The rows of some sets, or of all; a damaged file is a row, and the other sets go on.

    Raises:
        ValueError: there is no set of that name.
        FileNotFoundError: there is no such folder.
    """
    chosen = list(SETS) if names is None else list(dict.fromkeys(names))
    for name in chosen:
        if name not in SETS:
            raise InvalidValueError(f"there is no set {name}. There are: {', '.join(SETS)}")
    return [row for name in chosen for row in rows(folder, SETS[name])]


def rows(folder: str, dataset: DataSet) -> list[Row]:
    """The rows of one set.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    located = locate(folder, dataset)
    if located is None:
        where = _where(dataset)
        return [Row(dataset.name, dataset.title, "", "", None, None, "absent", dataset.source, (where,))]
    try:
        parts = load(located)
    except (BenchmarkFileError, OSError) as error:
        damage = (str(error),)
        return [Row(dataset.name, dataset.title, "", "", None, None, "damaged", dataset.source, damage)]
    return compared(located, parts)


def compared(located: Located, parts: Parts) -> list[Row]:
    """The rows of a set whose records have been read."""
    found: Mapping[str, Mapping[str, int]] = {part: located.set.count(parts[part]) for part in located.parts}
    return [
        _row(located, found, unit, part, expected)
        for unit, counts in located.set.counts.items()
        for part, expected in _with_sum(counts, located.own_split).items()
    ]


def _where(dataset: DataSet) -> str:
    return f"to be had from {dataset.where}; licence: {dataset.licence}"


def _with_sum(counts: Mapping[str, int], own: frozenset[Part]) -> dict[str, int]:
    """Counts, and of parts that are split otherwise than published their sum, which is the same."""
    mine = [part for part in counts if part in own]
    summed = {"+".join(mine): sum(counts[part] for part in mine)} if len(mine) > 1 else {}
    return {**counts, **summed}


def _row(
    located: Located,
    counted: Mapping[str, Mapping[str, int]],
    unit: str,
    part: str,
    expected: int,
) -> Row:
    dataset, single = located.set, part.split("+")
    row = (dataset.name, dataset.title, unit, part, expected)
    if any(name not in counted for name in single):
        return Row(*row, None, "absent", dataset.source, (*located.notes, _where(dataset)))
    if any(unit not in counted[name] for name in single):
        return Row(*row, None, "absent", dataset.source, (f"these files do not tell {unit}",))
    found = sum(counted[name][unit] for name in single)
    known = {one.found: one.why for one in located.layout.known if (one.unit, one.part) == (unit, part)}
    if found == expected:
        return Row(*row, found, "ok", dataset.source, located.notes)
    if part in located.own_split:
        return Row(*row, found, "own split", dataset.source, located.notes)
    if found in known:
        return Row(*row, found, "known", dataset.source, (*located.notes, known[found]))
    return Row(*row, found, "differs", dataset.source, located.notes)


def failed(rows: Sequence[Row]) -> bool:
    """Is a count another without a known reason, or a file damaged, or is nothing there at all?"""
    verdicts = {row.verdict for row in rows}
    return bool(verdicts & {"differs", "damaged"}) or verdicts <= {"absent"}


def table(rows: Sequence[Row]) -> str:
    """The rows as text, of 110 columns at most, set by set; absent sets are last."""
    sets = list(dict.fromkeys(row.set for row in rows))
    groups = [[row for row in rows if row.set == name] for name in sets]
    groups.sort(key=lambda group: not group[0].unit and group[0].verdict == "absent")
    return "\n".join([*(line for group in groups for line in _group(group)), _summary(rows)])


def _group(rows: Sequence[Row]) -> Iterator[str]:
    first = rows[0]
    yield f"{first.set}: {first.title}" + ("" if first.unit else f" - {first.verdict}")
    if first.unit:
        yield f"  {'':<26}{'part':<16}{'expected':>10}{'found':>10}"
    for row in rows:
        if row.unit:
            found = "-" if row.found is None else str(row.found)
            verdict = _WORDS.get(row.verdict, row.verdict)
            yield f"  {row.unit:<26}{row.part:<16}{row.expected:>10}{found:>10}  {verdict}"
    source = [f"expected by {first.source}"] if first.unit else []
    for note in dict.fromkeys([*source, *(note for row in rows for note in row.notes)]):
        yield from textwrap.wrap(
            note,
            _WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    yield ""


def _summary(rows: Sequence[Row]) -> str:
    count = Counter(row.verdict for row in rows if row.unit)
    sets = Counter(row.verdict for row in rows if not row.unit)
    said = [
        f"{count['ok']} counts ok",
        f"{count['differs'] + count['known']} differ ({count['known']} of them for a known reason)",
        f"{sets['absent']} sets absent",
    ]
    if count["own split"]:
        said.append(f"{count['own split']} not comparable (own split)")
    if count["absent"]:
        said.append(f"{count['absent']} that the files do not allow")
    if sets["damaged"]:
        said.append(f"{sets['damaged']} sets damaged")
    return textwrap.fill(", ".join(said), _WIDTH)
