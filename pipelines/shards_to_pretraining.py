"""Document shards and a vocabulary to packed pretraining examples: ``beam run shards_to_pretraining``.

The graph is built by :func:`build`.  ``bioshards.vocab`` needs the libraries of an extra; before a run only
its recipes are imported, which need none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bioshards.pipelines.options.argument_types import fraction, int_at_least
from bioshards.pipelines.options.common import DocumentsOptions, add_io_options, add_run_options
from bioshards.pipelines.options.parser import Parser
from bioshards.vocab.pretraining.objectives import example_recipes
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES

if TYPE_CHECKING:
    import apache_beam as beam

    from .job_types import PretrainingJob

NAME: Final = "shards_to_pretraining"
DESCRIPTION: Final = """\
Document shards and a vocabulary to pretraining examples: rows of token ids, in Arrow shards that a trainer
maps into its memory, built as the papers' reference code builds them. Rows are not masked: masking belongs
to the trainer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingOptions(DocumentsOptions):
    """Options of ``beam run shards_to_pretraining``.

    An option of the recipe is None where the preset, or the objective's default, decides.

    Attributes:
        vocab: folder with a tokenizer.json.
        shuffle: ``shard`` or ``global``.
        max_shard_mb: largest shard in megabytes.
        max_rejected: fraction of documents that may be rejected.
    """

    vocab: str | None
    preset: str | None
    objective: str | None
    max_seq_length: int | None
    short_seq_prob: float | None
    single_segment_prob: float | None
    dupe_factor: int | None
    keep_overflow: bool
    as_published: bool
    validation_fraction: float
    shuffle: str
    seed: int
    max_shard_mb: int
    max_rejected: float


def build(pipeline: beam.Pipeline, job: PretrainingJob) -> None:
    """Build the graph: build the examples of every shard group, merge spilled rows, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.pipelines.transforms.pretraining_set import BuildExamples, MergeShuffled, PublishExamples

    built = (
        pipeline
        | "ShardGroups" >> beam.Create(job.shard_groups, reshuffle=False)
        | "BuildExamples" >> BuildExamples(job.storage, job.output_dir, job.build_config)
    )
    merged = built | "MergeShuffled" >> MergeShuffled(job.storage, job.output_dir, job.build_config)
    built | "Publish" >> PublishExamples(
        job.storage, job.output_dir, job.config, job.inputs, job.run_info, job.max_rejected, merged
    )


def make_parser() -> Parser:
    """Make the parser of ``beam run shards_to_pretraining``."""
    parser = Parser(f"beam run {NAME}", DESCRIPTION)
    io_options = add_io_options(parser)
    io_options.add_argument(
        "--vocab",
        metavar="DIR",
        help="a folder with a tokenizer.json, as python -m bioshards.vocab build writes it; on this machine",
    )
    examples = parser.add_argument_group("examples; what is not given is as the reference code has it")
    examples.add_argument(
        "--preset",
        choices=list(example_recipes.PRESETS),
        help="objective, length and rates of a paper; options given beside it win over it",
    )
    examples.add_argument(
        "--objective",
        choices=list(OBJECTIVES),
        help="electra: one or two segments of a document; bert: pairs for next-sentence prediction; albert: "
        "pairs for sentence-order prediction; plain: documents joined, rows full (default: electra)",
    )
    examples.add_argument(
        "--max-seq-length",
        type=int,
        metavar="N",
        help="tokens a row at most, [CLS] and [SEP] among them (electra and bert 128, albert and plain 512)",
    )
    examples.add_argument(
        "--short-seq-prob",
        type=fraction,
        metavar="FRACTION",
        help="fraction of rows with a random lower target (electra 0.05; bert and albert, of documents, 0.1)",
    )
    examples.add_argument(
        "--single-segment-prob",
        type=fraction,
        metavar="FRACTION",
        help="fraction of rows with one segment (electra 0.1)",
    )
    examples.add_argument(
        "--dupe-factor",
        type=int_at_least(1),
        metavar="N",
        help="passes over each document, each with other chances (1; a trainer masks anew each time anyway)",
    )
    examples.add_argument(
        "--keep-overflow",
        action="store_true",
        help="electra: what does not fit into a row begins the next one; in the reference it is lost",
    )
    examples.add_argument(
        "--as-published",
        action="store_true",
        help="albert: pair a single sentence with a random document's text, labelled as swapped, as "
        "ALBERT's code does",
    )
    rows = parser.add_argument_group("rows")
    rows.add_argument(
        "--validation-fraction",
        type=fraction,
        metavar="FRACTION",
        default=0.01,
        help="fraction of documents held out, by the hash of the PMID, or of the id where there is none "
        "(default: %(default)s)",
    )
    rows.add_argument(
        "--shuffle",
        choices=["shard", "global"],
        default="shard",
        help="rows are in a random order within a shard (and shards' names are), or within the whole set "
        "(default: %(default)s)",
    )
    rows.add_argument(
        "--seed",
        type=int_at_least(0),
        metavar="N",
        default=0,
        help="of all chances, with documents' ids (default: %(default)s)",
    )
    rows.add_argument(
        "--max-shard-mb",
        type=int_at_least(1),
        metavar="MB",
        default=128,
        help="about the largest shard in megabytes; a worker takes two to three times that in memory "
        "(default: %(default)s)",
    )
    add_run_options(parser, "documents")
    return parser
