"""One flipped bit in a file that bioshards has written: it is named, made again, or changes nothing.

``pytest -q -s -m thorough tests/pipelines/test_bit_flips.py`` prints what became of a hundred of each file.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import torch
from tokenizers import Tokenizer

from bioshards import open_documents, open_rows
from bioshards.corpus.download import mirror
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory, metadata_cache
from bioshards.corpus.download.pmc.bucket_inventory import InventoryManifest
from bioshards.corpus.download.pmc.mirror_table import write_table
from bioshards.corpus.errors import BioshardsError, OutputMismatchError
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.manifest import OutputFile, Shard, read_manifest, write_manifest
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.output.work_files import read_report, write_report
from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.checksums import add_sha256
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.locks import lock_folder
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.encoder import inspect_checkpoint
from bioshards.evaluate.runs import hyperparameter_search, results
from bioshards.train import checkpoint
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.vocab.counting import count_inputs, count_steps
from bioshards.vocab.counting.count_steps import WordsJob
from bioshards.vocab.encode import Encoder
from bioshards.vocab.tokenizer.published_vocabulary import load_published_vocabulary
from tests.corpus.test_manifest import MANIFESTS
from tests.support.bit_flips import flip_bits
from tests.support.corpus.manifests import of_vocabulary, of_words
from tests.support.evaluate.synthetic_results import make_result
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint
from tests.support.train.synthetic_rows import random_rows, split_into_batches, write_pretraining_set
from tests.support.vocab.synthetic_corpora import write_abstracts, write_articles
from tests.support.vocab.tiny_tokenizers import make_wordpiece

FILES: Final = LocalStorage()
Made = tuple[Path, Callable[[], object]]
"""A file, and a function that reads what it says as a command does."""


def list_entry(path: Path) -> OutputFile:
    data = path.read_bytes()
    return OutputFile(path.name, len(data), hashlib.sha256(data).hexdigest())


def make_manifest(folder: Path, kind: str) -> Made:
    path = folder / "manifest.json"
    write_manifest(FILES, str(path), MANIFESTS[kind])
    return path, lambda: read_manifest(FILES, str(folder))


def make_documents(folder: Path) -> Made:
    write_abstracts(folder, one=range(9))
    [path] = (folder / "data").iterdir()
    return path, lambda: [batch.to_pylist() for batch in document_shards.read_directory(FILES, str(folder))]


def make_filtered_documents(folder: Path) -> Made:
    path, _ = make_documents(folder)
    expression = pc.field("id") == "pubmed:7"  # as `bioshards show --id`
    return path, lambda: list(open_documents(folder).filter(expression))


def make_overlapping_abstracts(folder: Path) -> Made:
    """The abstracts whose ids are read for ``--find-overlap-with``."""
    path, _ = make_documents(folder / "abstracts")
    articles = write_articles(folder / "articles", one=range(1, 4))
    shards = document_shards.read_documents_manifest(FILES, str(articles)).outputs
    job: Any = SimpleNamespace(
        storage=FILES,
        output=OutputDir(str(articles)),
        overlap_with=str(folder / "abstracts"),
        as_typed=str,
    )
    finalized: Any = [SimpleNamespace(shards=shards)]
    return path, lambda: full_text_overlap.write_overlap(job, finalized)


def make_rows(folder: Path) -> tuple[Path, Path]:
    rows = random_rows(40, 16, 100, labelled=False)
    data = write_pretraining_set(folder, {"a": split_into_batches(rows, [20])})
    [path] = (data / "train").glob("*.arrow")
    return data, path


def make_rows_in_python(folder: Path) -> Made:
    data, path = make_rows(folder)
    return path, lambda: list(open_rows(data))


def make_rows_in_training(folder: Path) -> Made:
    data, path = make_rows(folder)
    return path, lambda: PretrainingDataset(str(data)).verify(Progress(None))


def make_word_list(folder: Path) -> Made:
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


def make_counted_shard(folder: Path, suffix: str) -> Made:
    """Counts in the work folder, which a rerun makes again."""
    abstracts = write_abstracts(folder / "abstracts", one=range(9))
    [shard] = document_shards.read_documents_manifest(FILES, str(abstracts)).outputs
    manifest, output = of_words([]), OutputDir(str(folder / "out"))
    job = WordsJob(storage=FILES, output=output, config=manifest.config, inputs=(), run=manifest.run)
    paths = [Path(output.word_counts_path(shard.sha256, name)) for name in ("arrow", "json")]

    def read() -> object:
        return msgspec.to_builtins(count_steps.count_shard(job, (str(abstracts), shard))) | {"is_cached": 0}

    read()
    return next(path for path in paths if path.suffix == suffix), read


def make_vocabulary(folder: Path, name: str) -> Made:
    tokenizer: Tokenizer = make_wordpiece("liver", "##s", "the")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "vocab.txt").write_text("\n".join(tokenizer.get_vocab()))
    (folder / "spiece.model").write_bytes(bytes(range(256)))
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": false, "strip_accents": false}')
    files = [list_entry(path) for path in sorted(folder.iterdir())]
    write_manifest(FILES, f"{folder}/manifest.json", of_vocabulary(files, {}, []))
    return folder / name, lambda: load_published_vocabulary(str(folder)).tokenizer.to_str()


def make_encoder(folder: Path) -> Made:
    path, _ = make_vocabulary(folder, "tokenizer.json")
    return path, lambda: Encoder(str(folder)).tokenizer_json


def make_checkpoint(folder: Path, name: str) -> Made:
    """A checkpoint as `bioshards train` writes it, whose model evaluation or another run reads."""
    path = folder / "step-0000001"
    save_tiny_checkpoint(path / "hf")
    torch.save(dict.fromkeys(checkpoint._STATE_KEYS, 7), path / "state.pt")
    files = checkpoint.digest_files(str(path))
    checkpoint.write_run_info(FILES, str(path), {"identity": {"recipe": {"steps": 1}}, "files": files})
    if name.startswith("hf"):
        return path / name, lambda: inspect_checkpoint(str(path / "hf")).sha256
    return path / name, lambda: checkpoint.load(str(path), torch.device("cpu"))


def make_run_info(folder: Path) -> Made:
    checkpoint.write_run_info(FILES, str(folder), {"identity": {"recipe": {"steps": 1}}})
    return folder / "run.json", lambda: (checkpoint.read_run_info(str(folder)) or {})["identity"]


def make_scores(folder: Path) -> Made:
    path = str(folder / "seed-0.json")
    results.write_result(FILES, path, make_result())
    return Path(path), lambda: results.read_result(FILES, path)


def make_trial(folder: Path) -> Made:
    path = str(folder / "trial-0.json")
    trial = {"params": {"learning_rate": 1e-5}, "main_score": "F1", "dev_score": 0.75, "seed": 3}
    FILES.write_json(path, add_sha256(trial))
    return Path(path), lambda: hyperparameter_search._read_trial(FILES, path)


def make_config(folder: Path) -> Made:
    output = OutputDir(str(folder))
    config = msgspec.to_builtins(of_words([]).config)
    output_layout.mark_started(FILES, output, config)
    return Path(output.config_path), lambda: output_layout.check_config(FILES, output, config)


def make_report(folder: Path) -> Made:
    """The result of a run, or the job that writes an output."""
    path = str(folder / "job.json")
    job = {"job_id": "job-7", "job_endpoint": "localhost:1", "submitted_at": "2026-11-22T21:57:18Z"}
    write_report(FILES, path, job)

    def read() -> object:
        if (report := read_report(FILES, path, [])) is None:
            raise OutputMismatchError(path)
        return report

    return Path(path), read


def make_mirror_record(folder: Path) -> Made:
    record = mirror._Record(
        url="https://example.org/pubmed26n0001.xml.gz",
        md5="0123456789abcdef0123456789abcdef",
        md5_published=True,
        stamp="7 1700000000000000000",
        listing_text="2026-01-07 14:02",
        retrieved_at="2026-11-22T21:57:18Z",
        checked_at="2026-11-22T21:57:18Z",
    )
    path = f"{folder}/pubmed26n0001.xml.gz"
    mirror._write_record(FILES, path, record)

    def read() -> object:
        if (found := mirror._read_record(FILES, path)) is None:  # the file is verified again
            raise OutputMismatchError(mirror._record_path(path))
        return found

    return Path(mirror._record_path(path)), read


def make_mirror_table(folder: Path, name: str) -> Made:
    """A table of a mirror of PMC: the inventory, the metadata or the list of the articles of a range."""
    mirror_dir = str(folder)
    row: dict[str, object] = {field.name: None for field in article_ranges.ARTICLE_SCHEMA}
    row |= {
        "pmcid": 7,
        "version": 1,
        "etag": "e7",
        "inventory_etag": "e7",
        "doi": "10.1/7",
        "licence": "CC BY",
    }
    row |= {"retrieved": date(2026, 11, 22), "file": "PMC7.1.xml", "bytes": 700}
    listed = pa.Table.from_pylist([row], article_ranges.ARTICLE_SCHEMA)
    if name == "inventory":
        versions = [{"pmcid": 7, "version": 1, "etag": "e7", "modified": datetime(2026, 11, 22, tzinfo=UTC)}]
        table = pa.Table.from_pylist(versions, bucket_inventory.INVENTORY_SCHEMA)
        manifest = InventoryManifest("pmc-oa-opendata", "CSV", "Key", (), "2026-11-22T01-00Z", "0" * 32)
        bucket_inventory._write_inventory(FILES, mirror_dir, manifest, 1, [table], 0)
        path = bucket_inventory._inventory_path(mirror_dir)
        return Path(path), lambda: bucket_inventory.read_range(FILES, mirror_dir, 0)
    if name == "metadata":
        metadata = listed.select(metadata_cache.METADATA_SCHEMA.names)
        metadata_cache._write_metadata(FILES, mirror_dir, 0, metadata)
        path = metadata_cache._metadata_path(mirror_dir, 0)
        return Path(path), lambda: metadata_cache.read_metadata(FILES, mirror_dir, 0)
    path = article_ranges.selected_path(mirror_dir, 0)
    write_table(FILES, path, listed)
    return Path(path), lambda: article_ranges.read_selected(FILES, mirror_dir, 0)


KINDS: Final[Mapping[str, Callable[[Path], Made]]] = {
    **{f"manifest of {kind}": partial(make_manifest, kind=kind) for kind in MANIFESTS},
    "shard": make_documents,
    "shard, filtered": make_filtered_documents,
    "shard, ids for the overlap": make_overlapping_abstracts,
    "rows, in Python": make_rows_in_python,
    "rows, in training": make_rows_in_training,
    "words": make_word_list,
    "counts": partial(make_counted_shard, suffix=".arrow"),
    "report on counts": partial(make_counted_shard, suffix=".json"),
    "vocabulary, to encode": make_encoder,
    **{
        f"vocabulary, {name}": partial(make_vocabulary, name=name)
        for name in ("tokenizer.json", "vocab.txt", "spiece.model", "tokenizer_config.json")
    },
    **{
        f"checkpoint, {name}": partial(make_checkpoint, name=name)
        for name in ("hf/model.safetensors", "hf/config.json", "hf/tokenizer.json", "state.pt", "run.json")
    },
    "run.json of a run": make_run_info,
    "scores": make_scores,
    "trial": make_trial,
    "config.json of the work folder": make_config,
    "report of the work folder": make_report,
    "record of a mirror": make_mirror_record,
    **{
        f"{name} of a mirror of PMC": partial(make_mirror_table, name=name)
        for name in ("inventory", "metadata", "articles")
    },
}


def flip(kind: str, folder: Path, flips: int) -> Counter[str]:
    """Read a file as often with a flipped bit, and count what became of it."""
    path, read = KINDS[kind](folder)
    data, expected = path.read_bytes(), read()
    outcomes: Counter[str] = Counter()
    for flipped in flip_bits(path, flips):
        path.write_bytes(flipped)
        message, content = try_to_read(read)
        if message is not None:
            assert path.name in message
            outcomes["named"] += 1
        elif path.read_bytes() == data:
            outcomes["made again"] += 1
        else:
            outcomes["same content" if content == expected else "UNNOTICED"] += 1
    return outcomes


def try_to_read(read: Callable[[], object]) -> tuple[str | None, object]:
    """Return the message of the error that reading ends with, or None and the content."""
    try:
        return None, read()
    except (BioshardsError, ValueError) as error:
        return str(error), None


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bit_is_noticed(kind: str, tmp_path: Path) -> None:
    assert not flip(kind, tmp_path, 4)["UNNOTICED"]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_flipped_bits_are_noticed(kind: str, tmp_path: Path) -> None:
    outcomes = flip(kind, tmp_path, 100)
    print(f"{kind}: {', '.join(f'{count} {outcome}' for outcome, count in outcomes.items())}")
    assert not outcomes["UNNOTICED"]


def test_flipped_bit_in_a_lock_is_harmless_or_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock_folder(str(path), "OUT") as lock:
        data = path.read_bytes()
        token = data.index(lock.token.encode())
        for flipped in flip_bits(path):
            path.write_bytes(flipped)
            bit = next(at for at, (one, other) in enumerate(zip(data, flipped, strict=True)) if one != other)
            message, _ = try_to_read(lambda: lock.check(FILES.open))
            assert message is None or "OUT" in message
            assert message or not token <= bit < token + len(lock.token)
