"""Reading a PubMed XML file: its records, of every kind in order, and what a rejected one leaves behind.

The records equal those that lxml finds, for every block size, encoding and packing.  A damaged or hostile
file raises an error with a reason.
"""

from __future__ import annotations

import gc
import gzip
import io
import random
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.pubmed import documents
from bioshards.corpus.pubmed.documents import CitationReader, iter_records
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.source_record import SourceRecord
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.xml import decoder
from bioshards.corpus.xml.element_stream import check_length
from tests.support.corpus.archive_bytes import TrickleReader
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.hypothesis_profiles import examples
from tests.support.memory import measure_peak_memory

Records = list[tuple[str, bytes]]


def list_records(data: bytes) -> Records:
    return list(iter_records(io.BytesIO(data)))


def catch_error(data: bytes, step: int = 1 << 20) -> BadFileError:
    """Return the error that reading the file raises."""
    with pytest.raises(BadFileError) as error_info:
        list(iter_records(TrickleReader(data, step)))
    return error_info.value


def parse_with_lxml(data: bytes) -> list[tuple[str, bytes]]:
    """Return the name and the canonical XML of each child of the root, as lxml parses the file."""
    records = []
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
            records.append((element.tag, canonicalize(element)))
    return records


def canonicalize(element: etree._Element) -> bytes:
    element.tail = None
    return etree.tostring(element, method="c14n", with_comments=False)


def canonicalize_records(records: Records) -> list[tuple[str, bytes]]:
    return [(name, canonicalize(etree.fromstring(record))) for name, record in records]


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
EXPECTED: Records = [("PubmedArticle", FIRST), ("PubmedArticle", SECOND), ("DeleteCitation", DELETION)]
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
MARKED_UP_EXPECTED: Records = [
    (
        "PubmedArticle",
        b"<PubmedArticle><A>one two</A>"
        b"<B>&lt;/B&gt;&lt;/PubmedArticle&gt; &amp; ]] &gt; ]]&gt;</B></PubmedArticle>",
    ),
    ("PubmedArticle", SECOND),
]


def build_set(*records: bytes, root: bytes = b"PubmedArticleSet", attributes: bytes = b"") -> bytes:
    return b"<" + root + attributes + b">" + b"".join(records) + b"</" + root + b">"


def read_in_steps(data: bytes, steps: Iterable[int] | None = None) -> Records:
    """Return the records of a file, which are the same for reads of every size."""
    records = list_records(data)
    for step in steps or range(1, len(data) + 1):
        assert list(iter_records(TrickleReader(data, step))) == records, step
    return records


SMALL_FILES: list[tuple[bytes, Records]] = [
    (PLAIN, EXPECTED),
    (MARKED_UP, MARKED_UP_EXPECTED),
    # Sets without records, and records without a set.
    *((empty, []) for empty in (b"<PubmedArticleSet/>", b"<PubmedArticleSet />\n", build_set())),
    (build_set(b"\n<!-- none -->\n"), []),
    (b'<?xml version="1.0"?><MedlineCitationSet\n  Version = "1"/>', []),
    *(
        (DECLARATION + record + b"\n<!-- the end -->\n", [(name, record)])
        for name, record in (
            ("PubmedArticle", b'<PubmedArticle Status="MEDLINE"><PMID>3</PMID></PubmedArticle>'),
            ("MedlineCitation", b"<MedlineCitation><PMID>3</PMID></MedlineCitation>"),
        )
    ),
    # Attributes and blanks of the root.
    *(
        (build_set(FIRST, attributes=attributes), EXPECTED[:1])
        for attributes in (b" a = 'x > y' b=\"'\"", b'\n\txmlns:mml="http://www.w3.org/1998/Math/MathML"\n')
    ),
    *(
        (build_set(FIRST).removesuffix(b">") + blanks + b">\n<!-- x -->\n", EXPECTED[:1])
        for blanks in (b" ", b"\n\t ")
    ),
    # Attributes and blanks of records, their names, and those of elements within.
    *(
        (build_set(record, FIRST), [("PubmedArticle", record), *EXPECTED[:1]])
        for record in (
            b"<PubmedArticle  Owner = 'NLM' \n ><A/></PubmedArticle>",
            b'<PubmedArticle note="a > b"><A/></PubmedArticle>',
            b"<PubmedArticle note='he said \"no\"'><A/></PubmedArticle>",
            b'<PubmedArticle note="br/>"><A/></PubmedArticle>',
            b"<PubmedArticle/>",
            b'<PubmedArticle a="b" />',
            b"<PubmedArticle><PubmedArticleNote>x</PubmedArticleNote></PubmedArticle>",
            b"<PubmedArticle><A>x</A></PubmedArticle >",
        )
    ),
    *(
        (build_set(FIRST, record), [*EXPECTED[:1], ("PubmedArticle", record)])
        for record in (
            b"<PubmedArticle><A>x</A></PubmedArticle" + blanks + b">"
            for blanks in (b" ", b"\n\t", b" " * 300)
        )
    ),
    (build_set(FIRST, b"<Strange><A/></Strange>"), [*EXPECTED[:1], ("Strange", b"<Strange><A/></Strange>")]),
    # Every root accepts every kind of record.
    *(
        (build_set(record, record, root=root), [(name, record)] * 2)
        for root in (b"PubmedArticleSet", b"MedlineCitationSet", b"BookDocumentSet")
        for name in ("PubmedArticle", "MedlineCitation", "PubmedBookArticle", "BookDocument")
        for record in (f"<{name}><PMID>3</PMID></{name}>".encode(),)
    ),
    (
        build_set(b"<PubmedBookArticle><BookDocument/></PubmedBookArticle>", root=b"BookDocumentSet"),
        [("PubmedBookArticle", b"<PubmedBookArticle><BookDocument/></PubmedBookArticle>")],
    ),
    (
        build_set(b"<DeleteDocument><PMID>4</PMID></DeleteDocument>", root=b"BookDocumentSet"),
        [("DeleteDocument", b"<DeleteDocument><PMID>4</PMID></DeleteDocument>")],
    ),
]


@pytest.mark.parametrize(("data", "records"), SMALL_FILES)
def test_records_do_not_depend_on_the_size_of_reads(data: bytes, records: Records) -> None:
    assert read_in_steps(data) == records


PACKED = gzip.compress(PLAIN, mtime=0)


@pytest.mark.parametrize(
    "packed",
    [
        PACKED,
        *(
            gzip.compress(PLAIN[:boundary], mtime=0) + gzip.compress(PLAIN[boundary:], mtime=0)
            for boundary in (0, 1, len(DECLARATION), len(PLAIN) // 2, len(PLAIN) - 1, len(PLAIN))
        ),
        *(PACKED + bytes(zeros) for zeros in (1, 511, 5000)),
    ],
)
def test_gzip_is_detected_by_content_in_any_members(packed: bytes) -> None:
    assert read_in_steps(packed, (*range(1, 80), len(PACKED), len(packed))) == EXPECTED


# Compression


def test_zero_bytes_between_gzip_members_do_not_depend_on_the_size_of_reads() -> None:
    packed = gzip.compress(PLAIN[:50], mtime=0) + bytes(20) + gzip.compress(PLAIN[50:], mtime=0)
    outcomes = set()
    for step in (*range(2, 120), len(packed)):
        try:
            outcomes.add(str(list(iter_records(TrickleReader(packed, step)))))
        except BadFileError as error:
            outcomes.add(error.reason)
    assert len(outcomes) == 1


# Encodings

ACCENTED = "<PubmedArticle><A>Müller, Ångström: caffè à la crème</A></PubmedArticle>"


def build_file(declaration: str) -> str:
    return f"{declaration}<PubmedArticleSet>{ACCENTED}</PubmedArticleSet>"


ENCODED = {
    "none": build_file("").encode(),
    "declaration without encoding": build_file('<?xml version="1.0"?>').encode(),
    "utf-8": build_file('<?xml version="1.0" encoding="utf-8"?>').encode(),
    "utf-8 single quotes": build_file("<?xml version='1.0' encoding = 'UTF-8' standalone='yes'?>").encode(),
    "utf-8 mark": b"\xef\xbb\xbf" + build_file("").encode(),
    "utf-8 mark and declaration": b"\xef\xbb\xbf"
    + build_file('<?xml version="1.0" encoding="UTF-8"?>').encode(),
    "utf-16": build_file('<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16"),
    "utf-16 little end": b"\xff\xfe" + build_file("").encode("utf-16-le"),
    "utf-16 big end": b"\xfe\xff" + build_file('<?xml version="1.0" encoding="UTF-16"?>').encode("utf-16-be"),
    "iso-8859-1": build_file('<?xml version="1.0" encoding="ISO-8859-1"?>').encode("iso-8859-1"),
    "windows-1252": build_file("<?xml version='1.0' encoding='windows-1252'?>").encode("windows-1252"),
}


@pytest.mark.parametrize("case", ENCODED)
def test_records_are_decoded_and_yielded_in_utf_8(case: str) -> None:
    data = ENCODED[case]
    assert read_in_steps(data) == [("PubmedArticle", ACCENTED.encode())]
    assert list_records(gzip.compress(data)) == [("PubmedArticle", ACCENTED.encode())]


def test_encoding_is_detected_when_a_gzip_member_ends_in_the_declaration() -> None:
    data = ENCODED["iso-8859-1"]
    packed = gzip.compress(data[:10]) + gzip.compress(data[10:])
    assert list_records(packed) == [("PubmedArticle", ACCENTED.encode())]


def test_characters_across_block_boundaries() -> None:
    text = "<PubmedArticle><A>" + "€𝛼é" * 50 + "</A></PubmedArticle>"
    data = f"<PubmedArticleSet>{text}</PubmedArticleSet>".encode("utf-16")
    for step in range(2, 40):
        assert list(iter_records(TrickleReader(data, step))) == [("PubmedArticle", text.encode())], step


# Bad files

ENTITY_BOMB = (
    b'<!DOCTYPE PubmedArticleSet [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    b"<PubmedArticleSet><PubmedArticle>&b;</PubmedArticle></PubmedArticleSet>"
)
EXTERNAL_ENTITY = (
    b'<?xml version="1.0"?>\n<!DOCTYPE x SYSTEM "x.dtd" [\n<!ENTITY e SYSTEM "file:///etc/hostname">\n]>'
    b"<PubmedArticleSet><PubmedArticle>&e;</PubmedArticle></PubmedArticleSet>"
)
PARAMETER_ENTITY = (
    b'<!DOCTYPE PubmedArticleSet PUBLIC "a [" \'b ">\' [ <!ENTITY % p SYSTEM "http://h.example/p"> %p; ]>'
    b"<PubmedArticleSet/>"
)
BAD_FILES = {
    "no bytes": (b"", "empty-file"),
    "text": (b"Sorry, the server is busy.", "not-xml"),
    "binary": (bytes(range(256)) * 8, "not-xml"),
    "only a doctype": (DECLARATION + DOCTYPE, "not-xml"),
    "text before the root": (b"Hello <PubmedArticleSet/>", "not-xml"),
    "an unclosed doctype": (b"<!DOCTYPE PubmedArticleSet <PubmedArticleSet/>", "not-xml"),
    "an old web page": (b"<!doctype html><html><p>Not here", "not-xml"),
    "a web page": (b'<!DOCTYPE html>\n<html lang="en"><body>Not here</body></html>', "wrong-root"),
    "full text": (b"<article><front/></article>", "wrong-root"),
    "a root with the same prefix": (b"<PubmedArticleSets/>", "wrong-root"),
    "an entity bomb": (ENTITY_BOMB, "dtd-declarations"),
    "an external entity": (EXTERNAL_ENTITY, "dtd-declarations"),
    "a parameter entity": (PARAMETER_ENTITY, "dtd-declarations"),
    "no end of the root": (b"<PubmedArticleSet>" + FIRST, "truncated-xml"),
    "half the root's end tag": (b"<PubmedArticleSet>" + FIRST + b"</PubmedArt", "truncated-xml"),
    "the root's end tag without its bracket": (
        b"<PubmedArticleSet>" + FIRST + b"</PubmedArticleSet ",
        "truncated-xml",
    ),
    "an open comment": (b"<PubmedArticleSet>" + FIRST + b"<!-- </PubmedArticleSet>", "truncated-xml"),
    "an open comment after the root": (b"<PubmedArticleSet/><!-- ", "truncated-xml"),
    "an open section": (b"<PubmedArticleSet><PubmedArticle><![CDATA[ ]] >", "truncated-xml"),
    "an open instruction": (b"<PubmedArticleSet><?x >", "truncated-xml"),
    "text between records": (
        b"<PubmedArticleSet>" + FIRST + b" stray " + FIRST + b"</PubmedArticleSet>",
        "malformed-xml",
    ),
    "text before the root's end": (
        b"<PubmedArticleSet>" + FIRST + b"&amp;</PubmedArticleSet>",
        "malformed-xml",
    ),
    "content after the root": (b"<PubmedArticleSet></PubmedArticleSet>" + FIRST, "malformed-xml"),
    "two files in one": (PLAIN + PLAIN.removeprefix(DECLARATION), "malformed-xml"),
    "content after a lone record": (FIRST + FIRST, "malformed-xml"),
    "the wrong end tag": (b"<PubmedArticleSet>" + FIRST + b"</MedlineCitationSet>", "malformed-xml"),
    "an additional end tag": (
        b"<PubmedArticleSet>" + FIRST + b"</PubmedArticle></PubmedArticleSet>",
        "malformed-xml",
    ),
    "text far after the last record": (build_set(FIRST, b" " * 5000, b"stray"), "malformed-xml"),
    "an unknown encoding": (b"<?xml version='1.0' encoding='klingon'?><PubmedArticleSet/>", "bad-encoding"),
    "half a utf-16 character": ("<PubmedArticleSet/>".encode("utf-16") + b"\n", "bad-encoding"),
    "half a utf-16 pair": (
        b"\xff\xfe" + "<PubmedArticleSet>".encode("utf-16-le") + b"\x00\xd8<\x00",
        "bad-encoding",
    ),
    "bytes that are invalid in the encoding": (
        b"<?xml version='1.0' encoding='cp1252'?><PubmedArticleSet>\x81</PubmedArticleSet>",
        "bad-encoding",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_file_raises_with_its_reason(case: str) -> None:
    data, reason = BAD_FILES[case]
    error = catch_error(data)
    assert error.reason == reason
    assert error.detail
    assert str(error) == f"{reason}: {error.detail}"
    for step in (1, 2, 3, 5, 7, 11, 17, 31) if reason != "bad-encoding" else ():
        assert catch_error(data, step).reason == reason, step


@pytest.mark.usefixtures("gzip_library")
def test_damaged_gzip_members_are_bad_files() -> None:
    packer = zlib.compressobj(level=0, wbits=31)
    stored = bytearray(packer.compress(PLAIN) + packer.flush())
    stored[stored.index(b"MEDLINE")] ^= 1
    for data, reason in (
        (PACKED + gzip.compress(b"\n", mtime=0)[:-3], "truncated-gzip"),
        (PACKED + b"junk", "corrupt-gzip"),
        (bytes(stored), "corrupt-gzip"),
        (gzip.compress(b"", mtime=0), "not-xml"),
    ):
        assert catch_error(data).reason == reason


@pytest.mark.parametrize("codec", ["hex", "base64", "rot13", "zlib", "bz2", "uu", "quopri", "undefined"])
def test_codec_that_is_not_a_character_set_raises(codec: str) -> None:
    """Python has codecs that do not decode to text."""
    data = f"<?xml version='1.0' encoding='{codec}'?><PubmedArticleSet></PubmedArticleSet>".encode()
    assert catch_error(data).reason == "bad-encoding"


def test_records_before_the_damage_are_yielded() -> None:
    reading = iter_records(io.BytesIO(b"<PubmedArticleSet>" + FIRST + SECOND + b"<PubmedArticle>"))
    assert [next(reading), next(reading)] == EXPECTED[:2]
    with pytest.raises(BadFileError, match="truncated-xml"):
        next(reading)


@pytest.fixture(params=["isal", "zlib"])
def gzip_library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decompress with this library."""
    if request.param == "zlib":
        monkeypatch.setattr(decoder, "gzip_library", zlib)
        monkeypatch.setattr(decoder, "_GzipError", zlib.error)


@pytest.mark.parametrize("size", [0, 1, *(decoder.BLOCK_BYTES * 2 + extra for extra in (-1, 0, 1, 17))])
@pytest.mark.parametrize("num_members", [1, 2])
@pytest.mark.usefixtures("gzip_library")
def test_gunzip_returns_all_data_in_blocks(size: int, num_members: int) -> None:
    random_bytes = random.Random(size).randbytes(size)
    for data in (b"a" * size, (b"<a>text</a>\n" * size)[:size], random_bytes):
        packed = gzip.compress(data, mtime=0) * num_members
        for step in (1000, 4096, decoder.BLOCK_BYTES):
            gunzip = decoder.BoundedGunzip()
            blocks = [
                block
                for start in range(0, len(packed), step)
                for block in gunzip.decompress(packed[start : start + step])
            ]
            gunzip.finish()
            assert b"".join(blocks) == data * num_members
            assert all(len(block) <= decoder.BLOCK_BYTES for block in blocks)


@pytest.mark.usefixtures("gzip_library")
@pytest.mark.parametrize("step", [2, 64, 1 << 20])
def test_truncated_gzip_raises_at_every_length(step: int) -> None:
    packed = PACKED
    for length in range(2, len(packed)):
        assert catch_error(packed[:length], step).reason in (
            ("truncated-gzip",)
            if length >= len(packed) - 8
            else ("truncated-gzip", "truncated-xml", "not-xml")
        ), length


@pytest.mark.usefixtures("gzip_library")
@pytest.mark.parametrize("step", [2, 64, 1 << 20])
def test_wrong_gzip_checksum_or_length_is_corrupt(step: int) -> None:
    packed = PACKED
    for offset in range(1, 9):
        damaged = bytearray(packed)
        damaged[-offset] ^= 0x10
        assert catch_error(bytes(damaged), step).reason == "corrupt-gzip", offset


@pytest.mark.usefixtures("gzip_library")
def test_changed_byte_in_the_gzip_data_raises() -> None:
    packed = PACKED
    for index in range(10, len(packed)):
        damaged = bytearray(packed)
        damaged[index] ^= 0x41
        with pytest.raises(BadFileError):
            list_records(bytes(damaged))


# Limits


def test_file_above_the_size_limit_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "MAX_FILE_BYTES", len(PLAIN) - 1)
    assert catch_error(PLAIN).reason == "too-large"
    assert catch_error(gzip.compress(PLAIN)).reason == "too-large"
    monkeypatch.setattr(decoder, "MAX_FILE_BYTES", len(PLAIN))
    assert list_records(PLAIN) == EXPECTED
    assert list_records(gzip.compress(PLAIN)) == EXPECTED


def test_gzip_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b"<PubmedArticleSet>" + b" " * 30_000_000)
    monkeypatch.setattr(decoder, "MAX_FILE_BYTES", 1_000_000)
    assert measure_peak_memory(lambda: catch_error(bomb)) < 10_000_000
    assert catch_error(bomb).reason == "too-large"


def test_record_above_the_size_limit_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_RECORD_BYTES", 1000)
    start, long = b"<PubmedArticleSet>" + FIRST, b"<PubmedArticle>" + b"<A>x</A>" * 1000
    end = b"</PubmedArticle>" + FIRST + b"</PubmedArticleSet>"
    for step in (50, 512):
        assert catch_error(start + long, step).reason == "truncated-xml"
        records = list(iter_records(TrickleReader(start + long + end, step)))
        assert [name for name, _ in records] == ["PubmedArticle"] * 3
        assert records[0] == records[2], "the others are kept"
        with pytest.raises(BadRecordError, match=r"record-too-long: .* begins b'<PubmedArticle><A>x"):
            check_length(records[1][1])
    endless_start_tag = b"<PubmedArticleSet>" + FIRST + b"<PubmedArticle" + b" " * 5000
    assert catch_error(endless_start_tag, 100).reason == "record-too-long"
    fits = b"<PubmedArticle>" + b"<A>x</A>" * 50 + b"</PubmedArticle>"
    data = b"<PubmedArticleSet>" + fits * 20 + b"</PubmedArticleSet>"
    assert list(iter_records(TrickleReader(data, 100))) == [("PubmedArticle", fits)] * 20


def test_endless_comment_raises_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "MAX_MARKUP_BYTES", 1000)
    file = TrickleReader(b"<PubmedArticleSet><!--" + b"x" * 1_000_000, 100)
    with pytest.raises(BadFileError) as error_info:
        list(iter_records(file))
    assert error_info.value.reason == "truncated-xml"
    assert file.reads < 50


def test_endless_prolog_raises_early() -> None:
    file = TrickleReader(b"<!DOCTYPE PubmedArticleSet " + b"x" * 5_000_000, 4096)
    with pytest.raises(BadFileError) as error_info:
        list(iter_records(file))
    assert error_info.value.reason == "not-xml"
    assert file.reads < 50


# Generated files, compared with lxml

MISLEADING_TEXTS = [
    "</PubmedArticle>",
    "<PubmedArticle>",
    "</PubmedArticleSet>",
    "<!--",
    "<?x",
    "</A",
    "&lt;",
    "]]",
]
LEGAL = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
TEXT = st.text(st.one_of(LEGAL, st.sampled_from(" \t\n<>&'\"/]-!?")), max_size=12) | st.sampled_from(
    MISLEADING_TEXTS
)
FILLERS = st.lists(
    st.sampled_from(["", " ", "\n", "\t ", "<!---->", "<!-- </PubmedArticle> -->", "<?p <PubmedArticle>?>"])
    | TEXT.map(lambda text: "<!--" + re.sub("-+", "-", text).removesuffix("-") + "-->")
    | TEXT.map(lambda text: "<?pi " + text.replace("?>", "? >").rstrip("?") + "?>"),
    max_size=3,
).map("".join)


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def build_cdata(text: str) -> str:
    return "<![CDATA[" + text.replace("]]>", "") + "]]>"


WORDS = st.one_of(
    TEXT.map(escape),
    TEXT.map(lambda text: escape(text).replace("&gt;", ">").replace("]]>", "]] >").replace("]]", "] ]")),
    TEXT.map(lambda text: build_cdata(build_cdata(text)[9:-3])),
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
VALUES = TEXT.map(lambda text: escape(text).replace("&gt;", ">").replace('"', "&quot;"))
KINDS = st.sampled_from(["PubmedArticle", "MedlineCitation", "PubmedBookArticle", "DeleteCitation"])


@st.composite
def generate_record(draw: st.DrawFn, unusual: bool) -> str:
    name = draw(KINDS)
    values = draw(st.lists(VALUES, max_size=2))
    if not unusual:
        values = [value.replace(">", "&gt;") for value in values]
    blank = st.sampled_from([" ", "\n", " \t"])
    attributes = "".join(f'{draw(blank)}a{at}="{value}"' for at, value in enumerate(values))
    end = draw(st.sampled_from(["", " ", "\n "])) if unusual else ""
    if draw(st.integers(0, 9)) == 0:
        return f"<{name}{attributes}{end}/>"
    content = draw(st.lists(CONTENT, max_size=4).map("".join))
    return f"<{name}{attributes}>{content}</{name}{end}>"


@st.composite
def generate_file(draw: st.DrawFn, unusual: bool = False) -> bytes:
    root = draw(st.sampled_from(["PubmedArticleSet", "MedlineCitationSet", "BookDocumentSet"]))
    head = draw(st.sampled_from(["", '<?xml version="1.0" encoding="utf-8"?>']))
    doctype = draw(st.sampled_from(["", DOCTYPE.decode()]))
    inside = "".join(
        draw(FILLERS) + record for record in draw(st.lists(generate_record(unusual), min_size=0, max_size=5))
    )
    before, after, last = (draw(FILLERS) for _ in range(3))
    if not head:
        before = before.lstrip()
    return f"{head}{before}{doctype}<{root}>{inside}{after}</{root}>{last}".encode()


@settings(max_examples=examples(250), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(generate_file() | generate_file(unusual=True), st.integers(1, 120))
def test_generated_file_equals_lxml(data: bytes, step: int) -> None:
    records = list(iter_records(TrickleReader(data, step)))
    assert canonicalize_records(records) == parse_with_lxml(data)
    assert records == list_records(data) == list_records(gzip.compress(data, compresslevel=1))


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(generate_file(), st.data())
def test_truncated_generated_file_raises(data: bytes, choice: st.DataObject) -> None:
    whole = data.rstrip()
    end = re.search(rb"</\w+Set>(?!.*</\w+Set>)", whole, re.DOTALL)
    assert end
    length = choice.draw(st.integers(0, data.rindex(b"Set>") if whole.endswith(b"Set>") else end.start()))
    with pytest.raises(BadFileError):
        list_records(data[:length])


# The reader


def read_records(path: Path, *records: str) -> list[SourceRecord]:
    path.write_bytes(pubmed_set_xml(*records))
    source = SourceFile(26, 1, path.name, str(path), path.stat().st_size, "")
    return list(CitationReader(PubMedConfig()).read_records(LocalStorage(), source))


def test_a_record_over_the_limit_is_rejected_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_RECORD_BYTES", 100_000)
    monkeypatch.setattr(decoder, "BLOCK_BYTES", 1 << 12)
    long = f"<PubmedArticle>{'<A>x</A>' * 20_000}</PubmedArticle>"
    records = read_records(tmp_path / "pubmed26n0001.xml", citation_xml(1), long, citation_xml(3))
    assert [record.error and record.error.reason for record in records] == [None, "record-too-long", None]
    assert len(records[1].raw) == 1000


def test_records_of_several_batches_keep_their_order(tmp_path: Path) -> None:
    intact = [citation_xml(number) for number in range(1, 51)]
    broken = citation_xml(99).replace("<PMID", "<PIMD", 1)
    deletion = "<DeleteCitation><PMID Version='1'>7</PMID><PMID Version='2'>8</PMID></DeleteCitation>"
    records = read_records(tmp_path / "pubmed26n0001.xml", *intact[:20], broken, *intact[20:], deletion)
    assert [record.position for record in records] == list(range(52))
    numbers = [[key.article_number for key in record.keys] for record in records]
    assert numbers == [*([number] for number in range(1, 21)), [], *([n] for n in range(21, 51)), [7, 8]]
    assert [record.position for record in records if record.error] == [20]
    assert [record.document is None for record in records] == [
        record.position in (20, 51) for record in records
    ]


def test_rejected_records_leave_no_reference_cycle(tmp_path: Path) -> None:
    """The garbage collector is off while a source is staged."""
    broken = [citation_xml(number).replace("</Article>", "", 1) for number in range(1, 40)]
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert len(read_records(tmp_path / "pubmed26n0001.xml", *broken)) == 39
        gc.collect()
        assert not [item for item in gc.garbage if isinstance(item, BadRecordError)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
