"""What a person is told of a run's input: what stops it from being published, and what is worth a look."""

from __future__ import annotations

import collections
import re
from typing import Final

from .excluded import Excluded
from .manifest import DocumentsManifest
from .staging import Staged
from .workspace import Workspace

BASELINE_RECORDS: Final = 30_000
"""Records of every file of an annual baseline but its last (the baselines of 2024, 2025 and 2026)."""

_BASELINE = re.compile(r"/baseline/[^/]*$")
"""A file that lies in a folder of this name, as at NLM."""


def warnings(pipeline: str, staged: list[Staged], copies: list[tuple[str, str]]) -> list[str]:
    """What is worth a look but stops nothing; ``copies`` are of (path, path kept)."""
    found = [f"{copy} is the same file as {kept}: it is read once" for copy, kept in copies]
    if pipeline == "pubmed_to_shards":
        return found + _order(staged) + _short_baseline(staged)
    missing = sum(source.not_fetched for source in staged)
    if missing:
        found.append(
            f"{missing:,} articles that are selected could not be fetched; run the same command again to try "
            "once more (MIRROR/pmc/reports/ has them)"
        )
    return found


def of_list(excluded: Excluded, found: int) -> list[str]:
    """What is worth a look in a list of ids to leave out, of which ``found`` name a document."""
    if not excluded.ids:
        return ["--exclude-ids lists no id, so nothing is left out for it"]
    if not found:
        return [f"none of the {excluded.ids:,} ids of --exclude-ids names a document that would be kept"]
    return []


def _order(staged: list[Staged]) -> list[str]:
    """Files of which the names do not say when they are to be applied."""
    found = []
    stray = [source.source.name for source in staged if not source.source.ordered]
    if stray:
        listed = ", ".join(stray[:5]) + (" ..." if len(stray) > 5 else "")
        found.append(
            f"{len(stray)} files have no year and number in their names (pubmed26n0001.xml.gz has); they "
            f"are applied after all that have, in the order of their names: {listed}"
        )
    names = collections.Counter(source.source.name for source in staged)
    found += [
        f"{count} different files are called {name}; they are applied in the order of their paths"
        for name, count in sorted(names.items())
        if count > 1
    ]
    return found


def _short_baseline(staged: list[Staged]) -> list[str]:
    """Baseline files without the number of records that all but the last one have."""
    baseline = [source for source in staged if not source.bad and _BASELINE.search(source.source.path)]
    last = {source.source.year: source.source.number for source in baseline}  # they come in order
    short = [
        f"{source.source.name} ({source.records:,})"
        for source in baseline
        if source.records != BASELINE_RECORDS and source.source.number != last[source.source.year]
    ]
    if not short:
        return []
    more = " ..." if len(short) > 5 else ""
    return [
        f"{len(short)} baseline files do not have {BASELINE_RECORDS:,} records, as all but the last should: "
        f"{', '.join(short[:5])}{more}; they may be incomplete"
    ]


def problem_of(
    work: Workspace, staged: list[Staged], manifest: DocumentsManifest, max_rejected: float
) -> str | None:
    """Why this output cannot be published; None where it can."""
    counts, funnel = manifest.counts, manifest.funnel
    missing = [source for source in staged if source.bad and not source.source.stamp]
    if missing:
        return (
            f"{len(missing)} of {len(staged)} files could not be fetched ({_named(missing)}). All others are "
            "processed. Run the same command again to fetch what is missing, or select files without it"
        )
    not_fetched = sum(source.not_fetched for source in staged)
    if not_fetched > max_rejected * (counts.records + not_fetched):
        return (
            f"{not_fetched:,} articles of {counts.records + not_fetched:,} could not be fetched: more "
            f"than --max-rejected {max_rejected:g} allows. All others are processed. Run the same command "
            "again"
        )
    bad = [source for source in staged if source.bad]
    mend = (
        f"--max-rejected {max_rejected:g} allows. See {work.output}/rejected/. Mend or replace the input "
        "and run the same command again, or allow a larger share"
    )
    if len(bad) > max_rejected * len(staged):
        return f"{len(bad)} of {len(staged)} files cannot be used ({_named(bad)}), more than {mend}"
    if counts.rejected > max_rejected * counts.records:
        reasons: collections.Counter[str] = collections.Counter()
        for source in staged:
            reasons.update(source.rejected)
        listed = ", ".join(f"{reason}: {count}" for reason, count in sorted(reasons.items()))
        return f"{counts.rejected} of {counts.records} records were rejected ({listed}), more than {mend}"
    if not counts.documents:
        listed = ", ".join(f"{what}: {count}" for what, count in funnel.items())
        return f"no document was kept ({listed}). Look at --input and at the options that drop records"
    return None


def _named(bad: list[Staged]) -> str:
    """The first bad files, each with what is wrong with it."""
    named = "; ".join(f"{source.source.path}: {source.bad[1]}" for source in bad[:5] if source.bad)
    return named + (f" (and {len(bad) - 5} more)" if len(bad) > 5 else "")
