"""Which of PMC's articles are used: decided from their metadata, before any of them is fetched.

Every article has the licence that its authors or publisher chose
(https://pmc.ncbi.nlm.nih.gov/tools/textmining/ groups them; the codes are Creative Commons' names,
https://creativecommons.org/share-your-work/cclicenses/).  A model is trained on text that was cleaned and
split, by people who have or have not commercial aims, and that text is passed on.  So by default an article
is used if its licence permits all three to anybody without asking what for:

* CC0, CC-BY and CC-BY-SA do, with acknowledgement, and for SA under the same licence.
* NC forbids commercial use.
* ND forbids passing on a changed text, and cleaned, split text is changed.  (PMC counts CC-BY-ND among the
  licences that permit commercial use, which it does.)
* TDM is no licence to redistribute: authors' manuscripts may be mined and used fairly, not passed on.  NLM's
  terms allow to redistribute what is licensed for it (https://pmc-oa-opendata.s3.amazonaws.com/README.txt).
* Without a code that we know, there is no permission that we know of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES

from .bucket_inventory import mask_last_of_each
from .metadata_cache import Versions

SETS: Final = ("open-access", "manuscripts", "ocr")
"""PMC's data sets: the Open Access Subset, authors' manuscripts, and articles read from scanned pages."""

DEFAULT_SETS: Final = frozenset({"open-access", "manuscripts"})


class SelectedArticles(NamedTuple):
    """The rows that were chosen, by pmcid and version, and how many were not, by reason."""

    table: pa.Table
    dropped: dict[str, int]


@dataclass(frozen=True, slots=True)
class ArticleFilter:
    """Which articles are asked for.

    Attributes:
        licences: of :data:`..licences.LICENCES`.
        sets: of :data:`SETS`; an article must be in one of them, and one that is in ``ocr`` is used only if
            that is among them: scanned pages are text of another quality.
        drop_retracted: leave out retracted articles.
        versions: of an article, the newest only, or all.
    """

    licences: frozenset[str] = DEFAULT_LICENCES
    sets: frozenset[str] = DEFAULT_SETS
    drop_retracted: bool = False
    versions: Versions = "newest"

    def __post_init__(self) -> None:
        for values, known in ((self.licences, LICENCES), (self.sets, SETS)):
            if unknown := sorted(values - set(known)):
                raise InvalidValueError(f"{', '.join(unknown)}: not known. There are {', '.join(known)}.")

    def select(self, table: pa.Table) -> SelectedArticles:
        """Choose among rows of :data:`.pmc_metadata.SCHEMA`.

        A row is dropped for the first of these reasons: ``no-xml``, ``unreadable-metadata``, ``not-newest``,
        ``licence:CODE``, ``set:ocr``, ``set:none``, ``retracted``.
        """
        table = table.sort_by([("pmcid", "ascending"), ("version", "ascending")])
        reasons = self._find_drop_reasons(table)
        counts = pc.value_counts(reasons.drop_null()).to_pylist()
        return SelectedArticles(
            table.filter(pc.is_null(reasons)),
            {entry["values"]: entry["counts"] for entry in sorted(counts, key=lambda entry: entry["values"])},
        )

    def _find_drop_reasons(self, table: pa.Table) -> pa.ChunkedArray:
        """Why each row is dropped, null for those that are not."""
        is_readable = pc.is_null(table["problem"])
        is_older = pc.invert(mask_last_of_each(table["pmcid"]))
        has_licence = pc.is_in(table["licence"], value_set=pa.array(sorted(self.licences), pa.string()))
        flags = {"open-access": table["open_access"], "manuscripts": table["manuscript"], "ocr": table["ocr"]}
        is_member = pa.array([False] * table.num_rows, pa.bool_())
        for name in self.sets:
            is_member = pc.or_(is_member, flags[name])
        cases = [
            (pc.and_(is_readable, pc.is_null(table["md5"])), "no-xml"),
            (pc.invert(is_readable), "unreadable-metadata"),
            (pc.and_(is_older, self.versions == "newest"), "not-newest"),
            (pc.invert(has_licence), pc.binary_join_element_wise("licence", table["licence"], ":")),
            (pc.and_(table["ocr"], "ocr" not in self.sets), "set:ocr"),
            (pc.invert(is_member), "set:none"),
            (pc.and_(table["retracted"], self.drop_retracted), "retracted"),
        ]
        conditions, reasons = zip(*cases, strict=True)
        return pc.case_when(pc.make_struct(*conditions), *reasons)
