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
from typing import Any, Final

import apache_beam as beam
import msgspec
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.download.http_client import Server
from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.bucket_inventory import Inventory
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.manifest import DocumentsRun, PretrainingInput, PretrainingRun, Shard, WordsRun
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import FileInfo
from bioshards.corpus.text_config import TextConfig
from bioshards.pipelines import pmc_to_shards, pubmed_to_shards, shards_to_pretraining, shards_to_words
from bioshards.pipelines.execution import executor
from bioshards.pipelines.inputs.downloads import REMOTE_SLOTS, DownloadPlan, SourceListing
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan, RunInputs
from bioshards.pipelines.job_types import PretrainingJob, ShardsJob, WordsJob
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import shard_groups
from bioshards.vocab.pretraining.build import BuildConfig
from bioshards.vocab.pretraining.objectives import example_recipes
from tests.support.vocab.tiny_tokenizers import make_wordpiece

MAX_GRAPH_BYTES: Final = 10_000_000
"""Bytes of a graph that Dataflow takes."""
BUCKET: Final = "gs://some-laboratory/bioshards"
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


def citations_graph(files: int, remote_files: int = 0) -> BuildGraph:
    """Build the graph of ``pubmed_to_shards`` for numbers of present files and of files to download."""
    return lambda root: pubmed_to_shards.build(
        root, _make_shards_job(make_sources(files), PubMedConfig(), make_remote_files(remote_files))
    )


def articles_graph(ranges: int, sources: list[SourceFile] | None = None) -> BuildGraph:
    """Build the graph of ``pmc_to_shards`` for numbers of ranges of PMC's bucket and of present sources."""
    inventory = Inventory("2026-11-01", hash_hex(0)[:32], 10_000 * ranges, 0, list(range(ranges)))
    article_plan = PmcArticlePlan(
        _make_download_plan(), list(range(ranges)), ArticleFilter(frozenset({"CC0", "CC-BY"})), inventory
    )
    job = _make_shards_job(sources or [], PmcConfig(), [], article_plan)
    return lambda root: pmc_to_shards.build(root, job)


def words_graph(shards: int) -> BuildGraph:
    """Build the graph of ``shards_to_words`` for a number of shards."""
    run = WordsRun(command=("bench",), inputs=())
    job = WordsJob(FILES, OutputDir(f"{BUCKET}/words"), make_document_dirs(shards), CountConfig(), 1, {}, run)
    return lambda root: shards_to_words.build(root, job)


def pretraining_graph(shards: int, vocabulary: Path) -> BuildGraph:
    """Build the graph of ``shards_to_pretraining`` of a number of shard groups, globally shuffled."""
    document_dirs = make_document_dirs(shards)
    config = BuildConfig(
        recipe=example_recipes.DEFAULTS["electra"],
        encoder=Encoder(str(vocabulary), special_as_text=True),
        vocabulary_sha256=hash_hex(vocabulary),
        seed=0,
        validation_fraction=0.01,
        num_buckets={"train": 1200, "validation": 12},
        max_shard_bytes=128_000_000,
    )
    job = PretrainingJob(
        storage=FILES,
        output_dir=OutputDir(f"{BUCKET}/examples"),
        inputs=[msgspec.convert({**one.to_dict(), "overlap": []}, PretrainingInput) for one in document_dirs],
        shard_groups=list(shard_groups.group_shards(document_dirs, 0, {})),
        build_config=config,
        max_rejected=0.001,
        config={},
        run_info=PretrainingRun(command=("bench",), inputs=(), vocabulary="vocabulary"),
    )
    return lambda root: shards_to_pretraining.build(root, job)


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


def make_document_dirs(shards: int) -> list[DocumentsInput]:
    """A finished directory of abstracts."""
    shard_files = []
    for number in range(shards):
        name = f"data-pubmed26n{number:04d}-{hash_hex(number)[:8]}-00000.arrow"
        shard_files.append(Shard(name, 20_000 + number % 9_999, 40_000_000 + number * 7919, hash_hex(number)))
    return [DocumentsInput(f"{BUCKET}/abstracts", "pubmed_to_shards", tuple(shard_files))]


def _make_shards_job(
    sources: list[SourceFile],
    rules: TextConfig,
    remote_files: list[RemoteFile],
    article_plan: PmcArticlePlan | None = None,
) -> ShardsJob:
    config: dict[str, Any] = {"pipeline": "pubmed_to_shards", "document_config": rules.to_dict()}
    listing = SourceListing(remote_files, {}, remote_files, _make_download_plan(), [], "2026-11-01")
    return ShardsJob(
        storage=FILES,
        output_dir=OutputDir(f"{BUCKET}/shards"),
        sources=sources,
        run_inputs=RunInputs(sources, {"pubmed": listing}, article_plan=article_plan),
        document_config=rules,
        keep_dropped=False,
        dedup="exact",
        overlap_with=f"{BUCKET}/abstracts",
        exclusion_list=None,
        inclusion_list=None,
        max_shard_bytes=500_000_000,
        max_rejected=0.001,
        max_bad_files=0.001,
        config=config,
        run_info=DocumentsRun(command=("bench",)),
    )


def _make_download_plan() -> DownloadPlan:
    server = Server("https://a.server/", "bioshards", RateLimiter("a.server", 4, 8.0))
    return DownloadPlan(Mirror(FILES, f"{BUCKET}/mirror"), server, REMOTE_SLOTS, 1)
