"""The report: its numbers, the same bytes each time, and a page that hostile pieces cannot break."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import lxml.html
import pytest
from tokenizers import Tokenizer
from tokenizers.processors import BertProcessing

from bioshards.corpus.ui.html_page import format_percent, spell_out_invisible
from bioshards.vocab.report import fertility_chart, vocabulary_metrics
from bioshards.vocab.report.benchmark_texts import load_benchmark_texts
from bioshards.vocab.report.vocabulary_page import render_page
from bioshards.vocab.report.vocabulary_report import PROBE_WORDS, build_report
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


def ours() -> Tokenizer:
    return make_wordpiece(*RANKED[len(SPECIAL_TOKENS) :])


def other() -> Tokenizer:
    return make_wordpiece("the", "heart", "##s", "na", "##ive", ".", casing=UNCASED)


def everything(benchmarks: Path | None = None) -> dict[str, Any]:
    about = {"name": "Ours <1>", "documents": 12345, "cased": True, "split": [0.9, 0.1], "corpus": "a & b"}
    held_out = {"the": 3, "heart": 1, "beat": 1}
    others = {"Theirs": other(), "Pieces": make_unigram("▁the", "▁", "h", "e", "a", "r", "t")}
    curve = vocabulary_metrics.measure_curve(RANKED, ours(), held_out or WORDS)
    return build_report(
        ours(),
        WORDS,
        held_out,
        curve,
        others,
        load_benchmark_texts(str(benchmarks)) if benchmarks else None,
        about,
    )


def parsed(html: str) -> Any:
    return lxml.html.document_fromstring(html)


def select(tree: Any, path: str) -> list[Any]:
    return list(tree.xpath(path))


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    files = {
        "biosses/biosses.tsv": "id\tsentence1\tsentence2\n1\tthe  heart.\tinsulin\n2\tDNA, the xx?\tthe\n",
        "hallmarks-of-cancer/text/1.txt": "the heart\u3000of\u00adit .\n",
        "scibert/pico/ebmnlp/test.txt": "the NN O O\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_held_out_words_are_what_is_measured_on() -> None:
    found = everything()
    assert found["words"] == {
        "kind": "bert",
        "held_out": True,
        "occurrences": 5,
        "distinct": 3,
        "not_in_training": 0.2,
    }
    assert [one["name"] for one in found["vocabularies"]] == ["Ours <1>", "Theirs", "Pieces"]
    # the, heart, b ##e ##a ##t
    assert found["vocabularies"][0]["on_words"]["fertility"] == round((3 + 1 + 4) / 5, 9)


@pytest.mark.parametrize("held_out", [None, {}])
def test_without_held_out_words_the_training_is_measured_and_the_report_says_so(
    held_out: dict[str, int] | None,
) -> None:
    found = build_report(ours(), WORDS, held_out, None, {}, None, {})
    assert found["words"] == {
        "kind": "bert",
        "held_out": False,
        "occurrences": 21,
        "distinct": 5,
        "not_in_training": 0.0,
    }
    assert found["name"] == "this vocabulary"
    assert found["curve"] is found["evaluation"] is None
    assert "none were held out" in render_page(found)
    assert "Size against fertility" not in render_page(found)
    assert "Overlap with other vocabularies" not in render_page(found)


def test_the_page_says_what_a_word_is() -> None:
    by_kind = {
        kind: render_page(build_report(ours(), WORDS, None, None, {}, None, {}, pretokenizer=kind))
        for kind in ("bert", "white-space")
    }
    assert "A word is what BERT" in by_kind["bert"]
    assert "A word is what stands between white space" in by_kind["white-space"]
    assert "A word is what BERT" not in by_kind["white-space"]


def test_the_probe_words_are_cut_by_each_vocabulary() -> None:
    assert len(PROBE_WORDS) == 17
    probes = {one["word"]: one["pieces"] for one in everything()["probes"]}
    assert list(probes) == list(PROBE_WORDS)
    assert probes["insulin"][0] == ["insulin"]
    assert probes["RecA"][0] == ["R", "##e", "##c", "##A"]
    assert probes["insulin"][1] == ["[UNK]"]


def test_the_curve_ends_at_the_vocabulary_with_the_others_beside_it() -> None:
    curve = everything()["curve"]
    assert curve["points"][-1]["size"] == len(RANKED)
    assert curve["points"][-1]["fertility"] == curve["vocabularies"][0]["fertility"]
    assert [one["size"] for one in curve["vocabularies"]] == [len(RANKED), 11, 8]


def test_lengths_are_those_of_whole_inputs_with_their_special_tokens(benchmarks: Path) -> None:
    evaluation = everything(benchmarks)["evaluation"]
    assert [one["name"] for one in evaluation["sets"]] == ["EBM PICO", "BIOSSES", "HoC"]
    assert len(evaluation["missing"]) == 11
    tokenizer = ours()
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    for found in load_benchmark_texts(str(benchmarks)):
        for one in evaluation["sets"]:
            if one["name"] == found.benchmark.name:
                whole = [
                    len(tokenizer.encode(first, second[0] if second else None))
                    for first, *second in found.inputs
                ]
                assert one["lengths"][0] == round(sum(whole) / len(whole), 9)
                assert (one["inputs"], one["files"]) == (len(whole), 1)
    assert evaluation["sets"][0]["absent"] == ["scibert/pico/ebmnlp/train.txt", "scibert/pico/ebmnlp/dev.txt"]
    assert evaluation["sets"][0]["published"] == {"bert": 30.7, "pubmedbert": 25.1}


def test_lengths_are_set_in_proportion_to_ours_and_too_long_inputs_are_counted(tmp_path: Path) -> None:
    (tmp_path / "biosses").mkdir()
    lines = [
        "id\tsentence1\tsentence2",
        "1\tthe the\tthe",
        "2\t" + "the " * 505 + "\tb a a a",
        "3\t" + "the " * 505 + "\tb a a a a",
        "4\tnaa\tna",
    ]
    (tmp_path / "biosses" / "biosses.tsv").write_text("\n".join(lines) + "\n")
    theirs = make_wordpiece("the", "##e", "th", "b", "##a", "n", "na", casing=UNCASED)
    small = make_wordpiece("t", "##h", "##e", "b", "a", "n", "##a")
    found = build_report(theirs, WORDS, None, None, {"Small": small}, load_benchmark_texts(str(tmp_path)), {})
    (one,) = found["evaluation"]["sets"]
    # With [CLS] and two [SEP]: theirs has 6, 512, 513 and 6 pieces, the small one 12, 1522, 1523 and 8.
    assert one["lengths"] == [(6 + 512 + 513 + 6) / 4, (12 + 1522 + 1523 + 8) / 4]
    assert one["too_long"] == [0.25, 0.5]
    (row,) = select(parsed(render_page(found)), "//tr[th='BIOSSES']")
    cells = [cell.text_content() for cell in row.iter("td")]
    assert cells[2:] == ["25.00\u202f%", "259.2", "766.2 (2.96)", "80.7 (1.31)", "61.6"]


def test_two_vocabularies_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="named 'this vocabulary'"):
        build_report(ours(), WORDS, None, None, {"this vocabulary": other()}, None, {})


def test_a_unigram_vocabulary_has_a_report_too() -> None:
    found = build_report(
        make_unigram("▁the", "▁", "e"), WORDS, None, None, {"Theirs": other()}, None, {"name": "SP"}
    )
    assert found["vocabularies"][0]["unreachable"] is None
    assert "not looked for" in render_page(found)
    assert [one["unknown"] for one in found["vocabularies"]] == ["<unk>", "[UNK]"]


def test_unknown_words_are_shown_as_such_and_are_not_whole() -> None:
    found = build_report(
        make_unigram("▁", "▁DNA"), WORDS, None, None, {"Theirs": make_wordpiece("DNA")}, None, {}
    )
    probes = {one["word"]: one["pieces"] for one in found["probes"]}
    assert probes["DNA"] == [["▁DNA"], ["DNA"]]
    assert probes["RecA"] == [["▁", "<unk>"], ["[UNK]"]]
    bare = build_report(make_unigram("DNA"), WORDS, None, None, {}, None, {})
    bare["probes"] = [{"word": "x", "pieces": [["<unk>"]]}, {"word": "y", "pieces": [["y"]]}]
    assert "<b>1</b> of 2" in render_page(bare)


def test_no_words_at_all_give_a_report() -> None:
    assert render_page(
        build_report(ours(), {}, None, vocabulary_metrics.measure_curve(RANKED, ours(), {}), {}, None, {})
    )


def test_the_same_input_gives_the_same_bytes_whatever_the_order_of_hashing(benchmarks: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; from tests.vocab.report.test_vocabulary_report import "
        "everything, render_page;"
        "found = everything(Path(sys.argv[1])); print(json.dumps(found), render_page(found))"
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


def test_the_report_is_plain_data(benchmarks: Path) -> None:
    found = everything(benchmarks)
    assert json.loads(json.dumps(found)) == found


# The page


def test_the_page_shows_what_was_measured(benchmarks: Path) -> None:
    tree = parsed(render_page(everything(benchmarks)))
    text = " ".join(tree.text_content().split())
    headings = [heading.text_content() for heading in tree.iter("h2")]
    assert headings == [
        "At a glance",
        "Size against fertility",
        "Biomedical words, piece by piece",
        "Length of the evaluation sets’ inputs",
        "Alphabet",
        "Pieces that no text can yield",
        "Overlap with other vocabularies",
        "Longest pieces",
    ]
    assert tree.findtext(".//title") == "Vocabulary report: Ours <1>"
    for said in (
        "12,345",
        "a & b",
        "held out",
        "1.6000",
        "Of EBM PICO there is no scibert",
        "Sets without files",
    ):
        assert said in text, said
    (cell,) = select(tree, "//tr[th='RecA']/td[1]")
    assert [box.text_content() for box in cell.iter("bdi")] == ["R", "##e", "##c", "##A"]


def test_the_page_loads_nothing_and_runs_nothing(benchmarks: Path) -> None:
    html = render_page(everything(benchmarks))
    tree = parsed(html)
    allowed = {"content", "charset", "name", "http-equiv", "lang", "class", "scope", "role"}
    drawn = {"viewbox", "width", "fill", "stroke", "stroke-width", "points", "transform", "d", "text-anchor"}
    places = {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r"}
    for element in tree.iter():
        assert element.tag not in ("script", "link", "img", "iframe", "object", "image", "use", "a")
        assert {name.lower() for name in element.attrib} <= allowed | drawn | places, element.attrib
    assert "url(" not in html
    assert "@import" not in html
    assert not re.search(r"https?:|//[a-z]", html)


def test_hostile_pieces_and_names_stay_text() -> None:
    tokenizer = make_wordpiece(*HOSTILE, "a")
    about: dict[str, Any] = {"name": HOSTILE[0], HOSTILE[1]: HOSTILE[2], "x": {"y": HOSTILE[0]}}
    words = dict.fromkeys(HOSTILE, 1)
    curve = vocabulary_metrics.measure_curve([*SPECIAL_TOKENS, *HOSTILE, "a"], tokenizer, words)
    found = build_report(tokenizer, words, None, curve, {HOSTILE[10]: other()}, None, about)
    found["probes"] = [{"word": piece, "pieces": [[piece], [piece]]} for piece in HOSTILE]
    html = render_page(found)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ue000]", html)
    tree = parsed(html)
    assert not list(tree.iter("script"))
    assert len(list(tree.iter("style"))) == 1
    shown = [row.findtext("th") for row in select(tree, "//table[.//th='Word']/tbody/tr")][:-1]
    assert shown == [spell_out_invisible(piece, keep=" \n") for piece in HOSTILE]
    boxes = [box.text_content() for box in select(tree, "//table[.//th='Word']/tbody/tr/td[1]//bdi")]
    assert boxes == [spell_out_invisible(piece) for piece in HOSTILE]


def test_the_page_takes_a_name_for_what_has_none_in_the_report() -> None:
    found = build_report(ours(), WORDS, None, None, {"Theirs": other()}, None, {})
    assert parsed(render_page(found)).findtext(".//title") == "Vocabulary report"
    named = parsed(render_page(found, "a<b"))
    assert named.findtext(".//title") == named.findtext(".//h1") == "Vocabulary report: a<b"
    assert "this vocabulary" not in named.text_content()
    assert found["vocabularies"][0]["name"] == "this vocabulary"
    assert render_page(found, "Theirs") == render_page(found)
    theirs = build_report(ours(), WORDS, None, None, {}, None, {"name": "Given"})
    assert render_page(theirs, "v1") == render_page(theirs)


def test_what_the_vocabulary_was_made_of_is_legible() -> None:
    about = {
        "hold_out": 0.01,
        "inputs": [{"pipeline": "pubmed_to_shards", "documents": 2158}, {"pipeline": "pmc_to_shards"}],
        "tools": {"tokenizers": "0.22.1"},
        "dummies": [],
        "specials": ["@GENE$", "<x>"],
        "alphabet": None,
        "curve": False,
    }
    tree = parsed(render_page(build_report(ours(), WORDS, None, None, {}, None, about)))
    rows = {
        row.findtext("th"): "|".join(row.find("td").itertext()) for row in select(tree, "(//table)[1]//tr")
    }
    assert rows == {
        "hold out": "0.01",
        "inputs": "pipeline: pubmed_to_shards|documents: 2,158|pipeline: pmc_to_shards",
        "tools": "tokenizers: 0.22.1",
        "dummies": "none",
        "specials": "@GENE$, <x>",
        "alphabet": "none",
        "curve": "no",
    }


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0"),
        (1.0, "100"),
        (0.5, "50.00"),
        (0.123456, "12.35"),
        (0.000071, "0.0071"),
        (0.0001, "0.010"),
        (0.999983, "99.9983"),
        (0.9999, "99.990"),
        (1e-9, "0.00000010"),
    ],
)
def test_a_share_near_nothing_or_all_keeps_two_digits(share: float, shown: str) -> None:
    assert format_percent(share) == f"{shown}\u202f%"


def test_what_cannot_be_seen_is_spelled_out() -> None:
    assert spell_out_invisible("a\u200bb\u00a0c\x07") == "aU+200BbU+00A0cU+0007"
    assert spell_out_invisible("\u0301e\u0301") == "\u25cc\u0301e\u0301"
    assert spell_out_invisible("\ud800 x") == "U+D800U+0020x"
    assert spell_out_invisible("a b\n", keep=" \n") == "a b\n"


# The chart


def test_the_chart_is_well_formed_and_its_points_lie_within() -> None:
    points = [{"size": 2**n * 100, "fertility": 9 - n} for n in range(8)]
    others = [{"size": 30_000 + n, "fertility": 1.2} for n in range(7)]
    svg = ElementTree.fromstring(
        fertility_chart.render_chart(points, others, "ours", [f"other {n}" for n in range(7)])
    )
    (line,) = svg.iter("polyline")
    at = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert at == sorted(at)
    assert len(at) == 8
    assert all(0 <= x <= 640 and 0 <= y <= 300 for x, y in at)
    steps = {round(right[0] - left[0]) for left, right in itertools.pairwise(at)}
    assert len(steps) == 1  # a doubling is always as wide
    labels = [label.text for label in svg.iter("text")]
    assert {"1,000", "2,000", "4,000", "8,000", "16,000", "32,000"} <= set(labels)
    assert labels[-8:] == ["ours", *(f"other {n}" for n in range(7))]


@pytest.mark.parametrize(("size", "fertility"), [(1, 0.0), (7, 1.0), (30_522, 1.13), (10**6, 99.0)])
def test_a_single_point_makes_a_chart(size: int, fertility: float) -> None:
    svg = ElementTree.fromstring(
        fertility_chart.render_chart([{"size": size, "fertility": fertility}], [], "ours", [])
    )
    assert 3 <= sum(label.attrib["text-anchor"] == "end" for label in svg.iter("text")) <= 12
