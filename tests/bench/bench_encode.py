"""The encoder against the tokenizers library on one core: ``python -m tests.bench.bench_encode [DIR ...]``.

The text is that of finished directories, or of the abstracts of BIOSHARDS_DATA.  The vocabularies are those
published by two papers (also in BIOSHARDS_DATA), and a unigram model like ALBERT's, trained on some of the
text.  Each encoder runs in its own process, in turns.  Only encoding is timed, not reading; the ids of all
encoders must be equal.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import itertools
import json
import os
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sentencepiece
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import Unigram, WordPiece

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encode import Encoder
from tests.bench.harness import timing
from tests.bench.harness.bench_runner import TRIES, BenchRunner, ratios_by_round
from tests.bench.harness.text_corpora import build_document_dirs, get_data_dir
from tests.bench.harness.timing import MB, Figure

BATCH: Final = 16_384
"""Sentences of a batch, or a few more."""
SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PUBLISHED: Final = {
    "SciVocab, uncased": ("electramed/vocab/vocab.txt", True),
    "Bio-ELECTRA, cased": ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", False),
}
UNIGRAM: Final = "unigram 30,000"
TRAINING: Final = 40_000
"""Sentences that the unigram model is trained on."""
ENCODE_BATCH, ENCODE_BATCH_FAST, ENCODE_ALL, ENCODE_ARROW, ONE_BY_ONE = (
    "encode_batch",
    "encode_batch_fast",
    "encode_all",
    "Arrow",
    "encode",
)
METHODS: Final = (ENCODE_BATCH, ENCODE_BATCH_FAST, ENCODE_ALL, ENCODE_ARROW, ONE_BY_ONE)


def iter_batches(folders: list[str]) -> Iterator[pa.Array]:
    """Yield batches of the sentences of finished directories."""
    collected: list[pa.Array] = []
    for folder in folders:
        for batch in document_shards.read_directory(LocalStorage(), folder, ["sentences"]):
            collected.append(batch.column("sentences").flatten())
            if sum(map(len, collected)) >= BATCH:
                yield pa.concat_arrays(collected)
                collected = []
    if collected:
        yield pa.concat_arrays(collected)


def make_encoder(method: str, folder: str) -> tuple[Callable[[Any], Any], Callable[[Any], tuple[Any, Any]]]:
    """Return a function that encodes a batch, and one that gets ids and lengths from its result."""
    if method in (ENCODE_BATCH, ENCODE_BATCH_FAST):
        library = Tokenizer.from_file(f"{folder}/tokenizer.json")
        encode = getattr(library, method)

        def encode_with_library(batch: list[str]) -> list[list[int]]:
            return [found.ids for found in encode(batch, add_special_tokens=False)]

        return encode_with_library, _flat
    encoder = Encoder(folder)
    if method == ONE_BY_ONE:
        return lambda batch: [encoder.encode(text) for text in batch], _flat
    return encoder.encode_all, lambda found: (found.ids, np.diff(found.offsets))


def _flat(found: list[list[int]]) -> tuple[Any, Any]:
    return array("I", itertools.chain.from_iterable(found)), [len(ids) for ids in found]


def encode_once(method: str, folder: str, folders: list[str]) -> None:
    """Encode all text (twice with bioshards), and print the seconds and a digest of the ids."""
    encode, of = make_encoder(method, folder)
    pa.array([""])  # the first array of a process imports pandas, where that is installed
    passes = []
    for _ in range(1 if method in (ENCODE_BATCH, ENCODE_BATCH_FAST) else 2):
        digest, wall, cpu = hashlib.sha256(), 0.0, 0.0
        for sentences in iter_batches(folders):
            batch = sentences if method == ENCODE_ARROW else sentences.to_pylist()
            started, cpu_started = time.perf_counter(), time.process_time()
            encoded = encode(batch)
            wall, cpu = wall + time.perf_counter() - started, cpu + time.process_time() - cpu_started
            for numbers in of(encoded):
                digest.update(np.asarray(numbers, np.uint32).tobytes())
        passes.append({"wall": wall, "cpu": cpu, "ids": digest.hexdigest()})
    print(json.dumps(passes))


def make_vocabularies(real: Path, folders: list[str], work: Path) -> dict[str, str]:
    """Make the tokenizers; return their folders by name."""
    tokenizers = {}
    for name, (path, lower) in PUBLISHED.items():
        lines = (real / "benchmarks" / path).read_text(encoding="utf-8").split("\n")
        numbered = {piece: number for number, piece in enumerate(lines) if piece}
        tokenizers[name] = Tokenizer(WordPiece(numbered, unk_token="[UNK]", max_input_chars_per_word=100))
        tokenizers[name].normalizer = normalizers.BertNormalizer(lowercase=lower)
        tokenizers[name].pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizers[name].add_special_tokens([piece for piece in SPECIAL if piece in numbered])
    tokenizers[UNIGRAM] = _train_unigram(folders)
    for name, tokenizer in tokenizers.items():
        (work / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(work / name / "tokenizer.json"))
    return {name: str(work / name) for name in tokenizers}


def _train_unigram(folders: list[str]) -> Tokenizer:
    """Train a unigram tokenizer like ALBERT's."""
    sentences = (text.lower() for batch in iter_batches(folders) for text in batch.to_pylist())
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=itertools.islice(sentences, TRAINING),
        model_writer=model,
        vocab_size=30_000,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        user_defined_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
    )
    trained = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [(trained.id_to_piece(n), trained.get_score(n)) for n in range(trained.get_piece_size())]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=1))
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    tokenizer.normalizer = normalizers.Sequence(
        [*quotes, normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.add_special_tokens(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def make_figures(bench: BenchRunner, name: str, size: float) -> list[Figure]:
    """Make the rows of a vocabulary; times are CPU time unless stated."""
    passes_by_method = {
        way: [json.loads(run.output) for run in bench.runs[f"{name}: {way}"]] for way in METHODS
    }
    if len({each["ids"] for way in METHODS for run in passes_by_method[way] for each in run}) != 1:
        raise SystemExit(f"{name}: the ids are not the same: {passes_by_method}")

    def seconds(method: str, turn: int = 0, kind: str = "cpu") -> list[float]:
        return [run[turn][kind] for run in passes_by_method[method]]

    rows = []
    for title, way, turn in (
        ("library, encode_batch", ENCODE_BATCH, 0),
        ("library, encode_batch_fast", ENCODE_BATCH_FAST, 0),
        ("ours, encode_all, cold", ENCODE_ALL, 0),
        ("ours, encode_all, warm", ENCODE_ALL, 1),
        ("ours, encode_all of Arrow arrays, cold", ENCODE_ARROW, 0),
        ("ours, encode_all of Arrow arrays, warm", ENCODE_ARROW, 1),
        ("ours, encode of one sentence, cold", ONE_BY_ONE, 0),
        ("ours, encode of one sentence, warm", ONE_BY_ONE, 1),
    ):
        rows.append(Figure(f"{name}: {title}", [size / MB / each for each in seconds(way, turn)], "MB/s"))
    cold = ratios_by_round(seconds(ENCODE_BATCH_FAST), seconds(ENCODE_ALL))
    rows += [
        Figure(f"**{name}: encode_all, cold / encode_batch_fast**", cold, "×", ">=", 4, 8),
        Figure(
            f"{name}: the same, wall",
            ratios_by_round(seconds(ENCODE_BATCH_FAST, kind="wall"), seconds(ENCODE_ALL, kind="wall")),
            "×",
        ),
        Figure(
            f"{name}: encode_all, cold / encode_batch",
            ratios_by_round(seconds(ENCODE_BATCH), seconds(ENCODE_ALL)),
            "×",
        ),
        Figure(
            f"{name}: Arrow, cold / encode_batch_fast",
            ratios_by_round(seconds(ENCODE_BATCH_FAST), seconds(ENCODE_ARROW)),
            "×",
        ),
        Figure(
            f"{name}: encode, cold / encode_batch_fast",
            ratios_by_round(seconds(ENCODE_BATCH_FAST), seconds(ONE_BY_ONE)),
            "×",
        ),
    ]
    for way in (ENCODE_BATCH_FAST, ENCODE_ALL, ENCODE_ARROW):
        rows.append(Figure(f"{name}: peak of a process, {way}", bench.peaks(f"{name}: {way}"), "MB"))
    return rows


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_encode", description=__doc__)
    parser.add_argument(
        "directories", nargs="*", help="finished directories; default: made of BIOSHARDS_DATA"
    )
    parser.add_argument("--work", type=Path, default=Path("build/bench-encode"), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument("--tries", type=int, default=TRIES, help="of a run on a busy machine (%(default)s)")
    parser.add_argument("--vocabulary", action="append", default=[], help="a folder of one, instead of ours")
    parser.add_argument("--once", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        way, vocabulary = options.once
        encode_once(way, vocabulary, options.directories)
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    work = options.work.resolve()
    timing.adopt_orphans()
    bench = BenchRunner(work)
    folders = build_document_dirs(options.directories, Path("build/bench-text").resolve())
    size = sum(pc.sum(pc.binary_length(batch)).as_py() for batch in iter_batches(folders))
    chosen = {name: name for name in options.vocabulary} or make_vocabularies(
        Path(get_data_dir()), folders, work
    )
    for _, (name, folder) in itertools.product(range(options.repeats), chosen.items()):
        for way in METHODS:
            once = ("-m", "tests.bench.bench_encode", "--once", way, folder, *folders)
            bench.time_python(f"{name}: {way}", *once, tries=options.tries)
    rows = [row for name in chosen for row in make_figures(bench, name, size)]
    print(f"{size / MB:.1f} MB of text; {os.cpu_count()} cores, Python {sys.version.split()[0]}.")
    print(f"CPU time of one core; all ids are the same, whatever the way.\n\n{timing.format_table(rows)}")


if __name__ == "__main__":
    main()
