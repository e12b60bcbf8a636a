"""Files of PubMed: URL, listings and selection.  Update this file when NLM's server changes.

https://ftp.ncbi.nlm.nih.gov/pubmed/ has two folders, ``baseline/`` and ``updatefiles/``.  A listing
has rows like these, a data file and its checksum, among others and a README.txt::

    <a href="pubmed26n0001.xml.gz">pubmed26n0001.xml.gz</a>       2026-01-29 14:02   19M
    <a href="pubmed26n0001.xml.gz.md5">pubmed26n0001.xml.gz.md5</a>   2026-01-29 14:02   60

The baseline of a year is numbered from 1, and its update files continue the numbers; a new baseline
includes all updates of the year before.  Files must be applied in the order of their numbers
(https://pubmed.ncbi.nlm.nih.gov/download/).  ``baseline/README.txt`` names the last file of the baseline:
"files pubmed26n0001.xml through pubmed26n1334.xml".  A baseline replaces the mirror's files of another year
only if it is complete, and announced there or continued by updates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from bioshards.corpus.download.http_client import Connection, DownloadError
from bioshards.corpus.download.listing import (
    MAX_PAGE_BYTES,
    Link,
    ListingError,
    RemoteFile,
    SelectedFiles,
    apply_spec,
    make_listing_error,
    parse_links,
    read_listing,
)
from bioshards.corpus.download.sources import FileSelection, SourceSpec
from bioshards.corpus.errors import shorten_list

BASELINE: Final = "baseline"
UPDATES: Final = "updatefiles"

_FILE_NAME = re.compile(r"(pubmed([0-9]{2})n([0-9]{4,6})\.xml\.gz)(\.md5)?")
_README_RANGE = re.compile(
    r"pubmed([0-9]{2})n[0-9]{4,6}(?:\.xml)?(?:\.gz)?\s{1,9}through\s{1,9}pubmed\1n([0-9]{4,6})(?![0-9])"
)


class Announcement(NamedTuple):
    """Year (two digits) and number of the last file of the baseline that README.txt announces."""

    year: int
    last_number: int


def parse_listing(page: str, base_url: str, folder: str) -> list[RemoteFile]:
    """Parse a listing: files in NLM's order, other links ignored.

    Args:
        page: listing of ``base_url + folder + "/"``.
        base_url: URL of PubMed or of another server, with a trailing slash.
        folder: BASELINE or UPDATES.

    Raises:
        ListingError: the page lists no file of PubMed.
    """
    data_links: dict[str, tuple[int, int, Link]] = {}
    md5_links: dict[str, Link] = {}
    for link in parse_links(page):
        if match := _FILE_NAME.fullmatch(link.name):
            if match[4]:
                md5_links.setdefault(match[1], link)
            else:
                data_links.setdefault(match[1], (int(match[2]), int(match[3]), link))
    if not data_links:
        raise make_listing_error(
            f"{base_url}{folder}/", page, "PubMed file (pubmedYYnNNNN.xml.gz)", "pubmed.py"
        )
    files = []
    for file_name, (year, number, link) in data_links.items():
        md5_link = md5_links.get(file_name)
        listing_texts = (link.listing_text, md5_link.listing_text if md5_link else "")
        file = RemoteFile(
            url=f"{base_url}{folder}/{file_name}",
            path=f"pubmed/{folder}/{file_name}",
            root_name="PubmedArticleSet",
            has_md5_file=True,
            listing_text="; ".join(filter(None, listing_texts)),
            modified_at=link.modified_at,
            size=link.size,
            is_md5_listed=md5_link is not None,
            first=number,
            last=number,
            year=year,
        )
        files.append(file)
    return sorted(files, key=_sort_key)


def select_files(
    spec: SourceSpec,
    baseline: Sequence[RemoteFile],
    updates: Sequence[RemoteFile],
    readme: str = "",
    mirrored_paths: Collection[str] = (),
    allow_removals: bool = False,
) -> SelectedFiles:
    """Select the files to fetch for ``pubmed:``, all of one year: that of the newest baseline or updates.

    Args:
        spec: parsed ``--input``.
        baseline: listed files of the baseline; empty if none is requested.  With ``pubmed:updates`` it
            gives the first number of the updates.
        updates: listed update files; empty if none is requested.
        readme: text of ``baseline/README.txt``, or ''.
        mirrored_paths: paths of the files in the mirror.
        allow_removals: accept a baseline that may be incomplete, with a notice.

    Raises:
        EmptySelectionError: no file is selected.
        ListingError: ``since=`` is given, and a file has no date in the listing; or a whole folder is
            requested, and its files may be a part of those that they would replace.
    """
    year = max((file.year for file in (updates if spec.subset == "updates" else baseline)), default=0)
    baseline_files = [file for file in baseline if file.year == year]
    update_files = [file for file in updates if file.year == year]
    last_number = max((file.first for file in baseline_files), default=0)
    match = _README_RANGE.search(readme)
    announcement = Announcement(int(match[1]), int(match[2])) if match else None
    announced = announcement.last_number if announcement and announcement.year == year else 0
    is_confirmed = bool(announced or (update_files and update_files[0].first == last_number + 1))
    is_whole = spec.selection == FileSelection()
    folders = [
        folder
        for folder, subset in ((BASELINE, "baseline"), (UPDATES, "updates"))
        if spec.subset in ("", subset)
    ]
    mirrored_years = {folder: _count_years(folder, mirrored_paths) for folder in folders}
    unfinished_notices = _check_replacement(year, is_confirmed, mirrored_years)
    files: list[RemoteFile] = []
    notices: list[str] = []
    if spec.subset != "updates":
        files += baseline_files
        notices += _check_other_years(BASELINE, baseline, year)
        notices += _check_gaps(year, BASELINE, baseline_files, 1)
        unfinished_notices += _check_unfinished(year, baseline, announcement, is_confirmed)
        notices += _check_replaced(year, mirrored_years)
    if spec.subset != "baseline":
        files += update_files
        notices += _check_other_years(UPDATES, updates, year)
        previous_last = max(last_number, announced) or update_files[0].first - 1 if update_files else 0
        notices += _check_gaps(year, UPDATES, update_files, previous_last + 1)
    if unfinished_notices and is_whole and not allow_removals:
        raise ListingError(
            f"{unfinished_notices[0]} Rerun the command when it is complete, or select listed files; "
            "--allow-removals takes what is listed for all"
        )
    notices += unfinished_notices
    files.sort(key=_sort_key)
    selected = apply_spec(spec, files)
    notices += _check_md5_files(selected)
    unlisted = _find_unlisted(year, files, folders, mirrored_paths) if is_whole else ()
    return SelectedFiles(tuple(selected), tuple(notices), tuple(unlisted))


def _sort_key(file: RemoteFile) -> tuple[int, int, str]:
    """Return the sort key of NLM's order: year, number, path."""
    return file.year, file.first, file.path


def _count_years(folder: str, mirrored_paths: Iterable[str]) -> Counter[int]:
    """Count the files of each year in a folder of the mirror."""
    prefix = f"pubmed/{folder}/"
    names = (path.removeprefix(prefix) for path in mirrored_paths if path.startswith(prefix))
    return Counter(int(match[2]) for match in map(_FILE_NAME.fullmatch, names) if match and not match[4])


def _check_replacement(year: int, is_confirmed: bool, mirrored_years: dict[str, Counter[int]]) -> list[str]:
    """Return a notice if files of another year would replace those of the mirror and may be a part of them.

    Args:
        year: year of the listed files.
        is_confirmed: README.txt announces the baseline of this year, or updates continue its numbers.
        mirrored_years: number of files in the mirror, by folder and year.
    """
    folder = next((name for name, counts in mirrored_years.items() if counts), None)
    if folder is None:
        return []
    counts = mirrored_years[folder]
    newest_year, largest_year = max(counts), max(counts, key=lambda other: counts[other])
    if newest_year > year:
        return [
            f"The listing has files of pubmed{year:02d}, and the mirror has {counts[newest_year]:,} of "
            f"pubmed{newest_year:02d}: it is out of date."
        ]
    # Updates begin anew each year: their number says nothing.
    replaced_year = largest_year if folder == BASELINE else newest_year
    if replaced_year < year and not is_confirmed:
        return [
            f"The files of pubmed{year:02d} may be a part of what is still being posted: baseline/README.txt "
            "does not announce the baseline of this year. They would replace the "
            f"{counts[replaced_year]:,} files of pubmed{replaced_year:02d} that the mirror has in "
            f"pubmed/{folder}/."
        ]
    return []


def _check_unfinished(
    year: int, baseline: Sequence[RemoteFile], announcement: Announcement | None, is_confirmed: bool
) -> list[str]:
    """Return a notice if the baseline is incomplete: not as announced, or shorter than that of another year.

    An incomplete baseline would replace a complete corpus.
    """
    counts = Counter(file.year for file in baseline)
    last_number = max((file.first for file in baseline if file.year == year), default=0)
    largest_other = max((count for other_year, count in counts.items() if other_year != year), default=0)
    if announcement and announcement.year == year and announcement.last_number > last_number:
        reason = f"its README.txt says that it goes to {_format_stem(*announcement)}"
    elif announcement and announcement.year < year and not is_confirmed:
        reason = f"its README.txt still announces pubmed{announcement.year:02d}"
    elif largest_other > counts[year]:
        reason = f"{largest_other:,} files of another year are still there"
    else:
        return []
    return [
        f"The baseline is still being posted: the listing ends with {_format_stem(year, last_number)}, and "
        f"{reason}."
    ]


def _check_other_years(folder: str, files: Iterable[RemoteFile], year: int) -> Iterator[str]:
    """Yield a notice for each year but the selected one."""
    for other_year, count in sorted(Counter(file.year for file in files).items()):
        if other_year < year:
            yield (
                f"pubmed/{folder}/ still lists {count:,} file(s) of another year, pubmed{other_year:02d}. "
                "They "
                f"are left out, because a new baseline, here pubmed{year:02d}, includes all of last year's "
                "updates. If it is still being posted, run again when it is complete."
            )
        elif other_year > year:
            yield (
                f"pubmed/{folder}/ lists {count:,} file(s) of a later year, pubmed{other_year:02d}. They "
                "are left "
                f"out, because updates go with their own baseline, and the newest listed is pubmed{year:02d}."
            )


def _check_gaps(year: int, folder: str, files: Iterable[RemoteFile], start: int) -> Iterator[str]:
    """Yield a notice if numbers are missing between ``start`` and the last file."""
    gaps: list[tuple[int, int]] = []
    for number in (file.first for file in files):
        if number > start:
            gaps.append((start, number - 1))
        start = max(start, number + 1)
    if gaps:
        gap_names = [
            _format_stem(year, low)
            if low == high
            else f"{_format_stem(year, low)} to {_format_stem(year, high)}"
            for low, high in gaps
        ]
        missing = sum(high - low + 1 for low, high in gaps)
        yield (
            f"The listing of pubmed/{folder}/ has no {shorten_list(gap_names)}: {missing:,} file(s) before "
            f"{_format_stem(year, start - 1)}. Their citations will be missing until NLM posts "
            "them."
        )


def _check_md5_files(files: Iterable[RemoteFile]) -> Iterator[str]:
    """Yield a notice if the ``.md5`` of a file is not listed."""
    names = [file.name for file in files if not file.is_md5_listed]
    if names:
        yield (
            f"No .md5 is listed for {shorten_list(names)}: NLM may be posting them just now. "
            "These files are fetched without a check of their MD5."
        )


def _format_stem(year: int, number: int) -> str:
    return f"pubmed{year:02d}n{number:04d}"


def list_files(
    connection: Connection,
    base_url: str,
    spec: SourceSpec,
    mirrored_paths: Collection[str],
    allow_removals: bool,
) -> SelectedFiles:
    """Read the listings and select files.

    Raises:
        ListingError: a page is not a listing, or a listing is incomplete.
        EmptySelectionError: no file is selected.
        DownloadError: a listing cannot be read.
    """
    baseline = _read_listing(connection, base_url, BASELINE) if spec.subset in ("", "baseline") else []
    updates = _read_listing(connection, base_url, UPDATES) if spec.subset in ("", "updates") else []
    readme, readme_notices = "", list[str]()
    newest_update = max((file.year for file in updates), default=0)
    if baseline or min(_count_years(UPDATES, mirrored_paths), default=newest_update) < newest_update:
        readme, readme_notices = _read_readme(connection, f"{base_url}{BASELINE}/README.txt")
    selected = select_files(spec, baseline, updates, readme, mirrored_paths, allow_removals)
    return replace(selected, notices=(*readme_notices, *selected.notices))


def _read_readme(connection: Connection, url: str) -> tuple[str, list[str]]:
    """Read README.txt; '' and a notice if it cannot be read."""
    try:
        return connection.read(url, MAX_PAGE_BYTES).body.decode("utf-8", "replace"), []
    except DownloadError as error:
        return "", [
            f"{error}. Whether the baseline is complete is judged by the listings alone, and it replaces no "
            "files of another year in the mirror."
        ]


def _read_listing(connection: Connection, base_url: str, folder: str) -> list[RemoteFile]:
    """Read the listing of a folder.  Just after a new baseline there may be no updates."""

    def parse(page: str) -> list[RemoteFile]:
        try:
            return parse_listing(page, base_url, folder)
        except ListingError:
            if folder == UPDATES and "Parent Directory" in page:
                return []
            raise

    return read_listing(connection, f"{base_url}{folder}/", parse)


def _check_replaced(year: int, mirrored_years: dict[str, Counter[int]]) -> list[str]:
    """Return a notice if a new baseline replaces files in the mirror."""
    counts = mirrored_years.get(BASELINE, Counter[int]())
    old_years = sorted(other for other in counts if other < year)
    if not old_years:
        return []
    years = ", ".join(f"pubmed{other:02d}" for other in old_years)
    return [
        f"The new baseline pubmed{year:02d} replaces {years}: all of it is fetched and processed. "
        f"The mirror's {sum(counts[other] for other in old_years):,} files of {years} are no longer used: "
        "delete them before its folder is an --input."
    ]


def _find_unlisted(
    year: int, listed: Iterable[RemoteFile], folders: Iterable[str], mirrored_paths: Iterable[str]
) -> list[str]:
    """Return the files of this year in the mirror that the listing lacks.

    Within a year NLM adds and replaces files and removes none, so that such a listing is incomplete.
    """
    listed_paths = {file.path for file in listed}
    patterns = [re.compile(rf"pubmed/{folder}/pubmed{year:02d}n[0-9]{{4,6}}\.xml\.gz") for folder in folders]
    return sorted(
        path
        for path in mirrored_paths
        if path not in listed_paths and any(pattern.fullmatch(path) for pattern in patterns)
    )
