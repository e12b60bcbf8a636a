"""Document shards to exact counts of their words: ``beam run shards_to_words``.

The recipe is :func:`build`.  Around it: the options.  What it runs, ``bioshards.vocab``, needs libraries of
an extra, so that nothing of it is imported before a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import WordsRun
from bioshards.corpus.workspace import Workspace

from .from_documents import add_folders, of_extra
from .options import Parser, add_workers
from .values import at_least, share

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.vocab.counts import Counting
    from bioshards.vocab.inputs import Documents

NAME: Final = "shards_to_words"
DESCRIPTION: Final = """\
Document shards to the words of the whole corpus, each with how often it occurs: what vocabularies are
trained on. For corpora beyond one machine; python -m bioshards.vocab build counts the same by itself."""


@dataclass(frozen=True)
class Job:
    """Everything a run is made of."""

    files: LocalFiles
    work: Workspace
    inputs: list[Documents]
    counting: Counting
    min_count: int
    config: dict[str, Any]
    run: WordsRun

    @property
    def items(self) -> int:
        """How many shards are counted."""
        return sum(len(documents.shards) for documents in self.inputs)


def build(root: beam.Pipeline, job: Job) -> None:
    """The pipeline: count every shard, merge the counts bucket by bucket, publish one sorted list."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from .words_transforms import CountShards, MergeBuckets, PublishWords

    shards = [(documents.folder, shard) for documents in job.inputs for shard in documents.shards]
    counted = (
        root
        | "Shards" >> beam.Create(shards, reshuffle=False)
        | "CountShards" >> CountShards(job.files, job.work, job.counting)
    )
    merged = counted | "MergeBuckets" >> MergeBuckets(job.files, job.work, job.min_count)
    inputs = [documents.summary for documents in job.inputs]
    counted | "Publish" >> PublishWords(job.files, job.work, job.config, inputs, job.run, merged)


def parser() -> Parser:
    """The options of ``beam run shards_to_words``."""
    parser = Parser("beam run shards_to_words", DESCRIPTION)
    add_folders(parser)
    words = parser.add_argument_group("what is counted")
    words.add_argument(
        "--words",
        choices=["bert", "white-space"],
        default="bert",
        help="what a word is: what BERT takes for one, every punctuation mark apart, or what stands between "
        "white space; as written, not in lower case (default: %(default)s)",
    )
    words.add_argument(
        "--hold-out",
        type=share,
        metavar="SHARE",
        default=0.0,
        help="share of documents whose words are counted apart, in validation-words.tsv (default: none)",
    )
    words.add_argument(
        "--seed",
        type=at_least(0),
        metavar="N",
        default=0,
        help="with a document's PMID, or its id where it has none, it decides whether that one is held out "
        "(default: %(default)s)",
    )
    words.add_argument(
        "--min-count",
        type=at_least(1),
        metavar="N",
        default=1,
        help="leave rarer words out of words.tsv; the manifest says how many (default: %(default)s)",
    )
    add_workers(parser)
    return parser


def run(parser: Parser, options: Any, rest: Sequence[str], arguments: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code.

    Raises:
        MissingExtraError: a library of the extra is not installed.
    """
    code: int = of_extra(NAME, "words_job").run(parser, options, rest, arguments)
    return code
