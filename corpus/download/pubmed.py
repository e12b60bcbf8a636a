"""Where PubMed's files are and how NLM lists them; when NLM changes that, this is the file to mend.

https://ftp.ncbi.nlm.nih.gov/pubmed/ has two folders, ``baseline/`` and ``updatefiles/``.  Each is listed as a
page of rows like these, a data file and its checksum (there are others, and a README.txt)::

    <a href="pubmed26n0001.xml.gz">pubmed26n0001.xml.gz</a>       2026-01-29 14:02   19M
    <a href="pubmed26n0001.xml.gz.md5">pubmed26n0001.xml.gz.md5</a>   2026-01-29 14:02   60

A year's baseline is numbered from 1 and its update files go on where it ends; a new baseline includes all
updates of the year before.  Files are to be loaded in the order of their numbers
(https://pubmed.ncbi.nlm.nih.gov/download/).  ``baseline/README.txt`` says how far the baseline goes: "files
pubmed26n0001.xml through pubmed26n1334.xml".
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .listing import PAGE_BYTES, Chosen, Link, ListingError, links, no_listing, select
from .named import Named, Selection
from .remote import Remote
from .web import Connection, NotFoundError

URL: Final = "https://ftp.ncbi.nlm.nih.gov/pubmed/"
CONNECTIONS: Final = 4
PER_SECOND: Final = 8.0
"""What is asked of NCBI's file server at most, all workers together.  People have measured that it serves 4
connections well and answers 503 to 48, and to more than some 20 requests a second."""
BASELINE: Final = "baseline"
UPDATES: Final = "updatefiles"

_ATTEMPTS: Final = 3
"""How often a page that is no listing is read."""
_NAME = re.compile(r"(pubmed([0-9]{2})n([0-9]{4,6})\.xml\.gz)(\.md5)?")
_README = re.compile(
    r"pubmed([0-9]{2})n[0-9]{4,6}(?:\.xml)?(?:\.gz)?\s{1,9}through\s{1,9}pubmed\1n([0-9]{4,6})(?![0-9])"
)
_SHOWN: Final = 5
"""So many ranges or names are named in a notice; the rest are counted."""


@dataclass(frozen=True, slots=True)
class File:
    """A listed file: the two digits of its year, its number, and whether its ``.md5`` is listed too."""

    year: int
    number: int
    remote: Remote
    sidecar: bool


def parse(page: str, base: str, folder: str) -> list[File]:
    """The files of a listing in NLM's order; whatever else is on the page is passed over.

    Args:
        page: the listing of ``base + folder + "/"``.
        base: URL, or a mirror's; ends with a slash.
        folder: BASELINE or UPDATES.

    Raises:
        ListingError: there is no such file on the page.
    """
    data: dict[str, tuple[int, int, Link]] = {}
    sidecars: dict[str, Link] = {}
    for link in links(page):
        if name := _NAME.fullmatch(link.name):
            if name[4]:
                sidecars.setdefault(name[1], link)
            else:
                data.setdefault(name[1], (int(name[2]), int(name[3]), link))
    if not data:
        raise no_listing(f"{base}{folder}/", page, "PubMed file (pubmedYYnNNNN.xml.gz)", "pubmed.py")
    files = []
    for name_, (year, number, link) in data.items():
        sidecar = sidecars.get(name_)
        remote = Remote(
            url=f"{base}{folder}/{name_}",
            path=f"pubmed/{folder}/{name_}",
            root="PubmedArticleSet",
            md5_beside=True,
            listed="; ".join(filter(None, (link.words, sidecar.words if sidecar else ""))),
            changed=link.changed,
            size=link.size,
        )
        files.append(File(year, number, remote, sidecar is not None))
    return sorted(files, key=_place)


def choose(named: Named, baseline: Sequence[File], updates: Sequence[File], readme: str = "") -> Chosen:
    """The files to fetch for ``pubmed:``, all of one year: the newest baseline's, or the newest updates'.

    Args:
        named: what the user asked for.
        baseline, updates: what is listed, as `parse` gives it; empty if it is not asked for.  A baseline
            given with ``pubmed:updates`` tells where the updates must begin.
        readme: the text of ``baseline/README.txt``, or ''.

    Raises:
        EmptySelectionError: there is nothing of what is selected.
        ListingError: ``since=`` is asked for, and a file has no date in the listing; or all of a baseline is
            asked for that is still being posted.
    """
    year = max((file.year for file in (updates if named.part == "updates" else baseline)), default=0)
    base = [file for file in baseline if file.year == year]
    later = [file for file in updates if file.year == year]
    end = max((file.number for file in base), default=0)
    announced = _announced(readme, year)
    files: list[File] = []
    notices: list[str] = []
    if named.part != "updates":
        files += base
        notices += _other_years(BASELINE, baseline, year)
        notices += _gaps(year, BASELINE, base, 1)
        unfinished = _unfinished(year, baseline, max(end, announced))
        if unfinished and named.selection == Selection():
            raise ListingError(f"{unfinished[0]} Run again when all of it is there, or select what is")
        notices += unfinished
    if named.part != "baseline":
        files += later
        notices += _other_years(UPDATES, updates, year)
        before = max(end, announced) or later[0].number - 1 if later else 0
        notices += _gaps(year, UPDATES, later, before + 1)
    files.sort(key=_place)
    chosen = select(named, [(file.number, file.number, file.remote) for file in files])
    fetched = {remote.path for remote in chosen}
    notices += _without_sidecar(file for file in files if file.remote.path in fetched)
    return Chosen(tuple(chosen), tuple(notices))


def _place(file: File) -> tuple[int, int, str]:
    """The key of NLM's order: by year and number, and by path where two files have the same."""
    return file.year, file.number, file.remote.path


def _announced(readme: str, year: int) -> int:
    """The number of this year's last baseline file as README.txt gives it, or 0."""
    found = _README.search(readme)
    return int(found[2]) if found and int(found[1]) == year else 0


def _unfinished(year: int, baseline: Sequence[File], announced: int) -> list[str]:
    """What to say of a baseline that is not all there: without its end, or beside more files of the last.

    Made into a corpus, it would take the place of all that was known before.
    """
    counts = Counter(file.year for file in baseline)
    end = max((file.number for file in baseline if file.year == year), default=0)
    before = max((count for other, count in counts.items() if other != year), default=0)
    if announced > end:
        why = f"its README.txt says that it goes to {_name(year, announced)}"
    elif before > counts[year]:
        why = f"{before:,} files of another year are still there"
    else:
        return []
    return [f"The baseline is still being posted: the listing ends with {_name(year, end)}, and {why}."]


def _other_years(folder: str, files: Iterable[File], year: int) -> Iterator[str]:
    """A notice for each year but the chosen one."""
    for other, count in sorted(Counter(file.year for file in files).items()):
        if other < year:
            yield (
                f"pubmed/{folder}/ still lists {count:,} file(s) of another year, pubmed{other:02d}. They "
                f"are left out, because a new baseline, here pubmed{year:02d}, includes all of last year's "
                "updates. If it is still being posted, run again when it is complete."
            )
        elif other > year:
            yield (
                f"pubmed/{folder}/ lists {count:,} file(s) of a later year, pubmed{other:02d}. They are left "
                f"out, because updates go with their own baseline, and the newest listed is pubmed{year:02d}."
            )


def _gaps(year: int, folder: str, files: Iterable[File], start: int) -> Iterator[str]:
    """A notice of the numbers that are missing from ``start`` to the files' last, if any are."""
    gaps: list[tuple[int, int]] = []
    for number in (file.number for file in files):
        if number > start:
            gaps.append((start, number - 1))
        start = max(start, number + 1)
    if gaps:
        shown = [
            _name(year, low) if low == high else f"{_name(year, low)} to {_name(year, high)}"
            for low, high in gaps[:_SHOWN]
        ]
        more = f" and {len(gaps) - _SHOWN:,} more gaps" if len(gaps) > _SHOWN else ""
        missing = sum(high - low + 1 for low, high in gaps)
        yield (
            f"The listing of pubmed/{folder}/ has no {', '.join(shown)}{more}: {missing:,} file(s) before "
            f"{_name(year, start - 1)}. What they say of citations will be missing until NLM posts them."
        )


def _without_sidecar(files: Iterable[File]) -> Iterator[str]:
    """A notice of the files whose ``.md5`` is not listed, if there are any."""
    names = [file.remote.name for file in files if not file.sidecar]
    if names:
        more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        yield (
            f"No .md5 is listed beside {', '.join(names[:_SHOWN])}{more}: NLM may be posting them just now, "
            "and what is fetched cannot be checked against a checksum."
        )


def _name(year: int, number: int) -> str:
    return f"pubmed{year:02d}n{number:04d}"


def listed(connection: Connection, base: str, named: Named) -> Chosen:
    """Read the listings that ``named`` is about, and choose.

    Raises:
        ListingError: what the server sends is no listing, three times.
        EmptySelectionError, DownloadError
    """
    baseline = _read(connection, base, BASELINE) if named.part in ("", "baseline") else []
    updates = _read(connection, base, UPDATES) if named.part in ("", "updates") else []
    readme = ""
    if baseline:
        with contextlib.suppress(NotFoundError):
            readme = connection.read(f"{base}{BASELINE}/README.txt", PAGE_BYTES).body.decode(
                "utf-8", "replace"
            )
    return choose(named, baseline, updates, readme)


def _read(connection: Connection, base: str, folder: str) -> list[File]:
    """The files of one folder's listing.  Of updates there may be none, just after a new baseline."""
    for attempt in range(1, _ATTEMPTS + 1):
        page = connection.read(f"{base}{folder}/", PAGE_BYTES).body.decode("utf-8", "replace")
        try:
            return parse(page, base, folder)
        except ListingError:
            if folder == UPDATES and "Parent Directory" in page:
                return []
            if attempt == _ATTEMPTS:
                raise
            time.sleep(attempt)
    raise AssertionError("attempts end with a listing or an error")


def replaced(names: Iterable[str], chosen: Sequence[Remote]) -> list[str]:
    """What to say if a new baseline replaces that of which the mirror has these files' names."""
    now = max((int(name[2]) for remote in chosen if (name := _NAME.fullmatch(remote.name))), default=0)
    old = [name for name in map(_NAME.fullmatch, names) if name and not name[4] and int(name[2]) < now]
    if not old:
        return []
    before = sorted({int(name[2]) for name in old})
    years = ", ".join(f"pubmed{year:02d}" for year in before)
    return [
        f"The new baseline pubmed{now:02d} replaces {years}: all of it is fetched and processed anew. The "
        f"mirror's {len(old):,} files of {years} are no longer used: delete them before its folder is an "
        "--input."
    ]


def unlisted(names: Iterable[str], chosen: Sequence[Remote], folder: str) -> list[str]:
    """Of the names in the mirror's folder, the year's files that the listing does not have (any more).

    Within a year NLM adds files and replaces them, it takes none away: so the listing is the one that
    is wrong, and without them what they say would be lost.  ``chosen`` is all of the listing.
    """
    listed = {remote.path for remote in chosen}
    years = {name[2] for remote in chosen if (name := _NAME.fullmatch(remote.name))}
    found = [name for name in map(_NAME.fullmatch, names) if name and not name[4]]
    return sorted(
        name[1] for name in found if name[2] in years and f"pubmed/{folder}/{name[1]}" not in listed
    )
