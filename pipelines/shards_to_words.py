"""Document shards to exact counts of their words: ``beam run shards_to_words``.

The graph is built by :func:`build`.  ``bioshards.vocab`` needs the libraries of an extra and is imported by
the driver only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bioshards.pipelines.options.argument_types import fraction, int_at_least
from bioshards.pipelines.options.common import DocumentsOptions, add_io_options, add_worker_options
from bioshards.pipelines.options.parser import Parser

if TYPE_CHECKING:
    import apache_beam as beam

    from .job_types import WordsJob

NAME: Final = "shards_to_words"
DESCRIPTION: Final = """\
Document shards to the words of the whole corpus, each with how often it occurs: what vocabularies are
trained on. For corpora beyond one machine; python -m bioshards.vocab build counts the same by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsOptions(DocumentsOptions):
    """Options of ``beam run shards_to_words``.

    Attributes:
        pretokenizer: ``bert`` or ``white-space``.
        validation_fraction: fraction of documents whose words are counted separately.
        seed: seed of the split.
        min_count: rarer words are not written.
    """

    pretokenizer: str
    validation_fraction: float
    seed: int
    min_count: int


def build(pipeline: beam.Pipeline, job: WordsJob) -> None:
    """Build the graph: count every shard, merge the counts of each bucket, publish one sorted list."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.pipelines.transforms.word_counting import CountShards, MergeBuckets, PublishWords

    shards = [
        (document_input.folder, shard) for document_input in job.inputs for shard in document_input.shards
    ]
    counted = (
        pipeline
        | "Shards" >> beam.Create(shards, reshuffle=False)
        | "CountShards" >> CountShards(job.storage, job.output_dir, job.count_config)
    )
    merged = counted | "MergeBuckets" >> MergeBuckets(job.storage, job.output_dir, job.min_count)
    inputs = [document_input.summary for document_input in job.inputs]
    counted | "Publish" >> PublishWords(job.storage, job.output_dir, job.config, inputs, job.run_info, merged)


def make_parser() -> Parser:
    """Make the parser of ``beam run shards_to_words``."""
    parser = Parser("beam run shards_to_words", DESCRIPTION)
    add_io_options(parser)
    group = parser.add_argument_group("what is counted")
    group.add_argument(
        "--pretokenizer",
        choices=["bert", "white-space"],
        default="bert",
        help="what a word is: what BERT takes for one, every punctuation mark apart, or what stands between "
        "white space; as written, not in lower case (default: %(default)s)",
    )
    group.add_argument(
        "--validation-fraction",
        type=fraction,
        metavar="FRACTION",
        default=0.0,
        help="fraction of documents whose words are counted apart, in validation-words.tsv (default: none)",
    )
    group.add_argument(
        "--seed",
        type=int_at_least(0),
        metavar="N",
        default=0,
        help="with a document's PMID, or its id where it has none, it decides whether that one is held out "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--min-count",
        type=int_at_least(1),
        metavar="N",
        default=1,
        help="leave rarer words out of words.tsv; the manifest says how many (default: %(default)s)",
    )
    add_worker_options(parser)
    return parser
