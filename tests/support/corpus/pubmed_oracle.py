"""An independent parser of PubMed files, to compare the pipeline with.

Naive on purpose: whole files in memory, a full tree, one dictionary, PubMed's rules in the order in
which they are written down.  It shares no code with bioshards.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

from lxml import etree

PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)


def file_order(path: Path) -> tuple[int, int, str, str]:
    numbered = re.search(r"(\d\d)n(\d{4})", path.name)
    if numbered:
        return int(numbered[1]), int(numbered[2]), path.name, str(path)
    year = re.search(r"20(\d\d)", path.name)
    return (int(year[1]) if year and "samp" in path.name else 999, 0, path.name, str(path))


def parse_root(path: Path) -> Any:
    data = path.read_bytes()
    return etree.fromstring(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, PARSER)


def element_words(element: Any) -> list[str]:
    return [] if element is None else "".join(element.itertext(etree.Element)).split()


def has_formula(element: Any) -> bool:
    """Return True if a record has MathML, whose text is a formula and not its characters."""
    return next(element.iter("{*}math"), None) is not None


def without_power_marks(text: str) -> str:
    """Return a text in which powers have no mark: "106" for "10^6" and "10(6)"."""
    return re.sub(r"10\(([^()]*)\)", r"10\1", text).replace("^", "")


class PubMedOracle:
    """The current records after all files: PMID -> (words of the title, words of the abstract)."""

    def __init__(self, paths: list[Path]) -> None:
        self.live: dict[str, tuple[list[str], list[str]]] = {}
        self.facts: dict[str, dict[str, object]] = {}
        self.with_formulas: set[str] = set()
        self.records = 0
        seen_files = set()
        for path in sorted(paths, key=file_order):
            identity = (re.sub(r"\.xml(\.gz)?", "", path.name), path.read_bytes())
            if identity not in seen_files:
                seen_files.add(identity)
                self.apply(parse_root(path))

    def apply(self, file_root: Any) -> None:
        versions_in_file: dict[str, int] = {}
        for record in [file_root] if file_root.tag in ("PubmedArticle", "MedlineCitation") else file_root:
            if record.tag == "DeleteCitation":
                for pmid in record.findall("PMID"):
                    self.live.pop(pmid.text or "", None)
                    versions_in_file.pop(pmid.text or "", None)
            elif record.tag in ("PubmedArticle", "MedlineCitation"):
                self.records += 1
                citation = record if record.tag == "MedlineCitation" else record.find("MedlineCitation")
                pmid = citation.find("PMID")
                if not pmid.text.isdecimal():  # "11119751-a": no PMID, so no PubMed record
                    continue
                version = int(pmid.get("Version", "1"))
                if version >= versions_in_file.get(pmid.text, 0):
                    versions_in_file[pmid.text] = version
                    self.live[pmid.text] = self.title_and_abstract(citation)
                    if has_formula(citation):
                        self.with_formulas.add(pmid.text)
                    self.facts[pmid.text] = self.metadata(record, citation)

    def title_and_abstract(self, citation: Any) -> tuple[list[str], list[str]]:
        abstract: list[str] = []
        for part in citation.findall("Article/Abstract/AbstractText"):
            abstract += element_words(part)
        return element_words(citation.find("Article/ArticleTitle")), abstract

    def metadata(self, record: Any, citation: Any) -> dict[str, object]:
        ids = {
            item.get("IdType"): item.text
            for item in reversed(record.findall("PubmedData/ArticleIdList/ArticleId"))
        }
        doi = ids.get("doi") or next(
            (
                item.text
                for item in citation.findall("Article/ELocationID")
                if item.get("EIdType") == "doi" and item.get("ValidYN") != "N"
            ),
            None,
        )
        date = citation.find("Article/Journal/JournalIssue/PubDate")
        year = (
            None
            if date is None
            else re.search(r"\d{4}", date.findtext("Year") or date.findtext("MedlineDate") or "")
        )
        retraction = citation.xpath("CommentsCorrectionsList/CommentsCorrections[@RefType='RetractionIn']")
        old_retraction = citation.xpath(
            "CommentsCorrectionsList/RetractionIn|CommentsCorrections/RetractionIn"
        )
        types = [item.text for item in citation.findall("Article/PublicationTypeList/PublicationType")]
        return {
            "doi": doi.strip() if doi else None,
            "pmcid": (ids.get("pmc") or "").strip() or None,
            "year": int(year[0]) if year else None,
            "language": ",".join(item.text.lower() for item in citation.findall("Article/Language")) or None,
            "retracted": bool(retraction or old_retraction or "Retracted Publication" in types),
            "labels": [
                item.get("Label")
                for item in citation.findall("Article/Abstract/AbstractText")
                if element_words(item) and (item.get("Label") or "").strip()
            ],
        }
