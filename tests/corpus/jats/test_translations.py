"""An article in another language is read as its translation into a selected language."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bioshards.corpus import jats
from bioshards.corpus.document import Document
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.inputs import discover
from bioshards.corpus.jats.reader import ArticleReader
from bioshards.corpus.source_record import VersionKey
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.small_articles import KEEP_EVERYTHING, small_article

STUB = (
    "<front-stub><title-group><article-title>Gulls</article-title></title-group>"
    "<abstract><p>Gulls were seen.</p></abstract></front-stub>"
)
TRANS_FRONT = (
    '<trans-abstract xml:lang="en"><p>Gulls were seen in short.</p></trans-abstract>'
    '<trans-abstract xml:lang="es"><p>Se vieron gaviotas.</p></trans-abstract>'
)
ENGLISH = PmcConfig(languages=("eng",))


def build_article(
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
    document = read_document(build_article())
    assert document.sentences == ["Gulls", "Gulls were seen.", "Gulls nest."]
    assert (document.id, document.title, document.language) == ("pmc:PMC7.1", "Gulls", "eng")
    assert (document.article_type, document.licence) == ("research-article", "CC-BY")
    assert document.flags == ["translation"]


def test_title_and_abstract_that_only_the_article_has_translated() -> None:
    document = read_document(build_article(front=""))
    assert document.sentences == ["Gulls at sea", "Gulls were seen in short.", "Gulls nest."]


def test_dropped_language_is_read_as_its_translation() -> None:
    config = PmcConfig(languages=(), drop_languages=("por",))
    document = read_document(build_article(), config)
    assert (document.language, document.flags) == ("eng", ["translation"])


def test_reader_keeps_an_article_with_a_translation(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(build_article())
    [source] = discover(LocalStorage(), [str(tmp_path)])
    for translations, reason in ((True, None), (False, "language")):
        reader = ArticleReader(dataclasses.replace(ENGLISH, translations=translations), keep_dropped=False)
        [record] = reader.read_records(LocalStorage(), source)
        assert record.keys == [VersionKey(7, 1, False, reason)]


@pytest.mark.parametrize(
    ("config", "xml"),
    [
        (dataclasses.replace(ENGLISH, translations=False), build_article()),
        (dataclasses.replace(ENGLISH, languages=("por", "eng")), build_article()),
        (KEEP_EVERYTHING, build_article()),
        (ENGLISH, build_article(**{"xml:lang": "es"})),
        (ENGLISH, build_article(**{"article-type": "reply"})),
        (ENGLISH, build_article(body="")),
        (ENGLISH, build_article(body="<body/>")),
    ],
)
def test_article_is_read_in_its_own_language(config: PmcConfig, xml: bytes) -> None:
    document = read_document(xml, config)
    assert document.sentences == ["Of 7", "Gaivotas."]
    assert (document.language, document.flags) == ("por", [])
