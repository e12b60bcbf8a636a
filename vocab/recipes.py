"""Which vocabulary to build, as data, and those of the papers: each number with where it is written."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from tokenizers.normalizers import Normalizer

from bioshards.corpus.errors import InvalidValueError

from . import alphabet, hugging_face
from .wordpiece import SPECIALS
from .words import Casing, Split, Words

Algorithm = Literal["bpe", "unigram", "wordpiece"]
ALGORITHMS: Final = get_args(Algorithm)
_DUMMY: Final = re.compile(r"(?!\[|<)(?=.*[^\w\s])\S+")
"""A dummy has a mark, or it would take ordinary words apart, and looks like no special token."""


@dataclass(frozen=True, slots=True)
class Recipe:
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
        dummies: what stands for an entity in tasks on relations, ``@GENE$``: one token each, never split.
        by_collation: are pieces ordered as in a dictionary, and not as they were learned?
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
    coverage: float = 0.99999
    unused: int = 0
    dummies: tuple[str, ...] = ()
    by_collation: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise InvalidValueError(f"--algorithm {self.algorithm} is none of {', '.join(ALGORITHMS)}")
        if self.sentencepiece and self.algorithm != "unigram":
            raise InvalidValueError(
                "--sentencepiece keeps a unigram model, for Albert: give --algorithm unigram with it"
            )
        if not 0.98 <= self.coverage <= 1:
            raise InvalidValueError(f"--coverage {self.coverage} is not from 0.98 to 1")
        if self.unused < 0:
            raise InvalidValueError(f"--unused {self.unused} is below 0")
        for dummy in self.dummies:
            if not _DUMMY.fullmatch(dummy):
                raise InvalidValueError(
                    f"--dummies: {dummy!r} cannot be one; it must be a word with a mark, like @GENE$"
                )
        if len(set(self.dummies)) < len(self.dummies):
            raise InvalidValueError("--dummies: one is there twice")
        if self.size < self.least:
            raise InvalidValueError(
                f"--size {self.size:,} has no room for the {len(self.reserved):,} reserved tokens and the "
                f"smallest alphabet, printable ASCII and Greek: give {self.least:,} or more"
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a manifest."""
        return {**dataclasses.asdict(self), "dummies": list(self.dummies)}

    @property
    def casing(self) -> Casing:
        """What becomes of letters."""
        return Casing(self.lower_case, self.strip_accents)

    @property
    def kind(self) -> str:
        """Which words are to be counted for it, one of ``counts.KINDS``."""
        return "white-space" if self.sentencepiece or self.as_published_wordpieces else "bert"

    @property
    def as_published_wordpieces(self) -> bool:
        """Is it trained on words that BERT's pre-tokenisation takes apart?"""
        return self.as_published and self.algorithm != "wordpiece" and not self.sentencepiece

    @property
    def reserved(self) -> list[str]:
        """What has the first ids, in their order; SciVocab's layout if there are [unused] ones."""
        first, *others = hugging_face.ALBERT_SPECIALS if self.sentencepiece else SPECIALS
        unused = [f"[unused{number}]" for number in range(self.unused)]
        if self.sentencepiece:
            return [first, *others, *unused, *self.dummies]
        return [first, *unused, *others, *self.dummies]

    @property
    def least(self) -> int:
        """The smallest size there is room in for what is reserved and the letters that are always there."""
        smallest = alphabet.of({}, 1, self.words())
        if self.as_published or self.sentencepiece:
            return len(self.reserved) + (0 if self.as_published else len(smallest.characters))
        return len(self.reserved) + len(list(alphabet.forms(smallest, self.words())))

    def words(self) -> Split:
        """What makes of words, as they were counted, those to train on."""
        if self.kind == "bert":
            return Words(self.casing)
        normalizer: Normalizer = self.casing.normalizer()
        if self.sentencepiece:
            normalizer = hugging_face.albert_normalizer(self.casing)
        return lambda word: normalizer.normalize_str(word).split()


_CASED = Recipe(lower_case=False, strip_accents=False)

PRESETS: Final[dict[str, Recipe]] = {
    # Bio-ELECTRA (Ozyurt 2020, and the vocabulary file in its repository): cased, SentencePiece BPE on the
    # abstracts of 2017, turned into 31,620 WordPieces; [PAD] [UNK] [CLS] [SEP] [MASK] have the ids 0 to 4,
    # all others are sorted.  Coverage is not said; SentencePiece's default is 0.9995.
    "bio-electra": replace(_CASED, size=31_620, by_collation=True),
    # ELECTRAMed (Miolo et al. 2021) uses SciVocab, uncased (Beltagy et al. 2019; scripts/cheatsheet.txt of
    # allenai/scibert): SentencePiece BPE, coverage 0.9999, turned into 31,090 WordPieces in the order in
    # which they were learned; [PAD] is 0, 100 [unused] follow, [UNK] [CLS] [SEP] [MASK] are 101 to 104.
    "electramed": Recipe(size=31_090, unused=100),
    # BioALBERT (Naseem et al. 2020) uses ALBERT's (Lan et al. 2020; README of google-research/albert):
    # SentencePiece unigram, 30,000, lower case, without accents, coverage 0.99995, used as it is.
    "bioalbert": Recipe(algorithm="unigram", size=30_000, sentencepiece=True),
    # PubMedBERT (Gu et al. 2020, on vocabularies): WordPiece on PubMed's abstracts, uncased; its size is
    # not said, the published model's configuration has 30,522.
    "pubmedbert": Recipe(algorithm="wordpiece"),
}

PUBLISHED_COVERAGE: Final = {"bio-electra": 0.9995, "electramed": 0.9999, "bioalbert": 0.99995}


def preset(name: str, as_published: bool) -> Recipe:
    """The recipe of a paper, mended or with its faults."""
    recipe = PRESETS[name]
    if not as_published:
        return recipe
    return replace(recipe, as_published=True, coverage=PUBLISHED_COVERAGE.get(name, recipe.coverage))
