"""SciBERT's sentences to classify: JSON, one a line, with ``text`` and ``label``.

In its ChemProt the two entities are marked, ``<< aspirin >>`` and ``[[ COX-1 ]]``, as SciBERT is given them.
Which one is the chemical is not said, so they stay in the text.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from bioshards.evaluate.benchmarks.formats.json_values import read_json_lines
from bioshards.evaluate.benchmarks.record_types import LabelledText

CHEMPROT_LABELS: Final = (
    "ACTIVATOR",
    "AGONIST",
    "AGONIST-ACTIVATOR",
    "AGONIST-INHIBITOR",
    "ANTAGONIST",
    "DOWNREGULATOR",
    "INDIRECT-DOWNREGULATOR",
    "INDIRECT-UPREGULATOR",
    "INHIBITOR",
    "PRODUCT-OF",
    "SUBSTRATE",
    "SUBSTRATE_PRODUCT-OF",
    "UPREGULATOR",
)
"""The 13 relations of its ChemProt, which has no unrelated pairs."""


def read_texts(path: str, labels: Collection[str]) -> list[LabelledText]:
    """The sentences of a file; their ids are its lines.

    Raises:
        BenchmarkFileError: no such file, or a label is none of these.
    """
    return [
        LabelledText(str(value.line), value["text"].as_text(), value["label"].as_one_of(labels))
        for value in read_json_lines(path)
    ]
