"""Jobs of synthetic inputs, at least as many as the full corpora have, and the size of their graphs.

Nothing of these inputs exists: a graph is made of names, sizes and digests.  Names are as they are in the
full corpora, digests are random, so that a graph is as little to be packed as a real one.  Dataflow takes
graphs of up to 10 MB (https://cloud.google.com/dataflow/docs/request-quotas, read in November 2026).
"""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Final
from unittest import mock

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.download.http_client import Server
from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.bucket_inventory import Inventory
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.manifest import Shard
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import FileInfo
from bioshards.pipelines import cli, documents, dry_run, shards
from bioshards.pipelines.execution import executor
from bioshards.pipelines.inputs import article_files, pubmed_files
from bioshards.pipelines.inputs.downloads import REMOTE_SLOTS, DownloadPlan, SourceListing
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan, RunInputs
from bioshards.vocab.pretraining import pretraining_inputs
from tests.support.vocab.tiny_tokenizers import make_wordpiece

MAX_GRAPH_BYTES: Final = 10_000_000
"""Bytes of a graph that Dataflow takes."""
BUCKET: Final = "gs://some-laboratory/bioshards"
FOLDER: Final = "/nonexistent/some-laboratory/bioshards"
"""Of outputs, which nobody writes."""
FILES = LocalStorage()

BuildGraph = Callable[[beam.Pipeline], None]


def graph_size(build: BuildGraph) -> int:
    """Return the bytes of the graph that a runner gets."""
    root = executor.make_pipeline(None, PipelineOptions([]))
    build(root)
    return len(root.to_runner_api().SerializeToString())


def hash_hex(seed: object) -> str:
    """Return 64 hexadecimal digits determined by the arguments."""
    return hashlib.sha256(str(seed).encode()).hexdigest()


def make_version(number: int, size: int) -> str:
    """As storage.py makes them of an object's size and time."""
    return f"{size}-{1_760_000_000 + int(hash_hex(number)[:6], 16)}.0"


def citations_graph(files: int, remote_files: int = 0, sources: list[SourceFile] | None = None) -> BuildGraph:
    """Build the graph of ``pubmed_to_shards`` for numbers of present files and of files to download."""
    remote = make_remote_files(remote_files)
    listing = SourceListing(remote, {}, remote, _make_download_plan(), [], "2026-11-01")
    inputs = RunInputs(sources or make_sources(files), {"pubmed": listing})
    with mock.patch.object(pubmed_files, "find_inputs", return_value=inputs):
        return _capture("pubmed_to_shards", "--dedup", "exact")


def articles_graph(ranges: int, sources: list[SourceFile] | None = None) -> BuildGraph:
    """Build the graph of ``pmc_to_shards`` for numbers of ranges of PMC's bucket and of present sources."""
    inventory = Inventory("2026-11-01", hash_hex(0)[:32], 10_000 * ranges, 0, list(range(ranges)))
    article_plan = PmcArticlePlan(
        _make_download_plan(), list(range(ranges)), ArticleFilter(frozenset({"CC0", "CC-BY"})), inventory
    )
    inputs = RunInputs(sources or [], article_plan=article_plan)
    with (
        mock.patch.object(article_files, "find_inputs", return_value=inputs),
        mock.patch.object(shards, "_read_abstracts_digest", return_value=hash_hex("abstracts")),
    ):
        return _capture("pmc_to_shards", "--dedup", "exact", "--find-overlap-with", f"{FOLDER}/abstracts")


def words_graph(num_shards: int) -> BuildGraph:
    """Build the graph of ``shards_to_words`` for a number of shards."""
    with mock.patch.object(documents, "load_inputs", return_value=make_document_dirs(num_shards)):
        return _capture("shards_to_words", "--input", f"{FOLDER}/abstracts")


def pretraining_graph(num_shards: int, vocabulary: Path) -> BuildGraph:
    """Build the graph of ``shards_to_pretraining`` of a number of shard groups."""
    with (
        mock.patch.object(documents, "load_inputs", return_value=make_document_dirs(num_shards)),
        mock.patch.object(pretraining_inputs, "check_vocabulary"),
        mock.patch.object(pretraining_inputs, "load_overlap_lists", return_value={}),
    ):
        options = ("--vocab", str(vocabulary))
        return _capture("shards_to_pretraining", "--input", f"{FOLDER}/abstracts", *options)


def _capture(pipeline: str, *options: str) -> BuildGraph:
    """Return what builds the graph of a run, as its dry run gets it."""
    with (
        mock.patch.object(dry_run, "print_plan", return_value=0) as print_plan,
        mock.patch.object(dry_run, "describe_sources", return_value=[]),
    ):
        if cli.main(["run", pipeline, "--output", f"{FOLDER}/shards", "--dry-run", *options]):
            raise SystemExit(f"beam run {pipeline} has failed")
    build: BuildGraph = print_plan.call_args.args[2]
    return build


def write_vocabulary(folder: Path, size: int = 30_522) -> Path:
    """Write a folder with a tokenizer of random pieces."""
    rng, letters = random.Random(7), string.ascii_lowercase + string.digits
    pieces = dict.fromkeys([*letters, *(f"##{letter}" for letter in letters)])
    while len(pieces) < size - 5:  # BERT's five special ones
        piece = "".join(rng.choices(letters, k=rng.randint(2, 9)))
        pieces[piece if rng.random() < 0.7 else f"##{piece}"] = None
    folder.mkdir(parents=True, exist_ok=True)
    make_wordpiece(*pieces).save(str(folder / "tokenizer.json"))
    return folder


def make_sources(files: int) -> list[SourceFile]:
    """Make the sources of NLM's files in a mirror."""
    folder = f"{BUCKET}/mirror/pubmed/baseline"
    sources = []
    for number in range(1, files + 1):
        size = 15_000_000 + int(hash_hex(number)[:5], 16)
        path = f"{folder}/pubmed26n{number:04d}.xml.gz"
        sources.append(
            source_from_file(FileInfo(path, size, make_version(number, size)), "2026-11-02T10:00:00Z")
        )
    return sources


def make_remote_files(files: int) -> list[RemoteFile]:
    """Make the entries of NLM's listing."""
    base = "https://ftp.ncbi.nlm.nih.gov/pubmed/baseline"
    return [
        RemoteFile(
            url=f"{base}/pubmed26n{number:04d}.xml.gz",
            path=f"pubmed/baseline/pubmed26n{number:04d}.xml.gz",
            root_name="PubmedArticleSet",
            has_md5_file=True,
            size=19_000_000,
            listing_text=f"2026-01-{1 + number % 28:02d} 14:{number % 60:02d} 19M",
        )
        for number in range(1, files + 1)
    ]


def make_document_dirs(num_shards: int) -> list[DocumentsInput]:
    """A finished directory of abstracts."""
    shard_files = []
    for number in range(num_shards):
        name = f"data/data-pubmed26n{number:04d}-{hash_hex(number)[:8]}-00000.parquet"
        shard_files.append(Shard(name, 20_000 + number % 9_999, 40_000_000 + number * 7919, hash_hex(number)))
    return [DocumentsInput(f"{BUCKET}/abstracts", "pubmed_to_shards", tuple(shard_files))]


def _make_download_plan() -> DownloadPlan:
    server = Server("https://a.server/", "bioshards", RateLimiter("a.server", 4, 8.0))
    return DownloadPlan(Mirror(FILES, f"{BUCKET}/mirror"), server, REMOTE_SLOTS, 1)
