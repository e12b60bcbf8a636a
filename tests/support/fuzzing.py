"""Files of strangers: mutations of real ones, and the readers that have to read or to refuse them.

A reader may raise an error of bioshards, or keep a record aside. Another exception, 20 seconds of a core or a
gigabyte of memory for a file of kilobytes is a finding.
"""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import hashlib
import io
import itertools
import json
import lzma
import random
import re
import resource
import shutil
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from bioshards.corpus.document import ArticleColumns
from bioshards.corpus.errors import BioshardsError
from bioshards.corpus.manifest import DocumentsManifest, PretrainingManifest, read_manifest, write_manifest
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.paths import BENCHMARK_SAMPLE, REPOSITORY
from tests.support.real_data import DATA

MAX_SECONDS: Final = 20
MAX_MEMORY_KB: Final = 1_000_000
_MAX_SEED_BYTES: Final = 200_000
_MAX_FILE_BYTES: Final = 4_000_000
_SCALE: Final = 1 << 16
"""Positions are fractions of the file in this unit, so that they can be drawn before the file is known."""
FILES: Final = LocalStorage()


# Mutations


class Mutation(NamedTuple):
    """A change of bytes: ``place`` and ``other`` are where, ``size`` how many bytes, ``choice`` what."""

    kind: str
    place: int
    other: int
    size: int
    choice: int


_HOSTILE_WORDS: Final = rb"""
<![CDATA[ ]]> <!-- --> <? ?> <!DOCTYPE &#0; &#xD800; &#1114112; & &nbsp; &lt; &b; </a> < > <article>
<math><msup><mi/></msup></math> <DeleteCitation><PMID>1</PMID></DeleteCitation> <PubmedArticle>
</PubmedArticle> 99999999999999999999 9223372036854775808 4294967296 2147483648 -1 0 1e999 NaN Infinity
0001-01-01 9999 null true [] {} "" "\ud800" \u0000 ../../x / %s{0} encoding='utf-7' encoding='utf-16'
[MASK] ## B- I- O
"""
_HOSTILE_CHARACTERS: Final = "\x00 ² ٣ \u2028 \u202e \ufffe \U000e0001 \ufeff \x1b[2J xml:lang='\xad'"
_HOSTILE: Final = (
    *_HOSTILE_WORDS.split(),
    *_HOSTILE_CHARACTERS.encode().split(),
    b"\xff",
    b"\xfe\xff",
    b"\xed\xa0\x80",
    b"\x80" * 100,
    b"\n",
    b"\r",
    b"\t",
    b"\n" * 5000,
    b" " * 5000,
    b"a. " * 5000,
    b"(" * 5000,
    b"1" * 5000,
    "½ ² ٣ 一 ｆ".encode(),
    "a\u0301".encode() * 500,
    b"&#" + b"9" * 5000 + b";",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
    b"<b xmlns='x'>",
    b"<a b='c' b='d'/>",
    b"<sec><p><xref ref-type='bibr'>1</xref></p></sec>",
    b"<a>" * 3000,
    b"<a>" * 300 + b"</a>" * 300,
    b"[" * 20_000,
    b'{"a":' * 20_000,
)
_WORD: Final = re.compile(rb"[^\s<>\"',:=&;]+")
_DELIMITED: Final = re.compile(rb">[^<>]+<|\"[^\"]*\"|(?<=\t)[^\t\n]*|(?<=: )[^,{}\[\]]+")

_KINDS: Final = ("flip", "set", "cut", "repeat", "swap", "truncate", "insert", "word", "value", "drop line")
MUTATIONS: Final = st.lists(
    st.builds(
        Mutation,
        kind=st.sampled_from((*_KINDS, "value")),
        place=st.integers(0, _SCALE),
        other=st.integers(0, _SCALE),
        size=st.sampled_from((1, 1, 2, 3, 8, 17, 64, 300, 4096)),
        choice=st.integers(0, 255),
    ),
    min_size=1,
    max_size=6,
)


def mutate(data: bytes, mutations: Iterable[Mutation]) -> bytes:
    """Return the file with these changes, one after the other."""
    for kind, place, other, size, choice in mutations:
        at, to = place * len(data) // _SCALE, other * len(data) // _SCALE
        hostile = _HOSTILE[choice % len(_HOSTILE)]
        match kind:
            case "flip" if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << choice % 8]) + data[at + 1 :]
            case "set":
                data = data[:at] + bytes([choice]) * size + data[at + size :]
            case "cut":
                data = data[:at] + data[at + size :]
            case "repeat":
                data = data[:at] + data[at : at + size] * (1 + choice) + data[at + size :]
            case "swap" if at + size <= to:
                left, right = data[at : at + size], data[to : to + size]
                data = data[:at] + right + data[at + size : to] + left + data[to + size :]
            case "truncate":
                data = data[:at]
            case "insert":
                data = data[:at] + hostile + data[at:]
            case "word" if found := _WORD.search(data, at):
                data = data[: found.start()] + hostile + data[found.end() :]
            case "value" if found := _DELIMITED.search(data, at):
                first, last = found[0][:1], found[0][-1:]
                ends = (first, last) if first in (b">", b'"') else (b"", b"")
                data = data[: found.start()] + ends[0] + hostile + ends[1] + data[found.end() :]
            case "drop line":
                end = data.find(b"\n", at)
                data = data[: data.rfind(b"\n", 0, at) + 1] + data[end + 1 if end >= 0 else len(data) :]
        data = data[:_MAX_FILE_BYTES]
    return data


# Readers


class Seed(NamedTuple):
    """A file to mutate; ``pack`` makes of the mutated bytes what the reader gets."""

    name: str
    data: bytes
    pack: Callable[[bytes], bytes] = bytes


@dataclass(frozen=True)
class FuzzedReader:
    """A reader of files of one kind.

    Attributes:
        seeds: lists the files to mutate.
        read: reads a file that it puts into an empty folder.
    """

    name: str
    seeds: Callable[[], Sequence[Seed]]
    read: Callable[[Path, Seed, bytes], object]

    def check(self, seed: Seed, mutations: Sequence[Mutation]) -> None:
        """Read a mutated file, and see that it is read or refused, in bounded time and memory."""
        data = seed.pack(mutate(seed.data, mutations))
        folder = Path(tempfile.mkdtemp(prefix="fuzzed-"))
        memory, start = _peak_memory_kb(), time.process_time()
        try:
            with contextlib.suppress(BioshardsError):
                self.read(folder, seed, data)
        finally:
            shutil.rmtree(folder)
        seconds, grown = time.process_time() - start, _peak_memory_kb() - memory
        assert seconds < MAX_SECONDS, f"{seconds:.0f} seconds"
        assert grown < MAX_MEMORY_KB, f"{grown / 1000:,.0f} MB more"


def _peak_memory_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _find_files(folder: Path, pattern: str) -> list[Path]:
    paths = [
        path for path in folder.rglob(pattern) if path.is_file() and path.stat().st_size < _MAX_SEED_BYTES
    ]
    return random.Random(41).sample(sorted(paths), min(60, len(paths)))


def _real_files(kind: str, *patterns: str) -> list[Seed]:
    """Return files of the sample, and real ones where they are at hand."""
    paths = [
        path for pattern in patterns for path in _find_files(REPOSITORY / "corpus" / "sample" / kind, pattern)
    ]
    if DATA:
        real = Path(DATA, {"pmc": "jats"}.get(kind, kind))
        paths += [path for pattern in patterns for path in _find_files(real, pattern)]
    return [Seed(path.name, path.read_bytes()) for path in paths]


def _read_source(pipeline: str, folder: Path, seed: Seed, data: bytes) -> None:
    """Stage a file, decide, finalize and publish."""
    from bioshards.corpus.jats import inputs as jats_inputs
    from bioshards.corpus.jats.filters import PmcConfig
    from bioshards.corpus.lifecycle.decisions import decide
    from bioshards.corpus.lifecycle.finalize import finalize_source, list_sources
    from bioshards.corpus.lifecycle.publish import publish
    from bioshards.corpus.lifecycle.stage import stage_source
    from bioshards.corpus.pubmed import discovery
    from bioshards.corpus.pubmed.filters import PubMedConfig
    from bioshards.corpus.text_config import TextConfig
    from bioshards.corpus.text_files import TextFilesConfig, records
    from tests.support.corpus.shard_jobs import make_shards_job

    config: TextConfig
    source_folder = folder / "in"
    source_folder.mkdir()
    (source_folder / seed.name).write_bytes(data)
    match pipeline:
        case "pubmed_to_shards":
            config = PubMedConfig(columns=ArticleColumns._fields)
            sources = discovery.discover_sources(FILES, [str(source_folder)])
            job = make_shards_job(folder / "out", config, dedup="exact", keep_dropped=True)
        case "pmc_to_shards":
            config = PmcConfig(columns=ArticleColumns._fields)
            sources = jats_inputs.discover(FILES, [str(source_folder)])
            job = make_shards_job(folder / "out", config, pipeline=pipeline, dedup="near", keep_dropped=True)
        case _:
            config = TextFilesConfig()
            sources = records.discover_sources(FILES, [str(source_folder)])
            job = make_shards_job(folder / "out", config, pipeline="text_to_shards", dedup="exact")
    staged = [stage_source(job, source) for source in sources]
    decided = decide(job, staged)
    finalized = [finalize_source(job, source, [decided]) for source in list_sources(job, staged)]
    publish(job, staged, finalized)


def _pack_tar(members: Sequence[tuple[str, bytes]], mode: str = "w") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _pack_zip(members: Sequence[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return packed.getvalue()


def _pack_beside(
    pack: Callable[[Sequence[tuple[str, bytes]]], bytes], others: Sequence[tuple[str, bytes]], data: bytes
) -> bytes:
    """Pack a member behind others."""
    return pack([*others, ("x.xml", data)])


def _pack_zstd(data: bytes) -> bytes:
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, "zstd") as stream:
        stream.write(data)
    return bytes(packed.getvalue())


def _list_citation_files() -> list[Seed]:
    return [
        Seed(f"pubmed26n{index:04}.xml", seed.data)
        for index, seed in enumerate(_real_files("pubmed", "*.xml"))
    ]


def _list_packed_citations() -> list[Seed]:
    plain = _list_citation_files()[:20]
    return [
        *(Seed(f"{seed.name}.gz", gzip.compress(seed.data)) for seed in plain),
        *(Seed(f"{seed.name}.gz", seed.data, gzip.compress) for seed in plain),
    ]


def _list_articles() -> list[Seed]:
    return [
        Seed(f"PMC{index + 1}.xml", seed.data)
        for index, seed in enumerate(_real_files("pmc", "*.xml", "*.nxml"))
    ]


def _strip_prolog(data: bytes) -> bytes:
    return re.sub(rb"<\?xml.*?\?>|<!DOCTYPE[^>\[]*>", b"", data)


_WRAPPERS: Final = (
    (b"<pmc-articleset>", b"</pmc-articleset>"),
    (b"<articles>", b"</articles>"),
    (
        b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'><ListRecords><record><header/><metadata>",
        b"</metadata></record><resumptionToken>a</resumptionToken></ListRecords></OAI-PMH>",
    ),
)


def _list_packages() -> list[Seed]:
    articles = [_strip_prolog(seed.data) for seed in _list_articles() if len(seed.data) < 60_000]
    pairs = zip(articles, articles[1:], itertools.cycle(_WRAPPERS), strict=False)
    return [
        Seed("package.xml", start + one + (b"" if b"OAI" in start else other) + end)
        for one, other, (start, end) in pairs
    ]


def _list_archives() -> list[Seed]:
    articles = [(seed.name, seed.data) for seed in _list_articles() if len(seed.data) < 30_000][:12]
    groups = [articles[start : start + 3] for start in range(0, len(articles), 3)]
    packers: Sequence[tuple[str, Callable[[Sequence[tuple[str, bytes]]], bytes]]] = (
        ("articles.tar", _pack_tar),
        ("articles.tar.gz", lambda members: gzip.compress(_pack_tar(members))),
        ("articles.zip", _pack_zip),
    )
    seeds = [Seed(name, pack(group)) for name, pack in packers for group in groups]
    for name, pack in packers:  # damage within members, of whole archives
        seeds.append(Seed(name, articles[0][1], functools.partial(_pack_beside, pack, articles[1:3])))
    seeds.append(Seed("articles.tar.gz", _pack_tar(articles[:3]), gzip.compress))
    return seeds


def _list_own_texts() -> list[Seed]:
    plain = _real_files("text", "*.jsonl", "*.txt")
    jsonl = next(seed.data for seed in plain if seed.name.endswith(".jsonl"))
    compressors: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress}
    compressors |= {".xz": lzma.compress, ".zst": _pack_zstd}
    seeds = [*plain]
    for suffix, compress in compressors.items():
        seeds += [Seed(f"a.jsonl{suffix}", compress(jsonl)), Seed(f"a.jsonl{suffix}", jsonl, compress)]
    return seeds


def _list_own_parquet() -> list[Seed]:
    table = pa.table(
        {
            "id": [f"note-{number}" for number in range(40)],
            "text": [f"The liver was seen {number} times. It was small." for number in range(40)],
            "year": list(range(1990, 2030)),
        }
    )
    seeds = []
    for compression, version in itertools.product(("none", "snappy", "zstd", "gzip"), ("1.0", "2.0")):
        out = io.BytesIO()
        pq.write_table(table, out, compression=compression, data_page_version=version, row_group_size=16)
        seeds.append(Seed("a.parquet", out.getvalue()))
    return seeds


def _file_entry(path: Path) -> tuple[int, str]:
    data = path.read_bytes()
    return len(data), hashlib.sha256(data).hexdigest()


def list_again(folder: Path, file: str) -> None:
    """Make the manifest agree with a changed file, as a stranger does who writes both."""
    manifest = read_manifest(FILES, str(folder))
    assert isinstance(manifest, DocumentsManifest | PretrainingManifest)
    size, sha256 = _file_entry(folder / file)
    outputs = tuple(
        msgspec.structs.replace(output, bytes=size, sha256=sha256) if output.file == file else output
        for output in manifest.outputs
    )
    write_manifest(FILES, f"{folder}/manifest.json", msgspec.structs.replace(manifest, outputs=outputs))


def _list_shards() -> list[Seed]:
    from tests.support.vocab.synthetic_corpora import write_abstracts

    with tempfile.TemporaryDirectory() as folder:
        write_abstracts(Path(folder), one=range(30))
        [path] = (Path(folder) / "data").iterdir()
        return [Seed(path.name, path.read_bytes())]


def _read_shard(folder: Path, seed: Seed, data: bytes) -> None:
    from bioshards.api import open_documents
    from bioshards.corpus.shards.input_dirs import load_document_inputs
    from bioshards.corpus.stats.directory_stats import compute_stats
    from bioshards.vocab.counting.word_counts import CountConfig, count_shard_words
    from tests.support.vocab.synthetic_corpora import write_abstracts

    write_abstracts(folder, one=range(30))
    (folder / "data" / seed.name).write_bytes(data)
    list_again(folder, f"data/{seed.name}")
    [documents] = load_document_inputs(FILES, [str(folder)])
    for read in (
        lambda: list(open_documents(folder)),
        lambda: compute_stats(FILES, str(folder)),
        lambda: count_shard_words(FILES, str(folder), documents.shards[0], CountConfig(), lambda _: None),
    ):
        with contextlib.suppress(BioshardsError):
            read()


def _list_word_lists() -> list[Seed]:
    lines = [
        f"{word}\t{1000 - index}\n" for index, word in enumerate(("the", "liver", "β", "²", "##", "a'b"))
    ]
    return [Seed("words.tsv", "".join(lines).encode())]


def _read_word_list(folder: Path, seed: Seed, data: bytes) -> None:
    from bioshards.corpus.manifest import Shard
    from bioshards.corpus.ui.progress import Progress
    from bioshards.vocab.counting import count_inputs
    from bioshards.vocab.counting.word_counts import CountConfig
    from tests.support.corpus.manifests import of_words

    (folder / seed.name).write_bytes(data)
    size, sha256 = _file_entry(folder / seed.name)
    write_manifest(FILES, f"{folder}/manifest.json", of_words([Shard(seed.name, 2, size, sha256)]))
    corpus_inputs = count_inputs.load_corpus_inputs(FILES, [str(folder)])
    counts = count_inputs.read_training_counts(
        FILES, corpus_inputs, CountConfig(), None, Progress(io.StringIO())
    )
    assert all(count > 0 for count in counts.words.values())


def _list_vocabularies() -> list[Seed]:
    from tests.support.vocab.published_files import make_spiece_model
    from tests.support.vocab.tiny_tokenizers import make_wordpiece

    wordpiece = make_wordpiece("liver", "##s", "the", "a", "##b")
    pieces = "\n".join(wordpiece.get_vocab()) + "\n"
    return [
        Seed("tokenizer.json", wordpiece.to_str().encode()),
        Seed("tokenizer.json", wordpiece.to_str(pretty=True).encode()),
        Seed("vocab.txt", pieces.encode()),
        Seed("spiece.model", make_spiece_model()),
    ]


def _read_vocabulary(folder: Path, seed: Seed, data: bytes) -> None:
    from bioshards.vocab.encode import Encoder
    from bioshards.vocab.tokenizer.published_vocabulary import load_published_vocabulary

    (folder / seed.name).write_bytes(data)
    with contextlib.suppress(BioshardsError):
        published = load_published_vocabulary(str(folder))
        published.tokenizer.encode("The livers: β ² 3")
    if seed.name == "tokenizer.json":
        encoder = Encoder(str(folder), special_as_text=True)
        encoder.encode("The livers: β ² 3 [SEP]")
        encoder.encode_all(["The livers", "β ² 3 [SEP]", ""])


def _write_rows(folder: Path) -> Path:
    from tests.support.train.synthetic_rows import random_rows, split_into_batches, write_pretraining_set

    rows = random_rows(40, 16, 100, False)
    write_pretraining_set(folder, {"one": split_into_batches(rows, [16])})
    return next(iter((folder / "train").glob("*.arrow")))


def _list_rows() -> list[Seed]:
    with tempfile.TemporaryDirectory() as folder:
        path = _write_rows(Path(folder))
        return [Seed(path.name, path.read_bytes())]


def _read_rows(folder: Path, seed: Seed, data: bytes) -> None:
    import numpy as np

    from bioshards.corpus.stats.directory_stats import compute_stats
    from bioshards.train.data.pretraining_dataset import PretrainingDataset

    path = _write_rows(folder)
    path.write_bytes(data)
    list_again(folder, f"train/{path.name}")
    with contextlib.suppress(BioshardsError):
        compute_stats(FILES, str(folder))
    dataset = PretrainingDataset(str(folder))
    dataset.gather_rows(np.arange(dataset.rows))


def _list_manifests() -> list[Seed]:
    from bioshards.corpus.manifest import OutputFile, Shard
    from tests.support.corpus import manifests

    entry = Shard("data/data-a-00000.parquet", 2, 10, "0" * 64)
    made = (
        manifests.of_documents([entry]),
        manifests.of_words([entry]),
        manifests.of_pretraining([entry]),
        manifests.of_vocabulary([OutputFile("tokenizer.json", 10, "0" * 64)], {}, []),
    )
    with tempfile.TemporaryDirectory() as folder:
        seeds = []
        for manifest in made:
            write_manifest(FILES, f"{folder}/manifest.json", manifest)
            seeds.append(Seed("manifest.json", Path(folder, "manifest.json").read_bytes()))
        return seeds


def _read_manifest(folder: Path, seed: Seed, data: bytes) -> None:
    from bioshards.corpus.manifest import read_any_version
    from bioshards.corpus.shards.input_dirs import check_directory, load_document_inputs
    from bioshards.corpus.stats.directory_stats import compute_stats
    from bioshards.vocab.counting.count_inputs import load_corpus_inputs

    (folder / seed.name).write_bytes(data)
    for read in (
        lambda: read_manifest(FILES, str(folder)),
        lambda: read_any_version(FILES, str(folder)),
        lambda: check_directory(FILES, str(folder)),
        lambda: load_document_inputs(FILES, [str(folder)]),
        lambda: load_corpus_inputs(FILES, [str(folder)]),
        lambda: compute_stats(FILES, str(folder)),
    ):
        with contextlib.suppress(BioshardsError):
            read()


def _list_benchmark_files() -> list[Seed]:
    """Return files by their paths below the folder of benchmarks."""
    return [
        Seed(str(path.relative_to(BENCHMARK_SAMPLE)), path.read_bytes())
        for path in sorted(BENCHMARK_SAMPLE.rglob("*"))
        if path.is_file() and path.suffix != ".md"
    ]


def _read_benchmark_file(folder: Path, seed: Seed, data: bytes) -> None:
    from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, load_records, locate_benchmark

    top = seed.name.split("/")[0]
    shutil.copytree(BENCHMARK_SAMPLE / top, folder / top)
    (folder / seed.name).write_bytes(data)
    for benchmark in BENCHMARKS.values():
        if found := locate_benchmark(str(folder), benchmark):
            with contextlib.suppress(BioshardsError):
                for split, records in load_records(found).items():
                    assert split
                    benchmark.count_records(records)


_CHECKPOINT_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors")


_IDENTITY: Final = {
    "recipe": {"steps": 3},
    "data_fingerprint": "a",
    "vocabulary_sha256": "b",
    "origin": None,
    "format": 2,
}


@functools.cache
def _make_checkpoint() -> Path:
    from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint

    return save_tiny_checkpoint(Path(tempfile.mkdtemp(prefix="fuzzed-checkpoint-"), "model"))


def _list_checkpoints() -> list[Seed]:
    import torch

    state = {"model": {"a": torch.zeros(3)}, "optimiser": {"b": torch.zeros(2)}, "done": 1, "first": 0}
    saved = io.BytesIO()
    torch.save({**state, "tokens": 5, "tally": {}}, saved)
    run_info = json.dumps({"identity": _IDENTITY, "run": {}, "started_at": "2026"}).encode()
    model_files = [Seed(name, (_make_checkpoint() / name).read_bytes()) for name in _CHECKPOINT_FILES]
    return [Seed("state.pt", saved.getvalue()), Seed("run.json", run_info), *model_files]


def _read_checkpoint(folder: Path, seed: Seed, data: bytes) -> None:
    import torch

    from bioshards.evaluate.encoder import inspect_checkpoint, load_encoder
    from bioshards.train import checkpoint

    if seed.name in ("state.pt", "run.json"):
        (folder / "run.json").write_text("{}")
        (folder / seed.name).write_bytes(data)
        if seed.name == "run.json":
            checkpoint.check_identity(str(folder), {**_IDENTITY, "origin": ""})
        checkpoint.load(str(folder), torch.device("cpu"))
        return
    shutil.copytree(_make_checkpoint(), folder / "model")
    (folder / "model" / seed.name).write_bytes(data)
    inspected = inspect_checkpoint(str(folder / "model"))
    load_encoder(inspected, inspected.load_tokenizer())


READERS: Final = (
    FuzzedReader("citations", _list_citation_files, functools.partial(_read_source, "pubmed_to_shards")),
    FuzzedReader(
        "packed citations", _list_packed_citations, functools.partial(_read_source, "pubmed_to_shards")
    ),
    FuzzedReader("articles", _list_articles, functools.partial(_read_source, "pmc_to_shards")),
    FuzzedReader("packages", _list_packages, functools.partial(_read_source, "pmc_to_shards")),
    FuzzedReader("archives", _list_archives, functools.partial(_read_source, "pmc_to_shards")),
    FuzzedReader("own text", _list_own_texts, functools.partial(_read_source, "text_to_shards")),
    FuzzedReader("own Parquet", _list_own_parquet, functools.partial(_read_source, "text_to_shards")),
    FuzzedReader("shards", _list_shards, _read_shard),
    FuzzedReader("words", _list_word_lists, _read_word_list),
    FuzzedReader("vocabularies", _list_vocabularies, _read_vocabulary),
    FuzzedReader("rows", _list_rows, _read_rows),
    FuzzedReader("manifests", _list_manifests, _read_manifest),
    FuzzedReader("benchmarks", _list_benchmark_files, _read_benchmark_file),
    FuzzedReader("checkpoints", _list_checkpoints, _read_checkpoint),
)
