"""Report of a contamination check: counts by split, HTML page, JSON, lists of examples and documents.

Same benchmarks and corpora, same bytes, with any number of processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import html_page
from bioshards.evaluate.benchmarks.records import Split
from bioshards.evaluate.contamination.matches import MOSTLY_COVERED_SHARE, ContaminationResult, ExampleMatch
from bioshards.evaluate.contamination.ngrams import NGRAM_SIZE

EXCLUDE_IDS_FILE: Final = "exclude-ids.txt"
_FORMAT: Final = 2
_MAX_DOCUMENTS: Final = 100
"""Documents on the page; documents.tsv has all."""
TABLE_HEADER: Final = (
    "benchmark",
    "split",
    "examples",
    "in corpus",
    "by PMID",
    "PMIDs",
    f"by {NGRAM_SIZE}-grams",
    f">= {MOSTLY_COVERED_SHARE:.0%} of it",
    "mean share",
    "too short",
)
TABLE_LEGEND: Final = (
    "in corpus: examples found by PMID or by n-grams. by PMID: the corpus has a document with an example's "
    f"PMID; PMIDs: number of the split's PMIDs in the corpus. by {NGRAM_SIZE}-grams: at least one "
    f"{NGRAM_SIZE}-gram of the example is in the corpus, and at least {MOSTLY_COVERED_SHARE:.0%} of them; "
    f"mean share: mean fraction of an example's {NGRAM_SIZE}-grams in the corpus. too short: examples with "
    f"fewer than {NGRAM_SIZE} words in a row, which have no {NGRAM_SIZE}-grams."
)


class SplitSummary(NamedTuple):
    """Counts of one split of a benchmark; the fields are keys of report.json.

    Attributes:
        matched: examples in the corpus by PMID or by 13-grams.
        pmids: distinct PMIDs of the examples' documents.
        by_ngrams: examples with a 13-gram in the corpus.
        mean_coverage: mean fraction of an example's 13-grams in the corpus, over examples that have any.
        too_short: examples with fewer than 13 words in a row.
    """

    benchmark: str
    split: Split
    examples: int
    matched: int
    by_pmid: int
    pmids: int
    pmids_matched: int
    by_ngrams: int
    mostly_covered: int
    mean_coverage: float
    too_short: int

    def to_cells(self) -> list[str]:
        """Return the row of the columns :data:`TABLE_HEADER`; a dash where nothing can be matched."""
        by_pmid = [f"{self.by_pmid:,}", f"{self.pmids_matched:,} of {self.pmids:,}"] if self.pmids else "--"
        by_ngrams = [f"{self.by_ngrams:,}", f"{self.mostly_covered:,}", f"{100 * self.mean_coverage:.1f} %"]
        has_ngrams = self.examples > self.too_short
        counts = [f"{self.examples:,}", f"{self.matched:,}"]
        ngram_cells = by_ngrams if has_ngrams else "---"
        return [self.benchmark, self.split, *counts, *by_pmid, *ngram_cells, f"{self.too_short:,}"]


def summarise_splits(example_matches: Sequence[ExampleMatch]) -> list[SplitSummary]:
    """Summarise each split of each benchmark, in order."""
    summaries = []
    for key, group in itertools.groupby(
        example_matches, lambda one: (one.example.benchmark, one.example.split)
    ):
        matches = list(group)
        coverages = [match.coverage for match in matches if match.num_ngrams]
        summaries.append(
            SplitSummary(
                *key,
                examples=len(matches),
                matched=sum(bool(match.matched_pmids or match.num_covered) for match in matches),
                by_pmid=sum(bool(match.matched_pmids) for match in matches),
                pmids=len({pmid for match in matches for pmid in match.example.pmids}),
                pmids_matched=len({pmid for match in matches for pmid in match.matched_pmids}),
                by_ngrams=sum(bool(match.num_covered) for match in matches),
                mostly_covered=sum(match.coverage >= MOSTLY_COVERED_SHARE for match in matches),
                mean_coverage=sum(coverages) / max(1, len(coverages)),
                too_short=len(matches) - len(coverages),
            )
        )
    return summaries


def describe_corpora(result: ContaminationResult) -> str:
    """Describe the size of the scanned corpora."""
    num_documents = sum(corpus.summary.documents for corpus in result.corpora)
    return f"{num_documents:,} documents, {result.text_bytes / 1e6:,.1f} MB of text"


def describe_exclusions(result: ContaminationResult) -> str:
    """Describe the excluded documents by reason."""
    num_by_pmid = sum(match.has_pmid for match in result.excluded)
    num_mostly_covered = sum(match.has_most_of_example and not match.has_pmid for match in result.excluded)
    num_excluded = len(result.excluded)
    num_others = num_excluded - num_by_pmid - num_mostly_covered
    num_kept = len(result.document_matches) - num_excluded
    return (
        f"{num_excluded:,} documents to exclude for {', '.join(result.splits)}: {num_by_pmid:,} have an "
        f"example's PMID, {num_mostly_covered:,} others contain {MOSTLY_COVERED_SHARE:.0%} of an example, "
        f"{num_others:,} others share {result.min_shared_ngrams} or more of their {NGRAM_SIZE}-grams; "
        f"{num_kept:,} share fewer and are kept"
    )


def collect_notes(result: ContaminationResult) -> list[str]:
    """List notes on benchmark files, and missing benchmarks."""
    notes_by_benchmark = result.benchmark_examples.notes.items()
    lines = [f"{name}: {note}" for name, benchmark_notes in notes_by_benchmark for note in benchmark_notes]
    if result.benchmark_examples.missing:
        lines.append(f"missing benchmarks, not checked: {', '.join(result.benchmark_examples.missing)}")
    return lines


def write_report(storage: LocalStorage, output: str, result: ContaminationResult) -> None:
    """Write all files atomically, report.json last."""
    summaries = summarise_splits(result.example_matches)
    excluded_ids = [match.document.id for match in result.excluded]
    files = {
        EXCLUDE_IDS_FILE: [f"# {describe_exclusions(result)}", *excluded_ids],
        "documents.tsv": map("\t".join, _list_documents(result)),
        "examples.tsv": map("\t".join, _list_examples(result)),
        "report.html": [render_page(result, summaries)],
    }
    for name, lines in files.items():
        with storage.write(f"{output}/{name}") as file:
            for line in lines:
                file.write(line.encode("utf-8", "backslashreplace") + b"\n")
    storage.write_json(f"{output}/report.json", _to_json(result, summaries))


def format_summary(result: ContaminationResult, output: str) -> str:
    """Format the table of the requested splits and the exclusions."""
    summaries = summarise_splits(result.example_matches)
    rows = [TABLE_HEADER, *(one.to_cells() for one in summaries if one.split in result.splits)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
        cells[:2] = [row[0].ljust(widths[0]), row[1].ljust(widths[1])]
        lines.append("  ".join(cells))
    lines += ["", *collect_notes(result)]
    lines += [f"scanned {describe_corpora(result)}", describe_exclusions(result)]
    lines += [f"exclude them: beam run ... --exclude-ids {output}/{EXCLUDE_IDS_FILE}"]
    lines += [f"report: {output}/report.html"]
    return "\n".join(lines)


def _list_documents(result: ContaminationResult) -> Iterator[tuple[str, ...]]:
    """Yield the header and the rows of documents.tsv."""
    yield (
        *("id", "pmid", "pmcid", "by PMID", f"shared {NGRAM_SIZE}-grams"),
        *(f"{MOSTLY_COVERED_SHARE:.0%} of an example", "leave out", "benchmarks"),
    )
    yes_or_no = ("no", "yes")
    for match in result.document_matches:
        yield (
            *(match.document.id, str(match.document.pmid or ""), match.document.pmcid or ""),
            *(yes_or_no[match.has_pmid], str(match.num_shared), yes_or_no[match.has_most_of_example]),
            *(yes_or_no[match.should_exclude], " ".join(match.benchmarks)),
        )


def _list_examples(result: ContaminationResult) -> Iterator[tuple[str, ...]]:
    """Yield the header and the rows of examples.tsv: matched examples of the requested splits."""
    yield (
        *("benchmark", "split", "id", "document", "PMIDs in corpus", f"{NGRAM_SIZE}-grams"),
        *("in corpus", "closest document", f"shared {NGRAM_SIZE}-grams"),
    )
    for match in result.example_matches:
        example = match.example
        if example.split in result.splits and (match.matched_pmids or match.num_covered):
            ids = (" ".join(text.split()) for text in (example.id, example.document_id))
            pmids = " ".join(map(str, match.matched_pmids))
            counts = (str(match.num_ngrams), str(match.num_covered))
            closest = (match.closest_document, str(match.num_shared))
            yield (example.benchmark, example.split, *ids, pmids, *counts, *closest)


def _to_json(result: ContaminationResult, summaries: list[SplitSummary]) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "ngram_size": NGRAM_SIZE,
        "splits": list(result.splits),
        "min_shared_ngrams": result.min_shared_ngrams,
        "mostly_covered_share": MOSTLY_COVERED_SHARE,
        "corpora": [
            {
                "folder": one.folder,
                "pipeline": one.pipeline,
                "documents": one.summary.documents,
                "shards_sha256": one.summary.shards_sha256,
            }
            for one in result.corpora
        ],
        "text_bytes": result.text_bytes,
        "benchmarks": [summary._asdict() for summary in summaries],
        "notes": collect_notes(result),
        "missing": result.benchmark_examples.missing,
        "documents": {
            "matched": len(result.document_matches),
            "excluded": len(result.excluded),
            "excluded_by_pmid": sum(match.has_pmid for match in result.excluded),
        },
    }


def render_page(result: ContaminationResult, summaries: list[SplitSummary]) -> str:
    """Render the page, with the requested splits first."""
    return html_page.render_page(
        __package__,
        "contamination_page.html",
        title="Benchmarks in the pretraining text",
        headline=[(f"{len(result.excluded):,}", "documents to exclude")],
        result=result,
        exclusions=describe_exclusions(result),
        scanned=describe_corpora(result),
        notes=collect_notes(result),
        requested=[summary.to_cells() for summary in summaries if summary.split in result.splits],
        others=[summary.to_cells() for summary in summaries if summary.split not in result.splits],
        matches=sorted(
            result.document_matches,
            key=lambda match: (not match.should_exclude, -match.num_shared, match.document.id),
        )[:_MAX_DOCUMENTS],
        NGRAM_SIZE=NGRAM_SIZE,
        TABLE_HEADER=TABLE_HEADER,
        TABLE_LEGEND=TABLE_LEGEND,
    )
