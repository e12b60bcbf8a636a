"""One flipped bit in a file that bioshards has written: it is noticed, or what is read is the same."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from bioshards.corpus.errors import BioshardsError
from bioshards.corpus.manifest import OutputFile, Shard, write_manifest
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.locks import lock_folder
from bioshards.vocab.counting import count_inputs, count_steps
from bioshards.vocab.counting.count_steps import WordsJob
from bioshards.vocab.encode import Encoder
from tests.support.corpus.manifests import of_vocabulary, of_words
from tests.support.vocab.synthetic_corpora import write_abstracts
from tests.support.vocab.tiny_tokenizers import make_wordpiece

FILES = LocalStorage()
FLIPS = 100


def list_entry(path: Path) -> OutputFile:
    data = path.read_bytes()
    return OutputFile(path.name, len(data), hashlib.sha256(data).hexdigest())


def make_documents(folder: Path) -> tuple[Path, Callable[[], object]]:
    write_abstracts(folder, one=range(9))
    [path] = (folder / "data").iterdir()
    return path, lambda: [batch.to_pylist() for batch in document_shards.read_directory(FILES, str(folder))]


def make_word_list(folder: Path) -> tuple[Path, Callable[[], object]]:
    path = folder / "words.tsv"
    path.write_text("the\t9\nliver\t4\n")
    entry = list_entry(path)
    manifest = of_words([Shard(entry.file, 2, entry.bytes, entry.sha256)])
    write_manifest(FILES, f"{folder}/manifest.json", manifest)

    def read() -> object:
        [words] = count_inputs.load_corpus_inputs(FILES, [str(folder)])
        assert isinstance(words, count_inputs.WordCountsInput)
        return count_inputs._read_words(FILES, words, "bert", "words.tsv", None)

    return path, read


def make_counted_shard(folder: Path, suffix: str) -> tuple[Path, Callable[[], object]]:
    """Counts in the work folder, which a rerun makes again."""
    abstracts = write_abstracts(folder / "abstracts", one=range(9))
    [shard] = document_shards.read_documents_manifest(FILES, str(abstracts)).outputs
    manifest, output = of_words([]), OutputDir(str(folder / "out"))
    job = WordsJob(storage=FILES, output=output, config=manifest.config, inputs=(), run=manifest.run)
    paths = [Path(output.word_counts_path(shard.sha256, name)) for name in ("arrow", "json")]

    def read() -> object:
        return count_steps.count_shard(job, (str(abstracts), shard)), paths[0].read_bytes()

    read()
    return next(path for path in paths if path.suffix == suffix), read


def make_vocabulary(folder: Path) -> tuple[Path, Callable[[], object]]:
    tokenizer: Tokenizer = make_wordpiece("liver", "##s", "the")
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    write_manifest(FILES, f"{folder}/manifest.json", of_vocabulary([list_entry(path)], {}, []))
    return path, lambda: Encoder(str(folder)).tokenizer_json


def find_error(read: Callable[[], object], expected: object) -> str | None:
    """Return the message of the error that reading ends with; None if it gives what is expected."""
    try:
        content = read()
    except (BioshardsError, ValueError) as error:
        return str(error)
    assert content == expected
    return None


@pytest.mark.parametrize(
    "make",
    [
        make_documents,
        make_word_list,
        lambda folder: make_counted_shard(folder, ".arrow"),
        lambda folder: make_counted_shard(folder, ".json"),
        make_vocabulary,
    ],
    ids=["shard", "words", "counts", "report on counts", "vocabulary"],
)
def test_flipped_bit_is_noticed(
    make: Callable[[Path], tuple[Path, Callable[[], object]]], tmp_path: Path
) -> None:
    path, read = make(tmp_path)
    data, expected, rng = path.read_bytes(), read(), random.Random(41)
    for bit in rng.sample(range(8 * len(data)), FLIPS):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        message = find_error(read, expected)
        assert message is None or path.name in message


def test_flipped_bit_in_a_lock_is_harmless_or_ends_the_run(tmp_path: Path) -> None:
    path, rng = tmp_path / "lock", random.Random(41)
    with lock_folder(str(path), "OUT") as lock:
        data = path.read_bytes()
        token = data.index(lock.token.encode())
        for bit in rng.sample(range(8 * len(data)), FLIPS):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            message = find_error(lambda: lock.check(FILES.open), None)
            assert message is None or "OUT" in message
            assert message or not token <= bit // 8 < token + len(lock.token)
