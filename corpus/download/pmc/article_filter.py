"""Select PMC's articles by licence and data set, from their metadata, before they are fetched.

Every article has the licence that its authors or publisher chose
(https://pmc.ncbi.nlm.nih.gov/tools/textmining/ groups them; the codes are Creative Commons' names,
https://creativecommons.org/share-your-work/cclicenses/).  By default an article is used if its licence
permits everybody to adapt, to redistribute and to use it commercially, as a corpus of cleaned sentences
requires:

* CC0, CC-BY and CC-BY-SA do, with attribution, and SA under the same licence.
* NC forbids commercial use.
* ND forbids the redistribution of adapted text.  (PMC lists CC-BY-ND as permitting commercial use.)
* TDM permits mining of authors' manuscripts but not redistribution, which NLM's terms require
  (https://pmc-oa-opendata.s3.amazonaws.com/README.txt).
* An unknown code grants no known permission.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.download.pmc.bucket_inventory import mask_last_of_each
from bioshards.corpus.download.sources import DEFAULT_SETS, SETS, Versions
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES


class SelectedArticles(NamedTuple):
    """Selected rows, sorted by pmcid and version, and the number of dropped rows by reason."""

    table: pa.Table
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True)
class ArticleFilter:
    """Filter of articles.

    Attributes:
        licences: accepted licences, of :data:`~bioshards.corpus.licences.LICENCES`.
        sets: accepted data sets, of :data:`~bioshards.corpus.download.sources.SETS`.  An article must be in
            one of them; one in ``ocr`` is dropped unless ``ocr`` is accepted, because of the quality of
            scanned pages.
        drop_retracted: drop retracted articles.
        versions: versions of an article to keep.
    """

    licences: frozenset[str] = DEFAULT_LICENCES
    sets: frozenset[str] = DEFAULT_SETS
    drop_retracted: bool = False
    versions: Versions = "newest"

    def __post_init__(self) -> None:
        for values, known in ((self.licences, LICENCES), (self.sets, SETS)):
            if unknown := sorted(values - set(known)):
                raise InvalidValueError(f"{', '.join(unknown)}: unknown. Choose from {', '.join(known)}.")

    def select(self, table: pa.Table) -> SelectedArticles:
        """Select rows of :data:`~.metadata_cache.METADATA_SCHEMA`.

        A row is dropped for the first reason that applies: ``no-xml``, ``not-newest``, ``licence:CODE``,
        ``set:ocr``, ``set:none``, ``retracted``.
        """
        table = table.sort_by([("pmcid", "ascending"), ("version", "ascending")])
        reasons = self._find_drop_reasons(table)
        counts = pc.value_counts(reasons.drop_null()).to_pylist()
        return SelectedArticles(
            table.filter(pc.is_null(reasons)),
            {entry["values"]: entry["counts"] for entry in sorted(counts, key=lambda entry: entry["values"])},
        )

    def find_drop_reasons(self, table: pa.Table) -> dict[int, str]:
        """Return the drop reason of each article's newest version; ``not-newest`` if that is selected."""
        table = table.sort_by([("pmcid", "ascending"), ("version", "ascending")])
        reasons = pc.fill_null(self._find_drop_reasons(table), "not-newest")
        return dict(zip(table["pmcid"].to_pylist(), reasons.to_pylist(), strict=True))

    def _find_drop_reasons(self, table: pa.Table) -> pa.ChunkedArray:
        """Return the drop reason of each row, null for selected rows."""
        is_older = pc.invert(mask_last_of_each(table["pmcid"]))
        has_licence = pc.is_in(table["licence"], value_set=pa.array(sorted(self.licences), pa.string()))
        flags = {"open-access": table["open_access"], "manuscripts": table["manuscript"], "ocr": table["ocr"]}
        is_member = pa.array([False] * table.num_rows, pa.bool_())
        for name in self.sets:
            is_member = pc.or_(is_member, flags[name])
        cases = [
            (pc.is_null(table["md5"]), "no-xml"),
            (pc.and_(is_older, self.versions == "newest"), "not-newest"),
            (pc.invert(has_licence), pc.binary_join_element_wise("licence", table["licence"], ":")),
            (pc.and_(table["ocr"], "ocr" not in self.sets), "set:ocr"),
            (pc.invert(is_member), "set:none"),
            (pc.and_(table["retracted"], self.drop_retracted), "retracted"),
        ]
        conditions, reasons = zip(*cases, strict=True)
        return pc.case_when(pc.make_struct(*conditions), *reasons)
