"""Pretraining objectives, and recipes of their rows: those of the papers with their sources.

To add an objective: an entry in :data:`OBJECTIVES` and one in :data:`DEFAULTS` here, its builder in
objectives.py with an entry in ``BUILDERS``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from bioshards.corpus.errors import InvalidValueError

MAX_SEQ_LENGTH: Final = 65_535
"""Maximum length of a row: positions in it are 16 bits."""


@dataclass(frozen=True, slots=True)
class PretrainingObjective:
    """Properties of an objective.

    Attributes:
        has_labels: True if rows have a ``label``.
        loss_reason: reason for which tokens are in no row, as in the manifest; None if none are lost.
        options: options of ``shards_to_pretraining`` that apply to some objectives only, and to this one.
    """

    has_labels: bool
    loss_reason: str | None
    options: frozenset[str]


OBJECTIVES: Final[dict[str, PretrainingObjective]] = {
    "electra": PretrainingObjective(
        has_labels=False,
        loss_reason="overflow",
        options=frozenset({"--short-seq-prob", "--single-segment-prob", "--keep-overflow"}),
    ),
    "bert": PretrainingObjective(True, "truncated", frozenset({"--short-seq-prob"})),
    "albert": PretrainingObjective(True, "truncated", frozenset({"--short-seq-prob", "--as-published"})),
    "plain": PretrainingObjective(False, None, frozenset()),
}
"""Objectives by the value of ``--objective``."""


@dataclass(frozen=True, slots=True)
class ExampleRecipe:
    """Recipe of pretraining rows.

    Attributes:
        objective: ``electra``: one or two segments of a document, for replaced-token detection; ``bert``:
            pairs for next-sentence prediction; ``albert``: pairs for sentence-order prediction; ``plain``:
            packed documents.
        max_seq_length: maximum number of tokens in a row, [CLS] and [SEP] included.
        short_seq_prob: fraction of rows (``bert``, ``albert``: of documents) with a random lower target
            length.
        single_segment_prob: fraction of rows with one segment (``electra``).
        dupe_factor: number of passes over each document, each with other random numbers.
        keep_overflow: tokens that do not fit into a row start the next one (``electra``) instead of being
            lost.
        as_published: reproduce the reference code with its defects: for ``albert``, a chunk of one sentence
            is paired with the text of a random document.
    """

    objective: str = "electra"
    max_seq_length: int = 128
    short_seq_prob: float = 0.0
    single_segment_prob: float = 0.0
    dupe_factor: int = 1
    keep_overflow: bool = False
    as_published: bool = False

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InvalidValueError(f"--objective {self.objective} is not one of {', '.join(OBJECTIVES)}")
        if self.max_seq_length < 5:
            raise InvalidValueError(
                f"--max-seq-length {self.max_seq_length} is below 5: [CLS], [SEP] and [SEP] leave no room "
                "for a pair"
            )
        if self.max_seq_length > MAX_SEQ_LENGTH:
            raise InvalidValueError(
                f"--max-seq-length {self.max_seq_length:,} is above {MAX_SEQ_LENGTH:,}: positions in a row "
                "are 16 bits"
            )
        fractions = {
            "--short-seq-prob": self.short_seq_prob,
            "--single-segment-prob": self.single_segment_prob,
        }
        for option, value in fractions.items():
            if not 0 <= value <= 1:
                raise InvalidValueError(f"{option} {value} is not between 0 and 1")
        if self.dupe_factor < 1:
            raise InvalidValueError(f"--dupe-factor {self.dupe_factor} is below 1")
        flags = {"--keep-overflow": self.keep_overflow, "--as-published": self.as_published}
        for option, value in {**fractions, **flags}.items():
            if value and option not in OBJECTIVES[self.objective].options:
                accepting = [name for name, objective in OBJECTIVES.items() if option in objective.options]
                raise InvalidValueError(
                    f"{option} does not apply to --objective {self.objective}, only to "
                    f"{' and '.join(accepting)}"
                )

    @property
    def has_labels(self) -> bool:
        """True if rows have a label."""
        return OBJECTIVES[self.objective].has_labels


DEFAULTS: Final[dict[str, ExampleRecipe]] = {
    # google-research/electra, build_pretraining_dataset.py: --max-seq-length 128; 0.05 and 0.1 in the code.
    "electra": ExampleRecipe("electra", 128, short_seq_prob=0.05, single_segment_prob=0.1),
    # google-research/bert, create_pretraining_data.py: max_seq_length 128, short_seq_prob 0.1.  Its
    # dupe_factor of 10 gives other masks, which our trainer draws for every epoch; so one pass.
    "bert": ExampleRecipe("bert", 128, short_seq_prob=0.1),
    # google-research/albert, create_pretraining_data.py: max_seq_length 512, short_seq_prob 0.1.  Its
    # dupe_factor is 40, as for bert.
    "albert": ExampleRecipe("albert", 512, short_seq_prob=0.1),
    "plain": ExampleRecipe("plain", 512),  # no reference: the length that BERT's positions have
}
"""Default recipe of each objective, as in its reference code."""

PRESETS: Final[dict[str, ExampleRecipe]] = {
    # Bio-ELECTRA (Ozyurt 2020; build_pmc_pretrain_dataset.sh and pmc_config.json.example of its repository):
    # --max-seq-length 256, blank lines separate documents; all else as google-research/electra has it.
    "bio-electra": replace(DEFAULTS["electra"], max_seq_length=256),
    # Bio-ELECTRA++ (Ozyurt 2020; build_pmc_oai_full_pretrain_dataset.sh, pmc_config_v2.json.example): the
    # same on PMC's articles.
    "bio-electra-pp": replace(DEFAULTS["electra"], max_seq_length=256),
    # ELECTRAMed (Miolo et al. 2021, table 1; configure_pretraining.py of its repository): sequences of 512
    # throughout.  The short and the single ones are not mentioned: ELECTRA's.  Its text has no borders
    # between documents (BLUE_Benchmark, issue 7), so that its rows ran on across abstracts; ours do not.
    "electramed": replace(DEFAULTS["electra"], max_seq_length=512),
    # BioALBERT (Naseem et al. 2020, tables I and II): sequence length 512, and "dup-factor as five" for its
    # best model.  Short sequences are not mentioned: ALBERT's.  The paper calls sentence-order negatives
    # segments of different documents; ALBERT's code, which it uses, swaps two segments, as here.
    "bioalbert": replace(DEFAULTS["albert"], max_seq_length=512, dupe_factor=5),
    # PubMedBERT (Gu et al. 2020): masked tokens and next-sentence prediction; lengths, short sequences and
    # the dupe factor are not mentioned.  The code it builds on (NVIDIA's BERT for TensorFlow, data/) makes
    # sequences of 128 and then of 512, a dupe factor of 5, short_seq_prob 0.1.  Here the second phase; the
    # first: --max-seq-length 128.
    "pubmedbert": replace(DEFAULTS["bert"], max_seq_length=512, dupe_factor=5),
}
