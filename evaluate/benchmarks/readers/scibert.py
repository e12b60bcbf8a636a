"""SciBERT's classification files: JSON Lines with ``text`` and ``label``.

ChemProt marks its two entities as ``<< aspirin >>`` and ``[[ COX-1 ]]``. Their types are not given, so the
marks stay in the text.
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
"""The 13 relations of SciBERT's ChemProt, which has no negative pairs."""


def read_texts(path: str, labels: Collection[str]) -> list[LabelledText]:
    """Read the sentences of a file; ids are line numbers.

    Raises:
        BenchmarkFileError: the file cannot be read, or a label is not one of ``labels``.
    """
    return [
        LabelledText(str(value.line), value["text"].as_text(), value["label"].as_one_of(labels))
        for value in read_json_lines(path)
    ]
