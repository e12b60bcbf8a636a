"""The options of ``beam run pmc_to_shards``."""

from __future__ import annotations

import argparse
from typing import Final

from bioshards.corpus.document_presets import PMC_PRESETS
from bioshards.corpus.download.source_registry import SOURCES, list_source_names
from bioshards.corpus.jats.filters import DEFAULT_ARTICLE_PARTS, OPTIONAL_ARTICLE_PARTS, PmcConfig
from bioshards.corpus.jats.in_text_citations import CITATION_MASK, CITATION_MODES
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES

from .argument_types import (
    article_type_list,
    int_at_least,
    language_list,
    nonempty_subset_of,
    subset_of,
)
from .common import add_download_options, add_server_options
from .parser import Parser
from .shard_options import add_reject_options, add_shard_options
from .text_options import add_dedup_option, add_exclusion_option, add_text_options, override_config

NAME: Final = "pmc_to_shards"
PMC_DESCRIPTION: Final = """\
Full-text articles (JATS XML: PMC's bucket, Europe PMC's packages, files and archives of them) to document
shards: the newest version of each article, all of its text but the references, split into sentences, in Arrow
files with a manifest."""
INPUT_HELP: Final = f"""\
a folder, a file or a quoted glob, also on gs:// or s3://: articles (.xml, .nxml, .xml.gz), archives of them
(.tar.gz, .tar, .zip), Europe PMC's packages (PMC1_PMC20000.xml.gz), a mirror's pmc folder; or a source to
fetch, by name: {"; ".join(SOURCES[name].usage for name in list_source_names("articles"))}
(numbers for pmc: are ids, in whole ranges of 10,000); repeatable
(default: the sample that comes with bioshards)"""


def make_parser() -> Parser:
    """Make the parser of ``beam run pmc_to_shards``."""
    parser = Parser(f"beam run {NAME}", PMC_DESCRIPTION)
    add_shard_options(parser, sorted(PMC_PRESETS), INPUT_HELP)
    add_reject_options(parser, "articles", "packages and archives")
    add_download_options(parser, "mirror, beside the output")
    documents = parser.add_argument_group(
        "which articles, and what of them (defaults: every English article with a body and a free licence)"
    )
    add_licence_option(documents, None)
    documents.add_argument(
        "--languages",
        type=language_list,
        metavar="CODES",
        help="keep articles in any of these languages: MARC codes, comma-separated; '' for all "
        "(default: eng)",
    )
    documents.add_argument(
        "--include-parts",
        type=subset_of(OPTIONAL_ARTICLE_PARTS),
        dest="parts",
        metavar="NAMES",
        help=f"these parts only, comma-separated, or all (default: all but "
        f"{', '.join(part for part in OPTIONAL_ARTICLE_PARTS if part not in DEFAULT_ARTICLE_PARTS)}): "
        f"{', '.join(OPTIONAL_ARTICLE_PARTS)} (boilerplate: who did what, who paid, who approved, where data "
        "are)",
    )
    documents.add_argument(
        "--min-words", type=int_at_least(0), metavar="WORDS", help="drop documents of fewer words"
    )
    documents.add_argument(
        "--drop-article-types",
        type=article_type_list,
        metavar="TYPES",
        help="drop articles of any of these, comma-separated, as JATS' article-type has them "
        "(correction,retraction,book-review)",
    )
    for option, help_text in (
        ("drop-retracted", "drop retracted articles (default: keep them, marked in the column retracted)"),
        ("keep-ocr", "keep articles that were read from scanned pages (default: no)"),
        ("keep-abstract-only", "keep articles of which there is an abstract only (default: no)"),
        (
            "translations",
            "read an article in another language in its full translation into one of --languages, if it has "
            "one (default: yes; its id and metadata stay the article's)",
        ),
        ("titles", "begin the text with the title (default: yes; the title column is there either way)"),
        ("section-labels", "give each section's heading a line of its own in the text (default: no)"),
        (
            "salvage",
            "use the whole articles of an archive or a package that is truncated, or has damaged members or "
            "bombs, and list what is lost in DIR/rejected (default: no; it is rejected as a whole)",
        ),
        (
            "author-year-citations",
            "leave citations by name and year in the text (default: yes; --citations is about numbers)",
        ),
    ):
        documents.add_argument(f"--{option}", action=argparse.BooleanOptionalAction, help=help_text)
    documents.add_argument(
        "--citations",
        choices=CITATION_MODES,
        help="what becomes of citations by number: keep them as printed, drop them all, or mask those that "
        f"their sentence needs as a noun (as shown in {CITATION_MASK}) and drop the others (default: mask)",
    )
    documents.add_argument(
        "--formula-placeholder",
        metavar="TEXT",
        help="what stands for a displayed formula (default: nothing)",
    )
    add_dedup_option(documents, "title and text", "PMCID")
    add_exclusion_option(documents)
    documents.add_argument(
        "--find-overlap-with",
        metavar="DIR",
        help="a finished output of pubmed_to_shards: its abstracts that the articles hold in full are listed "
        "in DIR/overlap.arrow of this output, so that both can be used without reading an abstract twice",
    )
    add_connection_option(documents)
    add_text_options(parser)
    add_server_options(parser, list_source_names("articles"))
    return parser


def config_from_args(args: argparse.Namespace) -> PmcConfig:
    """Return the preset's configuration, overridden by the arguments.

    Raises:
        UsageError: options contradict each other.
    """
    return override_config(PMC_PRESETS[args.preset] if args.preset else PmcConfig(), args)


def add_licence_option(group: argparse._ArgumentGroup, default: tuple[str, ...] | None) -> None:
    """Add ``--licences``; ``default`` is None where a preset may set it."""
    group.add_argument(
        "--licences",
        type=nonempty_subset_of(tuple(LICENCES)),
        metavar="CODES",
        default=default,
        help=f"comma-separated, of {', '.join(LICENCES)}, or all (default: "
        f"{','.join(sorted(DEFAULT_LICENCES))}, which permit everybody any use, and passing on changed text)",
    )


def add_connection_option(group: argparse._ArgumentGroup) -> None:
    """Add ``--connections``."""
    group.add_argument(
        "--connections",
        type=int_at_least(1),
        metavar="N",
        default=64,
        help="to PMC's bucket, of all workers together (default: %(default)s)",
    )
