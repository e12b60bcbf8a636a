"""Speed of building pretraining sets: ``python -m tests.bench.bench_pretraining_sets --electra CHECKOUT``.

The text is that of finished directories, or of BIOSHARDS_DATA.

1. Text in memory to ELECTRA rows in memory, on one core, beside google-research/electra's builder (of a
   checkout) on a sample of the documents, and beside encoding alone with the tokenizers library.
2. The pipeline, with one worker and two, on enlarged document shards.

Each runs in its own process, in turns.  Without a checkout that builder is left out, which the output states.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from bioshards.corpus.shards import document_shards, pretraining_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import row_plan
from bioshards.vocab.pretraining.example_recipes import PRESETS
from bioshards.vocab.pretraining.row_plan import TokenBlock
from tests.bench.harness import google_builder
from tests.bench.harness.text_corpora import (
    build_document_dirs,
    build_vocabulary,
    get_data_dir,
    run_python,
)
from tests.bench.harness.timing import MB, PIPELINE, BenchRunner, Figure, print_table, ratios_by_round
from tests.support.corpus.manifests import put_documents

RECIPE: Final = PRESETS["bio-electra"]
BATCH: Final = 1 << 14
"""Sentences of a batch of the library."""
DOCUMENTS: Final = 200
"""Documents of a block, as in a record batch of articles."""


def read(path: str) -> pa.RecordBatch:
    """Read documents that :func:`write_texts` has written."""
    with pa.memory_map(path) as file, pa.ipc.open_file(file) as found:
        return found.get_batch(0)


def write_texts(folders: list[str], work: Path, sample_mb: float) -> dict[str, float]:
    """Write all documents and a sample of them; return the bytes of the sentences by file name."""
    batches = [
        batch
        for folder in folders
        for batch in document_shards.read_directory(LocalStorage(), folder, ["id", "sentences"])
    ]
    table = pa.Table.from_batches(batches).combine_chunks()
    sizes = {}
    size = pc.sum(pc.binary_length(pc.list_flatten(table["sentences"]))).as_py()
    step = max(1, round(size / MB / sample_mb))
    for name, rows in (("all", table), ("sample", table.take(np.arange(0, len(table), step)))):
        batch = rows.combine_chunks().to_batches()[0]
        with pa.ipc.new_file(str(work / f"{name}.arrow"), batch.schema) as out:
            out.write_batch(batch)
        sizes[name] = pc.sum(pc.binary_length(batch["sentences"].flatten())).as_py()
    return sizes


def run_ours(text: pa.RecordBatch, folder: str, _: str) -> dict[str, Any]:
    """Time text to ELECTRA rows."""
    encoder = Encoder(folder)
    started = time.process_time()
    block = TokenBlock(encoder)
    for start in range(0, len(text), DOCUMENTS):
        batch = text.slice(start, DOCUMENTS)
        sentences = pc.list_value_length(batch["sentences"]).to_numpy().astype(np.int64)
        block.add(batch["id"], sentences, encoder.encode_all(batch["sentences"].flatten()))
    plan = row_plan.plan_rows(block, RECIPE, 0, 1)
    schema = pretraining_schema.make_schema(encoder.size, RECIPE.has_labels, {})
    rows = sum(map(len, plan.iter_batches(schema)))
    return {"cpu": time.process_time() - started, "rows": rows, "tokens": plan.tokens}


def run_library(text: pa.RecordBatch, folder: str, _: str) -> dict[str, Any]:
    """Time the library's encoding of the sentences."""
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    sentences = text["sentences"].flatten().to_pylist()
    started = time.process_time()
    for start in range(0, len(sentences), BATCH):
        tokenizer.encode_batch_fast(sentences[start : start + BATCH], add_special_tokens=False)
    return {"cpu": time.process_time() - started}


def run_electra(text: pa.RecordBatch, folder: str, checkout: str) -> dict[str, Any]:
    """Time Google's builder of ELECTRA examples, and compare its ids of each line with those of bioshards."""
    lower_case = json.loads(Path(folder, "tokenizer.json").read_text())["normalizer"]["lowercase"]
    measured, lines = google_builder.build_electra_rows(
        checkout, f"{folder}/vocab.txt", lower_case, RECIPE.max_seq_length, text["sentences"].to_pylist()
    )
    found = Encoder(folder).encode_all(text["sentences"].flatten())
    ours = np.split(found.ids, found.offsets[1:-1])
    pairs = zip(filter(None, lines), filter(len, ours), strict=True)
    return {**measured, "lines": len(ours), "differ": sum(line != ids.tolist() for line, ids in pairs)}


BUILDERS: Final[dict[str, Callable[[pa.RecordBatch, str, str], dict[str, Any]]]] = {
    "ours": run_ours,
    "library": run_library,
    "electra": run_electra,
}


def measure_memory(
    bench: BenchRunner, folders: list[str], vocabularies: dict[str, str], checkout: str, repeats: int
) -> list[Figure]:
    """Time text to rows with each vocabulary; return the rows of the table."""
    sizes = write_texts(folders, bench.work, sample_mb=12)
    cases = [("ours", "sample"), ("ours", "all"), ("library", "all")]
    if checkout:
        cases.append(("electra", "sample"))
    else:
        print("google-research/electra is LEFT OUT: give a checkout of it with --electra DIR.")
    rows = []
    for name, vocabulary in vocabularies.items():
        measured: dict[tuple[str, str], list[dict[str, Any]]] = {case: [] for case in cases}
        for _ in range(repeats):
            for way, text in cases:
                once = ("--once", way, bench.work / f"{text}.arrow", vocabulary, checkout)
                run = bench.time_python(f"{name}, {way}", "-m", "tests.bench.bench_pretraining_sets", *once)
                measured[way, text].append(json.loads(run.output))
        seconds = {case: [run["cpu"] for run in runs] for case, runs in measured.items()}
        rates = [sizes["all"] / MB / one for one in seconds["ours", "all"]]
        ratios = ratios_by_round(seconds["library", "all"], seconds["ours", "all"])
        rows += [
            Figure(f"{name}: text to rows, CPU", rates, "MB/s"),
            Figure(f"**{name}: library, encoding alone / ours**", ratios, "×", at_least=(4,)),
        ]
        if checkout:
            ratios = ratios_by_round(seconds["electra", "sample"], seconds["ours", "sample"])
            rows.append(Figure(f"**{name}: electra / ours, sample**", ratios, "×", at_least=(15,)))
            theirs, ours = measured["electra", "sample"][0], measured["ours", "sample"][0]
            print(
                f"{name}: {theirs['differ']:,} of the sample's {theirs['lines']:,} lines have other ids "
                f"there. Rows: {ours['rows']:,} of {ours['tokens']:,} tokens, theirs {theirs['rows']:,} of "
                f"{theirs['tokens']:,}."
            )
    return rows


def run_pipeline(bench: BenchRunner, name: str, folders: list[str], vocabulary: str, workers: int) -> int:
    """Time the pipeline into a new output folder, check that no token is lost, and return their number."""
    output = bench.work / "output"
    inputs = [word for folder in folders for word in ("--input", folder)]
    options = ("--preset", "bio-electra", "--vocab", vocabulary, "--workers", workers, "--output", output)
    bench.time_python(name, *PIPELINE, "shards_to_pretraining", *inputs, *options, removed=[output])
    counts = json.loads((output / "manifest.json").read_text())["counts"]
    for split in (counts["train"], counts["validation"]):
        text = split["tokens"] - split["special_tokens"] - split["other_document_tokens"]
        if split["input_tokens"] != text + sum(split["lost_tokens"].values()):
            raise SystemExit(f"{name}: tokens are neither in a row nor lost: {counts}")
    return int(counts["train"]["tokens"] + counts["validation"]["tokens"])


def write_single_document(folder: str, index: int, out: Path) -> str:
    """Write a directory of the first document of a record batch, to measure the start-up."""
    batches = document_shards.read_directory(LocalStorage(), folder)
    batch = next(islice(batches, index, None)).slice(0, 1)
    written = document_shards.write_shards(LocalStorage(), str(out), "one", iter([batch]), batch.schema, 1)
    put_documents(out, written)
    return str(out)


def measure_pipeline(
    bench: BenchRunner, folders: list[str], vocabulary: str, megabytes: float, repeats: int
) -> list[Figure]:
    """Run the pipeline with one worker and two in turns; return the rows of the table."""
    enlarged = str(bench.work / f"enlarged-{megabytes:g}")
    run_python("-m", "tests.bench.harness.enlarged_shards", enlarged, str(megabytes), *folders)
    # each worker needs a directory: processes without a group of shards are not started
    singles = [write_single_document(enlarged, index, bench.work / f"one-{index}") for index in range(2)]
    tokens = 0
    for _ in range(repeats):
        for workers in (1, 2):
            run_pipeline(bench, f"start {workers}", singles[:workers], vocabulary, workers)
            tokens = run_pipeline(bench, f"job {workers}", [enlarged], vocabulary, workers)
    walls = [bench.walls(f"job {workers}", f"start {workers}") for workers in (1, 2)]
    rates = [tokens / MB / seconds for seconds in bench.cpus("job 1", "start 1")]
    return [
        Figure("pipeline, 1 worker: a core", rates, "M tokens/s"),
        Figure("**pipeline, 2 workers against 1**", ratios_by_round(*walls), "×", at_least=(1.7,)),
        Figure("peak of a process, 2 workers", bench.peaks("job 2"), "MB", at_most=(600,)),
    ]


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_pretraining_sets", description=__doc__)
    parser.add_argument("directories", nargs="*", help="finished directories; default: of BIOSHARDS_DATA")
    parser.add_argument("--work", type=Path, default=Path("build/bench-examples"), help="(%(default)s)")
    parser.add_argument("--electra", default=os.environ.get("ELECTRA", ""), help="a checkout; or $ELECTRA")
    parser.add_argument("--pipeline-mb", type=float, default=450, help="of shards (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        way, text, vocabulary, checkout = options.once
        pa.array([""])  # the first array of a process imports pandas, where that is installed
        print(json.dumps(BUILDERS[way](read(text), vocabulary, checkout)))
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    bench = BenchRunner(options.work.resolve())
    folders = build_document_dirs(options.directories)
    ours, scivocab = build_vocabulary(folders), str(bench.work / "scivocab")
    published = str(get_data_dir() / "benchmarks" / "electramed" / "vocab" / "vocab.txt")
    run_python("-m", "bioshards.vocab", "adopt", published, "--no-cased", "--output", scivocab)
    vocabularies = {"30,522 of this text": ours, "SciVocab": scivocab}
    figures = [
        *measure_memory(bench, folders, vocabularies, options.electra, options.repeats),
        *measure_pipeline(bench, folders, ours, options.pipeline_mb, options.repeats),
    ]
    print_table("Text to ELECTRA rows of 256;", figures)


if __name__ == "__main__":
    main()
