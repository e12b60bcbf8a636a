"""Document shards and a vocabulary to packed pretraining examples: ``beam run shards_to_pretraining``.

The graph is built by :func:`build`.  ``bioshards.vocab`` needs the libraries of an extra; before a run only
its recipes are imported, which need none.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from bioshards.corpus.errors import UsageError
from bioshards.corpus.ui.options import Option
from bioshards.corpus.ui.value_parsers import fraction, int_at_least
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pipeline_options import (
    DOCUMENTS_OPTION,
    IO_GROUP,
    MAX_REJECTED_OPTION,
    DocumentsOptions,
)
from bioshards.vocab.pretraining.objectives import example_recipes
from bioshards.vocab.pretraining.objectives.example_recipes import OBJECTIVES, ExampleRecipe

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.job_types import PretrainingJob

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

    input: Annotated[tuple[str, ...], DOCUMENTS_OPTION] = ()
    vocab: Annotated[
        str | None,
        Option(
            "a folder with a tokenizer.json, as python -m bioshards.vocab build writes it; on this machine",
            group=IO_GROUP,
            metavar="DIR",
        ),
    ] = None
    preset: Annotated[
        str | None,
        _example_option(
            "objective, length and rates of a paper; options given beside it win over it",
            choices=tuple(example_recipes.PRESETS),
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
    dedup: Annotated[
        Literal["none", "near"],
        Option(
            "near: of documents of all inputs of which about 80 %% of all runs of five words are the same "
            "keep the one of the latest year, then of the lowest PMID; DIR/duplicates.tsv lists the others "
            "(default: %(default)s)",
            group=IO_GROUP,
        ),
    ] = "none"
    shuffle: Annotated[
        Literal["shard", "global"],
        _row_option(
            "rows are in a random order within a shard (and shards' names are), or within the whole set "
            "(default: %(default)s)"
        ),
    ] = "shard"
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
            raise UsageError("--vocab DIR is missing: the --output of python -m bioshards.vocab build")
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
        overrides: dict[str, Any] = {
            "max_seq_length": self.max_seq_length,
            "short_seq_prob": self.short_seq_prob,
            "single_segment_prob": self.single_segment_prob,
            "dupe_factor": self.dupe_factor,
        }
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            return dataclasses.replace(
                base, **given, keep_overflow=self.keep_overflow, as_published=self.as_published
            )
        except ValueError as error:
            raise UsageError(str(error)) from error


def build(pipeline: beam.Pipeline, job: PretrainingJob) -> None:
    """Build the graph: build the examples of every shard group, merge spilled rows, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.pipelines.transforms.pretraining_set import BuildExamples, MergeShuffled, PublishExamples
    from bioshards.pipelines.transforms.signed_shards import CompareDocuments, SignDocuments

    # The largest first, so that workers end at nearly the same time.
    largest_first = sorted(job.shard_groups, key=lambda group: -sum(shard.bytes for shard in group.shards))
    shard_groups = pipeline | "ShardGroups" >> beam.Create(largest_first, reshuffle=False)
    signed = duplicates = None
    if job.dedup == "near":
        signed = shard_groups | "SignDocuments" >> SignDocuments(job.storage, job.output_dir)
        duplicates = signed | "CompareDocuments" >> CompareDocuments(job.storage, job.output_dir)
    built = shard_groups | "BuildExamples" >> BuildExamples(
        job.storage, job.output_dir, job.build_config, duplicates
    )
    merged = built | "MergeShuffled" >> MergeShuffled(job.storage, job.output_dir, job.build_config)
    built | "Publish" >> PublishExamples(
        job.storage,
        job.output_dir,
        job.config,
        job.inputs,
        job.run_info,
        job.max_rejected,
        merged,
        signed,
        duplicates,
    )


def make_parser() -> Parser[PretrainingOptions]:
    """Make the parser of ``beam run shards_to_pretraining``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, PretrainingOptions)
