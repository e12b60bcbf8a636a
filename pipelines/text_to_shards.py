"""Text files of one's own to document shards: ``beam run text_to_shards``.

The graph is built by :func:`build`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.document_presets import TEXT_PRESETS
from bioshards.corpus.text_files.filters import TextFilesConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.pipelines.options.common import DRY_RUN_OPTION, make_max_rejected_option
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.shard_options import (
    Dedup,
    ShardsOptions,
    make_dedup_option,
    make_exclusion_option,
    make_inclusion_option,
    make_input_option,
    make_max_bad_files_option,
    make_preset_option,
    override_config,
)

if TYPE_CHECKING:
    import apache_beam as beam

    from .job_types import ShardsJob

NAME: Final = "text_to_shards"
DESCRIPTION: Final = """\
Documents of your own (preprints, guidelines, notes of a hospital) to document shards of the same schema as
PubMed's and PMC's: cleaned, split into sentences, in Arrow files with a manifest."""
INPUT_HELP: Final = """\
a folder, a file or a quoted glob, also on gs://, s3:// or az://: JSON Lines (.jsonl, .ndjson, .json), Parquet
(.parquet), plain text with a blank line between documents (.txt); all but Parquet also compressed (.gz, .bz2,
.xz, .zst); repeatable (default: the sample that comes with bioshards)"""
_DOCUMENTS_GROUP: Final = "which documents, and what of them (defaults: every document that has text)"


def sample_folder() -> str:
    """Return the folder of the sample that comes with bioshards: 8 invented documents."""
    return str(resources.files("bioshards.corpus") / "sample" / "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions(ShardsOptions):
    """Options of ``beam run text_to_shards``."""

    input: Annotated[tuple[str, ...], make_input_option(INPUT_HELP)] = field(
        default_factory=lambda: (sample_folder(),)
    )
    preset: Annotated[str | None, make_preset_option(TEXT_PRESETS)] = None
    max_rejected: Annotated[float, make_max_rejected_option("records")] = 0.001
    max_bad_files: Annotated[float, make_max_bad_files_option("files")] = 0.001
    config: Annotated[Overrides[TextFilesConfig], Option(group=_DOCUMENTS_GROUP)]
    dedup: Annotated[Dedup, make_dedup_option(_DOCUMENTS_GROUP, "title and text", "hash of its id")] = "none"
    include_ids: Annotated[str | None, make_inclusion_option(_DOCUMENTS_GROUP)] = None
    exclude_ids: Annotated[str | None, make_exclusion_option(_DOCUMENTS_GROUP)] = None
    dry_run: Annotated[bool, DRY_RUN_OPTION] = False
    contact: str | None = None  # nothing is downloaded
    allow_removals: bool = False

    def make_config(self) -> TextFilesConfig:
        """Return the preset's configuration, changed by the options."""
        return override_config(self.config, TEXT_PRESETS[self.preset] if self.preset else TextFilesConfig())


def build(pipeline: beam.Pipeline, job: ShardsJob) -> None:
    """Build the graph: stage every file, resolve ids, finalize the shards, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.pipelines.transforms.document_shards import (
        finalize_documents,
        make_stage_files,
        publish_documents,
    )

    staged = (
        pipeline
        | "Sources" >> beam.Create(job.sources, reshuffle=False)
        | "StageFiles" >> make_stage_files(job)
    )
    decisions, finalized = finalize_documents(staged, job)
    publish_documents(staged, job, decisions, finalized)


def make_parser() -> Parser[TextOptions]:
    """Make the parser of ``beam run text_to_shards``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, TextOptions)
