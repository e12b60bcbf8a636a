"""Jobs of made-up inputs, as many as the full corpora have or more, and the size of their graphs.

Nothing of these inputs exists: a graph is made of names, sizes and digests.  Names are as they are in the
full corpora, digests are random, so that a graph is as little to be packed as a real one.  Dataflow takes
graphs of up to 10 MB (https://cloud.google.com/dataflow/docs/request-quotas, read in November 2026).
"""

from __future__ import annotations

import hashlib
import random
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.article_rules import ArticleRules
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.places import Places
from bioshards.corpus.download.pmc_inventory import Inventory
from bioshards.corpus.download.pmc_selection import Articles
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.download.web import Server
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.manifest import DocumentsRun, PretrainingInput, PretrainingRun, WordsRun, decode
from bioshards.corpus.rules import Rules, TextRules
from bioshards.corpus.shards import Shard
from bioshards.corpus.sources import Part, Source, source
from bioshards.corpus.workspace import Workspace
from bioshards.pipelines import pmc_to_shards, pubmed_to_shards, shards_to_pretraining, shards_to_words
from bioshards.pipelines.bucket import Bucket
from bioshards.pipelines.fetching import REMOTE_LANES, Fetching
from bioshards.pipelines.job import Job
from bioshards.vocab.counts import Counting
from bioshards.vocab.encode import Encoder
from bioshards.vocab.examples import portions, recipes
from bioshards.vocab.examples.making import Making
from bioshards.vocab.examples.writing import Writer
from bioshards.vocab.inputs import Documents
from tests.vocabularies import word_piece

LIMIT: Final = 10_000_000
"""Bytes of a graph that Dataflow takes."""
BUCKET: Final = "gs://some-laboratory/bioshards"
FILES = LocalFiles()

Build = Callable[[beam.Pipeline], None]


def size(build: Build) -> int:
    """Bytes of the graph that a runner is given."""
    root = beam.Pipeline(options=PipelineOptions([]))
    build(root)
    return len(root.to_runner_api().SerializeToString())


def digest(of: object) -> str:
    """64 random hexadecimal digits, the same for the same."""
    return hashlib.sha256(str(of).encode()).hexdigest()


def stamp(number: int, size: int) -> str:
    """As storage.py makes them of an object's size and time."""
    return f"{size}-{1_760_000_000 + int(digest(number)[:6], 16)}.0"


def citations(files: int, wanted: int = 0) -> Build:
    """``pubmed_to_shards`` of so many files that are there, and so many to be fetched first."""
    return lambda root: pubmed_to_shards.build(root, _shards_job(abstracts(files), Rules(), remotes(wanted)))


def articles(ranges: int, sources: list[Source] | None = None) -> Build:
    """``pmc_to_shards`` of so many ranges of PMC's bucket, and of sources that are there."""
    inventory = Inventory("2026-11-01", digest(0)[:32], 10_000 * ranges, 0, list(range(ranges)))
    bucket = Bucket(_fetching(), list(range(ranges)), Articles(frozenset({"CC0", "CC-BY"})), inventory)
    job = replace(_shards_job(sources or [], ArticleRules(), []), bucket=bucket)
    return lambda root: pmc_to_shards.build(root, job)


def words(shards: int) -> Build:
    """``shards_to_words`` of so many shards."""
    run = WordsRun(command=("bench",), inputs=())
    job = shards_to_words.Job(FILES, Workspace(f"{BUCKET}/words"), documents(shards), Counting(), 1, {}, run)
    return lambda root: shards_to_words.build(root, job)


def examples(shards: int, vocabulary: Path) -> Build:
    """``shards_to_pretraining`` of so many shards, each large enough to be a portion, globally shuffled."""
    found = documents(shards)
    making = Making(
        recipe=recipes.DEFAULTS["electra"],
        encoder=Encoder(str(vocabulary), special_as_text=True),
        vocabulary=digest(vocabulary),
        seed=0,
        validation=0.01,
        buckets={"train": 1200, "validation": 12},
        max_bytes=128_000_000,
        writer=Writer(None),
    )
    job = shards_to_pretraining.Job(
        files=FILES,
        work=Workspace(f"{BUCKET}/examples"),
        inputs=[decode(PretrainingInput, {**one.as_dict(), "overlap": []}) for one in found],
        portions=list(portions.portions(found, 0, {})),
        making=making,
        max_rejected=0.001,
        config={},
        run=PretrainingRun(command=("bench",), inputs=(), vocabulary="vocabulary"),
    )
    return lambda root: shards_to_pretraining.build(root, job)


def vocabulary(folder: Path, size: int = 30_522) -> Path:
    """A folder with a tokenizer of so many random pieces."""
    draw, letters = random.Random(7), string.ascii_lowercase + string.digits
    pieces = dict.fromkeys([*letters, *(f"##{letter}" for letter in letters)])
    while len(pieces) < size - 5:  # BERT's five special ones
        piece = "".join(draw.choices(letters, k=draw.randint(2, 9)))
        pieces[piece if draw.random() < 0.7 else f"##{piece}"] = None
    folder.mkdir(parents=True, exist_ok=True)
    word_piece(*pieces).save(str(folder / "tokenizer.json"))
    return folder


def abstracts(files: int) -> list[Source]:
    """NLM's files in a mirror."""
    folder = f"{BUCKET}/mirror/pubmed/baseline"
    found = []
    for number in range(1, files + 1):
        size = 15_000_000 + int(digest(number)[:5], 16)
        path = f"{folder}/pubmed26n{number:04d}.xml.gz"
        found.append(source(Found(path, size, stamp(number, size)), "2026-11-02T10:00:00Z"))
    return found


def loose(articles: int, group: int = 10_000) -> list[Source]:
    """Single articles, a file each, gathered into sources."""
    found = []
    for first in range(0, articles, group):
        parts = []
        for number in range(first, min(first + group, articles)):
            size = 30_000 + int(digest(number)[:5], 16)
            name = f"PMC{1_000_000 + number}.1.xml"
            parts.append(Part(name, f"{BUCKET}/pmc/{name}", size, stamp(number, size)))
        label = f"PMC{first // group:04d}xxxx"
        of = (f"{BUCKET}/pmc/{label}", 2 * 10**9, digest(first)[:32])
        found.append(Source(0, first, label, *of, parts=tuple(parts), files=len(parts)))
    return found


def remotes(files: int) -> list[Remote]:
    """The rows of NLM's listing."""
    base = "https://ftp.ncbi.nlm.nih.gov/pubmed/baseline"
    return [
        Remote(
            url=f"{base}/pubmed26n{number:04d}.xml.gz",
            path=f"pubmed/baseline/pubmed26n{number:04d}.xml.gz",
            root="PubmedArticleSet",
            md5_beside=True,
            size=19_000_000,
            listed=f"2026-01-{1 + number % 28:02d} 14:{number % 60:02d} 19M",
        )
        for number in range(1, files + 1)
    ]


def documents(shards: int) -> list[Documents]:
    """A finished directory of abstracts."""
    listed = []
    for number in range(shards):
        name = f"data-pubmed26n{number:04d}-{digest(number)[:8]}-00000.arrow"
        listed.append(Shard(name, 20_000 + number % 9_999, 40_000_000 + number * 7919, digest(number)))
    return [Documents(f"{BUCKET}/abstracts", "pubmed_to_shards", tuple(listed))]


def _shards_job(sources: list[Source], rules: TextRules, wanted: list[Remote]) -> Job:
    config: dict[str, Any] = {"pipeline": "pubmed_to_shards", "rules": rules.as_dict()}
    return Job(
        files=FILES,
        work=Workspace(f"{BUCKET}/shards"),
        sources=sources,
        wanted=wanted,
        fetching=_fetching(),
        bucket=None,
        rules=rules,
        keep_dropped=False,
        dedup="exact",
        drop_in=f"{BUCKET}/abstracts",
        excluded=None,
        max_shard_bytes=500_000_000,
        max_rejected=0.001,
        config=config,
        run=DocumentsRun(command=("bench",)),
    )


def _fetching() -> Fetching:
    server = Server("https://a.server/", "bioshards", Places("a.server", 4, 8.0))
    return Fetching(Mirror(FILES, f"{BUCKET}/mirror"), server, REMOTE_LANES, 1)
