"""Documents built from the text blocks of an article: sentences, sections, counts, flags and ids.

Documents of generated blocks are split into sections again and compared with the blocks.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus import jats
from bioshards.corpus.document import HEADING_SEPARATOR, Document
from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder, identify_article
from bioshards.corpus.jats.filters import ARTICLE_PARTS, DROPPED_PART_PREFIX, PmcConfig
from bioshards.corpus.jats.inputs import discover
from bioshards.corpus.jats.paragraph_roles import TextBlock
from bioshards.corpus.jats.reader import ArticleReader
from bioshards.corpus.sentences import collapse_whitespace
from bioshards.corpus.source_record import VersionKey
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.small_articles import ACCEPTED_ARTICLE, KEEP_EVERYTHING, small_article
from tests.support.hypothesis_profiles import examples

TITLE = TextBlock("title", (), "Sleep in mice. A trial.")
BLOCKS = [
    TITLE,
    TextBlock("abstract", ("Abstract", "Background"), "Mice sleep. We asked why."),
    TextBlock("abstract", ("Abstract",), "They were tired."),
    TextBlock("body", ("Methods",), "We looked. Twice."),
    TextBlock("body", ("Methods",), "And again."),
    TextBlock("body", ("Methods", "Mice"), "There were 7."),
    TextBlock("caption", ("Methods", "Figure 1"), "A mouse."),
    TextBlock("body", ("Results",), "They slept."),
    TextBlock("acknowledgements", ("Acknowledgements",), "We thank the mice."),
]


def build_document(
    blocks: list[TextBlock], front: Any = ACCEPTED_ARTICLE, has_body: bool = True, **options: Any
) -> Document:
    return ArticleDocumentBuilder(PmcConfig(**options)).build_document(front, has_body, blocks, "a.xml", 3)[1]


def list_sections(document: Document) -> list[tuple[str, list[str]]]:
    """Return (heading, sentences) of each section, without the sentences before the first section."""
    starts = [first for _, first in document.sections]
    ends = [*starts[1:], len(document.sentences)][: len(starts)]
    headings = (heading for heading, _ in document.sections)
    return [
        (heading, document.sentences[start:end])
        for heading, start, end in zip(headings, starts, ends, strict=True)
    ]


# A document


def test_paragraphs_have_each_heading_once_before_what_is_below_it() -> None:
    methods = "<sec><title>Gulls</title><p>We looked [<xref ref-type='bibr'>1</xref>]. Twice.</p></sec>"
    methods = f"<sec><title>Methods</title>{methods}<sec><title>Terns</title><p>Again.</p></sec></sec>"
    review = "<sub-article><body><p>No.</p></body></sub-article>"
    article = small_article(
        1, body=f"<body>{methods}<sec><title>Gulls</title><p>End.</p></sec></body>{review}"
    )
    lines = ["Of 1", "Methods", "Gulls", "We looked. Twice.", "Terns", "Again.", "Gulls", "End."]
    assert jats.paragraphs(article) == lines
    assert jats.document(article, PmcConfig(citations="keep", titles=False)).sentences[0] == "We looked [1]."


@pytest.mark.parametrize(
    ("options", "sentence"), [({}, "Gulls nest."), ({"citations": "keep"}, "Gulls nest [2, 3].")]
)
def test_typed_citations_of_an_article_without_linked_ones(options: Any, sentence: str) -> None:
    body = "<body><sec><title>Nests</title><p>Gulls nest [2, 3].</p></sec></body>"
    config = PmcConfig(titles=False, **options)
    assert jats.document(small_article(1, body=body), config).sentences == [sentence]
    row = "<table-wrap><table><tr><td>Gulls [2]</td></tr></table></table-wrap>"
    cells = jats.document(small_article(1, body=body.replace("<p>", f"{row}<p>")), PmcConfig(tables="text"))
    assert "Gulls [2]" in cells.sentences


@pytest.mark.parametrize(
    ("after_name", "sentence"),
    [
        ("Gulls nest in GULL1 [{}], at 67% [{}].", "Gulls nest in GULL1, at 67%."),
        (
            "Ranges [3-7], as in [{}] and by day, [{}], are.",
            "Ranges [3-7], as in [{}] and by day, [{}], are.",
        ),
    ],
)
@pytest.mark.parametrize("highest", [9, 10])
def test_typed_citations_that_count_up(after_name: str, sentence: str, highest: int) -> None:
    """Numbers from 1 to ten or more are citations after names and amounts, too."""
    counted = " ".join(f"Gulls nest here [{number}]." for number in range(1, highest + 1))
    article = small_article(1, body=f"<body><p>{counted} {after_name.format(2, 3)}</p></body>")
    expected = sentence if highest == 10 else after_name
    assert jats.document(article, PmcConfig(titles=False)).sentences[-1] == expected.format(2, 3)


@pytest.mark.parametrize(
    ("typed", "num_references", "sentence"),
    [
        ("Gulls nest [2, 3].", 4, "Gulls nest."),
        ("Gulls nest [2, 3].", 2, "Gulls nest [2, 3]."),
        ("Wings have the motif [1-4] and feathers.", 4, "Wings have the motif [1-4] and feathers."),
        ("Gulls nest in cold regions [1, 2].", 4, "Gulls nest in cold regions."),
        ("Gulls nest here.12,13 Terns do not.", 4, "Gulls nest here. Terns do not."),
        (
            "As in figure.2 Gulls nest, by Ode et al.4; Roe.",
            4,
            "As in figure.2 Gulls nest, by Ode et al.; Roe.",
        ),
    ],
)
def test_typed_citations_beside_linked_ones(typed: str, num_references: int, sentence: str) -> None:
    """Only numbers that the list of references has are citations."""
    key = "<fig><caption><p>Eggs [1] and nests [2].</p></caption></fig>"
    linked = f"<p>{typed}</p><p>They swim [<xref ref-type='bibr'>4</xref>].</p>{key}"
    references = "<ref id='r'></ref>" * num_references
    article = small_article(1, body=f"<body>{linked}</body><back><ref-list>{references}</ref-list></back>")
    sentences = jats.document(article, PmcConfig(titles=False)).sentences
    assert " ".join(sentences) == f"{sentence} They swim. Eggs [1] and nests [2]."


NAMED = (
    "Ode et al.{} and Roe et al.{} (see Poe et al.{}) nest. As did Moe et al. [2031] and Joe et al. [11C]."
)


@pytest.mark.parametrize(
    ("options", "numbers"), [({}, ("", "", "")), ({"citations": "keep"}, (" [14]", " [3, 5–7]", " [2]"))]
)
def test_numbers_after_names_of_an_article_with_linked_citations(
    options: Any, numbers: tuple[str, str, str]
) -> None:
    paragraph = NAMED.format(" [14]", " [3, 5–7]", " [2]")
    linked = "Terns do not [<xref ref-type='bibr'>4</xref>]."
    body = f"<body><sec><title>Nests</title><p>{paragraph}</p><p>{linked}</p></sec></body>"
    sentences = jats.document(small_article(1, body=body), PmcConfig(titles=False, **options)).sentences
    assert " ".join(sentences[:-1]) == NAMED.format(*numbers)


def body(text: str, *headings: str) -> TextBlock:
    return TextBlock("body", headings, text)


@pytest.mark.parametrize(
    ("blocks", "sections", "removed"),
    [
        # A letter has neither an abstract nor headings.
        ([body("We agree. Thanks."), body("Yours.")], [": We agree. | Thanks. | Yours."], {}),
        ([body("One."), body("Two.", "A"), body("Three.")], [": One.", "A: Two.", ": Three."], {}),
        # The end of a paragraph ends a sentence, and repeated headings start another section.
        ([body("We saw", "A"), body("nothing", "A")], ["A: We saw | nothing"], {}),
        (
            [body("One.", "A"), TextBlock("caption", ("A", "Figure 1"), "Two."), body("Three.", "A")],
            ["A: One.", "A > Figure 1: Two.", "A: Three."],
            {},
        ),
        # The abstract comes first.
        (
            [TextBlock("summary", ("Summary",), "In short."), TextBlock("abstract", (), "Mice. Rats.")],
            ["Abstract: Mice. | Rats.", "Summary: In short."],
            {},
        ),
        (
            [TextBlock("abstract", ("Abstract",), "No abstract available."), body("One.", "A")],
            ["A: One."],
            {"stubs": 22},
        ),
        # The notice of a copyright stays in a body.
        (
            [body("They slept. Copyright © 2019 The Mice. All rights reserved.")],
            [": They slept. | Copyright © 2019 The Mice. | All rights reserved."],
            {},
        ),
        # What is removed from a heading is counted once, and blocks that are empty then are skipped.
        (
            [body("One.", "Met\u00adhods", heading) for heading in ("A\u00ad", "B", "B")],
            ["Methods > A: One.", "Methods > B: One. | One."],
            {"soft-hyphens": 2},
        ),
        ([body("One.", "A"), body("\u200b", "B"), body("Two.", "C")], ["A: One.", "C: Two."], {"spaces": 1}),
        ([body("\u200b", "B")], [], {"spaces": 1}),
    ],
)
def test_sections_of_blocks(blocks: list[TextBlock], sections: list[str], removed: dict[str, int]) -> None:
    document = build_document([TITLE, *blocks])
    assert document.sentences[:2] == ["Sleep in mice.", "A trial."]
    found = [f"{heading}: {' | '.join(sentences)}" for heading, sentences in list_sections(document)]
    assert found == sections
    assert document.removed_characters == removed


def test_options_of_lines_and_parts() -> None:
    text = "We saw β. Not so. It is so."
    document = build_document([body(text, "A")], lower_case=True, ascii_only=True)
    assert document.sentences == ["we saw .", "not so.", "it is so."]
    assert (document.num_words, document.num_characters) == (3 + 2 + 3, 8 + 7 + 9)
    assert document.removed_characters == {"ascii-only": 1}
    assert build_document([body("We saw", "A"), body("it", "A")], splitter="none").sentences == [
        "We saw",
        "it",
    ]
    dropped = TextBlock("footnote", ("N\u00ad",), "A\u00adb.")
    document = build_document([TITLE, dropped, BLOCKS[3]], parts=("body",))
    assert document.removed_characters == {f"{DROPPED_PART_PREFIX}footnote": 4}, "it is not cleaned"
    builder = ArticleDocumentBuilder(PmcConfig())
    documents = [builder.build_document(ACCEPTED_ARTICLE, True, BLOCKS, "a.xml", 3)[1] for _ in range(3)]
    assert documents == [build_document(BLOCKS)] * 3, "a builder can be used again"


# Parts


def test_abstract_is_included_or_counted_as_dropped() -> None:
    """The other parts are those of the generated blocks below."""
    abstract = [TextBlock("abstract", ("A",), "One two."), TextBlock("abstract", ("A",), "Three.")]
    blocks = [TITLE, *abstract, TextBlock("body", ("B",), "Four.")]
    document = build_document(blocks, parts=("abstract", "body"))
    assert list_sections(document) == [("A", ["One two.", "Three."]), ("B", ["Four."])]
    assert document.removed_characters == {}
    without_abstract = build_document(blocks, parts=("body",))
    assert list_sections(without_abstract) == [("B", ["Four."])]
    assert without_abstract.removed_characters == {f"{DROPPED_PART_PREFIX}abstract": 8 + 6}


# Cleaning


def test_abstract_is_cleaned_as_in_pubmed() -> None:
    blocks = [
        TextBlock("abstract", ("Abstract", "Aim"), "Aim: Mice sleep."),
        TextBlock("abstract", ("Abstract", "Results"), ""),
        TextBlock(
            "abstract", ("Abstract", "End"), "They slept. Copyright © 2019 The Mice. All rights reserved."
        ),
    ]
    document = build_document(blocks)
    assert list_sections(document) == [
        ("Abstract > Aim", ["Mice sleep."]),
        ("Abstract > End", ["They slept."]),
    ]
    assert document.removed_characters["copyright"] > 40
    assert document.removed_characters["empty-labels"] > 0
    uncleaned = build_document(blocks, cleaning=())
    assert uncleaned.removed_characters == {}
    assert any("All rights reserved" in sentence for sentence in uncleaned.sentences)


def test_label_of_an_abstract_that_repeats_its_heading_is_dropped() -> None:
    blocks = [
        TextBlock("abstract", ("Abstract", "Abstract"), "Abstract: Mice sleep well."),
        TextBlock("abstract", ("Abstract", "Aim"), "Aim: Mice eat well."),
    ]
    assert list_sections(build_document(blocks)) == [
        ("Abstract", ["Mice sleep well."]),
        ("Abstract > Aim", ["Mice eat well."]),
    ]


def test_title_headings_and_text_are_cleaned() -> None:
    blocks = [
        TextBlock("title", (), "Sl\u00adeep"),
        TextBlock("abstract", ("Abst\u00adract", "A\u00adim"), "Mi\u00adce sleep well."),
        TextBlock("body", ("Met\u00adhods", "De\u00adep"), "We\u00a0lo\u00adoked."),
        TextBlock("body", ("\u200b",), "Cafe\u0301 \u007f closed."),
    ]
    document = build_document(blocks)
    assert document.title == "Sleep"
    assert list_sections(document) == [
        ("Abstract > Aim", ["Mice sleep well."]),
        ("Methods > Deep", ["We looked."]),
        ("", ["Café closed."]),
    ]
    assert document.removed_characters["soft-hyphens"] == 7
    assert build_document(blocks, cleaning=()).title == "Sl\u00adeep"


# Labels and lines


def test_section_without_lines_is_skipped() -> None:
    blocks = [TextBlock("body", ("A",), "No."), TextBlock("body", ("B",), "It is longer than that.")]
    config = PmcConfig(min_line_characters=10, min_words=6)
    drop_reason, document = ArticleDocumentBuilder(config).build_document(
        ACCEPTED_ARTICLE, True, blocks, "a.xml", 0
    )
    assert drop_reason is None  # words are counted before short lines are removed
    assert document.sections == [("B", 0)]
    assert document.removed_characters == {"short-lines": 3}
    assert document.num_words == 5


# Flags


@pytest.mark.parametrize(
    ("changes", "has_body", "flags"),
    [
        ({}, True, []),
        ({"notice": "retraction"}, True, ["retraction"]),
        ({"manuscript": True}, True, ["manuscript"]),
        ({"ocr": True}, True, ["ocr"]),
        ({}, False, ["no-body"]),
        (
            {"notice": "correction", "manuscript": True, "ocr": True},
            False,
            ["correction", "manuscript", "ocr", "no-body"],
        ),
    ],
)
def test_flags(changes: dict[str, Any], has_body: bool, flags: list[str]) -> None:
    assert build_document(BLOCKS, ACCEPTED_ARTICLE._replace(**changes), has_body).flags == flags


# Identity


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("pmc:PMC77.2", 77)),
        ({"version": 1}, ("pmc:PMC77.1", 77)),
        ({"pmid": None, "doi": None}, ("pmc:PMC77.2", 77)),
        ({"pmcid": "PMC2147483647", "version": 9999}, ("pmc:PMC2147483647.9999", 2**31 - 1)),
    ],
)
def test_id_of_a_pmc_article(changes: dict[str, Any], expected: tuple[str, int]) -> None:
    assert identify_article(ACCEPTED_ARTICLE._replace(**changes)) == expected


def test_id_of_other_articles_is_the_doi_or_else_the_pmid() -> None:
    other = ACCEPTED_ARTICLE._replace(pmcid=None)
    name, number = identify_article(other)
    assert name == "doi:10.5555/sleep.7"
    assert identify_article(other._replace(doi="10.5555/SLEEP.7", pmid=None, version=5)) == (name, number)
    assert identify_article(other._replace(doi="10.5555/sleep.8"))[1] != number
    name, number = identify_article(other._replace(doi=None))
    assert name == "pmid:12345"
    assert number != identify_article(other._replace(doi=None, pmid=12_346))[1]


def test_article_without_an_id_raises() -> None:
    with pytest.raises(BadRecordError) as error_info:
        identify_article(ACCEPTED_ARTICLE._replace(pmcid=None, doi=None, pmid=None))
    assert error_info.value.reason == "no-id"


@settings(max_examples=examples(300))
@given(st.none() | st.text(min_size=1), st.integers(1, 2**31 - 1))
def test_numbers_of_other_articles_are_above_pmcids_and_fit_int64(doi: str | None, pmid: int) -> None:
    doi = doi and doi.encode(errors="replace").decode()
    assert 2**40 <= identify_article(ACCEPTED_ARTICLE._replace(pmcid=None, doi=doi, pmid=pmid))[1] < 2**63


def test_numbers_of_other_articles_are_distinct() -> None:
    numbers = {
        identify_article(ACCEPTED_ARTICLE._replace(pmcid=None, doi=None, pmid=pmid))[1]
        for pmid in range(1, 20_000)
    }
    assert len(numbers) == 19_999


# Generated blocks

WORDS = st.lists(
    st.sampled_from(
        ["We", "saw", "3.", "Fig.", "2", "it.", "(", "?", "Ω", "e.g.", "p<.05", "The", "ﬁve", "\u00ad"]
    ),
    min_size=1,
    max_size=8,
).map(" ".join)
HEADINGS = st.lists(st.sampled_from(["A", "B b", "Ć", "1."]), max_size=3).map(tuple)
BLOCKS_OF_PARTS = st.lists(
    st.builds(
        TextBlock,
        st.sampled_from([part for part in ARTICLE_PARTS[1:] if part != "abstract"]),
        HEADINGS,
        WORDS,
    ),
    max_size=8,
)


@settings(max_examples=examples(300))
@given(
    st.none() | WORDS,
    BLOCKS_OF_PARTS,
    st.booleans(),
    st.booleans(),
    st.sets(st.sampled_from(ARTICLE_PARTS[1:])),
)
def test_counts_and_sections_match_the_sentences(
    title: str | None, blocks: list[TextBlock], titles: bool, labels: bool, parts: set[str]
) -> None:
    included = tuple(part for part in ARTICLE_PARTS[1:] if part in parts)
    title_blocks = [] if title is None else [TextBlock("title", (), title)]
    document = build_document(
        title_blocks + blocks, titles=titles, section_labels=labels, parts=included, cleaning=()
    )
    assert document.title == (title or "")
    assert document.num_words == sum(len(sentence.split()) for sentence in document.sentences)
    assert document.num_characters == sum(map(len, document.sentences))
    assert all(sentence and sentence == collapse_whitespace(sentence) for sentence in document.sentences)
    included_blocks = [block for block in blocks if block.part in parts]
    runs = [
        (HEADING_SEPARATOR.join(headings), headings[-1:] if labels else (), [block.text for block in run])
        for headings, run in itertools.groupby(included_blocks, key=lambda block: block.headings)
    ]
    first_sentence = document.sections[0][1] if document.sections else len(document.sentences)
    assert " ".join(document.sentences[:first_sentence]) == (document.title if titles else "")
    assert [(heading, " ".join(sentences)) for heading, sentences in list_sections(document)] == [
        (heading, " ".join([*label, *texts])) for heading, label, texts in runs
    ]
    dropped = {f"{DROPPED_PART_PREFIX}{block.part}" for block in blocks if block.part not in parts}
    assert document.removed_characters == {
        name: sum(len(block.text) for block in blocks if f"{DROPPED_PART_PREFIX}{block.part}" == name)
        for name in dropped
    }


@settings(max_examples=examples(200))
@given(
    st.lists(st.builds(TextBlock, st.sampled_from(ARTICLE_PARTS[1:]), HEADINGS, WORDS), max_size=8),
    st.integers(0, 30),
)
def test_min_words_counts_the_words_of_the_document(blocks: list[TextBlock], min_words: int) -> None:
    drop_reason, document = ArticleDocumentBuilder(PmcConfig(min_words=min_words)).build_document(
        ACCEPTED_ARTICLE, True, blocks, "a.xml", 0
    )
    assert drop_reason == (
        "no-text" if not document.sections else "short" if document.num_words < min_words else None
    )
    assert document == build_document(blocks)._replace(position=0)


# Articles in another language, read in their translation into a selected one


STUB = (
    "<front-stub><title-group><article-title>Gulls</article-title></title-group>"
    "<abstract><p>Gulls were seen.</p></abstract></front-stub>"
)
TRANS_FRONT = (
    '<trans-abstract xml:lang="en"><p>Gulls were seen in short.</p></trans-abstract>'
    '<trans-abstract xml:lang="es"><p>Se vieron gaviotas.</p></trans-abstract>'
)
ENGLISH = PmcConfig(languages=("eng",))


def build_translated_article(
    front: str = STUB, body: str = "<body><p>Gulls nest.</p></body>", **attributes: str
) -> bytes:
    """A Portuguese article with a translation."""
    attributes = {"article-type": "translation", "xml:lang": "en"} | attributes
    names = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    title = "<trans-title-group xml:lang='en'><trans-title>Gulls at sea</trans-title></trans-title-group>"
    xml = small_article(7, "Gaivotas.", extra_front=TRANS_FRONT)
    xml = xml.replace(b"</article-title>", f"</article-title>{title}".encode())
    translation = f"<sub-article {names}>{front}{body}</sub-article></article>"
    return xml.replace(b"<article ", b'<article xml:lang="pt" ').replace(b"</article>", translation.encode())


def read_document(xml: bytes, config: PmcConfig = ENGLISH) -> Document:
    return jats.document(xml, config)


def test_translation_has_the_id_and_metadata_of_its_article() -> None:
    document = read_document(build_translated_article())
    assert document.sentences == ["Gulls", "Gulls were seen.", "Gulls nest."]
    assert (document.id, document.title, document.language) == ("pmc:PMC7.1", "Gulls", "eng")
    assert (document.article_type, document.licence) == ("research-article", "CC-BY")
    assert document.flags == ["translation"]


def test_title_and_abstract_that_only_the_article_has_translated() -> None:
    document = read_document(build_translated_article(front=""))
    assert document.sentences == ["Gulls at sea", "Gulls were seen in short.", "Gulls nest."]


def test_dropped_language_is_read_as_its_translation() -> None:
    config = PmcConfig(languages=(), drop_languages=("por",))
    document = read_document(build_translated_article(), config)
    assert (document.language, document.flags) == ("eng", ["translation"])


def test_reader_keeps_an_article_with_a_translation(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(build_translated_article())
    [source] = discover(LocalStorage(), [str(tmp_path)])
    for translations, reason in ((True, None), (False, "language")):
        reader = ArticleReader(dataclasses.replace(ENGLISH, translations=translations), keep_dropped=False)
        [record] = reader.read_records(LocalStorage(), source)
        assert record.keys == [VersionKey(7, 1, False, reason)]


@pytest.mark.parametrize(
    ("config", "xml"),
    [
        (dataclasses.replace(ENGLISH, translations=False), build_translated_article()),
        (dataclasses.replace(ENGLISH, languages=("por", "eng")), build_translated_article()),
        (KEEP_EVERYTHING, build_translated_article()),
        (ENGLISH, build_translated_article(**{"xml:lang": "es"})),
        (ENGLISH, build_translated_article(**{"article-type": "reply"})),
        (ENGLISH, build_translated_article(body="")),
        (ENGLISH, build_translated_article(body="<body/>")),
    ],
)
def test_article_is_read_in_its_own_language(config: PmcConfig, xml: bytes) -> None:
    document = read_document(xml, config)
    assert document.sentences == ["Of 7", "Gaivotas."]
    assert (document.language, document.flags) == ("por", [])
