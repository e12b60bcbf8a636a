"""Tests of ``beam run pmc_to_shards``: documents, funnel, shards, manifest, containers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bioshards import show
from bioshards.corpus.document import DEFAULT_COLUMNS
from bioshards.corpus.shards.document_schema import make_schema
from tests.support.corpus.jats_articles import (
    article_xml,
    europepmc_package_xml,
    tar_articles,
    write_files,
    zip_articles,
)
from tests.support.outputs import load_documents, load_manifest
from tests.support.paths import PMC_SAMPLE

Run = Callable[..., int]


def test_sample_gives_the_expected_counts(full_text: Path) -> None:
    manifest = load_manifest(full_text)
    assert manifest["funnel"] == {
        "records": 20,
        "dropped: superseded": 1,
        "dropped: licence": 4,
        "dropped: language": 1,
        "dropped: no-body": 1,
        "kept": 13,
    }
    documents = load_documents(full_text)
    lines = [line for row in documents.values() for line in row["sentences"]]
    assert len(documents) == manifest["counts"]["documents"] == 13
    assert manifest["counts"]["sentences"] == len(lines)
    assert manifest["counts"]["words"] == sum(len(line.split()) for line in lines)
    assert manifest["counts"]["characters"] == sum(map(len, lines))
    assert manifest["languages"] == {"eng": 13}
    assert manifest["licences"] == {"CC-BY": 10, "CC-BY-SA": 2, "CC0": 1}
    assert manifest["article_types"]["correction"] == 1
    assert sum(manifest["years"].values()) == sum(manifest["article_types"].values()) == 13
    assert manifest["overlap"] == manifest["warnings"] == manifest["bad_files"] == []


def test_every_column_of_an_article(full_text: Path) -> None:
    documents = load_documents(full_text)
    row = documents["pmc:PMC9990005.1"]
    assert list(row) == make_schema(DEFAULT_COLUMNS).names
    assert {name: row[name] for name in row if name not in ("sentences", "sections", "title")} == {
        "id": "pmc:PMC9990005.1",
        "source": "pmc",
        "pmid": 99990005,
        "pmcid": "PMC9990005",
        "doi": "10.5555/jib.2023.0005",
        "version": 1,
        "year": 2023,
        "journal": "Journal of Invented Biology",
        "article_type": "research-article",
        "language": "eng",
        "licence": "CC0",
        "retracted": False,
        "flags": [],
        "origin": {"file": "PMC9990005.1.xml", "position": 4},
        "journal_abbreviation": "J Invent Biol",
        "nlm_id": None,
        "publication_types": [],
        "keywords": [],
        "subjects": [],
        "published": "2023-04-01",
    }
    assert documents["pmc:PMC9990015.1"]["flags"] == ["correction"]
    assert [id_ for id_, document in documents.items() if document["retracted"]] == ["pmc:PMC9990016.1"]
    assert "pmc:PMC9990014.1" not in documents  # superseded by its second version
    assert documents["pmc:PMC9990012.1"]["origin"] == {"file": "PMC9990012_PMC9990013.xml", "position": 0}


def test_sections_point_at_their_first_sentences(full_text: Path) -> None:
    for row in load_documents(full_text).values():
        assert row["sentences"][0].rstrip(".?")[:20] in row["title"]
        starts = [section["first_sentence"] for section in row["sections"]]
        assert starts == sorted(set(starts))
        assert starts[0] >= 1
        assert starts[-1] < len(row["sentences"])
    row = load_documents(full_text)["pmc:PMC9990001.1"]
    headings = [section["heading"] for section in row["sections"]]
    assert headings[:4] == [
        "Abstract > Background",
        "Abstract > Methods and Findings",
        "Abstract > Conclusions",
        "Introduction",
    ]
    assert not any("References" in heading for heading in headings)


def test_every_article_is_kept_or_dropped_with_a_reason(full_text: Path) -> None:
    funnel = dict(load_manifest(full_text)["funnel"])
    assert funnel.pop("records") == sum(funnel.values())
    dropped = {row["id"]: row["reason"] for row in pq.read_table(full_text / "dropped").to_pylist()}
    assert len(dropped) == 7
    assert dropped["pmc:PMC9990014.1"] == "superseded"
    assert dropped["pmc:PMC9990018.1"] == "no-body"
    assert dropped["pmc:PMC9990013.1"] == "language"


def test_manifest_lists_a_range_as_one_input(full_text: Path) -> None:
    manifest = load_manifest(full_text)
    range_input, package_input = manifest["inputs"]
    assert (range_input["file"], range_input["num_files"], range_input["records"]) == ("PMC0999xxxx", 18, 18)
    assert (package_input["file"], package_input["num_files"], package_input["records"]) == (
        "PMC9990012_PMC9990013.xml",
        1,
        2,
    )
    assert package_input["md5"] == hashlib.md5((PMC_SAMPLE / package_input["file"]).read_bytes()).hexdigest()
    assert manifest["config"]["document_config"]["licences"] == ["CC0", "CC-BY", "CC-BY-SA"]
    assert "Each article is under the licence in its row" in manifest["notice"]
    assert manifest["pipeline"] == "pmc_to_shards"


def test_show_beside_the_source(full_text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert show.main([str(full_text), "--id", "PMC9990005", "--with-source"]) == 0
    shown = capsys.readouterr().out
    assert "[Results > Figure 1]" in shown
    assert "<article" in shown


# The containers


Articles = dict[str, str]
CONTAINERS: dict[str, Callable[[Articles], dict[str, str | bytes]]] = {
    "loose": lambda articles: {**articles},
    "gzipped": lambda articles: {f"{name}.gz": xml for name, xml in articles.items()},
    "folders": lambda articles: {f"PMC00{n}/{name}": xml for n, (name, xml) in enumerate(articles.items())},
    "nxml": lambda articles: {
        f"{name.removesuffix('.xml')}/main.nxml": xml for name, xml in articles.items()
    },
    "unnamed": lambda articles: {f"article-{n}.xml": xml for n, xml in enumerate(articles.values())},
    "zip": lambda articles: {"some.zip": zip_articles(articles)},
    "tar.gz": lambda articles: {"some.tar.gz": tar_articles(articles)},
    "tar": lambda articles: {"some.tar": tar_articles(articles, "w")},
    "package": lambda articles: {"PMC731_PMC10732.xml.gz": europepmc_package_xml(articles.values())},
    "plain-package": lambda articles: {"PMC831_PMC10832.xml": europepmc_package_xml(articles.values())},
    "articleset": lambda articles: {
        "answer.xml": f"<pmc-articleset>{''.join(articles.values())}</pmc-articleset>"
    },
    "mixture": lambda articles: {
        "PMC1131.1.xml": articles.pop("PMC1131.1.xml"),
        "a.zip": zip_articles(articles),
    },
}
"""Files that hold articles, by the name of their folder; each has its own hundred of PMCIDs."""


def test_all_containers_give_the_same_documents(tmp_path: Path, run_pmc: Run) -> None:
    for hundreds, (name, pack) in enumerate(CONTAINERS.items()):
        articles = {
            f"PMC{100 * hundreds + pmcid}.{version}.xml": article_xml(
                100 * hundreds + pmcid, f"Part {pmcid} says this. It is version {version}.", version
            )
            for pmcid, version in ((31, 1), (32, 1), (32, 2), (10_032, 1))
        }
        write_files(tmp_path / "in" / name, pack(articles))
    assert run_pmc("--input", tmp_path / "in", "--output", tmp_path / "out") == 0
    documents = load_documents(tmp_path / "out")
    assert len(documents) == 3 * len(CONTAINERS)
    for pmcid, version in ((31, 1), (32, 2), (10_032, 1)):
        expected = select_text(documents[f"pmc:PMC{pmcid}.{version}"])
        assert f"It is version {version}." in expected["sentences"]
        for hundreds, name in enumerate(CONTAINERS):
            document = documents[f"pmc:PMC{100 * hundreds + pmcid}.{version}"]
            assert document["pmcid"] == f"PMC{100 * hundreds + pmcid}"
            assert select_text(document) == expected, name
    origin = documents["pmc:PMC632.2"]["origin"]
    assert origin == {"file": "some.tar.gz/PMC632.2.xml", "position": 2}


def select_text(document: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that do not name the article."""
    return {name: value for name, value in document.items() if name not in ("id", "pmcid", "origin")}
