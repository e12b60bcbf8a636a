"""Full text in folders and files: found once each, and dealt out to sources that depend on names alone.

A source makes a shard, so an article that turns up in another source makes two shards new; and an article
that is found twice, or whose range hangs on the order of inputs, makes another corpus of the same files.
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
from bioshards.corpus.lifecycle.input_digests import compute_input_md5
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile, is_unchanged
from bioshards.corpus.storage.storage_protocol import FileInfo

PROFILE = settings(derandomize=True, deadline=None, database=None)
FILES = LocalStorage()


class Named(LocalStorage):
    """Files that are there by name only: so many of them cost nothing."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = sorted(paths)

    def is_folder(self, path: str) -> bool:
        return path not in self.paths

    def walk(self, folder: str) -> list[FileInfo]:
        return [FileInfo(path, 10, "1-1") for path in self.paths if path.startswith(f"{folder}/")]

    def glob(self, pattern: str) -> list[FileInfo]:
        return [FileInfo(path, 10, "1-1") for path in self.paths if path == pattern]


def make(folder: Path, *names: str) -> list[str]:
    """Files of these names, below the folder; their full paths."""
    paths = []
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        paths.append(str(path))
    return paths


def found(*inputs: object, storage: LocalStorage = FILES) -> dict[str, list[str]]:
    """The sources by name, each with the names of its parts, in order."""
    sources = discover(storage, map(str, inputs))
    assert sources == sorted(sources)
    assert len({source.name for source in sources}) == len(sources)
    return {source.name: [part.name for part in source.parts] for source in sources}


def named(*paths: str) -> dict[str, list[str]]:
    """As :func:`found`, of a folder of files that are there by name only."""
    return found("/in", storage=Named([f"/in/{path}" for path in paths]))


# What is found


def test_a_folder_gives_its_full_text_at_any_depth_and_nothing_hidden(tmp_path: Path) -> None:
    make(
        tmp_path,
        *("PMC1.xml", "a/PMC2.nxml", "a/b/PMC3.xml.gz", "c/PMC4.nxml.gz"),
        *(
            "old.tar.gz",
            "a/older.tgz",
            "oldest.tar",
            "b/new.zip",
            "PMC5_PMC10000.xml.gz",
            "PMC10001_PMC20000.xml",
        ),
        *(".hidden/PMC6.xml", ".PMC7.xml", "a/.b/PMC8.xml", ".tmp-01"),
        *(
            "README.txt",
            "PMC9.pdf",
            "PMC10.XML.md5",
            "old.tar.gz.md5",
            "PMC11.json",
            "xml",
            "a.tar.bz2",
            "b.gz",
        ),
    )
    assert found(tmp_path) == {
        "PMC0000xxxx": ["PMC1.xml", "PMC2.nxml", "PMC3.xml.gz", "PMC4.nxml.gz"],
        "new.zip": [],
        "old.tar.gz": [],
        "older.tgz": [],
        "oldest.tar": [],
        "PMC5_PMC10000.xml.gz": [],
        "PMC10001_PMC20000.xml": [],
    }
    assert found(f"{tmp_path}/") == found(tmp_path)


def test_pubmeds_files_and_other_tables_are_no_full_text(tmp_path: Path) -> None:
    make(tmp_path, "pubmed/baseline/pubmed26n0001.xml.gz", "pubmed26n0002.xml", "table.parquet")
    make(
        tmp_path, "pmc/metadata/PMC0123xxxx.parquet", "selected/PMC0123xxxx.parquet", "pmc/selected/x.parquet"
    )
    with pytest.raises(InputNotFoundError, match="has no article, package or archive"):
        found(tmp_path)
    with pytest.raises(InputNotFoundError, match="names no full text"):
        found(tmp_path / "pubmed26n0002.xml")
    make(tmp_path, "PMC1.xml")
    assert found(tmp_path) == {"PMC0000xxxx": ["PMC1.xml"]}


@pytest.mark.parametrize("given_", ["nothing", "nothing/*.xml", "empty"])
def test_an_input_that_names_nothing_is_said_with_what_to_give(tmp_path: Path, given_: str) -> None:
    (tmp_path / "empty").mkdir()
    make(tmp_path, "PMC1.xml")
    with pytest.raises(InputNotFoundError) as caught:
        found(tmp_path, tmp_path / given_)
    message = str(caught.value)
    assert f"--input {tmp_path / given_} " in message
    assert ("has no article" if given_ == "empty" else "names no full text") in message
    assert all(word in message for word in (".nxml", ".tar.gz", ".zip", "PMC1_PMC20000.xml.gz"))


def test_a_glob_gives_whatever_it_names(tmp_path: Path) -> None:
    make(tmp_path, "a/PMC1.txt", "a/PMC2.xml", "b/PMC3.txt", "a/PMC4.zip")
    assert found(f"{tmp_path}/*/PMC*.txt") == {"PMC0000xxxx": ["PMC1.txt", "PMC3.txt"]}
    assert found(f"{tmp_path}/**/PMC2*") == {"PMC0000xxxx": ["PMC2.xml"]}
    assert found(tmp_path / "a" / "PMC4.zip") == {"PMC4.zip": []}


def test_a_file_that_two_inputs_name_is_one(tmp_path: Path) -> None:
    make(tmp_path, "a/PMC1.xml", "a/x.xml", "a/old.zip")
    inputs = [tmp_path, tmp_path / "a", f"{tmp_path}/a/*.xml", tmp_path / "a" / ".." / "a" / "PMC1.xml"]
    assert discover(FILES, map(str, inputs)) == discover(FILES, [str(tmp_path)])
    assert discover(FILES, [os.path.relpath(tmp_path)]) == discover(FILES, [str(tmp_path)])


def test_files_of_one_name_in_two_folders_are_two(tmp_path: Path) -> None:
    paths = make(tmp_path, "a/PMC1.xml", "b/PMC1.xml")
    [source] = discover(FILES, [str(tmp_path / "b"), str(tmp_path / "a")])
    assert [part.path for part in source.parts] == paths


@settings(PROFILE, max_examples=50)
@given(st.permutations(["PMC1.xml", "PMC20000.xml", "y.xml", "x.zip", "PMC1_PMC9.xml", "d/PMC7.2.xml"]))
def test_the_order_of_inputs_changes_nothing(names: list[str]) -> None:
    paths = [f"/in/{name}" for name in names]
    assert discover(Named(paths), paths) == discover(Named(paths), ["/in"])


# Groups


@pytest.mark.parametrize(
    ("path", "group", "name"),
    [
        ("PMC1.xml", "PMC0000xxxx", "PMC1.xml"),
        ("PMC9999.nxml", "PMC0000xxxx", "PMC9999.nxml"),
        ("PMC10000.xml", "PMC0001xxxx", "PMC10000.xml"),
        ("deep/er/PMC123.2.xml.gz", "PMC0000xxxx", "PMC123.2.xml.gz"),
        ("PMC1230001.1-0a1b2c3d.xml", "PMC0123xxxx", "PMC1230001.1-0a1b2c3d.xml"),
        ("PMC123456789.xml", "PMC12345xxxx", "PMC123456789.xml"),
        ("PMC1230001/fulltext.xml", "PMC0123xxxx", "PMC1230001/fulltext.xml"),
        ("PMC1230001.2/fulltext.xml", "PMC0123xxxx", "PMC1230001.2/fulltext.xml"),
        ("PMC1230001/PMC45.xml", "PMC0000xxxx", "PMC45.xml"),
        ("PMC1230001/x/fulltext.xml", "articles-000-of-001", "x/fulltext.xml"),
        ("Journal_2011_PMC3000001.nxml", "PMC0300xxxx", "Journal_2011_PMC3000001.nxml"),
        ("1471-2105-1-1.nxml", "articles-000-of-001", "in/1471-2105-1-1.nxml"),
        ("pmc12.xml", "articles-000-of-001", "in/pmc12.xml"),
        ("PMC.xml", "articles-000-of-001", "in/PMC.xml"),
        ("PMC12345678901.xml", "articles-000-of-001", "in/PMC12345678901.xml"),
        ("PMC" + "9" * 200 + ".xml", "articles-000-of-001", "in/PMC" + "9" * 200 + ".xml"),
    ],
)
def test_a_name_or_its_folder_says_in_which_range_an_article_is(path: str, group: str, name: str) -> None:
    assert named(path) == {group: [name]}


def test_parts_are_in_the_order_of_numbers_and_versions() -> None:
    names = ["PMC2.xml", "PMC10.xml", "PMC10.2.xml", "PMC10.10.xml", "PMC100.1.xml"]
    assert named(*sorted(names)) == {"PMC0000xxxx": names}


def test_what_is_in_a_group_does_not_depend_on_where_it_lies(tmp_path: Path) -> None:
    names = ["x/PMC1.xml", "x/PMC2/fulltext.xml", "x/a.xml", "x/b.nxml", "x/d/e.xml"]
    output_dir = OutputDir(str(tmp_path / "work"))
    digests = []
    for folder in ("one", "two/deeper"):
        make(tmp_path / folder, *names)
        sources = discover(FILES, [str(tmp_path / folder)])
        digests.append([(source.name, compute_input_md5(FILES, output_dir, source)) for source in sources])
    assert digests[0] == digests[1]
    for path in (tmp_path / "two").rglob("*.xml"):
        os.utime(path, ns=(1, 1))
    touched = discover(FILES, [str(tmp_path / "two")])
    assert [source.stamp for source in touched] != [source.stamp for source in sources]
    assert [(source.name, compute_input_md5(FILES, output_dir, source)) for source in touched] == digests[0]


def test_the_checksum_of_a_group_is_of_its_names_and_bytes(tmp_path: Path) -> None:
    make(tmp_path, "in/PMC1.xml", "in/PMC2.xml")

    def md5() -> str:
        [source] = discover(FILES, [str(tmp_path / "in")])
        return compute_input_md5(FILES, OutputDir(str(tmp_path / "work")), source)

    seen = [md5()]
    (tmp_path / "in" / "PMC2.xml").write_bytes(b"other bytes")
    seen.append(md5())
    (tmp_path / "in" / "PMC2.xml").rename(tmp_path / "in" / "PMC3.xml")
    seen.append(md5())
    make(tmp_path, "in/PMC4.xml")
    seen.append(md5())
    assert len(set(seen)) == 4
    (tmp_path / "in" / "PMC4.xml").unlink()
    assert md5() == seen[2]


def groups(sources: list[SourceFile]) -> dict[str, SourceFile]:
    return {source.name: source for source in sources}


NAMES = st.one_of(
    st.tuples(st.integers(1, 50_000), st.sampled_from(["", ".1", ".2"])).map(
        lambda of: f"PMC{of[0]}{of[1]}.xml"
    ),
    st.integers(1, 50).map(lambda number: f"article{number}/fulltext.nxml"),
    st.text("abc", min_size=1, max_size=3).map(lambda name: f"{name}.xml.gz"),
)


@settings(PROFILE, max_examples=100)
@given(st.sets(NAMES, min_size=1, max_size=25), NAMES)
def test_an_article_that_is_added_changes_its_own_group_only(names: set[str], added: str) -> None:
    before = groups(discover(Named([f"/in/{name}" for name in names]), ["/in"]))
    after = groups(discover(Named([f"/in/{name}" for name in names | {added}]), ["/in"]))
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert len(changed) == (added not in names)
    for name in changed:
        assert f"/in/{added}" in [part.path for part in after[name].parts]


@pytest.mark.parametrize("pattern", ["in/{:05}.xml", "{:05}/fulltext.xml"])
def test_many_unnamed_files_are_dealt_out_evenly(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_sources, "MEAN_FILES_PER_GROUP", 100)
    paths = [f"/in/{pattern.format(number)}" for number in range(700)]
    sources = discover(Named(paths), ["/in"])
    assert [source.name for source in sources] == [f"articles-{group:03}-of-008" for group in range(8)]
    assert sum(len(source.parts) for source in sources) == 700
    assert all(50 < len(source.parts) < 130 for source in sources)
    one_more = groups(discover(Named([*paths, "/in/in/new.xml"]), ["/in"]))
    assert sum(one_more[source.name] != source for source in sources) == 1


def test_more_groups_than_a_byte_can_tell_are_all_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_sources, "MEAN_FILES_PER_GROUP", 2)
    sources = discover(Named([f"/in/in/{number}.xml" for number in range(2000)]), ["/in"])
    assert all(source.name.endswith("-of-1024") for source in sources)
    assert len(sources) > 800


def test_a_source_of_many_knows_their_size_and_when_one_changes(tmp_path: Path) -> None:
    paths = make(tmp_path, "PMC1.xml", "PMC2.xml")
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


# Mirrors


def test_a_mirrors_lists_hide_the_articles_beside_them() -> None:
    mirror = [
        "m/pmc/selected/PMC0000xxxx.parquet",
        "m/pmc/selected/PMC0123xxxx.parquet",
        "m/pmc/xml/PMC0000xxxx/PMC1.1-0a1b2c3d.xml",
        "m/pmc/xml/PMC0123xxxx/PMC1230001.1-0a1b2c3d.xml",
        "m/pmc/xml/PMC0200xxxx/PMC2000001.1-0a1b2c3d.xml",
        "m/pubmed/baseline/pubmed26n0001.xml.gz",
    ]
    lists: dict[str, list[str]] = {"PMC0000xxxx.parquet": [], "PMC0123xxxx.parquet": []}
    assert named(*mirror) == lists
    other = "own/pmc/xml/PMC0000xxxx/PMC7.1-0a1b2c3d.xml"
    assert named(*mirror, "m/pmc/PMC5.xml", other) == {
        "PMC0000xxxx": ["PMC5.xml", "PMC7.1-0a1b2c3d.xml"],
        **lists,
    }


def test_without_its_lists_a_mirror_is_a_folder_like_any_other() -> None:
    paths = ["pmc/xml/PMC0000xxxx/PMC1.1-0a1b2c3d.xml", "pmc/selected/notes.xml"]
    assert named(*paths) == {
        "PMC0000xxxx": ["PMC1.1-0a1b2c3d.xml"],
        "articles-000-of-001": ["selected/notes.xml"],
    }


# Names that are meant to harm


@pytest.mark.parametrize(
    "name", ["PMC1\n.xml", "a b;rm -rf.xml", "[x].xml", "日本.xml", "%s.xml", "-rf.xml", "\\.xml"]
)
def test_odd_names_are_files_like_any_other(tmp_path: Path, name: str) -> None:
    [path] = make(tmp_path, name)
    [source] = discover(FILES, [str(tmp_path)])
    assert [part.path for part in source.parts] == [path]
    assert is_unchanged(FILES, source)
    compute_input_md5(FILES, OutputDir(str(tmp_path / "work")), source)


def test_a_name_that_is_no_utf_8_can_be_read_and_written_down(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/in\xff"
    os.mkdir(folder)
    for name in (b"\xe9t\xe9.xml", b"PMC1\xff.xml", b"PMC2.xml"):
        with open(folder + b"/" + name, "wb") as file:
            file.write(b"<article/>")
    sources = discover(FILES, [str(tmp_path)])
    for source in sources:
        assert is_unchanged(FILES, source)
        compute_input_md5(FILES, OutputDir(str(tmp_path / "work")), source)
        for text in (source.name, source.path, *(part.name for part in source.parts)):
            text.encode()
    assert [[part.name for part in source.parts] for source in sources] == [
        ["PMC1?.xml", "PMC2.xml"],
        ["in?/?t?.xml"],
    ]


@settings(PROFILE, max_examples=200)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), max_size=8).map(
            lambda name: f"/in/{name}.xml"
        ),
        min_size=1,
        unique=True,
    ),
    st.randoms(),
)
def test_whatever_files_are_called_each_is_in_one_source(paths: list[str], shuffle: random.Random) -> None:
    sources = discover(Named(paths), ["/in"])
    there = [
        path for path in paths if not article_sources._PUBMED_FILE_NAME.fullmatch(path.rpartition("/")[2])
    ]
    assert sorted(part.path for source in sources for part in source.parts) == sorted(there)
    shuffle.shuffle(paths)
    assert discover(Named(paths), ["/in"]) == sources
    assert all(source.stem for source in sources)
