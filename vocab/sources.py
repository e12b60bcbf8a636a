"""What a vocabulary is built from: finished directories of documents, or of words that were counted
before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from bioshards.corpus import shards
from bioshards.corpus.files import LocalFiles

from . import counts, inputs
from .counting import HELD_OUT, WORDS
from .counts import Counting
from .inputs import Documents, WrongInput
from .words import Words

MAX_WORDS: Final = 4_000_000
"""Distinct words to train on: rarer ones would change little and cost memory (tests/bench/FIGURES.md)."""
_COUNTED_BY: Final = "shards_to_words"


class CountedWords(NamedTuple):
    """A finished directory of words and their counts.

    Attributes:
        kind: what a word is, one of ``counts.KINDS``.
        digest: the same for the same words and counts.
    """

    folder: str
    kind: str
    digest: str

    def as_dict(self) -> dict[str, Any]:
        """What it holds, wherever it lies, for a manifest."""
        return {"pipeline": _COUNTED_BY, "words_sha256": self.digest}


class Text(NamedTuple):
    """The words of all sources, as they are written, how often each.

    Attributes:
        words: those to train on, and ``held_out`` those to measure with only.
        min_count: how often the rarest occur that were not left out.
    """

    words: Counter[str]
    held_out: Counter[str]
    min_count: int


Source = Documents | CountedWords


def look(files: LocalFiles, folders: Sequence[str]) -> list[Source]:
    """What the folders hold, by their manifests, in an order that depends on nothing else.

    Raises:
        WrongInput: one is not finished, or holds neither documents nor words, or holds what another one does.
    """
    paths = [folder.rstrip("/") for folder in folders]
    counted = [found for path in paths if (found := _counted(files, path))]
    if len({found.digest for found in counted}) < len(counted):
        names = ", ".join(found.folder for found in counted)
        raise WrongInput(
            f"of {names} two hold the same words, which would count twice. Give one of them, once"
        )
    rest = [path for path in paths if path not in {found.folder for found in counted}]
    return [*sorted(counted, key=lambda found: found.digest), *inputs.find(files, rest)]


def read(
    files: LocalFiles,
    sources: Sequence[Source],
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
    for source in sources:
        if isinstance(source, CountedWords):
            words.update(_read(files, source, counting.kind, WORDS, min_count or 1))
            held_out.update(_read(files, source, counting.kind, HELD_OUT, 1))
            continue
        for number, shard in enumerate(source.shards, 1):
            say(f"{source.folder}: counting the words of shard {number:,} of {len(source.shards):,}")
            found = counts.of_shard(files, source.folder, asdict(shard), counting)
            words.update(found.words)
            held_out.update(found.held_out)
    words, least = _pruned(words, min_count)
    if not words:
        often = f" that occurs {min_count:,} times: give a lower --min-count" if min_count else ""
        raise WrongInput(f"no word to train on in {', '.join(source.folder for source in sources)}{often}")
    return Text(words, held_out, least)


def _counted(files: LocalFiles, folder: str) -> CountedWords | None:
    """The directory, if it is one of words that were counted; what is wrong with others inputs.find says."""
    try:
        manifest = files.read_json(f"{folder}/manifest.json")
    except (OSError, ValueError):
        return None
    if not isinstance(manifest, dict) or manifest.get("pipeline") != _COUNTED_BY:
        return None
    digest = shards.digest(output["sha256"] for output in manifest["outputs"])
    return CountedWords(folder, manifest["config"]["kind"], digest)


def _read(files: LocalFiles, source: CountedWords, kind: str, name: str, min_count: int) -> Counter[str]:
    """The words of a file of counts, as the kind that is wanted: BERT's words are made of all others."""
    if source.kind != kind and kind != "bert":
        raise WrongInput(
            f"{source.folder} holds words without the marks at them (--words bert), and this vocabulary is "
            "trained on what stands between white space: beam run shards_to_words --words white-space"
        )
    path = f"{source.folder}/{name}"
    if not files.exists(path):
        if name == WORDS:
            raise WrongInput(f"{path} is missing: count anew with beam run shards_to_words")
        return Counter()
    with files.open(path) as file:
        try:
            found = counts.read(file, min_count, MAX_WORDS)
        except ValueError as error:
            raise WrongInput(f"{path} is damaged: {error}") from error
    return found if source.kind == kind else counts.recased(found, Words())


def _pruned(words: Counter[str], min_count: int | None) -> tuple[Counter[str], int]:
    """The words that occur so often; for None, the most frequent, and none as rare as the first left out."""
    least = min_count or 1
    if min_count is None and len(words) > MAX_WORDS:
        least = sorted(words.values(), reverse=True)[MAX_WORDS] + 1
    return (words if least == 1 else Counter({w: n for w, n in words.items() if n >= least})), least
