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

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError
from bioshards.evaluate.benchmarks.record_types import LabelledText

from .text_files import read_text


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which column of a table holds what.

    Attributes:
        labels: what the records' labels are called, by what they are called in the file.
        pair: the column of the second text, if there is one.
        id: the column of ids, if there is one; else lines are counted.
        document: from an id to what the document is called.
        header: whether the first line names the columns; else there are just text and label, in this order.
    """

    text: str
    label_names: Mapping[str, str]
    label: str = "label"
    pair: str = ""
    id: str = ""
    document_id_of: Callable[[str], str] = lambda name: ""
    has_header: bool = True


def read_texts(path: str, table_columns: TableColumns) -> list[LabelledText]:
    """The rows of a table.  A second one with the same id (a pair of BLUE's with two labels) gets ``id#2``.

    Raises:
        BenchmarkFileError: not such a table.
    """
    columns = [*filter(None, (table_columns.text, table_columns.label, table_columns.pair, table_columns.id))]
    labelled_texts = []
    id_counts: Counter[str] = Counter()
    for line, fields in read_rows(path, columns, table_columns.has_header):
        row = dict(zip(columns, fields, strict=True))
        row_id = row.get(table_columns.id, str(line))
        id_counts[row_id] += 1
        labelled_texts.append(
            LabelledText(
                id=row_id if id_counts[row_id] == 1 else f"{row_id}#{id_counts[row_id]}",
                text=row[table_columns.text],
                label=map_label(path, line, row[table_columns.label], table_columns.label_names),
                text_pair=row.get(table_columns.pair),
                document_id=table_columns.document_id_of(row_id),
            )
        )
    return labelled_texts


def read_ranked_answers(path: str) -> list[LabelledText]:
    """Bio-ELECTRA's answers to rank: ``label``, ``question``, ``answer_candidate``.

    A question is what stands in consecutive rows with the same text, as its authors count them.

    Raises:
        BenchmarkFileError: not such a table.
    """
    ranked_texts = []
    group_number, previous_question = 0, None
    for line, (gold, question, answer) in read_rows(path, ("label", "question", "answer_candidate")):
        group_number += question != previous_question
        previous_question = question
        gold = map_label(path, line, gold, {"0": "0", "1": "1"})
        ranked_texts.append(
            LabelledText(str(line), question, gold, text_pair=answer, group_id=str(group_number))
        )
    return ranked_texts


def read_rows(
    path: str, columns: Sequence[str], has_header: bool = True, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[tuple[int, list[str]]]:
    """The fields of these columns of each row, and its line; empty lines are passed over.

    Args:
        header: the first line names the columns, which can be more; else the table has just these.
        quoting: ``csv.QUOTE_NONE`` where quotation marks are nothing but themselves.

    Raises:
        BenchmarkFileError: a column is missing, a row has more or fewer fields than columns, or a quotation
            mark is not closed.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), "excel-tab", quoting=quoting, strict=True)
    header_names = [*columns]
    indices: Sequence[int] = range(len(columns))
    try:
        if has_header:
            header_names = next(reader, [])
            if missing := [name for name in columns if name not in header_names]:
                reason = (
                    f"its columns should be {', '.join(columns)}; it names {header_names}, without {missing}"
                )
                raise BenchmarkFileError(path, 1, reason)
            indices = [header_names.index(name) for name in columns]
        for row in reader:
            if len(row) not in (0, len(header_names)):
                reason = f"{len(row)} fields where {len(header_names)} should be: {', '.join(header_names)}"
                raise BenchmarkFileError(path, reader.line_num, reason)
            if row:
                yield reader.line_num, [row[index] for index in indices]
    except csv.Error as error:
        raise BenchmarkFileError(path, reader.line_num, f"it cannot be read as a table: {error}") from error


def map_label(path: str, line: int | None, raw_label: str, label_names: Mapping[str, str]) -> str:
    """What a label is called.

    Raises:
        BenchmarkFileError: it is none of the set's.
    """
    if raw_label not in label_names:
        raise BenchmarkFileError(path, line, f"the label {raw_label!r} is none of {', '.join(label_names)}")
    return label_names[raw_label]
