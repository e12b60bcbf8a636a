"""What is said of examples and documents, on benchmarks and corpora of which is known what they share."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.definition import (
    Benchmark,
    FileLayout,
    MissingSplitPolicy,
    count_by_record_type,
)
from bioshards.evaluate.benchmarks.record_types import (
    Answer,
    Mention,
    Question,
    Record,
    Relation,
    TaggedSentence,
)
from bioshards.evaluate.contamination import corpus_scan as contamination_corpus
from tests.support.evaluate.contaminated_corpora import (
    make_dataset,
    make_text,
    ngrams_by_brute_force,
    random_prose,
    read_excluded_ids,
    read_tsv,
    run_contamination_check,
    write_benchmark_dir,
    write_corpus,
)


def account(out: Path, name: str = "set", part: str = "test") -> dict[str, Any]:
    """What the report says of a part of a set."""
    accounts = json.loads((out / "report.json").read_text())["benchmarks"]
    [found] = [one for one in accounts if (one["benchmark"], one["split"]) == (name, part)]
    return dict(found)


def counts(out: Path, *names: str, part: str = "test") -> list[Any]:
    found = account(out, part=part)
    return [found[name] for name in names]


def test_examples_are_found_by_their_documents_pmids(tmp_path: Path) -> None:
    test = [
        make_text("here", random_prose("changed since", 30), document="11"),
        make_text("two", random_prose("joined", 30), document=" 12  13 "),
        make_text("one of two", random_prose("joined too", 30), document="13 15"),
        make_text("in PMC", random_prose("of PMC", 30), document="14"),
        make_text("not here", random_prose("elsewhere", 30), document="15"),
        make_text("no document", random_prose("unknown", 30)),
        make_text("no PMID", random_prose("a name", 30), document="DrugBank.d13 99999999999 \u0661\u0663"),
    ]
    ours = make_dataset("set", {"test": test}, pmids=True)
    data, out = write_benchmark_dir(tmp_path / "data", ours), tmp_path / "out"
    abstracts = write_corpus(
        tmp_path / "pubmed", {f"pubmed:{pmid}": [random_prose(pmid, 40)] for pmid in range(7, 14)}
    )
    articles = {"pmc:PMC3.2": [random_prose("article", 40)], "pmc:PMC4.1": [random_prose("another", 40)]}
    full = write_corpus(tmp_path / "pmc", articles, {"pmc:PMC3.2": 14}, pipeline="pmc_to_shards")
    run_contamination_check(data, [abstracts, full], out, ours)
    assert counts(out, "examples", "by_pmid", "pmids", "pmids_matched", "by_ngrams") == [7, 4, 5, 4, 0]
    assert read_excluded_ids(out) == ["pmc:PMC3.2", "pubmed:11", "pubmed:12", "pubmed:13"]
    found = {row["id"]: row["PMIDs in corpus"] for row in read_tsv(out / "examples.tsv")}
    assert found == {"here": "11", "two": "12 13", "one of two": "13", "in PMC": "14"}


def test_without_pmids_what_a_document_is_called_says_nothing(tmp_path: Path) -> None:
    ours = make_dataset("set", {"test": [make_text("a", random_prose("a", 30), document="11")]})
    data = write_benchmark_dir(tmp_path / "data", ours)
    said = run_contamination_check(
        data,
        [write_corpus(tmp_path / "pubmed", {"pubmed:11": [random_prose(11, 40)]})],
        tmp_path / "out",
        ours,
    )
    assert counts(tmp_path / "out", "by_pmid", "pmids", "matched") == [0, 0, 0]
    assert " ".join(said.splitlines()[1].split()) == "set test 1 0 - - 0 0 0.0 % 0"


def test_examples_are_found_by_their_words(tmp_path: Path) -> None:
    whole, half, once = random_prose("whole", 25), random_prose("half", 40), random_prose("once", 13)
    test = [
        make_text("whole", whole.replace(" ", " , ")),
        make_text("half", half),
        make_text("one 13-gram", f"{random_prose('before', 20)} {once} {random_prose('after', 20)}"),
        make_text("none", random_prose("none", 30)),
        make_text("too short", whole[: len(" ".join(whole.split()[:12]))]),
        make_text("empty", " "),
    ]
    ours = make_dataset("set", {"test": test})
    texts = {
        "pubmed:1": [random_prose(1, 20), whole.upper()],
        "pubmed:2": [" ".join(half.split()[:20]) + ".", once],
        "pubmed:3": [" ".join(half.split()[20:])],
    }
    out = tmp_path / "out"
    run_contamination_check(
        write_benchmark_dir(tmp_path / "data", ours),
        [write_corpus(tmp_path / "pubmed", texts)],
        out,
        ours,
        min_shared_ngrams=10,
    )
    assert counts(out, "examples", "by_ngrams", "mostly_covered", "too_short") == [6, 3, 1, 2]
    shares = [1.0, 16 / 28, 1 / 41, 0]
    assert account(out)["mean_coverage"] == pytest.approx(sum(shares) / 4)
    found = [[row[name] for name in list(row)[2:]] for row in read_tsv(out / "examples.tsv")]
    assert found == [
        ["whole", "", "", "13", "13", "pubmed:1", "13"],
        ["half", "", "", "28", "16", "pubmed:2", "8"],
        ["one 13-gram", "", "", "41", "1", "pubmed:2", "1"],
    ]
    held = [[row[name] for name in list(row)[3:]] for row in read_tsv(out / "documents.tsv")]
    assert held == [
        ["no", "13", "yes", "yes", "set"],
        ["no", "9", "no", "no", "set"],
        ["no", "8", "no", "no", "set"],
    ]


def test_words_of_two_documents_or_of_two_texts_are_no_13_gram(tmp_path: Path) -> None:
    first, second = random_prose("first", 10), random_prose("second", 10)
    test = [make_text("a pair", first, second), make_text("one text", f"{first} {second}")]
    ours = make_dataset("set", {"test": test})
    data = write_benchmark_dir(tmp_path / "data", ours)
    apart = write_corpus(
        tmp_path / "apart", {"pubmed:1": [first], "pubmed:2": [second], "pubmed:3": []}, batch_size=3
    )
    together = write_corpus(tmp_path / "together", {"pubmed:4": [first, second]})
    run_contamination_check(data, [apart], tmp_path / "none", ours)
    assert counts(tmp_path / "none", "by_ngrams", "too_short") == [0, 1]
    run_contamination_check(data, [together], tmp_path / "one", ours)
    assert [row["id"] for row in read_tsv(tmp_path / "one/examples.tsv")] == ["one text"]


def test_records_of_each_kind_are_looked_for(tmp_path: Path) -> None:
    words = {kind: random_prose(kind, 20) for kind in ("sentence", "relation", "question", "context")}
    nobody = Mention(0, 3, "GENE")
    test: list[Record] = [
        TaggedSentence("s", tuple(words["sentence"].split()), ("O",) * 20),
        Relation("r", words["relation"], nobody, nobody, "none"),
        Question("q", words["question"], words["context"], (Answer("a", 0),), "q"),
    ]
    ours = make_dataset("set", {"test": test})
    texts = {f"pubmed:{at}": [words[kind]] for at, kind in enumerate(("sentence", "relation", "context"), 1)}
    run_contamination_check(
        write_benchmark_dir(tmp_path / "data", ours),
        [write_corpus(tmp_path / "pubmed", texts)],
        tmp_path / "out",
        ours,
    )
    found = {
        row["id"]: (row["13-grams"], row["in corpus"]) for row in read_tsv(tmp_path / "out/examples.tsv")
    }
    assert found == {"s": ("8", "8"), "r": ("8", "8"), "q": ("16", "8")}


@pytest.mark.parametrize("dummy", ["@GENE$", "@CHEM-GENE$", "BC6ENTC", "BC6OTHER", "(@DRUG$)", "non-@DRUG$-"])
def test_an_entity_that_is_hidden_parts_the_text(tmp_path: Path, dummy: str) -> None:
    left, right = random_prose("left", 15), random_prose("right", 9)
    ours = make_dataset("set", {"test": [make_text("a", f"{left} {dummy} {right}")]})
    texts = {"pubmed:1": [f"{left} insulin {right}"]}
    out = tmp_path / "out"
    run_contamination_check(
        write_benchmark_dir(tmp_path / "data", ours), [write_corpus(tmp_path / "pubmed", texts)], out, ours
    )
    [row] = read_tsv(out / "examples.tsv")
    assert int(row["13-grams"]) - int(row["in corpus"]) == (1 if dummy.startswith("non") else 0)
    assert row["in corpus"] == "3"


def test_each_part_is_counted_and_those_asked_for_are_listed(tmp_path: Path) -> None:
    parts = {
        part: [make_text(part, random_prose(part, 30), document=str(at))]
        for at, part in enumerate(("train", "dev", "test"), 1)
    }
    ours = make_dataset("set", parts, pmids=True)  # type: ignore[arg-type]
    data, out = write_benchmark_dir(tmp_path / "data", ours), tmp_path / "out"
    texts = {f"pubmed:{at}": [random_prose(part, 30)] for at, part in enumerate(parts, 4)}
    abstracts = write_corpus(tmp_path / "pubmed", {**texts, "pubmed:1": ["The abstract of train."]})
    run_contamination_check(data, [abstracts], out, ours)
    assert [counts(out, "by_pmid", "by_ngrams", part=part) for part in parts] == [[1, 1], [0, 1], [0, 1]]
    assert read_excluded_ids(out) == ["pubmed:6"]
    run_contamination_check(data, [abstracts], out, ours, splits=["test", "train"])
    assert read_excluded_ids(out) == ["pubmed:1", "pubmed:4", "pubmed:6"]
    assert [row["split"] for row in read_tsv(out / "examples.tsv")] == ["train", "test"]


def test_a_document_is_left_out_for_most_of_an_example_or_for_much_of_all(tmp_path: Path) -> None:
    abstract, sentence = random_prose("abstract", 200), random_prose("sentence", 14)
    ours = make_dataset("set", {"test": [make_text("a", abstract), make_text("b", sentence)]})
    words = abstract.split()
    texts = {
        "pubmed:1": [" ".join(words[50:74])],
        "pubmed:2": [" ".join(words[50:75])],
        "pubmed:3": [f"As is known, {sentence}."],
        "pubmed:4": [" ".join(sentence.split()[1:])],
    }
    data, abstracts = write_benchmark_dir(tmp_path / "data", ours), write_corpus(tmp_path / "pubmed", texts)
    for least, ids in ((13, [2, 3]), (12, [1, 2, 3]), (1, [1, 2, 3, 4]), (14, [3])):
        said = run_contamination_check(data, [abstracts], tmp_path / "out", ours, min_shared_ngrams=least)
        assert read_excluded_ids(tmp_path / "out") == [f"pubmed:{at}" for at in ids]
        assert f"{len(ids)} documents to exclude for test" in said
        assert f"{4 - len(ids)} share fewer and are kept" in said


def test_a_document_of_two_corpora_is_one(tmp_path: Path) -> None:
    words = random_prose("twice", 60)
    ours = make_dataset("set", {"test": [make_text("a", words)]})
    half = {"pubmed:1": [" ".join(words.split()[:30])]}
    other = {"pubmed:1": [" ".join(words.split()[10:40])]}
    corpora = [write_corpus(tmp_path / "one", half), write_corpus(tmp_path / "two", other)]
    run_contamination_check(write_benchmark_dir(tmp_path / "data", ours), corpora, tmp_path / "out", ours)
    [row] = read_tsv(tmp_path / "out/documents.tsv")
    assert row["shared 13-grams"] == str(40 - 12)


def test_what_is_known_of_the_sets_is_said(tmp_path: Path) -> None:
    layout = FileLayout(
        {"all": "set", "split": "split.txt"},
        {"test": ("all",)},
        lambda files: {"test": [make_text("a\tb\nc", random_prose("a", 20), document="<b>\t1")]},
        {"split": MissingSplitPolicy("the <split> is ours", ("test",))},
        note="no dev",
    )
    ours = Benchmark("set", "Set", (layout,), {}, count_by_record_type, "us", "none", "here")
    absent = make_dataset("absent", {"test": []})
    texts = {"pubmed:1": [random_prose("a", 20)]}
    out = tmp_path / "out"
    folder = write_corpus(tmp_path / "<i>&", texts)
    said = run_contamination_check(write_benchmark_dir(tmp_path / "data", ours), [folder], out, ours, absent)
    for line in ("set: no dev", "set: the <split> is ours", "missing benchmarks, not checked: absent"):
        assert line in said.splitlines()
    assert [row["id"] for row in read_tsv(out / "examples.tsv")] == ["a b c"]
    page = (out / "report.html").read_text()
    assert "the &lt;split&gt; is ours" in page
    assert "&lt;i&gt;&amp;" in page
    assert "<split>" not in page
    assert "<i>" not in page


WORDS = st.lists(st.sampled_from(["a", "b", "Ab", "a-b", "\u03b2", "@GENE$"]), max_size=40).map(" ".join)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(WORDS, st.none() | WORDS), min_size=1, max_size=4),
    st.lists(WORDS, max_size=5),
    st.data(),
)
def test_as_by_brute_force(
    pairs: list[tuple[str, str | None]], texts: list[str], data: st.DataObject
) -> None:
    """On words so few that many texts share some, in batches and blocks of any size."""
    examples = [make_text(str(at), *pair) for at, pair in enumerate(pairs)]
    ours = make_dataset("set", {"test": examples})
    grams = [
        [
            gram
            for whole in pair
            if whole
            for piece in whole.split("@GENE$")
            for gram in ngrams_by_brute_force(piece)
        ]
        for pair in pairs
    ]
    held = {
        f"pubmed:{at}": set(ngrams_by_brute_force(words.replace("@GENE$", "gene")))
        for at, words in enumerate(texts, 1)
    }
    there = set[tuple[str, ...]]().union(*held.values())
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(contamination_corpus, "_BLOCK_BYTES", data.draw(st.sampled_from([1, 40, 1 << 20])))
        folder, out = Path(name), Path(name) / "out"
        written = {id_: [words.replace("@GENE$", "gene")] for id_, words in zip(held, texts, strict=True)}
        abstracts = write_corpus(folder / "pubmed", written, batch_size=data.draw(st.integers(1, 3)))
        run_contamination_check(
            write_benchmark_dir(folder / "data", ours), [abstracts], out, ours, min_shared_ngrams=2
        )
        found = {
            row["id"]: (int(row["13-grams"]), int(row["in corpus"])) for row in read_tsv(out / "examples.tsv")
        }
        shared = {row["id"]: int(row["shared 13-grams"]) for row in read_tsv(out / "documents.tsv")}
        closest = {
            row["id"]: (row["closest document"], int(row["shared 13-grams"]))
            for row in read_tsv(out / "examples.tsv")
        }
    covered = {str(at): (len(own), sum(1 for gram in own if gram in there)) for at, own in enumerate(grams)}
    assert found == {id_: (own, number) for id_, (own, number) in covered.items() if number}
    everything = {gram for own in grams for gram in own}
    assert shared == {id_: len(own & everything) for id_, own in held.items() if own & everything}
    for id_, (document, number) in closest.items():
        of_each = [(-len(own & set(grams[int(id_)])), name) for name, own in held.items()]
        assert (-number, document) == min(of_each)
