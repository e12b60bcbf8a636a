"""What a vocabulary is built from: finished directories of documents, or of words that were counted
before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from bioshards.corpus import shards
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import (
    InputWords,
    ManifestError,
    WordsManifest,
    encode,
    parse_manifest,
)
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import FORMAT

from . import counts, inputs
from .counting import HELD_OUT, WORDS
from .counts import Counting
from .inputs import PIPELINES, Documents, InputError
from .words import Words

MAX_WORDS: Final = 4_000_000
"""Distinct words to train on: rarer ones would change little and cost memory (tests/bench/FIGURES.md)."""
_COUNTED_BY: Final = "shards_to_words"
_ANEW: Final = f"Delete it and run beam run {_COUNTED_BY} once more, which makes it anew"


class CountedWords(NamedTuple):
    """A finished directory of words and their counts.

    Attributes:
        kind: what a word is, one of ``counts.KINDS``.
        min_count: words that occur less often were left out when they were counted.
        counted: the digests of the documents that they were counted from.
        files: those of the words, by name.
        digest: the same for the same words and counts.
    """

    folder: str
    kind: str
    min_count: int
    counted: tuple[str, ...]
    files: dict[str, Shard]
    digest: str

    def as_dict(self) -> dict[str, Any]:
        """What it holds, wherever it lies, for a manifest."""
        found: dict[str, Any] = encode(InputWords("shards_to_words", self.digest))
        return found


class Text(NamedTuple):
    """The words of all sources, as they are written, how often each.

    Attributes:
        words: those to train on, and ``held_out`` those to measure with only, of which none is left out.
        min_count: words that occur less often may be missing.  It is the highest bound that any source, or
            all of them together, had: of what was counted before, that of ``shards_to_words --min-count``
            and that by which :data:`MAX_WORDS` are left of each.
    """

    words: Counter[str]
    held_out: Counter[str]
    min_count: int


Source = Documents | CountedWords


def look(files: LocalFiles, folders: Sequence[str]) -> list[Source]:
    """What the folders hold, by their manifests, in an order that depends on nothing else.

    Raises:
        InputError: one is not finished, or holds neither documents nor words, or holds what another one does,
            or words of the documents of another one.
    """
    paths = [folder.rstrip("/") for folder in folders]
    counted = [found for path in paths if (found := _counted(files, path))]
    if len({found.digest for found in counted}) < len(counted):
        names = ", ".join(found.folder for found in counted)
        raise InputError(
            f"of {names} two hold the same words, which would count twice. Give one of them, once"
        )
    words = {found.folder for found in counted}
    documents = inputs.find(files, [path for path in paths if path not in words], [*PIPELINES, _COUNTED_BY])
    sources: list[Source] = [*sorted(counted, key=lambda found: found.digest), *documents]
    _see_that_no_text_counts_twice(sources)
    return sources


def read(
    files: LocalFiles,
    sources: Sequence[Source],
    counting: Counting,
    min_count: int | None,
    say: Callable[[str], None],
) -> Text:
    """Count the words of documents, and read those that were counted before.

    A word may be rare in one source and frequent in all of them, so that rare ones are left out of the sum.
    Memory sets one bound before: of words counted before, no more than :data:`MAX_WORDS` are read of each
    source, and none as rare as the first that is not.

    Args:
        counting: what is counted; of words counted before only ``kind`` matters.
        min_count: words that occur less often are left out; None leaves out as few as leave
            :data:`MAX_WORDS`.
        say: is told how far it is.

    Raises:
        InputError: words were counted that do not serve, a file is not what its manifest lists, or nothing
            is left.
    """
    words: Counter[str] = Counter()
    held_out: Counter[str] = Counter()
    bounds = [1]
    for source in sources:
        if isinstance(source, CountedWords):
            say(f"{source.folder}: reading its words")
            found, bound = _read(files, source, counting.kind, WORDS, MAX_WORDS)
            words.update(found)
            bounds += [source.min_count, bound]
            held_out.update(_read(files, source, counting.kind, HELD_OUT, None)[0])
            continue
        for number, shard in enumerate(source.shards, 1):
            say(f"{source.folder}: counting the words of shard {number:,} of {len(source.shards):,}")
            if damage := inputs.damage(files, f"{source.folder}/{shard.file}", shard):
                raise InputError(
                    f"{source.folder}/{shard.file} cannot be used: {damage}. Delete it and run the beam run "
                    f"{source.pipeline} that made it once more, which makes it anew"
                )
            documents = counts.of_shard(files, source.folder, shard, counting)
            words.update(documents.words)
            held_out.update(documents.held_out)
    words, bound = _pruned(words, min_count)
    if not words:
        often = f" that occurs {min_count:,} times: give a lower --min-count" if min_count else ""
        raise InputError(f"no word to train on in {', '.join(source.folder for source in sources)}{often}")
    return Text(words, held_out, max(*bounds, bound))


def _counted(files: LocalFiles, folder: str) -> CountedWords | None:
    """The directory, if it is one of words that were counted; what is wrong with others inputs.find says."""
    try:
        manifest = files.read_json(f"{folder}/manifest.json")
    except (OSError, ValueError):
        return None
    if not isinstance(manifest, dict) or manifest.get("pipeline") != _COUNTED_BY:
        return None
    try:
        words = parse_manifest(manifest, folder)
    except ManifestError as error:
        raise InputError(str(error)) from error
    assert isinstance(words, WordsManifest)
    if words.config.format != FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {words.config.format}, this is "
            f"{FORMAT}). Make it anew: beam run {_COUNTED_BY} with another --output"
        )
    found = CountedWords(
        folder,
        kind=words.config.kind,
        min_count=words.config.min_count,
        counted=tuple(documents.shards_sha256 for documents in words.inputs),
        files={output.file: output for output in words.outputs},
        digest=shards.digest(output.sha256 for output in words.outputs),
    )
    if WORDS not in found.files:
        raise InputError(
            f"{folder}/manifest.json is not as {_COUNTED_BY} writes it (outputs: no {WORDS} among them). "
            f"Make it anew: beam run {_COUNTED_BY} with another --output"
        )
    return found


def _see_that_no_text_counts_twice(sources: Sequence[Source]) -> None:
    """Words and the documents that they were counted from are one text, and so are two countings of these.

    Raises:
        InputError: two sources are of the same documents.
    """
    folder_of: dict[str, str] = {}
    for source in sources:
        digests = set(source.counted if isinstance(source, CountedWords) else [source.summary.shards_sha256])
        for digest in digests & folder_of.keys():
            raise InputError(
                f"{folder_of[digest]} and {source.folder} are of the same documents (shards_sha256 "
                f"{digest[:12]}...), whose words would be counted twice. Give one of them"
            )
        folder_of |= dict.fromkeys(digests, source.folder)


def _read(
    files: LocalFiles, source: CountedWords, kind: str, name: str, max_words: int | None
) -> tuple[Counter[str], int]:
    """The words of a file of counts, as the kind that is wanted, and how often the rarest may occur."""
    if source.kind != kind and kind != "bert":  # BERT's words are made of all others
        raise InputError(
            f"{source.folder} holds words without the marks at them (--words bert), and this vocabulary is "
            "trained on what stands between white space: beam run shards_to_words --words white-space"
        )
    if name not in source.files:  # nothing was held out
        return Counter(), 1
    path = f"{source.folder}/{name}"
    if damage := inputs.damage(files, path, source.files[name]):
        raise InputError(f"{path} is damaged: {damage}. {_ANEW}")
    with files.open(path) as file:
        try:
            found, bound = counts.read_frequent(file, max_words)
        except ValueError as error:
            raise InputError(f"{path} is damaged: {error}. {_ANEW}") from error
    return (found if source.kind == kind else counts.recased(found, Words())), bound


def _pruned(words: Counter[str], min_count: int | None) -> tuple[Counter[str], int]:
    """The words that occur so often; for None, the most frequent, and none as rare as the first left out."""
    least = min_count or 1
    if min_count is None and len(words) > MAX_WORDS:
        least = sorted(words.values(), reverse=True)[MAX_WORDS] + 1
    return (words if least == 1 else Counter({w: n for w, n in words.items() if n >= least})), least
