"""Readers: functions from the files of a benchmark to records. catalogue.toml names them (READERS).

All raise BenchmarkFileError, which names file and line, if a file does not have the form that they describe.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from itertools import groupby, islice, product
from statistics import fmean
from typing import Any, Final, TypeVar

from lxml import etree

from bioshards.corpus import sentences
from bioshards.evaluate.benchmarks.formats import (
    JsonValue,
    PathsByName,
    convert_to_iob2,
    get_only_path,
    iter_archive,
    map_label,
    parse_number,
    parse_xml,
    quote_excerpt,
    read_bytes,
    read_json,
    read_json_lines,
    read_lines,
    read_rows,
    read_sentences,
    read_text,
)
from bioshards.evaluate.benchmarks.records import (
    SPLITS,
    Answer,
    BenchmarkFileError,
    LabelledText,
    Mention,
    Question,
    Record,
    RecordsBySplit,
    Relation,
    Split,
    TaggedSentence,
)

_RecordT = TypeVar("_RecordT", bound=Record)


def read_each_split(read: Callable[..., Sequence[Record]]) -> Callable[..., RecordsBySplit]:
    """Return a reader that applies ``read`` to the only file of each split."""

    @wraps(read)
    def read_splits(files: PathsByName, **options: object) -> RecordsBySplit:
        return {split: read(get_only_path(files, split), **options) for split in SPLITS if split in files}

    return read_splits


def check_unique_ids(path: str, records: Iterable[_RecordT]) -> list[_RecordT]:
    """Return the records as a list; no two of them may have the same id."""
    record_by_id: dict[str, _RecordT] = {}
    for record in records:
        if record.id in record_by_id:
            raise BenchmarkFileError(path, None, f"the id {record.id!r} is given twice")
        record_by_id[record.id] = record
    return [*record_by_id.values()]


def split_records(
    records: Mapping[str, Sequence[_RecordT]], split_sizes: Mapping[Split, int], list_paths: Sequence[str]
) -> dict[Split, list[_RecordT]]:
    """Split records by published lists of names, or by a hash of the names if the lists are missing.

    BLURB's lists of files and ids are in data_generation.tar.gz, folder ``indexing``: one name a line (DDI),
    or all on one line, separated by commas (HoC, BioASQ).

    Args:
        records: by file name without folder and suffix, or by id.
        split_sizes: number of names of each split but ``train`` if there are no lists. Names are drawn in the
            order of their SHA-256, so the split is reproducible.
        list_paths: paths of the lists ``train_*``, ``dev_*`` and, if ``split_sizes`` has it, ``test_*``. Each
            name is in one of them, and there are no others.
    """
    split_by_name: dict[str, Split] = {}
    if not list_paths:
        names_by_hash = iter(sorted(records, key=lambda name: hashlib.sha256(name.encode()).digest()))
        for split, size in split_sizes.items():
            split_by_name |= dict.fromkeys(islice(names_by_hash, size), split)
        split_by_name = {name: split_by_name.get(name, "train") for name in records}
    for split, path in product(("train", *split_sizes), list_paths):
        rows = read_lines(path) if os.path.basename(path).startswith(f"{split}_") else ()
        for line, row in rows:
            for name in map(_stem, filter(None, map(str.strip, row.split(",")))):
                if name not in records or name in split_by_name:
                    reason = "in another list, too" if name in split_by_name else "not in the set's files"
                    raise BenchmarkFileError(path, line, f"{name!r} is {reason}")
                split_by_name[name] = split
    if missing := [name for name in records if name not in split_by_name]:
        reason = f"neither it nor the lists beside it have {missing[0]!r}"
        raise BenchmarkFileError(list_paths[0], None, reason)
    by_split: dict[Split, list[_RecordT]] = {split: [] for split in SPLITS}
    for name, split in split_by_name.items():
        by_split[split] += records[name]
    return by_split


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".xml").removesuffix(".txt")


# Tagged sentences


def read_single_type_sentences(path: str) -> list[TaggedSentence]:
    """Read ELECTRAMed's BC5CDR, where mentions of one word are ``I-`` and longer ones begin with ``B-``."""
    return [replace(sentence, tags=convert_to_iob2(sentence.tags)) for sentence in read_sentences(path)]


JNLPBA_TRAIN_LINES: Final = 465_497
"""Lines of Genia4ERtask2.iob2 that belong to train; the rest is dev."""


def read_jnlpba(files: PathsByName, entity_type: str | None = None) -> RecordsBySplit:
    """Read JNLPBA (Kim et al. 2004) from the shared task's files.

    The task had no dev split. Crichton et al. and BLURB take the end of the ``training`` file, after line
    465,497 (BLURB's data_generation, preprocessor.py). Document numbers are MEDLINE UIs, not PMIDs.
    """
    path = get_only_path(files, "training")
    return {
        "train": read_sentences(path, entity_type, slice(JNLPBA_TRAIN_LINES)),
        "dev": read_sentences(path, entity_type, slice(JNLPBA_TRAIN_LINES, None)),
        "test": read_sentences(get_only_path(files, "test"), entity_type),
    }


PICO_ELEMENTS: Final = {"participants": "PAR", "interventions": "INT", "outcomes": "OUT"}
"""BLURB's tag of each PICO element, by folder name, in the order of precedence."""
_PICO_PMID: Final = re.compile(r"-DOCSTART- \((\d+)\)")


def read_pico(files: PathsByName) -> RecordsBySplit:
    """Read EBM-NLP (Nye et al. 2018) from ``tokens``, ``train ELEMENT`` and ``gold ELEMENT``.

    An abstract has a file of tokens, and one of a number per token for each of P, I and O. Each word gets one
    tag, as in EBM-NLP's script (models/lstm-crf/build_data.py) and in BLURB: in the order P, I, O the last
    nonzero label wins, and a sentence ends at each token that is a full stop. SciBERT's files, which
    :func:`read_sentences` reads, resolve overlaps differently (PubMedBERT, section 2.3.2).

    ``dev`` is SciBERT's file, which defines the dev split, as in BLURB. Without it every fifth abstract that
    is not gold is dev: the same number (960 of 4,802), but other abstracts.
    """
    tokens = _index_by_pmid(files.get("tokens", ()))
    gold, crowd = (
        {element: _index_by_pmid(files.get(f"{kind} {element}", ())) for element in PICO_ELEMENTS}
        for kind in ("gold", "train")
    )
    test = sorted(set().union(*gold.values()), key=int)
    others = sorted(set().union(*crowd.values()) - set(test), key=int)
    dev = set(others[4::5])
    if "dev" in files:
        path = get_only_path(files, "dev")
        dev = {mark[1] for _, row in read_lines(path) if (mark := _PICO_PMID.match(row))}
        if not dev:
            reason = "it names no abstract: a line for each should be -DOCSTART- (PMID)"
            raise BenchmarkFileError(path, None, reason)
    train_and_dev = {pmid: _read_pico_abstract(pmid, tokens, crowd) for pmid in others}
    return {
        "train": [sentence for pmid in others if pmid not in dev for sentence in train_and_dev[pmid]],
        "dev": [sentence for pmid in others if pmid in dev for sentence in train_and_dev[pmid]],
        "test": [sentence for pmid in test for sentence in _read_pico_abstract(pmid, tokens, gold)],
    }


def _index_by_pmid(paths: Iterable[str]) -> dict[str, str]:
    """Return paths by PMID, the part of the file name before its first dot: ``10070173.AGGREGATED.ann``."""
    path_by_pmid = {os.path.basename(path).split(".")[0]: path for path in paths}
    for pmid, path in path_by_pmid.items():
        if not (pmid.isascii() and pmid.isdecimal()):
            raise BenchmarkFileError(path, None, "its name should begin with a PMID and a dot")
    return path_by_pmid


def _read_pico_abstract(
    pmid: str, tokens: Mapping[str, str], annotations: Mapping[str, Mapping[str, str]]
) -> list[TaggedSentence]:
    """Return the sentences of an abstract. Paths are by PMID, those of annotations by element and PMID."""
    path_by_element = {element: paths[pmid] for element, paths in annotations.items() if pmid in paths}
    if pmid not in tokens:
        first_path = next(iter(path_by_element.values()))
        raise BenchmarkFileError(first_path, None, f"there is no {pmid}.tokens for it")
    words = read_text(tokens[pmid]).split()
    tags = ["O"] * len(words)
    for element, path in path_by_element.items():
        labels = read_text(path).split()
        if len(labels) != len(words):
            raise BenchmarkFileError(path, None, f"it has {len(labels)} numbers for {len(words)} tokens")
        for index, label in enumerate(labels):
            number = parse_number(label)
            if number is None:
                reason = f"it should hold a number for each token, not {quote_excerpt(label)}"
                raise BenchmarkFileError(path, None, reason)
            if number:
                tags[index] = f"I-{PICO_ELEMENTS[element]}"
    ends = [*(index + 1 for index, word in enumerate(words) if word == "."), len(words)]
    return [
        TaggedSentence(f"{pmid}.{start}", tuple(words[start:end]), tuple(tags[start:end]), pmid)
        for start, end in zip([0, *ends], ends, strict=False)
        if start < end
    ]


# Texts and pairs of texts


def read_texts(
    path: str,
    text: str,
    labels: Sequence[str] | Mapping[str, str],
    label: str = "label",
    pair: str = "",
    id: str = "",
    document_id: str = "",
    has_header: bool = True,
) -> list[LabelledText]:
    """Read the rows of a table. A repeated id gets a suffix: ``id#2`` (BLUE has pairs with two labels).

    Args:
        text: column of the text.
        labels: labels in the file, with the label of the records where it is another.
        label: column of the label.
        pair: column of the second text; "": none.
        id: column of ids; "": line numbers are the ids.
        document_id: regular expression of the part of an id that is the document's.
        has_header: True if the first line names the columns; else the columns are text and label.
    """
    label_names = labels if isinstance(labels, Mapping) else dict(zip(labels, labels, strict=True))
    columns = [*filter(None, (text, label, pair, id))]
    labelled_texts = []
    id_counts: Counter[str] = Counter()
    for line, fields in read_rows(path, columns, has_header):
        row = dict(zip(columns, fields, strict=True))
        row_id = row.get(id, str(line))
        id_counts[row_id] += 1
        labelled_texts.append(
            LabelledText(
                id=row_id if id_counts[row_id] == 1 else f"{row_id}#{id_counts[row_id]}",
                text=row[text],
                label=map_label(path, line, row[label], label_names),
                text_pair=row.get(pair),
                document_id=_find_part(document_id, row_id),
            )
        )
    return labelled_texts


def _find_part(pattern: str, record_id: str) -> str:
    """Return the part of an id that a pattern matches at its start; the whole id if none does."""
    return part.group() if (part := re.match(pattern, record_id)) else record_id


def read_json_texts(path: str, labels: Sequence[str]) -> list[LabelledText]:
    """Read SciBERT's classification files: JSON Lines with ``text`` and ``label``; ids are line numbers.

    ChemProt marks its two entities as ``<< aspirin >>`` and ``[[ COX-1 ]]``. Their types are not given, so
    the marks stay in the text.
    """
    return [
        LabelledText(str(value.line), value["text"].as_text(), value["label"].as_one_of(labels))
        for value in read_json_lines(path)
    ]


def read_ranked_answers(path: str) -> list[LabelledText]:
    """Read Bio-ELECTRA's candidate answers: columns ``label``, ``question``, ``answer_candidate``.

    Consecutive rows with the same question form a group, as its authors count questions.
    """
    rows = read_rows(path, ("label", "question", "answer_candidate"))
    ranked_texts = []
    for group_number, (question, candidates) in enumerate(groupby(rows, key=lambda row: row[1][1]), 1):
        for line, (raw_label, _, answer) in candidates:
            label = map_label(path, line, raw_label, {"0": "0", "1": "1"})
            text = LabelledText(str(line), question, label, text_pair=answer, group_id=str(group_number))
            ranked_texts.append(text)
    return ranked_texts


_GAD_TRAIN_LINES, _GAD_ALL_LINES = 4261, 4796
"""Lines of train.tsv for train; the rest is dev (BLURB's ``preprocess_GAD_corpus``).

Files of another length are split in the same ratio.
"""


def read_gad(files: PathsByName) -> RecordsBySplit:
    """Read BioBERT's fold 1: train without a header, test with one.

    Its dev.tsv equals test.tsv and is not read.
    """
    read = partial(read_texts, text="sentence", labels=("0", "1"))
    train = read(get_only_path(files, "train"), has_header=False) if "train" in files else []
    test = read(get_only_path(files, "test")) if "test" in files else []
    num_train = len(train) * _GAD_TRAIN_LINES // _GAD_ALL_LINES
    return {"train": train[:num_train], "dev": train[num_train:], "test": test}


BIOSSES_TEST_IDS: Final = (59, 96, 70, 22, 81, 38, 57, 23, 33, 89, 69, 49, 7, 71, 97, 25, 83, 64, 52, 20)
BIOSSES_DEV_IDS: Final = (88, 82, 8, 63, 47, 68, 40, 90, 100, 24, 41, 91, 80, 9, 72, 2)
BIOSSES_TRAIN_IDS: Final = tuple(sorted({*range(1, 101)}.difference(BIOSSES_DEV_IDS, BIOSSES_TEST_IDS)))


def read_biosses(files: PathsByName) -> RecordsBySplit:
    """Read BIOSSES (Soğancıoğlu et al. 2017): 100 sentence pairs with scores of five annotators, 0 to 4.

    BigBIO distributes them as a ``table`` of id, sentence1, sentence2, scores. The splits are BLUE's and
    BLURB's; their ids are in the code of both (BLURB's ``prepare_biosses_data``).
    """
    path = get_only_path(files, "table")
    texts = {text.id: text for text in check_unique_ids(path, _read_scored_pairs(path))}
    if missing := [pair_id for pair_id in range(1, 101) if str(pair_id) not in texts]:
        raise BenchmarkFileError(path, None, f"pair {missing[0]} of 100 is missing")
    ids_by_split = {"train": BIOSSES_TRAIN_IDS, "dev": BIOSSES_DEV_IDS, "test": BIOSSES_TEST_IDS}
    return {split: [texts[str(pair_id)] for pair_id in ids_by_split[split]] for split in SPLITS}


def _read_scored_pairs(path: str) -> Iterator[LabelledText]:
    for line, row in read_rows(path, ("id", "sentence1", "sentence2", "scores")):
        pair_id, first, second, scores = row[0], row[1], row[2], row[3].split(",")
        subject = f"the scores {scores} of pair {pair_id!r}"
        try:
            score = fmean(map(float, scores))
        except ValueError as error:
            raise BenchmarkFileError(path, line, f"{subject} are no numbers") from error
        if not 0 <= score <= 4:
            raise BenchmarkFileError(path, line, f"{subject} are not between 0 and 4")
        yield LabelledText(pair_id, first.strip(), score, text_pair=second.strip())


# Documents


HOC_SPLIT_SIZES: Final[dict[Split, int]] = {"dev": 186, "test": 371}


def read_hoc(files: PathsByName, labels: Sequence[str]) -> RecordsBySplit:
    """Read Hallmarks of Cancer (Baker et al. 2016): a file of ``text`` and one of ``labels`` each."""
    texts, marks = ({os.path.basename(path): path for path in files[name]} for name in ("text", "labels"))
    if unpaired := sorted(texts.keys() ^ marks.keys()):
        path = texts.get(unpaired[0]) or marks[unpaired[0]]
        raise BenchmarkFileError(path, None, "of text and labels, only one has it")
    abstracts = {_stem(name): [read_hoc_abstract(texts[name], marks[name], labels)] for name in texts}
    return split_records(abstracts, HOC_SPLIT_SIZES, files.get("lists", ()))


def read_hoc_abstract(text_path: str, labels_path: str, hallmarks: Sequence[str]) -> LabelledText:
    """Return an abstract, its sentences joined by blanks, with its hallmarks.

    The label file has one line; each sentence's labels follow a ``<``: none, ``NULL``, or taxonomy classes
    joined by ``AND``, such as ``Resisting cell death--Apoptosis``, of which the first level counts. An
    abstract has the hallmarks of all its sentences (BLURB scores abstracts; LinkBERT's ``process_HOC``).
    """
    lines = [line.strip() for line in read_text(text_path).split("\n") if line.strip()]
    line_labels = read_text(labels_path).split("<")[1:]
    if len(line_labels) != len(lines):
        reason = f"labels of {len(line_labels)} sentences, and {text_path} has {len(lines)}"
        raise BenchmarkFileError(labels_path, 1, reason)
    labels = [label for labels in line_labels for label in labels.split("AND")]
    names = {label.partition("--")[0].strip().lower() for label in labels} - {"", "null"}
    if unknown := sorted(names.difference(hallmarks)):
        reason = f"{unknown[0]!r} is none of the hallmarks {', '.join(hallmarks)}"
        raise BenchmarkFileError(labels_path, 1, reason)
    pmid = _stem(text_path)
    return LabelledText(pmid, " ".join(lines), frozenset(names), document_id=pmid)


_PUBTATOR_TEXT: Final = re.compile(r"(\d+)\|([ta])\|(.*)")


def read_pubtator(path: str) -> list[LabelledText]:
    """Read a PubTator file (BC5CDR, NCBI-disease): ``PMID|t|title``, ``PMID|a|abstract`` and mention lines.

    Documents keep their PMIDs, so the contamination check reads BC5CDR in this format. The text is the title,
    a blank and the abstract. Its label is the set of its mentions as ``start-end TYPE``, so that ``verify``
    can count them. A mention of several concepts ("visual or auditory toxicity") is one mention. Relation
    lines (four columns) are skipped.
    """
    blocks = groupby(read_lines(path), key=lambda numbered_row: bool(numbered_row[1].strip()))
    return [_parse_pubtator_document(path, [*block]) for has_text, block in blocks if has_text]


def _parse_pubtator_document(path: str, block: Sequence[tuple[int, str]]) -> LabelledText:
    title, abstract = (_PUBTATOR_TEXT.fullmatch(row) for _, row in [*block, (0, "")][:2])
    if not title or not abstract or title[2] + abstract[2] != "ta":
        reason = "a document should begin with PMID|t|title, PMID|a|abstract"
        raise BenchmarkFileError(path, block[0][0], reason)
    if title[1] != abstract[1]:
        reason = f"it is the abstract of {abstract[1]} after the title of {title[1]}"
        raise BenchmarkFileError(path, block[1][0], reason)
    pmid, text = title[1], f"{title[3]} {abstract[3]}"
    mentions = []
    for line_number, row in block[2:]:
        line_pmid, *columns = row.split("\t")
        if len(columns) < 3:
            reason = f"a mention or relation should stand there, not {quote_excerpt(row)}"
            raise BenchmarkFileError(path, line_number, reason)
        if line_pmid != pmid:
            reason = f"it is of {quote_excerpt(line_pmid)}, among the lines of {pmid}"
            raise BenchmarkFileError(path, line_number, reason)
        if len(columns) == 3:
            continue
        expected_text, entity_type = columns[2:4]
        start, end = map(parse_number, columns[:2])
        if start is None or end is None:
            excerpts = " and ".join(map(quote_excerpt, columns[:2]))
            raise BenchmarkFileError(path, line_number, f"offsets should be numbers, not {excerpts}")
        found = text[start:end]
        if found != expected_text or not expected_text:
            reason = f"from {start} to {end} is {quote_excerpt(found)}, not {quote_excerpt(expected_text)}"
            raise BenchmarkFileError(path, line_number, reason)
        mentions.append(f"{start}-{end} {entity_type.upper()}")
    return LabelledText(pmid, text, frozenset(mentions), document_id=pmid)


# Pairs of entities


_CHEMPROT_TYPES: Final = {"CHEMICAL": "CHEMICAL", "GENE": "GENE", "GENE-Y": "GENE", "GENE-N": "GENE"}


def read_chemprot(files: PathsByName, labels: Sequence[str]) -> RecordsBySplit:
    """Read ChemProt of BioCreative VI (Krallinger et al. 2017).

    A split has files of abstracts, of entities with offsets, and of relations. As in BLURB
    (``prepare_chemprot_data`` of its preprocessor), every pair of a chemical and a gene in a sentence is an
    example. Five relation groups are positive, all other pairs ``false``; of several relations of a pair the
    last counts. BLURB splits sentences with NLTK's punkt, this reader with bioshards' splitter, so the number
    of pairs differs slightly.
    """
    records: dict[Split, list[Relation]] = {}
    for split in SPLITS:
        names = [f"{split} {kind}" for kind in ("abstracts", "entities", "relations")]
        if all(name in files for name in names):
            abstracts, entities, relations = (get_only_path(files, name) for name in names)
            records[split] = read_chemprot_pairs(abstracts, entities, relations, labels)
    return records


def read_chemprot_pairs(
    abstracts_path: str, entities_path: str, relations_path: str, labels: Sequence[str]
) -> list[Relation]:
    """Return the pairs of a split.

    Args:
        abstracts_path: lines of PMID, title and abstract; offsets count in ``title TAB abstract``.
        entities_path: lines of PMID, id, type, start, end, text.
        relations_path: lines of PMID, group, evaluated, type, ``Arg1:`` id, ``Arg2:`` id.
        labels: the negative label, and the groups of positive relations.
    """
    texts: dict[str, str] = {}
    for line, (pmid, title, abstract) in _read_plain_rows(abstracts_path, "PMID", "title", "abstract"):
        if pmid in texts:
            raise BenchmarkFileError(abstracts_path, line, f"the abstract {pmid} is given twice")
        texts[pmid] = f"{title}\t{abstract}"
    entities: dict[str, dict[str, Mention]] = defaultdict(dict)
    entity_rows = _read_plain_rows(entities_path, "PMID", "id", "type", "start", "end", "text")
    for line, (pmid, entity_id, entity_type, *offsets, _) in entity_rows:
        if entity_type not in _CHEMPROT_TYPES:
            reason = f"the type {entity_type!r} is none of {', '.join(_CHEMPROT_TYPES)}"
            raise BenchmarkFileError(entities_path, line, reason)
        if pmid not in texts:
            raise BenchmarkFileError(entities_path, line, f"there is no abstract {pmid}")
        size = len(texts[pmid])
        start, end = map(parse_number, offsets)
        if start is None or end is None or not start < end <= size:
            places = " to ".join(offset[:20] for offset in offsets)
            reason = f"{places} is not within abstract {pmid} of {size} characters"
            raise BenchmarkFileError(entities_path, line, reason)
        if entity_id in entities[pmid]:
            raise BenchmarkFileError(entities_path, line, f"{entity_id} is given twice in abstract {pmid}")
        entities[pmid][entity_id] = Mention(start, end, _CHEMPROT_TYPES[entity_type])
    groups: dict[tuple[str, frozenset[str]], str] = {}
    relation_rows = _read_plain_rows(relations_path, "PMID", "group", "evaluated", "type", "Arg1", "Arg2")
    for line, (pmid, group, _, _, *arguments) in relation_rows:
        entity_ids = [argument.partition(":")[2] for argument in arguments]
        if unknown := [entity_id for entity_id in entity_ids if entity_id not in entities.get(pmid, ())]:
            raise BenchmarkFileError(relations_path, line, f"abstract {pmid} has no entity {unknown[0]!r}")
        groups[pmid, frozenset(entity_ids)] = group if group in labels else labels[0]
    pairs = []
    for pmid, text in texts.items():
        for sentence_start, sentence_end in _find_sentence_spans(text):
            mentions = {
                name: Mention(entity.start - sentence_start, entity.end - sentence_start, entity.type)
                for name, entity in entities[pmid].items()
                if sentence_start <= entity.start and entity.end <= sentence_end
            }
            sentence = text[sentence_start:sentence_end]
            chemicals = [name for name, mention in mentions.items() if mention.type == "CHEMICAL"]
            genes = [name for name, mention in mentions.items() if mention.type == "GENE"]
            for pair in product(chemicals, genes):
                label = groups.get((pmid, frozenset(pair)), labels[0])
                one, two = sorted(pair, key=lambda name: (mentions[name].start, mentions[name].end))
                pair_id = f"{pmid}.{one}.{two}"
                pairs.append(Relation(pair_id, sentence, mentions[one], mentions[two], label, pmid))
    return check_unique_ids(abstracts_path, pairs)


def _read_plain_rows(path: str, *columns: str) -> Iterator[tuple[int, list[str]]]:
    return read_rows(path, columns, has_header=False, quoting=csv.QUOTE_NONE)


def _find_sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentence spans of title and abstract; the tab between them is in neither."""
    title_end = text.index("\t")
    yield from sentences.spans(text[:title_end])
    for start, end in sentences.spans(text[title_end + 1 :]):
        yield start + title_end + 1, end + title_end + 1


DDI_DEV_FILES: Final = 90
_DDI_OFFSETS: Final = re.compile(r"\d{1,9}-\d{1,9}(;\d{1,9}-\d{1,9})*", re.ASCII)


def read_ddi(files: PathsByName, labels: Sequence[str]) -> RecordsBySplit:
    """Read the DDI corpus (Herrero-Zazo et al. 2013) from ``archive`` or the files ``train``, ``test``.

    As in BLURB (``prepare_DDI_data`` of its preprocessor), every pair of drugs in a sentence is an example, a
    discontinuous drug spans from its first to its last piece, and 90 of the 714 training files are dev:
    those of ``lists``.
    """
    if "archive" in files:
        corpus = get_only_path(files, "archive")
        contents = [(f"{corpus}, {name}", data) for name, data in iter_archive(corpus)]
        # The other folder of Test is another task's, drug names.
        train, test = (
            [(name, data) for name, data in contents if folder in name]
            for folder in ("/Train/", "/Test for DDI Extraction task/")
        )
    else:
        corpus = "the DDI corpus"
        train, test = (
            [(path, read_bytes(path)) for path in files.get(split, ())] for split in ("train", "test")
        )
    train_and_dev = {_stem(name): [*parse_ddi_pairs(name, data, labels)] for name, data in train}
    relations = split_records(train_and_dev, {"dev": DDI_DEV_FILES}, files.get("lists", ()))
    for name, data in test:
        relations["test"] += parse_ddi_pairs(name, data, labels)
    return {split: check_unique_ids(corpus, relations[split]) for split in SPLITS}


def parse_ddi_pairs(path: str, data: bytes, labels: Sequence[str]) -> Iterator[Relation]:
    """Yield the pairs of a file; the first of ``labels`` is the negative one.

    One pair of the corpus (DDI-DrugBank.d236.s29.p0, a drug and a laboratory test) has ``ddi="true"`` and no
    type. It is negative here, as in the published count of 4,020 training interactions (Quan et al. 2016, doi
    10.1155/2016/1850404, table 4).
    """
    for sentence in parse_xml(path, data).iter("sentence"):
        text = _get_attribute(path, sentence, "text")
        drugs = {
            _get_attribute(path, entity, "id"): _parse_drug(path, entity, text)
            for entity in sentence.iter("entity")
        }
        for pair in sentence.iter("pair"):
            names = [_get_attribute(path, pair, name) for name in ("e1", "e2")]
            if missing := [name for name in names if name not in drugs]:
                raise _make_error(path, pair, f"its sentence has no entity {missing[0]!r}")
            first, second = sorted((drugs[name] for name in names), key=lambda drug: (drug.start, drug.end))
            interacts, interaction_type = _get_attribute(path, pair, "ddi"), pair.get("type")
            label = f"DDI-{interaction_type}"
            if interacts == "false" or (interacts == "true" and interaction_type is None):
                label = labels[0]
            elif interacts != "true" or label not in labels:
                reason = f"ddi={interacts!r} with type={interaction_type!r} is no pair of the corpus"
                raise _make_error(path, pair, reason)
            yield Relation(_get_attribute(path, pair, "id"), text, first, second, label, _stem(path))


def _parse_drug(path: str, entity: etree._Element, text: str) -> Mention:
    """Return the mention of a drug; ``charOffset`` is ``5-9`` or ``5-9;12-14``, ends included."""
    offsets = _get_attribute(path, entity, "charOffset")
    if not _DDI_OFFSETS.fullmatch(offsets):
        raise _make_error(path, entity, f"charOffset should be like 5-9, not {quote_excerpt(offsets)}")
    numbers = [int(number) for number in re.findall(r"\d+", offsets)]
    start, end = min(numbers), max(numbers) + 1
    if end > len(text):
        reason = f"charOffset {offsets} is not within its sentence of {len(text)} characters"
        raise _make_error(path, entity, reason)
    return Mention(start, end, "DRUG")


def _get_attribute(path: str, element: etree._Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise _make_error(path, element, f"<{element.tag}> has no attribute {name!r}")
    return value


def _make_error(path: str, element: etree._Element, reason: str) -> BenchmarkFileError:
    line: Any = element.sourceline
    return BenchmarkFileError(path, line, reason)


# Questions


PUBMEDQA_ANSWERS: Final = ("yes", "no", "maybe")


def read_pubmedqa(files: PathsByName) -> RecordsBySplit:
    """Read PubMedQA's expert-labelled questions (Jin et al. 2019), split as in its authors' split_dataset.py.

    The script draws with Python's random generator from seed 0. The 500 test questions of ``questions``
    (ori_pqal.json) are checked against ``answers`` (test_ground_truth.json). Of the ten folds of the others
    BLURB uses the first (LinkBERT's preprocess_blurb.py). The second text is the abstract without its
    conclusion (LONG_ANSWER), which contains the answer.
    """
    path = get_only_path(files, "questions")
    texts, labels = dict[str, LabelledText](), dict[str, str]()
    for pmid, value in read_json(path).members().items():
        contexts = " ".join(context.as_text() for context in value["CONTEXTS"].items())
        labels[pmid] = value["final_decision"].as_one_of(PUBMEDQA_ANSWERS)
        question = value["QUESTION"].as_text()
        texts[pmid] = LabelledText(pmid, question, labels[pmid], contexts, document_id=pmid)
    answers = read_json(get_only_path(files, "answers"))
    gold = {pmid: value.as_text() for pmid, value in answers.members().items()}
    try:
        train, dev, test = split_pubmedqa(labels)
    except IndexError as error:  # of a fold from which to draw
        reason = f"its {len(texts)} questions are too few to be split as split_dataset.py does"
        raise BenchmarkFileError(path, None, reason) from error
    if {pmid: labels[pmid] for pmid in test} != gold:
        reason = f"has other questions or answers than the {len(test)} that split_dataset.py draws"
        raise answers.make_error(reason)
    pmids = {"train": train, "dev": dev, "test": test}
    return {split: [texts[pmid] for pmid in pmids[split]] for split in SPLITS}


def split_pubmedqa(answers: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Return the ids of train, dev and test: test is one half, dev a tenth of the other half."""
    rng = random.Random(0)
    train_and_dev, test = _make_folds(answers, 2, rng)
    dev, *train = _make_folds({pmid: answers[pmid] for pmid in train_and_dev}, 10, rng)
    return [pmid for fold in train for pmid in fold], dev, test


def _make_folds(answers: Mapping[str, str], num_folds: int, rng: random.Random) -> list[list[str]]:
    """Draw folds with the same mixture of answers.

    Rounding up leaves the last fold short; each other fold then gives it one id.
    """
    folds: list[list[str]] = [[] for _ in range(num_folds)]
    for answer in PUBMEDQA_ANSWERS:
        pmids = [pmid for pmid, given_answer in answers.items() if given_answer == answer]
        rng.shuffle(pmids)
        size = math.ceil(len(pmids) / num_folds)
        for index, fold in enumerate(folds):
            fold += pmids[index * size : (index + 1) * size]
    if len(folds[-1]) != len(folds[0]):
        for fold in folds[:-1]:
            moved_pmid = rng.choice(fold)
            fold.remove(moved_pmid)
            folds[-1].append(moved_pmid)
    return folds


BIOASQ_DEV_QUESTIONS: Final = 75
_BATCH_NAME: Final = re.compile(r"7b-(\d)\.json$")
_FACTOID_GROUP: Final = r".*(?=_)|"
"""The id of a question with its passage, without the passage's number; "" if it has none."""


def read_bioasq_yes_no(files: PathsByName) -> RecordsBySplit:
    """Read BLURB's yes/no questions of BioASQ 7b (2019): ``train`` with dev of it, the batches of ``test``.

    BioASQ's JSON holds a question, snippets of abstracts, and the exact answer: ``yes`` or ``no``, or the
    accepted spellings of a factoid.
    """
    records: dict[Split, list[LabelledText]] = {}
    if "train" in files:
        texts = {text.id: [text] for text in _read_yes_no_questions(files["train"])}
        records = split_records(texts, {"dev": BIOASQ_DEV_QUESTIONS}, files.get("lists", ()))
    if "test" in files:
        records["test"] = _read_yes_no_questions(files["test"])
    return records


def _iter_bioasq_questions(paths: Iterable[str], question_type: str) -> Iterator[JsonValue]:
    for path in paths:
        for question in read_json(path)["questions"].items():
            if question["type"].as_text() == question_type:
                yield question


def _read_yes_no_questions(paths: Sequence[str]) -> list[LabelledText]:
    """Return questions paired with all of their snippets, joined by blanks, as in BLURB."""
    texts = [
        LabelledText(
            id=question["id"].as_text(),
            text=question["body"].as_text(),
            label=question["exact_answer"].as_one_of(("yes", "no")),
            text_pair=" ".join(snippet["text"].as_text() for snippet in question["snippets"].items()),
            document_id=_format_pmids(question),
        )
        for question in _iter_bioasq_questions(paths, "yesno")
    ]
    return check_unique_ids(paths[0], texts)


def _format_pmids(question: JsonValue) -> str:
    """Return the PMIDs at the end of the document URLs, separated by blanks."""
    return " ".join(address.as_text().rpartition("/")[2] for address in question["documents"].items())


def read_bioasq_factoid(files: PathsByName) -> RecordsBySplit:
    """Read ELECTRAMed's benchmark: questions with one abstract each in SQuAD's JSON, ids ``question_number``.

    Accepted answers of the test batches come from the ``golden`` files; train has its own.
    """
    records: dict[Split, list[Question]] = {}
    if "train" in files:
        records["train"] = read_squad(get_only_path(files, "train"), _FACTOID_GROUP)
    if "test" in files and "golden" in files:
        golden_questions = _iter_bioasq_questions(files["golden"], "factoid")
        golden_by_id = {question["id"].as_text(): question for question in golden_questions}
        records["test"] = [item for path in files["test"] for item in _read_batch(path, golden_by_id)]
    return records


def _read_batch(path: str, golden_by_id: Mapping[str, JsonValue]) -> Iterator[Question]:
    batch = _BATCH_NAME.search(os.path.basename(path))
    for question in read_squad(path, _FACTOID_GROUP):
        golden = golden_by_id.get(question.group_id)
        if golden is None:
            reason = f"the golden files have no factoid question {question.group_id!r} (id {question.id!r})"
            raise BenchmarkFileError(path, None, reason)
        spellings: list[str] = []
        for answer in golden["exact_answer"].items():  # [["one", "another"]], or a flat list in some years
            alternatives = answer.items() if isinstance(answer.value, list) else [answer]
            spellings += [spelling.as_text() for spelling in alternatives]
        yield replace(
            question,
            accepted_answers=tuple(spellings),
            test_batch=batch[1] if batch else "",
            document_id=_format_pmids(golden),
        )


def read_squad(path: str, group_id: str = r"(?s).*") -> list[Question]:
    """Read questions in the JSON of SQuAD v1.1 (Rajpurkar et al. 2016), which BioASQ's participants use too.

    Args:
        group_id: regular expression of the part of an id (of a question with one passage) that is the
            question's.
    """
    return check_unique_ids(path, _iter_squad_questions(read_json(path), group_id))


def _iter_squad_questions(file: JsonValue, group_id: str) -> Iterator[Question]:
    for paragraph in (item for article in file["data"].items() for item in article["paragraphs"].items()):
        context = paragraph["context"].as_text()
        for question in paragraph["qas"].items():
            answers = question["answers"].items() if "answers" in question else ()
            passage_id = question["id"].as_text()
            yield Question(
                id=passage_id,
                question=question["question"].as_text(),
                context=context,
                answers=tuple(_make_answer(answer, context) for answer in answers),
                group_id=_find_part(group_id, passage_id),
            )


def _make_answer(answer: JsonValue, context: str) -> Answer:
    """Return an answer; its start is -1 if the context does not have it at ``answer_start``."""
    text, start = answer["text"].as_text(), answer["answer_start"].as_int()
    return Answer(text, start if start >= 0 and context.startswith(text, start) else -1)


READERS: Final[Mapping[str, Callable[..., RecordsBySplit]]] = {
    "sentences": read_each_split(read_sentences),
    "single_type_sentences": read_each_split(read_single_type_sentences),
    "jnlpba": read_jnlpba,
    "pico": read_pico,
    "pubtator": read_each_split(read_pubtator),
    "texts": read_each_split(read_texts),
    "json_texts": read_each_split(read_json_texts),
    "ranked_answers": read_each_split(read_ranked_answers),
    "gad": read_gad,
    "biosses": read_biosses,
    "hoc": read_hoc,
    "chemprot": read_chemprot,
    "ddi": read_ddi,
    "pubmedqa": read_pubmedqa,
    "bioasq_yes_no": read_bioasq_yes_no,
    "bioasq_factoid": read_bioasq_factoid,
    "squad": read_each_split(read_squad),
}
