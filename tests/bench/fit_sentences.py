"""Fit the sentence splitter's weights: ``python -m tests.bench.fit_sentences``, with BIOSHARDS_DATA set.

A logistic regression on the marks that are not certain by the class before and the capital after them: in the
four fifths of CRAFT and GENIA that are not held out, in bioshards' own paragraphs, each of which counts
several times, and in tests/golden/boundary_marks.tsv. Run it again whenever the classes of boundary_model.py
or its features change; the same input gives the same file. The articles of that table are not in the
repository: a class that gets another name is renamed in it, and other changes of a class leave its rows.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bioshards.corpus.sentences import BOUNDARY_CANDIDATE, collapse_whitespace
from bioshards.corpus.sentences.boundary_model import (
    CAPITALS,
    CERTAIN_CLASSES,
    BoundaryCandidate,
    extract_candidate,
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
CORPUS_WEIGHT: Final = 4
"""Weight of each paragraph of CRAFT and GENIA, where the contexts that were read are rare ones."""
OWN_PARAGRAPH_WEIGHT: Final = 8
"""Weight of each of bioshards' own paragraphs."""
MIN_MARKS: Final = 3
"""Features of fewer marks are left out."""
MIN_WEIGHT: Final = 0.1
"""Smaller absolute weights are dropped."""

HEADER: Final = """\
# Weights of features (boundary_model.py), fitted by tests/bench/fit_sentences.py; in sum above 0: the end.
"""


def iter_uncertain_marks(paragraph: Paragraph) -> Iterator[tuple[BoundaryCandidate, bool]]:
    """Yield each mark that is not certain, and whether a sentence ends there."""
    text = collapse_whitespace(paragraph.text)
    start = read = characters = 0
    for match in BOUNDARY_CANDIDATE.finditer(text):
        stop, after = match.span()
        characters += len(text[read:after].replace(" ", ""))
        read = after
        is_end = characters in paragraph.ends
        candidate = extract_candidate(text, start, stop, after)
        is_certain = candidate.context[1] in CERTAIN_CLASSES and text[after] in CAPITALS
        if not is_certain:
            yield candidate, is_end
        if is_end:
            start = after


def iter_read_marks(path: Path) -> Iterator[tuple[BoundaryCandidate, bool]]:
    """Yield the marks of a table, and whether a sentence ends there."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        is_end, length, *columns = line.split("\t")
        previous_class, class_before, mark, class_after, class_beyond, position = columns[:6]
        third_word, second_word, word, next_word, second_next, third_next = columns[6:]
        context = (previous_class, class_before, mark, class_after, class_beyond, position)
        words = (third_word, second_word, word, next_word, second_next, third_next)
        yield BoundaryCandidate(context, words, int(length)), is_end == "1"


def fit_weights(
    marks: Sequence[tuple[BoundaryCandidate, bool]], counts: Sequence[int]
) -> list[tuple[str, float]]:
    """Fit the weights; return (feature, weight) pairs sorted by name, without small weights.

    Args:
        marks: candidates, and whether they are boundaries.
        counts: how often each of them counts.
    """
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    features = [extract_features(candidate) for candidate, _ in marks]
    num_marks = Counter(name for names in features for name in names)
    rows = DictVectorizer()
    matrix = rows.fit_transform(
        {name: 1 for name in names if num_marks[name] >= MIN_MARKS} for names in features
    )
    model = LogisticRegression(max_iter=5000)
    model.fit(matrix, [is_end for _, is_end in marks], sample_weight=counts)
    weights = dict(zip(rows.get_feature_names_out(), model.coef_[0], strict=True))
    kept_weights = [(name, float(weight)) for name, weight in weights.items() if abs(weight) >= MIN_WEIGHT]
    return [("always", float(model.intercept_[0])), *sorted(kept_weights)]


def fit_on_corpora(data: Path) -> list[tuple[str, float]]:
    """Fit the weights on BIOSHARDS_DATA, bioshards' own paragraphs and the marks that were read."""
    folder = data / "sentences"
    annotated = [
        part for part in [*load_craft(folder), *load_genia(folder)] if not is_held_out(part.document)
    ]
    own = load_own_paragraphs(GOLDEN / "sentences.txt")
    sources = (
        ([mark for part in annotated for mark in iter_uncertain_marks(part)], CORPUS_WEIGHT),
        ([mark for part in own for mark in iter_uncertain_marks(part)], OWN_PARAGRAPH_WEIGHT),
        (list(iter_read_marks(GOLDEN / "boundary_marks.tsv")), 1),
    )
    marks = [mark for source, _ in sources for mark in source]
    return fit_weights(marks, [weight for source, weight in sources for _ in source])


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
