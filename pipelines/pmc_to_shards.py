"""Full text, JATS XML, to document shards: ``beam run pmc_to_shards``.

The graph is built by :func:`build`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.document_presets import PMC_PRESETS
from bioshards.corpus.download.sources import SOURCES, list_source_names
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pipeline_options import (
    CONNECTIONS_OPTION,
    DOCUMENTS_GROUP,
    ShardsOptions,
    find_sample,
    make_input_option,
    make_preset_option,
    make_url_options,
    override_config,
)

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.job_types import ShardsJob

NAME: Final = "pmc_to_shards"
DESCRIPTION: Final = """\
Full-text articles (JATS XML: PMC's bucket, Europe PMC's packages, files and archives of them) to document
shards: the newest version of each English article with a body and a free licence, all of its text but the
references, split into sentences, in Arrow files with a manifest."""
INPUT_HELP: Final = f"""\
a folder, a file or a quoted glob, also on gs://, s3:// or az://: articles (.xml, .nxml, .xml.gz), archives of
them (.tar.gz, .tar, .zip), Europe PMC's packages (PMC1_PMC20000.xml.gz), a mirror's pmc folder; or a source
to fetch, by name: {"; ".join(SOURCES[name].usage for name in list_source_names("articles"))}
(numbers for pmc: are ids, in whole ranges of 10,000); repeatable
(default: the sample that comes with bioshards)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PmcOptions(ShardsOptions):
    """Options of ``beam run pmc_to_shards``."""

    input: Annotated[tuple[str, ...], make_input_option(INPUT_HELP)] = find_sample("pmc")
    preset: Annotated[str | None, make_preset_option(PMC_PRESETS)] = None
    connections: Annotated[int, CONNECTIONS_OPTION] = 64
    config: Annotated[Overrides[PmcConfig], Option(group=DOCUMENTS_GROUP)]
    find_overlap_with: Annotated[
        str | None,
        Option(
            "a finished output of pubmed_to_shards: its abstracts that the articles hold in full are listed "
            "in DIR/overlap.arrow of this output, so that both can be used without reading an abstract twice",
            group=DOCUMENTS_GROUP,
            metavar="DIR",
        ),
    ] = None
    urls: Annotated[tuple[tuple[str, str], ...], make_url_options(list_source_names("articles"))] = ()

    def make_config(self) -> PmcConfig:
        """Return the preset's configuration, changed by the options."""
        return override_config(self.config, PMC_PRESETS[self.preset] if self.preset else PmcConfig())


def build(pipeline: beam.Pipeline, job: ShardsJob) -> None:
    """Build the graph: stage every source, resolve versions, finalize the shards, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.corpus.jats.inputs import source_from_file
    from bioshards.pipelines.inputs.downloads import split_into_slots
    from bioshards.pipelines.transforms.document_shards import (
        finalize_documents,
        make_stage_files,
        publish_documents,
        stage_inputs,
    )
    from bioshards.pipelines.transforms.full_text import ExtractKeys, FetchAndStageRanges, FindOverlap
    from bioshards.pipelines.transforms.mirror_files import CheckRemovals, FindRemovals

    stage_files = make_stage_files(job)
    staged_collections = stage_inputs(pipeline, job, stage_files, source_from_file)
    if job.article_plan:
        range_slots = pipeline | "Ranges" >> beam.Create(
            split_into_slots(job.article_plan.ranges, job.article_plan.download_plan), reshuffle=False
        )
        range_removals = pipeline | "FindRemovals" >> FindRemovals(job.article_plan)
        checked = range_removals | "CheckRemovals" >> CheckRemovals(
            job.article_plan.download_plan.mirror, job.output_dir
        )
        staged_collections.append(
            range_slots | "FetchAndStageRanges" >> FetchAndStageRanges(job.article_plan, stage_files, checked)
        )
    staged = staged_collections | "Staged" >> beam.Flatten()
    decisions, finalized = finalize_documents(staged, job)
    shard_keys = finalized | "ExtractKeys" >> ExtractKeys(job.storage, job.output_dir, job.overlap_with)
    overlap = finalized | "FindOverlap" >> FindOverlap(
        job.storage, job.output_dir, job.overlap_with, shard_keys
    )
    publish_documents(staged, job, decisions, finalized, overlap)


def make_parser() -> Parser[PmcOptions]:
    """Make the parser of ``beam run pmc_to_shards``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, PmcOptions)
