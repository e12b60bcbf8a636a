"""PICO, JNLPBA, PubTator and Species-800 in their own forms: what is read, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.definition import BenchmarkFiles, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.formats import standoff
from bioshards.evaluate.benchmarks.formats.standoff import PubTatorDocument
from bioshards.evaluate.benchmarks.readers import jnlpba
from bioshards.evaluate.benchmarks.readers.species import tag_document
from bioshards.evaluate.benchmarks.record_types import LabelledText, Mention, Record, TaggedSentence
from tests.support.evaluate.iob_files import assert_rejected, write_benchmark_files


def located(folder: Path, name: str) -> BenchmarkFiles:
    found = locate_benchmark(str(folder), BENCHMARKS[name])
    assert found
    return found


def tags(records: Sequence[Record]) -> list[str]:
    """Sentences as lines of word/tag."""
    return [
        " ".join(f"{word}/{tag}" for word, tag in zip(one.words, one.tags, strict=True))
        for one in records
        if isinstance(one, TaggedSentence)
    ]


# PICO

SPANS = "ebm_nlp_2_00/annotations/aggregated/starting_spans"
NAMES = ("participants", "interventions", "outcomes")


def abstract(pmid: int, part: str, tokens: str, *numbers: str) -> dict[str, str]:
    files = {f"ebm_nlp_2_00/documents/{pmid}.tokens": tokens}
    for name, row in zip(NAMES, numbers, strict=True):
        if row:
            files[f"{SPANS}/{name}/{part}/{pmid}.AGGREGATED.ann"] = row
    return files


PICO = {
    **abstract(
        11,
        "train",
        "ten men took zorbin . all slept well",
        *("1 1 0 0 0 0 0 0", "0 0 0 3 0 0 0 0", "0 0 0 0 0 0 6 6"),
    ),
    **abstract(12, "train", "they did .", "1 0 0", "", "0 1 0"),
    **abstract(13, "test/gold", ". women slept", "0 4 4", "0 7 0", "0 0 1"),
    "scibert/pico/ebmnlp/dev.txt": "-DOCSTART- (12)\n\nthey NN O I-PAR\n\n\n",
}


def test_pico_is_flattened_and_ends_sentences_at_full_stops(tmp_path: Path) -> None:
    found = located(write_benchmark_files(tmp_path, PICO), "ebm-pico")
    assert found.splits == ("train", "dev", "test")
    assert not found.notes
    parts = load_records(found)
    assert tags(parts["train"]) == [
        "ten/I-PAR men/I-PAR took/O zorbin/I-INT ./O",
        "all/O slept/I-OUT well/I-OUT",
    ]
    assert tags(parts["dev"]) == ["they/I-PAR did/I-OUT ./O"]
    assert tags(parts["test"]) == ["./O", "women/I-INT slept/I-OUT"]
    assert [(one.id, one.document_id) for one in parts["test"] if isinstance(one, TaggedSentence)] == [
        ("13.0", "13"),
        ("13.1", "13"),
    ]


def test_pico_without_the_list_is_split_otherwise_and_says_so(tmp_path: Path) -> None:
    files = {
        name: text
        for n in range(10)
        for name, text in abstract(100 + n, "train", f"t{n}", "0", "1", "0").items()
    }
    gold = abstract(5, "test/gold", "g", "1", "0", "0")
    found = located(write_benchmark_files(tmp_path, {**files, **gold}), "ebm-pico")
    parts = load_records(found)
    assert tags(parts["dev"]) == ["t4/I-INT", "t9/I-INT"]
    assert len(parts["train"]) == 8
    assert found.own_splits == {"train", "dev"}
    assert "every fifth" in found.notes[0]


def test_pico_of_the_gold_is_not_in_train(tmp_path: Path) -> None:
    files = {**PICO, **abstract(13, "train", ". women slept", "0 0 0", "0 0 0", "0 0 0")}
    assert len(load_records(located(write_benchmark_files(tmp_path, files), "ebm-pico"))["train"]) == 2


OUTCOMES = f"{SPANS}/outcomes/train"
PICO_WRONG: dict[str, tuple[str, str | bytes, int | None, str]] = {
    "too few numbers": (f"{OUTCOMES}/12.AGGREGATED.ann", "0 1", None, "2 numbers for 3 tokens"),
    "no numbers": (f"{OUTCOMES}/12.AGGREGATED.ann", "0,1 0 0", None, "not '0,1'"),
    "no tokens": (f"{OUTCOMES}/14.AGGREGATED.ann", "0", None, "no 14.tokens"),
    "no PMID": (f"{OUTCOMES}/x.ann", "0", None, "begin with a PMID"),
    "a list of nothing": ("scibert/pico/ebmnlp/dev.txt", "they NN O O\n", None, "names no abstract"),
    "broken tokens": ("ebm_nlp_2_00/documents/12.tokens", b"they did \xff", 1, "not UTF-8"),
}


@pytest.mark.parametrize(("name", "content", "line", "why"), PICO_WRONG.values(), ids=PICO_WRONG)
def test_pico_that_is_wrong_is_refused(
    tmp_path: Path, name: str, content: str | bytes, line: int | None, why: str
) -> None:
    found = located(write_benchmark_files(tmp_path, {**PICO, name: content}), "ebm-pico")
    assert_rejected(lambda: load_records(found), tmp_path / name, line, why)


# JNLPBA

LONG = "the zorbin receptor of mice binds a protein of the liver".replace(" ", "\tO\n") + "\tO"
TRAIN = (
    f"-DOCSTART-\tO\t901\n\n{LONG}\n\nanother\tB-DNA\n\n-DOCSTART-\tO\t902\n\nits\tB-protein\ngene\tB-DNA\n\n"
)


def test_the_rebuilt_train_loses_the_abstracts_of_dev(tmp_path: Path) -> None:
    folder = "x/JNLPBA/"
    files = {
        f"{folder}train_rebuilt_from_standoff.tsv": TRAIN,
        f"{folder}devel.tsv": f"-DOCSTART-\tO\n\n{LONG}\n\nits\tB-protein\ngene\tB-DNA\n",
        f"{folder}test.tsv": "a\tB-RNA\n",
    }
    found = located(write_benchmark_files(tmp_path, files), "jnlpba")
    parts = load_records(found)
    assert tags(parts["train"]) == ["its/B-Entity gene/B-Entity"], (
        "a short sentence may stand in two abstracts"
    )
    assert len(parts["dev"]) == 2
    assert "rebuilt" in found.notes[0]
    (tmp_path / folder / "train.tsv").write_text(TRAIN)
    assert not located(tmp_path, "jnlpba").notes, "the published one is taken where it is there"


def test_the_shared_task_s_file_is_cut_after_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jnlpba, "TRAIN_LINES", 4)
    task = "###MEDLINE:95369245\n\na\tB-DNA\n\n###MEDLINE:95333264\n\nb\tB-RNA\n\n"
    files = {"Genia4ERtask2.iob2": task, "Genia4EReval2.iob2": "###MEDLINE:7\n\nc\tO\n"}
    parts = load_records(located(write_benchmark_files(tmp_path, files), "jnlpba"))
    assert [
        (one.id, one.document_id)
        for part in parts.values()
        for one in part
        if isinstance(one, TaggedSentence)
    ] == [
        ("3", "95369245"),
        ("7", "95333264"),
        ("3", "7"),
    ]


def test_the_cut_is_blurb_s() -> None:
    assert jnlpba.TRAIN_LINES == 465497


# PubTator

DOCUMENT = """77|t|Zorbin and aches|.
77|a|It cured β-rash or heart rash.
77\t0\t6\tZorbin\tChemical\tD1
77\t26\t46\tβ-rash or heart rash\tDisease\tD2|D3\tβ-rash|heart rash
77\tCID\tD1\tD2
"""


def pubtator(tmp_path: Path, content: str | bytes) -> list[PubTatorDocument]:
    return standoff.read_pubtator(str(write_benchmark_files(tmp_path, {"a.txt": content}) / "a.txt"))


def test_a_document_of_pubtator(tmp_path: Path) -> None:
    text = "Zorbin and aches|. It cured β-rash or heart rash."
    mentions = (Mention(0, 6, "CHEMICAL"), Mention(28, 48, "DISEASE"))
    assert text[28:48] == "β-rash or heart rash"
    content = DOCUMENT.replace("26\t46", "28\t48")
    assert pubtator(tmp_path, content) == [PubTatorDocument("77", text, mentions)]
    assert pubtator(tmp_path, "\n" + content + "\n\n" + content.replace("77", "78")) == [
        PubTatorDocument("77", text, mentions),
        PubTatorDocument("78", text, mentions),
    ]
    assert pubtator(tmp_path, "") == []


def test_texts_of_pubtator_hold_their_mentions(tmp_path: Path) -> None:
    content = DOCUMENT.replace("26\t46", "28\t48")
    write_benchmark_files(
        tmp_path, {f"CDR_{part}Set.PubTator.txt": content for part in ("Training", "Development", "Test")}
    )
    [text] = load_records(located(tmp_path, "bc5cdr-pubtator"))["dev"]
    assert isinstance(text, LabelledText)
    assert text.document_id == "77"
    assert text.label == frozenset({"0-6 CHEMICAL", "28-48 DISEASE"})


PUBTATOR_WRONG = {
    "no title": ("77|a|It.\n", 1, "begin with"),
    "no abstract": ("77|t|A title.\n", 1, "begin with"),
    "two titles": ("77|t|A.\n77|t|B.\n", 1, "begin with"),
    "another's abstract": ("77|t|A.\n78|a|B.\n", 2, "the abstract of 78"),
    "another's mention": ("77|t|A.\n77|a|B.\n78\t0\t1\tA\tX\tD\n", 3, "among the lines of 77"),
    "other offsets": ("77|t|A.\n77|a|B.\n77\t0\t1\tB\tX\tD\n", 3, "is 'A', not 'B'"),
    "offsets beyond": ("77|t|A.\n77|a|B.\n77\t90\t91\tB\tX\tD\n", 3, "is '', not 'B'"),
    "no offsets": ("77|t|A.\n77|a|B.\n77\tx\t1\tA\tX\tD\n", 3, "offsets should be numbers"),
    "nothing": ("77|t|A.\n77|a|B.\n77\t0\t0\t\tX\tD\n", 3, "is '', not ''"),
    "two columns": ("\n\n77|t|A.\n77|a|B.\n77\tA\n", 5, "a mention or relation"),
}


@pytest.mark.parametrize(("content", "line", "why"), PUBTATOR_WRONG.values(), ids=PUBTATOR_WRONG)
def test_pubtator_that_is_wrong_is_refused(tmp_path: Path, content: str, line: int, why: str) -> None:
    assert_rejected(lambda: pubtator(tmp_path, content), tmp_path / "a.txt", line, why)


# Species-800

SPECIES = {
    "S800.tsv": "1\tz001:501\t5\t9\tmouse\n2\tz001:501\t23\t30\tB. zorba\n",
    "pubmedid.tsv": "z001\tPMID:501\tx\nz002\t502\n",
    "abstracts/z001.txt": "A β mouse.\nIt ate two B. zorba cells.\n",
    "abstracts/z002.txt": "Nothing lives here.",
    "s800/split/train.txt": "501\n",
    "s800/split/devel.txt": "502\n",
    "s800/split/test.txt": "501\n\n",
}


def test_species_are_tagged_in_sentences_of_ours(tmp_path: Path) -> None:
    found = located(write_benchmark_files(tmp_path, SPECIES), "s800")
    parts = load_records(found)
    assert tags(parts["train"]) == [
        "A/O β/O mouse/B-Species ./O",
        "It/O ate/O two/O B/B-Species ./I-Species zorba/I-Species cells/O ./O",
    ]
    assert tags(parts["dev"]) == ["Nothing/O lives/O here/O ./O"]
    assert "bioshards' own" in found.notes[0]
    assert not found.own_splits


def test_species_without_the_lists(tmp_path: Path) -> None:
    files = {f"abstracts/z{n}.txt": f"Text {n}." for n in range(20)}
    names = "".join(f"z{n}\tPMID:{900 + n}\n" for n in range(20))
    found = located(write_benchmark_files(tmp_path, {**files, "pubmedid.tsv": names, "S800.tsv": ""}), "s800")
    assert {part: len(records) for part, records in load_records(found).items()} == {
        "train": 14,
        "dev": 2,
        "test": 4,
    }
    assert found.own_splits == {"train", "dev", "test"}
    assert len(found.notes) == 2


SPECIES_WRONG = {
    "a mention's text": ("S800.tsv", "1\tz001:501\t5\t9\tmouth\n", 1, "not 'mouth'"),
    "columns": ("S800.tsv", "1\tz001:501\t5\n", 1, "a mention in one of the texts"),
    "an unknown text": ("S800.tsv", "1\tz9:501\t5\t9\tmouse\n", 1, "a mention in one of the texts"),
    "a text that is not there": ("pubmedid.tsv", "z001\t501\nz7\t5\n", 2, "name and PMID"),
    "no PMID": ("pubmedid.tsv", "z001\tPMC501\n", 1, "name and PMID"),
    "a list": ("s800/split/devel.txt", "502\n503\n", 2, "names '503'"),
}


@pytest.mark.parametrize(("name", "content", "line", "why"), SPECIES_WRONG.values(), ids=SPECIES_WRONG)
def test_species_that_are_wrong_are_refused(
    tmp_path: Path, name: str, content: str, line: int, why: str
) -> None:
    found = located(write_benchmark_files(tmp_path, {**SPECIES, name: content}), "s800")
    assert_rejected(lambda: load_records(found), tmp_path / name, line, why)


def test_bare_tags_of_species_get_their_type(tmp_path: Path) -> None:
    write_benchmark_files(
        tmp_path, {f"NERdata/s800/{part}.tsv": "a\tB\nmouse\tI\n" for part in ("train", "devel", "test")}
    )
    assert tags(load_records(located(tmp_path, "s800"))["dev"]) == ["a/B-Species mouse/I-Species"]


TEXT = st.text("ab. Z,β\n", max_size=40)


@given(TEXT, st.data())
def test_every_mention_apart_from_the_others_is_tagged_as_it_stands(text: str, data: Any) -> None:
    words = [match.span() for match in re.finditer(r"\w+", text)]
    chosen = data.draw(st.lists(st.sampled_from(words), unique=True) if words else st.just([]))
    mentions = [Mention(start, end, "X") for start, end in chosen]
    found = tag_document(PubTatorDocument("1", text, (*mentions, Mention(0, len(text), "Y"))), "X")
    assert "".join(word for one in found for word in one.words) == "".join(text.split())
    assert sum(tag == "B-X" for one in found for tag in one.tags) == len(mentions)
    assert sum(tag == "I-X" for one in found for tag in one.tags) == 0
    marked = [word for one in found for word, tag in zip(one.words, one.tags, strict=True) if tag != "O"]
    assert marked == [text[start:end] for start, end in sorted(chosen)]


def test_overlaps_and_parts_of_words() -> None:
    mentions = (
        Mention(2, 9, "X"),
        Mention(2, 5, "X"),
        Mention(7, 13, "X"),
        Mention(14, 15, "X"),
        Mention(0, 1, "Y"),
    )
    [found] = tag_document(PubTatorDocument("1", "A bcd efg hij klm.", mentions), "X")
    assert found.words == ("A", "bcd", "efg", "hij", "klm", ".")
    assert found.tags == ("O", "B-X", "I-X", "O", "B-X", "O")


def test_a_set_of_empty_files_is_refused(tmp_path: Path) -> None:
    write_benchmark_files(tmp_path, {f"BC2GM-IOB/{part}.tsv": "" for part in ("train", "devel", "test")})
    assert_rejected(
        lambda: load_records(located(tmp_path, "bc2gm")),
        tmp_path / "BC2GM-IOB/train.tsv",
        None,
        "holds nothing for train",
    )
