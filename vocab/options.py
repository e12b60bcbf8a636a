"""The options of ``python -m bioshards.vocab``, without slow imports: ``--help`` answers at once."""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.ui.options import Argument, Option, Overrides
from bioshards.vocab.training.vocabulary_recipes import PRESETS, Algorithm, VocabularyRecipe, get_preset


class Baseline(NamedTuple):
    """Another vocabulary to compare with: its name in the report, and its path."""

    name: str
    path: str


def _parse_baseline(text: str) -> Baseline:
    name, separator, path = text.partition("=")
    if not (name and separator and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH, as in SciBERT=scivocab/vocab.txt")
    return Baseline(name, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """What a report compares the vocabulary with; options of all commands.

    Attributes:
        command: command line, for the manifest.
    """

    compare: Annotated[
        tuple[Baseline, ...],
        Option(
            "another vocabulary: a vocab.txt, a tokenizer.json, a spiece.model or a folder with one of "
            "them; repeatable",
            group="report",
            metavar="NAME=PATH",
            parse=_parse_baseline,
            many="repeat",
        ),
    ] = ()
    benchmark_texts: Annotated[
        str | None,
        Option(
            "texts of evaluation sets, by python -m bioshards.evaluate texts, to measure input lengths",
            group="report",
            metavar="DIR",
        ),
    ] = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions(ReportOptions):
    """The options of ``report``."""

    folder: Annotated[str, Argument("finished vocabulary", metavar="VOCAB")]


_recipe_option = functools.partial(Option, group="vocabulary")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions(ReportOptions):
    """The options of ``build``."""

    folders: Annotated[
        tuple[str, ...],
        Argument(
            "finished output of pubmed_to_shards, pmc_to_shards, text_to_shards or shards_to_words",
            metavar="DIR",
        ),
    ]
    output: Annotated[str, Option("directory to write", metavar="VOCAB")]
    preset: Annotated[
        str | None,
        _recipe_option("corrected recipe of a paper; other options override it", choices=tuple(PRESETS)),
    ] = None
    as_published: Annotated[bool, _recipe_option("with --preset: the paper's recipe with its defects")] = (
        False
    )
    algorithm: Annotated[
        Algorithm | None,
        _recipe_option("bpe (default) and unigram of SentencePiece, or wordpiece of tokenizers"),
    ] = None
    size: Annotated[
        int | None, _recipe_option("number of pieces, special tokens included (default: 30522)")
    ] = None
    cased: Annotated[bool, _recipe_option("keep case (default: lower case)")] = False
    strip_accents: Annotated[
        bool | None, _recipe_option("strip accents from letters (default: yes, unless --cased)")
    ] = None
    sentencepiece: Annotated[
        bool, _recipe_option("with --algorithm unigram: keep the SentencePiece model, for ALBERT")
    ] = False
    character_coverage: Annotated[
        float | None,
        _recipe_option(
            "fraction of the characters of the text that get a piece (default: 0.99999)", metavar="FRACTION"
        ),
    ] = None
    num_unused_tokens: Annotated[int | None, _recipe_option("number of [unusedN] tokens (default: 0)")] = None
    entity_placeholders: Annotated[
        str | None,
        _recipe_option(
            "comma-separated tokens that are never split: '@GENE$,@CHEMICAL$,@DISEASE$'", metavar="TOKENS"
        ),
    ] = None
    min_count: Annotated[
        int | None,
        Option(
            "leave out words with fewer occurrences, counted as written (default: keep the 4 million most "
            "frequent words)",
            group="words",
        ),
    ] = None
    validation_fraction: Annotated[
        float,
        Option(
            "fraction of documents to measure on instead of training (default: 0)",
            group="words",
            metavar="FRACTION",
        ),
    ] = 0.0
    seed: Annotated[int, Option("seed of the validation split (default: 0)", group="words")] = 0

    def make_recipe(self) -> VocabularyRecipe:
        """Return the preset's recipe, changed by the options.

        Raises:
            InvalidValueError: options contradict each other or are out of range.
        """
        if self.as_published and not self.preset:
            raise InvalidValueError(
                f"--as-published needs a paper: give --preset, one of {', '.join(PRESETS)}"
            )
        placeholders = self.entity_placeholders
        changes = {
            "algorithm": self.algorithm,
            "size": self.size,
            "lower_case": False if self.cased else None,
            "strip_accents": False if self.cased and self.strip_accents is None else self.strip_accents,
            "sentencepiece": self.sentencepiece or None,
            "character_coverage": self.character_coverage,
            "num_unused_tokens": self.num_unused_tokens,
            "entity_placeholders": placeholders and tuple(filter(None, placeholders.split(","))),
        }
        overrides: Overrides[VocabularyRecipe] = Overrides(
            {name: value for name, value in changes.items() if value is not None}
        )
        return overrides.apply(
            get_preset(self.preset, self.as_published) if self.preset else VocabularyRecipe()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptOptions(ReportOptions):
    """The options of ``adopt``."""

    path: Annotated[
        str,
        Argument(
            "a vocab.txt (BERT, ELECTRA), a spiece.model (ALBERT), a tokenizer.json, or the folder of a "
            "Hugging Face model with one of them",
            metavar="PATH",
        ),
    ]
    output: Annotated[str, Option("directory to write", metavar="VOCAB")]
    cased: Annotated[
        bool | None,
        "keep case (default: what tokenizer_config.json or tokenizer.json says; else lower case for "
        "SentencePiece, and whether pieces have capitals for vocab.txt)",
    ] = None
    strip_accents: Annotated[
        bool | None,
        "strip accents from letters (default: what those files say; else yes for SentencePiece, and "
        "for vocab.txt if it is lower case)",
    ] = None
