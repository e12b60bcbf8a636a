"""Document shards to exact counts of their words: ``beam run shards_to_words``.

:func:`run` builds the graph.  ``bioshards.vocab`` needs the libraries of an extra and is imported by
the driver only.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from bioshards.corpus.errors import UsageError
from bioshards.corpus.ui.options import Option, fraction, int_at_least
from bioshards.pipelines.options import DocumentsOptions, Parser

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.corpus.manifest import Shard, ValidationWords, WordTotals
    from bioshards.corpus.shards.input_dirs import DocumentsInput
    from bioshards.corpus.ui.progress import StepBar
    from bioshards.pipelines.run import CommandLine, Session
    from bioshards.vocab.counting.count_steps import WordsJob

NAME: Final = "shards_to_words"
DESCRIPTION: Final = """\
Document shards to the words of the whole corpus, each with how often it occurs: what vocabularies are
trained on. For corpora beyond one machine; bioshards vocab build counts the same by itself."""


_count_option = functools.partial(Option, group="what is counted")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsOptions(DocumentsOptions):
    """Options of ``beam run shards_to_words``."""

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

    def check(self) -> None:
        """Check inputs and output, and that documents to count are left."""
        DocumentsOptions.check(self)  # super() does not know the class that slots=True makes
        if self.validation_fraction == 1:
            raise UsageError("--validation-fraction: validation_fraction 1.0 is not in [0, 1)")


def run(options: WordsOptions, line: CommandLine) -> int:
    """Count every shard, merge the counts of each bucket of words, publish one sorted list."""
    # Imported here, so that --help needs neither Beam nor the libraries of the extra.
    from bioshards.corpus.lifecycle.job import is_up_to_date
    from bioshards.corpus.manifest import WordsManifest
    from bioshards.corpus.output import output_layout
    from bioshards.pipelines import documents, dry_run
    from bioshards.pipelines.context import JobSpec
    from bioshards.pipelines.run import check_output, check_published, print_notices
    from bioshards.pipelines.steps import create, each, finish, listed
    from bioshards.vocab.counting import count_steps
    from bioshards.vocab.counting.repeated_ids import describe_repeated_ids

    session = documents.open_documents_session(line, options)
    inputs = documents.load_inputs(session, options)
    shards = [(item.folder, shard) for item in inputs for shard in item.shards]
    job = _make_job(options, session, inputs)
    check_output(job)
    spec = JobSpec(NAME, job.output.path, len(shards), ("vocab",), job.config.library_versions)

    def build(root: beam.Pipeline) -> None:
        # The largest first, so that workers end together.
        largest_first = sorted(shards, key=lambda folder_and_shard: -folder_and_shard[1].bytes)
        counted = each("count", count_steps.count_shard, job, create(root, "shards", largest_first))
        buckets = listed("buckets", count_steps.list_buckets, job, counted)
        merged = each("merge", count_steps.merge_bucket, job, buckets, counted)
        finish("publish", [counted, merged], count_steps.publish, job, counted, merged)

    if options.dry_run:
        reports = job.storage.list_names(job.output.work_path("word_counts"))
        done = [shard for _, shard in shards if f"{shard.sha256}.json" in reports]
        lines = dry_run.describe_shards([shard for _, shard in shards], job.output.path, "counted", done)
        return dry_run.print_plan(session, lines, build)
    with session.claimed(job, spec):
        if is_up_to_date(job.storage, job.output, WordsManifest, job.inputs_key):
            print(documents.format_finished(job, inputs))
        else:
            output_layout.reset(job.storage, job.output)
            workers = min(options.workers, max(1, len(shards)))
            result = session.execute(job, spec, build, workers, _list_bars(job, shards))
            check_published(result)
            print_notices(describe_repeated_ids(job.storage, inputs))
            _print_summary(job)
    return session.compare(job)


def _list_bars(job: WordsJob, shards: Sequence[tuple[str, Shard]]) -> list[StepBar]:
    from bioshards.corpus.ui.progress import StepBar
    from bioshards.vocab.counting.word_counts import NUM_BUCKETS

    documents = sum(shard.rows for _, shard in shards)
    texts = {"count": f"{{:,}}/{len(shards):,} shards"}
    return [
        StepBar(
            "count", "counting", " documents", documents, "units", texts, job.output.work_path("word_counts")
        ),
        StepBar("merge", "merging the counts", " buckets", NUM_BUCKETS),
        StepBar("publish", "publishing"),
    ]


def _make_job(options: WordsOptions, session: Session, inputs: Sequence[DocumentsInput]) -> WordsJob:
    from bioshards.corpus.manifest import WordsConfig, WordsRun
    from bioshards.corpus.output.output_layout import FORMAT, OutputDir
    from bioshards.pipelines.documents import find_versions
    from bioshards.pipelines.run import make_absolute
    from bioshards.vocab.counting.count_steps import WordsJob

    return WordsJob(
        storage=session.storage,
        output=OutputDir(make_absolute(options.output)),
        config=WordsConfig(
            pipeline=NAME,
            format=FORMAT,
            pretokenizer=options.pretokenizer,
            validation_fraction=options.validation_fraction,
            seed=options.seed,
            min_count=options.min_count,
            library_versions=find_versions(["tokenizers"] if options.pretokenizer == "bert" else []),
        ),
        inputs=tuple(item.summary for item in inputs),
        run=WordsRun(command=session.command, inputs=tuple(folder.rstrip("/") for folder in options.input)),
    )


def _print_summary(job: WordsJob) -> None:
    """Print the numbers of words and documents, and the output files."""
    from bioshards.corpus.manifest import WordsManifest, read_manifest

    manifest = read_manifest(job.storage, job.output.path)
    assert isinstance(manifest, WordsManifest)
    counts = manifest.counts
    print(_format_counts(counts))
    if counts.pruned.distinct_words:
        print(
            f"  {counts.pruned.distinct_words:,} words pruned: fewer than {job.config.min_count} "
            f"occurrences, {counts.pruned.tokens:,} tokens"
        )
    if job.config.validation_fraction:
        print(f"  validation: {_format_counts(counts.validation)}")
    for output in manifest.outputs:
        print(f"{output.file + ':':13} {job.output.path}/{output.file}")
    print(f"{'report:':13} {job.output.manifest_path}")


def _format_counts(counts: WordTotals | ValidationWords) -> str:
    return f"{counts.documents:,} documents, {counts.tokens:,} tokens of {counts.distinct_words:,} words"


def make_parser() -> Parser[WordsOptions]:
    """Make the parser of ``beam run shards_to_words``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, WordsOptions)
