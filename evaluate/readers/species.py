"""Species-800 (Pafilis et al., 2013) from its own files: texts and mentions, here made tagged sentences.

What papers score are the sentences that spyysalo/s800's tools make of them, which BioBERT hands on
(iob.py reads those).  This reader's sentences and words are bioshards' own, so scores are near those and
not the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bioshards.corpus.sentences import spans
from bioshards.evaluate.datasets import PARTS, BenchmarkFileError, Files, Part, Parts
from bioshards.evaluate.records import Mention, Sentence

from .lines import contents, lines, only, shown
from .standoff import Document, mention

_PMID: Final = re.compile(r"(\S+)\t(?:PMID:)?([0-9]+)(?:\t.*)?")
_MENTION: Final = re.compile(r"[0-9]+\t(\S+):[0-9]+\t([0-9]+)\t([0-9]+)\t(.+)")
_WORD: Final = re.compile(r"\w+|[^\w\s]")


def species(files: Files) -> Parts:
    """The parts: 560, 80 and 160 abstracts.

    ``mentions`` is S800.tsv, ``pmids`` pubmedid.tsv beside it, ``texts`` are in abstracts/; ``train``,
    ``dev`` and ``test`` are the lists of PMIDs of spyysalo/s800.  Without them one text in ten is dev,
    and two are test.

    Raises:
        BenchmarkFileError: a line is not as S800's are, its offsets are not the mention's, or a list names
            another text.
    """
    documents = {document.pmid: document for document in _documents(files)}
    return {
        part: [sentence for pmid in pmids for sentence in tagged(documents[pmid], "Species")]
        for part, pmids in _split(files, documents).items()
    }


def _split(files: Files, documents: Mapping[str, Document]) -> dict[Part, list[str]]:
    if not all(part in files for part in PARTS):
        pmids = sorted(documents, key=int)
        dev, test = pmids[::10], sorted(pmids[1::10] + pmids[2::10], key=int)
        return {"train": sorted({*pmids} - {*dev, *test}, key=int), "dev": dev, "test": test}
    return {part: _listed(only(files, part), documents) for part in PARTS}


def _listed(path: str, documents: Mapping[str, Document]) -> list[str]:
    rows = [(number, row.strip()) for number, row in lines(path) if row.strip()]
    for number, pmid in rows:
        if pmid not in documents:
            raise BenchmarkFileError(path, number, f"it names {shown(pmid)}, of which there is no text")
    return [pmid for _, pmid in rows]


def _documents(files: Files) -> list[Document]:
    path = only(files, "mentions")
    texts = _texts(files, os.path.join(os.path.dirname(path), "abstracts"))
    mentions: dict[str, list[Mention]] = {name: [] for name in texts}
    for number, row in lines(path):
        match = _MENTION.fullmatch(row)
        if not match or match[1] not in texts:
            raise BenchmarkFileError(path, number, f"a mention in one of the texts is due, not {shown(row)}")
        name, text = match[1], texts[match[1]][1]
        start, end = _characters(text, int(match[2]), int(match[3]) + 1)
        mentions[name].append(mention(path, number, text, (start, end, match[4], "Species")))
    return [Document(pmid, text, tuple(mentions[name])) for name, (pmid, text) in texts.items()]


def _texts(files: Files, folder: str) -> dict[str, tuple[str, str]]:
    """PMIDs and texts by their names."""
    path, found = only(files, "pmids"), {}
    for number, row in lines(path):
        match = _PMID.fullmatch(row)
        text = os.path.join(folder, f"{match[1]}.txt") if match else ""
        if not match or text not in files["texts"]:
            raise BenchmarkFileError(
                path, number, f"a text's name and PMID should be there, not {shown(row)}"
            )
        found[match[1]] = (match[2], contents(text))
    return found


def _characters(text: str, *offsets: int) -> list[str]:
    """Offsets in bytes, which S800's are (spyysalo/s800 reads them so, tools/s800.py), in characters."""
    data = text.encode()
    return [str(len(data[:offset].decode(errors="ignore"))) for offset in offsets]


def tagged(document: Document, type: str) -> list[Sentence]:
    """The mentions of one type as tags of words: runs of letters and digits, and each mark alone.

    Of mentions that overlap the first and longest is kept.  A word of which a mention is a part is
    all of it, and no sentence ends within a mention.
    """
    kept: list[Mention] = []
    for one in sorted(document.mentions, key=lambda mention: (mention.start, -mention.end)):
        if one.type == type.upper() and (not kept or one.start >= kept[-1].end):
            kept.append(one)
    found = []
    for start, end in _joined(spans(document.text), kept):
        words = list(_WORD.finditer(document.text, start, end))
        if words:
            tags = _tags(words, (one for one in kept if start <= one.start < end), type)
            text = tuple(word.group() for word in words)
            found.append(Sentence(f"{document.pmid}.{start}", text, tags, document.pmid))
    return found


def _tags(words: Sequence[re.Match[str]], mentions: Iterable[Mention], type: str) -> tuple[str, ...]:
    tags = ["O"] * len(words)
    for one in mentions:
        inside = [n for n, word in enumerate(words) if one.start < word.end() and word.start() < one.end]
        if inside and tags[inside[0]] == "O":
            tags[inside[0] : inside[-1] + 1] = [f"B-{type}", *[f"I-{type}"] * (len(inside) - 1)]
    return tuple(tags)


def _joined(sentences: Iterable[tuple[int, int]], mentions: Sequence[Mention]) -> list[tuple[int, int]]:
    """Spans of sentences, those made one between which a mention stands."""
    joined: list[tuple[int, int]] = []
    for start, end in sentences:
        if joined and any(one.start < joined[-1][1] and one.end > start for one in mentions):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
