"""Fidelity of the text of articles and abstracts: ``python -m tests.bench.bench_text``.

Of real articles and PubMed records (BIOSHARDS_DATA) the words and 4-grams of our text are compared with those
that the XML has (harness/text_fidelity.py), of CRAFT's articles with text that people have read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from lxml import etree

from bioshards.corpus import jats
from bioshards.corpus.errors import DataError
from bioshards.corpus.pubmed.citation import parse_citation
from bioshards.corpus.pubmed.documents import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from tests.bench.harness import pubmed_baseline
from tests.bench.harness.text_corpora import get_data_dir
from tests.bench.harness.text_fidelity import (
    ExpectedText,
    FidelityScore,
    expect_abstract,
    expect_article,
    load_craft_articles,
    score_extractor,
)
from tests.support.corpus import jats_oracle


def select_articles(data: Path, count: int) -> list[bytes]:
    """Select articles evenly from all folders of the data, except files that are no single article."""
    paths = [path for path in sorted((data / "jats").rglob("*")) if path.suffix in (".xml", ".nxml")]
    selected = []
    for path in paths[:: -(-len(paths) // count)]:
        xml = path.read_bytes()
        try:
            root = jats_oracle.parse_article(xml)
        except etree.XMLSyntaxError:  # broken on purpose, as test data of other projects
            continue
        if root.tag == "article":
            selected.append(xml)
    return selected


def select_records(data: Path, count: int) -> list[bytes]:
    """Select records with an abstract and a PMID of PubMed's form."""
    records = [
        record
        for record in pubmed_baseline.load_records(data / "pubmed")
        if record.find(".//AbstractText") is not None
        and record.findtext("MedlineCitation/PMID", "").isdigit()
    ]
    return [etree.tostring(record, with_tail=False) for record in records[:: -(-len(records) // count)]]


def read_article(xml: bytes) -> str | None:
    """Return our text of an article, or None if it is rejected."""
    try:
        return "\n".join(jats.paragraphs(xml))
    except DataError:
        return None


def read_abstract(record: bytes, builder: CitationDocumentBuilder) -> str | None:
    """Return our text of a record's abstract, or None if it is rejected."""
    try:
        return "\n".join(builder.build_document(parse_citation(record), "", 0)[1].sentences)
    except DataError:
        return None


def print_row(name: str, files: Iterable[tuple[ExpectedText, str | None]]) -> None:
    """Score the texts of files and print the row of a table."""
    score = FidelityScore()
    for expected, text in files:
        score.add(expected, text)
    words, ngrams = score.words, score.ngrams
    glued = 10_000 * score.glued.total() / max(words.given, 1)
    print(
        f"| {score.files} {name} | {score.failures} | {words.recall:.4f} | {words.precision:.4f} | "
        f"{ngrams.recall:.4f} | {ngrams.precision:.4f} | {glued:.1f} |"
    )


def main() -> None:
    """Compare the texts and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_text", description=__doc__)
    parser.add_argument("--articles", type=int, default=500, help="number of articles (default: %(default)s)")
    parser.add_argument("--records", type=int, default=2000, help="number of records (default: %(default)s)")
    options = parser.parse_args()
    data = get_data_dir()
    print("| | failed | words: recall | precision | 4-grams: recall | precision | glued, of 10,000 words |")
    print("|---|---|---|---|---|---|---|")
    articles = select_articles(data, options.articles)
    print_row("articles", ((expect_article(xml), read_article(xml)) for xml in articles))
    records = select_records(data, options.records)
    for name, config in (
        ("abstracts", PubMedConfig(titles=False)),
        ("abstracts, --disable-cleaning all", PubMedConfig(titles=False, cleaning=())),
    ):
        builder = CitationDocumentBuilder(config)
        print_row(name, ((expect_abstract(xml), read_abstract(xml, builder)) for xml in records))
    precision, recall = score_extractor(
        load_craft_articles(data), lambda path: read_article(path.read_bytes()) or ""
    )
    print(f"\nCRAFT, word 5-grams against text that people have read: {precision:.4f}, recall {recall:.4f}")


if __name__ == "__main__":
    main()
