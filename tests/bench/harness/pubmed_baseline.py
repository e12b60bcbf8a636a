"""Files of the size of PubMed's baseline, made of repeated real records with new PMIDs.

A baseline file has 30,000 records and cannot come with the repository.  Timings need the length and
the make-up of real records, not their variety, so a few thousand real ones stand in for all: each gets
a PMID of its own wherever it names itself, and everything else of it stays.  Replicated text is good
for time and memory only; nothing about duplicates, vocabularies or compression should be read off it.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lxml import etree

from tests.support.paths import PUBMED_SAMPLE

HEAD: Final = (
    b'<?xml version="1.0" encoding="utf-8"?>\n'
    b'<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    b'"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n'
    b"<PubmedArticleSet>\n"
)
TAIL: Final = b"</PubmedArticleSet>\n"
FIRST_PMID: Final = 50_000_000
"""Above every assigned PMID, so that no record has the PMID of a cited one."""
FILE_COUNT: Final = 8
_OWN_ID: Final = "@bioshards-own-pmid@"
_XML: Final = re.compile(r"\.xml(\.gz)?(\.@\w+)?$")

Template = list[bytes]
"""The bytes of a record, split at its own PMID."""


def find_source_folder() -> Path:
    """Return the folder of records: the bundled sample without real data."""
    given = os.environ.get("BIOSHARDS_DATA")
    return Path(given) / "pubmed" if given else PUBMED_SAMPLE


def load_records(folder: Path) -> list[etree._Element]:
    """Load the folder's ``PubmedArticle`` records, one for each PMID."""
    records_by_pmid: dict[str, etree._Element] = {}
    for article in iter_records(folder):
        records_by_pmid.setdefault(article.findtext("MedlineCitation/PMID", ""), article)
    if not records_by_pmid:
        raise SystemExit(f"no PubmedArticle in {folder}: set BIOSHARDS_DATA to a folder with pubmed/ in it")
    return list(records_by_pmid.values())


def iter_records(folder: Path) -> Iterator[etree._Element]:
    """Yield all records, several of a PMID among them.

    Some are fragments that other projects test with: without an article in it or with an entity that
    only a DTD explains, a record is not one that PubMed would send.
    """
    parser = etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True)
    for path in sorted(path for path in folder.rglob("*") if _XML.search(path.name) and path.is_file()):
        data = path.read_bytes()
        try:
            root = etree.fromstring(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parser)
        except (etree.XMLSyntaxError, OSError, EOFError):
            continue  # broken on purpose
        for article in root.iter("PubmedArticle"):
            has_article = article.find("MedlineCitation/Article") is not None
            if (
                has_article
                and article.findtext("MedlineCitation/PMID")
                and not list(article.iter(etree.Entity))
            ):
                yield article


def load_templates(folder: Path) -> list[Template]:
    """Return the records of :func:`load_records`, one with an abstract first.

    The record of a file of one record, which measures the start-up, must become a document.
    """
    templates = list(map(_cut_template, load_records(folder)))
    first = next((index for index, parts in enumerate(templates) if b"<AbstractText" in b"".join(parts)), 0)
    return templates[first:] + templates[:first]


def _cut_template(article: etree._Element) -> Template:
    own_ids = [
        article.find("MedlineCitation/PMID"),
        *article.iterfind("PubmedData/ArticleIdList/ArticleId[@IdType='pubmed']"),
    ]
    for element in own_ids:
        assert element is not None
        element.text = _OWN_ID
    article.tail = "\n"
    parts = etree.tostring(article, encoding="utf-8").split(_OWN_ID.encode())
    assert len(parts) == len(own_ids) + 1, "a record that has the mark of its own"
    return parts


def make_baseline(work: Path, records: int, files: int) -> list[Path]:
    """Make files of so many records each, no PMID twice; those already in ``work`` are kept."""
    templates = load_templates(find_source_folder())
    digest = hashlib.sha256(b"\n".join(itertools.chain.from_iterable(templates))).hexdigest()[:12]
    folder = work / f"baseline-{records}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"pubmed26n{number + 1:04d}.xml.gz" for number in range(files)]
    for number, path in enumerate(paths):
        if not path.exists():
            _write_file(path, templates, number * records, records)
    return paths


def _write_file(path: Path, templates: Sequence[Template], first: int, records: int) -> None:
    """Write one file atomically."""
    temporary = path.with_name(f"{path.name}.part")
    with gzip.open(temporary, "wb", compresslevel=6) as out:
        out.write(HEAD)
        for index in range(first, first + records):
            own = str(FIRST_PMID + index).encode()
            out.write(own.join(templates[index % len(templates)]))
        out.write(TAIL)
    temporary.rename(path)


def main() -> None:
    """Make the inputs of bench_corpus.py, and print their description as JSON."""
    work, records = Path(sys.argv[1]), int(sys.argv[2])
    paths = make_baseline(work, records, FILE_COUNT)
    with gzip.open(paths[0]) as file:
        xml_bytes = sum(map(len, file))
    description = {
        "files": list(map(str, paths)),
        "single": list(map(str, make_baseline(work, 1, 2))),
        "script_input": str(paths[0]),
        "script_units": records,
        "xml_bytes": xml_bytes,
    }
    print(json.dumps(description))


if __name__ == "__main__":
    main()
