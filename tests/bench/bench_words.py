"""Speed of counting words on one core and in the pipeline: ``python -m tests.bench.bench_words DIR ...``.

The text is that of finished directories.  bioshards is compared with the pretokenizer of the tokenizers
library, and with splitting at white space into one Counter.  Each runs in its own process, in turns; the time
of reading the text is subtracted.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from pathlib import Path
from typing import Final

from tokenizers.pre_tokenizers import BertPreTokenizer

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting.word_counts import CountConfig, count_words
from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN
from tests.bench.harness import timing
from tests.bench.harness.bench_runner import BenchRunner, ratios_by_round, subtract_startup
from tests.bench.harness.text_corpora import build_document_dirs
from tests.bench.harness.timing import MB, Figure

COUNTERS: Final = ("ours", "library", "blanks")


def count_once(counter: str, folders: list[str]) -> None:
    """Read all text, count its words with one of :data:`COUNTERS` or not at all, and print their number."""
    batches = [
        batch
        for folder in folders
        for batch in document_shards.read_directory(LocalStorage(), folder, ["id", "pmid", "sentences"])
    ]
    words: Counter[str] = Counter()
    if counter == "ours":
        words = count_words(batches, CountConfig()).words
    elif counter == "library":
        normalizer, pretokenizer = AS_WRITTEN.make_normalizer(), BertPreTokenizer()
        for batch in batches:
            for sentence in batch["sentences"].flatten().to_pylist():
                normalized = normalizer.normalize_str(sentence)
                words.update(word for word, _ in pretokenizer.pre_tokenize_str(normalized))
    elif counter == "blanks":
        for batch in batches:
            words.update(" ".join(batch["sentences"].flatten().to_pylist()).split(" "))
    print(words.total())


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_words", description=__doc__)
    parser.add_argument("shards", nargs="*", help="finished directories; default: made of BIOSHARDS_DATA")
    parser.add_argument("--work", type=Path, default=Path("build/bench-words"))
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        count_once(options.once, options.shards)
        return
    folders = build_document_dirs(options.shards, Path("build/bench-text").resolve())
    work = options.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    timing.adopt_orphans()
    bench = BenchRunner(work)
    size = sum(
        batch["sentences"].nbytes
        for folder in folders
        for batch in document_shards.read_directory(LocalStorage(), folder)
    )
    for _ in range(options.repeats):
        runs = {
            counter: bench.time_python(counter, "-m", "tests.bench.bench_words", "--once", counter, *folders)
            for counter in ("read", *COUNTERS)
        }
        totals = {counter: int(runs[counter].output) for counter in COUNTERS}
        if totals["ours"] != totals["library"]:
            raise SystemExit(f"the counts differ: {totals}")
    seconds = {name: subtract_startup(bench.cpus(name), bench.cpus("read")) for name in COUNTERS}
    rows = [
        Figure(f"{title}, CPU", [size / MB / each for each in seconds[name]], "MB/s")
        for title, name in (
            ("counting the words", "ours"),
            ("each sentence through the tokenizers library", "library"),
            ("splitting at blanks, one Counter", "blanks"),
        )
    ]
    rows.append(Figure("**library / ours, CPU**", ratios_by_round(seconds["library"], seconds["ours"]), "×"))
    rows.append(Figure("peak, all of the text in memory", bench.peaks("ours"), "MB"))
    print(f"{size / MB:.0f} MB of sentences, {totals['ours']:,} words.\n")
    print(timing.format_table(rows))


if __name__ == "__main__":
    main()
