"""Report of a contamination check: counts by split, HTML page, JSON, lists of examples and documents.

Same benchmarks and corpora, same bytes, with any number of processes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

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


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """Counts of one split of a benchmark; the fields are keys of report.json.

    Attributes:
        examples: all examples.
        matched: examples in the corpus by PMID or by 13-grams.
        by_pmid: examples in the corpus by PMID.
        pmids: distinct PMIDs of the examples' documents.
        pmids_matched: those of them in the corpus.
        by_ngrams: examples with a 13-gram in the corpus.
        mostly_covered: examples with most of their 13-grams in the corpus.
        mean_coverage: mean fraction of an example's 13-grams in the corpus, over examples that are long
            enough.
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
        examples, has_ngrams = f"{self.examples:,}", self.examples > self.too_short
        by_pmid = [f"{self.by_pmid:,}", f"{self.pmids_matched:,} of {self.pmids:,}"]
        by_ngrams = [f"{self.by_ngrams:,}", f"{self.mostly_covered:,}", f"{100 * self.mean_coverage:.1f} %"]
        return [
            self.benchmark,
            self.split,
            examples,
            f"{self.matched:,}",
            *(by_pmid if self.pmids else "--"),
            *(by_ngrams if has_ngrams else "---"),
            f"{self.too_short:,}",
        ]


def summarise_splits(example_matches: Sequence[ExampleMatch]) -> list[SplitSummary]:
    """Summarise each split of each benchmark, in order."""
    groups = itertools.groupby(
        example_matches, key=lambda match: (match.example.benchmark, match.example.split)
    )
    return [_summarise_split(*key, list(group)) for key, group in groups]


def _summarise_split(benchmark: str, split: Split, example_matches: list[ExampleMatch]) -> SplitSummary:
    coverages = [match.coverage for match in example_matches if match.num_ngrams]
    return SplitSummary(
        benchmark,
        split,
        examples=len(example_matches),
        matched=sum(1 for match in example_matches if match.matched_pmids or match.num_covered),
        by_pmid=sum(1 for match in example_matches if match.matched_pmids),
        pmids=len({pmid for match in example_matches for pmid in match.example.pmids}),
        pmids_matched=len({pmid for match in example_matches for pmid in match.matched_pmids}),
        by_ngrams=sum(1 for match in example_matches if match.num_covered),
        mostly_covered=sum(1 for match in example_matches if match.is_mostly_covered),
        mean_coverage=sum(coverages) / max(1, len(coverages)),
        too_short=len(example_matches) - len(coverages),
    )


def describe_corpora(result: ContaminationResult) -> str:
    """Describe the size of the scanned corpora."""
    num_documents = sum(corpus.documents for corpus in result.corpora)
    return f"{num_documents:,} documents, {result.text_bytes / 1e6:,.1f} MB of text"


def describe_exclusions(result: ContaminationResult) -> str:
    """Describe the excluded documents by reason."""
    excluded = [match for match in result.document_matches if match.should_exclude]
    num_by_pmid = sum(1 for match in excluded if match.has_pmid)
    num_mostly_covered = sum(1 for match in excluded if match.has_most_of_example and not match.has_pmid)
    num_others, num_kept = (
        len(excluded) - num_by_pmid - num_mostly_covered,
        len(result.document_matches) - len(excluded),
    )
    return (
        f"{len(excluded):,} documents to exclude for {', '.join(result.splits)}: {num_by_pmid:,} have an "
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
    _write_lines(storage, f"{output}/{EXCLUDE_IDS_FILE}", _format_exclusions(result))
    _write_lines(storage, f"{output}/documents.tsv", _format_documents(result))
    _write_lines(storage, f"{output}/examples.tsv", _format_examples(result))
    _write_lines(storage, f"{output}/report.html", [render_page(result, summaries)])
    storage.write_json(f"{output}/report.json", _to_json(result, summaries))


def format_summary(result: ContaminationResult, output: str) -> str:
    """Format the table of the requested splits and the exclusions."""
    rows = [
        TABLE_HEADER,
        *(
            summary.to_cells()
            for summary in summarise_splits(result.example_matches)
            if summary.split in result.splits
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append(
            "  ".join(cell.ljust(width) if index < 2 else cell.rjust(width) for index, (cell, width) in cells)
        )
    lines += ["", *collect_notes(result)]
    lines += [f"scanned {describe_corpora(result)}", describe_exclusions(result)]
    lines += [f"exclude them: beam run ... --exclude-ids {output}/{EXCLUDE_IDS_FILE}"]
    lines += [f"report: {output}/report.html"]
    return "\n".join(lines)


def _write_lines(storage: LocalStorage, path: str, lines: Iterable[str]) -> None:
    with storage.write(path) as file:
        for line in lines:
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")


def _format_exclusions(result: ContaminationResult) -> Iterator[str]:
    yield f"# {describe_exclusions(result)}"
    yield from (match.document.id for match in result.document_matches if match.should_exclude)


def _format_documents(result: ContaminationResult) -> Iterator[str]:
    yield (
        f"id\tpmid\tpmcid\tby PMID\tshared {NGRAM_SIZE}-grams\t{MOSTLY_COVERED_SHARE:.0%} of an "
        "example\tleave out\tbenchmarks"
    )
    for match in result.document_matches:
        flags = (
            _yes_or_no(match.has_pmid),
            str(match.num_shared),
            _yes_or_no(match.has_most_of_example),
            _yes_or_no(match.should_exclude),
        )
        ids = (match.document.id, str(match.document.pmid or ""), match.document.pmcid or "")
        yield "\t".join((*ids, *flags, " ".join(match.benchmarks)))


def _format_examples(result: ContaminationResult) -> Iterator[str]:
    """Yield the rows of examples.tsv: matched examples of the requested splits."""
    columns = (f"{NGRAM_SIZE}-grams", "in corpus", "closest document", f"shared {NGRAM_SIZE}-grams")
    yield "\t".join(("benchmark", "split", "id", "document", "PMIDs in corpus", *columns))
    for match in result.example_matches:
        example = match.example
        if example.split in result.splits and (match.matched_pmids or match.num_covered):
            ids = (" ".join(text.split()) for text in (example.id, example.document_id))
            pmids = " ".join(map(str, match.matched_pmids))
            columns = (
                str(match.num_ngrams),
                str(match.num_covered),
                match.closest_document,
                str(match.num_shared),
            )
            yield "\t".join((example.benchmark, example.split, *ids, pmids, *columns))


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _to_json(result: ContaminationResult, summaries: list[SplitSummary]) -> dict[str, Any]:
    excluded = [match for match in result.document_matches if match.should_exclude]
    return {
        "format": _FORMAT,
        "ngram_size": NGRAM_SIZE,
        "splits": list(result.splits),
        "min_shared_ngrams": result.min_shared_ngrams,
        "mostly_covered_share": MOSTLY_COVERED_SHARE,
        "corpora": [
            {
                "folder": corpus.folder,
                "pipeline": corpus.pipeline,
                "documents": corpus.documents,
                "shards_sha256": corpus.sha256,
            }
            for corpus in result.corpora
        ],
        "text_bytes": result.text_bytes,
        "benchmarks": [asdict(summary) for summary in summaries],
        "notes": collect_notes(result),
        "missing": result.benchmark_examples.missing,
        "documents": {
            "matched": len(result.document_matches),
            "excluded": len(excluded),
            "excluded_by_pmid": sum(1 for match in excluded if match.has_pmid),
        },
    }


def render_page(result: ContaminationResult, summaries: list[SplitSummary]) -> str:
    """Render the page, with the requested splits first."""
    return html_page.render_page(
        __package__,
        "contamination_page.html",
        title="Benchmarks in the pretraining text",
        headline=[
            (f"{sum(match.should_exclude for match in result.document_matches):,}", "documents to exclude"),
        ],
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
