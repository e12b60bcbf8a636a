"""Inputs of a vocabulary: finished directories of documents or of counted words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from bioshards.corpus.manifest import (
    DOCUMENT_PIPELINES,
    InputWords,
    WordsManifest,
    find_damage,
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
    """A finished directory of counted words; its digest is the same for the same words and counts."""

    folder: str
    manifest: WordsManifest
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
    folders_of_words = [word_input.folder for word_input in word_inputs]
    if len({word_input.digest for word_input in word_inputs}) < len(word_inputs):
        names = ", ".join(folders_of_words)
        raise InputError(f"two of {names} have the same words, which would count twice. Give one of them")
    paths = [path for path in paths if path not in folders_of_words]
    accepted_pipelines = [*DOCUMENT_PIPELINES, _WORDS_PIPELINE]
    document_inputs = input_dirs.load_document_inputs(storage, paths, accepted_pipelines)
    word_inputs.sort(key=lambda word_input: word_input.digest)
    corpus_inputs: list[CorpusInput] = [*word_inputs, *document_inputs]
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
        folder = corpus_input.folder
        if isinstance(corpus_input, WordCountsInput):
            with progress.bar(f"reading the words of {folder}"):
                pretokenizer = count_config.pretokenizer
                read_words, bound = _read_words(storage, corpus_input, pretokenizer, WORDS_FILE, MAX_WORDS)
                words.update(read_words)
                read_words, _ = _read_words(storage, corpus_input, pretokenizer, VALIDATION_WORDS_FILE, None)
                validation_words.update(read_words)
                bounds += [corpus_input.manifest.config.min_count, bound]
            continue
        num_documents = sum(shard.rows for shard in corpus_input.shards)
        with progress.bar(f"counting words of {folder}", num_documents, " documents") as bar:
            for shard in corpus_input.shards:
                if damage := find_damage(storage, f"{folder}/{shard.file}", shard):
                    raise InputError(
                        f"{folder}/{shard.file} cannot be read: {damage}. Delete it and rerun the beam run "
                        f"{corpus_input.pipeline} that made it"
                    )
                counts = word_counts.count_shard_words(storage, folder, shard, count_config, bar.advance)
                words.update(counts.words)
                validation_words.update(counts.validation_words)
    threshold = min_count or 1
    if min_count is None and len(words) > MAX_WORDS:  # none as rare as the first one left out
        threshold = sorted(words.values(), reverse=True)[MAX_WORDS] + 1
    if threshold > 1:
        words = Counter({word: count for word, count in words.items() if count >= threshold})
    if not words:
        frequency_hint = f" with {min_count:,} occurrences: give a lower --min-count" if min_count else ""
        folders = ", ".join(corpus_input.folder for corpus_input in corpus_inputs)
        raise InputError(f"no word to train on in {folders}{frequency_hint}")
    return TrainingCounts(words, validation_words, max(*bounds, threshold))


def _load_word_counts_input(storage: Storage, folder: str) -> WordCountsInput | None:
    """Return the input if the directory holds counted words, else None; input_dirs checks the others."""
    manifest = find_manifest(storage, folder, WordsManifest)
    if manifest is None:
        return None
    hint = f"Count again: beam run {_WORDS_PIPELINE} with another --output"
    if manifest.config.format != FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {manifest.config.format}, this is "
            f"{FORMAT}). {hint}"
        )
    if WORDS_FILE not in {output.file for output in manifest.outputs}:
        raise InputError(
            f"{folder}/manifest.json is not as {_WORDS_PIPELINE} writes it (outputs: no {WORDS_FILE}). {hint}"
        )
    digest = arrow_io.combine_digests(output.sha256 for output in manifest.outputs)
    return WordCountsInput(folder, manifest, digest)


def _check_disjoint_documents(corpus_inputs: Sequence[CorpusInput]) -> None:
    """Check that no documents are counted twice, from documents, counted words or both.

    Raises:
        InputError: two inputs are of the same documents.
    """
    folder_by_digest: dict[str, str] = {}
    for corpus_input in corpus_inputs:
        if isinstance(corpus_input, WordCountsInput):
            digests = {documents.shards_sha256 for documents in corpus_input.manifest.inputs}
        else:
            digests = {corpus_input.summary.shards_sha256}
        for digest in digests & folder_by_digest.keys():
            raise InputError(
                f"{folder_by_digest[digest]} and {corpus_input.folder} are of the same documents "
                f"(shards_sha256 {digest[:12]}...), whose words would count twice. Give one of them"
            )
        folder_by_digest |= dict.fromkeys(digests, corpus_input.folder)


def _read_words(
    storage: Storage, word_input: WordCountsInput, pretokenizer: str, name: str, max_words: int | None
) -> tuple[Counter[str], int]:
    """Return the words of a file and a bound: all words with as many occurrences are included."""
    own_pretokenizer = word_input.manifest.config.pretokenizer
    if own_pretokenizer != pretokenizer and pretokenizer != "bert":  # any words can be split as BERT's
        raise InputError(
            f"{word_input.folder} has words without their punctuation (--pretokenizer bert), and this "
            "vocabulary is trained on words between white space: count them with beam run shards_to_words "
            "--pretokenizer white-space"
        )
    entry = next((output for output in word_input.manifest.outputs if output.file == name), None)
    if entry is None:  # no validation split
        return Counter(), 1
    path = f"{word_input.folder}/{name}"
    if damage := find_damage(storage, path, entry):
        raise InputError(f"{path} is damaged: {damage}. {_REBUILD_HINT}")
    with storage.open(path) as file:
        try:
            words, bound = word_counts.read_frequent_counts(file, max_words)
        except ValueError as error:
            raise InputError(f"{path} is damaged: {error}. {_REBUILD_HINT}") from error
    if own_pretokenizer != pretokenizer:
        words = word_counts.convert_counts(words, Pretokenizer())
    return words, bound
