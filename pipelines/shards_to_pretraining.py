"""Document shards and a vocabulary to packed pretraining examples: ``beam run shards_to_pretraining``.

:func:`run` builds the graph.  ``bioshards.vocab`` needs the libraries of an extra; before a run only
its recipes are imported, which need none.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.errors import UsageError
from bioshards.corpus.preset_names import explain_absent_presets
from bioshards.corpus.ui.options import Option, fraction, int_at_least
from bioshards.pipelines.options import (
    IO_GROUP,
    MAX_REJECTED_OPTION,
    DocumentsOptions,
    Parser,
)
from bioshards.vocab.pretraining import example_recipes
from bioshards.vocab.pretraining.example_recipes import OBJECTIVES, ExampleRecipe

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.corpus.shards.input_dirs import DocumentsInput
    from bioshards.corpus.ui.progress import StepBar
    from bioshards.pipelines.run import CommandLine, Session
    from bioshards.vocab.encode import Encoder
    from bioshards.vocab.pretraining.build import PretrainingJob, ShardGroup
    from bioshards.vocab.pretraining.pretraining_inputs import OverlapLists

NAME: Final = "shards_to_pretraining"
DESCRIPTION: Final = """\
Document shards and a vocabulary to pretraining examples: rows of token ids, in Arrow shards that a trainer
maps into its memory, built as the papers' reference code builds them. Rows are not masked: masking belongs
to the trainer."""


_MAX_SHARD_MB: Final = 2000
"""Largest shard: Arrow addresses the values of a list with 31 bits."""

_example_option = functools.partial(
    Option, group="examples; what is not given is as the reference code has it"
)
_row_option = functools.partial(Option, group="rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingOptions(DocumentsOptions):
    """Options of ``beam run shards_to_pretraining``.

    An option of the recipe is None where the preset, or the objective's default, decides.
    """

    vocab: Annotated[
        str | None,
        Option(
            "a folder with a tokenizer.json, as bioshards vocab build writes it; on this machine",
            group=IO_GROUP,
            metavar="DIR",
        ),
    ] = None
    preset: Annotated[
        str | None,
        _example_option(
            "objective, length and rates of a paper; options given beside it win over it",
            choices=tuple(example_recipes.PRESETS),
            absent_choices=explain_absent_presets(),
        ),
    ] = None
    objective: Annotated[
        str | None,
        _example_option(
            "electra: one or two segments of a document; bert: pairs for next-sentence prediction; albert: "
            "pairs for sentence-order prediction; plain: documents joined, rows full (default: electra)",
            choices=tuple(OBJECTIVES),
        ),
    ] = None
    max_seq_length: Annotated[
        int | None,
        _example_option(
            "tokens a row at most, [CLS] and [SEP] among them (electra and bert 128, albert and plain 512)"
        ),
    ] = None
    short_seq_prob: Annotated[
        float | None,
        _example_option(
            "fraction of rows with a random lower target (electra 0.05; bert and albert, of documents, 0.1)",
            metavar="FRACTION",
            parse=fraction,
        ),
    ] = None
    single_segment_prob: Annotated[
        float | None,
        _example_option(
            "fraction of rows with one segment (electra 0.1)", metavar="FRACTION", parse=fraction
        ),
    ] = None
    dupe_factor: Annotated[
        int | None,
        _example_option(
            "passes over each document, each with other chances (1; a trainer masks anew each time anyway)",
            parse=int_at_least(1),
        ),
    ] = None
    keep_overflow: Annotated[
        bool,
        _example_option(
            "electra: what does not fit into a row begins the next one; in the reference it is lost"
        ),
    ] = False
    as_published: Annotated[
        bool,
        _example_option(
            "albert: pair a single sentence with a random document's text, labelled as swapped, as "
            "ALBERT's code does"
        ),
    ] = False
    validation_fraction: Annotated[
        float,
        _row_option(
            "fraction of documents held out, by the hash of the PMID, or of the id where there is none "
            "(default: %(default)s)",
            metavar="FRACTION",
            parse=fraction,
        ),
    ] = 0.01
    seed: Annotated[
        int,
        _row_option("of all chances, with documents' ids (default: %(default)s)", parse=int_at_least(0)),
    ] = 0
    max_shard_mb: Annotated[
        int,
        _row_option(
            "about the largest shard in megabytes; a worker takes two to three times that in memory "
            "(default: %(default)s)",
            metavar="MB",
            parse=int_at_least(1),
        ),
    ] = 128
    max_rejected: Annotated[float, MAX_REJECTED_OPTION] = 0.001

    def check(self) -> None:
        """Check inputs, output, vocabulary, recipe and the limits of sizes."""
        DocumentsOptions.check(self)  # super() does not know the class that slots=True makes
        if not self.vocab:
            raise UsageError("--vocab DIR is missing: the --output of bioshards vocab build")
        self.make_recipe()
        if self.max_shard_mb > _MAX_SHARD_MB:
            raise UsageError(
                f"--max-shard-mb {self.max_shard_mb} is above {_MAX_SHARD_MB}, the largest shard"
            )
        if self.validation_fraction == 1:
            raise UsageError("--validation-fraction 1 leaves no document to train on")

    def make_recipe(self) -> ExampleRecipe:
        """Return the recipe that the options ask for.

        Raises:
            UsageError: options contradict each other.
        """
        if self.preset:
            base = example_recipes.PRESETS[self.preset]
            if self.objective not in (None, base.objective):
                raise UsageError(
                    f"--preset {self.preset} has the objective {base.objective}, not --objective "
                    f"{self.objective}"
                )
        else:
            base = example_recipes.DEFAULTS[self.objective or "electra"]
        given = {
            field.name: value
            for field in dataclasses.fields(ExampleRecipe)
            if (value := getattr(self, field.name)) is not None
        }
        try:
            return dataclasses.replace(base, **given)
        except ValueError as error:
            raise UsageError(str(error)) from error


def run(options: PretrainingOptions, line: CommandLine) -> int:
    """Build the examples of every group of shards, and publish them."""
    # Imported here, so that --help needs neither Beam nor the libraries of the extra.
    from bioshards.corpus.lifecycle.job import is_up_to_date
    from bioshards.corpus.manifest import PretrainingManifest
    from bioshards.corpus.output import output_layout
    from bioshards.pipelines import documents, dry_run
    from bioshards.pipelines.context import JobSpec, PathOption
    from bioshards.pipelines.run import check_output, check_published, print_notices
    from bioshards.pipelines.steps import create, each, finish
    from bioshards.vocab.counting.repeated_ids import describe_repeated_ids
    from bioshards.vocab.pretraining import pretraining_inputs
    from bioshards.vocab.pretraining.build import build_group, group_shards
    from bioshards.vocab.pretraining.pretraining_dir import publish

    vocab = PathOption("--vocab", str(options.vocab), is_used_by_workers=False)
    session = documents.open_documents_session(line, options, [vocab])
    inputs = documents.load_inputs(session, options)
    encoder = pretraining_inputs.load_vocabulary(session.storage, vocab.path)
    pretraining_inputs.check_vocabulary(session.storage, inputs, encoder, vocab.path)
    overlap_lists = pretraining_inputs.load_overlap_lists(session.storage, inputs)
    groups = list(group_shards(inputs, options.seed, overlap_lists))
    job = _make_job(options, session, inputs, overlap_lists, encoder)
    check_output(job)
    spec = JobSpec(NAME, job.output.path, len(groups), ("vocab",), job.config.library_versions)

    def build(root: beam.Pipeline) -> None:
        # The largest first, so that workers end at nearly the same time.
        largest_first = sorted(groups, key=lambda group: -group.bytes)
        built = each("build", build_group, job, create(root, "groups", largest_first))
        finish("publish", [built], publish, job, built)

    if options.dry_run:
        return dry_run.print_plan(session, _describe_plan(job, groups), build)
    with session.claimed(job, spec):
        if is_up_to_date(job.storage, job.output, PretrainingManifest, job.inputs_key):
            print(documents.format_finished(job, inputs))
        else:
            output_layout.reset(job.storage, job.output)
            job.save_vocabulary(encoder)
            workers = min(options.workers, max(1, len(groups)))
            result = session.execute(job, spec, build, workers, _list_bars(job, groups))
            check_published(result)
            print_notices(describe_repeated_ids(job.storage, inputs))
            _print_summary(job)
    return session.compare(job)


def _list_bars(job: PretrainingJob, groups: Sequence[ShardGroup]) -> list[StepBar]:
    from bioshards.corpus.ui.progress import StepBar

    shards = [shard for group in groups for shard in group.shards]
    documents = sum(shard.rows for shard in shards)
    texts = {"build": f"{{:,}}/{len(groups):,} groups"}
    reports = job.output.work_path("build_reports")
    return [
        StepBar("build", "building", " documents", documents, "units", texts, reports),
        StepBar("publish", "publishing"),
    ]


def _make_job(
    options: PretrainingOptions,
    session: Session,
    inputs: Sequence[DocumentsInput],
    overlap_lists: OverlapLists,
    encoder: Encoder,
) -> PretrainingJob:
    from bioshards.corpus.manifest import (
        PretrainingConfig,
        PretrainingInput,
        PretrainingRun,
        VocabularyIdentity,
    )
    from bioshards.corpus.output.output_layout import FORMAT, OutputDir
    from bioshards.pipelines.documents import find_versions
    from bioshards.pipelines.run import make_absolute
    from bioshards.vocab.pretraining.build import PretrainingJob

    config = PretrainingConfig(
        pipeline=NAME,
        format=FORMAT,
        **dataclasses.asdict(options.make_recipe()),
        seed=options.seed,
        validation_fraction=options.validation_fraction,
        max_shard_mb=options.max_shard_mb,
        vocabulary=VocabularyIdentity(encoder.sha256, encoder.size),
        library_versions=find_versions(["tokenizers"]),
    )
    return PretrainingJob(
        storage=session.storage,
        output=OutputDir(make_absolute(options.output)),
        config=config,
        inputs=tuple(
            PretrainingInput(
                pipeline=documents.pipeline,
                shards_sha256=documents.summary.shards_sha256,
                shards=documents.summary.shards,
                documents=documents.summary.documents,
                overlap=tuple(sorted(overlap_lists.get(documents.folder, {}).values())),
            )
            for documents in inputs
        ),
        max_rejected=options.max_rejected,
        run=PretrainingRun(
            command=session.command,
            inputs=tuple(folder.rstrip("/") for folder in options.input),
            vocabulary=str(options.vocab).rstrip("/"),
        ),
    )


def _describe_plan(job: PretrainingJob, groups: Sequence[ShardGroup]) -> list[str]:
    """Return the lines of a dry run."""
    from bioshards.pipelines import dry_run

    reports = job.storage.list_names(job.output.work_path("build_reports"))
    done = [shard for group in groups if f"{group.name}.json" in reports for shard in group.shards]
    shards = [shard for group in groups for shard in group.shards]
    config = job.config
    passes_text = f"{config.dupe_factor} passes" if config.dupe_factor > 1 else "one pass"
    return [
        *dry_run.describe_shards(shards, job.output.path, "built", done),
        f"  examples:  {config.objective}, {config.max_seq_length} tokens a row at most, {passes_text}",
    ]


def _print_summary(job: PretrainingJob) -> None:
    """Print the rows of each split, and the dropped documents."""
    from bioshards.corpus.manifest import PretrainingManifest, read_manifest

    manifest = read_manifest(job.storage, job.output.path)
    assert isinstance(manifest, PretrainingManifest)
    length, counts = job.config.max_seq_length, manifest.counts
    print(f"{counts.documents:,} documents")
    for split, split_counts in (("train", counts.train), ("validation", counts.validation)):
        if not split_counts.rows:
            continue
        fill = split_counts.tokens / (split_counts.rows * length)
        lost_text = "".join(
            f", {tokens:,} lost ({reason})" for reason, tokens in split_counts.lost_tokens.items()
        )
        print(
            f"  {split + ':':11} {split_counts.documents:,} documents, {split_counts.rows:,} rows, "
            f"{split_counts.tokens:,} tokens ({fill:.0%} of {length} a row){lost_text}"
        )
    for reason, count in {**counts.dropped, **counts.rejected}.items():
        if count:
            print(f"  {reason + ':':11} {count:,} documents")
    if counts.rejected:
        print(f"{'rejected:':13} {job.output.path}/rejected")
    print(f"{'examples:':13} {job.output.path}")
    print(f"{'report:':13} {job.output.manifest_path}")


def make_parser() -> Parser[PretrainingOptions]:
    """Make the parser of ``beam run shards_to_pretraining``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, PretrainingOptions)
