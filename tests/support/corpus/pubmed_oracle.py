"""An independent parser of PubMed files, to compare the pipeline with.

Naive on purpose: whole files in memory, a full tree, one dictionary, PubMed's rules in the order in
which they are written down.  It shares no code with bioshards.
"""

from __future__ import annotations

import datetime
import gzip
import re
from collections.abc import Callable, Iterable
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


def element_text(element: Any) -> str | None:
    return " ".join(element_words(element)) or None


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
            words, label = element_words(part), (part.get("Label") or "").split()
            if len(words) == 1 and label and re.fullmatch(r"(\d\d?[a-z]?|[IVX]{1,4}[ab]?)\.?", words[0]):
                words = [*f"{' '.join(label)}:".split(), *words]  # a number alone says nothing
            abstract += words
        return element_words(citation.find("Article/ArticleTitle")), abstract

    def metadata(self, record: Any, citation: Any) -> dict[str, object]:
        parts = [item for item in citation.findall("Article/Abstract/AbstractText") if element_words(item)]
        has_categories = citation.find("Article/Abstract/AbstractText[@NlmCategory]") is not None
        return {
            "doi": find_doi(record, citation),
            "pmcid": find_ids(record).get("pmc"),
            "year": first_year(citation),
            "language": ",".join(item.text.lower() for item in citation.findall("Article/Language")) or None,
            "retracted": is_retracted(citation),
            "labels": [item.get("Label") for item in parts if (item.get("Label") or "").strip()],
            "columns": {
                **list_columns(record, citation),
                "journal": element_text(citation.find("Article/Journal/Title")),
                "section_categories": tuple(item.get("NlmCategory") for item in parts if has_categories),
            },
        }


def find_ids(record: Any) -> dict[str, str]:
    """Return the first id of each kind that is not empty."""
    ids: dict[str, str] = {}
    for item in record.findall("PubmedData/ArticleIdList/ArticleId"):
        if text := "".join(item.itertext()).strip():
            ids.setdefault(item.get("IdType", ""), text)
    return ids


def find_doi(record: Any, citation: Any) -> str | None:
    """Return the DOI of the ids, or else the first valid one of the locations."""
    locations = [
        "".join(item.itertext()).strip()
        for item in citation.findall("Article/ELocationID")
        if item.get("EIdType") == "doi" and item.get("ValidYN") != "N"
    ]
    return find_ids(record).get("doi") or next(iter(locations), None)


def first_year(citation: Any) -> int | None:
    published = earliest_date(citation)
    return int(published[:4]) if published else None


def earliest_date(citation: Any) -> str | None:
    """Return the date of the issue, or the electronic one before it; without a month it is late in a year."""
    issue = publication_date(citation.find("Article/Journal/JournalIssue/PubDate"))
    electronic = citation.find("Article/ArticleDate")
    parts = [part.text or "" for part in electronic] if electronic is not None else []
    if issue is None or len(parts) != 3 or "" in parts:
        return issue
    return min(issue, "-".join(part.zfill(2) for part in parts), key=lambda date: f"{date}-99"[:10])


def is_retracted(citation: Any) -> bool:
    notices = citation.xpath(
        "CommentsCorrectionsList/CommentsCorrections[@RefType='RetractionIn']"
        "|CommentsCorrectionsList/RetractionIn|CommentsCorrections/RetractionIn"
    )
    types = citation.findall("Article/PublicationTypeList/PublicationType")
    return bool(notices) or "Retracted Publication" in ["".join(item.itertext()) for item in types]


def list_columns(
    record: Any, citation: Any, text: Callable[[Any], str | None] = element_text
) -> dict[str, Any]:
    """Return the values of all columns, the fields of structs as tuples.

    Args:
        text: returns the text of an element in one line, or None.
    """

    def full_date(element: Any) -> datetime.date | None:
        return element if element is None else datetime.date(*(int(part.text) for part in element[:3]))

    def orcid(author: Any) -> str | None:
        digits = re.sub("[^0-9X]", "", author.findtext("Identifier[@Source='ORCID']") or "")[-16:]
        return "-".join(digits[at : at + 4] for at in range(0, 16, 4)) if len(digits) == 16 else None

    def texts(elements: Iterable[Any]) -> tuple[str, ...]:
        return tuple(filter(None, map(text, elements)))

    history = record.findall("PubmedData/History/PubMedPubDate[@PubStatus='entrez']")
    cited = record.findall("PubmedData//Reference/ArticleIdList/ArticleId[@IdType='pubmed']")
    return {
        "journal_abbreviation": text(citation.find("Article/Journal/ISOAbbreviation")),
        "nlm_id": text(citation.find("MedlineJournalInfo/NlmUniqueID")),
        "publication_types": texts(citation.findall("Article/PublicationTypeList/PublicationType")),
        "mesh": tuple(
            (
                text(names[0]),
                names[0].get("UI"),
                any(name.get("MajorTopicYN") == "Y" for name in names),
                tuple((text(name), name.get("MajorTopicYN") == "Y") for name in names[1:]),
            )
            for names in map(list, citation.findall("MeshHeadingList/MeshHeading"))
        ),
        "keywords": texts(citation.findall("KeywordList/Keyword")),
        "published": earliest_date(citation),
        "entered": full_date(history[0] if history else None),
        "revised": full_date(citation.find("DateRevised")),
        "authors": tuple(
            (
                text(author.find("LastName")) or text(author.find("CollectiveName")) or "",
                text(author.find("ForeName")) or text(author.find("Initials")),
                orcid(author),
                texts(author.iter("Affiliation")),
                text(author.find("Suffix")),
            )
            for author in citation.findall("Article/AuthorList/Author")
            if author.get("ValidYN") != "N"
        ),
        "chemicals": tuple(
            (
                text(item.find("NameOfSubstance")) or "",
                item.find("NameOfSubstance").get("UI"),
                text(item.find("RegistryNumber")),
            )
            for item in citation.findall("ChemicalList/Chemical")
        ),
        "grants": tuple(
            tuple(text(item.find(name)) for name in ("GrantID", "Agency", "Country"))
            for item in citation.findall("Article/GrantList/Grant")
        ),
        "cited_pmids": tuple(
            dict.fromkeys(int(item.text) for item in cited if (item.text or "").strip().isdecimal())
        ),
        "other_abstracts": tuple(
            (
                other.get("Type") or None,
                other.get("Language", "eng"),
                " ".join(texts(other.findall("AbstractText"))),
            )
            for other in citation.findall("OtherAbstract")
            if len(other)
        ),
        "vernacular_title": text(citation.find("Article/VernacularTitle")),
    }


def as_tuples(value: Any) -> Any:
    """Return a value of a row of a shard as :func:`list_columns` does."""
    if isinstance(value, dict):
        value = list(value.values())
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def publication_date(date: Any) -> str | None:
    """Return the beginning of the date in ISO 8601, as precise as it is given."""
    found = None if date is None else re.search(r"\d{4}.*", " ".join(date.itertext()), re.DOTALL)
    if not found:
        return None
    year, *rest = found[0].split()
    months = [name for name in re.findall("[A-Za-z]+|[0-9]+", " ".join(rest)) if name]
    names = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    month = months[0][:3].lower() if months and len(year) == 4 else ""
    number = names.index(month) + 1 if month in names else int(month) if month.isdecimal() else 0
    if not 1 <= number <= 12:
        return year[:4]
    day = re.match(r"\w+\.?\s+(\d{1,2})\b", " ".join(rest))
    return f"{year}-{number:02}" + (f"-{int(day[1]):02}" if day else "")
