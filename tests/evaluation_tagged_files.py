"""The sample's tagged sentences as Crichton et al., ELECTRAMed, BioBERT, EBM-NLP and PubTator have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random
from typing import Final

from tests.evaluation_words import CHEMPROT, FACTS, GAD, NEUTRAL, PICO, SHARED, Said, fill, in_case, joined

Contents = dict[str, str]
"""What is in each file, by its path below the sample."""
Rows = Sequence[tuple[str, str]]

SIZES: Final = {"train": 24, "dev": 8, "test": 12}
_EVERY: Final = (
    *FACTS,
    *(template for of_label in (*CHEMPROT.values(), *GAD.values()) for template in of_label),
)
_FIVE: Final = {name: name for name in ("protein", "DNA", "RNA", "cell_type", "cell_line")}
_CRICHTON: Final = {
    "BC5CDR-chem-IOB": {"drug": "Chemical"},
    "BC5CDR-disease-IOB": {"disease": "Disease"},
    "NCBI-disease-IOB": {"disease": "Disease"},
    "BC2GM-IOB": {"gene": "GENE", "protein": "GENE"},
    "BC4CHEMD-IOB": {"drug": "Chemical"},
    "linnaeus-IOB": {"species": "Species"},
    "JNLPBA": _FIVE,
}


def tagged() -> Contents:
    """All tagged sets."""
    found: Contents = {}
    for name, types in _CRICHTON.items():
        path = f"mtl-bioinformatics-2016/{name}/{{}}.tsv"
        found |= _three(path, _sentences(name, types), "devel", lambda rows: _lines(rows, "\t"))
    found |= _three(
        "s800/{}.tsv", _sentences("s800", {"species": ""}), "devel", lambda rows: _lines(rows, "\t")
    )
    found |= _three(
        "electramed/NER/JNLPBA/{}.txt",
        _sentences("electramed JNLPBA", _FIVE),
        "dev",
        lambda rows: _lines(rows, " "),
    )
    merged = _sentences("electramed bc5cdr", {"drug": "Entity", "disease": "Entity"})
    found |= _three("electramed/NER/bc5cdr/{}.txt", merged, "dev", lambda rows: _lines(_inside(rows), " "))
    return {**found, **_pico(), **_pubtator()}


def _sentences(name: str, types: Mapping[str, str]) -> dict[str, list[Rows]]:
    """Of each part its sentences: four in five with a mention, and in test those that papers share."""
    draw = Random(name)
    fitting = [one for one in _EVERY if any(f"{{{kind}}}" in one for kind in types)]
    parts: dict[str, list[Rows]] = {}
    for part, size in SIZES.items():
        templates = [NEUTRAL[at % 5] if at % 5 == 4 else fitting[at % len(fitting)] for at in range(size)]
        said = [fill(draw, in_case(draw, template)) for template in templates]
        if part == "test" and "drug" in types:
            said += [fill(draw, template) for template in SHARED]
        parts[part] = [one.tagged(types) for one in said]
    return parts


def _three(path: str, parts: Mapping[str, Sequence[Rows]], dev: str, told: Callable[[Rows], str]) -> Contents:
    names = {"train": "train", "dev": dev, "test": "test"}
    return {path.format(names[part]): "\n".join(map(told, rows)) for part, rows in parts.items()}


def _lines(rows: Rows, between: str) -> str:
    return "".join(f"{word}{between}{tag.rstrip('-')}\n" for word, tag in rows)


def _inside(rows: Rows) -> Rows:
    """Mentions of one word begin with ``I-``, as in ELECTRAMed's BC5CDR."""
    after = [tag for _, tag in rows[1:]] + ["O"]
    return [
        (word, tag.replace("B-", "I-") if not following.startswith("I-") else tag)
        for (word, tag), following in zip(rows, after, strict=True)
    ]


def _pico() -> Contents:
    """EBM-NLP's tokens and numbers, and of SciBERT's files the one that says which abstracts are dev."""
    draw = Random("pico")
    kinds = ("participants", "interventions", "outcomes")
    found: Contents = {}
    dev = ""
    for pmid, at in zip(count(90000094), range(18), strict=False):
        rows = joined([fill(draw, template) for template in PICO]).tagged({kind: kind for kind in kinds})
        root = "ebm_nlp_2_00"
        found[f"{root}/documents/{pmid}.tokens"] = "\n".join(word for word, _ in rows) + "\n"
        for kind in kinds:
            numbers = "".join(f"{int(tag.endswith(kind))}\n" for _, tag in rows)
            folder = f"{root}/annotations/aggregated/starting_spans/{kind}"
            found[f"{folder}/{'test/gold' if at >= 12 else 'train'}/{pmid}.AGGREGATED.ann"] = numbers
        if at % 4 == 3 and at < 12:
            dev += f"-DOCSTART- ({pmid})\n\n" + "".join(f"{word} NN O O\n" for word, _ in rows) + "\n"
    return {**found, "scibert/pico/ebmnlp/dev.txt": dev}


def _pubtator() -> Contents:
    """BC5CDR as its task's documents."""
    draw = Random("pubtator")
    pmids = count(90000095)
    return {
        f"bc5cdr-pubtator/CDR_{name}Set.PubTator.txt": "\n".join(
            _document(next(pmids), draw, _abstract(draw, at)) for at in range(size)
        )
        + "\n"
        for name, size in (("Test", 5), ("Training", 6), ("Development", 3))
    }


def _abstract(draw: Random, at: int) -> list[Said]:
    templates = [SHARED[0] if at == 0 else FACTS[at % 2], *FACTS[:3], NEUTRAL[at % 5]]
    return [fill(draw, template) for template in templates]


def _document(pmid: int, draw: Random, sentences: Sequence[Said]) -> str:
    title, abstract = sentences[0], joined(sentences[1:])
    whole = joined([title, abstract])
    kinds = {"drug": "Chemical", "disease": "Disease"}
    mentions = [
        "\t".join(
            map(str, (pmid, one.start, one.end, whole.text[one.start : one.end], kinds[one.type], "C1\n"))
        )
        for one in whole.mentions
        if one.type in kinds
    ]
    return f"{pmid}|t|{title.text}\n{pmid}|a|{abstract.text}\n{''.join(mentions)}"
