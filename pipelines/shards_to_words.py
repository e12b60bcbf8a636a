"""Document shards to exact counts of their words: ``beam run shards_to_words``.

The recipe is :func:`build`.  Around it: the options.  What it runs, ``bioshards.vocab``, needs libraries of
an extra, so that nothing of it is imported before a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from bioshards.pipelines.options.argument_types import fraction, int_at_least
from bioshards.pipelines.options.common import add_io_options, add_worker_options
from bioshards.pipelines.options.parser import Parser

from .job_types import WordsJob
from .registry import load_extra_module

if TYPE_CHECKING:
    import apache_beam as beam


NAME: Final = "shards_to_words"
DESCRIPTION: Final = """\
Document shards to the words of the whole corpus, each with how often it occurs: what vocabularies are
trained on. For corpora beyond one machine; python -m bioshards.vocab build counts the same by itself."""


def build(pipeline: beam.Pipeline, job: WordsJob) -> None:
    """The pipeline: count every shard, merge the counts bucket by bucket, publish one sorted list."""
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
    """The options of ``beam run shards_to_words``."""
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
        metavar="SHARE",
        default=0.0,
        help="share of documents whose words are counted apart, in validation-words.tsv (default: none)",
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


def run(parser: Parser, args: Any, beam_args: Sequence[str], argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code.

    Raises:
        MissingExtraError: a library of the extra is not installed.
    """
    exit_code: int = load_extra_module(NAME, "drivers.words_driver").run(parser, args, beam_args, argv)
    return exit_code
