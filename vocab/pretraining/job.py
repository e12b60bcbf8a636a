"""The job of ``shards_to_pretraining``: what each of its steps gets, whole.

The vocabulary is not in it, because the job is pickled into every step of the graph: workers load it from the
work folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from bioshards.corpus.lifecycle.job import make_key
from bioshards.corpus.manifest import PretrainingConfig, PretrainingInput, PretrainingRun
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe

TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingJob:
    """Document shards and a vocabulary to pretraining examples.

    Attributes:
        config: the options that fix the bytes of the output, as the manifest has them.
        inputs: the input directories as the manifest lists them.
        num_buckets: number of buckets of a global shuffle by split; empty if rows stay in their group.
        max_rejected: accepted fraction of rejected documents.
        run: facts about this run; the last step completes them.
    """

    storage: Storage
    output: OutputDir
    config: PretrainingConfig
    inputs: tuple[PretrainingInput, ...]
    run: PretrainingRun
    num_buckets: Mapping[str, int]
    max_rejected: float = 0.001

    @property
    def recipe(self) -> ExampleRecipe:
        """Return the objective and its options."""
        config = self.config
        return ExampleRecipe(
            objective=config.objective,
            max_seq_length=config.max_seq_length,
            short_seq_prob=config.short_seq_prob,
            single_segment_prob=config.single_segment_prob,
            dupe_factor=config.dupe_factor,
            keep_overflow=config.keep_overflow,
            as_published=config.as_published,
        )

    @property
    def max_shard_bytes(self) -> int:
        """Return the approximate size limit of a shard; building takes this memory, writing as much again."""
        return self.config.max_shard_mb * 1_000_000

    @property
    def inputs_key(self) -> str:
        """Return the key of the inputs, by which a finished output is known."""
        return make_key(msgspec.to_builtins(self.inputs))

    def save_vocabulary(self, tokenizer_json: bytes) -> None:
        """Write the vocabulary to the work folder, for :meth:`load_encoder`."""
        with self.storage.write(f"{self.output.work_folder}/{TOKENIZER_FILE}") as file:
            file.write(tokenizer_json)

    def load_encoder(self) -> Encoder:
        """Return the encoder of the vocabulary in the work folder; a process loads it once."""
        sha256 = self.config.vocabulary.sha256
        if sha256 not in _encoders:
            folder = self.output.work_folder
            _encoders[sha256] = Encoder(folder, special_as_text=True, storage=self.storage)
        return _encoders[sha256]


_encoders: dict[str, Encoder] = {}
"""Encoders of this process, with their caches, by the SHA-256 of the vocabulary."""
