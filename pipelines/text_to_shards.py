"""Text files of one's own to document shards: ``beam run text_to_shards``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.document_presets import TEXT_PRESETS
from bioshards.corpus.text_files import TextFilesConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.pipelines.options import (
    DOCUMENTS_GROUP,
    Parser,
    ShardsOptions,
    find_sample,
    make_input_option,
    make_preset_option,
    override_config,
)

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.corpus.lifecycle.job import ShardsJob
    from bioshards.pipelines.run import CommandLine

NAME: Final = "text_to_shards"
DESCRIPTION: Final = """\
Documents of your own (preprints, guidelines, notes of a hospital) to document shards of the same schema as
PubMed's and PMC's: cleaned, split into sentences, in Parquet files with a manifest."""
INPUT_HELP: Final = """\
a folder, a file or a quoted glob, also on gs://, s3:// or az://: JSON Lines (.jsonl, .ndjson, .json), Parquet
(.parquet), plain text with a blank line between documents (.txt); all but Parquet also compressed (.gz, .bz2,
.xz, .zst); repeatable (default: the sample that comes with bioshards)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions(ShardsOptions):
    """Options of ``beam run text_to_shards``."""

    input: Annotated[tuple[str, ...], make_input_option(INPUT_HELP)] = find_sample("text")
    preset: Annotated[
        str | None,
        make_preset_option(
            TEXT_PRESETS, {"bio-electra-pp": "its rules are of articles' XML: pmc_to_shards has it"}
        ),
    ] = None
    config: Annotated[Overrides[TextFilesConfig], Option(group=DOCUMENTS_GROUP)]
    mirror: str | None = None  # nothing is downloaded
    contact: str | None = None
    allow_removals: bool = False

    def make_config(self) -> TextFilesConfig:
        """Return the preset's configuration, changed by the options."""
        return override_config(self.config, TEXT_PRESETS[self.preset] if self.preset else TextFilesConfig())


def run(options: TextOptions, line: CommandLine) -> int:
    """Stage every file, decide which documents are dropped, finalize the shards of the others, publish."""
    # Imported here, so that --help does not wait for Beam.
    from bioshards.corpus.lifecycle.publish import publish
    from bioshards.corpus.lifecycle.stage import stage_source
    from bioshards.corpus.text_files.records import discover_sources
    from bioshards.pipelines import shards
    from bioshards.pipelines.inputs.run_inputs import RunInputs
    from bioshards.pipelines.steps import create, each, finish

    session = shards.open_shards_session(line, options)
    job = shards.make_job(NAME, session, options.make_config())
    notices: list[str] = []
    sources = discover_sources(session.storage, options.input, notices.append)
    inputs = RunInputs(sources, notices=notices)

    def build(root: beam.Pipeline, job: ShardsJob) -> None:
        staged = each("stage", stage_source, job, create(root, "sources", shards.sort_by_size(sources)))
        finalized, decided = shards.finalize(root, job, staged)
        finish("publish", [staged, *decided, finalized], publish, job, staged, finalized)

    return shards.run_job(session, job, inputs, build)


def make_parser() -> Parser[TextOptions]:
    """Make the parser of ``beam run text_to_shards``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, TextOptions)
