"""Output files of a contamination check: summary, HTML page, JSON, lists of examples and documents.

Same benchmarks and corpora, same bytes, with any number of processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.contamination import match_page
from bioshards.evaluate.contamination import split_summary as words
from bioshards.evaluate.contamination.matches import MOSTLY_COVERED_SHARE, ContaminationResult
from bioshards.evaluate.contamination.ngrams import NGRAM_SIZE
from bioshards.evaluate.contamination.split_summary import TABLE_HEADER, SplitSummary

EXCLUDE_IDS_FILE: Final = "exclude-ids.txt"
_FORMAT: Final = 2


def write_report(storage: LocalStorage, output: str, result: ContaminationResult) -> None:
    """Write all files atomically, report.json last."""
    summaries = words.summarise_splits(result.example_matches)
    _write_lines(storage, f"{output}/{EXCLUDE_IDS_FILE}", _format_exclusions(result))
    _write_lines(storage, f"{output}/documents.tsv", _format_documents(result))
    _write_lines(storage, f"{output}/examples.tsv", _format_examples(result))
    _write_lines(storage, f"{output}/report.html", [match_page.render_page(result, summaries)])
    storage.write_json(f"{output}/report.json", _to_json(result, summaries))


def format_summary(result: ContaminationResult, output: str) -> str:
    """Format the table of the requested splits and the exclusions."""
    rows = [
        TABLE_HEADER,
        *(
            split_summary.to_cells()
            for split_summary in words.summarise_splits(result.example_matches)
            if split_summary.split in result.splits
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append(
            "  ".join(cell.ljust(width) if index < 2 else cell.rjust(width) for index, (cell, width) in cells)
        )
    lines += ["", *words.collect_notes(result)]
    lines += [f"scanned {words.describe_corpora(result)}", words.describe_exclusions(result)]
    lines += [f"exclude them: beam run ... --exclude-ids {output}/{EXCLUDE_IDS_FILE}"]
    lines += [f"report: {output}/report.html"]
    return "\n".join(lines)


def _write_lines(storage: LocalStorage, path: str, lines: Iterable[str]) -> None:
    with storage.write(path) as file:
        for line in lines:
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")


def _format_exclusions(result: ContaminationResult) -> Iterator[str]:
    yield f"# {words.describe_exclusions(result)}"
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
        "benchmarks": [asdict(split_summary) for split_summary in summaries],
        "notes": words.collect_notes(result),
        "missing": result.benchmark_examples.missing,
        "documents": {
            "matched": len(result.document_matches),
            "excluded": len(excluded),
            "excluded_by_pmid": sum(1 for match in excluded if match.has_pmid),
        },
    }
