"""What was found, for people and programs: a summary, a page, JSON, and lists of examples and documents.

The same benchmarks and corpora give the same bytes, however many processes have looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from bioshards.corpus.files import LocalFiles

from . import accounts as words
from . import page
from .accounts import HEAD, Account
from .judging import MOSTLY, Contamination
from .ngrams import WORDS

EXCLUDE: Final = "exclude-ids.txt"
_FORMAT: Final = 1


def write(files: LocalFiles, out: str, found: Contamination) -> None:
    """Write all files, each of which appears whole; report.json last."""
    accounts = words.accounts(found.judged)
    _write_lines(files, f"{out}/{EXCLUDE}", _exclude(found))
    _write_lines(files, f"{out}/documents.tsv", _documents(found))
    _write_lines(files, f"{out}/examples.tsv", _examples(found))
    _write_lines(files, f"{out}/report.html", [page.of(found, accounts)])
    files.write_json(f"{out}/report.json", _plain(found, accounts))


def summary(found: Contamination, out: str) -> str:
    """What to tell of it: the parts asked for, and what to leave out."""
    rows = [HEAD, *(one.cells() for one in words.accounts(found.judged) if one.part in found.parts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append("  ".join(cell.ljust(n) if at < 2 else cell.rjust(n) for at, (cell, n) in cells))
    lines += ["", *words.notes(found)]
    lines += [f"looked at {words.corpus(found)}", words.to_exclude(found)]
    lines += [f"leave them out: beam run ... --exclude-ids {out}/{EXCLUDE}"]
    lines += [f"report: {out}/report.html"]
    return "\n".join(lines)


def _write_lines(files: LocalFiles, path: str, lines: Iterable[str]) -> None:
    with files.write(path) as file:
        for line in lines:
            file.write(line.encode("utf-8", "backslashreplace") + b"\n")


def _exclude(found: Contamination) -> Iterator[str]:
    yield f"# {words.to_exclude(found)}"
    yield from (holder.document.id for holder in found.holders if holder.excluded)


def _documents(found: Contamination) -> Iterator[str]:
    yield f"id\tpmid\tpmcid\tby PMID\tshared {WORDS}-grams\t{MOSTLY:.0%} of an example\tleave out\tsets"
    for one in found.holders:
        facts = (_yes(one.by_pmid), str(one.shared), _yes(one.mostly), _yes(one.excluded))
        ids = (one.document.id, str(one.document.pmid or ""), one.document.pmcid or "")
        yield "\t".join((*ids, *facts, " ".join(one.sets)))


def _examples(found: Contamination) -> Iterator[str]:
    """The examples of the parts asked for that are in the corpus."""
    counts = (f"{WORDS}-grams", "in corpus", "closest document", f"shared {WORDS}-grams")
    yield "\t".join(("set", "part", "id", "document", "PMIDs in corpus", *counts))
    for one in found.judged:
        example = one.example
        if example.part in found.parts and (one.pmids or one.covered):
            ids = (" ".join(text.split()) for text in (example.id, example.document))
            pmids = " ".join(map(str, one.pmids))
            counts = (str(one.ngrams), str(one.covered), one.document, str(one.shared))
            yield "\t".join((example.set, example.part, *ids, pmids, *counts))


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _plain(found: Contamination, accounts: list[Account]) -> dict[str, Any]:
    out = [holder for holder in found.holders if holder.excluded]
    return {
        "format": _FORMAT,
        "words": WORDS,
        "parts": list(found.parts),
        "least": found.least,
        "mostly": MOSTLY,
        "corpora": [
            {
                "folder": corpus.folder,
                "pipeline": corpus.pipeline,
                "documents": corpus.documents,
                "shards_sha256": corpus.sha256,
            }
            for corpus in found.corpora
        ],
        "text_bytes": found.bytes,
        "sets": [asdict(account) for account in accounts],
        "notes": words.notes(found),
        "absent": found.benchmarks.absent,
        "documents": {
            "sharing": len(found.holders),
            "excluded": len(out),
            "excluded_by_pmid": sum(1 for holder in out if holder.by_pmid),
        },
    }
