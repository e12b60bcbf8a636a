"""The functions and classes of ``import bioshards``: sentences, records, articles, and finished directories.

Everything is read on this machine; nothing needs Beam or torch. Libraries are imported by the function that
needs them: sentences take 0.05 s, a record 0.35 s, a directory 0.25 s.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import datasets
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    from bioshards.corpus import document as corpus_document
    from bioshards.corpus.jats.filters import PmcConfig
    from bioshards.corpus.manifest import Shard
    from bioshards.corpus.text.cleaning import Cleaner
    from bioshards.vocab.encode import Encoder


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document.

    Attributes:
        heading: path of headings, ``Abstract > METHODS`` or ``Results > Growth``; ``""`` for a body without
            headings.
        sentences: sentences of the section, in order.
    """

    heading: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An abstract, an article or another text as sentences, with its metadata.

    The attributes are the columns of a shard (docs/documents.md).

    Attributes:
        id: ``pubmed:12345678``, ``pmc:PMC123456.1`` or ``text:note-17``.
        source: ``pubmed``, ``pmc`` or ``text``.
        pmid: PubMed id; None if it has none, as the next two.
        pmcid: PMC id, with ``PMC``.
        doi: without its address, case as printed.
        version: version of the citation or of the article.
        year: year of publication.
        journal: title of the journal.
        article_type: JATS ``article-type``; full text only.
        language: MARC codes of the article, ``eng`` or ``eng,fre``.
        licence: ``CC-BY`` and others; full text only.
        retracted: True if the article is retracted.
        flags: ``manuscript``, ``ocr``, ``no-body`` and others; full text only.
        title: title in one line.
        sentences: sentences of the title, then of the text.
        sections: the sections, without the title.
        file: name of the source file.
        position: 0-based index of the record in that file.
        metadata: the columns of ``--columns`` by name, as in a row of a shard.
    """

    id: str
    source: str
    pmid: int | None
    pmcid: str | None
    doi: str | None
    version: int | None
    year: int | None
    journal: str | None
    article_type: str | None
    language: str | None
    licence: str | None
    retracted: bool
    flags: tuple[str, ...]
    title: str
    sentences: tuple[str, ...]
    sections: tuple[Section, ...]
    file: str | None
    position: int | None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentences, one a line."""
        return "\n".join(self.sentences)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Document:
        """Make a document of a row of a shard; the inverse of :meth:`to_dict`."""
        values = dict(row)
        origin = values.pop("origin") or {"file": None, "position": None}
        starts = [(section["heading"], section["first_sentence"]) for section in values.pop("sections")]
        sentences, flags = tuple(values.pop("sentences")), tuple(values.pop("flags"))
        return cls(
            sentences=sentences,
            sections=_make_sections(sentences, starts),
            flags=flags,
            file=origin["file"],
            position=origin["position"],
            **{name: values.pop(name) for name in _PLAIN_COLUMNS},
            metadata=values,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the row of a shard: dictionaries, lists, strings, numbers and dates."""
        first_sentence = len(self.sentences) - sum(len(section.sentences) for section in self.sections)
        sections = []
        for section in self.sections:
            sections.append({"heading": section.heading, "first_sentence": first_sentence})
            first_sentence += len(section.sentences)
        return {
            **{name: getattr(self, name) for name in _PLAIN_COLUMNS[:-1]},
            "flags": list(self.flags),
            "title": self.title,
            "sentences": list(self.sentences),
            "sections": sections,
            "origin": {"file": self.file, "position": self.position},
            **self.metadata,
        }


_PLAIN_COLUMNS = (
    "id",
    "source",
    "pmid",
    "pmcid",
    "doi",
    "version",
    "year",
    "journal",
    "article_type",
    "language",
    "licence",
    "retracted",
    "title",
)
"""Columns with the same value in a row and in a document."""


def _make_sections(sentences: tuple[str, ...], starts: list[tuple[str, int]]) -> tuple[Section, ...]:
    """Return the sections from their headings and first sentences."""
    firsts = [first for _, first in starts] + [len(sentences)]
    return tuple(
        Section(heading, sentences[first:end])
        for (heading, first), end in zip(starts, firsts[1:], strict=True)
    )


def split(text: str) -> list[str]:
    """Split a biomedical text into sentences.

    White space is collapsed to single blanks; a blank line ends a sentence. No character but white space is
    changed.

    >>> split("Pt. seen on the ward at 8 a.m. by Dr. Vester. E. coli was found in 3.5% (Fig. 2).")
    ['Pt. seen on the ward at 8 a.m. by Dr. Vester.', 'E. coli was found in 3.5% (Fig. 2).']
    """
    from bioshards.corpus import sentences

    return sentences.split(text)


def clean(text: str) -> str:
    """Clean the text of an abstract as the pipelines do, with all rules (docs/text.md).

    It removes control characters, escaped markup, notes on copyright and the like at its end, and mends
    spaces and wrongly decoded characters. A text that only says that there is no abstract becomes ``""``.

    >>> clean("Growth was slow. Copyright 2020 The Authors. Published by Example Press.")
    'Growth was slow.'
    """
    cleaner = _make_cleaner()
    return " ".join(part for _, part in cleaner.clean_abstract([(None, cleaner.clean_text(text, {}))], {}))


@cache
def _make_cleaner() -> Cleaner:
    from bioshards.corpus.text.cleaning import CLEANING_RULES, Cleaner

    # A label within the text ("METHODS: ...") begins a section in a document; here it stays in the text.
    return Cleaner(name for name in CLEANING_RULES if name != "run-in-labels")


def read_pubmed(path: str | os.PathLike[str], columns: Iterable[str] = ()) -> Iterator[Document]:
    """Read the citations of a PubMed file, ``.xml`` or ``.xml.gz``, that ``beam run pubmed_to_shards`` keeps.

    Citations without an abstract are left out. Versions and deletions across files are the pipeline's work.
    A record that cannot be read is left out with a warning that names it.

    Args:
        path: the file.
        columns: names of columns of ``--columns``, for :attr:`Document.metadata`.

    Raises:
        FileNotFoundError: there is no such file.
        BadFileError: it is no PubMed XML, or is damaged.
    """
    from bioshards.corpus.pubmed.documents import CitationReader
    from bioshards.corpus.pubmed.filters import PubMedConfig
    from bioshards.corpus.storage.local_storage import LocalStorage
    from bioshards.corpus.storage.source_file import SourceFile

    name, status = os.fspath(path), os.stat(path)  # now, so that a missing file is an error of this call
    chosen = _check_columns(columns)
    source = SourceFile(0, 0, os.path.basename(name), name, status.st_size, "")
    records = CitationReader(PubMedConfig(columns=chosen)).read_records(LocalStorage(), source)

    def iter_documents() -> Iterator[Document]:
        for record in records:
            if record.error:
                message = f"{name}: record {record.position} is left out ({record.error})"
                warnings.warn(message, stacklevel=2)
            elif record.document and record.keys[0].drop_reason is None:
                yield _convert(record.document, chosen)

    return iter_documents()


def read_article(path: str | os.PathLike[str], columns: Iterable[str] = ()) -> Document:
    """Read a full-text article in JATS XML, ``.xml`` or ``.xml.gz``: all of its text but the references.

    Args:
        path: the file, of one article.
        columns: names of columns of ``--columns``, for :attr:`Document.metadata`.

    Raises:
        FileNotFoundError: there is no such file.
        BadFileError: it is no JATS XML, or is damaged.
        BadRecordError: it does not contain exactly one article, or the article has no id.
    """
    from bioshards.corpus import jats

    chosen = _check_columns(columns)
    with open(path, "rb") as file:
        document = jats.document(file.read(), _make_article_config(chosen))
    return _convert(document._replace(file=os.path.basename(os.fspath(path))), chosen)


@lru_cache(maxsize=4)
def _make_article_config(columns: tuple[str, ...]) -> PmcConfig:
    """Return the config of articles with these columns, whose checks take 1 % of the time of an article."""
    from bioshards.corpus.jats.filters import PmcConfig

    return PmcConfig(columns=columns)


def _check_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """Return names of columns in the order of the schema.

    Raises:
        InvalidValueError: there is no such column.
    """
    from bioshards.corpus.document import ArticleColumns
    from bioshards.corpus.errors import InvalidValueError, suggest_nearest

    names = {columns} if isinstance(columns, str) else set(columns)
    for name in sorted(names.difference(ArticleColumns._fields)):
        hint = suggest_nearest(name, ArticleColumns._fields)
        raise InvalidValueError(f"there is no column {name!r}{hint}")
    return tuple(name for name in ArticleColumns._fields if name in names)


def _convert(document: corpus_document.Document, columns: tuple[str, ...]) -> Document:
    sentences = tuple(document.sentences)
    return Document(
        sentences=sentences,
        sections=_make_sections(sentences, document.sections),
        flags=tuple(document.flags),
        file=document.file,
        position=document.position,
        metadata={name: _convert_value(getattr(document.columns, name)) for name in columns},
        **{name: getattr(document, name) for name in _PLAIN_COLUMNS},
    )


def _convert_value(value: Any) -> Any:
    """Return a value as it is in a row: named tuples as dictionaries, tuples as lists."""
    if hasattr(value, "_asdict"):
        return {name: _convert_value(item) for name, item in value._asdict().items()}
    return list(map(_convert_value, value)) if isinstance(value, tuple) else value


def _check_once(folder: str, shard: Shard) -> None:
    """Compare a shard with its manifest, once in this process unless it changes.

    Raises:
        DamagedShardError: it is missing, or not as the manifest lists it.
    """
    path = os.path.join(folder, shard.file)
    modified_at = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
    _check_version(folder, shard, (os.path.abspath(folder), modified_at))


@cache
def _check_version(folder: str, shard: Shard, version: tuple[str, int]) -> None:
    from bioshards.corpus.shards.document_shards import check_shard
    from bioshards.corpus.storage.local_storage import LocalStorage

    check_shard(LocalStorage(), folder, shard)


class Documents:
    """The documents of a finished directory, in the order of its manifest (:func:`open_documents`)."""

    def __init__(self, folder: str, expression: pc.Expression | None = None) -> None:
        from bioshards.corpus.shards.document_shards import read_documents_manifest
        from bioshards.corpus.storage.local_storage import LocalStorage

        self._storage = LocalStorage()
        self._folder, self._expression = folder, expression
        self._shards = read_documents_manifest(self._storage, folder).outputs

    def __len__(self) -> int:
        if self._expression is None:
            return sum(shard.rows for shard in self._shards)
        return int(self._open_dataset().count_rows(filter=self._expression))

    def __iter__(self) -> Iterator[Document]:
        for batch in self.iter_batches():
            yield from map(Document.from_dict, batch.to_pylist())

    def filter(self, expression: pc.Expression) -> Documents:
        """Return the documents for which an expression is true, of those that an earlier one left.

        Args:
            expression: ``pyarrow.compute.field("year") >= 2020``; ids and dates skip what cannot match.
        """
        both = expression if self._expression is None else self._expression & expression
        return Documents(self._folder, both)

    def iter_batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield record batches, one in memory at a time.

        Args:
            columns: names of the columns to read, in the order of the schema; None for all.

        Raises:
            OSError: a shard cannot be read, or is damaged.
        """
        if self._expression is None:
            from bioshards.corpus.shards.document_shards import read_shards

            yield from read_shards(self._storage, self._folder, self._shards, columns)
            return
        scanner = self._open_dataset().scanner(columns=columns, filter=self._expression)
        yield from (batch for batch in scanner.to_batches() if batch.num_rows)

    def take(self, indices: Iterable[int]) -> Iterator[Document]:
        """Yield the documents of these 0-based indices, in ascending order; other shards are not read.

        Raises:
            IndexError: there are fewer documents.
            OSError: a shard cannot be read, or is damaged.
        """
        from bioshards.corpus.shards.document_shards import read_rows

        wanted, start = sorted(set(indices)), 0
        if wanted and not (wanted[0] >= 0 and wanted[-1] < len(self)):
            raise IndexError(f"documents {wanted[0]} to {wanted[-1]} of {len(self)}")
        if self._expression is not None:
            yield from map(Document.from_dict, self.to_arrow().take(wanted).to_pylist())
            return
        for shard in self._shards:
            rows = [index - start for index in wanted if start <= index < start + shard.rows]
            start += shard.rows
            if rows:
                _check_once(self._folder, shard)
                path = f"{self._folder}/{shard.file}"
                yield from map(Document.from_dict, read_rows(self._storage, path, rows))

    def to_arrow(self, columns: list[str] | None = None) -> pa.Table:
        """Return a table of these columns, or of all, in memory."""
        return self._open_dataset().to_table(columns=columns, filter=self._expression)

    def to_pandas(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Return a data frame of these columns, or of all, in memory."""
        return self.to_arrow(columns).to_pandas()

    def to_dataset(self) -> datasets.Dataset:
        """Return a dataset of Hugging Face's library, which copies the documents into its cache."""
        import datasets

        self._check_shards()
        return datasets.load_dataset(
            "parquet", data_files=self._paths, split="train", filters=self._expression
        )

    def _check_shards(self) -> None:
        """Compare all shards with the manifest: damaged statistics of a footer would hide documents."""
        from concurrent.futures import ThreadPoolExecutor

        from bioshards.corpus.cpus import count_cpus

        with ThreadPoolExecutor(count_cpus()) as threads:
            list(threads.map(lambda shard: _check_once(self._folder, shard), self._shards))

    @property
    def _paths(self) -> list[str]:
        return [os.path.join(self._folder, shard.file) for shard in self._shards]

    def _open_dataset(self) -> Any:
        import pyarrow.dataset as ds

        self._check_shards()
        options = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
        return ds.dataset(self._paths, format=ds.ParquetFileFormat(default_fragment_scan_options=options))


def open_documents(folder: str | os.PathLike[str]) -> Documents:
    """Open a finished output of ``beam run pubmed_to_shards``, ``pmc_to_shards`` or ``text_to_shards``.

    The result has a length, is iterated document by document, and has ``filter``, ``take``,
    ``iter_batches``, ``to_arrow``, ``to_pandas`` and ``to_dataset``.

    Raises:
        FileNotFoundError: there is no such directory, or it is not finished.
        ManifestError: it holds something else, or was made by another version of bioshards.
    """
    return Documents(os.fspath(folder))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a pretraining set (docs/pretraining-sets.md).

    Attributes:
        input_ids: token ids: [CLS], segment A, [SEP] and, if there is one, segment B, [SEP]; unmasked.
        split: index of the first token of segment B; 0 without one.
        label: of a pair: 0 if B follows A, else 1; -100 without a pair; None if the set has no labels.
    """

    input_ids: list[int]
    split: int
    label: int | None


class Rows:
    """The rows of a split of a pretraining set, memory-mapped; :func:`open_rows` opens it.

    Each shard is compared with its SHA-256 before its first row is read.
    """

    def __init__(self, folder: str, split: str) -> None:
        import pyarrow as pa

        from bioshards.corpus.manifest import ManifestError, PretrainingManifest, read_manifest
        from bioshards.corpus.storage.local_storage import LocalStorage

        manifest = read_manifest(LocalStorage(), folder)
        if not isinstance(manifest, PretrainingManifest):
            raise ManifestError(
                f"{folder} is no pretraining set: by its manifest.json it was made by {manifest.pipeline}. "
                "Give the --output of beam run shards_to_pretraining"
            )
        self._folder = folder
        self._intact: set[Shard] = set()
        self._starts = [0]
        self._batches: list[tuple[Shard, pa.RecordBatch]] = []
        for shard in manifest.outputs:
            if not shard.file.startswith(f"{split}/"):
                continue
            start = len(self)
            try:
                with pa.memory_map(os.path.join(folder, shard.file)) as file:
                    for batch in pa.ipc.open_stream(file):
                        self._batches.append((shard, batch))
                        self._starts.append(len(self) + batch.num_rows)
            except (OSError, ValueError, pa.ArrowException):
                self._check(shard)
                raise
            if len(self) - start != shard.rows:
                self._check(shard)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: int) -> Row:
        from bisect import bisect_right

        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        number = bisect_right(self._starts, position) - 1
        shard, batch = self._batches[number]
        self._check(shard)
        [values] = batch.slice(position - self._starts[number], 1).to_pylist()
        return Row(values["input_ids"], values["split"], values.get("label"))

    def __iter__(self) -> Iterator[Row]:
        for shard, batch in self._batches:
            self._check(shard)
            for values in batch.to_pylist():
                yield Row(values["input_ids"], values["split"], values.get("label"))

    def _check(self, shard: Shard) -> None:
        if shard not in self._intact:
            _check_once(self._folder, shard)
            self._intact.add(shard)


def open_rows(folder: str | os.PathLike[str], split: Literal["train", "validation"] = "train") -> Rows:
    """Open a split of a finished output of ``beam run shards_to_pretraining``.

    The result has a length, an index (``rows[0]``, ``rows[-1]``), and is iterated row by row.

    Raises:
        FileNotFoundError: there is no such directory, or it is not finished.
        ManifestError: it holds something else, or was made by another version of bioshards.
    """
    return Rows(os.fspath(folder), split)


def load_vocabulary(folder: str | os.PathLike[str]) -> Encoder:
    """Load the vocabulary of a folder with a ``tokenizer.json``, as ``bioshards vocab build`` writes it.

    ``encode(text)`` of the result returns the ids of a text, equal to those of the tokenizers library without
    special tokens; ``encode_all(sentences)`` those of many, in arrays.

    Raises:
        FileNotFoundError: the folder or its tokenizer.json is missing.
        ValueError: the file is no tokenizer, or not of a kind that bioshards encodes with.
    """
    from bioshards.vocab.encode import Encoder

    return Encoder(os.fspath(folder))
