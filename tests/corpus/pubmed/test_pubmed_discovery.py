"""Discovery of PubMed's input files, and the order in which they are applied."""

from __future__ import annotations

import errno
import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.errors import InputUnreadableError
from bioshards.corpus.pubmed.discovery import check_numbers, discover_sources, source_from_file
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import FileInfo, OnRepeatedFolder
from tests.support.hypothesis_profiles import examples

FILES = LocalStorage()


def create_source(path: str) -> SourceFile:
    return source_from_file(FileInfo(path, 1, "1-1"))


def write_files(folder: Path, *names: str) -> list[str]:
    """Write a file for each name below the folder; return the full paths."""
    paths = []
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        paths.append(str(path))
    return paths


def discover_paths(*inputs: str | Path) -> list[str]:
    return [item.path for item in discover_sources(FILES, [str(path) for path in inputs])]


# Order


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("pubmed26n0001.xml.gz", (26, 1)),
        ("pubmed26n1335.xml", (26, 1335)),
        ("pubmed27n12345.xml.gz", (27, 12345)),
        ("medline16n0902.xml.gz", (16, 902)),
        ("medline09n0001.xml", (9, 1)),
        ("pubmedsample18n0001.xml.gz", (18, 1)),
        ("medsamp2014.xml", (14, 0)),
        ("medsamp2009a.xml.gz", (9, 0)),
        ("my_pubmed26n0007_part.xml", (26, 7)),
    ],
)
def test_year_and_number_are_parsed_from_the_name(name: str, key: tuple[int, int]) -> None:
    source = create_source(f"/data/{name}")
    assert (source.year, source.number) == key
    assert source.is_ordered
    assert source.name == name
    assert create_source(f"gs://bucket/99n0001/{name}") > create_source("gs://bucket/pubmed00n0000.xml")
    assert (create_source(f"s3://b/99n0001/{name}").year, create_source(f"C:\\99n0001\\{name}").name) == (
        key[0],
        name,
    )


@pytest.mark.parametrize(
    "name", ["articles.xml", "pubmed26.xml.gz", "n0001.xml", "26n001.xml", "26n1234567.xml", "medsamp14.xml"]
)
def test_names_without_a_number_are_not_ordered(name: str) -> None:
    assert not create_source(f"/pubmed26n0001/{name}").is_ordered


NAMES = st.tuples(
    st.sampled_from(["pubmed", "medline", "x", ""]), st.integers(0, 99), st.integers(0, 99999)
).map(lambda part: f"{part[0]}{part[1]:02d}n{part[2]:04d}.xml.gz") | st.text("abn0 .", min_size=1, max_size=6)


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.sampled_from(["/a/", "/b/", "gs://c/"]), NAMES).map("".join), unique=True),
    st.randoms(),
)
def test_order_is_by_year_number_name_and_path(paths: list[str], shuffle: random.Random) -> None:
    expected = sorted(map(create_source, paths))
    shuffle.shuffle(paths)
    assert sorted(map(create_source, paths)) == expected

    def sort_key(path: str) -> tuple[bool, int, int, str, str]:
        name = path.rpartition("/")[2]
        match = re.search(r"(\d\d)n(\d{4,6})(?!\d)", name)
        year, number = (int(match[1]), int(match[2])) if match else (0, 0)
        return match is None, year, number, name, path

    assert [item.path for item in expected] == sorted(paths, key=sort_key)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("pubmed26n0001.xml.gz", "pubmed26n0001"),
        ("pubmed26n0001.xml", "pubmed26n0001"),
        ("my file (1).xml", "my_file_1_"),
        ("a.xml.part.xml.gz", "a.part"),
        ("données.XML", "donn_es.XML"),
        (".xml", "file"),
        ("...", "file"),
        ("日本.xml", "_"),
        ("noending", "noending"),
    ],
)
def test_stem_is_the_name_without_extensions(name: str, stem: str) -> None:
    assert create_source(f"/data/{name}").stem == stem


@settings(max_examples=examples(300))
@given(st.text(min_size=1, max_size=20).map(lambda name: name + ".xml") | st.text(max_size=20))
def test_stem_is_a_safe_file_name(name: str) -> None:
    assert re.fullmatch(r"(?!\.)[A-Za-z0-9_.@-]+", create_source(f"/data/{name}").stem)


# Discovery


def test_folder_is_searched_recursively_without_hidden_files(tmp_path: Path) -> None:
    expected = write_files(
        tmp_path, "b/pubmed26n0001.xml.gz", "pubmed26n0002.xml", "a/b/pubmed26n0003.xml.gz"
    )
    write_files(tmp_path, ".hidden/pubmed26n0004.xml", "a/.b/pubmed26n0004.xml", ".pubmed26n0005.xml")
    write_files(tmp_path, "pubmed26n0001.xml.gz.md5", "pubmed26n0006.xml.gz.part", "README.txt", "xml")
    assert discover_paths(tmp_path) == discover_paths(f"{tmp_path}/") == expected
    assert discover_paths(tmp_path / ".hidden") == [f"{tmp_path}/.hidden/pubmed26n0004.xml"]
    link = tmp_path / "pubmed26n0004.xml"
    link.symlink_to(tmp_path / "gone.xml")
    assert discover_paths(tmp_path) == [*expected, str(link)]
    assert discover_sources(FILES, []) == []


def test_file_named_twice_is_one_source_and_copies_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, copy = write_files(
        tmp_path, "in/pubmed26n0001.xml", "in/pubmed26n0002.xml", "a/pubmed26n0002.xml"
    )
    monkeypatch.chdir(tmp_path / "in")
    spellings = [
        *(one, "pubmed26n0001.xml", "./pubmed26n0001.xml", "../in/pubmed26n0001.xml", "*1.xml"),
        f"{tmp_path}/in/../in//pubmed26n0001.xml",
    ]
    for spelling in spellings:
        assert discover_paths(spelling) == discover_paths(spelling, one) == [one]
    assert discover_paths(*spellings, ".", tmp_path / "in", "*.xml") == [one, two]
    assert discover_paths(tmp_path / "in", tmp_path / "a") == [one, copy, two]
    assert discover_paths(tmp_path / "a", tmp_path / "in") == [one, copy, two]


@pytest.mark.parametrize(
    "name", ["download", "pubmed.bin", ".hidden.xml", "a b.XML", "[x].xml", "what?.xml", "*"]
)
def test_single_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    expected = write_files(tmp_path, name, "xother.xml")[:1]
    assert discover_paths(tmp_path / name) == expected


@pytest.mark.parametrize("folder", ["[x]", "a*b", "what?", "[!a]", "with blank", "ünïcode", "**"])
def test_folder_names_may_contain_glob_characters(tmp_path: Path, folder: str) -> None:
    expected = write_files(tmp_path, f"{folder}/in/pubmed26n0001.xml")
    write_files(tmp_path, "x/pubmed26n0009.xml", "axb/pubmed26n0009.xml", "whatx/pubmed26n0009.xml")
    assert discover_paths(tmp_path / folder) == expected
    assert discover_paths(expected[0]) == expected


@pytest.mark.parametrize(
    "name", ["pubmed26n0001.XML", "pubmed26n0001.xml.GZ", "pubmed26n0001.XML.gz", "PUBMED26N0001.Xml"]
)
def test_file_names_of_any_case_are_taken(tmp_path: Path, name: str) -> None:
    expected = write_files(tmp_path, name)
    [source] = discover_sources(FILES, [str(tmp_path)])
    assert [source.path] == expected
    assert (source.year, source.number) == (26, 1)


def collect_notices(*inputs: str | Path) -> list[str]:
    notices: list[str] = []
    discover_sources(FILES, [str(path) for path in inputs], notices.append)
    return notices


def test_files_of_a_folder_that_are_not_read_are_counted(tmp_path: Path) -> None:
    write_files(
        tmp_path, "pubmed26n0001.xml.gz", "pubmed26n0001.xml.gz.md5", "pubmed26n0002.xml", ".hidden.txt"
    )
    assert collect_notices(tmp_path) == []
    write_files(tmp_path, "a.txt", "b/c.TXT", "b/pubmed26n0003.xml.bz2", "b/other.xml.md5", "README")
    assert collect_notices(tmp_path, tmp_path / "pubmed26n0001.xml.gz") == [
        f"--input {tmp_path}: 5 files are not read (only *.xml and *.xml.gz are): 2 *.txt, 1 *.bz2, 1 *.md5, "
        "1 without an extension"
    ]


def test_hidden_files_are_counted_as_not_read(tmp_path: Path) -> None:
    """Not those of a folder that is hidden itself, nor temporary files, nor a link of an editor's lock."""
    write_files(tmp_path, "pubmed26n0001.xml.gz", ".pubmed26n0002.xml.gz", "a/._pubmed26n0003.XML")
    write_files(tmp_path, ".hidden.txt", ".b/pubmed26n0004.xml", ".tmp-c.xml", ".part-1234-pubmed26n5.xml.gz")
    (tmp_path / ".#pubmed26n0001.xml").symlink_to("nobody@nowhere")
    assert collect_notices(tmp_path) == [
        f"--input {tmp_path}: 3 files are not read (only *.xml and *.xml.gz are): 3 hidden"
    ]
    (tmp_path / "README").touch()
    assert collect_notices(tmp_path)[0].endswith("are): 3 hidden, 1 without an extension")


def test_linked_folders_are_read_once(tmp_path: Path) -> None:
    write_files(tmp_path, "in/pubmed26n0001.xml", "elsewhere/pubmed26n0002.xml")
    (tmp_path / "in/more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    assert discover_paths(tmp_path / "in") == [
        f"{tmp_path}/in/pubmed26n0001.xml",
        f"{tmp_path}/in/more/pubmed26n0002.xml",
    ]
    assert collect_notices(tmp_path / "in") == [
        f"--input {tmp_path}/in: {tmp_path}/in/loop is the same folder as {tmp_path}/in and is read once"
    ]


# Numbers and years


@pytest.mark.parametrize(
    ("names", "also", "notices"),
    [
        (("pubmed26n0001.xml", "pubmed26n0002.xml.gz", "more/pubmed26n0002.xml"), (), []),
        (("pubmed26n1335.xml", "pubmed26n1336.xml", "other.xml", "medsamp2024.xml"), (), []),
        (
            ("pubmed26n0001.xml", "pubmed26n0002.xml", "pubmed26n0004.xml"),
            (),
            [
                "The inputs have no pubmed26n0003: 1 of the files up to pubmed26n0004 is missing. The result "
                "is without its citations, its revisions and its deletions: older versions of citations "
                "stay, and deleted ones"
            ],
        ),
        (("pubmed26n0001.xml", "pubmed26n0004.xml"), ("pubmed26n0002.xml.gz", "pubmed26n0003.xml.gz"), []),
        (
            ("pubmed26n0001.xml", "pubmed26n0005.xml", "pubmed26n1000.xml"),
            ("pubmed26n0004.xml.gz",),
            [
                "The inputs have no pubmed26n0002 to pubmed26n0003, pubmed26n0006 to pubmed26n0999: 996 of "
                "the files up to pubmed26n1000 are missing. The result is without their citations, their "
                "revisions and their deletions: older versions of citations stay, and deleted ones"
            ],
        ),
        (
            ("pubmed25n0001.xml", "pubmed26n0001.xml", "pubmed26n0002.xml"),
            (),
            [
                "The inputs are of 2 years, pubmed25 (1 file) and pubmed26 (2 files). A baseline has all "
                "citations of the years before, so that the version of the later year is kept, and citations "
                "that NLM has removed since then stay. Give the files of one year, unless you mean this"
            ],
        ),
    ],
)
def test_missing_numbers_and_several_years_are_said(
    names: tuple[str, ...], also: tuple[str, ...], notices: list[str]
) -> None:
    sources = sorted(create_source(f"/in/{name}") for name in names)
    assert check_numbers(sources, also) == notices


# Missing inputs


def test_unreadable_folder_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, "in/pubmed26n0001.xml", "in/locked/pubmed26n0002.xml")

    class LockedStorage(LocalStorage):
        def walk(
            self,
            folder: str,
            on_repeated_folder: OnRepeatedFolder | None = None,
            with_hidden_files: bool = False,
        ) -> list[FileInfo]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"{folder}/locked")

    with pytest.raises(InputUnreadableError) as error_info:
        discover_sources(LockedStorage(), [f"{tmp_path}/in"])
    assert str(error_info.value) == (
        f"--input {tmp_path}/in: {tmp_path}/in/locked cannot be read (Permission denied), so that its files "
        "would be missing. Permit this user to read it, or give the folders and files beside it"
    )


def test_broken_link_that_may_be_a_folder_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, "in/pubmed26n0001.xml")
    (tmp_path / "in/more").symlink_to(tmp_path / "unmounted")
    with pytest.raises(InputUnreadableError) as error_info:
        discover_sources(FILES, [f"{tmp_path}/in"])
    assert str(error_info.value) == (
        f"--input {tmp_path}/in: {tmp_path}/in/more is a link to {tmp_path}/unmounted, which does not exist: "
        "if it is a folder, its files would be missing. Restore what it links to, or remove the link"
    )


@pytest.mark.parametrize("given", ["in", "in/pubmed26n0002.xml", "in/*.xml"])
def test_pipe_is_an_error(tmp_path: Path, given: str) -> None:
    write_files(tmp_path, "in/pubmed26n0001.xml")
    os.mkfifo(tmp_path / "in/pubmed26n0002.xml")
    with pytest.raises(InputUnreadableError) as error_info:
        discover_sources(FILES, [f"{tmp_path}/{given}"])
    assert str(error_info.value) == (
        f"--input {tmp_path}/{given}: {tmp_path}/in/pubmed26n0002.xml is a pipe or a device. "
        "Write its data to a file, and give it"
    )


@pytest.mark.parametrize("given", ["in", "in/pubmed26n0002-é.xml", "in/*.xml"])
def test_name_other_than_utf_8_is_an_error(tmp_path: Path, given: str) -> None:
    write_files(tmp_path, "in/pubmed26n0001.xml")
    latin_1 = os.fsdecode("pubmed26n0002-é.xml".encode("latin-1"))
    (tmp_path / "in" / latin_1).touch()
    with pytest.raises(InputUnreadableError) as error_info:
        discover_sources(FILES, [f"{tmp_path}/{given}".replace("pubmed26n0002-é.xml", latin_1)])
    assert str(error_info.value).endswith(
        f"the name of {tmp_path}/in/pubmed26n0002-\\xe9.xml is not in UTF-8, and documents name their file. "
        "Rename it"
    )
