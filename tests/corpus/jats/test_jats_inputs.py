"""Discovery of full-text input files, and their grouping into source files by name.

A source file becomes a shard, so the grouping depends on file names alone.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.errors import InputNotFoundError
from bioshards.corpus.jats import inputs as article_sources
from bioshards.corpus.jats.inputs import discover
from bioshards.corpus.lifecycle.inputs import compute_input_md5
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile, is_unchanged
from bioshards.corpus.storage.storage_protocol import FileInfo, OnRepeatedFolder
from tests.support.corpus.shard_jobs import make_shards_job
from tests.support.hypothesis_profiles import examples

FILES = LocalStorage()


class NameOnlyStorage(LocalStorage):
    """A storage with file names and no contents."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = sorted(paths)

    def is_folder(self, path: str) -> bool:
        return path not in self.paths

    def walk(
        self,
        folder: str,
        on_repeated_folder: OnRepeatedFolder | None = None,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        return [FileInfo(path, 10, "1-1") for path in self.paths if path.startswith(f"{folder}/")]

    def glob(self, pattern: str) -> list[FileInfo]:
        return [FileInfo(path, 10, "1-1") for path in self.paths if path == pattern]


def write_files(folder: Path, *names: str) -> list[str]:
    """Write a file for each name below the folder; return the full paths."""
    paths = []
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        paths.append(str(path))
    return paths


def discover_parts_by_source(*inputs: object, storage: LocalStorage = FILES) -> dict[str, list[str]]:
    """Return the source files by name, each with the names of its parts in order."""
    sources = discover(storage, map(str, inputs))
    assert sources == sorted(sources)
    assert len({source.name for source in sources}) == len(sources)
    return {source.name: [part.name for part in source.parts] for source in sources}


def discover_parts_of_paths(*paths: str) -> dict[str, list[str]]:
    """Return :func:`discover_parts_by_source` of a folder with these paths."""
    return discover_parts_by_source("/in", storage=NameOnlyStorage([f"/in/{path}" for path in paths]))


# Discovery


def test_folder_is_searched_recursively_without_hidden_files(tmp_path: Path) -> None:
    articles = "PMC1.XML", "a/PMC2.nxml", "a/b/PMC3.xml.GZ", "c/PMC4.nxml.gz"
    whole = "old.TAR.gz", "a/older.Tgz", "b/new.ZIP", "PMC5_PMC10000.XML.gz", "PMC10001_PMC20000.xml"
    hidden = ".hidden/PMC6.xml", ".PMC7.xml", "a/.b/PMC8.xml", ".tmp-01"
    others = "README.txt", "PMC10.XML.md5", "old.tar.gz.md5", "xml", "a.tar.bz2", "b.gz"
    write_files(tmp_path, *articles, *whole, *hidden, *others)
    assert discover_parts_by_source(tmp_path) == {
        "PMC0000xxxx": [name.rpartition("/")[2] for name in articles],
        **{name.rpartition("/")[2]: [] for name in whole},
    }
    assert discover_parts_by_source(f"{tmp_path}/") == discover_parts_by_source(tmp_path)


def test_globs_accept_any_file_name_and_each_file_is_read_once(tmp_path: Path) -> None:
    write_files(tmp_path, "a/PMC1.txt", "a/PMC2.xml", "b/PMC3.txt", "a/PMC4.zip", "a/x.xml")
    assert discover_parts_by_source(f"{tmp_path}/*/PMC*.txt") == {"PMC0000xxxx": ["PMC1.txt", "PMC3.txt"]}
    assert discover_parts_by_source(f"{tmp_path}/**/PMC2*") == {"PMC0000xxxx": ["PMC2.xml"]}
    assert discover_parts_by_source(tmp_path / "a" / "PMC4.zip") == {"PMC4.zip": []}
    inputs = [tmp_path, tmp_path / "a", f"{tmp_path}/a/*.xml", tmp_path / "a" / ".." / "a" / "PMC2.xml"]
    assert discover(FILES, map(str, inputs)) == discover(FILES, [str(tmp_path)])
    assert discover(FILES, [os.path.relpath(tmp_path)]) == discover(FILES, [str(tmp_path)])
    [copy] = write_files(tmp_path, "b/PMC2.xml")
    [source] = discover(FILES, [f"{tmp_path}/b/*.xml", f"{tmp_path}/a/PMC2.xml"])
    assert [part.path for part in source.parts] == [f"{tmp_path}/a/PMC2.xml", copy]


def test_pubmed_files_and_other_tables_are_ignored(tmp_path: Path) -> None:
    write_files(tmp_path, "pubmed/baseline/pubmed26n0001.xml.gz", "pubmed26n0002.xml", "table.parquet")
    write_files(
        tmp_path, "pmc/metadata/PMC0123xxxx.parquet", "selected/PMC0123xxxx.parquet", "pmc/selected/x.parquet"
    )
    with pytest.raises(InputNotFoundError, match="has no article, package or archive"):
        discover_parts_by_source(tmp_path)
    with pytest.raises(InputNotFoundError, match="names no full text"):
        discover_parts_by_source(tmp_path / "pubmed26n0002.xml")
    write_files(tmp_path, "PMC1.xml")
    assert discover_parts_by_source(tmp_path) == {"PMC0000xxxx": ["PMC1.xml"]}


# Groups


@pytest.mark.parametrize(
    ("path", "group", "name"),
    [
        ("PMC10000.xml", "PMC0001xxxx", "PMC10000.xml"),
        ("deep/er/PMC123.2.xml.gz", "PMC0000xxxx", "PMC123.2.xml.gz"),
        ("PMC1230001.1-0a1b2c3d.xml", "PMC0123xxxx", "PMC1230001.1-0a1b2c3d.xml"),
        ("PMC123456789.xml", "PMC12345xxxx", "PMC123456789.xml"),
        ("PMC1230001.2/fulltext.xml", "PMC0123xxxx", "PMC1230001.2/fulltext.xml"),
        ("PMC1230001/PMC45.xml", "PMC0000xxxx", "PMC45.xml"),
        ("PMC1230001/x/fulltext.xml", "articles-000-of-001", "x/fulltext.xml"),
        ("Journal_2011_PMC3000001.nxml", "PMC0300xxxx", "Journal_2011_PMC3000001.nxml"),
        ("1471-2105-1-1.nxml", "articles-000-of-001", "in/1471-2105-1-1.nxml"),
        ("pmc12.xml", "articles-000-of-001", "in/pmc12.xml"),
        ("PMC12345678901.xml", "articles-000-of-001", "in/PMC12345678901.xml"),
        ("PMC" + "9" * 200 + ".xml", "articles-000-of-001", "in/PMC" + "9" * 200 + ".xml"),
    ],
)
def test_range_is_derived_from_the_file_or_folder_name(path: str, group: str, name: str) -> None:
    assert discover_parts_of_paths(path) == {group: [name]}


def test_digest_of_a_group_covers_names_and_bytes(tmp_path: Path) -> None:
    write_files(tmp_path, "in/PMC1.xml", "in/PMC2.xml")

    def compute_md5() -> str:
        [source] = discover(FILES, [str(tmp_path / "in")])
        return compute_input_md5(make_shards_job(tmp_path / "work"), source)

    digests = [compute_md5()]
    (tmp_path / "in" / "PMC2.xml").write_bytes(b"other bytes")
    digests.append(compute_md5())
    (tmp_path / "in" / "PMC2.xml").rename(tmp_path / "in" / "PMC3.xml")
    digests.append(compute_md5())
    write_files(tmp_path, "in/PMC4.xml")
    digests.append(compute_md5())
    assert len(set(digests)) == 4
    (tmp_path / "in" / "PMC4.xml").unlink()
    assert compute_md5() == digests[2]


def index_by_name(sources: list[SourceFile]) -> dict[str, SourceFile]:
    return {source.name: source for source in sources}


NAMES = st.one_of(
    st.tuples(st.integers(1, 50_000), st.sampled_from(["", ".1", ".2"])).map(
        lambda pair: f"PMC{pair[0]}{pair[1]}.xml"
    ),
    st.integers(1, 50).map(lambda number: f"article{number}/fulltext.nxml"),
    st.text("abc", min_size=1, max_size=3).map(lambda name: f"{name}.xml.gz"),
)


@settings(max_examples=examples(100))
@given(st.sets(NAMES, min_size=1, max_size=25), NAMES)
def test_added_article_changes_one_group(names: set[str], added: str) -> None:
    before = index_by_name(discover(NameOnlyStorage([f"/in/{name}" for name in names]), ["/in"]))
    after = index_by_name(discover(NameOnlyStorage([f"/in/{name}" for name in names | {added}]), ["/in"]))
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert len(changed) == (added not in names)
    for name in changed:
        assert f"/in/{added}" in [part.path for part in after[name].parts]


@pytest.mark.parametrize("pattern", ["in/{:05}.xml", "{:05}/fulltext.xml"])
def test_files_without_pmcid_are_distributed_evenly(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_sources, "MEAN_FILES_PER_GROUP", 100)
    paths = [f"/in/{pattern.format(number)}" for number in range(700)]
    sources = discover(NameOnlyStorage(paths), ["/in"])
    assert [source.name for source in sources] == [f"articles-{group:03}-of-008" for group in range(8)]
    assert sum(len(source.parts) for source in sources) == 700
    assert all(50 < len(source.parts) < 130 for source in sources)
    with_added_file = index_by_name(discover(NameOnlyStorage([*paths, "/in/in/new.xml"]), ["/in"]))
    assert sum(with_added_file[source.name] != source for source in sources) == 1


def test_more_than_256_groups_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_sources, "MEAN_FILES_PER_GROUP", 2)
    sources = discover(NameOnlyStorage([f"/in/in/{number}.xml" for number in range(2000)]), ["/in"])
    assert all(source.name.endswith("-of-1024") for source in sources)
    assert len(sources) > 800


def test_group_has_the_total_size_and_detects_changes(tmp_path: Path) -> None:
    paths = write_files(tmp_path, "PMC1.xml", "PMC2.xml")
    [before] = discover(FILES, [str(tmp_path)])
    assert before.size == 16
    assert before.path == f"{tmp_path}/PMC0000xxxx"
    assert before.stem == "PMC0000xxxx"
    assert is_unchanged(FILES, before)
    Path(paths[1]).write_bytes(b"grown ever so much")
    assert not is_unchanged(FILES, before)
    [after] = discover(FILES, [str(tmp_path)])
    assert after.stamp != before.stamp
    Path(paths[1]).unlink()
    assert not is_unchanged(FILES, after)


def collect_notices(*paths: str) -> list[str]:
    notices: list[str] = []
    discover(NameOnlyStorage([f"/in/{path}" for path in paths]), ["/in"], notices.append)
    return notices


def test_files_of_a_folder_that_are_not_read_are_counted() -> None:
    assert collect_notices("PMC1.xml", "a.tar.gz", "a.tar.gz.md5") == []
    assert collect_notices("PMC1.xml", "list.csv", "pubmed26n0001.xml.gz", "PUBMED26N0002.XML") == [
        "--input /in: 3 files are not read (only articles, packages and archives are): 1 *.csv, 1 *.gz, "
        "1 *.xml"
    ]


# Mirrors


def test_articles_of_a_mirror_are_found_by_its_lists() -> None:
    mirror = [
        "m/pmc/selected/PMC0000xxxx.parquet",
        "m/pmc/selected/PMC0123xxxx.parquet",
        "m/pmc/xml/PMC0000xxxx/PMC1.1-0a1b2c3d.xml",
        "m/pmc/xml/PMC0123xxxx/PMC1230001.1-0a1b2c3d.xml",
        "m/pmc/xml/PMC0200xxxx/PMC2000001.1-0a1b2c3d.xml",
        "m/pubmed/baseline/pubmed26n0001.xml.gz",
    ]
    lists: dict[str, list[str]] = {"PMC0000xxxx.parquet": [], "PMC0123xxxx.parquet": []}
    assert discover_parts_of_paths(*mirror) == lists
    other = "own/pmc/xml/PMC0000xxxx/PMC7.1-0a1b2c3d.xml"
    assert discover_parts_of_paths(*mirror, "m/pmc/PMC5.xml", other) == {
        "PMC0000xxxx": ["PMC5.xml", "PMC7.1-0a1b2c3d.xml"],
        **lists,
    }
    leftovers = "m/pmc/metadata/PMC0000xxxx.parquet", "m/pmc/reports/PMC0000xxxx.json"
    assert collect_notices(*mirror[:5], *leftovers) == []
    without_lists = ["pmc/xml/PMC0000xxxx/PMC1.1-0a1b2c3d.xml", "pmc/selected/notes.xml"]
    assert discover_parts_of_paths(*without_lists) == {
        "PMC0000xxxx": ["PMC1.1-0a1b2c3d.xml"],
        "articles-000-of-001": ["selected/notes.xml"],
    }


# Hostile names


def test_file_names_that_are_not_utf_8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/in\xff"
    os.mkdir(folder)
    for name in (b"\xe9t\xe9.xml", b"PMC1\xff.xml", b"PMC2.xml"):
        with open(folder + b"/" + name, "wb") as file:
            file.write(b"<article/>")
    sources = discover(FILES, [str(tmp_path)])
    for source in sources:
        assert is_unchanged(FILES, source)
        compute_input_md5(make_shards_job(tmp_path / "work"), source)
        for text in (source.name, source.path, *(part.name for part in source.parts)):
            text.encode()
    assert [[part.name for part in source.parts] for source in sources] == [
        ["PMC1?.xml", "PMC2.xml"],
        ["in?/?t?.xml"],
    ]


@settings(max_examples=examples(200))
@given(
    st.lists(
        st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), max_size=8)
        .map(lambda name: f"/in/{name}.xml")
        .filter(lambda path: not path.startswith("/in/.")),
        min_size=1,
        unique=True,
    ),
    st.randoms(),
)
def test_every_file_belongs_to_one_source(paths: list[str], shuffle: random.Random) -> None:
    sources = discover(NameOnlyStorage(paths), ["/in"])
    expected = [
        path for path in paths if not article_sources._PUBMED_FILE_NAME.fullmatch(path.rpartition("/")[2])
    ]
    assert sorted(part.path for source in sources for part in source.parts) == sorted(expected)
    shuffle.shuffle(paths)
    assert discover(NameOnlyStorage(paths), ["/in"]) == sources
    assert all(source.stem for source in sources)
