"""PubMed citation XML to document shards: ``beam run pubmed_to_shards``.

The recipe is :func:`build`.  Around it: the options, and the rules that they make.
"""

from __future__ import annotations

import argparse
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from bioshards.corpus import sources
from bioshards.corpus.download import pubmed
from bioshards.corpus.presets import PRESETS
from bioshards.corpus.rules import Rules

from .inputs import find as find
from .job import Job
from .options import Parser, add_download, add_local, add_shared
from .text_options import add_dedup, add_exclude, add_text, with_options
from .values import address, at_least, names

if TYPE_CHECKING:
    import apache_beam as beam

NAME: Final = "pubmed_to_shards"
DESCRIPTION: Final = """\
PubMed citation XML (baseline and update files, any mixture) to document shards: the latest version of
each citation, cleaned of markup, split into sentences, in Arrow files with a manifest."""

INPUT: Final = """\
a folder, a file or a quoted glob, also on gs:// or s3://; or a source to fetch, by name: pubmed: (NLM's
baseline and update files), 'pubmed:baseline[1-10]', 'pubmed:updates[-3:]', 'pubmed:[since=2026-08-01]'; may
be given several times (default: the sample that comes with bioshards)"""


def build(root: beam.Pipeline, job: Job) -> None:
    """The pipeline: stage every file, decide which documents live, finish the shards, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from .transforms import (
        DecideDuplicates,
        DecideVersions,
        FetchAndStage,
        FinishShards,
        Publish,
        StageFiles,
        lanes,
    )

    stage = StageFiles(job.files, job.work, job.rules, job.keep_dropped, digests=job.dedup == "exact")
    staged = root | "Sources" >> beam.Create(job.sources, reshuffle=False) | "StageFiles" >> stage
    if job.fetching and job.wanted:
        wanted = root | "Lanes" >> beam.Create(lanes(job.wanted, job.fetching), reshuffle=False)
        fetched = wanted | "FetchAndStage" >> FetchAndStage(job.fetching, stage, sources.source)
        staged = (staged, fetched) | "Staged" >> beam.Flatten()
    decided = staged | "DecideVersions" >> DecideVersions(job.files, job.work, job.rules)
    if job.dedup == "exact":
        duplicates = staged | "DecideDuplicates" >> DecideDuplicates(job.files, job.work, decided)
        decided = (decided, duplicates) | "Decided" >> beam.Flatten()
    finished = staged | "FinishShards" >> FinishShards(
        job.files, job.work, job.keep_dropped, job.max_shard_bytes, job.excluded, decided
    )
    staged | "Publish" >> Publish(
        job.files, job.work, job.rules, job.config, job.max_rejected, job.excluded, job.run, decided, finished
    )


def parser() -> Parser:
    """The options of ``beam run pubmed_to_shards``."""
    parser = Parser("beam run pubmed_to_shards", DESCRIPTION)
    add_shared(parser, sorted(PRESETS), INPUT)
    add_local(parser, "records, and of files,")
    add_download(parser, "mirror, beside the output")
    parser.add_argument_group("where NLM's files are").add_argument(
        "--pubmed-url",
        type=address,
        metavar="URL",
        help=f"a server that has them in NLM's layout (default: {pubmed.URL})",
    )
    rules = parser.add_argument_group(
        "which citations, and what of them (defaults: every citation that has an abstract)"
    )
    rules.add_argument(
        "--languages",
        type=names,
        metavar="CODES",
        help="keep articles in any of these languages: MARC codes, comma-separated (eng,fre); "
        "PubMed's titles and abstracts are English for all of them",
    )
    rules.add_argument(
        "--min-abstract-words", type=at_least(0), metavar="WORDS", help="drop abstracts of fewer words"
    )
    rules.add_argument("--min-pmid", type=at_least(0), metavar="PMID", help="drop lower PMIDs")
    rules.add_argument(
        "--drop-publication-types",
        type=names,
        metavar="TYPES",
        help='drop records of any of these types, comma-separated ("Published Erratum,Comment")',
    )
    for option, text in (
        ("drop-retracted", "drop retracted articles (default: keep them, marked in the column retracted)"),
        ("keep-title-only", "keep records without an abstract, as their title alone"),
        ("titles", "begin the text with the title (default: yes; the title column is there either way)"),
        ("section-labels", "begin a section's text with its label, METHODS: ... (default: no)"),
    ):
        rules.add_argument(f"--{option}", action=argparse.BooleanOptionalAction, help=text)
    add_dedup(rules, "title and abstract", "PMID")
    add_exclude(rules)
    add_text(parser)
    return parser


def rules_of(options: Any) -> Rules:
    """The preset's rules, with what the command line says instead.

    Raises:
        UsageError: options that contradict each other.
    """
    return with_options(PRESETS[options.preset] if options.preset else Rules(), options)


def sample() -> str:
    """The folder of the sample that comes with bioshards: 112 records, all of them invented."""
    return str(resources.files("bioshards.corpus") / "sample" / "pubmed")
