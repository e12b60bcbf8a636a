"""Counting words, training subwords and encoding: ``python -m tests.bench.bench_vocab [DIR ...]``.

The text is that of finished directories, or of BIOSHARDS_DATA.

1. Counting the words of the text, beside the pretokenizer of the tokenizers library.  Reading is subtracted.
2. Encoding, beside the library's ``encode_batch_fast``: with the vocabularies that two papers published (also
   in BIOSHARDS_DATA) and a unigram model like ALBERT's.  The ids must be equal.  Only encoding is timed.
3. Training of 30,000 pieces on four million distinct words, and the pieces a word of a unigram model from the
   counts of the text, beside SentencePiece's from the counts and from the text.

Each runs in its own process, in turns, on one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting.word_counts import CountConfig, count_words
from bioshards.vocab.encode import Encoder
from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN
from tests.bench.harness.text_corpora import build_document_dirs, get_data_dir, run_python
from tests.bench.harness.timing import MB, BenchRunner, Figure, print_table, ratios_by_round

MODULE: Final = ("-m", "tests.bench.bench_vocab")
BATCH: Final = 16_384
"""Sentences of a batch, or a few more."""
PUBLISHED: Final = {
    "SciVocab": ("electramed/vocab/vocab.txt", "--no-cased"),
    "Bio-ELECTRA, cased": ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", "--cased"),
}
TRAINING: Final = ("-m", "tests.bench.harness.subword_training")


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


def count_once(way: str, folders: list[str]) -> None:
    """Read all text, count its words ("ours", "library") or not ("read"), and print their number."""
    batches = [
        batch
        for folder in folders
        for batch in document_shards.read_directory(LocalStorage(), folder, ["id", "pmid", "sentences"])
    ]
    words: Counter[str] = Counter()
    if way == "ours":
        words = count_words(batches, CountConfig()).words
    elif way == "library":
        normalizer, pretokenizer = AS_WRITTEN.make_normalizer(), BertPreTokenizer()
        for batch in batches:
            for sentence in batch["sentences"].flatten().to_pylist():
                normalized = normalizer.normalize_str(sentence)
                words.update(word for word, _ in pretokenizer.pre_tokenize_str(normalized))
    print(words.total())


def encode_once(way: str, vocabulary: str, folders: list[str]) -> None:
    """Encode all text, and print the CPU seconds and a digest of the ids as JSON."""
    library = Tokenizer.from_file(f"{vocabulary}/tokenizer.json")
    encoder = Encoder(vocabulary)
    pa.array([""])  # the first array of a process imports pandas, where that is installed
    digest, seconds = hashlib.sha256(), 0.0
    for sentences in iter_batches(folders):
        batch = sentences.to_pylist()
        started = time.process_time()
        if way == "ours":
            encoded = encoder.encode_all(batch)
            seconds += time.process_time() - started
            ids, offsets = encoded.ids, encoded.offsets
        else:
            found = [encoding.ids for encoding in library.encode_batch_fast(batch, add_special_tokens=False)]
            seconds += time.process_time() - started
            ids = np.fromiter(chain.from_iterable(found), np.uint32)
            offsets = np.cumsum([0, *map(len, found)])
        for numbers in (ids, offsets):
            digest.update(numbers.astype(np.uint32).tobytes())
    print(json.dumps({"cpu": seconds, "ids": digest.hexdigest()}))


def measure_counting(bench: BenchRunner, folders: list[str], size: int, repeats: int) -> list[Figure]:
    """Compare the counting of words with the library's pretokenizer."""
    for _ in range(repeats):
        totals = {
            way: bench.time_python(way, *MODULE, "--count", way, *folders).output
            for way in ("read", "ours", "library")
        }
        if totals["ours"] != totals["library"]:
            raise SystemExit(f"the counts differ: {totals}")
    ours, library = (bench.cpus(way, "read") for way in ("ours", "library"))
    return [
        Figure("counting words, CPU", [size / MB / seconds for seconds in ours], "MB/s"),
        Figure("**counting, library / ours, CPU**", ratios_by_round(library, ours), "×"),
    ]


def make_vocabularies(folders: list[str], work: Path) -> dict[str, str]:
    """Make folders of the published vocabularies and of a unigram model of the text."""
    made = {name: str(work / name.partition(",")[0]) for name in (*PUBLISHED, "unigram")}
    for name, (file, casing) in PUBLISHED.items():
        source = str(get_data_dir() / "benchmarks" / file)
        run_python("-m", "bioshards.vocab", "adopt", source, casing, "--output", made[name])
    build = ("build", *folders, "--preset", "bioalbert", "--output", made["unigram"])
    run_python("-m", "bioshards.vocab", *build)
    return made


def measure_encoding(bench: BenchRunner, folders: list[str], size: int, repeats: int) -> list[Figure]:
    """Compare encoding with the library's, on a cold cache."""
    rows = []
    for name, vocabulary in make_vocabularies(folders, bench.work).items():
        runs = [
            {
                way: json.loads(
                    bench.time_python(f"{name}: {way}", *MODULE, "--encode", way, vocabulary, *folders).output
                )
                for way in ("ours", "library")
            }
            for _ in range(repeats)
        ]
        if len({run[way]["ids"] for run in runs for way in run}) != 1:
            raise SystemExit(f"{name}: the ids are not the same: {runs}")
        ours, library = ([run[way]["cpu"] for run in runs] for way in ("ours", "library"))
        ratios = ratios_by_round(library, ours)
        rows += [
            Figure(f"encoding, {name}, CPU", [size / MB / seconds for seconds in ours], "MB/s"),
            Figure(f"**encoding, {name}, encode_batch_fast / ours, CPU**", ratios, "×", at_least=(4, 8)),
        ]
    return rows


def measure_training(bench: BenchRunner, folders: list[str]) -> list[Figure]:
    """Measure training once each."""
    bench.time_python("make", *TRAINING, "make", bench.work, *folders, tries=1)
    rows = []
    for way in ("read", "bpe", "unigram", "wordpiece"):
        bench.time_python(way, *TRAINING, way, bench.work, tries=1)
        if way != "read":
            rows.append(Figure(f"training, {way}, 4 million words: wall", bench.walls(way, "read"), "s"))
            rows.append(Figure("... peak", bench.peaks(way), "MB"))
    fertility = {
        way: float(bench.time_python(way, *TRAINING, way, bench.work, tries=1).output)
        for way in ("corpus", "sentencepiece-counts", "sentencepiece-text")
    }
    rows.append(Figure("unigram of the counts: pieces a word", [fertility["corpus"]], ""))
    for peer in ("sentencepiece-counts", "sentencepiece-text"):
        ratio = fertility[peer] / fertility["corpus"]
        rows.append(Figure(f"**pieces a word, {peer} / ours**", [ratio], "×", at_least=(1,)))
    return rows


def main() -> None:
    """Run the benchmarks and print their table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_vocab", description=__doc__)
    parser.add_argument("shards", nargs="*", help="finished directories; default: made of BIOSHARDS_DATA")
    parser.add_argument("--work", type=Path, default=Path("build/bench-vocab"), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument("--count", help=argparse.SUPPRESS)
    parser.add_argument("--encode", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count:
        count_once(options.count, options.shards)
    elif options.encode:
        vocabulary, *folders = options.shards
        encode_once(options.encode, vocabulary, folders)
    else:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        bench = BenchRunner(options.work.resolve())
        folders = build_document_dirs(options.shards)
        size = sum(pc.sum(pc.binary_length(batch)).as_py() for batch in iter_batches(folders))
        figures = [
            *measure_counting(bench, folders, size, options.repeats),
            *measure_encoding(bench, folders, size, options.repeats),
            *measure_training(bench, folders),
        ]
        print_table(f"{size / MB:.0f} MB of text;", figures)


if __name__ == "__main__":
    main()
