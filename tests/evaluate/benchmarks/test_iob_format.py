"""Sentences of a word a line: what is read, what is refused, and the same from other hands."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.formats import iob
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.record_types import TaggedSentence
from tests.support.evaluate.iob_files import CRICHTON_SAMPLE, assert_rejected, write_benchmark_files


def read(tmp_path: Path, content: str | bytes, type: str | None = None) -> list[TaggedSentence]:
    return iob.read_sentences(str(write_benchmark_files(tmp_path, {"a.tsv": content}) / "a.tsv"), type)


def test_words_and_tags_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, CRICHTON_SAMPLE) == [
        TaggedSentence("1", ("Zorbin", "acid", "cured", "."), ("B-Chemical", "I-Chemical", "O", "O")),
        TaggedSentence("6", ("No", "zorbin"), ("O", "B-Chemical")),
    ]


@pytest.mark.parametrize(
    "content",
    [
        CRICHTON_SAMPLE.rstrip("\n"),
        CRICHTON_SAMPLE.replace("\n", "\r\n"),
        "\ufeff" + CRICHTON_SAMPLE,
        CRICHTON_SAMPLE.replace("\t", " "),
        CRICHTON_SAMPLE.replace("\t", " NN O "),
        CRICHTON_SAMPLE.replace("\n\n", "\n\t\n \n\n"),
        "\n\n\n" + CRICHTON_SAMPLE + "\n\n",
    ],
    ids=["no last line end", "CR LF", "mark", "blanks", "four columns", "blank lines", "at the ends"],
)
def test_forms_of_the_same(tmp_path: Path, content: str) -> None:
    found = [(sentence.words, sentence.tags) for sentence in read(tmp_path, content)]
    assert found == [(sentence.words, sentence.tags) for sentence in read(tmp_path, CRICHTON_SAMPLE)]


@pytest.mark.parametrize(
    ("mark", "document"),
    [
        ("-DOCSTART- (10037531)", "10037531"),
        ("-DOCSTART-\tO\t90110496", "90110496"),
        ("-DOCSTART- -X- O O", ""),
        ("-DOCSTART-\tO", ""),
        ("###MEDLINE:95369245", "95369245"),
    ],
)
def test_documents_have_their_numbers(tmp_path: Path, mark: str, document: str) -> None:
    found = read(tmp_path, f"-DOCSTART- (7)\n\na\tO\n{mark}\n\nb\tO\n\nc\tO\n")
    assert [(one.id, one.words, one.document_id) for one in found] == [
        ("3", ("a",), "7"),
        ("6", ("b",), document),
        ("8", ("c",), document),
    ]


def test_separators_of_other_alphabets_are_part_of_a_word(tmp_path: Path) -> None:
    words = ("a\u2028b", "c\u00a0d", "e\x85f", "g\x0ch")
    assert read(tmp_path, "".join(f"{word}\tO\n" for word in words))[0].words == words


def test_an_inside_without_a_beginning_is_kept(tmp_path: Path) -> None:
    assert read(tmp_path, "a\tI-X\nb\tO\nc\tI-X\nd\tI-Y\n")[0].tags == ("I-X", "O", "I-X", "I-Y")


def test_types_are_merged_and_two_mentions_stay_two(tmp_path: Path) -> None:
    content = "a\tB-DNA\nb\tB-protein\nc\tI-protein\nd\tO\ne\tB\n"
    assert read(tmp_path, content, "Entity")[0].tags == ("B-Entity", "B-Entity", "I-Entity", "O", "B-Entity")


def test_nothing_in_a_file_is_no_sentence(tmp_path: Path) -> None:
    assert read(tmp_path, "") == read(tmp_path, "\n\n") == read(tmp_path, "-DOCSTART- O\n") == []


def test_a_line_may_be_long(tmp_path: Path) -> None:
    word = "a" * 3_000_000
    assert read(tmp_path, f"{word}\tO\n")[0].words == (word,)
    assert_rejected(lambda: read(tmp_path, word), tmp_path / "a.tsv", 1, r"not 'a{57}\.\.\.'\.")


WRONG: dict[str, tuple[bytes, int, str]] = {
    "one column": (b"a\tO\nb\n", 2, "a word and its tag"),
    "no word": (b"a\tO\n\tO\n", 2, "a word and its tag"),
    "no tag": (b"a\t\n", 1, "not ''"),
    "another scheme": (b"a\tO\n\nb\tS-X\n", 3, "not 'S-X'"),
    "lower case": (b"a\tb-X\n", 1, "not 'b-X'"),
    "a type without a name": (b"a\tB-\n", 1, "not 'B-'"),
    "an O with a type": (b"a\tO-X\n", 1, "not 'O-X'"),
    "no type": (b"a\tO\nb\tB\n", 2, "does not say of which type"),
    "Latin-1": (b"a\tO\n\xe9\tO\n", 2, "not UTF-8 text: byte 0xe9"),
    "Latin-1 after a mark": (b"\xef\xbb\xbfa\tO\n\xe9\tO\n", 2, "not UTF-8 text: byte 0xe9"),
    "UTF-16": ("a\tO\n".encode("utf-16-le"), 1, "NUL"),
    "a NUL": (b"a\tO\nb\0\tO\n", 2, "NUL"),
}


@pytest.mark.parametrize(("content", "line", "why"), WRONG.values(), ids=WRONG)
def test_what_is_no_such_file_is_refused(tmp_path: Path, content: bytes, line: int, why: str) -> None:
    assert_rejected(lambda: read(tmp_path, content), tmp_path / "a.tsv", line, why)


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    assert_rejected(lambda: iob.read_sentences(str(tmp_path)), tmp_path, None, "cannot be read")
    assert_rejected(lambda: iob.read_sentences(str(tmp_path / "b")), tmp_path / "b", None, "cannot be read")


def test_of_two_files_none_is_taken(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert_rejected(
        lambda: get_only_path({"train": paths}, "train"), tmp_path / "b", None, "only one can be read"
    )


WORD = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6)
TAG = st.sampled_from(["O", "B-Gene", "I-Gene", "B-Cell_line", "I-Cell_line"])
SENTENCES = st.lists(st.lists(st.tuples(WORD, TAG), min_size=1, max_size=8), max_size=8)


@given(SENTENCES, st.sampled_from(["\t", " ", " NN "]), st.sampled_from(["\n", "\r\n"]))
def test_what_is_written_is_read(sentences: list[list[tuple[str, str]]], blank: str, end: str) -> None:
    rows = [row for one in sentences for row in (*(f"{word}{blank}{tag}" for word, tag in one), "")]
    with tempfile.TemporaryDirectory() as folder:
        found = read(Path(folder), end.join(rows))
    assert [list(zip(one.words, one.tags, strict=True)) for one in found] == sentences


def conlleval(tags: list[str]) -> list[tuple[int, int, str]]:
    """Chunks as conlleval.pl has them: its startOfChunk and endOfChunk, of B, I and O alone."""
    found, before, kind, begin = [], "O", "", 0
    for place, tag in enumerate([*tags, "O"]):
        now, _, type = tag.partition("-")
        starts = now == "B" or (now == "I" and (before == "O" or type != kind))
        ends = before != "O" and (now in ("B", "O") or type != kind)
        if ends:
            found.append((begin, place, kind))
        if starts:
            begin = place
        before, kind = now, type
    return found


@given(st.lists(TAG, max_size=12))
def test_iob2_has_the_same_mentions_and_each_begins_with_b(tags: list[str]) -> None:
    [made] = iob.convert_to_iob2([TaggedSentence("1", ("w",) * len(tags), tuple(tags))])
    assert conlleval(list(made.tags)) == conlleval(tags)
    starts = [place for place, _, _ in conlleval(tags)]
    assert [place for place, tag in enumerate(made.tags) if tag[0] == "B"] == starts
    assert [place for place, begin in enumerate(iob.find_mention_starts(tags)) if begin] == starts
