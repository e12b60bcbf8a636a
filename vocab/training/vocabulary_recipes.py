"""Which vocabulary to build, as data, and those of the papers: each number with where it is written."""

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
"""A dummy has a mark, or it would take ordinary words apart, and looks like no special token."""


@dataclass(frozen=True, slots=True)
class VocabularyRecipe:
    """A vocabulary to build.

    Attributes:
        algorithm: ``bpe`` or ``unigram`` of the SentencePiece library, ``wordpiece`` of the tokenizers
            library.
        size: pieces, the reserved ones among them.
        lower_case: are words in lower case?
        strip_accents: are letters without their accents?
        sentencepiece: keep the SentencePiece model as it is, to be used by Albert's tokenizer, and do not
            turn it into WordPiece.  Its words are those between white space, marks with them.
        coverage: the alphabet has the most frequent characters that are this share of all (alphabet.py).
        unused: so many ``[unusedN]`` after ``[PAD]``, for whoever needs new tokens later.
        entity_placeholders: what stands for an entity in tasks on relations, ``@GENE$``: one token each, never split.
        sort_by_collation: are pieces ordered as in a dictionary, and not as they were learned?
        as_published: as the paper's authors did it, with the faults: words are what stands between white
            space, though BERT's pre-tokenisation will take them apart; no character is looked after but by
            ``coverage``, each in both forms; no piece is passed over.  What the texts went through before is
            not known and not done: Bio-ELECTRA's was in tokens of the authors' own.
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
            raise InvalidValueError(f"--algorithm {self.algorithm} is none of {', '.join(ALGORITHMS)}")
        if self.sentencepiece and self.algorithm != "unigram":
            raise InvalidValueError(
                "--sentencepiece keeps a unigram model, for Albert: give --algorithm unigram with it"
            )
        if not 0.98 <= self.character_coverage <= 1:
            raise InvalidValueError(f"--character-coverage {self.character_coverage} is not from 0.98 to 1")
        if self.num_unused_tokens < 0:
            raise InvalidValueError(f"--num-unused-tokens {self.num_unused_tokens} is below 0")
        for placeholder in self.entity_placeholders:
            if not _ENTITY_PLACEHOLDER.fullmatch(placeholder):
                raise InvalidValueError(
                    f"--entity-placeholders: {placeholder!r} cannot be one; it must be a word with a mark, like @GENE$"
                )
        if len(set(self.entity_placeholders)) < len(self.entity_placeholders):
            raise InvalidValueError("--entity-placeholders: one is there twice")
        if self.size < self.min_size:
            raise InvalidValueError(
                f"--size {self.size:,} has no room for the {len(self.reserved_tokens):,} reserved tokens "
                "and the "
                f"smallest alphabet, printable ASCII and Greek: give {self.min_size:,} or more"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a manifest."""
        return {**dataclasses.asdict(self), "entity_placeholders": list(self.entity_placeholders)}

    @property
    def casing(self) -> Casing:
        """What becomes of letters."""
        return Casing(self.lower_case, self.strip_accents)

    @property
    def pretokenizer(self) -> str:
        """Which words are to be counted for it, one of ``counts.KINDS``."""
        return "white-space" if self.sentencepiece or self.has_unsplit_words else "bert"

    @property
    def has_unsplit_words(self) -> bool:
        """Is it trained on words that BERT's pre-tokenisation takes apart?"""
        return self.as_published and self.algorithm != "wordpiece" and not self.sentencepiece

    @property
    def reserved_tokens(self) -> list[str]:
        """What has the first ids, in their order; SciVocab's layout if there are [unused] ones."""
        pad_token, *other_special_tokens = (
            hugging_face.ALBERT_SPECIAL_TOKENS if self.sentencepiece else SPECIAL_TOKENS
        )
        unused_tokens = [f"[unused{number}]" for number in range(self.num_unused_tokens)]
        if self.sentencepiece:
            return [pad_token, *other_special_tokens, *unused_tokens, *self.entity_placeholders]
        return [pad_token, *unused_tokens, *other_special_tokens, *self.entity_placeholders]

    @property
    def min_size(self) -> int:
        """The smallest size there is room in for what is reserved and the letters that are always there."""
        min_alphabet = alphabet.build_alphabet({}, 1, self.make_pretokenizer())
        if self.as_published or self.sentencepiece:
            return len(self.reserved_tokens) + (0 if self.as_published else len(min_alphabet.characters))
        return len(self.reserved_tokens) + len(
            list(alphabet.iter_pieces(min_alphabet, self.make_pretokenizer()))
        )

    def make_pretokenizer(self) -> PretokenizeFn:
        """What makes of words, as they were counted, those to train on."""
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
    # all others are sorted.  Coverage is not said; SentencePiece's default is 0.9995.
    "bio-electra": replace(_CASED, size=31_620, sort_by_collation=True),
    # ELECTRAMed (Miolo et al. 2021) uses SciVocab, uncased (Beltagy et al. 2019; scripts/cheatsheet.txt of
    # allenai/scibert): SentencePiece BPE, coverage 0.9999, turned into 31,090 WordPieces in the order in
    # which they were learned; [PAD] is 0, 100 [unused] follow, [UNK] [CLS] [SEP] [MASK] are 101 to 104.
    "electramed": VocabularyRecipe(size=31_090, num_unused_tokens=100),
    # BioALBERT (Naseem et al. 2020) uses ALBERT's (Lan et al. 2020; README of google-research/albert):
    # SentencePiece unigram, 30,000, lower case, without accents, coverage 0.99995, used as it is.
    "bioalbert": VocabularyRecipe(algorithm="unigram", size=30_000, sentencepiece=True),
    # PubMedBERT (Gu et al. 2020, on vocabularies): WordPiece on PubMed's abstracts, uncased; its size is
    # not said, the published model's configuration has 30,522.
    "pubmedbert": VocabularyRecipe(algorithm="wordpiece"),
}

PUBLISHED_COVERAGE: Final = {"bio-electra": 0.9995, "electramed": 0.9999, "bioalbert": 0.99995}


def get_preset(name: str, as_published: bool) -> VocabularyRecipe:
    """The recipe of a paper, mended or with its faults."""
    recipe = PRESETS[name]
    if not as_published:
        return recipe
    return replace(
        recipe, as_published=True, character_coverage=PUBLISHED_COVERAGE.get(name, recipe.character_coverage)
    )
