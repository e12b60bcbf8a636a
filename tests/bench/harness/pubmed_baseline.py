"""Files of the size of PubMed's baseline, made of repeated real records with new PMIDs.

A baseline file has 30,000 records and cannot come with the repository.  Timings need the length and
the make-up of real records, not their variety, so a few thousand real ones stand in for all: each gets
a PMID of its own wherever it names itself, and everything else of it stays.  Replicated text is good
for time and memory only; nothing about duplicates, vocabularies or compression should be read off it.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import hashlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from lxml import etree

HEAD = (
    b'<?xml version="1.0" encoding="utf-8"?>\n'
    b'<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    b'"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n'
    b"<PubmedArticleSet>\n"
)
TAIL = b"</PubmedArticleSet>\n"
FIRST_PMID = 50_000_000
"""Above every assigned PMID, so that no record has the PMID of a cited one."""
GZIP_LEVEL = 6

_OWN_ID = "@bioshards-own-pmid@"
_XML = re.compile(r"\.xml(\.gz)?(\.@\w+)?$")

Template = list[bytes]
"""The bytes of a record, split at its own PMID."""


@dataclass(frozen=True)
class GeneratedBaseline:
    """Files made by :func:`make_baseline`.

    Attributes:
        paths: the files, in their order.
        xml_bytes: the size of each, unpacked.
        records: records in each.
        distinct: how many different records they are made of.
    """

    paths: list[str]
    xml_bytes: list[int]
    records: int
    distinct: int


def find_source_folder() -> Path:
    """Return the folder of records: the bundled sample without real data."""
    given = os.environ.get("BIOSHARDS_DATA")
    if given:
        return Path(given) / "pubmed"
    return Path(str(resources.files("bioshards.corpus") / "sample" / "pubmed"))


def load_records(folder: Path) -> list[etree._Element]:
    """Load the folder's ``PubmedArticle`` records, one for each PMID.

    Some are fragments that other projects test with: without an article in it or with an entity that
    only a DTD explains, a record is not one that PubMed would send.
    """
    records_by_pmid: dict[str, etree._Element] = {}
    for article in iter_records(folder):
        records_by_pmid.setdefault(article.findtext("MedlineCitation/PMID", ""), article)
    if not records_by_pmid:
        raise SystemExit(f"no PubmedArticle in {folder}: set BIOSHARDS_DATA to a folder with pubmed/ in it")
    return list(records_by_pmid.values())


def iter_records(folder: Path) -> Iterator[etree._Element]:
    """Yield all records as in :func:`load_records`, also several of a PMID."""
    for path in sorted(path for path in folder.rglob("*") if _XML.search(path.name) and path.is_file()):
        for article in _articles(path):
            is_usable = article.find("MedlineCitation/Article") is not None and not any(
                True for _ in article.iter(etree.Entity)
            )
            if article.findtext("MedlineCitation/PMID") and is_usable:
                yield article


def load_templates(folder: Path) -> list[Template]:
    """The records of :func:`load_records`, one with an abstract first."""
    template_list = list(map(_cut_template, load_records(folder)))
    # The record of a file of one record, which measures the start-up, must become a document.
    first = next(
        (index for index, parts in enumerate(template_list) if b"<AbstractText" in b"".join(parts)), 0
    )
    return template_list[first:] + template_list[:first]


def _articles(path: Path) -> Iterator[etree._Element]:
    data = path.read_bytes()
    parser = etree.XMLParser(huge_tree=True, resolve_entities=False, no_network=True)
    try:
        root = etree.fromstring(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parser)
    except (etree.XMLSyntaxError, OSError, EOFError):
        return  # test data of other projects may be broken on purpose
    yield from root.iter("PubmedArticle")


def _cut_template(article: etree._Element) -> Template:
    own_id_elements = [
        article.find("MedlineCitation/PMID"),
        *article.iterfind("PubmedData/ArticleIdList/ArticleId[@IdType='pubmed']"),
    ]
    for element in own_id_elements:
        assert element is not None
        element.text = _OWN_ID
    article.tail = "\n"
    parts = etree.tostring(article, encoding="utf-8").split(_OWN_ID.encode())
    assert len(parts) == len(own_id_elements) + 1, "a record that has the mark of its own"
    return parts


def make_baseline(work: Path, records: int, files: int) -> GeneratedBaseline:
    """``files`` files of ``records`` records each, no PMID twice; those already in ``work`` are kept."""
    folder = find_source_folder()
    template_list = load_templates(folder)
    digest = hashlib.sha256(b"\n".join(itertools.chain.from_iterable(template_list))).hexdigest()[:12]
    output_dir = work / f"baseline-{records}-{digest}"
    output_dir.mkdir(parents=True, exist_ok=True)
    paths, sizes = [], []
    for number in range(files):
        path = output_dir / f"pubmed26n{number + 1:04d}.xml.gz"
        size = output_dir / f"{path.name}.size"
        if not (path.exists() and size.exists()):
            size.write_text(str(_write_file(path, template_list, number * records, records)))
        paths.append(str(path))
        sizes.append(int(size.read_text()))
    return GeneratedBaseline(paths, sizes, records, len(template_list))


def _write_file(path: Path, template_list: Sequence[Template], first: int, records: int) -> int:
    """Write one file atomically; return the number of bytes of its XML."""
    temporary = path.with_name(f"{path.name}.part")
    with gzip.open(temporary, "wb", compresslevel=GZIP_LEVEL) as out:
        written = out.write(HEAD)
        for index in range(first, first + records):
            own = str(FIRST_PMID + index).encode()
            written += out.write(own.join(template_list[index % len(template_list)]))
        written += out.write(TAIL)
    temporary.rename(path)
    return written


def main() -> None:
    """Make the files and print their description as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.harness.pubmed_baseline", description=__doc__
    )
    parser.add_argument("--work", type=Path, default=Path("build/bench"))
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--files", type=int, default=1)
    options = parser.parse_args()
    baseline = make_baseline(options.work.resolve(), options.records, options.files)
    print(json.dumps(dataclasses.asdict(baseline)))


if __name__ == "__main__":
    main()
