"""The inputs of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bioshards.corpus.download.mirror import MirroredFile
from bioshards.corpus.download.remote_file import RemoteFile
from bioshards.corpus.download.source_spec import SourceSpec, parse_source_spec
from bioshards.corpus.errors import UsageError
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.pipelines.inputs.downloads import DownloadPlan
from bioshards.pipelines.inputs.pmc_articles import PmcArticlePlan


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The inputs of a run.

    Attributes:
        available: files that can be read, local and mirrored, in order.
        to_fetch: files to download first.
        download_plan: how they are downloaded.
        notices: messages on the listings.
        listed_at: UTC time at which the listings were read; '' without listings.
        download_rate: bytes per second of one connection in earlier downloads; 0 if unknown.
        article_plan: PMC's articles to download first; None if none are asked for.
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
    """Split inputs into source specifications and paths.

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


def measure_download_rate(mirrored: Iterable[MirroredFile]) -> float:
    """Bytes a second at which these came over one connection; 0 if that was never measured."""
    timed = [mirrored_file for mirrored_file in mirrored if mirrored_file.download_seconds]
    return (
        sum(mirrored_file.info.size for mirrored_file in timed)
        / sum(mirrored_file.download_seconds for mirrored_file in timed)
        if timed
        else 0
    )
