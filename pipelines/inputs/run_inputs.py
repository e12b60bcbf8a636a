"""The inputs of a run: files that can be read, and what is to be downloaded first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.bucket_inventory import Inventory
from bioshards.corpus.download.pmc.s3_bucket import range_label
from bioshards.corpus.download.sources import SourceSpec, list_source_names, parse_source_spec
from bioshards.corpus.errors import UsageError
from bioshards.corpus.jats.inputs import ARTICLE_LIST_EXTENSION
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.pipelines.inputs.downloads import DownloadPlan, SourceListing


@dataclass(frozen=True, slots=True)
class PmcArticlePlan:
    """PMC's articles to download: those of these ranges of 10,000 ids that the filter selects.

    Attributes:
        inventory: the one that was read when the run began; None where the bucket was not asked.
        ranges_to_check: ranges in the mirror, of which no more than a small part may be removed.
        notices: messages on the inventory.
    """

    download_plan: DownloadPlan
    ranges: list[int]
    article_filter: ArticleFilter
    inventory: Inventory | None = None
    ranges_to_check: list[int] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The inputs of a run.

    Attributes:
        available: files that can be read, local and mirrored, in order.
        listings: the listings that were read, by source; their files to fetch are downloaded first.
        notices: messages on the input folders and the listings.
        article_plan: PMC's articles to download first; None if none are asked for.
    """

    available: list[SourceFile]
    listings: Mapping[str, SourceListing] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    article_plan: PmcArticlePlan | None = None

    @property
    def to_fetch(self) -> list[RemoteFile]:
        """Return the files of all listings to download first."""
        return [remote_file for listing in self.listings.values() for remote_file in listing.to_fetch]

    @property
    def names_to_fetch(self) -> list[str]:
        """Return the names of the files to download first, and of the lists of ranges of articles."""
        ranges = self.article_plan.ranges if self.article_plan else []
        return [
            *(remote_file.name for remote_file in self.to_fetch),
            *(f"{range_label(number)}{ARTICLE_LIST_EXTENSION}" for number in ranges),
        ]

    @property
    def listed_at(self) -> str | None:
        """Return the UTC time at which the first listing was read; None without listings."""
        return min((listing.listed_at for listing in self.listings.values()), default=None)

    @property
    def num_items(self) -> int:
        """Return the number of files and of ranges of articles."""
        return len(self.available) + len(self.names_to_fetch)


def split_specs_and_paths(
    input_args: Sequence[str], content: Literal["citations", "articles"]
) -> tuple[dict[str, list[SourceSpec]], list[str]]:
    """Split inputs into the specifications of each source and paths.

    Args:
        input_args: values of ``--input``.
        content: what the pipeline reads.

    Raises:
        UsageError: a source has other content than this pipeline reads.
        SourceSpecError: a name or its selection is invalid.
    """
    source_names = list_source_names(content)
    specs_by_source: dict[str, list[SourceSpec]] = {}
    paths = []
    for text in input_args:
        spec = parse_source_spec(text)
        if spec is None:
            paths.append(text)
        elif spec.source in source_names:
            specs_by_source.setdefault(spec.source, []).append(spec)
        else:
            accepted = ": and ".join(source_names)
            raise UsageError(
                f"--input {text} is not what this pipeline reads, which is {accepted}: and files"
            )
    return specs_by_source, paths


def merge_sources(
    found: Iterable[SourceFile],
    listings: Iterable[SourceListing],
    source_from_file: Callable[..., SourceFile],
) -> list[SourceFile]:
    """Return files of folders and of the mirror in order, each once, without those that are to be fetched.

    Args:
        found: files of the folders that the inputs name.
        listings: listings with their files of the mirror.
        source_from_file: makes the source of a file, and of the time at which it was retrieved.
    """
    sources_by_path = {source.path: source for source in found}
    for listing in listings:
        for mirrored in listing.mirrored.values():
            sources_by_path[mirrored.info.path] = source_from_file(mirrored.info, mirrored.retrieved_at)
        for info in listing.unlisted:
            sources_by_path.setdefault(info.path, source_from_file(info))
        for remote_file in listing.to_fetch:
            sources_by_path.pop(listing.download_plan.mirror.path(remote_file), None)
    return sorted(sources_by_path.values())
