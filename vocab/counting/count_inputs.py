"""Inputs of a vocabulary: finished directories of documents or of counted words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from bioshards.corpus.manifest import (
    DOCUMENT_PIPELINES,
    InputWords,
    Shard,
    WordsManifest,
    find_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards import arrow_io, input_dirs
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.count_steps import VALIDATION_WORDS_FILE, WORDS_FILE
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer

MAX_WORDS: Final = 4_000_000
"""Distinct words to train on; rarer ones change little and cost memory (tests/bench/FIGURES.md)."""
_WORDS_PIPELINE: Final = "shards_to_words"
_REBUILD_HINT: Final = f"Delete it and run beam run {_WORDS_PIPELINE} again"


class WordCountsInput(NamedTuple):
    """A finished directory of counted words.

    Attributes:
        pretokenizer: one of ``word_counts.PRETOKENIZERS``.
        min_count: rarer words were left out when they were counted.
        document_digests: digests of the directories of documents that were counted.
        files: word lists by file name.
        digest: the same for the same words and counts.
    """

    folder: str
    pretokenizer: str
    min_count: int
    document_digests: tuple[str, ...]
    files: dict[str, Shard]
    digest: str

    @property
    def summary(self) -> InputWords:
        """Summarise the content for a manifest, independent of the path."""
        return InputWords(self.digest)


class TrainingCounts(NamedTuple):
    """Occurrences of words of all inputs, as written.

    Attributes:
        words: words to train on.
        validation_words: words of the validation split, none left out.
        min_count: rarer words may be missing.  It is the highest bound of any input and of their sum: that of
            ``shards_to_words --min-count``, and the one by which :data:`MAX_WORDS` are left.
    """

    words: Counter[str]
    validation_words: Counter[str]
    min_count: int


CorpusInput = DocumentsInput | WordCountsInput


def load_corpus_inputs(storage: Storage, folders: Sequence[str]) -> list[CorpusInput]:
    """Read the manifests of the inputs, and return the inputs in an order that depends on their content only.

    Raises:
        InputError: a directory is not finished or is of another kind, or two have the same content.
    """
    paths = [folder.rstrip("/") for folder in folders]
    word_inputs = [word_input for path in paths if (word_input := _load_word_counts_input(storage, path))]
    if len({word_input.digest for word_input in word_inputs}) < len(word_inputs):
        names = ", ".join(word_input.folder for word_input in word_inputs)
        raise InputError(f"two of {names} have the same words, which would count twice. Give one of them")
    word_folders = {word_input.folder for word_input in word_inputs}
    document_inputs = input_dirs.load_document_inputs(
        storage, [path for path in paths if path not in word_folders], [*DOCUMENT_PIPELINES, _WORDS_PIPELINE]
    )
    corpus_inputs: list[CorpusInput] = [
        *sorted(word_inputs, key=lambda word_input: word_input.digest),
        *document_inputs,
    ]
    _check_disjoint_documents(corpus_inputs)
    return corpus_inputs


def read_training_counts(
    storage: Storage,
    corpus_inputs: Sequence[CorpusInput],
    count_config: CountConfig,
    min_count: int | None,
    progress: Progress,
) -> TrainingCounts:
    """Count the words of documents, and read words that were counted before.

    A word may be rare in one input and frequent in all, so rare words are left out of the sum.  To bound
    memory, at most :data:`MAX_WORDS` counted words are read of each input, and none as rare as the first one
    left out.

    Args:
        count_config: how to count documents; of counted words only the pretokenizer matters.
        min_count: rarer words are left out; None leaves at most :data:`MAX_WORDS`.
        progress: shows the current step.

    Raises:
        InputError: counted words have the wrong pretokenizer, a file is damaged, or no word is left.
    """
    words: Counter[str] = Counter()
    validation_words: Counter[str] = Counter()
    bounds = [1]
    for corpus_input in corpus_inputs:
        if isinstance(corpus_input, WordCountsInput):
            with progress.bar(f"reading the words of {corpus_input.folder}"):
                frequent_words, bound = _read_words(
                    storage, corpus_input, count_config.pretokenizer, WORDS_FILE, MAX_WORDS
                )
                words.update(frequent_words)
                bounds += [corpus_input.min_count, bound]
                validation_words.update(
                    _read_words(
                        storage, corpus_input, count_config.pretokenizer, VALIDATION_WORDS_FILE, None
                    )[0]
                )
            continue
        num_documents = sum(shard.rows for shard in corpus_input.shards)
        with progress.bar(f"counting words of {corpus_input.folder}", num_documents, " documents") as bar:
            for shard in corpus_input.shards:
                if damage := input_dirs.find_damage(storage, f"{corpus_input.folder}/{shard.file}", shard):
                    raise InputError(
                        f"{corpus_input.folder}/{shard.file} cannot be read: {damage}. Delete it and rerun "
                        f"the beam run {corpus_input.pipeline} that made it"
                    )
                shard_counts = word_counts.count_shard_words(
                    storage, corpus_input.folder, shard, count_config, bar.advance
                )
                words.update(shard_counts.words)
                validation_words.update(shard_counts.validation_words)
    words, bound = _prune_words(words, min_count)
    if not words:
        frequency_hint = f" with {min_count:,} occurrences: give a lower --min-count" if min_count else ""
        raise InputError(
            "no word to train on in "
            f"{', '.join(corpus_input.folder for corpus_input in corpus_inputs)}{frequency_hint}"
        )
    return TrainingCounts(words, validation_words, max(*bounds, bound))


def _load_word_counts_input(storage: Storage, folder: str) -> WordCountsInput | None:
    """Return the input if the directory holds counted words, else None; input_dirs checks the others."""
    words = find_manifest(storage, folder, WordsManifest)
    if words is None:
        return None
    if words.config.format != FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {words.config.format}, this is "
            f"{FORMAT}). Count again: beam run {_WORDS_PIPELINE} with another --output"
        )
    word_input = WordCountsInput(
        folder,
        pretokenizer=words.config.pretokenizer,
        min_count=words.config.min_count,
        document_digests=tuple(documents.shards_sha256 for documents in words.inputs),
        files={output.file: output for output in words.outputs},
        digest=arrow_io.combine_digests(output.sha256 for output in words.outputs),
    )
    if WORDS_FILE not in word_input.files:
        raise InputError(
            f"{folder}/manifest.json is not as {_WORDS_PIPELINE} writes it (outputs: no {WORDS_FILE}). "
            f"Count again: beam run {_WORDS_PIPELINE} with another --output"
        )
    return word_input


def _check_disjoint_documents(corpus_inputs: Sequence[CorpusInput]) -> None:
    """Check that no documents are counted twice, from documents, counted words or both.

    Raises:
        InputError: two inputs are of the same documents.
    """
    folder_by_digest: dict[str, str] = {}
    for corpus_input in corpus_inputs:
        digests = set(
            corpus_input.document_digests
            if isinstance(corpus_input, WordCountsInput)
            else [corpus_input.summary.shards_sha256]
        )
        for digest in digests & folder_by_digest.keys():
            raise InputError(
                f"{folder_by_digest[digest]} and {corpus_input.folder} are of the same documents "
                f"(shards_sha256 {digest[:12]}...), whose words would count twice. Give one of them"
            )
        folder_by_digest |= dict.fromkeys(digests, corpus_input.folder)


def _read_words(
    storage: Storage,
    word_input: WordCountsInput,
    pretokenizer: str,
    file_name: str,
    max_words: int | None,
) -> tuple[Counter[str], int]:
    """Return the words of a file and a bound: all words with as many occurrences are included."""
    if word_input.pretokenizer != pretokenizer and pretokenizer != "bert":  # any words can be split as BERT's
        raise InputError(
            f"{word_input.folder} has words without their punctuation (--pretokenizer bert), and this "
            "vocabulary is trained on words between white space: count them with beam run shards_to_words "
            "--pretokenizer white-space"
        )
    if file_name not in word_input.files:  # no validation split
        return Counter(), 1
    path = f"{word_input.folder}/{file_name}"
    if damage := input_dirs.find_damage(storage, path, word_input.files[file_name]):
        raise InputError(f"{path} is damaged: {damage}. {_REBUILD_HINT}")
    with storage.open(path) as file:
        try:
            words, bound = word_counts.read_frequent_counts(file, max_words)
        except ValueError as error:
            raise InputError(f"{path} is damaged: {error}. {_REBUILD_HINT}") from error
    return (
        words
        if word_input.pretokenizer == pretokenizer
        else word_counts.convert_counts(words, Pretokenizer())
    ), bound


def _prune_words(words: Counter[str], min_count: int | None) -> tuple[Counter[str], int]:
    """Return the words with ``min_count`` occurrences or more, and the threshold.

    For None, the most frequent :data:`MAX_WORDS` are kept, and none as rare as the first one left out.
    """
    threshold = min_count or 1
    if min_count is None and len(words) > MAX_WORDS:
        threshold = sorted(words.values(), reverse=True)[MAX_WORDS] + 1
    return (
        words
        if threshold == 1
        else Counter({word: occurrences for word, occurrences in words.items() if occurrences >= threshold})
    ), threshold
