"""Speed of building pretraining sets beside Google's builders: ``python -m
tests.bench.bench_pretraining_sets``.

The text is that of finished directories, or of the abstracts and articles of BIOSHARDS_DATA.

1. Text in memory to ELECTRA rows in memory, on one core, against google-research/electra's builder (of a
   checkout, --electra) on a sample of the documents, and against encoding alone with the tokenizers library.
2. Rows of BERT's objective from tokenized documents, against google-research/bert's (--bert).
3. The pipeline, with one worker and two, on enlarged document shards, and the time of its phases.

Each runs in its own process, in turns.  Builders that are not installed are left out, which the table states.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import BertWordPieceTokenizer, Tokenizer

from bioshards.corpus.shards import document_shards, pretraining_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import row_plan
from bioshards.vocab.pretraining.example_recipes import PRESETS, ExampleRecipe
from bioshards.vocab.pretraining.row_plan import TokenBlock
from tests.bench.bench_encode import PUBLISHED
from tests.bench.harness import google_builders, timing
from tests.bench.harness.bench_runner import ROOT, TRIES, BenchRunner, ratios_by_round
from tests.bench.harness.pretraining_set_runs import PretrainingSetBench, measure_pipeline
from tests.bench.harness.text_corpora import build_document_dirs, get_data_dir
from tests.bench.harness.timing import MB, Figure

SCIVOCAB: Final = "SciVocab, uncased"
OURS: Final = "30,522 of this text"
BATCH: Final = 1 << 14
"""Sentences of a batch of the library."""
DOCUMENTS: Final = 200
"""Documents of a block, as in a record batch of articles."""
ELECTRA: Final = PRESETS["bio-electra"]
BERT: Final = PRESETS["pubmedbert"]


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


def make_block(text: pa.RecordBatch, encoder: Encoder) -> TokenBlock:
    """Encode documents into a block."""
    encoded_block = TokenBlock(encoder)
    for start in range(0, len(text), DOCUMENTS):
        batch = text.slice(start, DOCUMENTS)
        sentences = pc.list_value_length(batch["sentences"]).to_numpy().astype(np.int64)
        encoded_block.add(batch["id"], sentences, encoder.encode_all(batch["sentences"].flatten()))
    return encoded_block


def build_rows(encoded_block: TokenBlock, recipe: ExampleRecipe, encoder: Encoder) -> tuple[int, int]:
    """Make all record batches of one pass; return the numbers of rows and tokens."""
    plan = row_plan.plan_rows(encoded_block, recipe, 0, 1)
    batches = list(plan.iter_batches(pretraining_schema.make_schema(encoder.size, recipe.has_labels, {})))
    return sum(map(len, batches)), plan.tokens


def run_ours(text: pa.RecordBatch, folder: str, _: str) -> dict[str, Any]:
    """Time text to ELECTRA rows, with a cold and a warm cache."""
    encoder = Encoder(folder)
    seconds: list[float] = []
    while len(seconds) < 2:
        started = time.process_time()
        rows, tokens = build_rows(make_block(text, encoder), ELECTRA, encoder)
        seconds.append(time.process_time() - started)
    return {"cpu": seconds, "rows": rows, "tokens": tokens}


def run_library(text: pa.RecordBatch, folder: str, _: str) -> dict[str, Any]:
    """Time the library's encoding of the sentences."""
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    sentences = text["sentences"].flatten().to_pylist()
    seconds = 0.0
    for start in range(0, len(sentences), BATCH):
        batch = sentences[start : start + BATCH]
        started = time.process_time()
        tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        seconds += time.process_time() - started
    return {"cpu": [seconds]}


def run_electra(text: pa.RecordBatch, folder: str, checkout: str) -> dict[str, Any]:
    """Time Google's builder of ELECTRA examples, and compare its ids of each line with those of bioshards."""
    normalizer = json.loads(Path(folder, "tokenizer.json").read_text())["normalizer"]
    measured, lines = google_builders.build_electra_rows(
        checkout,
        f"{folder}/vocab.txt",
        normalizer["lowercase"],
        ELECTRA.max_seq_length,
        text["sentences"].to_pylist(),
    )
    found = Encoder(folder).encode_all(text["sentences"].flatten())
    return {
        **measured,
        "lines": len(found.offsets) - 1,
        "differ": google_builders.count_differing_lines(lines, found),
    }


def run_ours_bert(text: pa.RecordBatch, folder: str, _: str) -> dict[str, Any]:
    """Time tokenized documents to BERT rows."""
    encoder = Encoder(folder)
    encoded_block = make_block(text, encoder)
    started = time.process_time()
    rows, tokens = build_rows(encoded_block, BERT, encoder)
    return {"cpu": [time.process_time() - started], "rows": rows, "tokens": tokens}


def run_bert(text: pa.RecordBatch, folder: str, checkout: str) -> dict[str, Any]:
    """Time Google's builder of BERT instances on tokenized documents."""
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenized = []
    for sentences in text["sentences"].to_pylist():
        found = tokenizer.encode_batch_fast(sentences, add_special_tokens=False)
        tokenized.append([encoding.tokens for encoding in found if encoding.tokens])
    return google_builders.build_bert_rows(checkout, BERT.max_seq_length, BERT.short_seq_prob, tokenized)


BUILDERS: Final[dict[str, Callable[[pa.RecordBatch, str, str], dict[str, Any]]]] = {
    "ours": run_ours,
    "library": run_library,
    "electra": run_electra,
    "ours_bert": run_ours_bert,
    "bert": run_bert,
}


def make_vocabularies(folders: list[str], work: Path) -> dict[str, str]:
    """Build a vocabulary on this text, and locate SciVocab: folders with tokenizer.json and vocab.txt."""
    folders_by_name = {OURS: work / "vocabulary"}
    if not (folders_by_name[OURS] / "manifest.json").exists():
        command = [
            sys.executable,
            "-m",
            "bioshards.vocab",
            "build",
            *folders,
            "--output",
            str(folders_by_name[OURS]),
        ]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    if "BIOSHARDS_DATA" in os.environ:
        folders_by_name[SCIVOCAB] = work / "scivocab"
        folders_by_name[SCIVOCAB].mkdir(exist_ok=True)
        published = Path(get_data_dir(), "benchmarks", PUBLISHED[SCIVOCAB][0])
        (folders_by_name[SCIVOCAB] / "vocab.txt").write_bytes(published.read_bytes())
        BertWordPieceTokenizer(str(published)).save(str(folders_by_name[SCIVOCAB] / "tokenizer.json"))
    else:
        print(f"{SCIVOCAB}, is LEFT OUT: BIOSHARDS_DATA, where it is, is not set.")
    return {name: str(folder) for name, folder in folders_by_name.items()}


def make_memory_figures(bench: BenchRunner, name: str, sizes: dict[str, float]) -> list[Figure]:
    """A vocabulary's rows: CPU time of text to examples, ours and the peers'."""
    measured = {key: [json.loads(run.output) for run in runs] for key, runs in bench.runs.items()}

    def seconds(way: str, text: str, turn: int = 0) -> list[float]:
        return [one["cpu"][turn] for one in measured.get(f"{name}: {way}, {text}", [])]

    def rate(title: str, way: str, text: str, turn: int = 0) -> Figure:
        return Figure(
            f"{name}: {title}", [sizes[text] / MB / one for one in seconds(way, text, turn)], "MB/s"
        )

    rows = []
    for text in ("sample", "all"):
        cold = seconds("ours", text)
        rows += [
            rate(f"ours, {text}, cold", "ours", text),
            rate(f"ours, {text}, warm", "ours", text, 1),
            rate(f"tokenizers library, {text}, encoding alone", "library", text),
            Figure(
                f"**{name}: library / ours, {text}, cold**",
                ratios_by_round(seconds("library", text), cold),
                "×",
                ">=",
                4,
            ),
        ]
        if peer_seconds := seconds("electra", text):
            rows += [
                rate(f"google-research/electra, {text}", "electra", text),
                Figure(
                    f"**{name}: electra / ours, {text}, cold**",
                    ratios_by_round(peer_seconds, cold),
                    "×",
                    ">=",
                    8,
                    15,
                ),
                Figure(
                    f"{name}: electra / ours, {text}, warm",
                    ratios_by_round(peer_seconds, seconds("ours", text, 1)),
                    "×",
                ),
            ]
    rows.append(Figure(f"{name}: peak, all of the text in memory", bench.peaks(f"{name}: ours, all"), "MB"))
    if peer_seconds := seconds("bert", "sample"):
        rows.append(
            Figure(
                f"{name}: bert / ours, rows of tokenized documents",
                ratios_by_round(peer_seconds, seconds("ours_bert", "sample")),
                "×",
            )
        )
    return rows


def compare_rows(bench: BenchRunner, name: str) -> str:
    """Format how far the rows agree with the reference's."""
    ours, theirs = (json.loads(bench.runs[f"{name}: {way}, sample"][0].output) for way in ("ours", "electra"))
    return (
        f"{name}: {theirs['differ']:,} of the sample's {theirs['lines']:,} lines have other ids there. Rows: "
        f"{ours['rows']:,} of {ours['tokens']:,} tokens, theirs {theirs['rows']:,} of {theirs['tokens']:,}."
    )


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_pretraining_sets", description=__doc__)
    parser.add_argument(
        "directories", nargs="*", help="finished directories; default: made of BIOSHARDS_DATA"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("build/bench-examples"), help="default: %(default)s"
    )
    parser.add_argument("--electra", default=os.environ.get("ELECTRA"), help="a checkout; default: $ELECTRA")
    parser.add_argument("--bert", default=os.environ.get("BERT"), help="a checkout; default: $BERT")
    parser.add_argument("--sample-mb", type=float, default=12, help="text for these (default: %(default)s)")
    parser.add_argument(
        "--pipeline-mb", type=float, default=450, help="of shards; 0: no pipeline (%(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument("--tries", type=int, default=TRIES, help="of a run on a busy machine (%(default)s)")
    parser.add_argument("--no-memory", action="store_true", help="the pipeline only")
    parser.add_argument("--once", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        way, text, vocabulary, checkout = options.once
        pa.array([""])  # the first array of a process imports pandas, where that is installed
        print(json.dumps(BUILDERS[way](read(text), vocabulary, checkout)))
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    work = options.work.resolve()
    timing.adopt_orphans()
    bench = PretrainingSetBench(work)
    folders = build_document_dirs(options.directories, Path("build/bench-text").resolve())
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}.")
    chosen = make_vocabularies(folders, work)
    if not options.no_memory:
        run_in_memory(bench, folders, chosen, options)
    if options.pipeline_mb:
        rows = measure_pipeline(bench, folders, chosen[OURS], options)
        print(f"\n{timing.format_table(rows)}")


def run_in_memory(
    bench: PretrainingSetBench, folders: list[str], chosen: dict[str, str], options: argparse.Namespace
) -> None:
    """Run text to rows with each vocabulary."""
    sizes = write_texts(folders, bench.work, options.sample_mb)
    cases = [("ours", "sample"), ("library", "sample"), ("ours", "all"), ("library", "all")]
    for peer, checkout, needed in (
        ("electra", options.electra, ["electra"]),
        ("bert", options.bert, ["ours_bert", "bert"]),
    ):
        if checkout:
            cases += [(way, "sample") for way in needed]
        else:
            print(f"google-research/{peer} is LEFT OUT: give a checkout of it with --{peer} DIR.")
    for _ in range(options.repeats):
        for name, folder in chosen.items():
            for way, text in cases:
                checkout = options.electra if way == "electra" else options.bert
                once = (way, str(bench.work / f"{text}.arrow"), folder, checkout or "")
                bench.time_python(
                    f"{name}: {way}, {text}",
                    "-m",
                    "tests.bench.bench_pretraining_sets",
                    "--once",
                    *once,
                    tries=options.tries,
                )
    print(
        f"{sizes['all'] / MB:.1f} MB of text, {sizes['sample'] / MB:.1f} MB of it the sample; "
        "CPU time of one core."
    )
    rows = [row for name in chosen for row in make_memory_figures(bench, name, sizes)]
    if options.electra:
        print("\n".join(compare_rows(bench, name) for name in chosen))
    print(f"\n{timing.format_table(rows)}")


if __name__ == "__main__":
    main()
