"""Tab-separated tables of labelled texts, pairs of texts and candidates to rank.

Fields are read with Python's csv module, which wrote most of these files.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError
from bioshards.evaluate.benchmarks.formats.text_files import read_text
from bioshards.evaluate.benchmarks.record_types import LabelledText


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Columns of a table.

    Attributes:
        text: column of the text.
        label_names: label of the records by label in the file.
        label: column of the label.
        pair: column of the second text; "": none.
        id: column of ids; "": line numbers are the ids.
        document_id_of: function from an id to the document id.
        has_header: True if the first line names the columns; else the columns are text and label.
    """

    text: str
    label_names: Mapping[str, str]
    label: str = "label"
    pair: str = ""
    id: str = ""
    document_id_of: Callable[[str], str] = lambda name: ""
    has_header: bool = True


def read_texts(path: str, table_columns: TableColumns) -> list[LabelledText]:
    """Read the rows of a table. A repeated id gets a suffix: ``id#2`` (BLUE has pairs with two labels).

    Raises:
        BenchmarkFileError: the table has other columns or labels.
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
    """Read Bio-ELECTRA's candidate answers: columns ``label``, ``question``, ``answer_candidate``.

    Consecutive rows with the same question form a group, as its authors count questions.

    Raises:
        BenchmarkFileError: the table has other columns or labels.
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
    """Yield the line number and the fields of ``columns`` of each row; empty lines are skipped.

    Args:
        has_header: True if the first line names the columns, which may be more; else the table has exactly
            ``columns``.
        quoting: ``csv.QUOTE_NONE`` if quotation marks are plain text.

    Raises:
        BenchmarkFileError: a column is missing, a row has another number of fields, or a quote is not closed.
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
    """Return the name of a label.

    Raises:
        BenchmarkFileError: the label is unknown.
    """
    if raw_label not in label_names:
        raise BenchmarkFileError(path, line, f"the label {raw_label!r} is none of {', '.join(label_names)}")
    return label_names[raw_label]
