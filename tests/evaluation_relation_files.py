"""The sample's relations: ChemProt as BioCreative has it and in three other forms, DDI in two, and GAD."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count, cycle, islice
from random import Random
from xml.sax.saxutils import quoteattr

from bioshards.evaluate.tasks import TASKS
from tests.evaluation_tagged_files import SIZES, Contents
from tests.evaluation_words import CHEMPROT, DDI, GAD, Said, fill, in_case, joined


def relations() -> Contents:
    """All sets of relations."""
    return {**_chemprot(), **_blue_chemprot(), **_lim_kang(), **_scibert(), **_ddi(), **_blue_ddi(), **_gad()}


def _drawn(name: str, by_label: Mapping[str, Sequence[str]], size: int) -> Iterator[tuple[str, Said]]:
    """So many sentences with their labels, each of which comes in turn."""
    draw = Random(name)
    labels = list(by_label)
    for at in range(size):
        label = labels[at % len(labels)]
        templates = by_label[label]
        yield label, fill(draw, in_case(draw, templates[at // len(labels) % len(templates)]))


def _masked(said: Said, dummies: Mapping[str, str]) -> str:
    """A text with dummies in the place of its names, by the kind of name."""
    text = said.text
    for one in reversed(said.mentions):
        if one.type in dummies:
            text = text[: one.start] + dummies[one.type] + text[one.end :]
    return text


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of fields, separated by tabs, below their names."""
    return "".join("\t".join(row) + "\n" for row in (header, *rows))


# ChemProt


def _chemprot() -> Contents:
    """Abstracts of a sentence a group, with offsets."""
    found: Contents = {}
    pmids = count(90000096)
    for part, name, ending, size in (
        ("test", "test", "_gs", 4),
        ("train", "training", "", 8),
        ("dev", "development", "", 3),
    ):
        tables: dict[str, list[list[str]]] = {"abstracts": [], "entities": [], "relations": []}
        sentences = _drawn(f"chemprot {part}", CHEMPROT, 6 * size)
        for pmid in islice(pmids, size):
            labelled = list(islice(sentences, 6))
            _abstract(str(pmid), labelled, tables)
        for kind, rows in tables.items():
            path = f"ChemProt_Corpus/chemprot_{name}/chemprot_{name}_{kind}{ending}.tsv"
            found[path] = "".join("\t".join(row) + "\n" for row in rows)
    return found


def _abstract(pmid: str, labelled: Sequence[tuple[str, Said]], tables: dict[str, list[list[str]]]) -> None:
    title, *rest = [said for _, said in labelled]
    whole = joined([title, joined(rest)], "\t")
    tables["abstracts"].append([pmid, title.text, whole.text.partition("\t")[2]])
    names = {}
    for number, one in enumerate((one for one in whole.mentions if one.type in ("drug", "gene")), 1):
        kind = "CHEMICAL" if one.type == "drug" else ("GENE-Y", "GENE-N")[number % 2]
        name = whole.text[one.start : one.end]
        tables["entities"].append([pmid, f"T{number}", kind, str(one.start), str(one.end), name])
        names[one.start] = f"T{number}"
    at = 0
    for label, said in labelled:
        starts = {one.type: names[at + one.start] for one in said.mentions if one.type in ("drug", "gene")}
        at += len(said.text) + 1
        if label != "false":
            row = [pmid, label, "Y ", "RELATION", f"Arg1:{starts['drug']}", f"Arg2:{starts['gene']}"]
            tables["relations"].append(row)


def _blue_chemprot() -> Contents:
    """BLUE's, as ELECTRAMed has it; its dev.csv begins with a byte order mark."""
    dummies = {"drug": "@CHEMICAL$", "gene": "@GENE$"}
    found = {}
    for part, size in SIZES.items():
        drawn = _drawn(f"blue {part}", CHEMPROT, size)
        rows = [
            [f"910000{at:02}.T1.T2", _masked(said, dummies), label] for at, (label, said) in enumerate(drawn)
        ]
        mark = "\ufeff" if part == "dev" else ""
        found[f"electramed/RE/chemprot/{part}.csv"] = mark + table(("index", "sentence", "label"), rows)
    return found


def _lim_kang() -> Contents:
    dummies = {"drug": "BC6ENTC", "gene": "BC6ENTG"}
    found = {}
    for part, size in SIZES.items():
        drawn = _drawn(f"lim and kang {part}", CHEMPROT, size)
        rows = [[_masked(said, dummies), label.replace("false", "False")] for label, said in drawn]
        found[f"bio_electra/chemprot/{part}.tsv"] = table(("sentence", "label"), rows)
    return found


def _scibert() -> Contents:
    found = {}
    templates = (
        "<< {drug} >> acted as {a} of [[ {gene} ]].",
        "In {cell_line}, [[ {gene} ]] found {a} in << {drug} >>.",
    )
    for part, size in (("train", 26), ("dev", 13), ("test", 13)):
        draw = Random(f"scibert {part}")
        lines = []
        for at, label in enumerate(islice(cycle(TASKS["chemprot-scibert"].labels), size)):
            word = label.lower().replace("_", " and ")
            template = templates[at % 2].replace("{a}", f"{'an' if word[0] in 'aiu' else 'a'} {word}")
            text = fill(draw, template).text
            lines.append(json.dumps({"text": text, "label": label, "metadata": []}) + "\n")
        found[f"scibert/text_classification/chemprot/{part}.txt"] = "".join(lines)
    return found


# DDI


def _ddi() -> Contents:
    """The corpus unpacked, and BLURB's lists of who is in which part."""
    found: Contents = {}
    lists: dict[str, list[str]] = {"train": [], "dev": []}
    drawn = _drawn("ddi", DDI, 17 * 5)
    for at in range(17):
        source = ("DrugBank", "MedLine")[at % 2]
        name = f"{source.lower()}_sample_{at}_ddi"
        folder = "Test/Test for DDI Extraction task" if at >= 12 else "Train"
        found[f"ddi2013/DDICorpus/{folder}/{source}/{name}.xml"] = _document(
            f"DDI-{source}.d{at}", list(islice(drawn, 5))
        )
        if at < 12:
            lists["dev" if at % 4 == 3 else "train"].append(name)
    for part, names in lists.items():
        found[f"blurb/indexing/DDI/{part}_files.tsv"] = "".join(f"{name}.xml\n" for name in names)
    return found


def _document(name: str, labelled: Sequence[tuple[str, Said]]) -> str:
    sentences = (_sentence(f"{name}.s{at}", label, said) for at, (label, said) in enumerate(labelled))
    body = "".join(sentences)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<document id="{name}">\n{body}</document>\n'


def _sentence(name: str, label: str, said: Said) -> str:
    lines = [f"    <sentence id={quoteattr(name)} text={quoteattr(said.text)}>"]
    drugs = [one for one in said.mentions if one.type == "drug"]
    for at, one in enumerate(drugs):
        text = quoteattr(said.text[one.start : one.end])
        offsets = f'charOffset="{one.start}-{one.end - 1}"'
        lines.append(f'        <entity id="{name}.e{at}" {offsets} type="drug" text={text}/>')
    for at, (first, second) in enumerate(combinations(range(len(drugs)), 2)):
        interacts = 'ddi="false"' if label == "false" else f'ddi="true" type="{label}"'
        pair = f'id="{name}.p{at}" e1="{name}.e{first}" e2="{name}.e{second}"'
        lines.append(f"        <pair {pair} {interacts}/>")
    return "\n".join([*lines, "    </sentence>\n"])


def _blue_ddi() -> Contents:
    found = {}
    for part, size in SIZES.items():
        rows = [
            [f"DDI-DrugBank.d{at}.s0.p0", _masked(said, {"drug": "@DRUG$"}), f"DDI-{label}"]
            for at, (label, said) in enumerate(_drawn(f"blue ddi {part}", DDI, size))
        ]
        found[f"electramed/RE/ddi-2013/{part}.csv"] = table(("index", "sentence", "label"), rows)
    return found


def _gad() -> Contents:
    """Train, of which dev is cut, has no header; test has one."""
    rows = {
        part: [
            [_masked(said, {"gene": "@GENE$", "disease": "@DISEASE$"}), label]
            for label, said in _drawn(f"gad {part}", GAD, size)
        ]
        for part, size in (("train", 36), ("test", 12))
    }
    numbered = [[str(at), *row] for at, row in enumerate(rows["test"])]
    return {
        "bio_electra/gad/train.tsv": "".join("\t".join(row) + "\n" for row in rows["train"]),
        "bio_electra/gad/test.tsv": table(("index", "sentence", "label"), numbered),
    }
