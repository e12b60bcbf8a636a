"""Full text, JATS XML, to document shards: ``beam run pmc_to_shards``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from bioshards.corpus.document_presets import PMC_PRESETS
from bioshards.corpus.download.sources import SOURCES, list_source_names
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.pipelines.options import (
    CONNECTIONS_OPTION,
    DOCUMENTS_GROUP,
    Parser,
    ShardsOptions,
    find_sample,
    make_input_option,
    make_preset_option,
    make_url_options,
    override_config,
)

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.corpus.lifecycle.job import ShardsJob
    from bioshards.pipelines.run import CommandLine

NAME: Final = "pmc_to_shards"
DESCRIPTION: Final = """\
Full-text articles (JATS XML: PMC's bucket, Europe PMC's packages, files and archives of them) to document
shards: the newest version of each English article with a body and a free licence, all of its text but the
references, split into sentences, in Parquet files with a manifest."""
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
    preset: Annotated[
        str | None,
        make_preset_option(
            PMC_PRESETS,
            dict.fromkeys(("bio-electra", "electramed"), "its text is of abstracts: pubmed_to_shards has it"),
        ),
    ] = None
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


def run(options: PmcOptions, line: CommandLine) -> int:
    """Stage every source, decide which articles are dropped, finalize the shards of the others, publish."""
    # Imported here, so that --help does not wait for Beam.
    from bioshards.corpus.jats.inputs import source_from_file
    from bioshards.corpus.lifecycle import full_text_overlap
    from bioshards.corpus.lifecycle.publish import publish
    from bioshards.pipelines import download_steps, shards
    from bioshards.pipelines.inputs import article_files
    from bioshards.pipelines.steps import finish, merge, once, slots

    session = shards.open_shards_session(line, options)
    storage, is_local_run = session.storage, session.context.is_local_run
    job = shards.make_job(NAME, session, options.make_config())
    inputs = article_files.find_inputs(storage, options, job.output.path, is_local_run)

    def build(root: beam.Pipeline, job: ShardsJob) -> None:
        staged = shards.stage(root, job, inputs, source_from_file)
        measured: list[Sequence[Any]] = [staged]
        if plan := inputs.article_plan:
            to_check, ranges = shards.create_range_slots(root, plan)
            found = slots("removals", download_steps.find_removals, job, to_check, plan)
            mirror = plan.download_plan.mirror.folder
            checked = once("check", download_steps.check_removals, job, found, mirror)
            articles = slots("ranges", download_steps.fetch_and_stage_ranges, job, ranges, plan, checked)
            measured += [found, checked, articles]
            staged = merge("staged with ranges", [staged, articles])
        finalized, decided = shards.finalize(root, job, staged)
        measured += [*decided, finalized]
        if not job.overlap_with:
            finish("publish", measured, publish, job, staged, finalized)
            return
        overlap = once("overlap", full_text_overlap.write_overlap, job, finalized)
        finish("publish", [*measured, overlap], publish, job, staged, finalized, overlap)

    return shards.run_job(session, job, inputs, build)


def make_parser() -> Parser[PmcOptions]:
    """Make the parser of ``beam run pmc_to_shards``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, PmcOptions)
