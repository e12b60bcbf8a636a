"""Document shards to exact counts of their words: ``beam run shards_to_words``.

The graph is built by :func:`build`.  ``bioshards.vocab`` needs the libraries of an extra and is imported by
the driver only.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from bioshards.corpus.ui.options import Option
from bioshards.corpus.ui.value_parsers import fraction, int_at_least
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pipeline_options import DOCUMENTS_OPTION, DocumentsOptions

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.job_types import WordsJob

NAME: Final = "shards_to_words"
DESCRIPTION: Final = """\
Document shards to the words of the whole corpus, each with how often it occurs: what vocabularies are
trained on. For corpora beyond one machine; python -m bioshards.vocab build counts the same by itself."""


_count_option = functools.partial(Option, group="what is counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsOptions(DocumentsOptions):
    """Options of ``beam run shards_to_words``."""

    input: Annotated[tuple[str, ...], DOCUMENTS_OPTION] = ()
    pretokenizer: Annotated[
        Literal["bert", "white-space"],
        _count_option(
            "what a word is: what BERT takes for one, every punctuation mark apart, or what stands between "
            "white space; as written, not in lower case (default: %(default)s)"
        ),
    ] = "bert"
    validation_fraction: Annotated[
        float,
        _count_option(
            "fraction of documents whose words are counted apart, in validation-words.tsv (default: none)",
            metavar="FRACTION",
            parse=fraction,
        ),
    ] = 0.0
    seed: Annotated[
        int,
        _count_option(
            "with a document's PMID, or its id where it has none, it decides whether that one is held out "
            "(default: %(default)s)",
            parse=int_at_least(0),
        ),
    ] = 0
    min_count: Annotated[
        int,
        _count_option(
            "leave rarer words out of words.tsv; the manifest says how many (default: %(default)s)",
            parse=int_at_least(1),
        ),
    ] = 1


def build(pipeline: beam.Pipeline, job: WordsJob) -> None:
    """Build the graph: count every shard, merge the counts of each bucket, publish one sorted list."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.pipelines.transforms.word_counting import CountShards, MergeBuckets, PublishWords

    shards = [
        (document_input.folder, shard) for document_input in job.inputs for shard in document_input.shards
    ]
    shards.sort(key=lambda folder_and_shard: -folder_and_shard[1].bytes)  # so that workers end together
    counted = (
        pipeline
        | "Shards" >> beam.Create(shards, reshuffle=False)
        | "CountShards" >> CountShards(job.storage, job.output_dir, job.count_config)
    )
    merged = counted | "MergeBuckets" >> MergeBuckets(job.storage, job.output_dir, job.min_count)
    inputs = [document_input.summary for document_input in job.inputs]
    counted | "Publish" >> PublishWords(job.storage, job.output_dir, job.config, inputs, job.run_info, merged)


def make_parser() -> Parser[WordsOptions]:
    """Make the parser of ``beam run shards_to_words``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, WordsOptions)
