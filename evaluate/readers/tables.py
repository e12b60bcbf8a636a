"""Tables, fields separated by tabs: texts with a class, pairs of texts, and candidates to rank.

Most were written with Python's csv module, which puts a field with quotation marks into quotation marks; so
they are read with it.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bioshards.evaluate.datasets import BenchmarkFileError
from bioshards.evaluate.records import Text

from .lines import contents


@dataclass(frozen=True, slots=True)
class Table:
    """Which column of a table holds what.

    Attributes:
        labels: what the records' labels are called, by what they are called in the file.
        pair: the column of the second text, if there is one.
        id: the column of ids, if there is one; else lines are counted.
        document: from an id to what the document is called.
        header: whether the first line names the columns; else there are just text and label, in this order.
    """

    text: str
    labels: Mapping[str, str]
    label: str = "label"
    pair: str = ""
    id: str = ""
    document: Callable[[str], str] = lambda name: ""
    header: bool = True


def texts(path: str, table: Table) -> list[Text]:
    """The rows of a table.  A second one with the same id (a pair of BLUE's with two labels) gets ``id#2``.

    Raises:
        BenchmarkFileError: not such a table.
    """
    columns = [*filter(None, (table.text, table.label, table.pair, table.id))]
    found = []
    seen: Counter[str] = Counter()
    for line, fields in rows(path, columns, table.header):
        row = dict(zip(columns, fields, strict=True))
        name = row.get(table.id, str(line))
        seen[name] += 1
        found.append(
            Text(
                id=name if seen[name] == 1 else f"{name}#{seen[name]}",
                text=row[table.text],
                label=label(path, line, row[table.label], table.labels),
                pair=row.get(table.pair),
                document=table.document(name),
            )
        )
    return found


def ranked(path: str) -> list[Text]:
    """Bio-ELECTRA's answers to rank: ``label``, ``question``, ``answer_candidate``.

    A question is what stands in consecutive rows with the same text, as its authors count them.

    Raises:
        BenchmarkFileError: not such a table.
    """
    found = []
    group, before = 0, None
    for line, (gold, question, answer) in rows(path, ("label", "question", "answer_candidate")):
        group += question != before
        before = question
        gold = label(path, line, gold, {"0": "0", "1": "1"})
        found.append(Text(str(line), question, gold, pair=answer, group=str(group)))
    return found


def rows(
    path: str, columns: Sequence[str], header: bool = True, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[tuple[int, list[str]]]:
    """The fields of these columns of each row, and its line; empty lines are passed over.

    Args:
        header: the first line names the columns, which can be more; else the table has just these.
        quoting: ``csv.QUOTE_NONE`` where quotation marks are nothing but themselves.

    Raises:
        BenchmarkFileError: a column is missing, a row has more or fewer fields than columns, or a quotation
            mark is not closed.
    """
    reader = csv.reader(io.StringIO(contents(path), newline=""), "excel-tab", quoting=quoting, strict=True)
    names = [*columns]
    places: Sequence[int] = range(len(columns))
    try:
        if header:
            names = next(reader, [])
            if missing := [name for name in columns if name not in names]:
                why = f"its columns should be {', '.join(columns)}; it names {names}, without {missing}"
                raise BenchmarkFileError(path, 1, why)
            places = [names.index(name) for name in columns]
        for row in reader:
            if len(row) not in (0, len(names)):
                why = f"{len(row)} fields where {len(names)} should be: {', '.join(names)}"
                raise BenchmarkFileError(path, reader.line_num, why)
            if row:
                yield reader.line_num, [row[place] for place in places]
    except csv.Error as error:
        raise BenchmarkFileError(path, reader.line_num, f"it cannot be read as a table: {error}") from error


def label(path: str, line: int | None, found: str, labels: Mapping[str, str]) -> str:
    """What a label is called.

    Raises:
        BenchmarkFileError: it is none of the set's.
    """
    if found not in labels:
        raise BenchmarkFileError(path, line, f"the label {found!r} is none of {', '.join(labels)}")
    return labels[found]
