"""The sources that can be downloaded by name, as in ``--input pubmed:``: one entry each.

To add a source, write its module next to ``europepmc.py`` and add an entry to :data:`SOURCES`.  Its name, the
help, the option ``--NAME-url``, ``beam run fetch`` and the pipeline that reads its content follow from it.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from bioshards.corpus.download.http_client import Connection
    from bioshards.corpus.download.listing import SelectedFiles
    from bioshards.corpus.download.source_spec import SourceSpec


class FileListing(Protocol):
    """A module of this folder for a server with a listing of files.

    Attributes:
        MIRROR_FOLDERS: folders of its files in the mirror.
        MAX_CONNECTIONS: connections of all workers together.
        REQUESTS_PER_SECOND: requests of all workers together.
    """

    MIRROR_FOLDERS: tuple[str, ...]
    MAX_CONNECTIONS: int
    REQUESTS_PER_SECOND: float

    def list_files(
        self,
        connection: Connection,
        base_url: str,
        spec: SourceSpec,
        mirrored_paths: Collection[str],
        allow_removals: bool,
    ) -> SelectedFiles:
        """Read the listing and select files.

        Args:
            connection: connection to the server.
            base_url: URL of the server.
            spec: what to select.
            mirrored_paths: paths of the source's files in the mirror.
            allow_removals: let files of another year replace those of the mirror in any case.
        """


@dataclass(frozen=True, slots=True)
class Source:
    """Entry of a source.

    Attributes:
        content: ``citations``, which ``pubmed_to_shards`` reads, or ``articles``, which ``pmc_to_shards``
            reads.
        url: base URL of the server; the option ``--NAME-url`` replaces it.
        examples: values of ``--input``, for help and messages.
        listing_module: module of this folder that lists the files; None for PMC, which has objects in a
            bucket instead.
        subsets: names that may follow the colon.
    """

    content: Literal["citations", "articles"]
    url: str
    examples: tuple[str, ...]
    listing_module: str | None
    subsets: tuple[str, ...] = ()

    def load_listing(self) -> FileListing:
        """Import and return the module that lists the files, late, because it waits for HTTP's libraries."""
        assert self.listing_module
        listing: FileListing = importlib.import_module(f".{self.listing_module}", __package__)
        return listing

    @property
    def usage(self) -> str:
        """Return the examples for a help text, quoted for a shell."""
        return ", ".join(map(shlex.quote, self.examples))


SOURCES: Final[Mapping[str, Source]] = {
    "pubmed": Source(
        content="citations",
        url="https://ftp.ncbi.nlm.nih.gov/pubmed/",
        examples=("pubmed:", "pubmed:baseline[1-10]", "pubmed:updates[-3:]", "pubmed:since=2026-08-01"),
        listing_module="pubmed",
        subsets=("baseline", "updates"),
    ),
    "pmc": Source(
        content="articles",
        url="https://pmc-oa-opendata.s3.amazonaws.com/",
        examples=("pmc:", "pmc:[11000000-11010000]"),
        listing_module=None,
    ),
    "europepmc": Source(
        content="articles",
        url="https://ftp.ebi.ac.uk/pub/databases/pmc/oa/",
        examples=("europepmc:", "europepmc:[1-20000]", "europepmc:[-3:]", "europepmc:since=2026-08-01"),
        listing_module="europepmc",
    ),
}
"""Sources by name."""


def list_source_names(content: Literal["citations", "articles"]) -> list[str]:
    """Return the names of the sources with this content."""
    return [name for name, source in SOURCES.items() if source.content == content]
