"""The sample's pairs of sentences, abstracts with hallmarks, and questions of all kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count, islice
from random import Random
from typing import Any, Final

from bioshards.evaluate.readers import pubmedqa
from tests.evaluation_relation_files import table
from tests.evaluation_tagged_files import Contents
from tests.evaluation_words import FACTOIDS, GAD, HALLMARKS, NEUTRAL, PARAPHRASES, Said, fill, in_case, joined

_YES_NO: Final = ("yes", "no")


def texts() -> Contents:
    """All sets of texts and questions."""
    return {
        "biosses/biosses.tsv": _biosses(),
        **_hallmarks(),
        **_pubmedqa(),
        **_yes_no(),
        **_ideal(),
        **_reranker(),
        **_bioasq(),
        **_factoid_8b(),
        **_squad(),
    }


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _biosses() -> str:
    """100 pairs from the same fact told twice (4) to two facts of nothing in common (0)."""
    draw = Random("biosses")
    rows = []
    for at in range(100):
        level = at % 5
        template, retold = PARAPHRASES[at % 4]
        first = fill(draw, template)
        names = {one.type: first.text[one.start : one.end] for one in first.mentions}
        kept = dict(list(names.items())[: 3 if level > 2 else level])
        second = fill(draw, retold if level > 1 else PARAPHRASES[(at + 1) % 4][1], kept)
        scores = [min(4.0, max(0.0, level + draw.choice((-1.0, 0.0, 0.0, 1.0)))) for _ in "ABCDE"]
        mean = sum(scores) / 5
        rows.append([str(at + 1), first.text, second.text, ",".join(map(str, scores)), f"{mean:.2f}"])
    return table(("id", "sentence1", "sentence2", "scores", "mean"), rows)


def _hallmarks() -> Contents:
    """Abstracts of three sentences, none to two of them with a hallmark, and BLURB's lists."""
    draw = Random("hallmarks")
    labels = list(HALLMARKS)
    found: Contents = {}
    lists: dict[str, list[str]] = {"test": [], "train": [], "dev": []}
    for at, pmid in zip(range(40), count(90000096), strict=False):
        chosen = ["", labels[at % 10], ("", labels[(at * 3 + 1) % 10])[at % 2]]
        if at % 13 == 12:
            chosen = ["", "", ""]
        said = [
            fill(draw, HALLMARKS[one][0] if one else NEUTRAL[(at + n) % 5]) for n, one in enumerate(chosen)
        ]
        folder = "hallmarks-of-cancer"
        found[f"{folder}/text/{pmid}.txt"] = "".join(f"{one.text}\n" for one in said)
        found[f"{folder}/labels/{pmid}.txt"] = "".join(f"<{one or ' '}" for one in chosen)
        lists["test" if at < 12 else "dev" if at >= 34 else "train"].append(str(pmid))
    for part, pmids in lists.items():
        found[f"blurb/indexing/HoC/{part}_pmid.tsv"] = ",".join(pmids) + "\n"
    return found


# Questions


def _asked(name: str, size: int) -> Iterator[tuple[str, str, list[Said]]]:
    """Yes/no questions, their answers, and sentences that answer them."""
    draw = Random(name)
    for at in range(size):
        answer = "no" if at % 3 == 2 else "yes"
        templates = GAD["1" if answer == "yes" else "0"]
        first = fill(draw, in_case(draw, templates[at % 2]))
        names = {one.type: first.text[one.start : one.end] for one in first.mentions}
        question = fill(draw, "Is {gene} linked to {disease}?", names).text
        others = [fill(draw, templates[(at + 1) % 2], names), fill(draw, NEUTRAL[at % 5])]
        yield question, answer, [first, *others]


def _pubmedqa() -> Contents:
    """Questions, some of which have no clear answer, and the answers of those to be tested."""
    questions = {}
    for at, (pmid, (question, answer, said)) in enumerate(
        zip(count(90000090), _asked("pubmedqa", 40), strict=False)
    ):
        questions[str(pmid)] = {
            "QUESTION": question,
            "CONTEXTS": [said[0].text, said[2].text],
            "LABELS": ["RESULTS", "CONCLUSIONS"],
            "YEAR": "2020",
            "LONG_ANSWER": said[1].text,
            "final_decision": "maybe" if at % 5 == 4 else answer,
        }
    answers = {pmid: str(one["final_decision"]) for pmid, one in questions.items()}
    _, _, test = pubmedqa.split_ids(answers)
    return {
        "pubmedqa/data/ori_pqal.json": _as_json(questions),
        "pubmedqa/data/test_ground_truth.json": _as_json({pmid: answers[pmid] for pmid in test}),
    }


def _bioasq_question(name: str, pmid: int, kind: str, body: str, answer: Any, said: Sequence[Said]) -> Any:
    address = f"http://www.ncbi.nlm.nih.gov/pubmed/{pmid}"
    return {
        "id": name,
        "type": kind,
        "body": body,
        "documents": [address],
        "snippets": [{"text": one.text, "document": address} for one in said],
        "exact_answer": answer,
    }


def _yes_no() -> Contents:
    """BioASQ's training file, with a question of another kind, and BLURB's lists."""
    questions = [
        _bioasq_question(f"training{at:02}", 90000200 + at, "yesno", question, answer, said[:2])
        for at, (question, answer, said) in enumerate(_asked("yes or no", 30))
    ]
    names = [question["id"] for question in questions]
    summary = _bioasq_question("summary00", 90000199, "summary", "What is Ansel fever?", None, [])
    return {
        "BioASQ/training7b.json": _as_json({"questions": [*questions, summary]}),
        "blurb/indexing/BioASQ/train_id.tsv": ",".join(names[:24]) + "\n",
        "blurb/indexing/BioASQ/dev_id.tsv": ",".join(names[24:]) + "\n",
    }


def _ideal() -> Contents:
    found = {}
    for part, size in (("train", 24), ("test", 9)):
        rows = [
            [str(int(answer == "yes")), question, joined(said[:2]).text]
            for question, answer, said in _asked(f"ideal {part}", size)
        ]
        found[f"bio_electra/yesno/{part}.tsv"] = table(("yesno_label", "question", "ideal_answer"), rows)
    return found


def _reranker() -> Contents:
    """Four answers to each question, of which the first or the last is right."""
    found = {}
    for part, size in (("train", 12), ("test", 6)):
        draw = Random(f"reranker {part}")
        rows = []
        for at, (question, passage, _) in enumerate(_factoids(draw, size)):
            answers = [(0, fill(draw, NEUTRAL[(at + n) % 5]).text) for n in range(3)]
            answers.insert(3 * (at % 2), (1, passage.text))
            rows += [[str(right), question, answer] for right, answer in answers]
        found[f"bio_electra/reranker/{part}.tsv"] = table(("label", "question", "answer_candidate"), rows)
    return found


def _factoids(draw: Random, size: int) -> Iterator[tuple[str, Said, str]]:
    """Questions, passages, and their answers."""
    for at in range(size):
        question, passage, kind = FACTOIDS[at % 4]
        said = fill(draw, in_case(draw, passage))
        names = {one.type: said.text[one.start : one.end] for one in said.mentions}
        yield fill(draw, question, names).text, said, names[kind]


def _passages(name: str, question: str, passages: Sequence[Said], answer: str) -> Iterator[Mapping[str, Any]]:
    """SQuAD's JSON of a question to some passages; ids are those of ``name`` with a number."""
    for number, passage in enumerate(passages):
        start = passage.text.find(answer)
        answers = [{"answer_start": start, "text": answer}] if start >= 0 else []
        asked = {"id": name.format(number), "question": question, "answers": answers}
        yield {"context": passage.text, "qas": [asked]}


def _squad_file(name: str, size: int, ids: str) -> list[Mapping[str, Any]]:
    draw = Random(name)
    found: list[Mapping[str, Any]] = []
    for at, (question, passage, answer) in enumerate(_factoids(draw, size)):
        around = [fill(draw, NEUTRAL[(at + n) % 5]) for n in range(2)]
        passages = [joined([around[0], passage]), joined([passage, *around])]
        found += _passages(ids.format(at), question, passages, answer)
    return found


def _wrapped(paragraphs: Sequence[Mapping[str, Any]]) -> str:
    return _as_json({"version": "sample", "data": [{"title": "sample", "paragraphs": paragraphs}]})


def _bioasq() -> Contents:
    """ELECTRAMed's factoid questions, and the golden batches, which have yes/no questions, too."""
    folder = "electramed/QA/BioASQ"
    train = _squad_file("factoid 7b", 12, "train{:02}_{{:03}}")
    found = {f"{folder}/BioASQ-train-factoid-7b-full-annotated.json": _wrapped(train)}
    yes_no = _asked("golden", 15)
    pmids = count(90000098)
    for batch in range(1, 6):
        golden, paragraphs = [], []
        for at, (question, answer, said) in enumerate(islice(yes_no, 3)):
            golden.append(
                _bioasq_question(f"yn{batch}{at}", next(pmids), "yesno", question, answer, said[:2])
            )
        draw = Random(f"batch {batch}")
        for at, (question, passage, answer) in enumerate(_factoids(draw, 4)):
            name, accepted = f"fact{batch}{at}", [[answer, answer.upper()]]
            golden.append(_bioasq_question(name, next(pmids), "factoid", question, accepted, [passage]))
            passages = [passage, fill(draw, NEUTRAL[at])]
            paragraphs += [
                {**one, "qas": [{key: asked[key] for key in ("id", "question")} for asked in one["qas"]]}
                for one in _passages(f"{name}_{{:03}}", question, passages, answer)
            ]
        found[f"{folder}/7B{batch}_golden.json"] = _as_json({"questions": golden})
        found[f"{folder}/BioASQ-test-factoid-7b-{batch}.json"] = _wrapped(paragraphs)
    return found


def _factoid_8b() -> Contents:
    sizes = (("train", 14), ("dev", 6))
    return {
        f"bio_electra/bioasq/{part}.json": _wrapped(
            _squad_file(f"factoid 8b {part}", size, f"{part}{{}}:{{{{}}}}")
        )
        for part, size in sizes
    }


def _squad() -> Contents:
    return {
        f"squad/{part}-v1.1.json": _wrapped(_squad_file(f"squad {part}", size, f"{part}{{}}-{{{{}}}}"))
        for part, size in (("train", 10), ("dev", 4))
    }
