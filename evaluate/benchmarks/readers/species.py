"""Species-800 (Pafilis et al. 2013) from its own texts and mentions, converted to tagged sentences.

Papers score the sentences of spyysalo/s800's tools, distributed with BioBERT (formats/iob.py reads those).
This reader uses bioshards' sentence and word splitting, so scores are close but differ.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bioshards.corpus.sentences import spans
from bioshards.evaluate.benchmarks.definition import (
    SPLITS,
    BenchmarkFileError,
    PathsByName,
    RecordsBySplit,
    Split,
)
from bioshards.evaluate.benchmarks.formats.standoff import PubTatorDocument, parse_mention
from bioshards.evaluate.benchmarks.formats.text_files import (
    get_only_path,
    quote_excerpt,
    read_lines,
    read_text,
)
from bioshards.evaluate.benchmarks.record_types import Mention, TaggedSentence

_PMID: Final = re.compile(r"(\S+)\t(?:PMID:)?([0-9]+)(?:\t.*)?")
_MENTION: Final = re.compile(r"[0-9]+\t(\S+):[0-9]+\t([0-9]+)\t([0-9]+)\t(.+)")
_WORD: Final = re.compile(r"\w+|[^\w\s]")


def read_species(files: PathsByName) -> RecordsBySplit:
    """Read the splits of 560, 80 and 160 abstracts.

    ``mentions`` is S800.tsv, ``pmids`` is pubmedid.tsv beside it, ``texts`` are in abstracts/; ``train``,
    ``dev`` and ``test`` are the PMID lists of spyysalo/s800. Without the lists every tenth text is dev, and
    two of ten are test.

    Raises:
        BenchmarkFileError: a line has another form, offsets do not match, or a list names an unknown text.
    """
    document_by_pmid = {document.pmid: document for document in _read_documents(files)}
    return {
        split: [sentence for pmid in pmids for sentence in tag_document(document_by_pmid[pmid], "Species")]
        for split, pmids in _split_pmids(files, document_by_pmid).items()
    }


def _split_pmids(
    files: PathsByName, document_by_pmid: Mapping[str, PubTatorDocument]
) -> dict[Split, list[str]]:
    if not all(split in files for split in SPLITS):
        pmids = sorted(document_by_pmid, key=int)
        dev, test = pmids[::10], sorted(pmids[1::10] + pmids[2::10], key=int)
        return {"train": sorted({*pmids} - {*dev, *test}, key=int), "dev": dev, "test": test}
    return {split: _read_pmid_list(get_only_path(files, split), document_by_pmid) for split in SPLITS}


def _read_pmid_list(path: str, document_by_pmid: Mapping[str, PubTatorDocument]) -> list[str]:
    rows = [(line_number, row.strip()) for line_number, row in read_lines(path) if row.strip()]
    for line_number, pmid in rows:
        if pmid not in document_by_pmid:
            raise BenchmarkFileError(
                path, line_number, f"it names {quote_excerpt(pmid)}, of which there is no text"
            )
    return [pmid for _, pmid in rows]


def _read_documents(files: PathsByName) -> list[PubTatorDocument]:
    path = get_only_path(files, "mentions")
    texts = _read_texts(files, os.path.join(os.path.dirname(path), "abstracts"))
    mentions: dict[str, list[Mention]] = {name: [] for name in texts}
    for line_number, row in read_lines(path):
        match = _MENTION.fullmatch(row)
        if not match or match[1] not in texts:
            raise BenchmarkFileError(
                path, line_number, f"a mention in one of the texts is due, not {quote_excerpt(row)}"
            )
        name, text = match[1], texts[match[1]][1]
        start, end = _convert_byte_offsets(text, int(match[2]), int(match[3]) + 1)
        mentions[name].append(parse_mention(path, line_number, text, (start, end, match[4], "Species")))
    return [PubTatorDocument(pmid, text, tuple(mentions[name])) for name, (pmid, text) in texts.items()]


def _read_texts(files: PathsByName, folder: str) -> dict[str, tuple[str, str]]:
    """Return PMID and text by text name."""
    path, text_by_name = get_only_path(files, "pmids"), {}
    for line_number, row in read_lines(path):
        match = _PMID.fullmatch(row)
        text = os.path.join(folder, f"{match[1]}.txt") if match else ""
        if not match or text not in files["texts"]:
            raise BenchmarkFileError(
                path, line_number, f"a text's name and PMID should be there, not {quote_excerpt(row)}"
            )
        text_by_name[match[1]] = (match[2], read_text(text))
    return text_by_name


def _convert_byte_offsets(text: str, *offsets: int) -> list[str]:
    """Convert S800's byte offsets (spyysalo/s800, tools/s800.py) to character offsets."""
    data = text.encode()
    return [str(len(data[:offset].decode(errors="ignore"))) for offset in offsets]


def tag_document(document: PubTatorDocument, entity_type: str) -> list[TaggedSentence]:
    """Convert the mentions of one type to tags of words.

    Words are runs of letters and digits, and single punctuation marks. Of overlapping mentions the first and
    longest is kept. A word that a mention covers in part is tagged as a whole. No sentence ends within a
    mention."""
    kept_mentions: list[Mention] = []
    for entity_mention in sorted(document.mentions, key=lambda mention: (mention.start, -mention.end)):
        if entity_mention.type == entity_type.upper() and (
            not kept_mentions or entity_mention.start >= kept_mentions[-1].end
        ):
            kept_mentions.append(entity_mention)
    tagged_sentences = []
    for start, end in _join_spans(spans(document.text), kept_mentions):
        words = list(_WORD.finditer(document.text, start, end))
        if words:
            tags = _make_tags(
                words,
                (entity_mention for entity_mention in kept_mentions if start <= entity_mention.start < end),
                entity_type,
            )
            word_texts = tuple(word.group() for word in words)
            tagged_sentences.append(
                TaggedSentence(f"{document.pmid}.{start}", word_texts, tags, document.pmid)
            )
    return tagged_sentences


def _make_tags(
    words: Sequence[re.Match[str]], mentions: Iterable[Mention], entity_type: str
) -> tuple[str, ...]:
    tags = ["O"] * len(words)
    for entity_mention in mentions:
        word_indices = [
            index
            for index, word in enumerate(words)
            if entity_mention.start < word.end() and word.start() < entity_mention.end
        ]
        if word_indices and tags[word_indices[0]] == "O":
            tags[word_indices[0] : word_indices[-1] + 1] = [
                f"B-{entity_type}",
                *[f"I-{entity_type}"] * (len(word_indices) - 1),
            ]
    return tuple(tags)


def _join_spans(sentences: Iterable[tuple[int, int]], mentions: Sequence[Mention]) -> list[tuple[int, int]]:
    """Join the spans of sentences that a mention connects."""
    joined: list[tuple[int, int]] = []
    for start, end in sentences:
        if joined and any(
            entity_mention.start < joined[-1][1] and entity_mention.end > start for entity_mention in mentions
        ):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
