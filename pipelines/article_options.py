"""The options of ``beam run pmc_to_shards``, and the rules that they make."""

from __future__ import annotations

import argparse
from typing import Any, Final

from bioshards.corpus.article_rules import DEFAULT_PARTS, OPTIONAL_PARTS, ArticleRules
from bioshards.corpus.download import europepmc, pmc_bucket
from bioshards.corpus.presets import ARTICLE_PRESETS

from .bucket import add_connections, add_licences, add_servers
from .options import Parser, add_download, add_local, add_shared
from .text_options import add_dedup, add_exclude, add_text, with_options
from .values import all_but, at_least, names, some_of

NAME: Final = "pmc_to_shards"
DESCRIPTION: Final = """\
Full-text articles (JATS XML: PMC's bucket, Europe PMC's packages, files and archives of them) to document
shards: the newest version of each article, all of its text but the references, split into sentences, in Arrow
files with a manifest."""
INPUT: Final = """\
a folder, a file or a quoted glob, also on gs:// or s3://: articles (.xml, .nxml, .xml.gz), archives of them
(.tar.gz, .tar, .zip), Europe PMC's packages (PMC1_PMC20000.xml.gz), a mirror's pmc folder; or a source to
fetch, by name: pmc: or 'pmc:[11000000-11010000]' (ids, in whole ranges of 10,000), europepmc:,
'europepmc:[-3:]'; may be given several times (default: the sample that comes with bioshards)"""


def parser() -> Parser:
    """The options of ``beam run pmc_to_shards``."""
    parser = Parser(f"beam run {NAME}", DESCRIPTION)
    add_shared(parser, sorted(ARTICLE_PRESETS), INPUT)
    add_local(parser, "articles, and of packages and archives,")
    add_download(parser, "mirror, beside the output")
    rules = parser.add_argument_group(
        "which articles, and what of them (defaults: every English article with a body and a free licence)"
    )
    add_licences(rules, None)
    rules.add_argument(
        "--languages",
        type=names,
        metavar="CODES",
        help="keep articles in any of these languages: MARC codes, comma-separated; '' for all "
        "(default: eng)",
    )
    parts = rules.add_mutually_exclusive_group()
    parts.add_argument(
        "--sections",
        type=some_of(OPTIONAL_PARTS),
        metavar="NAMES",
        help=f"these parts only, comma-separated, or all (default: all but "
        f"{', '.join(part for part in OPTIONAL_PARTS if part not in DEFAULT_PARTS)}): "
        f"{', '.join(OPTIONAL_PARTS)}",
    )
    parts.add_argument(
        "--no-sections",
        type=all_but(DEFAULT_PARTS),
        dest="sections",
        metavar="NAMES",
        help="the default parts but these (boilerplate: who did what, who paid, who approved, where data "
        "are)",
    )
    rules.add_argument("--min-words", type=at_least(0), metavar="WORDS", help="drop documents of fewer words")
    rules.add_argument(
        "--drop-article-types",
        type=names,
        metavar="TYPES",
        help="drop articles of any of these, comma-separated, as JATS' article-type has them "
        "(correction,retraction,book-review)",
    )
    for option, text in (
        ("drop-retracted", "drop retracted articles (default: keep them, marked in the column retracted)"),
        ("keep-ocr", "keep articles that were read from scanned pages (default: no)"),
        ("keep-bodiless", "keep articles of which there is an abstract only (default: no)"),
        ("titles", "begin the text with the title (default: yes; the title column is there either way)"),
        ("section-labels", "give each section's heading a line of its own in the text (default: no)"),
        ("author-year", "leave citations by name and year in the text (default: yes; numbers never stay)"),
    ):
        rules.add_argument(f"--{option}", action=argparse.BooleanOptionalAction, help=text)
    rules.add_argument(
        "--formula",
        metavar="TEXT",
        help="what stands for a displayed formula (default: nothing)",
    )
    add_dedup(rules, "title and text", "PMCID")
    add_exclude(rules)
    rules.add_argument(
        "--drop-in",
        metavar="DIR",
        help="a finished output of pubmed_to_shards: its abstracts that the articles hold in full are listed "
        "in DIR/overlap.arrow of this output, so that both can be used without reading an abstract twice",
    )
    add_connections(rules)
    add_text(parser)
    add_servers(parser, {"europepmc": europepmc.URL, "pmc": pmc_bucket.URL})
    return parser


def rules_of(options: Any) -> ArticleRules:
    """The preset's rules, with what the command line says instead.

    Raises:
        UsageError: options that contradict each other.
    """
    return with_options(ARTICLE_PRESETS[options.preset] if options.preset else ArticleRules(), options)
