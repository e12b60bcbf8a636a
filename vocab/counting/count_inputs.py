"""What a vocabulary is built from: finished directories of documents, or of words that were counted
before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from bioshards.corpus.manifest import InputWords, ManifestError, WordsManifest, encode, parse_manifest
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards import arrow_io, input_dirs
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.shards.input_dirs import DOCUMENT_PIPELINES, DocumentsInput, InputError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer

from . import word_counts
from .count_steps import VALIDATION_WORDS_FILE, WORDS_FILE
from .word_counts import CountConfig

MAX_WORDS: Final = 4_000_000
"""Distinct words to train on: rarer ones would change little and cost memory (tests/bench/FIGURES.md)."""
_WORDS_PIPELINE: Final = "shards_to_words"
_REBUILD_HINT: Final = f"Delete it and run beam run {_WORDS_PIPELINE} once more, which makes it anew"


class WordCountsInput(NamedTuple):
    """A finished directory of words and their counts.

    Attributes:
        kind: what a word is, one of ``counts.KINDS``.
        min_count: words that occur less often were left out when they were counted.
        counted: the digests of the documents that they were counted from.
        files: those of the words, by name.
        digest: the same for the same words and counts.
    """

    folder: str
    pretokenizer: str
    min_count: int
    document_digests: tuple[str, ...]
    files: dict[str, Shard]
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """What it holds, wherever it lies, for a manifest."""
        found: dict[str, Any] = encode(InputWords("shards_to_words", self.digest))
        return found


class TrainingCounts(NamedTuple):
    """The words of all sources, as they are written, how often each.

    Attributes:
        words: those to train on, and ``held_out`` those to measure with only, of which none is left out.
        min_count: words that occur less often may be missing.  It is the highest bound that any source, or
            all of them together, had: of what was counted before, that of ``shards_to_words --min-count``
            and that by which :data:`MAX_WORDS` are left of each.
    """

    words: Counter[str]
    validation_words: Counter[str]
    min_count: int


CorpusInput = DocumentsInput | WordCountsInput


def load_corpus_inputs(storage: LocalStorage, folders: Sequence[str]) -> list[CorpusInput]:
    """What the folders hold, by their manifests, in an order that depends on nothing else.

    Raises:
        InputError: one is not finished, or holds neither documents nor words, or holds what another one does,
            or words of the documents of another one.
    """
    paths = [folder.rstrip("/") for folder in folders]
    word_inputs = [word_input for path in paths if (word_input := _load_word_counts_input(storage, path))]
    if len({word_input.digest for word_input in word_inputs}) < len(word_inputs):
        names = ", ".join(word_input.folder for word_input in word_inputs)
        raise InputError(
            f"of {names} two hold the same words, which would count twice. Give one of them, once"
        )
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
    storage: LocalStorage,
    corpus_inputs: Sequence[CorpusInput],
    count_config: CountConfig,
    min_count: int | None,
    progress: Callable[[str], None],
) -> TrainingCounts:
    """Count the words of documents, and read those that were counted before.

    A word may be rare in one source and frequent in all of them, so that rare ones are left out of the sum.
    Memory sets one bound before: of words counted before, no more than :data:`MAX_WORDS` are read of each
    source, and none as rare as the first that is not.

    Args:
        count_config: what is counted; of words counted before only ``kind`` matters.
        min_count: words that occur less often are left out; None leaves out as few as leave
            :data:`MAX_WORDS`.
        progress: is told how far it is.

    Raises:
        InputError: words were counted that do not serve, a file is not what its manifest lists, or nothing
            is left.
    """
    words: Counter[str] = Counter()
    validation_words: Counter[str] = Counter()
    bounds = [1]
    for corpus_input in corpus_inputs:
        if isinstance(corpus_input, WordCountsInput):
            progress(f"{corpus_input.folder}: reading its words")
            frequent_words, bound = _read_words(
                storage, corpus_input, count_config.pretokenizer, WORDS_FILE, MAX_WORDS
            )
            words.update(frequent_words)
            bounds += [corpus_input.min_count, bound]
            validation_words.update(
                _read_words(storage, corpus_input, count_config.pretokenizer, VALIDATION_WORDS_FILE, None)[0]
            )
            continue
        for shard_number, shard in enumerate(corpus_input.shards, 1):
            progress(
                f"{corpus_input.folder}: counting the words of shard {shard_number:,} of "
                f"{len(corpus_input.shards):,}"
            )
            if damage := input_dirs.find_damage(storage, f"{corpus_input.folder}/{shard.file}", shard):
                raise InputError(
                    f"{corpus_input.folder}/{shard.file} cannot be used: {damage}. Delete it and run the "
                    "beam run "
                    f"{corpus_input.pipeline} that made it once more, which makes it anew"
                )
            shard_counts = word_counts.count_shard_words(storage, corpus_input.folder, shard, count_config)
            words.update(shard_counts.words)
            validation_words.update(shard_counts.validation_words)
    words, bound = _prune_words(words, min_count)
    if not words:
        frequency_hint = f" that occurs {min_count:,} times: give a lower --min-count" if min_count else ""
        raise InputError(
            "no word to train on in "
            f"{', '.join(corpus_input.folder for corpus_input in corpus_inputs)}{frequency_hint}"
        )
    return TrainingCounts(words, validation_words, max(*bounds, bound))


def _load_word_counts_input(storage: LocalStorage, folder: str) -> WordCountsInput | None:
    """The directory, if it is one of words that were counted; what is wrong with others inputs.find says."""
    try:
        manifest = storage.read_json(f"{folder}/manifest.json")
    except (OSError, ValueError):
        return None
    if not isinstance(manifest, dict) or manifest.get("pipeline") != _WORDS_PIPELINE:
        return None
    try:
        words = parse_manifest(manifest, folder)
    except ManifestError as error:
        raise InputError(str(error)) from error
    assert isinstance(words, WordsManifest)
    if words.config.format != FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {words.config.format}, this is "
            f"{FORMAT}). Make it anew: beam run {_WORDS_PIPELINE} with another --output"
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
            f"{folder}/manifest.json is not as {_WORDS_PIPELINE} writes it (outputs: no {WORDS_FILE} among "
            "them). "
            f"Make it anew: beam run {_WORDS_PIPELINE} with another --output"
        )
    return word_input


def _check_disjoint_documents(corpus_inputs: Sequence[CorpusInput]) -> None:
    """Words and the documents that they were counted from are one text, and so are two countings of these.

    Raises:
        InputError: two sources are of the same documents.
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
                "(shards_sha256 "
                f"{digest[:12]}...), whose words would be counted twice. Give one of them"
            )
        folder_by_digest |= dict.fromkeys(digests, corpus_input.folder)


def _read_words(
    storage: LocalStorage,
    word_input: WordCountsInput,
    pretokenizer: str,
    file_name: str,
    max_words: int | None,
) -> tuple[Counter[str], int]:
    """The words of a file of counts, as the kind that is wanted, and how often the rarest may occur."""
    if (
        word_input.pretokenizer != pretokenizer and pretokenizer != "bert"
    ):  # BERT's words are made of all others
        raise InputError(
            f"{word_input.folder} holds words without the marks at them (--pretokenizer bert), and this vocabulary is "
            "trained on what stands between white space: beam run shards_to_words --pretokenizer white-space"
        )
    if file_name not in word_input.files:  # nothing was held out
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
    """The words that occur so often; for None, the most frequent, and none as rare as the first left out."""
    threshold = min_count or 1
    if min_count is None and len(words) > MAX_WORDS:
        threshold = sorted(words.values(), reverse=True)[MAX_WORDS] + 1
    return (
        words
        if threshold == 1
        else Counter({word: occurrences for word, occurrences in words.items() if occurrences >= threshold})
    ), threshold
