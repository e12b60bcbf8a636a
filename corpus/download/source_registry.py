"""The sources that can be downloaded by name, as in ``--input pubmed:``: one entry each.

To add a source, write its module next to ``europepmc.py`` and add an entry to :data:`SOURCES`.  Its name, the
help, the option ``--NAME-url``, ``beam run fetch`` and the pipeline that reads its content follow from it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from . import europepmc, pubmed
from .http_client import Connection
from .listing import SelectedFiles
from .pmc import s3_bucket
from .source_spec import SourceSpec


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
        listing: module that lists the files; None for PMC, which has objects in a bucket instead.
        subsets: names that may follow the colon.
    """

    content: Literal["citations", "articles"]
    url: str
    examples: tuple[str, ...]
    listing: FileListing | None
    subsets: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """Return the examples for a help text, quoted for a shell."""
        return ", ".join(map(shlex.quote, self.examples))


SOURCES: Final[Mapping[str, Source]] = {
    "pubmed": Source(
        content="citations",
        url=pubmed.URL,
        examples=("pubmed:", "pubmed:baseline[1-10]", "pubmed:updates[-3:]", "pubmed:since=2026-08-01"),
        listing=pubmed,
        subsets=("baseline", "updates"),
    ),
    "pmc": Source(
        content="articles",
        url=s3_bucket.URL,
        examples=("pmc:", "pmc:[11000000-11010000]"),
        listing=None,
    ),
    "europepmc": Source(
        content="articles",
        url=europepmc.URL,
        examples=("europepmc:", "europepmc:[1-20000]", "europepmc:[-3:]", "europepmc:since=2026-08-01"),
        listing=europepmc,
    ),
}
"""Sources by name."""


def list_source_names(content: Literal["citations", "articles"]) -> list[str]:
    """Return the names of the sources with this content."""
    return [name for name, source in SOURCES.items() if source.content == content]
