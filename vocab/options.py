"""Recipes of vocabularies, those of the papers with their sources, and the options of ``bioshards vocab``.

Nothing here waits for the libraries that train, so that a command line is checked at once.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal, NamedTuple, get_args

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.preset_names import explain_absent_presets
from bioshards.corpus.ui.options import Argument, Option, Overrides, int_at_least
from bioshards.vocab.tokenizer import wordpiece
from bioshards.vocab.tokenizer.pretokenizer import Casing

Algorithm = Literal["bpe", "unigram", "wordpiece"]
_ENTITY_PLACEHOLDER: Final = re.compile(r"(?!\[|<)(?=.*[^\w\s])\S+")
"""A placeholder has a punctuation mark, so that it splits no ordinary word, and does not look special."""


def _parse_placeholders(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


@dataclass(frozen=True, slots=True)
class VocabularyRecipe:
    """Recipe of a vocabulary.

    Attributes:
        algorithm: ``bpe`` of SentencePiece or ``wordpiece`` of tokenizers give WordPieces; ``unigram`` of
            SentencePiece gives its model, whose words are those between white space, with their punctuation.
        lower_case: True if words are lowercased.
        strip_accents: True if accents are removed.
        num_unused_tokens: they follow ``[PAD]``, reserved for later use.
        entity_placeholders: these stand for entities in relation extraction.
        sort_by_collation: sort pieces in dictionary order instead of the order of training.
    """

    algorithm: Annotated[
        Algorithm,
        "bpe (default) or wordpiece give WordPieces; unigram gives a SentencePiece model, for ALBERT",
    ] = "bpe"
    size: Annotated[int, "number of pieces, special tokens included (default: 30522)"] = 30_522
    lower_case: bool = True
    strip_accents: bool = True
    character_coverage: Annotated[
        float,
        Option(
            "fraction of the characters of the text that get a piece (default: 0.99999)", metavar="FRACTION"
        ),
    ] = 0.99999
    num_unused_tokens: Annotated[int, "number of [unusedN] tokens (default: 0)"] = 0
    entity_placeholders: Annotated[
        tuple[str, ...],
        Option(
            "comma-separated tokens that are never split: '@GENE$,@CHEMICAL$,@DISEASE$'",
            metavar="TOKENS",
            parse=_parse_placeholders,
        ),
    ] = ()
    sort_by_collation: bool = False

    def __post_init__(self) -> None:
        algorithms = get_args(Algorithm)
        if self.algorithm not in algorithms:
            raise InvalidValueError(f"--algorithm {self.algorithm} is not one of {', '.join(algorithms)}")
        if not 0.98 <= self.character_coverage <= 1:
            raise InvalidValueError(f"--character-coverage {self.character_coverage} is not from 0.98 to 1")
        if self.num_unused_tokens < 0:
            raise InvalidValueError(f"--num-unused-tokens {self.num_unused_tokens} is below 0")
        for placeholder in self.entity_placeholders:
            if not _ENTITY_PLACEHOLDER.fullmatch(placeholder):
                raise InvalidValueError(
                    f"--entity-placeholders: {placeholder!r} is invalid; give words with a punctuation mark, "
                    "such as @GENE$"
                )
        if len(set(self.entity_placeholders)) < len(self.entity_placeholders):
            raise InvalidValueError("--entity-placeholders: a token is repeated")

    @property
    def casing(self) -> Casing:
        """Casing of the vocabulary."""
        return Casing(self.lower_case, self.strip_accents)

    @property
    def is_sentencepiece(self) -> bool:
        """True if the vocabulary is a SentencePiece model."""
        return self.algorithm == "unigram"

    @property
    def pretokenizer(self) -> str:
        """Pretokenizer of the words to count, one of ``word_counts.PRETOKENIZERS``."""
        return "white-space" if self.is_sentencepiece else "bert"

    @property
    def reserved_tokens(self) -> list[str]:
        """Tokens with the first ids, in order; with [unused] tokens, the layout of SciVocab."""
        unused_tokens = [f"[unused{number}]" for number in range(self.num_unused_tokens)]
        if self.is_sentencepiece:
            return [*wordpiece.ALBERT_SPECIAL_TOKENS, *unused_tokens, *self.entity_placeholders]
        pad_token, *other_special_tokens = wordpiece.SPECIAL_TOKENS
        return [pad_token, *unused_tokens, *other_special_tokens, *self.entity_placeholders]


_CASED = VocabularyRecipe(lower_case=False, strip_accents=False)

PRESETS: Final[dict[str, VocabularyRecipe]] = {
    # Bio-ELECTRA (Ozyurt 2020, and the vocabulary file in its repository): cased, SentencePiece BPE on the
    # abstracts of 2017, turned into 31,620 WordPieces; [PAD] [UNK] [CLS] [SEP] [MASK] have the ids 0 to 4,
    # all others are sorted.  Coverage is not reported; SentencePiece's default is 0.9995.
    "bio-electra": replace(_CASED, size=31_620, sort_by_collation=True),
    # ELECTRAMed (Miolo et al. 2021) uses SciVocab, uncased (Beltagy et al. 2019; scripts/cheatsheet.txt of
    # allenai/scibert): SentencePiece BPE, coverage 0.9999, turned into 31,090 WordPieces in the order in
    # which they were learned; [PAD] is 0, 100 [unused] follow, [UNK] [CLS] [SEP] [MASK] are 101 to 104.
    "electramed": VocabularyRecipe(size=31_090, num_unused_tokens=100),
    # BioALBERT (Naseem et al. 2020) uses ALBERT's (Lan et al. 2020; README of google-research/albert):
    # SentencePiece unigram, 30,000, lower case, without accents, coverage 0.99995, used as it is.
    "bioalbert": VocabularyRecipe(algorithm="unigram", size=30_000),
    # PubMedBERT (Gu et al. 2020, on vocabularies): WordPiece on PubMed's abstracts, uncased; its size is
    # not reported, the published model's configuration has 30,522.
    "pubmedbert": VocabularyRecipe(algorithm="wordpiece"),
}


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
            "texts of evaluation sets, by bioshards evaluate texts, to measure input lengths",
            group="report",
            metavar="DIR",
        ),
    ] = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteOptions(ReportOptions):
    """The options of ``report``."""

    folder: Annotated[str, Argument("finished vocabulary", metavar="VOCAB")]


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
        Option(
            "corrected recipe of a paper; other options override it. Bio-ELECTRA++ has bio-electra's",
            group="vocabulary",
            choices=tuple(PRESETS),
            absent_choices=explain_absent_presets(
                {"bio-electra-pp": "it has bio-electra's vocabulary: give that"}
            ),
        ),
    ] = None
    recipe: Annotated[Overrides[VocabularyRecipe], Option(group="vocabulary")] = field(
        default_factory=Overrides
    )
    cased: Annotated[bool, Option("keep case (default: lower case)", group="vocabulary")] = False
    strip_accents: Annotated[
        bool | None,
        Option("strip accents from letters (default: yes, unless --cased)", group="vocabulary"),
    ] = None
    min_count: Annotated[
        int | None,
        Option(
            "leave out words with fewer occurrences, counted as written (default: keep the 4 million most "
            "frequent words)",
            group="words",
            parse=int_at_least(1),
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
            InvalidValueError: a value is out of range.
        """
        recipe = PRESETS[self.preset] if self.preset else VocabularyRecipe()
        if self.cased:
            recipe = replace(recipe, lower_case=False, strip_accents=False)
        if self.strip_accents is not None:
            recipe = replace(recipe, strip_accents=self.strip_accents)
        return self.recipe.apply(recipe)


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
