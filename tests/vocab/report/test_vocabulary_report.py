"""The vocabulary report: its numbers, reproducible bytes, and the escaping of its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from tokenizers import Tokenizer
from tokenizers.processors import BertProcessing

from bioshards.corpus.ui.html_page import format_percent, spell_out_invisible
from bioshards.vocab.report.vocabulary_report import (
    PROBE_WORDS,
    build_report,
    load_benchmark_texts,
    render_page,
)
from tests.support.paths import REPOSITORY
from tests.support.vocab.tiny_tokenizers import SPECIAL_TOKENS, UNCASED, make_unigram, make_wordpiece

LETTERS = [form + letter for letter in "abcdefghijklmnopqrstuvwxyzADNR.,?" for form in ("", "##")]
LEARNT = ["in", "##in", "##ne", "insulin", "insu", "heart", "D", "DN", "DNA", "##ate", "the"]
RANKED = [*SPECIAL_TOKENS, *LETTERS, *(piece for piece in LEARNT if piece not in LETTERS)]
WORDS = {"the": 9, "heart": 4, "insulin": 2, ".": 5, "naïve": 1}
HOSTILE = (
    "<script>alert(1)</script>",
    '"onload="x',
    "'",
    "&amp;",
    "\u202egnp",
    "\x00",
    "\x1b[0m",
    "\u0301",
    "]]>",
    "##</td>",
    "</style>",
    "العربية",
    "\ue000",
    "##",
)


def make_tokenizer() -> Tokenizer:
    return make_wordpiece(*RANKED[len(SPECIAL_TOKENS) :])


def make_other_tokenizer() -> Tokenizer:
    return make_wordpiece("the", "heart", "##s", "na", "##ive", ".", casing=UNCASED)


def build_full_report(benchmarks: Path | None = None) -> dict[str, Any]:
    about = {"documents": 12345, "cased": True, "split": [0.9, 0.1], "corpus": "a & b"}
    held_out = {"the": 3, "heart": 1, "beat": 1}
    pieces = make_unigram("▁the", "▁", "h", "e", "a", "r", "t")
    others = {"Theirs <1>": make_other_tokenizer(), "Pieces": pieces}
    texts_by_name = load_benchmark_texts(str(benchmarks)) if benchmarks else None
    return build_report(make_tokenizer(), WORDS, held_out, others, texts_by_name, about)


def parse_html(html: str) -> Any:
    return lxml.html.document_fromstring(html)


def select(tree: Any, path: str) -> list[Any]:
    return list(tree.xpath(path))


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    texts_by_name = {
        "biosses": [["the  heart.", "insulin"], ["DNA, the xx?", "the"]],
        "ebm-pico": [["the"]],
        "mine": [["the heart\u3000of\u00adit ."]],
    }
    write_texts(tmp_path, texts_by_name)
    return tmp_path


def write_texts(folder: Path, texts_by_name: dict[str, list[list[str]]]) -> None:
    for name, inputs in texts_by_name.items():
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(texts)}\n" for texts in inputs))


def test_metrics_are_of_the_validation_words() -> None:
    report = build_full_report()
    assert report["words"] == {
        "kind": "bert",
        "held_out": True,
        "occurrences": 5,
        "distinct": 3,
        "not_in_training": 0.2,
    }
    assert [entry["name"] for entry in report["vocabularies"]] == ["this vocabulary", "Theirs <1>", "Pieces"]
    # the, heart, b ##e ##a ##t
    assert report["vocabularies"][0]["on_words"]["fertility"] == round((3 + 1 + 4) / 5, 9)


@pytest.mark.parametrize("held_out", [None, {}])
def test_without_validation_words_metrics_are_of_the_training_words(
    held_out: dict[str, int] | None,
) -> None:
    assert render_page(build_report(make_tokenizer(), {}, held_out, {}, None, {})), "even without words"
    report = build_report(make_tokenizer(), WORDS, held_out, {}, None, {})
    assert report["words"] == {
        "kind": "bert",
        "held_out": False,
        "occurrences": 21,
        "distinct": 5,
        "not_in_training": 0.0,
    }
    assert report["evaluation"] is None
    assert "none were held out" in render_page(report)


def test_page_defines_a_word_for_each_pretokenizer() -> None:
    by_kind = {
        kind: render_page(build_report(make_tokenizer(), WORDS, None, {}, None, {}, pretokenizer=kind))
        for kind in ("bert", "white-space")
    }
    assert "A word is what BERT" in by_kind["bert"]
    assert "A word is what stands between white space" in by_kind["white-space"]
    assert "A word is what BERT" not in by_kind["white-space"]


def test_probe_words_are_split_by_each_vocabulary() -> None:
    assert len(PROBE_WORDS) == 17
    probes = {entry["word"]: entry["pieces"] for entry in build_full_report()["probes"]}
    assert list(probes) == list(PROBE_WORDS)
    assert probes["insulin"][0] == ["insulin"]
    assert probes["RecA"][0] == ["R", "##e", "##c", "##A"]
    assert probes["insulin"][1] == ["[UNK]"]


def test_frequent_words_that_a_vocabulary_cuts_stand_beside_the_pieces_of_each() -> None:
    words = {"the": 9, "hearts": 4, "tea": 3, "naive": 3, "3.14": 50, "DNA": 2, "rare": 1}
    report = build_report(make_tokenizer(), words, None, {"Theirs": make_other_tokenizer()}, None, {})
    assert [vocabulary["on_words"]["cut"] for vocabulary in report["vocabularies"]] == [
        ["hearts", "naive", "tea", "rare"],
        ["hearts", "naive"],
    ]
    assert report["cut_words"][0] == {
        "word": "hearts",
        "occurrences": 4,
        "pieces": [["heart", "##s"], ["heart", "##s"]],
    }
    tree = parse_html(render_page(report))
    rows = select(tree, "//table[.//th='Frequent word']/tbody/tr")
    assert [row.findtext("th") for row in rows] == ["hearts", "naive", "tea", "rare"]
    assert [box.text_content() for box in rows[2].iter("bdi")] == ["t", "##e", "##a", "[UNK]"]
    (cell,) = select(tree, "//tr[th='naloxone']/td[last()]")
    assert [box.text_content() for box in cell.iter("bdi")] == ["na", "##lo", "##xon", "##e"]
    (count,) = select(tree, "//tr[th='Whole']/td[last()]")
    assert count.text_content() == "6 of 17"


def test_no_more_than_twenty_cut_words_are_listed() -> None:
    words = {f"{first}{second}": 1 for first in "abcdef" for second in "ghijk"}
    report = build_report(make_tokenizer(), words, None, {}, None, {})
    assert [each["word"] for each in report["cut_words"]] == sorted(words)[:20]


def test_benchmark_lengths_include_special_tokens(benchmarks: Path) -> None:
    evaluation = build_full_report(benchmarks)["evaluation"]
    assert [entry["name"] for entry in evaluation["sets"]] == ["biosses", "ebm-pico", "mine"]
    tokenizer = make_tokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    texts_by_name = load_benchmark_texts(str(benchmarks))
    for entry in evaluation["sets"]:
        lengths = [
            len(tokenizer.encode(first, second[0] if second else None))
            for first, *second in texts_by_name[entry["name"]]
        ]
        assert entry["lengths"][0] == round(sum(lengths) / len(lengths), 9)
        assert entry["inputs"] == len(lengths)
    assert evaluation["sets"][1]["published"] == {"bert": 30.7, "pubmedbert": 25.1}
    assert evaluation["sets"][2]["published"] is None


def test_relative_lengths_and_shares_of_too_long_inputs(tmp_path: Path) -> None:
    inputs = [
        ["the the", "the"],
        ["the " * 505, "b a a a"],
        ["the " * 505, "b a a a a"],
        ["naa", "na"],
    ]
    write_texts(tmp_path, {"biosses": inputs})
    tokenizer = make_wordpiece("the", "##e", "th", "b", "##a", "n", "na", casing=UNCASED)
    small_tokenizer = make_wordpiece("t", "##h", "##e", "b", "a", "n", "##a")
    report = build_report(
        tokenizer, WORDS, None, {"Small": small_tokenizer}, load_benchmark_texts(str(tmp_path)), {}
    )
    (entry,) = report["evaluation"]["sets"]
    # With [CLS] and two [SEP]: theirs has 6, 512, 513 and 6 pieces, the small one 12, 1522, 1523 and 8.
    assert entry["lengths"] == [(6 + 512 + 513 + 6) / 4, (12 + 1522 + 1523 + 8) / 4]
    assert entry["too_long"] == [0.25, 0.5]
    (row,) = select(parse_html(render_page(report)), "//tr[th='biosses']")
    cells = [cell.text_content() for cell in row.iter("td")]
    assert cells[1:] == ["25.00\u202f%", "259.2", "766.2 (2.96)", "80.7 (1.31)", "61.6"]


def test_unknown_words_are_shown_and_do_not_count_as_whole() -> None:
    report = build_report(make_unigram("▁", "▁DNA"), WORDS, None, {"Theirs": make_wordpiece("DNA")}, None, {})
    assert report["vocabularies"][0]["unreachable"] is None
    assert "not looked for" in render_page(report)
    assert [entry["unknown"] for entry in report["vocabularies"]] == ["<unk>", "[UNK]"]
    probes = {entry["word"]: entry["pieces"] for entry in report["probes"]}
    assert probes["DNA"] == [["▁DNA"], ["DNA"]]
    assert probes["RecA"] == [["▁", "<unk>"], ["[UNK]"]]
    bare = build_report(make_unigram("DNA"), WORDS, None, {}, None, {})
    bare["probes"] = [{"word": "x", "pieces": [["<unk>"]]}, {"word": "y", "pieces": [["y"]]}]
    assert "<b>1</b> of 2" in render_page(bare)


def test_report_bytes_are_independent_of_the_hash_seed(benchmarks: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; from tests.vocab.report.test_vocabulary_report import "
        "build_full_report, render_page;"
        "report = build_full_report(Path(sys.argv[1])); print(json.dumps(report), render_page(report))"
    )
    results = {
        subprocess.run(
            [sys.executable, "-c", code, str(benchmarks)],
            cwd=REPOSITORY,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(results) == 1


# The page


def test_the_page_shows_what_was_measured(benchmarks: Path) -> None:
    tree = parse_html(render_page(build_full_report(benchmarks)))
    text = " ".join(tree.text_content().split())
    headings = [heading.text_content() for heading in tree.iter("h2")]
    assert headings == [
        "At a glance",
        "Biomedical words, piece by piece",
        "Frequent words cut in pieces",
        "Length of the evaluation sets’ inputs",
        "Alphabet",
        "Pieces that no text can yield",
    ]
    assert tree.findtext(".//title") == "Vocabulary report"
    for expected in ("12,345", "a & b", "held out", "1.6000"):
        assert expected in text, expected
    (cell,) = select(tree, "//tr[th='RecA']/td[1]")
    assert [box.text_content() for box in cell.iter("bdi")] == ["R", "##e", "##c", "##A"]


def test_hostile_pieces_and_names_are_escaped() -> None:
    tokenizer = make_wordpiece(*HOSTILE, "a")
    about: dict[str, Any] = {HOSTILE[0]: HOSTILE[0], HOSTILE[1]: HOSTILE[2], "x": {"y": HOSTILE[0]}}
    words = dict.fromkeys(HOSTILE, 1)
    report = build_report(tokenizer, words, None, {HOSTILE[10]: make_other_tokenizer()}, None, about)
    report["probes"] = [{"word": piece, "pieces": [[piece], [piece]]} for piece in HOSTILE]
    html = render_page(report)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ue000]", html)
    tree = parse_html(html)
    assert not list(tree.iter("script", "link", "img", "iframe", "object", "a"))
    assert len(list(tree.iter("style"))) == 1
    displayed = [row.findtext("th") for row in select(tree, "//table[.//th='Word']/tbody/tr")][:-1]
    assert displayed == [spell_out_invisible(piece, keep=" \n") for piece in HOSTILE]
    boxes = [box.text_content() for box in select(tree, "//table[.//th='Word']/tbody/tr/td[1]//bdi")]
    assert boxes == [spell_out_invisible(piece) for piece in HOSTILE]


def test_nested_build_facts_are_shown_as_text() -> None:
    about = {
        "hold_out": 0.01,
        "inputs": [{"pipeline": "pubmed_to_shards", "documents": 2158}, {"pipeline": "pmc_to_shards"}],
        "tools": {"tokenizers": "0.22.1"},
        "dummies": [],
        "specials": ["@GENE$", "<x>"],
        "alphabet": None,
        "cased": False,
    }
    tree = parse_html(render_page(build_report(make_tokenizer(), WORDS, None, {}, None, about)))
    rows = {row.findtext("th"): "|".join(row.find("td").itertext()) for row in select(tree, "//details//tr")}
    assert rows == {
        "hold out": "0.01",
        "inputs": "pipeline: pubmed_to_shards|documents: 2,158|pipeline: pmc_to_shards",
        "tools": "tokenizers: 0.22.1",
        "dummies": "none",
        "specials": "@GENE$, <x>",
        "alphabet": "none",
        "cased": "no",
    }


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0"),
        (1.0, "100"),
        (0.123456, "12.35"),
        (0.000071, "0.0071"),
        (0.0001, "0.010"),
        (0.999983, "99.9983"),
        (0.9999, "99.990"),
        (1e-9, "0.00000010"),
    ],
)
def test_percentages_near_0_and_100_keep_two_digits(share: float, shown: str) -> None:
    assert format_percent(share) == f"{shown}\u202f%"


def test_invisible_characters_are_spelled_out() -> None:
    assert spell_out_invisible("a\u200bb\u00a0c\x07") == "aU+200BbU+00A0cU+0007"
    assert spell_out_invisible("\u0301e\u0301") == "\u25cc\u0301e\u0301"
    assert spell_out_invisible("\ud800 x") == "U+D800U+0020x"
    assert spell_out_invisible("a b\n", keep=" \n") == "a b\n"
