"""The sample's relations: ChemProt as BioCreative has it and in three other forms, DDI in two, and GAD."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count, cycle, islice
from random import Random
from xml.sax.saxutils import quoteattr

from bioshards.evaluate.tasks.task_registry import TASKS
from tests.support.evaluate.sample.sample_sentences import (
    CHEMPROT,
    DDI,
    GAD,
    AnnotatedText,
    add_lead_in,
    fill_template,
    join_texts,
)
from tests.support.evaluate.sample.sample_tagging import SPLIT_SIZES, FileContents


def relation_files() -> FileContents:
    """Generate the files of all relation benchmarks."""
    return {
        **_chemprot_files(),
        **_blue_chemprot_files(),
        **_lim_kang_files(),
        **_scibert_files(),
        **_ddi_files(),
        **_blue_ddi_files(),
        **_gad_files(),
    }


def _draw_labelled(
    name: str, by_label: Mapping[str, Sequence[str]], size: int
) -> Iterator[tuple[str, AnnotatedText]]:
    """Draw sentences with labels, which take turns."""
    rng = Random(name)
    labels = list(by_label)
    for index in range(size):
        label = labels[index % len(labels)]
        templates = by_label[label]
        yield label, fill_template(rng, add_lead_in(rng, templates[index // len(labels) % len(templates)]))


def _replace_entities(annotated: AnnotatedText, placeholders: Mapping[str, str]) -> str:
    """Replace the names in a text by placeholders of their type."""
    text = annotated.text
    for mention in reversed(annotated.mentions):
        if mention.type in placeholders:
            text = text[: mention.start] + placeholders[mention.type] + text[mention.end :]
    return text


def format_tsv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format rows as TSV with a header."""
    return "".join("\t".join(row) + "\n" for row in (header, *rows))


# ChemProt


def _chemprot_files() -> FileContents:
    """Generate ChemProt abstracts with a sentence for each group, and offsets."""
    files: FileContents = {}
    pmids = count(90000096)
    for part, name, ending, size in (
        ("test", "test", "_gs", 4),
        ("train", "training", "", 8),
        ("dev", "development", "", 3),
    ):
        tables: dict[str, list[list[str]]] = {"abstracts": [], "entities": [], "relations": []}
        sentences = _draw_labelled(f"chemprot {part}", CHEMPROT, 6 * size)
        for pmid in islice(pmids, size):
            labelled = list(islice(sentences, 6))
            _add_abstract(str(pmid), labelled, tables)
        for kind, rows in tables.items():
            path = f"ChemProt_Corpus/chemprot_{name}/chemprot_{name}_{kind}{ending}.tsv"
            files[path] = "".join("\t".join(row) + "\n" for row in rows)
    return files


def _add_abstract(
    pmid: str, labelled: Sequence[tuple[str, AnnotatedText]], tables: dict[str, list[list[str]]]
) -> None:
    title, *rest = [said for _, said in labelled]
    abstract = join_texts([title, join_texts(rest)], "\t")
    tables["abstracts"].append([pmid, title.text, abstract.text.partition("\t")[2]])
    entity_ids = {}
    for number, mention in enumerate(
        (mention for mention in abstract.mentions if mention.type in ("drug", "gene")), 1
    ):
        entity_type = "CHEMICAL" if mention.type == "drug" else ("GENE-Y", "GENE-N")[number % 2]
        name = abstract.text[mention.start : mention.end]
        tables["entities"].append(
            [pmid, f"T{number}", entity_type, str(mention.start), str(mention.end), name]
        )
        entity_ids[mention.start] = f"T{number}"
    offset = 0
    for label, said in labelled:
        starts = {
            mention.type: entity_ids[offset + mention.start]
            for mention in said.mentions
            if mention.type in ("drug", "gene")
        }
        offset += len(said.text) + 1
        if label != "false":
            row = [pmid, label, "Y ", "RELATION", f"Arg1:{starts['drug']}", f"Arg2:{starts['gene']}"]
            tables["relations"].append(row)


def _blue_chemprot_files() -> FileContents:
    """BLUE's, as ELECTRAMed has it; its dev.csv begins with a byte order mark."""
    placeholders = {"drug": "@CHEMICAL$", "gene": "@GENE$"}
    files = {}
    for part, size in SPLIT_SIZES.items():
        drawn = _draw_labelled(f"blue {part}", CHEMPROT, size)
        rows = [
            [f"910000{at:02}.T1.T2", _replace_entities(said, placeholders), label]
            for at, (label, said) in enumerate(drawn)
        ]
        mark = "\ufeff" if part == "dev" else ""
        files[f"electramed/RE/chemprot/{part}.csv"] = mark + format_tsv(("index", "sentence", "label"), rows)
    return files


def _lim_kang_files() -> FileContents:
    placeholders = {"drug": "BC6ENTC", "gene": "BC6ENTG"}
    files = {}
    for part, size in SPLIT_SIZES.items():
        drawn = _draw_labelled(f"lim and kang {part}", CHEMPROT, size)
        rows = [
            [_replace_entities(said, placeholders), label.replace("false", "False")] for label, said in drawn
        ]
        files[f"bio_electra/chemprot/{part}.tsv"] = format_tsv(("sentence", "label"), rows)
    return files


def _scibert_files() -> FileContents:
    files = {}
    templates = (
        "<< {drug} >> acted as {a} of [[ {gene} ]].",
        "In {cell_line}, [[ {gene} ]] found {a} in << {drug} >>.",
    )
    for part, size in (("train", 26), ("dev", 13), ("test", 13)):
        rng = Random(f"scibert {part}")
        lines = []
        for index, label in enumerate(islice(cycle(TASKS["chemprot-scibert"].spec.labels), size)):
            word = label.lower().replace("_", " and ")
            template = templates[index % 2].replace("{a}", f"{'an' if word[0] in 'aiu' else 'a'} {word}")
            text = fill_template(rng, template).text
            lines.append(json.dumps({"text": text, "label": label, "metadata": []}) + "\n")
        files[f"scibert/text_classification/chemprot/{part}.txt"] = "".join(lines)
    return files


# DDI


def _ddi_files() -> FileContents:
    """The corpus unpacked, and BLURB's lists of who is in which part."""
    files: FileContents = {}
    lists: dict[str, list[str]] = {"train": [], "dev": []}
    drawn = _draw_labelled("ddi", DDI, 17 * 5)
    for index in range(17):
        source = ("DrugBank", "MedLine")[index % 2]
        name = f"{source.lower()}_sample_{index}_ddi"
        folder = "Test/Test for DDI Extraction task" if index >= 12 else "Train"
        files[f"ddi2013/DDICorpus/{folder}/{source}/{name}.xml"] = _ddi_document_xml(
            f"DDI-{source}.d{index}", list(islice(drawn, 5))
        )
        if index < 12:
            lists["dev" if index % 4 == 3 else "train"].append(name)
    for part, names in lists.items():
        files[f"blurb/indexing/DDI/{part}_files.tsv"] = "".join(f"{name}.xml\n" for name in names)
    return files


def _ddi_document_xml(name: str, labelled: Sequence[tuple[str, AnnotatedText]]) -> str:
    sentences = (_ddi_sentence_xml(f"{name}.s{at}", label, said) for at, (label, said) in enumerate(labelled))
    body = "".join(sentences)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<document id="{name}">\n{body}</document>\n'


def _ddi_sentence_xml(name: str, label: str, annotated: AnnotatedText) -> str:
    lines = [f"    <sentence id={quoteattr(name)} text={quoteattr(annotated.text)}>"]
    drugs = [mention for mention in annotated.mentions if mention.type == "drug"]
    for index, mention in enumerate(drugs):
        text = quoteattr(annotated.text[mention.start : mention.end])
        offsets = f'charOffset="{mention.start}-{mention.end - 1}"'
        lines.append(f'        <entity id="{name}.e{index}" {offsets} type="drug" text={text}/>')
    for index, (first, second) in enumerate(combinations(range(len(drugs)), 2)):
        interacts = 'ddi="false"' if label == "false" else f'ddi="true" type="{label}"'
        pair = f'id="{name}.p{index}" e1="{name}.e{first}" e2="{name}.e{second}"'
        lines.append(f"        <pair {pair} {interacts}/>")
    return "\n".join([*lines, "    </sentence>\n"])


def _blue_ddi_files() -> FileContents:
    files = {}
    for part, size in SPLIT_SIZES.items():
        rows = [
            [f"DDI-DrugBank.d{at}.s0.p0", _replace_entities(said, {"drug": "@DRUG$"}), f"DDI-{label}"]
            for at, (label, said) in enumerate(_draw_labelled(f"blue ddi {part}", DDI, size))
        ]
        files[f"electramed/RE/ddi-2013/{part}.csv"] = format_tsv(("index", "sentence", "label"), rows)
    return files


def _gad_files() -> FileContents:
    """Train, of which dev is cut, has no header; test has one."""
    rows = {
        part: [
            [_replace_entities(said, {"gene": "@GENE$", "disease": "@DISEASE$"}), label]
            for label, said in _draw_labelled(f"gad {part}", GAD, size)
        ]
        for part, size in (("train", 36), ("test", 12))
    }
    numbered = [[str(at), *row] for at, row in enumerate(rows["test"])]
    return {
        "bio_electra/gad/train.tsv": "".join("\t".join(row) + "\n" for row in rows["train"]),
        "bio_electra/gad/test.tsv": format_tsv(("index", "sentence", "label"), numbered),
    }
