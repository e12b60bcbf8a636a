"""What the ``--input`` of ``pubmed_to_shards`` names: files that are here, and files to be fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bioshards.corpus import sources
from bioshards.corpus.download import pubmed
from bioshards.corpus.download.mirror import Held, Mirror
from bioshards.corpus.download.named import Named, Selection, named
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.sources import Source

from .bucket import Bucket
from .fetching import Fetching, look, mirror_folder
from .options import UsageError


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of a run.

    Attributes:
        here: those that can be read as they are, in order; with those that the mirror holds.
        wanted: those to be fetched first, and ``fetching``: how.
        notices: what a person should know of the listings.
        listed: when the listings were read, UTC; '' where there are none.
        rate: bytes a second at which what the mirror holds came over one connection; 0 if not known.
        bucket: PMC's articles to be fetched first; None where none are asked for.
    """

    here: list[Source]
    wanted: list[Remote] = field(default_factory=list)
    fetching: Fetching | None = None
    notices: list[str] = field(default_factory=list)
    listed: str = ""
    rate: float = 0
    bucket: Bucket | None = None

    @property
    def count(self) -> int:
        return len(self.here) + len(self.wanted) + (len(self.bucket.ranges) if self.bucket else 0)


def names_and_paths(given: Sequence[str], *sources: str) -> tuple[list[Named], list[str]]:
    """The inputs apart: those that name one of these sources, and paths.

    Raises:
        UsageError: a name of another source than this pipeline reads.
        SourceSpecError: a name that cannot be read.
    """
    by_name, paths = [], []
    for text in given:
        name = named(text)
        if name is None:
            paths.append(text)
        elif name.source in sources:
            by_name.append(name)
        else:
            known = ": and ".join(sources)
            raise UsageError(f"--input {text} is not what this pipeline reads, which is {known}: and files")
    return by_name, paths


def find(files: LocalFiles, options: Any, output: str, given: Sequence[str], local: bool) -> Inputs:
    """Find what the inputs of ``pubmed_to_shards`` name: look at folders, listings and the mirror.

    Raises:
        InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError: with a message
            for the person.
    """
    by_name, paths = names_and_paths(given, "pubmed")
    here = sources.discover(files, paths) if paths else []
    if not by_name:
        return Inputs(here)
    mirror = Mirror(files, mirror_folder(options.mirror, output))
    listed = look(mirror, pubmed, options.pubmed_url, by_name, options, local)
    arriving = {mirror.path(remote) for remote in listed.wanted}
    here = [source for source in here if source.path not in arriving]
    here += [sources.source(there.found, there.retrieved) for there in listed.held.values()]
    notices = list(listed.notices)
    whole = {name.part for name in by_name if name.selection == Selection()}
    parts = {pubmed.BASELINE: {"", "baseline"}, pubmed.UPDATES: {"", "updates"}}
    kept, said = _unlisted(mirror, listed.chosen, [part for part, names in parts.items() if names & whole])
    here, notices = here + kept, notices + said
    notices += pubmed.replaced(files.names(f"{mirror.folder}/pubmed/{pubmed.BASELINE}"), listed.chosen)
    once = {source.path: source for source in here}
    measured = rate(listed.held.values())
    return Inputs(sorted(once.values()), listed.wanted, listed.fetching, notices, listed.at, measured)


def _unlisted(
    mirror: Mirror, chosen: Sequence[Remote], folders: Iterable[str]
) -> tuple[list[Source], list[str]]:
    """Files in these folders of the mirror that the listing has lost, and what to say of them."""
    lost: list[Source] = []
    for folder in folders:
        path = f"{mirror.folder}/pubmed/{folder}"
        for name in pubmed.unlisted(mirror.files.names(path), chosen, folder):
            lost += [sources.source(found) for found in mirror.files.find(f"{path}/{name}")]
    if not lost:
        return [], []
    names = ", ".join(source.name for source in lost[:5]) + (" ..." if len(lost) > 5 else "")
    return lost, [
        f"The listing has no {names}, which the mirror holds: {len(lost):,} files are used as they are. If "
        "NLM has withdrawn them, delete them from the mirror"
    ]


def rate(held: Iterable[Held]) -> float:
    """Bytes a second at which these came over one connection; 0 if that was never measured."""
    timed = [there for there in held if there.seconds]
    return sum(there.found.size for there in timed) / sum(there.seconds for there in timed) if timed else 0
