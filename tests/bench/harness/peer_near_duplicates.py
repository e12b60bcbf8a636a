"""Find near duplicates with another tool: ``PYTHON peer_near_duplicates.py TOOL < TEXTS``, a text a line.

The script imports nothing of bioshards.  Texts are lines of words with a blank between, so that all tools
have the same words: a tool's own normalisation and tokenizer are not compared.  It prints JSON: the numbers
of the lines that the tool drops, CPU seconds and the peak memory.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

BANDS, ROWS, SHINGLE_WORDS, THRESHOLD = 20, 6, 5, 0.8


def drop_with_datasketch(texts: Sequence[str]) -> list[int]:
    """Drop each text that MinHashLSH finds similar to an earlier one, by the estimate."""
    datasketch = importlib.import_module("datasketch")
    index = datasketch.MinHashLSH(num_perm=BANDS * ROWS, params=(BANDS, ROWS))
    signatures, dropped = dict[int, Any](), list[int]()
    for number, text in enumerate(texts):
        words = text.split()
        shingles = {
            " ".join(words[start : start + SHINGLE_WORDS]).encode()
            for start in range(len(words) - SHINGLE_WORDS + 1)
        }
        signature = datasketch.MinHash(num_perm=BANDS * ROWS)
        signature.update_batch(shingles)
        if any(signature.jaccard(signatures[other]) >= THRESHOLD for other in index.query(signature)):
            dropped.append(number)
        signatures[number] = signature
        index.insert(number, signature)
    return dropped


def drop_with_datatrove(texts: Sequence[str]) -> list[int]:
    """Run datatrove's four steps with its default bands, words split at blanks."""
    minhash: Any = importlib.import_module("datatrove.pipeline.dedup.minhash")
    document_class = importlib.import_module("datatrove.data").Document
    config = minhash.MinhashConfig(n_grams=SHINGLE_WORDS)

    def make_documents() -> list[object]:
        return [document_class(text=text, id=str(number)) for number, text in enumerate(texts)]

    with tempfile.TemporaryDirectory() as folder:
        minhash.load_word_tokenizer = lambda _: SimpleNamespace(word_tokenize=str.split)
        minhash.MinhashDedupSignature(f"{folder}/signatures", config).run(make_documents())
        for bucket in range(config.num_buckets):
            minhash.MinhashDedupBuckets(f"{folder}/signatures", f"{folder}/buckets", config=config).run(
                None, bucket, config.num_buckets
            )
        minhash.MinhashDedupCluster(f"{folder}/buckets", f"{folder}/clusters", config=config).run(None, 0, 1)
        kept = minhash.MinhashDedupFilter(f"{folder}/clusters").run(make_documents(), 0, 1)
        return sorted(set(range(len(texts))) - {int(document.id) for document in kept})


TOOLS: dict[str, Callable[[Sequence[str]], list[int]]] = {
    "datasketch": drop_with_datasketch,
    "datatrove": drop_with_datatrove,
}


def report(drop: Callable[[Sequence[str]], list[int]]) -> None:
    """Read the texts, drop some, and print what it took."""
    texts = sys.stdin.read().splitlines()
    before = resource.getrusage(resource.RUSAGE_SELF)
    dropped = drop(texts)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"dropped": dropped, "seconds": seconds, "peak_mb": usage.ru_maxrss * 1024 / 1e6}))


if __name__ == "__main__":
    report(TOOLS[sys.argv[1]])
