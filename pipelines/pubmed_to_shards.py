"""PubMed citation XML to document shards: ``beam run pubmed_to_shards``.

The graph is built by :func:`build`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.document_presets import PUBMED_PRESETS
from bioshards.corpus.download.sources import SOURCES, list_source_names
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pipeline_options import (
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

NAME: Final = "pubmed_to_shards"
DESCRIPTION: Final = """\
PubMed citation XML (baseline and update files, any mixture) to document shards: the latest version of
each citation with an abstract, cleaned of markup, split into sentences, in Arrow files with a manifest."""

INPUT_HELP: Final = f"""\
a folder, a file or a quoted glob, also on gs://, s3:// or az://; or a source to fetch, by name:
{"; ".join(SOURCES[name].usage for name in list_source_names("citations"))};
repeatable (default: the sample that comes with bioshards)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PubMedOptions(ShardsOptions):
    """Options of ``beam run pubmed_to_shards``."""

    input: Annotated[tuple[str, ...], make_input_option(INPUT_HELP)] = find_sample("pubmed")
    preset: Annotated[str | None, make_preset_option(PUBMED_PRESETS)] = None
    urls: Annotated[tuple[tuple[str, str], ...], make_url_options(list_source_names("citations"))] = ()
    config: Annotated[Overrides[PubMedConfig], Option(group=DOCUMENTS_GROUP)]
    mesh_tree: Annotated[
        str | None,
        Option(
            "the tree that --mesh and --drop-mesh take branches from: NLM's mtrees2026.bin or another",
            group=DOCUMENTS_GROUP,
            metavar="FILE",
        ),
    ] = None

    def make_config(self) -> PubMedConfig:
        """Return the preset's configuration, changed by the options."""
        return override_config(self.config, PUBMED_PRESETS[self.preset] if self.preset else PubMedConfig())


def build(pipeline: beam.Pipeline, job: ShardsJob) -> None:
    """Build the graph: stage every file, resolve versions, finalize the shards, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.corpus.pubmed.discovery import source_from_file
    from bioshards.pipelines.transforms.document_shards import (
        finalize_documents,
        make_stage_files,
        publish_documents,
        stage_inputs,
    )

    staged_collections = stage_inputs(pipeline, job, make_stage_files(job), source_from_file)
    staged = staged_collections | "Staged" >> beam.Flatten()
    decisions, finalized = finalize_documents(staged, job)
    publish_documents(staged, job, decisions, finalized)


def make_parser() -> Parser[PubMedOptions]:
    """Make the parser of ``beam run pubmed_to_shards``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, PubMedOptions)
