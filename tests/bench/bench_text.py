"""Fidelity of the text of articles and abstracts, beside other tools: ``python -m tests.bench.bench_text``.

Of real articles and PubMed records (BIOSHARDS_DATA) the words and 4-grams of a tool's text are compared with
those that the XML has (harness/text_fidelity.py), of CRAFT's articles with text that people have read. The
other tools are those that ``--peers PYTHON`` can import; they may need an environment of their own:

    python -m venv peers && peers/bin/pip install bconv pubget pubmed_parser
    python -m tests.bench.bench_text --peers peers/bin/python
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from lxml import etree

from bioshards.corpus import jats
from bioshards.corpus.errors import DataError
from bioshards.corpus.pubmed.citation import parse_citation
from bioshards.corpus.pubmed.documents import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from tests.bench.harness import peer_texts, pubmed_baseline
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

Texts = Sequence[str | None]
"""A tool's text of each file; None if it failed."""
_SET_START: Final = b"<PubmedArticleSet>"
_SET_END: Final = b"</PubmedArticleSet>"
HEADER: Final = (
    "| | failed | words: recall | precision | 4-grams: recall | precision | glued, of 10,000 words |\n"
    "|---|---|---|---|---|---|---|"
)


def select_articles(data: Path, count: int) -> list[Path]:
    """Select articles evenly from all folders of the data, except files that are no single article."""
    paths = [path for path in sorted((data / "jats").rglob("*")) if path.suffix in (".xml", ".nxml")]
    selected = []
    for path in paths[:: -(-len(paths) // count)]:
        try:
            root = jats_oracle.parse_article(path.read_bytes())
        except etree.XMLSyntaxError:  # broken on purpose, as test data of other projects
            continue
        if root.tag == "article":
            selected.append(path)
    return selected


def write_records(data: Path, count: int, folder: Path) -> list[Path]:
    """Write a file for each of some records with an abstract and a PMID of PubMed's form."""
    records = [
        record
        for record in pubmed_baseline.load_records(data / "pubmed")
        if record.find(".//AbstractText") is not None
        and record.findtext("MedlineCitation/PMID", "").isdigit()
    ]
    paths = []
    for number, record in enumerate(records[:: -(-len(records) // count)]):
        paths.append(folder / f"{number}.xml.gz")
        record.tail = None
        xml = _SET_START + etree.tostring(record) + _SET_END
        paths[-1].write_bytes(gzip.compress(xml))
    return paths


def read_article(path: Path) -> str | None:
    """Return our text of an article."""
    try:
        return "\n".join(jats.paragraphs(path.read_bytes()))
    except DataError:
        return None


def read_abstracts(paths: Sequence[Path], config: PubMedConfig) -> Texts:
    """Return our text of each record's abstract."""
    builder = CitationDocumentBuilder(config)

    def read(path: Path) -> str | None:
        record = gzip.decompress(path.read_bytes()).removeprefix(_SET_START).removesuffix(_SET_END)
        try:
            return "\n".join(builder.build_document(parse_citation(record), "", 0)[1].sentences)
        except DataError:
            return None

    return [read(path) for path in paths]


def read_with_peers(python: str, tools: Sequence[str], paths: Sequence[Path]) -> dict[str, Texts]:
    """Return the texts of each tool that the interpreter can import."""
    texts_by_tool: dict[str, Texts] = {}
    for tool in tools:
        run = subprocess.run(
            [python, peer_texts.__file__, tool],
            input="\n".join(map(str, paths)),
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            print(f"{tool}: not compared: {run.stderr.strip().splitlines()[-1]}")
        else:
            texts_by_tool[tool] = [json.loads(line).get("text") for line in run.stdout.splitlines()]
    return texts_by_tool


def print_table(
    title: str,
    paths: Sequence[Path],
    expect: Callable[[bytes], ExpectedText],
    texts_by_tool: Mapping[str, Texts],
) -> None:
    """Score each tool on the files and print the table."""
    scores = {tool: FidelityScore() for tool in texts_by_tool}
    for index, path in enumerate(paths):
        data = path.read_bytes()
        expected = expect(gzip.decompress(data) if path.suffix == ".gz" else data)
        for tool, texts in texts_by_tool.items():
            scores[tool].add(expected, texts[index])
    print(f"\n{title}\n\n{HEADER}")
    for tool, score in scores.items():
        words, ngrams = score.words, score.ngrams
        glued = 10_000 * score.glued.total() / max(words.given, 1)
        print(
            f"| {tool} | {score.failures} of {score.files} | {words.recall:.4f} | {words.precision:.4f} | "
            f"{ngrams.recall:.4f} | {ngrams.precision:.4f} | {glued:.1f} |"
        )


def main() -> None:
    """Compare the texts and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.bench_text",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--articles", type=int, default=500, help="number of articles (default: %(default)s)")
    parser.add_argument("--records", type=int, default=2000, help="number of records (default: %(default)s)")
    parser.add_argument(
        "--peers", metavar="PYTHON", default=sys.executable, help="interpreter of the other tools"
    )
    options = parser.parse_args()
    data = get_data_dir()
    tools = ("bconv", "pubget", "pubmed_parser")

    articles = select_articles(data, options.articles)
    article_texts = {
        "**bioshards**": [read_article(path) for path in articles],
        **read_with_peers(options.peers, tools, articles),
    }
    print_table(f"{len(articles)} articles", articles, expect_article, article_texts)

    craft = load_craft_articles(data)
    craft_paths = [path for path, _ in craft]
    print(
        "\nCRAFT, word 5-grams against text that people have read\n\n| | precision | recall |\n|---|---|---|"
    )
    for tool, texts in {
        "**bioshards**": [read_article(path) for path in craft_paths],
        **read_with_peers(options.peers, tools, craft_paths),
    }.items():
        text_by_path = {path: text or "" for path, text in zip(craft_paths, texts, strict=True)}
        precision, recall = score_extractor(craft, text_by_path.__getitem__)
        print(f"| {tool} | {precision:.4f} | {recall:.4f} |")

    with tempfile.TemporaryDirectory() as folder:
        records = write_records(data, options.records, Path(folder))
        abstract_texts = {
            "**bioshards**": read_abstracts(records, PubMedConfig(titles=False)),
            "bioshards, --disable-cleaning all": read_abstracts(
                records, PubMedConfig(titles=False, cleaning=())
            ),
            **read_with_peers(options.peers, ("bconv-abstracts", "pubmed_parser-abstracts"), records),
        }
        print_table(f"{len(records)} abstracts", records, expect_abstract, abstract_texts)


if __name__ == "__main__":
    main()
