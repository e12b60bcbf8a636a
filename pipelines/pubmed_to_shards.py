"""PubMed citation XML to document shards: ``beam run pubmed_to_shards``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.document_presets import PUBMED_PRESETS
from bioshards.corpus.download.sources import SOURCES, list_source_names
from bioshards.corpus.errors import UsageError
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.pipelines.options import (
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
    from bioshards.corpus.storage.storage_protocol import Storage
    from bioshards.pipelines.run import CommandLine

NAME: Final = "pubmed_to_shards"
DESCRIPTION: Final = """\
PubMed citation XML (baseline and update files, any mixture) to document shards: the latest version of
each citation with an abstract, cleaned of markup, split into sentences, in Parquet files with a manifest."""

INPUT_HELP: Final = f"""\
a folder, a file or a quoted glob, also on gs://, s3:// or az://; or a source to fetch, by name:
{"; ".join(SOURCES[name].usage for name in list_source_names("citations"))};
repeatable (default: the sample that comes with bioshards)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PubMedOptions(ShardsOptions):
    """Options of ``beam run pubmed_to_shards``."""

    input: Annotated[tuple[str, ...], make_input_option(INPUT_HELP)] = find_sample("pubmed")
    preset: Annotated[
        str | None,
        make_preset_option(
            PUBMED_PRESETS, {"bio-electra-pp": "its text is of articles: pmc_to_shards has it"}
        ),
    ] = None
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


def run(options: PubMedOptions, line: CommandLine) -> int:
    """Stage every file, decide which records are dropped, finalize the shards of the others, publish."""
    # Imported here, so that --help does not wait for Beam.
    from bioshards.corpus.lifecycle.publish import publish
    from bioshards.corpus.pubmed.discovery import source_from_file
    from bioshards.pipelines import shards
    from bioshards.pipelines.inputs import pubmed_files
    from bioshards.pipelines.steps import finish

    session = shards.open_shards_session(line, options)
    storage, is_local_run = session.storage, session.context.is_local_run
    job = shards.make_job(NAME, session, _complete_config(options, storage))
    inputs = pubmed_files.find_inputs(storage, options, job.output.path, is_local_run)

    def build(root: beam.Pipeline, job: ShardsJob) -> None:
        staged = shards.stage(root, job, inputs, source_from_file)
        finalized, decided = shards.finalize(root, job, staged)
        finish("publish", [staged, *decided, finalized], publish, job, staged, finalized)

    return shards.run_job(session, job, inputs, build)


def _complete_config(options: PubMedOptions, storage: Storage) -> PubMedConfig:
    """Return the configuration with the branches of MeSH that it names.

    Raises:
        UsageError: the tree of MeSH is missing, cannot be read, or lacks a branch.
    """
    from bioshards.corpus.pubmed import mesh
    from bioshards.pipelines.shards import parse_file

    config, path = options.make_config(), options.mesh_tree
    if path is None:
        if branch := next(filter(mesh.is_branch, (*config.mesh, *config.drop_mesh)), None):
            raise UsageError(
                f"{branch} needs the tree of MeSH: --mesh-tree FILE, with NLM's file mtrees2026.bin "
                f"({mesh.DOWNLOAD_PAGE})"
            )
        return config
    tree = parse_file(storage, "--mesh-tree", path, mesh.parse_tree)
    try:
        return config.with_mesh_tree(tree)
    except mesh.MeshTreeError as error:
        raise UsageError(f"--mesh-tree {path}: {error}") from error


def make_parser() -> Parser[PubMedOptions]:
    """Make the parser of ``beam run pubmed_to_shards``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, PubMedOptions)
