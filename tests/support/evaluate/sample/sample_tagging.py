"""The sample's tagged sentences as Crichton et al., ELECTRAMed, BioBERT, EBM-NLP and PubTator have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from random import Random
from typing import Final

from tests.support.evaluate.sample.sample_sentences import (
    CHEMPROT,
    FACTS,
    GAD,
    NEUTRAL,
    PICO,
    SHARED,
    AnnotatedText,
    add_lead_in,
    fill_template,
    join_texts,
)

FileContents = dict[str, str]
"""What is in each file, by its path below the sample."""
TaggedWords = Sequence[tuple[str, str]]

SPLIT_SIZES: Final = {"train": 24, "dev": 8, "test": 12}
_TEMPLATES: Final = (
    *FACTS,
    *(template for of_label in (*CHEMPROT.values(), *GAD.values()) for template in of_label),
)
_JNLPBA_TYPES: Final = {name: name for name in ("protein", "DNA", "RNA", "cell_type", "cell_line")}
_CRICHTON_TYPES: Final = {
    "BC5CDR-chem-IOB": {"drug": "Chemical"},
    "BC5CDR-disease-IOB": {"disease": "Disease"},
    "NCBI-disease-IOB": {"disease": "Disease"},
    "BC2GM-IOB": {"gene": "GENE", "protein": "GENE"},
    "BC4CHEMD-IOB": {"drug": "Chemical"},
    "linnaeus-IOB": {"species": "Species"},
    "JNLPBA": _JNLPBA_TYPES,
}


def tagging_files() -> FileContents:
    """Generate the files of all tagging benchmarks."""
    files: FileContents = {}
    for name, types in _CRICHTON_TYPES.items():
        path = f"mtl-bioinformatics-2016/{name}/{{}}.tsv"
        files |= _split_files(
            path, _draw_sentences(name, types), "devel", lambda rows: _format_iob(rows, "\t")
        )
    files |= _split_files(
        "s800/{}.tsv", _draw_sentences("s800", {"species": ""}), "devel", lambda rows: _format_iob(rows, "\t")
    )
    files |= _split_files(
        "electramed/NER/JNLPBA/{}.txt",
        _draw_sentences("electramed JNLPBA", _JNLPBA_TYPES),
        "dev",
        lambda rows: _format_iob(rows, " "),
    )
    merged = _draw_sentences("electramed bc5cdr", {"drug": "Entity", "disease": "Entity"})
    files |= _split_files(
        "electramed/NER/bc5cdr/{}.txt",
        merged,
        "dev",
        lambda rows: _format_iob(_single_word_as_inside(rows), " "),
    )
    return {**files, **_pico_files(), **_pubtator_files()}


def _draw_sentences(name: str, types: Mapping[str, str]) -> dict[str, list[TaggedWords]]:
    """Of each part its sentences: four in five with a mention, and in test those that papers share."""
    rng = Random(name)
    matching_templates = [one for one in _TEMPLATES if any(f"{{{kind}}}" in one for kind in types)]
    splits: dict[str, list[TaggedWords]] = {}
    for split, size in SPLIT_SIZES.items():
        templates = [
            NEUTRAL[at % 5] if at % 5 == 4 else matching_templates[at % len(matching_templates)]
            for at in range(size)
        ]
        texts = [fill_template(rng, add_lead_in(rng, template)) for template in templates]
        if split == "test" and "drug" in types:
            texts += [fill_template(rng, template) for template in SHARED]
        splits[split] = [one.bio_tagged_words(types) for one in texts]
    return splits


def _split_files(
    path: str,
    splits: Mapping[str, Sequence[TaggedWords]],
    dev: str,
    format_rows: Callable[[TaggedWords], str],
) -> FileContents:
    names = {"train": "train", "dev": dev, "test": "test"}
    return {path.format(names[part]): "\n".join(map(format_rows, rows)) for part, rows in splits.items()}


def _format_iob(rows: TaggedWords, separator: str) -> str:
    return "".join(f"{word}{separator}{tag.rstrip('-')}\n" for word, tag in rows)


def _single_word_as_inside(rows: TaggedWords) -> TaggedWords:
    """Mentions of one word begin with ``I-``, as in ELECTRAMed's BC5CDR."""
    next_tags = [tag for _, tag in rows[1:]] + ["O"]
    return [
        (word, tag.replace("B-", "I-") if not following.startswith("I-") else tag)
        for (word, tag), following in zip(rows, next_tags, strict=True)
    ]


def _pico_files() -> FileContents:
    """EBM-NLP's tokens and numbers, and of SciBERT's files the one that says which abstracts are dev."""
    rng = Random("pico")
    entity_types = ("participants", "interventions", "outcomes")
    files: FileContents = {}
    dev = ""
    for pmid, at in zip(count(90000094), range(18), strict=False):
        rows = join_texts([fill_template(rng, template) for template in PICO]).bio_tagged_words(
            {entity_type: entity_type for entity_type in entity_types}
        )
        root = "ebm_nlp_2_00"
        files[f"{root}/documents/{pmid}.tokens"] = "\n".join(word for word, _ in rows) + "\n"
        for entity_type in entity_types:
            numbers = "".join(f"{int(tag.endswith(entity_type))}\n" for _, tag in rows)
            folder = f"{root}/annotations/aggregated/starting_spans/{entity_type}"
            files[f"{folder}/{'test/gold' if at >= 12 else 'train'}/{pmid}.AGGREGATED.ann"] = numbers
        if at % 4 == 3 and at < 12:
            dev += f"-DOCSTART- ({pmid})\n\n" + "".join(f"{word} NN O O\n" for word, _ in rows) + "\n"
    return {**files, "scibert/pico/ebmnlp/dev.txt": dev}


def _pubtator_files() -> FileContents:
    """BC5CDR as its task's documents."""
    rng = Random("pubtator")
    pmids = count(90000095)
    return {
        f"bc5cdr-pubtator/CDR_{name}Set.PubTator.txt": "\n".join(
            _pubtator_document(next(pmids), rng, _draw_abstract(rng, at)) for at in range(size)
        )
        + "\n"
        for name, size in (("Test", 5), ("Training", 6), ("Development", 3))
    }


def _draw_abstract(rng: Random, at: int) -> list[AnnotatedText]:
    templates = [SHARED[0] if at == 0 else FACTS[at % 2], *FACTS[:3], NEUTRAL[at % 5]]
    return [fill_template(rng, template) for template in templates]


def _pubtator_document(pmid: int, rng: Random, sentences: Sequence[AnnotatedText]) -> str:
    title, abstract = sentences[0], join_texts(sentences[1:])
    whole = join_texts([title, abstract])
    type_names = {"drug": "Chemical", "disease": "Disease"}
    mentions = [
        "\t".join(
            map(
                str, (pmid, one.start, one.end, whole.text[one.start : one.end], type_names[one.type], "C1\n")
            )
        )
        for one in whole.mentions
        if one.type in type_names
    ]
    return f"{pmid}|t|{title.text}\n{pmid}|a|{abstract.text}\n{''.join(mentions)}"
