"""Recipes of vocabularies, those of the papers with their sources."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from tokenizers.normalizers import Normalizer

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer import alphabet, hugging_face
from bioshards.vocab.tokenizer.pretokenizer import Casing, PretokenizeFn, Pretokenizer
from bioshards.vocab.tokenizer.wordpiece import SPECIAL_TOKENS

Algorithm = Literal["bpe", "unigram", "wordpiece"]
ALGORITHMS: Final = get_args(Algorithm)
_ENTITY_PLACEHOLDER: Final = re.compile(r"(?!\[|<)(?=.*[^\w\s])\S+")
"""A placeholder has a punctuation mark, so that it splits no ordinary word, and does not look special."""


@dataclass(frozen=True, slots=True)
class VocabularyRecipe:
    """Recipe of a vocabulary.

    Attributes:
        algorithm: ``bpe`` or ``unigram`` of SentencePiece, or ``wordpiece`` of tokenizers.
        size: number of pieces, reserved tokens included.
        lower_case: True if words are lowercased.
        strip_accents: True if accents are removed.
        sentencepiece: keep the SentencePiece model for ALBERT's tokenizer instead of converting it to
            WordPiece. Words are those between white space, with their punctuation.
        character_coverage: fraction of all characters that the most frequent ones of the alphabet reach.
        num_unused_tokens: number of ``[unusedN]`` tokens after ``[PAD]``, reserved for later use.
        entity_placeholders: tokens such as ``@GENE$`` that stand for entities in relation extraction; each is
            one token and is never split.
        sort_by_collation: sort pieces in dictionary order instead of the order of training.
        as_published: reproduce the paper with its defects.  Words are those between white space, although
            BERT's pre-tokenization splits them; characters are chosen by ``character_coverage`` alone, each
            in both forms; unreachable pieces are kept.  The preprocessing of the texts is unknown and not
            reproduced: Bio-ELECTRA's was tokenized by its authors' own tools.
    """

    algorithm: Algorithm = "bpe"
    size: int = 30_522
    lower_case: bool = True
    strip_accents: bool = True
    sentencepiece: bool = False
    character_coverage: float = 0.99999
    num_unused_tokens: int = 0
    entity_placeholders: tuple[str, ...] = ()
    sort_by_collation: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidValueError(f"--algorithm {self.algorithm} is not one of {', '.join(ALGORITHMS)}")
        if self.sentencepiece and self.algorithm != "unigram":
            raise InvalidValueError("--sentencepiece keeps a unigram model: give --algorithm unigram")
        if not 0.98 <= self.character_coverage <= 1:
            raise InvalidValueError(f"--character-coverage {self.character_coverage} is not from 0.98 to 1")
        if self.num_unused_tokens < 0:
            raise InvalidValueError(f"--num-unused-tokens {self.num_unused_tokens} is below 0")
        for placeholder in self.entity_placeholders:
            if not _ENTITY_PLACEHOLDER.fullmatch(placeholder):
                raise InvalidValueError(
                    f"--entity-placeholders: {placeholder!r} is invalid; give words with "
                    "a punctuation mark, such as @GENE$"
                )
        if len(set(self.entity_placeholders)) < len(self.entity_placeholders):
            raise InvalidValueError("--entity-placeholders: a token is repeated")
        if self.size < self.min_size:
            raise InvalidValueError(
                f"--size {self.size:,} has no room for the {len(self.reserved_tokens):,} reserved tokens "
                f"and the smallest alphabet, printable ASCII and Greek: give {self.min_size:,} or more"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for a manifest."""
        return {**dataclasses.asdict(self), "entity_placeholders": list(self.entity_placeholders)}

    @property
    def casing(self) -> Casing:
        """Casing of the vocabulary."""
        return Casing(self.lower_case, self.strip_accents)

    @property
    def pretokenizer(self) -> str:
        """Pretokenizer of the words to count, one of ``word_counts.PRETOKENIZERS``."""
        return "white-space" if self.sentencepiece or self.has_unsplit_words else "bert"

    @property
    def has_unsplit_words(self) -> bool:
        """True if it is trained on words that BERT's pre-tokenization splits."""
        return self.as_published and self.algorithm != "wordpiece" and not self.sentencepiece

    @property
    def reserved_tokens(self) -> list[str]:
        """Tokens with the first ids, in order; with [unused] tokens, the layout of SciVocab."""
        pad_token, *other_special_tokens = (
            hugging_face.ALBERT_SPECIAL_TOKENS if self.sentencepiece else SPECIAL_TOKENS
        )
        unused_tokens = [f"[unused{number}]" for number in range(self.num_unused_tokens)]
        if self.sentencepiece:
            return [pad_token, *other_special_tokens, *unused_tokens, *self.entity_placeholders]
        return [pad_token, *unused_tokens, *other_special_tokens, *self.entity_placeholders]

    @property
    def min_size(self) -> int:
        """Smallest size with room for the reserved tokens and the smallest alphabet."""
        min_alphabet = alphabet.build_alphabet({}, 1, self.make_pretokenizer())
        if self.as_published or self.sentencepiece:
            return len(self.reserved_tokens) + (0 if self.as_published else len(min_alphabet.characters))
        return len(self.reserved_tokens) + len(
            list(alphabet.iter_pieces(min_alphabet, self.make_pretokenizer()))
        )

    def make_pretokenizer(self) -> PretokenizeFn:
        """Return the function that turns a counted word into the words to train on."""
        if self.pretokenizer == "bert":
            return Pretokenizer(self.casing)
        normalizer: Normalizer = self.casing.make_normalizer()
        if self.sentencepiece:
            normalizer = hugging_face.make_albert_normalizer(self.casing)
        return lambda word: normalizer.normalize_str(word).split()


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
    "bioalbert": VocabularyRecipe(algorithm="unigram", size=30_000, sentencepiece=True),
    # PubMedBERT (Gu et al. 2020, on vocabularies): WordPiece on PubMed's abstracts, uncased; its size is
    # not reported, the published model's configuration has 30,522.
    "pubmedbert": VocabularyRecipe(algorithm="wordpiece"),
}

PUBLISHED_COVERAGE: Final = {"bio-electra": 0.9995, "electramed": 0.9999, "bioalbert": 0.99995}


def get_preset(name: str, as_published: bool) -> VocabularyRecipe:
    """Return the recipe of a paper, corrected or with its defects."""
    recipe = PRESETS[name]
    if not as_published:
        return recipe
    return replace(
        recipe, as_published=True, character_coverage=PUBLISHED_COVERAGE.get(name, recipe.character_coverage)
    )
