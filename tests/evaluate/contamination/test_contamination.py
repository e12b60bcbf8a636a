"""Results of the contamination check on synthetic benchmarks and corpora with known overlap."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.catalogue import Benchmark, FileLayout, MissingSplitPolicy
from bioshards.evaluate.benchmarks.records import Answer, Mention, Question, Record, Relation, TaggedSentence
from bioshards.evaluate.contamination import corpus_scan
from tests.support.evaluate.contaminated_corpora import (
    check_texts,
    count_records,
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
from tests.support.hypothesis_profiles import examples


def load_report_entry(out: Path, name: str = "set", split: str = "test") -> dict[str, Any]:
    """The entry of a benchmark's split in the report."""
    entries = json.loads((out / "report.json").read_text())["benchmarks"]
    [match] = [entry for entry in entries if (entry["benchmark"], entry["split"]) == (name, split)]
    return dict(match)


def load_report_counts(out: Path, *names: str, split: str = "test") -> list[Any]:
    entry = load_report_entry(out, split=split)
    return [entry[name] for name in names]


def test_examples_match_by_pmid(tmp_path: Path) -> None:
    test = [
        make_text("here", random_prose("changed since", 30), document="11"),
        make_text("two", random_prose("joined", 30), document=" 12  13 "),
        make_text("one of two", random_prose("joined too", 30), document="13 15"),
        make_text("in PMC", random_prose("of PMC", 30), document="14"),
        make_text("not here", random_prose("elsewhere", 30), document="15"),
        make_text("no document", random_prose("unknown", 30)),
        make_text("no PMID", random_prose("a name", 30), document="DrugBank.d13 99999999999 \u0661\u0663"),
    ]
    benchmark = make_dataset("set", {"test": test}, pmids=True)
    data, out = write_benchmark_dir(tmp_path / "data", benchmark), tmp_path / "out"
    abstracts = write_corpus(
        tmp_path / "pubmed", {f"pubmed:{pmid}": [random_prose(pmid, 40)] for pmid in range(7, 14)}
    )
    articles = {"pmc:PMC3.2": [random_prose("article", 40)], "pmc:PMC4.1": [random_prose("another", 40)]}
    article_corpus = write_corpus(tmp_path / "pmc", articles, {"pmc:PMC3.2": 14}, pipeline="pmc_to_shards")
    run_contamination_check(data, [abstracts, article_corpus], out, benchmark)
    counts = load_report_counts(out, "examples", "by_pmid", "pmids", "pmids_matched", "by_ngrams")
    assert counts == [7, 4, 5, 4, 0]
    assert read_excluded_ids(out) == ["pmc:PMC3.2", "pubmed:11", "pubmed:12", "pubmed:13"]
    pmids_by_id = {row["id"]: row["PMIDs in corpus"] for row in read_tsv(out / "examples.tsv")}
    assert pmids_by_id == {"here": "11", "two": "12 13", "one of two": "13", "in PMC": "14"}


def test_document_names_are_ignored_without_pmids(tmp_path: Path) -> None:
    benchmark = make_dataset("set", {"test": [make_text("a", random_prose("a", 30), document="11")]})
    output = check_texts(tmp_path, benchmark, {"pubmed:11": [random_prose(11, 40)]})
    assert load_report_counts(tmp_path / "out", "by_pmid", "pmids", "matched") == [0, 0, 0]
    assert " ".join(output.splitlines()[1].split()) == "set test 1 0 - - 0 0 0.0 % 0"


def test_examples_match_by_ngrams(tmp_path: Path) -> None:
    whole, half, once = random_prose("whole", 25), random_prose("half", 40), random_prose("once", 13)
    test = [
        make_text("whole", whole.replace(" ", " , ")),
        make_text("half", half),
        make_text("one 13-gram", f"{random_prose('before', 20)} {once} {random_prose('after', 20)}"),
        make_text("none", random_prose("none", 30)),
        make_text("too short", whole[: len(" ".join(whole.split()[:12]))]),
        make_text("empty", " "),
    ]
    benchmark = make_dataset("set", {"test": test})
    texts = {
        "pubmed:1": [random_prose(1, 20), whole.upper()],
        "pubmed:2": [" ".join(half.split()[:20]) + ".", once],
        "pubmed:3": [" ".join(half.split()[20:])],
    }
    out = tmp_path / "out"
    check_texts(tmp_path, benchmark, texts, min_shared_ngrams=10)
    assert load_report_counts(out, "examples", "by_ngrams", "mostly_covered", "too_short") == [6, 3, 1, 2]
    shares = [1.0, 16 / 28, 1 / 41, 0]
    assert load_report_entry(out)["mean_coverage"] == pytest.approx(sum(shares) / 4)
    example_rows = [[row[name] for name in list(row)[2:]] for row in read_tsv(out / "examples.tsv")]
    assert example_rows == [
        ["whole", "", "", "13", "13", "pubmed:1", "13"],
        ["half", "", "", "28", "16", "pubmed:2", "8"],
        ["one 13-gram", "", "", "41", "1", "pubmed:2", "1"],
    ]
    document_rows = [[row[name] for name in list(row)[3:]] for row in read_tsv(out / "documents.tsv")]
    assert document_rows == [
        ["no", "13", "yes", "yes", "set"],
        ["no", "9", "no", "no", "set"],
        ["no", "8", "no", "no", "set"],
    ]


def test_every_record_type_is_searched(tmp_path: Path) -> None:
    words = {kind: random_prose(kind, 20) for kind in ("sentence", "relation", "question", "context")}
    mention = Mention(0, 3, "GENE")
    test: list[Record] = [
        TaggedSentence("s", tuple(words["sentence"].split()), ("O",) * 20),
        Relation("r", words["relation"], mention, mention, "none"),
        Question("q", words["question"], words["context"], (Answer("a", 0),), "q"),
    ]
    benchmark = make_dataset("set", {"test": test})
    texts = {
        f"pubmed:{number}": [words[kind]]
        for number, kind in enumerate(("sentence", "relation", "context"), 1)
    }
    check_texts(tmp_path, benchmark, texts)
    ngram_counts = {
        row["id"]: (row["13-grams"], row["in corpus"]) for row in read_tsv(tmp_path / "out/examples.tsv")
    }
    assert ngram_counts == {"s": ("8", "8"), "r": ("8", "8"), "q": ("16", "8")}


@pytest.mark.parametrize(
    "placeholder", ["@GENE$", "@CHEM-GENE$", "BC6ENTC", "BC6OTHER", "(@DRUG$)", "non-@DRUG$-"]
)
def test_entity_placeholder_separates_ngrams(tmp_path: Path, placeholder: str) -> None:
    before, after = random_prose("left", 15), random_prose("right", 9)
    benchmark = make_dataset("set", {"test": [make_text("a", f"{before} {placeholder} {after}")]})
    texts = {"pubmed:1": [f"{before} insulin {after}"]}
    out = tmp_path / "out"
    check_texts(tmp_path, benchmark, texts)
    [row] = read_tsv(out / "examples.tsv")
    assert int(row["13-grams"]) - int(row["in corpus"]) == (1 if placeholder.startswith("non") else 0)
    assert row["in corpus"] == "3"


def test_all_splits_are_counted_and_chosen_splits_are_listed(tmp_path: Path) -> None:
    splits = {
        split: [make_text(split, random_prose(split, 30), document=str(number))]
        for number, split in enumerate(("train", "dev", "test"), 1)
    }
    benchmark = make_dataset("set", splits, pmids=True)  # type: ignore[arg-type]
    data, out = write_benchmark_dir(tmp_path / "data", benchmark), tmp_path / "out"
    texts = {f"pubmed:{number}": [random_prose(split, 30)] for number, split in enumerate(splits, 4)}
    abstracts = write_corpus(tmp_path / "pubmed", {**texts, "pubmed:1": ["The abstract of train."]})
    run_contamination_check(data, [abstracts], out, benchmark)
    counts = [load_report_counts(out, "by_pmid", "by_ngrams", split=split) for split in splits]
    assert counts == [[1, 1], [0, 1], [0, 1]]
    assert read_excluded_ids(out) == ["pubmed:6"]
    run_contamination_check(data, [abstracts], out, benchmark, splits=["test", "train"])
    assert read_excluded_ids(out) == ["pubmed:1", "pubmed:4", "pubmed:6"]
    assert [row["split"] for row in read_tsv(out / "examples.tsv")] == ["train", "test"]


def test_document_is_excluded_by_covered_example_or_by_shared_ngrams(tmp_path: Path) -> None:
    abstract, sentence = random_prose("abstract", 200), random_prose("sentence", 14)
    benchmark = make_dataset("set", {"test": [make_text("a", abstract), make_text("b", sentence)]})
    words = abstract.split()
    texts = {
        "pubmed:1": [" ".join(words[50:74])],
        "pubmed:2": [" ".join(words[50:75])],
        "pubmed:3": [f"As is known, {sentence}."],
        "pubmed:4": [" ".join(sentence.split()[1:])],
    }
    for minimum, ids in ((13, [2, 3]), (12, [1, 2, 3]), (1, [1, 2, 3, 4]), (14, [3])):
        output = check_texts(tmp_path, benchmark, texts, min_shared_ngrams=minimum)
        assert read_excluded_ids(tmp_path / "out") == [f"pubmed:{number}" for number in ids]
        assert f"{len(ids)} documents to exclude for test" in output
        assert f"{4 - len(ids)} share fewer and are kept" in output


def test_document_in_two_corpora_is_counted_once(tmp_path: Path) -> None:
    words = random_prose("twice", 60)
    benchmark = make_dataset("set", {"test": [make_text("a", words)]})
    first_texts = {"pubmed:1": [" ".join(words.split()[:30])]}
    second_texts = {"pubmed:1": [" ".join(words.split()[10:40])]}
    corpora = [write_corpus(tmp_path / "one", first_texts), write_corpus(tmp_path / "two", second_texts)]
    run_contamination_check(
        write_benchmark_dir(tmp_path / "data", benchmark), corpora, tmp_path / "out", benchmark
    )
    [row] = read_tsv(tmp_path / "out/documents.tsv")
    assert row["shared 13-grams"] == str(40 - 12)


def test_notes_are_printed_and_escaped_in_the_page(tmp_path: Path) -> None:
    layout = FileLayout(
        {"all": "set", "split": "split.txt"},
        {"test": ("all",)},
        lambda files: {"test": [make_text("a\tb\nc", random_prose("a", 20), document="<b>\t1")]},
        {"split": MissingSplitPolicy("the <split> is ours", ("test",))},
        note="no dev",
    )
    benchmark = Benchmark("set", "Set", (layout,), {}, count_records, "us", "none", "here")
    absent = make_dataset("absent", {"test": []})
    texts = {"pubmed:1": [random_prose("a", 20)]}
    out = tmp_path / "out"
    folder = write_corpus(tmp_path / "<i>&", texts)
    output = run_contamination_check(
        write_benchmark_dir(tmp_path / "data", benchmark), [folder], out, benchmark, absent
    )
    for line in ("set: no dev", "set: the <split> is ours", "missing benchmarks, not checked: absent"):
        assert line in output.splitlines()
    assert [row["id"] for row in read_tsv(out / "examples.tsv")] == ["a b c"]
    page = (out / "report.html").read_text()
    assert "the &lt;split&gt; is ours" in page
    assert "&lt;i&gt;&amp;" in page
    assert "<split>" not in page
    assert "<i>" not in page


WORDS = st.lists(st.sampled_from(["a", "b", "Ab", "a-b", "\u03b2", "@GENE$"]), max_size=40).map(" ".join)


@settings(max_examples=examples(30))
@given(
    st.lists(st.tuples(WORDS, st.none() | WORDS), min_size=1, max_size=4),
    st.lists(WORDS, max_size=5),
    st.data(),
)
def test_counts_equal_brute_force(
    pairs: list[tuple[str, str | None]], texts: list[str], data: st.DataObject
) -> None:
    """Draw texts from a few words, so that many share n-grams, in batches and blocks of any size."""
    examples = [make_text(str(number), *texts_of_pair) for number, texts_of_pair in enumerate(pairs)]
    benchmark = make_dataset("set", {"test": examples})
    grams = [
        [
            gram
            for text in texts_of_pair
            if text
            for piece in text.split("@GENE$")
            for gram in ngrams_by_brute_force(piece)
        ]
        for texts_of_pair in pairs
    ]
    corpus_ngrams = {
        f"pubmed:{number}": set(ngrams_by_brute_force(words.replace("@GENE$", "gene")))
        for number, words in enumerate(texts, 1)
    }
    all_corpus_ngrams = set[tuple[str, ...]]().union(*corpus_ngrams.values())
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(corpus_scan, "_BLOCK_BYTES", data.draw(st.sampled_from([1, 40, 1 << 20])))
        folder, out = Path(name), Path(name) / "out"
        corpus_texts = {
            id_: [words.replace("@GENE$", "gene")] for id_, words in zip(corpus_ngrams, texts, strict=True)
        }
        abstracts = write_corpus(folder / "pubmed", corpus_texts, batch_size=data.draw(st.integers(1, 3)))
        run_contamination_check(
            write_benchmark_dir(folder / "data", benchmark), [abstracts], out, benchmark, min_shared_ngrams=2
        )
        ngram_counts = {
            row["id"]: (int(row["13-grams"]), int(row["in corpus"])) for row in read_tsv(out / "examples.tsv")
        }
        shared = {row["id"]: int(row["shared 13-grams"]) for row in read_tsv(out / "documents.tsv")}
        closest = {
            row["id"]: (row["closest document"], int(row["shared 13-grams"]))
            for row in read_tsv(out / "examples.tsv")
        }
    covered = {
        str(number): (len(example_ngrams), sum(1 for gram in example_ngrams if gram in all_corpus_ngrams))
        for number, example_ngrams in enumerate(grams)
    }
    assert ngram_counts == {
        id_: (ngram_count, shared_count)
        for id_, (ngram_count, shared_count) in covered.items()
        if shared_count
    }
    all_benchmark_ngrams = {gram for example_ngrams in grams for gram in example_ngrams}
    assert shared == {
        id_: len(document_ngrams & all_benchmark_ngrams)
        for id_, document_ngrams in corpus_ngrams.items()
        if document_ngrams & all_benchmark_ngrams
    }
    for id_, (document, shared_count) in closest.items():
        candidates = [
            (-len(document_ngrams & set(grams[int(id_)])), name)
            for name, document_ngrams in corpus_ngrams.items()
        ]
        assert (-shared_count, document) == min(candidates)
