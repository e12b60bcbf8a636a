"""What the ``--input`` of ``pubmed_to_shards`` names: files that are here, and files to be fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bioshards.corpus import sources
from bioshards.corpus.download import pubmed
from bioshards.corpus.download.mirror import Mirror, MirroredFile
from bioshards.corpus.download.named import FileSelection, SourceSpec, parse_source_spec
from bioshards.corpus.download.remote import RemoteFile
from bioshards.corpus.files import LocalStorage
from bioshards.corpus.sources import SourceFile

from .bucket import PmcArticlePlan
from .fetching import DownloadPlan, list_source, resolve_mirror_folder
from .options import UsageError


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The files of a run.

    Attributes:
        here: those that can be read as they are, in order; with those that the mirror holds.
        wanted: those to be fetched first, and ``fetching``: how.
        notices: what a person should know of the listings.
        listed: when the listings were read, UTC; '' where there are none.
        rate: bytes a second at which what the mirror holds came over one connection; 0 if not known.
        bucket: PMC's articles to be fetched first; None where none are asked for.
    """

    available: list[SourceFile]
    to_fetch: list[RemoteFile] = field(default_factory=list)
    download_plan: DownloadPlan | None = None
    notices: list[str] = field(default_factory=list)
    listed_at: str = ""
    download_rate: float = 0
    article_plan: PmcArticlePlan | None = None

    @property
    def num_items(self) -> int:
        return (
            len(self.available)
            + len(self.to_fetch)
            + (len(self.article_plan.ranges) if self.article_plan else 0)
        )


def split_specs_and_paths(
    input_args: Sequence[str], *source_names: str
) -> tuple[list[SourceSpec], list[str]]:
    """The inputs apart: those that name one of these sources, and paths.

    Raises:
        UsageError: a name of another source than this pipeline reads.
        SourceSpecError: a name that cannot be read.
    """
    specs, paths = [], []
    for text in input_args:
        spec = parse_source_spec(text)
        if spec is None:
            paths.append(text)
        elif spec.source in source_names:
            specs.append(spec)
        else:
            accepted = ": and ".join(source_names)
            raise UsageError(
                f"--input {text} is not what this pipeline reads, which is {accepted}: and files"
            )
    return specs, paths


def find_inputs(
    storage: LocalStorage, args: Any, output: str, input_args: Sequence[str], is_local_run: bool
) -> RunInputs:
    """Find what the inputs of ``pubmed_to_shards`` name: look at folders, listings and the mirror.

    Raises:
        InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError: with a message
            for the person.
    """
    specs, paths = split_specs_and_paths(input_args, "pubmed")
    available = sources.discover_sources(storage, paths) if paths else []
    if not specs:
        return RunInputs(available)
    mirror = Mirror(storage, resolve_mirror_folder(args.mirror, output))
    listing = list_source(mirror, pubmed, args.pubmed_url, specs, args, is_local_run)
    paths_to_fetch = {mirror.path(remote_file) for remote_file in listing.to_fetch}
    available = [source for source in available if source.path not in paths_to_fetch]
    available += [
        sources.source_from_file(mirrored_file.info, mirrored_file.retrieved_at)
        for mirrored_file in listing.mirrored.values()
    ]
    notices = list(listing.notices)
    unfiltered_parts = {spec.subset for spec in specs if spec.selection == FileSelection()}
    parts_by_folder = {pubmed.BASELINE: {"", "baseline"}, pubmed.UPDATES: {"", "updates"}}
    unlisted, unlisted_notices = _find_unlisted(
        mirror,
        listing.selected,
        [folder for folder, part_names in parts_by_folder.items() if part_names & unfiltered_parts],
    )
    available, notices = available + unlisted, notices + unlisted_notices
    notices += pubmed.check_replaced_baseline(
        storage.list_names(f"{mirror.folder}/pubmed/{pubmed.BASELINE}"), listing.selected
    )
    sources_by_path = {source.path: source for source in available}
    download_rate = measure_download_rate(listing.mirrored.values())
    return RunInputs(
        sorted(sources_by_path.values()),
        listing.to_fetch,
        listing.download_plan,
        notices,
        listing.listed_at,
        download_rate,
    )


def _find_unlisted(
    mirror: Mirror, selected: Sequence[RemoteFile], folders: Iterable[str]
) -> tuple[list[SourceFile], list[str]]:
    """Files in these folders of the mirror that the listing has lost, and what to say of them."""
    unlisted: list[SourceFile] = []
    for folder in folders:
        path = f"{mirror.folder}/pubmed/{folder}"
        for name in pubmed.find_unlisted(mirror.storage.list_names(path), selected, folder):
            unlisted += [sources.source_from_file(file) for file in mirror.storage.glob(f"{path}/{name}")]
    if not unlisted:
        return [], []
    names = ", ".join(source.name for source in unlisted[:5]) + (" ..." if len(unlisted) > 5 else "")
    return unlisted, [
        f"The listing has no {names}, which the mirror holds: {len(unlisted):,} files are used as they are. If "
        "NLM has withdrawn them, delete them from the mirror"
    ]


def measure_download_rate(mirrored: Iterable[MirroredFile]) -> float:
    """Bytes a second at which these came over one connection; 0 if that was never measured."""
    timed = [mirrored_file for mirrored_file in mirrored if mirrored_file.download_seconds]
    return (
        sum(mirrored_file.info.size for mirrored_file in timed)
        / sum(mirrored_file.download_seconds for mirrored_file in timed)
        if timed
        else 0
    )
