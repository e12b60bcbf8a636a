"""The IOB format with a word a line: variants, errors, round trip, and mentions as conlleval has them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.formats import convert_to_iob2, read_sentences
from bioshards.evaluate.benchmarks.records import TaggedSentence
from tests.support.evaluate.benchmark_files import CRICHTON_SAMPLE, assert_rejected, write_benchmark_files
from tests.support.evaluate.metric_oracles import conlleval


def parse_iob(tmp_path: Path, content: str | bytes, type: str | None = None) -> list[TaggedSentence]:
    return read_sentences(str(write_benchmark_files(tmp_path, {"a.tsv": content}) / "a.tsv"), type)


def test_words_and_tags_are_parsed(tmp_path: Path) -> None:
    assert parse_iob(tmp_path, CRICHTON_SAMPLE) == [
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
def test_format_variants_are_equivalent(tmp_path: Path, content: str) -> None:
    sentences = [(sentence.words, sentence.tags) for sentence in parse_iob(tmp_path, content)]
    assert sentences == [(sentence.words, sentence.tags) for sentence in parse_iob(tmp_path, CRICHTON_SAMPLE)]


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
def test_document_marks_give_document_ids(tmp_path: Path, mark: str, document: str) -> None:
    sentences = parse_iob(tmp_path, f"-DOCSTART- (7)\n\na\tO\n{mark}\n\nb\tO\n\nc\tO\n")
    assert [(sentence.id, sentence.words, sentence.document_id) for sentence in sentences] == [
        ("3", ("a",), "7"),
        ("6", ("b",), document),
        ("8", ("c",), document),
    ]


def test_unicode_separators_are_part_of_a_word(tmp_path: Path) -> None:
    words = ("a\u2028b", "c\u00a0d", "e\x85f", "g\x0ch")
    assert parse_iob(tmp_path, "".join(f"{word}\tO\n" for word in words))[0].words == words


def test_inside_tag_without_begin_is_kept(tmp_path: Path) -> None:
    assert parse_iob(tmp_path, "a\tI-X\nb\tO\nc\tI-X\nd\tI-Y\n")[0].tags == ("I-X", "O", "I-X", "I-Y")


def test_merged_types_keep_adjacent_mentions_separate(tmp_path: Path) -> None:
    content = "a\tB-DNA\nb\tB-protein\nc\tI-protein\nd\tO\ne\tB\n"
    tags = parse_iob(tmp_path, content, "Entity")[0].tags
    assert " ".join(tags) == "B-Entity B-Entity I-Entity O B-Entity"


def test_empty_file_has_no_sentences(tmp_path: Path) -> None:
    assert (
        parse_iob(tmp_path, "") == parse_iob(tmp_path, "\n\n") == parse_iob(tmp_path, "-DOCSTART- O\n") == []
    )


def test_long_line_is_read(tmp_path: Path) -> None:
    word = "a" * 3_000_000
    assert parse_iob(tmp_path, f"{word}\tO\n")[0].words == (word,)
    assert_rejected(lambda: parse_iob(tmp_path, word), tmp_path / "a.tsv", 1, r"not 'a{57}\.\.\.'\.")


BAD_IOB: dict[str, tuple[bytes, int, str]] = {
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


@pytest.mark.parametrize(("content", "line", "message"), BAD_IOB.values(), ids=BAD_IOB)
def test_bad_iob_file_is_refused(tmp_path: Path, content: bytes, line: int, message: str) -> None:
    assert_rejected(lambda: parse_iob(tmp_path, content), tmp_path / "a.tsv", line, message)


def test_unreadable_path_is_refused(tmp_path: Path) -> None:
    assert_rejected(lambda: read_sentences(str(tmp_path)), tmp_path, None, "cannot be read")
    assert_rejected(lambda: read_sentences(str(tmp_path / "b")), tmp_path / "b", None, "cannot be read")


WORD = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6)
TAG = st.sampled_from(["O", "B-Gene", "I-Gene", "B-Cell_line", "I-Cell_line"])
SENTENCES = st.lists(st.lists(st.tuples(WORD, TAG), min_size=1, max_size=8), max_size=8)


@given(SENTENCES, st.sampled_from(["\t", " ", " NN "]), st.sampled_from(["\n", "\r\n"]))
def test_written_sentences_round_trip(
    sentences: list[list[tuple[str, str]]], separator: str, line_end: str
) -> None:
    rows = [
        row for sentence in sentences for row in (*(f"{word}{separator}{tag}" for word, tag in sentence), "")
    ]
    with tempfile.TemporaryDirectory() as folder:
        parsed = parse_iob(Path(folder), line_end.join(rows))
    assert [list(zip(sentence.words, sentence.tags, strict=True)) for sentence in parsed] == sentences


@given(st.lists(TAG, max_size=12))
def test_conversion_to_iob2_keeps_the_mentions(tags: list[str]) -> None:
    converted = convert_to_iob2(tags)
    assert conlleval([tags], [converted]) == (sum(tag[0] == "B" for tag in converted),) * 3
