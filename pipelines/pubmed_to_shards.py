"""PubMed citation XML to document shards: ``beam run pubmed_to_shards``.

The recipe is :func:`build`.  Around it: the options and where the inputs come from.
"""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from bioshards.corpus import cleaning, splitters
from bioshards.corpus.download import pubmed
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.presets import PRESETS
from bioshards.corpus.rules import Rules
from bioshards.corpus.sources import Source
from bioshards.corpus.workspace import Workspace

from .fetching import Fetching
from .options import (
    Parser,
    UsageError,
    add_download,
    add_local,
    add_shared,
    address,
    all_but,
    at_least,
    names,
    some_of,
)

if TYPE_CHECKING:
    import apache_beam as beam

DESCRIPTION = """\
PubMed citation XML (baseline and update files, any mixture) to document shards: the latest version of
each citation, cleaned of markup, split into sentences, in Arrow files with a manifest."""


@dataclass(frozen=True)
class Job:
    """Everything a run is made of: ``sources`` are here, those ``wanted`` are to be fetched first."""

    files: LocalFiles
    work: Workspace
    sources: list[Source]
    wanted: list[Remote]
    fetching: Fetching | None
    rules: Rules
    keep_dropped: bool
    dedup: str
    max_shard_bytes: int
    max_rejected: float
    config: dict[str, Any]
    run: dict[str, Any]


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
        fetched = wanted | "FetchAndStage" >> FetchAndStage(job.fetching, stage)
        staged = (staged, fetched) | "Staged" >> beam.Flatten()
    decided = staged | "DecideVersions" >> DecideVersions(job.files, job.work)
    if job.dedup == "exact":
        duplicates = staged | "DecideDuplicates" >> DecideDuplicates(job.files, job.work, decided)
        decided = (decided, duplicates) | "Decided" >> beam.Flatten()
    finished = staged | "FinishShards" >> FinishShards(
        job.files, job.work, job.keep_dropped, job.max_shard_bytes, decided
    )
    staged | "Publish" >> Publish(
        job.files, job.work, job.rules, job.config, job.max_rejected, job.run, finished
    )


def parser() -> Parser:
    """The options of ``beam run pubmed_to_shards``."""
    parser = Parser("beam run pubmed_to_shards", DESCRIPTION)
    add_shared(parser, sorted(PRESETS))
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
    rules.add_argument(
        "--dedup",
        choices=["none", "exact"],
        default="none",
        help="exact: of documents with the same title and abstract (case, spacing and punctuation apart) "
        "keep the one of the lowest PMID; DIR/duplicates.tsv lists the others (default: %(default)s)",
    )
    _add_text(parser)
    return parser


def _add_text(parser: Parser) -> None:
    """The options of what becomes of the text: cleaning, sentences, and how the papers write them."""
    text = parser.add_argument_group("what becomes of the text (default: cleaned and split, else as written)")
    clean = text.add_mutually_exclusive_group()
    clean.add_argument(
        "--clean",
        type=some_of(cleaning.NAMES),
        dest="cleaning",
        metavar="NAMES",
        help="apply only these cleaning rules, comma-separated, or none (default: all: "
        f"{', '.join(cleaning.NAMES)})",
    )
    clean.add_argument(
        "--no-clean",
        type=all_but(cleaning.NAMES),
        dest="cleaning",
        metavar="NAMES",
        help="apply all cleaning rules but these",
    )
    text.add_argument(
        "--splitter",
        choices=splitters.NAMES,
        help="what finds sentences: rules (default), scispacy (needs bioshards[scispacy]; en_core_sci_sm if "
        "that is installed), or none (a line for each paragraph)",
    )
    for option, what in (
        ("lower-case", "write sentences in lower case (default: no)"),
        ("ascii-only", "replace each run of non-ASCII characters by a blank (default: no)"),
        (
            "treebank",
            "write Penn Treebank tokens, blanks between them (default: no; needs bioshards[treebank])",
        ),
    ):
        text.add_argument(f"--{option}", action=argparse.BooleanOptionalAction, help=what)
    text.add_argument(
        "--min-line-characters",
        type=at_least(0),
        metavar="N",
        help="leave out sentences of fewer characters, as they would be written",
    )


def rules_of(options: Any) -> Rules:
    """The preset's rules, with what the command line says instead.

    Raises:
        UsageError: options that contradict each other.
    """
    preset = PRESETS[options.preset] if options.preset else Rules()
    given = {
        field.name: getattr(options, field.name)
        for field in dataclasses.fields(Rules)
        if getattr(options, field.name) is not None
    }
    try:
        return dataclasses.replace(preset, **given)
    except ValueError as error:
        raise UsageError(str(error)) from error


def sample() -> str:
    """The folder of the sample that comes with bioshards: 112 records, all of them invented."""
    return str(resources.files("bioshards.corpus") / "sample" / "pubmed")
