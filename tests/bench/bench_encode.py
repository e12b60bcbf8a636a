"""The encoder against the tokenizers library on one core: ``python -m tests.bench.bench_encode [DIR ...]``.

The text is that of finished directories, or made of the abstracts of BIOSHARDS_DATA.  The vocabularies are
those that two papers have published (there too), and one of ALBERT's kind trained upon some of the text.
Each way of encoding is a process of its own, in turns.  Timed is encoding alone, in batches of sentences read
meanwhile; and the ids of every way, over all of the text, must be the library's.
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

from bioshards.corpus import shards
from bioshards.corpus.files import LocalStorage
from bioshards.vocab.encode import Encoder
from tests.bench.corpora import data, documents
from tests.bench.jobs import TRIES, Bench, ratios
from tests.bench.timing import MB, Figure

from . import timing

BATCH: Final = 16_384
"""Sentences that each is given at a time, or a few more."""
SPECIAL: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PUBLISHED: Final = {
    "SciVocab, uncased": ("electramed/vocab/vocab.txt", True),
    "Bio-ELECTRA, cased": ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", False),
}
UNIGRAM: Final = "unigram 30,000"
TRAINING: Final = 40_000
"""Sentences that the unigram vocabulary is trained upon."""
BATCHED, FAST, OURS, ARROW, SINGLY = "encode_batch", "encode_batch_fast", "encode_all", "Arrow", "encode"
WAYS: Final = (BATCHED, FAST, OURS, ARROW, SINGLY)


def batches(folders: list[str]) -> Iterator[pa.Array]:
    """The sentences of finished directories."""
    found: list[pa.Array] = []
    for folder in folders:
        for batch in shards.read_directory(LocalStorage(), folder, ["sentences"]):
            found.append(batch.column("sentences").flatten())
            if sum(map(len, found)) >= BATCH:
                yield pa.concat_arrays(found)
                found = []
    if found:
        yield pa.concat_arrays(found)


def encodings(way: str, folder: str) -> tuple[Callable[[Any], Any], Callable[[Any], tuple[Any, Any]]]:
    """How a batch is encoded, and what of the result are all ids and the sentences' numbers of ids."""
    if way in (BATCHED, FAST):
        library = Tokenizer.from_file(f"{folder}/tokenizer.json")
        encode = getattr(library, way)

        def by_library(batch: list[str]) -> list[list[int]]:
            return [found.ids for found in encode(batch, add_special_tokens=False)]

        return by_library, _flat
    encoder = Encoder(folder)
    if way == SINGLY:
        return lambda batch: [encoder.encode(text) for text in batch], _flat
    return encoder.encode_all, lambda found: (found.ids, np.diff(found.offsets))


def _flat(found: list[list[int]]) -> tuple[Any, Any]:
    return array("I", itertools.chain.from_iterable(found)), [len(ids) for ids in found]


def encode_once(way: str, folder: str, folders: list[str]) -> None:
    """In a process of its own: encode all, twice over if ours; print the seconds and a digest of the ids."""
    encode, of = encodings(way, folder)
    pa.array([""])  # the first array of a process imports pandas, where that is installed
    passes = []
    for _ in range(1 if way in (BATCHED, FAST) else 2):
        digest, wall, cpu = hashlib.sha256(), 0.0, 0.0
        for sentences in batches(folders):
            batch = sentences if way == ARROW else sentences.to_pylist()
            started, busy = time.perf_counter(), time.process_time()
            found = encode(batch)
            wall, cpu = wall + time.perf_counter() - started, cpu + time.process_time() - busy
            for numbers in of(found):
                digest.update(np.asarray(numbers, np.uint32).tobytes())
        passes.append({"wall": wall, "cpu": cpu, "ids": digest.hexdigest()})
    print(json.dumps(passes))


def vocabularies(real: Path, folders: list[str], work: Path) -> dict[str, str]:
    """Folders of a tokenizer each, by what it is."""
    made = {}
    for name, (path, lower) in PUBLISHED.items():
        lines = (real / "benchmarks" / path).read_text(encoding="utf-8").split("\n")
        numbered = {piece: number for number, piece in enumerate(lines) if piece}
        made[name] = Tokenizer(WordPiece(numbered, unk_token="[UNK]", max_input_chars_per_word=100))
        made[name].normalizer = normalizers.BertNormalizer(lowercase=lower)
        made[name].pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made[name].add_special_tokens([piece for piece in SPECIAL if piece in numbered])
    made[UNIGRAM] = _unigram(folders)
    for name, tokenizer in made.items():
        (work / name).mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(work / name / "tokenizer.json"))
    return {name: str(work / name) for name in made}


def _unigram(folders: list[str]) -> Tokenizer:
    """ALBERT's kind of tokenizer."""
    sentences = (text.lower() for batch in batches(folders) for text in batch.to_pylist())
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
    made = Tokenizer(Unigram(pieces, unk_id=1))
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    made.normalizer = normalizers.Sequence(
        [*quotes, normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    made.add_special_tokens(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    return made


def figures(bench: Bench, name: str, size: float) -> list[Figure]:
    """A vocabulary's rows; CPU time where nothing else is said."""
    passes = {way: [json.loads(run.output) for run in bench.runs[f"{name}: {way}"]] for way in WAYS}
    if len({each["ids"] for way in WAYS for run in passes[way] for each in run}) != 1:
        raise SystemExit(f"{name}: the ids are not the same: {passes}")

    def seconds(way: str, turn: int = 0, kind: str = "cpu") -> list[float]:
        return [run[turn][kind] for run in passes[way]]

    rows = []
    for title, way, turn in (
        ("library, encode_batch", BATCHED, 0),
        ("library, encode_batch_fast", FAST, 0),
        ("ours, encode_all, cold", OURS, 0),
        ("ours, encode_all, warm", OURS, 1),
        ("ours, encode_all of Arrow arrays, cold", ARROW, 0),
        ("ours, encode_all of Arrow arrays, warm", ARROW, 1),
        ("ours, encode of one sentence, cold", SINGLY, 0),
        ("ours, encode of one sentence, warm", SINGLY, 1),
    ):
        rows.append(Figure(f"{name}: {title}", [size / MB / each for each in seconds(way, turn)], "MB/s"))
    cold = ratios(seconds(FAST), seconds(OURS))
    rows += [
        Figure(f"**{name}: encode_all, cold / encode_batch_fast**", cold, "×", ">=", 4, 8),
        Figure(
            f"{name}: the same, wall", ratios(seconds(FAST, kind="wall"), seconds(OURS, kind="wall")), "×"
        ),
        Figure(f"{name}: encode_all, cold / encode_batch", ratios(seconds(BATCHED), seconds(OURS)), "×"),
        Figure(f"{name}: Arrow, cold / encode_batch_fast", ratios(seconds(FAST), seconds(ARROW)), "×"),
        Figure(f"{name}: encode, cold / encode_batch_fast", ratios(seconds(FAST), seconds(SINGLY)), "×"),
    ]
    for way in (FAST, OURS, ARROW):
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
    bench = Bench(work)
    folders = documents(options.directories, Path("build/bench-text").resolve())
    size = sum(pc.sum(pc.binary_length(batch)).as_py() for batch in batches(folders))
    chosen = {name: name for name in options.vocabulary} or vocabularies(Path(data()), folders, work)
    for _, (name, folder) in itertools.product(range(options.repeats), chosen.items()):
        for way in WAYS:
            once = ("-m", "tests.bench.bench_encode", "--once", way, folder, *folders)
            bench.python(f"{name}: {way}", *once, tries=options.tries)
    rows = [row for name in chosen for row in figures(bench, name, size)]
    print(f"{size / MB:.1f} MB of text; {os.cpu_count()} cores, Python {sys.version.split()[0]}.")
    print(f"CPU time of one core; all ids are the same, whatever the way.\n\n{timing.table(rows)}")


if __name__ == "__main__":
    main()
