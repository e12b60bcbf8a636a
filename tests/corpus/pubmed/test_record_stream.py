"""Cutting a PubMed XML file into records: nothing lost, nothing added, nothing trusted.

The cutter never builds a tree, so what an XML parser would see for it has to be shown from outside:
wherever the blocks of a file happen to end, however it is packed and encoded, and whatever hides in
comments, processing instructions and CDATA, the records are those that lxml finds in the same bytes.
A file that is damaged or hostile must end in a named error, never in fewer records without one.
"""

from __future__ import annotations

import gzip
import io
import re
import tracemalloc
import zlib

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.pubmed import record_stream
from bioshards.corpus.pubmed.record_stream import iter_records
from bioshards.corpus.xml import decoder

PROFILE = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

Cut = list[tuple[str, bytes]]


class Trickle:
    """A file that gives at most ``step`` bytes a read, as pipes and connections do."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file = io.BytesIO(data)
        self._step = step
        self.reads = 0

    def read(self, size: int, /) -> bytes:
        self.reads += 1
        return self._file.read(min(size, self._step))


def cut(data: bytes) -> Cut:
    return list(iter_records(io.BytesIO(data)))


def refusal(data: bytes, step: int = 1 << 20) -> BadFileError:
    """The error in which reading the file ends."""
    with pytest.raises(BadFileError) as caught:
        list(iter_records(Trickle(data, step)))
    return caught.value


def parsed(data: bytes) -> list[tuple[str, bytes]]:
    """What lxml sees of the same file: name and canonical text of each child of the root."""
    found = []
    depth = 0
    events = etree.iterparse(
        io.BytesIO(data),
        events=("start", "end"),
        remove_comments=True,
        remove_pis=True,
        resolve_entities=False,
        no_network=True,
    )
    for event, element in events:
        depth += 1 if event == "start" else -1
        if event == "end" and depth == 1:
            found.append((element.tag, canonical(element)))
    return found


def canonical(element: etree._Element) -> bytes:
    element.tail = None
    return etree.tostring(element, method="c14n", with_comments=False)


def canonical_cut(found: Cut) -> list[tuple[str, bytes]]:
    return [(name, canonical(etree.fromstring(record))) for name, record in found]


DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
DOCTYPE = (
    b'<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    b'"https://dtd.example.org/out/pubmed_250101.dtd">\n'
)
FIRST = (
    b'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">11</PMID></MedlineCitation>'
    b"</PubmedArticle>"
)
SECOND = "<PubmedArticle><A>naïve 中 x &lt; y</A><B/></PubmedArticle>".encode()
DELETION = b'<DeleteCitation><PMID Version="1">7</PMID></DeleteCitation>'
EXPECTED: Cut = [("PubmedArticle", FIRST), ("PubmedArticle", SECOND), ("DeleteCitation", DELETION)]
PLAIN = (
    DECLARATION
    + DOCTYPE
    + b"<PubmedArticleSet>\n"
    + FIRST
    + b"\n  "
    + SECOND
    + b"\r\n"
    + DELETION
    + b"\n</PubmedArticleSet>\n"
)
MARKED_UP = (
    b'<?xml version="1.0"?><!-- <PubmedArticleSet> --><?note <PubmedArticle> ?>'
    + DOCTYPE
    + b"<!---->\n<PubmedArticleSet><!-- </PubmedArticleSet> -->"
    + b"<PubmedArticle><A>one<!-- </A></PubmedArticle> - ->-> --> two</A>"
    + b"<B><![CDATA[</B></PubmedArticle> & ]] > ]]]]><![CDATA[>]]></B><?go </PubmedArticle>?></PubmedArticle>"
    + b"<!-- between --><?and?>\n"
    + SECOND
    + b"<!-- <?x ?> <![CDATA[ --><?y <!-- ?></PubmedArticleSet><!-- after --><?end?>\n"
)
MARKED_UP_EXPECTED: Cut = [
    (
        "PubmedArticle",
        b"<PubmedArticle><A>one two</A>"
        b"<B>&lt;/B&gt;&lt;/PubmedArticle&gt; &amp; ]] &gt; ]]&gt;</B></PubmedArticle>",
    ),
    ("PubmedArticle", SECOND),
]


# Blocks


def test_the_records_are_the_same_whatever_a_read_gives() -> None:
    for step in range(1, len(PLAIN) + 1):
        assert list(iter_records(Trickle(PLAIN, step))) == EXPECTED, step


def test_the_records_are_the_same_for_every_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(1, len(PLAIN) + 1):
        monkeypatch.setattr(decoder, "BLOCK_BYTES", size)
        assert cut(PLAIN) == EXPECTED, size


def test_comments_instructions_and_cdata_are_the_same_wherever_a_block_ends() -> None:
    for step in range(1, len(MARKED_UP) + 1):
        assert list(iter_records(Trickle(MARKED_UP, step))) == MARKED_UP_EXPECTED, step


def test_what_hides_in_comments_and_cdata_is_what_lxml_makes_of_it() -> None:
    assert canonical_cut(cut(MARKED_UP)) == parsed(MARKED_UP)


@pytest.mark.parametrize("blanks", [b"", b" ", b"\n\t "])
def test_blanks_in_the_roots_end_tag_may_lie_on_any_border(blanks: bytes) -> None:
    data = b"<PubmedArticleSet>" + FIRST + b"</PubmedArticleSet" + blanks + b">\n<!-- x -->\n"
    for step in range(1, len(data) + 1):
        assert list(iter_records(Trickle(data, step))) == [("PubmedArticle", FIRST)], step


def test_records_longer_than_a_block_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "BLOCK_BYTES", 1000)
    long = b"<PubmedArticle>" + b"<A>a word and another</A>" * 4000 + b"</PubmedArticle>"
    data = b"<PubmedArticleSet>" + FIRST + long + FIRST + b"</PubmedArticleSet>"
    assert cut(data) == [("PubmedArticle", FIRST), ("PubmedArticle", long), ("PubmedArticle", FIRST)]


# Packing


def test_a_gzip_file_is_told_by_its_content_and_read_in_any_blocks() -> None:
    packed = gzip.compress(PLAIN, mtime=0)
    for step in range(2, len(packed) + 1):
        assert list(iter_records(Trickle(packed, step))) == EXPECTED, step


def test_a_gzip_file_is_told_when_its_first_read_gives_one_byte() -> None:
    assert list(iter_records(Trickle(gzip.compress(PLAIN, mtime=0), 1))) == EXPECTED


@pytest.mark.parametrize("border", [0, 1, len(DECLARATION), len(PLAIN) // 2, len(PLAIN) - 1, len(PLAIN)])
def test_a_gzip_file_of_several_members_is_read_to_its_end(border: int) -> None:
    packed = gzip.compress(PLAIN[:border], mtime=0) + gzip.compress(PLAIN[border:], mtime=0)
    for step in (2, 3, 7, 64, len(packed)):
        assert list(iter_records(Trickle(packed, step))) == EXPECTED, step


@pytest.mark.parametrize("zeros", [1, 511, 5000])
def test_zero_bytes_after_the_gzip_data_are_padding(zeros: int) -> None:
    packed = gzip.compress(PLAIN, mtime=0) + bytes(zeros)
    for step in (2, 13, len(packed) - zeros, len(packed)):
        assert list(iter_records(Trickle(packed, step))) == EXPECTED, step


def test_zero_bytes_between_gzip_members_mean_the_same_wherever_a_block_ends() -> None:
    packed = gzip.compress(PLAIN[:50], mtime=0) + bytes(20) + gzip.compress(PLAIN[50:], mtime=0)
    outcomes = set()
    for step in (*range(2, 120), len(packed)):
        try:
            outcomes.add(str(list(iter_records(Trickle(packed, step)))))
        except BadFileError as bad:
            outcomes.add(bad.reason)
    assert len(outcomes) == 1


def test_gzip_blocks_smaller_than_what_they_unpack_to_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"<PubmedArticleSet>" + FIRST * 3000 + b"</PubmedArticleSet>"
    monkeypatch.setattr(decoder, "BLOCK_BYTES", 500)
    assert cut(gzip.compress(data, mtime=0)) == [("PubmedArticle", FIRST)] * 3000


# Roots


@pytest.mark.parametrize("root", ["PubmedArticleSet", "MedlineCitationSet", "BookDocumentSet"])
@pytest.mark.parametrize("record", ["PubmedArticle", "MedlineCitation", "PubmedBookArticle", "BookDocument"])
def test_every_set_gives_every_kind_of_record(root: str, record: str) -> None:
    element = f"<{record}><PMID>3</PMID></{record}>".encode()
    data = f"<{root}>".encode() + element * 2 + f"</{root}>".encode()
    assert cut(data) == [(record, element)] * 2


def test_the_element_of_a_book_is_not_mistaken_for_its_set() -> None:
    book = b"<PubmedBookArticle><BookDocument><PMID>3</PMID></BookDocument></PubmedBookArticle>"
    assert cut(b"<BookDocumentSet>" + book + b"</BookDocumentSet>") == [("PubmedBookArticle", book)]
    loose = b"<BookDocument>a</BookDocument>"
    end = b"<DeleteDocument><PMID>4</PMID></DeleteDocument></BookDocumentSet>"
    assert cut(b"<BookDocumentSet>" + loose + end) == [
        ("BookDocument", loose),
        ("DeleteDocument", end.removesuffix(b"</BookDocumentSet>")),
    ]


@pytest.mark.parametrize("name", ["PubmedArticle", "MedlineCitation"])
def test_a_lone_record_is_a_file_of_one(name: str) -> None:
    element = f'<{name} Status="MEDLINE"><PMID>3</PMID></{name}>'.encode()
    data = DECLARATION + element + b"\n<!-- the end -->\n"
    for step in range(1, len(data) + 1):
        assert list(iter_records(Trickle(data, step))) == [(name, element)], step


@pytest.mark.parametrize(
    "empty",
    [
        b"<PubmedArticleSet/>",
        b"<PubmedArticleSet />\n",
        b"<PubmedArticleSet></PubmedArticleSet>",
        b"<PubmedArticleSet>\n<!-- none -->\n</PubmedArticleSet>",
        b'<?xml version="1.0"?><MedlineCitationSet\n  Version = "1"/>',
    ],
)
def test_an_empty_set_has_no_records(empty: bytes) -> None:
    for step in range(1, len(empty) + 1):
        assert list(iter_records(Trickle(empty, step))) == [], step


@pytest.mark.parametrize(
    "attributes",
    [
        b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"',
        b" a = 'x > y' b=\"'\"",
        b'\n\txmlns:mml="http://www.w3.org/1998/Math/MathML"\n',
    ],
)
def test_the_root_may_have_attributes(attributes: bytes) -> None:
    data = b"<PubmedArticleSet" + attributes + b">" + FIRST + b"</PubmedArticleSet>"
    for step in range(1, len(data) + 1):
        assert list(iter_records(Trickle(data, step))) == [("PubmedArticle", FIRST)], step


# Record elements


@pytest.mark.parametrize(
    "tag",
    [
        b'<PubmedArticle Owner="NLM">',
        b"<PubmedArticle  Owner = 'NLM' \n >",
        b'<PubmedArticle note="a > b">',
        b"<PubmedArticle note='he said \"no\"'>",
    ],
)
def test_record_elements_may_have_attributes(tag: bytes) -> None:
    element = tag + b"<A/></PubmedArticle>"
    data = b"<PubmedArticleSet>" + element + FIRST + b"</PubmedArticleSet>"
    for step in range(1, len(data) + 1):
        assert list(iter_records(Trickle(data, step))) == [
            ("PubmedArticle", element),
            ("PubmedArticle", FIRST),
        ], step


def test_an_attribute_that_ends_like_a_tag_does_not_end_the_record() -> None:
    element = b'<PubmedArticle note="br/>"><A/></PubmedArticle>'
    assert cut(b"<PubmedArticleSet>" + element + b"</PubmedArticleSet>") == [("PubmedArticle", element)]


def test_self_closed_records_are_records() -> None:
    data = b'<PubmedArticleSet><PubmedArticle/><PubmedArticle a="b" />' + FIRST + b"</PubmedArticleSet>"
    assert cut(data) == [
        ("PubmedArticle", b"<PubmedArticle/>"),
        ("PubmedArticle", b'<PubmedArticle a="b" />'),
        ("PubmedArticle", FIRST),
    ]


@pytest.mark.parametrize("blanks", [b" ", b"\n\t", b" " * 300])
def test_blanks_in_the_end_tag_of_the_last_record_are_read(blanks: bytes) -> None:
    element = b"<PubmedArticle><A>x</A></PubmedArticle" + blanks + b">"
    data = b"<PubmedArticleSet>" + FIRST + element + b"</PubmedArticleSet>"
    for step in range(1, len(data) + 1, 3):
        assert list(iter_records(Trickle(data, step))) == [
            ("PubmedArticle", FIRST),
            ("PubmedArticle", element),
        ], step


def test_blanks_in_an_end_tag_do_not_swallow_the_record_after() -> None:
    element = b"<PubmedArticle><A>x</A></PubmedArticle >"
    data = b"<PubmedArticleSet>" + element + FIRST + b"</PubmedArticleSet>"
    assert cut(data) == [("PubmedArticle", element), ("PubmedArticle", FIRST)]


def test_an_element_whose_name_begins_alike_does_not_end_the_record() -> None:
    element = b"<PubmedArticle><PubmedArticleNote>x</PubmedArticleNote></PubmedArticle>"
    data = b"<PubmedArticleSet>" + element * 2 + b"</PubmedArticleSet>"
    assert cut(data) == [("PubmedArticle", element)] * 2


def test_an_unknown_element_is_handed_on_by_its_name() -> None:
    data = b"<PubmedArticleSet>" + FIRST + b"<Strange><A/></Strange></PubmedArticleSet>"
    assert cut(data) == [("PubmedArticle", FIRST), ("Strange", b"<Strange><A/></Strange>")]


# Encodings

ACCENTED = "<PubmedArticle><A>Müller, Ångström: caffè à la crème</A></PubmedArticle>"


def document(declaration: str) -> str:
    return f"{declaration}<PubmedArticleSet>{ACCENTED}</PubmedArticleSet>"


ENCODED = {
    "none": document("").encode(),
    "declaration without encoding": document('<?xml version="1.0"?>').encode(),
    "utf-8": document('<?xml version="1.0" encoding="utf-8"?>').encode(),
    "utf-8 single quotes": document("<?xml version='1.0' encoding = 'UTF-8' standalone='yes'?>").encode(),
    "utf-8 mark": b"\xef\xbb\xbf" + document("").encode(),
    "utf-8 mark and declaration": b"\xef\xbb\xbf"
    + document('<?xml version="1.0" encoding="UTF-8"?>').encode(),
    "utf-16": document('<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16"),
    "utf-16 little end": b"\xff\xfe" + document("").encode("utf-16-le"),
    "utf-16 big end": b"\xfe\xff" + document('<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16-be"),
    "iso-8859-1": document('<?xml version="1.0" encoding="ISO-8859-1"?>').encode("iso-8859-1"),
    "windows-1252": document("<?xml version='1.0' encoding='windows-1252'?>").encode("windows-1252"),
}


@pytest.mark.parametrize("how", ENCODED)
def test_records_come_in_utf_8_whatever_the_file_is_in(how: str) -> None:
    data = ENCODED[how]
    assert cut(data) == [("PubmedArticle", ACCENTED.encode())]
    assert cut(gzip.compress(data)) == [("PubmedArticle", ACCENTED.encode())]
    for step in range(100, len(data) + 1):
        assert list(iter_records(Trickle(data, step))) == [("PubmedArticle", ACCENTED.encode())], step


@pytest.mark.parametrize("how", ENCODED)
def test_the_encoding_is_seen_however_little_the_first_read_gives(how: str) -> None:
    data = ENCODED[how]
    for step in range(1, 100):
        assert list(iter_records(Trickle(data, step))) == [("PubmedArticle", ACCENTED.encode())], step


def test_the_encoding_is_seen_when_a_gzip_member_ends_in_the_declaration() -> None:
    data = ENCODED["iso-8859-1"]
    packed = gzip.compress(data[:10]) + gzip.compress(data[10:])
    assert cut(packed) == [("PubmedArticle", ACCENTED.encode())]


def test_characters_that_lie_on_a_block_border_are_whole() -> None:
    text = "<PubmedArticle><A>" + "€𝛼é" * 50 + "</A></PubmedArticle>"
    data = f"<PubmedArticleSet>{text}</PubmedArticleSet>".encode("utf-16")
    for step in range(2, 40):
        assert list(iter_records(Trickle(data, step))) == [("PubmedArticle", text.encode())], step


# Files that are refused

LOL = (
    b'<!DOCTYPE PubmedArticleSet [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    b"<PubmedArticleSet><PubmedArticle>&b;</PubmedArticle></PubmedArticleSet>"
)
EXTERNAL = (
    b'<?xml version="1.0"?>\n<!DOCTYPE x SYSTEM "x.dtd" [\n<!ENTITY e SYSTEM "file:///etc/hostname">\n]>'
    b"<PubmedArticleSet><PubmedArticle>&e;</PubmedArticle></PubmedArticleSet>"
)
PARAMETER = (
    b'<!DOCTYPE PubmedArticleSet PUBLIC "a [" \'b ">\' [ <!ENTITY % p SYSTEM "http://h.example/p"> %p; ]>'
    b"<PubmedArticleSet/>"
)
REFUSED = {
    "no bytes": (b"", "empty-file"),
    "text": (b"Sorry, the server is busy.", "not-xml"),
    "json": (b'{"error": "not found"}', "not-xml"),
    "binary": (bytes(range(256)) * 8, "not-xml"),
    "zero bytes": (bytes(3000), "not-xml"),
    "white space": (b" \n\t " * 20, "not-xml"),
    "only a declaration": (DECLARATION, "not-xml"),
    "only a doctype": (DECLARATION + DOCTYPE, "not-xml"),
    "text before the root": (b"Hello <PubmedArticleSet/>", "not-xml"),
    "an unclosed doctype": (b"<!DOCTYPE PubmedArticleSet <PubmedArticleSet/>", "not-xml"),
    "an old web page": (b"<!doctype html><html><p>Not here", "not-xml"),
    "a web page": (b'<!DOCTYPE html>\n<html lang="en"><body>Not here</body></html>', "wrong-root"),
    "a storage error": (b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', "wrong-root"),
    "full text": (b"<article><front/></article>", "wrong-root"),
    "a name that begins alike": (b"<PubmedArticleSets/>", "wrong-root"),
    "an entity bomb": (LOL, "dtd-declarations"),
    "an external entity": (EXTERNAL, "dtd-declarations"),
    "a parameter entity": (PARAMETER, "dtd-declarations"),
    "empty declarations": (b"<!DOCTYPE x []><PubmedArticleSet/>", "dtd-declarations"),
    "declarations before a lone record": (b"<!DOCTYPE x [ ]><PubmedArticle/>", "dtd-declarations"),
    "no end of the root": (b"<PubmedArticleSet>" + FIRST, "truncated-xml"),
    "no end of a record": (b"<PubmedArticleSet>" + FIRST + b"<PubmedArticle><A>", "truncated-xml"),
    "half an end tag": (b"<PubmedArticleSet>" + FIRST[:-3], "truncated-xml"),
    "half the root's end tag": (b"<PubmedArticleSet>" + FIRST + b"</PubmedArt", "truncated-xml"),
    "the root's end tag without its bracket": (
        b"<PubmedArticleSet>" + FIRST + b"</PubmedArticleSet ",
        "truncated-xml",
    ),
    "an open comment": (b"<PubmedArticleSet>" + FIRST + b"<!-- </PubmedArticleSet>", "truncated-xml"),
    "an open comment after the root": (b"<PubmedArticleSet/><!-- ", "truncated-xml"),
    "an open section": (b"<PubmedArticleSet><PubmedArticle><![CDATA[ ]] >", "truncated-xml"),
    "an open instruction": (b"<PubmedArticleSet><?x >", "truncated-xml"),
    "a lone record without end": (b"<PubmedArticle><A/>", "truncated-xml"),
    "text between records": (
        b"<PubmedArticleSet>" + FIRST + b" stray " + FIRST + b"</PubmedArticleSet>",
        "malformed-xml",
    ),
    "text before the first record": (b"<PubmedArticleSet>stray" + FIRST, "malformed-xml"),
    "text before the root's end": (
        b"<PubmedArticleSet>" + FIRST + b"&amp;</PubmedArticleSet>",
        "malformed-xml",
    ),
    "content after the root": (b"<PubmedArticleSet></PubmedArticleSet>" + FIRST, "malformed-xml"),
    "two files in one": (PLAIN + PLAIN.removeprefix(DECLARATION), "malformed-xml"),
    "text after the root": (b"<PubmedArticleSet></PubmedArticleSet>\n\n.", "malformed-xml"),
    "content after an empty root": (b"<PubmedArticleSet/>" + FIRST, "malformed-xml"),
    "content after a lone record": (FIRST + FIRST, "malformed-xml"),
    "the wrong end tag": (b"<PubmedArticleSet>" + FIRST + b"</MedlineCitationSet>", "malformed-xml"),
    "an end tag too many": (
        b"<PubmedArticleSet>" + FIRST + b"</PubmedArticle></PubmedArticleSet>",
        "malformed-xml",
    ),
    "an end tag after a lone record": (FIRST + b"</PubmedArticle>", "malformed-xml"),
    "an unknown encoding": (b"<?xml version='1.0' encoding='klingon'?><PubmedArticleSet/>", "bad-encoding"),
    "half a utf-16 character": ("<PubmedArticleSet/>".encode("utf-16") + b"\n", "bad-encoding"),
    "half a utf-16 pair": (
        b"\xff\xfe" + "<PubmedArticleSet>".encode("utf-16-le") + b"\x00\xd8<\x00",
        "bad-encoding",
    ),
    "bytes that the encoding has not": (
        b"<?xml version='1.0' encoding='cp1252'?><PubmedArticleSet>\x81</PubmedArticleSet>",
        "bad-encoding",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_that_cannot_be_trusted_is_refused_by_name(what: str) -> None:
    data, reason = REFUSED[what]
    error = refusal(data)
    assert error.reason == reason
    assert error.detail
    assert str(error) == f"{reason}: {error.detail}"


@pytest.mark.parametrize("what", [what for what, (_, reason) in REFUSED.items() if reason != "bad-encoding"])
def test_the_reason_does_not_depend_on_the_blocks(what: str) -> None:
    data, reason = REFUSED[what]
    for step in (1, 2, 3, 5, 7, 11, 17, 31):
        assert refusal(data, step).reason == reason, step


@pytest.mark.parametrize("codec", ["hex", "base64", "rot13", "zlib", "bz2", "uu", "quopri", "undefined"])
def test_an_encoding_that_is_no_character_set_is_refused(codec: str) -> None:
    """Python's codecs know more than text; naming one of those must not crash a run."""
    data = f"<?xml version='1.0' encoding='{codec}'?><PubmedArticleSet></PubmedArticleSet>".encode()
    assert refusal(data).reason == "bad-encoding"


def test_text_far_behind_the_last_record_is_malformed_too() -> None:
    data = b"<PubmedArticleSet>" + FIRST + b" " * 5000 + b"stray</PubmedArticleSet>"
    assert refusal(data).reason == "malformed-xml"


def test_the_records_before_the_damage_come_first() -> None:
    reading = iter_records(io.BytesIO(b"<PubmedArticleSet>" + FIRST + SECOND + b"<PubmedArticle>"))
    assert [next(reading), next(reading)] == EXPECTED[:2]
    with pytest.raises(BadFileError, match="truncated-xml"):
        next(reading)


@pytest.mark.parametrize("step", [2, 64, 1 << 20])
def test_gzip_data_cut_anywhere_is_truncated(step: int) -> None:
    packed = gzip.compress(PLAIN, mtime=0)
    for length in range(2, len(packed)):
        assert refusal(packed[:length], step).reason in (
            ("truncated-gzip",)
            if length >= len(packed) - 8
            else ("truncated-gzip", "truncated-xml", "not-xml")
        ), length


def test_a_cut_second_member_is_truncated() -> None:
    packed = gzip.compress(PLAIN, mtime=0) + gzip.compress(b"\n", mtime=0)[:-3]
    assert refusal(packed).reason == "truncated-gzip"


@pytest.mark.parametrize("step", [2, 64, 1 << 20])
def test_a_wrong_checksum_or_length_is_corrupt(step: int) -> None:
    packed = gzip.compress(PLAIN, mtime=0)
    for back in range(1, 9):
        damaged = bytearray(packed)
        damaged[-back] ^= 0x10
        assert refusal(bytes(damaged), step).reason == "corrupt-gzip", back


def test_a_flipped_byte_in_the_gzip_data_never_passes() -> None:
    packed = gzip.compress(PLAIN, mtime=0)
    for at in range(10, len(packed)):
        damaged = bytearray(packed)
        damaged[at] ^= 0x41
        with pytest.raises(BadFileError):
            cut(bytes(damaged))


def test_damage_in_stored_gzip_data_is_corrupt() -> None:
    packer = zlib.compressobj(level=0, wbits=31)
    packed = bytearray(packer.compress(PLAIN) + packer.flush())
    at = packed.index(b"MEDLINE")
    packed[at] ^= 1
    assert refusal(bytes(packed)).reason == "corrupt-gzip"


def test_junk_after_the_gzip_data_is_corrupt() -> None:
    assert refusal(gzip.compress(PLAIN, mtime=0) + b"junk").reason == "corrupt-gzip"


def test_gzip_of_nothing_is_no_xml() -> None:
    assert refusal(gzip.compress(b"", mtime=0)).reason == "not-xml"


# Bounds


def test_a_file_above_the_bound_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "MAX_FILE_BYTES", len(PLAIN) - 1)
    assert refusal(PLAIN).reason == "too-large"
    assert refusal(gzip.compress(PLAIN)).reason == "too-large"
    monkeypatch.setattr(decoder, "MAX_FILE_BYTES", len(PLAIN))
    assert cut(PLAIN) == EXPECTED
    assert cut(gzip.compress(PLAIN)) == EXPECTED


def test_a_gzip_bomb_is_stopped_without_being_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b"<PubmedArticleSet>" + b" " * 30_000_000)
    monkeypatch.setattr(decoder, "MAX_FILE_BYTES", 1_000_000)
    tracemalloc.start()
    try:
        assert refusal(bomb).reason == "too-large"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_a_record_above_the_bound_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_stream, "MAX_RECORD_BYTES", 1000)
    endless = b"<PubmedArticleSet>" + FIRST + b"<PubmedArticle>" + b"<A>x</A>" * 1000
    for step in (50, 512):
        assert refusal(endless, step).reason == "record-too-long"
    unended = b"<PubmedArticleSet>" + FIRST + b"<PubmedArticle" + b" " * 5000
    assert refusal(unended, 100).reason == "record-too-long"
    fits = b"<PubmedArticle>" + b"<A>x</A>" * 50 + b"</PubmedArticle>"
    data = b"<PubmedArticleSet>" + fits * 20 + b"</PubmedArticleSet>"
    assert list(iter_records(Trickle(data, 100))) == [("PubmedArticle", fits)] * 20


def test_a_comment_without_end_is_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "MAX_MARKUP_BYTES", 1000)
    file = Trickle(b"<PubmedArticleSet><!--" + b"x" * 1_000_000, 100)
    with pytest.raises(BadFileError) as caught:
        list(iter_records(file))
    assert caught.value.reason == "truncated-xml"
    assert file.reads < 50


def test_a_prolog_without_end_is_not_read_for_ever() -> None:
    file = Trickle(b"<!DOCTYPE PubmedArticleSet " + b"x" * 5_000_000, 4096)
    with pytest.raises(BadFileError) as caught:
        list(iter_records(file))
    assert caught.value.reason == "not-xml"
    assert file.reads < 50


# Against lxml, on files made up at random

FAKES = ["</PubmedArticle>", "<PubmedArticle>", "</PubmedArticleSet>", "<!--", "<?x", "</A", "&lt;", "]]"]
LEGAL = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
TEXT = st.text(st.one_of(LEGAL, st.sampled_from(" \t\n<>&'\"/]-!?")), max_size=12) | st.sampled_from(FAKES)
FILLERS = st.lists(
    st.sampled_from(["", " ", "\n", "\t ", "<!---->", "<!-- </PubmedArticle> -->", "<?p <PubmedArticle>?>"])
    | TEXT.map(lambda text: "<!--" + re.sub("-+", "-", text).removesuffix("-") + "-->")
    | TEXT.map(lambda text: "<?pi " + text.replace("?>", "? >").rstrip("?") + "?>"),
    max_size=3,
).map("".join)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def section(text: str) -> str:
    return "<![CDATA[" + text.replace("]]>", "") + "]]>"


WORDS = st.one_of(
    TEXT.map(escaped),
    TEXT.map(lambda text: escaped(text).replace("&gt;", ">").replace("]]>", "]] >").replace("]]", "] ]")),
    TEXT.map(lambda text: section(section(text)[9:-3])),
    FILLERS.filter(lambda text: text.strip() != ""),
    st.sampled_from(["&#945;", "&#x10d;", "&quot;", "&apos;"]),
)
CONTENT: st.SearchStrategy[str] = st.recursive(
    WORDS,
    lambda inner: st.tuples(
        st.sampled_from(["A", "i", "PMID", "ArticleIdList", "PubmedArticleNote"]),
        st.lists(inner, max_size=3).map("".join),
    ).map(lambda pair: f"<{pair[0]}>{pair[1]}</{pair[0]}>" if pair[1] else f"<{pair[0]}/>"),
    max_leaves=6,
)
VALUES = TEXT.map(lambda text: escaped(text).replace("&gt;", ">").replace('"', "&quot;"))
KINDS = st.sampled_from(["PubmedArticle", "MedlineCitation", "PubmedBookArticle", "DeleteCitation"])


@st.composite
def one_record(draw: st.DrawFn, odd: bool) -> str:
    name = draw(KINDS)
    values = draw(st.lists(VALUES, max_size=2))
    if not odd:
        values = [value.replace(">", "&gt;") for value in values]
    blank = st.sampled_from([" ", "\n", " \t"])
    attributes = "".join(f'{draw(blank)}a{at}="{value}"' for at, value in enumerate(values))
    end = draw(st.sampled_from(["", " ", "\n "])) if odd else ""
    if draw(st.integers(0, 9)) == 0:
        return f"<{name}{attributes}{end}/>"
    content = draw(st.lists(CONTENT, max_size=4).map("".join))
    return f"<{name}{attributes}>{content}</{name}{end}>"


@st.composite
def whole_file(draw: st.DrawFn, odd: bool = False) -> bytes:
    root = draw(st.sampled_from(["PubmedArticleSet", "MedlineCitationSet", "BookDocumentSet"]))
    head = draw(st.sampled_from(["", '<?xml version="1.0" encoding="utf-8"?>']))
    doctype = draw(st.sampled_from(["", DOCTYPE.decode()]))
    inside = "".join(
        draw(FILLERS) + record for record in draw(st.lists(one_record(odd), min_size=0, max_size=5))
    )
    before, after, last = (draw(FILLERS) for _ in range(3))
    if not head:
        before = before.lstrip()
    return f"{head}{before}{doctype}<{root}>{inside}{after}</{root}>{last}".encode()


@settings(PROFILE, max_examples=250)
@given(whole_file(), st.integers(1, 120))
def test_any_file_is_cut_into_the_records_that_lxml_finds(data: bytes, step: int) -> None:
    found = list(iter_records(Trickle(data, step)))
    assert canonical_cut(found) == parsed(data)
    assert found == cut(data) == cut(gzip.compress(data, compresslevel=1))


@settings(PROFILE, max_examples=250, phases=[Phase.generate])
@given(whole_file(odd=True), st.integers(1, 120))
def test_tags_may_be_written_in_any_legal_way(data: bytes, step: int) -> None:
    found = list(iter_records(Trickle(data, step)))
    assert canonical_cut(found) == parsed(data)


PIECES = st.lists(
    st.tuples(KINDS, st.lists(TEXT.map(escaped), max_size=3).map("".join)).map(
        lambda pair: f"<{pair[0]}>{pair[1]}</{pair[0]}>".encode()
    ),
    max_size=6,
)


@settings(PROFILE, max_examples=150)
@given(PIECES, st.lists(FILLERS.map(str.encode), min_size=7, max_size=7), st.integers(1, 60))
def test_records_joined_with_anything_between_are_cut_back_byte_by_byte(
    pieces: list[bytes], fillers: list[bytes], step: int
) -> None:
    inside = b"".join(filler + piece for filler, piece in zip(fillers, pieces, strict=False))
    data = b"<PubmedArticleSet>" + inside + fillers[-1] + b"</PubmedArticleSet>"
    assert [record for _, record in iter_records(Trickle(data, step))] == pieces


@settings(PROFILE, max_examples=150)
@given(whole_file(), st.data())
def test_a_file_cut_short_never_passes_for_a_whole_one(data: bytes, choice: st.DataObject) -> None:
    whole = data.rstrip()
    end = re.search(rb"</\w+Set>(?!.*</\w+Set>)", whole, re.DOTALL)
    assert end
    length = choice.draw(st.integers(0, data.rindex(b"Set>") if whole.endswith(b"Set>") else end.start()))
    with pytest.raises(BadFileError):
        cut(data[:length])
