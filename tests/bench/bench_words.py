"""Speed of counting words on one core and in the pipeline: ``python -m tests.bench.bench_words DIR ...``.

The text is that of finished directories.  bioshards is compared with the pretokenizer of the tokenizers
library, and with splitting at white space into one Counter.  Each runs in its own process, in turns; the time
of reading the text is subtracted.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Final

from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.bench.harness import timing
from tests.bench.harness.bench_runner import BenchRunner, ratios_by_round, subtract_startup
from tests.bench.harness.text_corpora import build_document_dirs
from tests.bench.harness.timing import MB, Figure

READ_SCRIPT: Final = """
import sys
from collections import Counter
from bioshards.corpus import shards
from bioshards.corpus.storage.local_storage import LocalFiles
from bioshards.vocab import counts
from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN
from tokenizers.pre_tokenizers import BertPreTokenizer
def batches():
    for folder in sys.argv[1:]:
        yield from shards.read(LocalFiles(), folder, ["id", "pmid", "sentences"])
read = list(batches())
"""
OURS_SCRIPT: Final = READ_SCRIPT + "print(counts.count(read, counts.Counting()).words.total())"
LIBRARY_SCRIPT: Final = (
    READ_SCRIPT
    + """
normalize, split = AS_WRITTEN.normalizer().normalize_str, BertPreTokenizer().pre_tokenize_str
words = Counter()
for batch in read:
    for sentence in batch["sentences"].flatten().to_pylist():
        words.update(word for word, _ in split(normalize(sentence)))
print(words.total())
"""
)
SPLIT_SCRIPT: Final = (
    READ_SCRIPT
    + """
words = Counter()
for batch in read:
    words.update(" ".join(batch["sentences"].flatten().to_pylist()).split(" "))
print(words.total())
"""
)


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_words", description=__doc__)
    parser.add_argument("shards", nargs="*", help="finished directories; default: made of BIOSHARDS_DATA")
    parser.add_argument("--work", type=Path, default=Path("build/bench-words"))
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    options = parser.parse_args()
    folders = build_document_dirs(options.shards, Path("build/bench-text").resolve())
    work = options.work.resolve()
    shutil.rmtree(work, ignore_errors=True)
    timing.adopt_orphans()
    bench = BenchRunner(work)
    size = sum(
        batch["sentences"].nbytes
        for folder in folders
        for batch in arrow_io.read_directory(LocalStorage(), folder)
    )
    for _ in range(options.repeats):
        bench.time_python("read", "-c", READ_SCRIPT, *folders)
        totals = {
            name: int(bench.time_python(name, "-c", script, *folders).output)
            for name, script in (("ours", OURS_SCRIPT), ("library", LIBRARY_SCRIPT), ("blanks", SPLIT_SCRIPT))
        }
        if totals["ours"] != totals["library"]:
            raise SystemExit(f"the counts differ: {totals}")
    seconds = {
        name: subtract_startup(bench.cpus(name), bench.cpus("read")) for name in ("ours", "library", "blanks")
    }
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
