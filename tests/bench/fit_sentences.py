"""Fit the sentence splitter's weights: ``python -m tests.bench.fit_sentences``, with BIOSHARDS_DATA set.

A logistic regression on the marks that the splitter's rules leave undecided: in the four fifths of CRAFT and
GENIA that are not held out, in bioshards' own paragraphs, each of which counts several times, and in
tests/golden/boundary_contexts.tsv. Run it again whenever the classes of boundary_model.py or its features
change; the same input gives the same file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bioshards.corpus.sentences import BOUNDARY_CANDIDATE, collapse_whitespace
from bioshards.corpus.sentences.boundary_model import (
    CAPITALS,
    CERTAIN_CLASSES,
    BoundaryContext,
    decide_by_rule,
    extract_context,
    extract_features,
)
from tests.bench.harness.sentence_gold import (
    Paragraph,
    is_held_out,
    load_craft,
    load_genia,
    load_own_paragraphs,
)

ROOT: Final = Path(__file__).parent.parent.parent
GOLDEN: Final = ROOT / "tests" / "golden"
CORPUS_WEIGHT: Final = 2
"""Weight of each paragraph of CRAFT and GENIA, where the contexts that were read are rare ones."""
OWN_PARAGRAPH_WEIGHT: Final = 6
"""Weight of each of bioshards' own paragraphs."""
MIN_WEIGHT: Final = 0.1
"""Smaller absolute weights are dropped."""

HEADER: Final = """\
# Weights of features (boundary_model.py), fitted by tests/bench/fit_sentences.py; in sum above 0: the end.
"""


def iter_undecided_marks(paragraph: Paragraph) -> Iterator[tuple[BoundaryContext, bool]]:
    """Yield the features of each undecided mark, and whether a sentence ends there."""
    text = collapse_whitespace(paragraph.text)
    start = read = characters = 0
    for match in BOUNDARY_CANDIDATE.finditer(text):
        stop, after = match.span()
        characters += len(text[read:after].replace(" ", ""))
        read = after
        is_end = characters in paragraph.ends
        mark_classes = extract_context(text, start, stop, after)
        is_certain = mark_classes[1] in CERTAIN_CLASSES and text[after] in CAPITALS
        if not is_certain and decide_by_rule(mark_classes) is None:
            yield mark_classes, is_end
        if is_end:
            start = after


def iter_read_contexts(path: Path) -> Iterator[tuple[BoundaryContext, bool]]:
    """Yield the contexts of a table, and whether a sentence ends there, once for each mark that was read."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            num_boundaries, num_others, *classes = line.split("\t")
            previous_class, class_before, mark, class_after, class_beyond, position = classes
            context = (previous_class, class_before, mark, class_after, class_beyond, position)
            yield from [(context, True)] * int(num_boundaries)
            yield from [(context, False)] * int(num_others)


def fit_weights(cases: list[tuple[BoundaryContext, bool]]) -> list[tuple[str, float]]:
    """Fit the weights; return (feature, weight) pairs sorted by name, without small weights."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    rows = DictVectorizer()
    matrix = rows.fit_transform([dict.fromkeys(extract_features(found), 1) for found, _ in cases])
    model = LogisticRegression(max_iter=5000).fit(matrix, [is_end for _, is_end in cases])
    weights = dict(zip(rows.get_feature_names_out(), model.coef_[0], strict=True))
    kept_weights = [(name, float(weight)) for name, weight in weights.items() if abs(weight) >= MIN_WEIGHT]
    return [("always", float(model.intercept_[0])), *sorted(kept_weights)]


def fit_on_corpora(data: Path) -> list[tuple[str, float]]:
    """Fit the weights on BIOSHARDS_DATA, bioshards' own paragraphs and the contexts that were read."""
    folder = data / "sentences"
    paragraphs = [
        part for part in [*load_craft(folder), *load_genia(folder)] if not is_held_out(part.document)
    ]
    paragraphs *= CORPUS_WEIGHT
    paragraphs += load_own_paragraphs(GOLDEN / "sentences.txt") * OWN_PARAGRAPH_WEIGHT
    cases = [case for paragraph in paragraphs for case in iter_undecided_marks(paragraph)]
    return fit_weights([*cases, *iter_read_contexts(GOLDEN / "boundary_contexts.tsv")])


def main() -> None:
    """Fit and write the file."""
    weights = fit_on_corpora(Path(os.environ["BIOSHARDS_DATA"]))
    lines = [f"{weight:.1f}\t{feature}\n" for feature, weight in weights]
    (ROOT / "corpus" / "sentences" / "boundary_weights.tsv").write_text(
        HEADER + "".join(lines), encoding="utf-8"
    )
    print(f"{len(weights)} weights")


if __name__ == "__main__":
    main()
