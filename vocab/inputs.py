"""What a vocabulary is built from: finished directories of documents, or of words that were counted
before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from bioshards.corpus import shards
from bioshards.corpus.files import LocalFiles

from . import counts
from .counts import Counting
from .words import Words

DOCUMENTS: Final = ("pubmed_to_shards", "pmc_to_shards")
"""The pipelines of which the output is documents."""
WORDS: Final = "shards_to_words"
"""The pipeline of which the output is words and their counts."""
MAX_WORDS: Final = 4_000_000
"""Distinct words to train on: rarer ones are one piece in ten thousand, and cost memory (FIGURES.md)."""


class WrongInput(Exception):
    """An input cannot be used; the message says which, why and what to do."""


class Input(NamedTuple):
    """A finished directory.

    Attributes:
        pipeline: what made it.
        digest: the same for the same content.
    """

    folder: str
    pipeline: str
    digest: str
    manifest: dict[str, Any]


class Text(NamedTuple):
    """The words of all inputs, as they are written, how often each.

    Attributes:
        words: those to train on, and ``held_out`` those to measure with only.
        min_count: how often the rarest occur that were not left out.
    """

    words: Counter[str]
    held_out: Counter[str]
    min_count: int


def look(files: LocalFiles, folders: Sequence[str]) -> list[Input]:
    """The inputs, by their manifests.

    Raises:
        FileNotFoundError: a directory is not there or not finished.
        WrongInput: one holds something else, or the same as another.
    """
    found: list[Input] = []
    for folder in folders:
        manifest = shards.manifest(files, folder.rstrip("/"))
        pipeline = manifest.get("config", {}).get("pipeline")
        if pipeline not in (*DOCUMENTS, WORDS):
            raise WrongInput(
                f"{folder} holds neither documents nor words: it was made by {pipeline}. Give the output of "
                f"beam run {', '.join(DOCUMENTS)} or {WORDS}"
            )
        digest = shards.digest(output["sha256"] for output in manifest["outputs"])
        for other in found:
            if other.digest == digest:
                raise WrongInput(f"{folder} and {other.folder} hold the same: every word would count twice")
        found.append(Input(folder.rstrip("/"), pipeline, digest, manifest))
    return found


def read(
    files: LocalFiles,
    inputs: Sequence[Input],
    counting: Counting,
    min_count: int | None,
    say: Callable[[str], None],
) -> Text:
    """Count the words of documents, and read those that were counted before.

    Args:
        counting: what is counted; of words counted before only ``kind`` matters.
        min_count: words that occur less often are left out; None leaves out as few as leave
            :data:`MAX_WORDS`.
        say: is told how far it is.

    Raises:
        WrongInput: words were counted that do not serve, or nothing is left.
    """
    words: Counter[str] = Counter()
    held_out: Counter[str] = Counter()
    for given in inputs:
        if given.pipeline == WORDS:
            _check(given, counting)
            before = _as(counting.kind, given, files, "words.tsv", min_count or 1)
            words.update(before)
            held_out.update(_as(counting.kind, given, files, "held-out.tsv", 1))
            continue
        outputs = given.manifest["outputs"]
        for number, shard in enumerate(outputs, 1):
            say(f"{given.folder}: counting the words of shard {number:,} of {len(outputs):,}")
            counted = counts.of_shard(files, given.folder, shard, counting)
            words.update(counted.words)
            held_out.update(counted.held_out)
    words, least = _pruned(words, min_count)
    if not words:
        raise WrongInput(
            "there are no words to train on in "
            + ", ".join(given.folder for given in inputs)
            + (f" that occur {min_count:,} times: give a lower --min-count" if min_count else "")
        )
    return Text(words, held_out, least)


def _check(given: Input, counting: Counting) -> None:
    config = given.manifest["config"]
    if config["kind"] != counting.kind and config["kind"] == "bert":
        raise WrongInput(
            f"{given.folder} holds words without the marks at them (--words bert), and this vocabulary is "
            "trained on what stands between white space: beam run shards_to_words --words white-space"
        )


def _as(kind: str, given: Input, files: LocalFiles, name: str, min_count: int) -> Counter[str]:
    """The words of a file of counts; what stands between white space is made BERT's words of, if asked
    for."""
    if not files.exists(f"{given.folder}/{name}"):
        return Counter()
    with files.open(f"{given.folder}/{name}") as file:
        try:
            found = counts.read(file, min_count, MAX_WORDS)
        except ValueError as error:
            raise WrongInput(f"{given.folder}/{name} is damaged: {error}") from error
    same = given.manifest["config"]["kind"] == kind
    return found if same else counts.recased(found, Words())


def _pruned(words: Counter[str], min_count: int | None) -> tuple[Counter[str], int]:
    """The words that occur ``min_count`` times, or the :data:`MAX_WORDS` most frequent and none as rare as
    the rest."""
    least = min_count or 1
    if min_count is None and len(words) > MAX_WORDS:
        least = sorted(words.values(), reverse=True)[MAX_WORDS] + 1
    return (words if least == 1 else Counter({w: n for w, n in words.items() if n >= least})), least
