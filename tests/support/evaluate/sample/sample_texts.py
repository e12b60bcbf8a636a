"""The sample's pairs of sentences, abstracts with hallmarks, and questions of all kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from random import Random
from typing import Any, Final

from bioshards.evaluate.benchmarks.readers import split_pubmedqa
from tests.support.evaluate.sample.sample_relations import format_tsv
from tests.support.evaluate.sample.sample_sentences import (
    FACTOIDS,
    GAD,
    HALLMARKS,
    NEUTRAL,
    PARAPHRASES,
    UNCLEAR,
    AnnotatedText,
    add_lead_in,
    fill_template,
    join_texts,
)
from tests.support.evaluate.sample.sample_tagging import FileContents

_YES_NO: Final = ("yes", "yes", "no")


def text_files() -> FileContents:
    """Generate the files of all benchmarks of texts and questions."""
    return {
        "biosses/biosses.tsv": _biosses_tsv(),
        **_hallmark_files(),
        **_pubmedqa_files(),
        **_yes_no_files(),
        **_ideal_answer_files(),
        **_reranker_files(),
        **_bioasq_files(),
        **_factoid_8b_files(),
        **_squad_files(),
    }


def _json_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _biosses_tsv() -> str:
    """100 pairs from the same fact told twice (4) to a fact and a remark that is none (0)."""
    rng = Random("biosses")
    rows = []
    for index in range(100):
        level = index % 5
        template, retold = PARAPHRASES[index % 4]
        first = fill_template(rng, template)
        names = {one.type: first.text[one.start : one.end] for one in first.mentions}
        shared_names = dict(list(names.items())[: 3 if level > 2 else level])
        second = fill_template(rng, retold if level > 1 else NEUTRAL[index % 4], shared_names)
        scores = [min(4.0, max(0.0, level + rng.choice((-1.0, 0.0, 0.0, 1.0)))) for _ in "ABCDE"]
        mean = sum(scores) / 5
        rows.append([str(index + 1), first.text, second.text, ",".join(map(str, scores)), f"{mean:.2f}"])
    return format_tsv(("id", "sentence1", "sentence2", "scores", "mean"), rows)


def _hallmark_files() -> FileContents:
    """Abstracts of three sentences, each with one hallmark or two or none, and BLURB's lists."""
    rng = Random("hallmarks")
    labels = list(HALLMARKS)
    files: FileContents = {}
    lists: dict[str, list[str]] = {"test": [], "train": [], "dev": []}
    for at, pmid in zip(range(40), count(90000096), strict=False):
        chosen_labels = [labels[at % 10], labels[at % 10], labels[(at if at % 4 else at * 3 + 1) % 10]]
        if at % 13 == 12:
            chosen_labels = ["", "", ""]
        texts = [
            fill_template(rng, HALLMARKS[one][0] if one else NEUTRAL[(at + n) % 5])
            for n, one in enumerate(chosen_labels)
        ]
        folder = "hallmarks-of-cancer"
        files[f"{folder}/text/{pmid}.txt"] = "".join(f"{one.text}\n" for one in texts)
        files[f"{folder}/labels/{pmid}.txt"] = "".join(f"<{one or ' '}" for one in chosen_labels)
        lists["test" if at < 12 else "dev" if at >= 34 else "train"].append(str(pmid))
    for part, pmids in lists.items():
        files[f"blurb/indexing/HoC/{part}_pmid.tsv"] = ",".join(pmids) + "\n"
    return files


# Questions


def _draw_questions(
    name: str, size: int, answers: Sequence[str]
) -> Iterator[tuple[str, str, list[AnnotatedText]]]:
    """Draw questions with yes, no or maybe for an answer, in turn, and sentences that answer them."""
    rng = Random(name)
    templates_by_answer = {"yes": GAD["1"], "no": GAD["0"], "maybe": UNCLEAR}
    for at in range(size):
        answer = answers[at % len(answers)]
        templates = templates_by_answer[answer]
        first = fill_template(rng, add_lead_in(rng, templates[at % 2]))
        names = {one.type: first.text[one.start : one.end] for one in first.mentions}
        question = fill_template(rng, "Is {gene} linked to {disease}?", names).text
        distractors = [
            fill_template(rng, templates[(at + 1) % 2], names),
            fill_template(rng, NEUTRAL[at % 5]),
        ]
        yield question, answer, [first, *distractors]


def _pubmedqa_files() -> FileContents:
    """Questions, some of which have no clear answer, and the answers of those to be tested."""
    questions = {}
    drawn = _draw_questions("pubmedqa", 44, ("yes", "no", "yes", "yes", "no", "maybe"))
    for pmid, (question, answer, said) in zip(count(90000090), drawn, strict=False):
        questions[str(pmid)] = {
            "QUESTION": question,
            "CONTEXTS": [said[0].text, said[1].text],
            "LABELS": ["RESULTS", "CONCLUSIONS"],
            "YEAR": "2020",
            "LONG_ANSWER": said[0].text,
            "final_decision": answer,
        }
    answers = {pmid: str(one["final_decision"]) for pmid, one in questions.items()}
    _, _, test = split_pubmedqa(answers)
    return {
        "pubmedqa/data/ori_pqal.json": _json_line(questions),
        "pubmedqa/data/test_ground_truth.json": _json_line({pmid: answers[pmid] for pmid in test}),
    }


def _make_bioasq_question(
    name: str, pmid: int, question_type: str, body: str, answer: Any, snippets: Sequence[AnnotatedText]
) -> Any:
    address = f"http://www.ncbi.nlm.nih.gov/pubmed/{pmid}"
    return {
        "id": name,
        "type": question_type,
        "body": body,
        "documents": [address],
        "snippets": [{"text": one.text, "document": address} for one in snippets],
        "exact_answer": answer,
    }


def _yes_no_files() -> FileContents:
    """BioASQ's training file, with a question of another kind, and BLURB's lists."""
    questions = [
        _make_bioasq_question(f"training{at:02}", 90000200 + at, "yesno", question, answer, said[:2])
        for at, (question, answer, said) in enumerate(_draw_questions("yes or no", 30, _YES_NO))
    ]
    names = [question["id"] for question in questions]
    summary = _make_bioasq_question("summary00", 90000199, "summary", "What is Ansel fever?", None, [])
    return {
        "BioASQ/training7b.json": _json_line({"questions": [*questions, summary]}),
        "blurb/indexing/BioASQ/train_id.tsv": ",".join(names[:24]) + "\n",
        "blurb/indexing/BioASQ/dev_id.tsv": ",".join(names[24:]) + "\n",
    }


def _ideal_answer_files() -> FileContents:
    files = {}
    for part, size in (("train", 24), ("test", 9)):
        rows = [
            [str(int(answer == "yes")), question, join_texts(said[:2]).text]
            for question, answer, said in _draw_questions(f"ideal {part}", size, _YES_NO)
        ]
        files[f"bio_electra/yesno/{part}.tsv"] = format_tsv(("yesno_label", "question", "ideal_answer"), rows)
    return files


def _reranker_files() -> FileContents:
    """Generate four answers to each question, of which the first or the last is right."""
    files = {}
    for part, size in (("train", 12), ("test", 6)):
        rng = Random(f"reranker {part}")
        rows = []
        for at, (question, passage, _) in enumerate(_draw_factoids(rng, size)):
            answers = [(0, fill_template(rng, NEUTRAL[(at + n) % 5]).text) for n in range(3)]
            answers.insert(3 * (at % 2), (1, passage.text))
            rows += [[str(right), question, answer] for right, answer in answers]
        files[f"bio_electra/reranker/{part}.tsv"] = format_tsv(
            ("label", "question", "answer_candidate"), rows
        )
    return files


def _draw_factoids(rng: Random, size: int) -> Iterator[tuple[str, AnnotatedText, str]]:
    """Questions, passages, and their answers."""
    for at in range(size):
        question, passage, kind = FACTOIDS[at % 4]
        annotated = fill_template(rng, add_lead_in(rng, passage))
        names = {one.type: annotated.text[one.start : one.end] for one in annotated.mentions}
        yield fill_template(rng, question, names).text, annotated, names[kind]


def _squad_paragraphs(
    name: str, question: str, passages: Sequence[AnnotatedText], answer: str
) -> Iterator[Mapping[str, Any]]:
    """SQuAD's JSON of a question to some passages; ids are those of ``name`` with a number."""
    for number, passage in enumerate(passages):
        start = passage.text.find(answer)
        answers = [{"answer_start": start, "text": answer}] if start >= 0 else []
        question_answers = {"id": name.format(number), "question": question, "answers": answers}
        yield {"context": passage.text, "qas": [question_answers]}


def _squad_paragraphs_of_questions(name: str, size: int, ids: str) -> list[Mapping[str, Any]]:
    rng = Random(name)
    paragraphs: list[Mapping[str, Any]] = []
    for at, (question, passage, answer) in enumerate(_draw_factoids(rng, size)):
        distractors = [fill_template(rng, NEUTRAL[(at + n) % 5]) for n in range(2)]
        passages = [join_texts([distractors[0], passage]), join_texts([passage, *distractors])]
        paragraphs += _squad_paragraphs(ids.format(at), question, passages, answer)
    return paragraphs


def _squad_json(paragraphs: Sequence[Mapping[str, Any]]) -> str:
    return _json_line({"version": "sample", "data": [{"title": "sample", "paragraphs": paragraphs}]})


def _bioasq_files() -> FileContents:
    """ELECTRAMed's factoid questions, and the golden batches, which have yes/no questions, too."""
    folder = "electramed/QA/BioASQ"
    train = _squad_paragraphs_of_questions("factoid 7b", 12, "train{:02}_{{:03}}")
    files = {f"{folder}/BioASQ-train-factoid-7b-full-annotated.json": _squad_json(train)}
    yes_no = _draw_questions("golden", 15, _YES_NO)
    pmids = count(90000098)
    for batch in range(1, 6):
        golden, paragraphs = [], []
        for at, (question, answer, said) in enumerate(islice(yes_no, 3)):
            golden.append(
                _make_bioasq_question(f"yn{batch}{at}", next(pmids), "yesno", question, answer, said[:2])
            )
        rng = Random(f"batch {batch}")
        for at, (question, passage, answer) in enumerate(_draw_factoids(rng, 4)):
            name, accepted = f"fact{batch}{at}", [[answer, answer.upper()]]
            golden.append(_make_bioasq_question(name, next(pmids), "factoid", question, accepted, [passage]))
            passages = [passage, fill_template(rng, NEUTRAL[at])]
            paragraphs += [
                {**one, "qas": [{key: asked[key] for key in ("id", "question")} for asked in one["qas"]]}
                for one in _squad_paragraphs(f"{name}_{{:03}}", question, passages, answer)
            ]
        files[f"{folder}/7B{batch}_golden.json"] = _json_line({"questions": golden})
        files[f"{folder}/BioASQ-test-factoid-7b-{batch}.json"] = _squad_json(paragraphs)
    return files


def _factoid_8b_files() -> FileContents:
    sizes = (("train", 14), ("dev", 6))
    return {
        f"bio_electra/bioasq/{part}.json": _squad_json(
            _squad_paragraphs_of_questions(f"factoid 8b {part}", size, f"{part}{{}}:{{{{}}}}")
        )
        for part, size in sizes
    }


def _squad_files() -> FileContents:
    return {
        f"squad/{part}-v1.1.json": _squad_json(
            _squad_paragraphs_of_questions(f"squad {part}", size, f"{part}{{}}-{{{{}}}}")
        )
        for part, size in (("train", 10), ("dev", 4))
    }
