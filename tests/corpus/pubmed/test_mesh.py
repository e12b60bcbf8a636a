"""The tree of MeSH: what its branches hold, and what is said of a wrong file or branch."""

from __future__ import annotations

import hashlib
import io

import pytest

from bioshards.corpus.document import ArticleColumns, MeshHeading
from bioshards.corpus.pubmed.documents import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.pubmed.mesh import DOWNLOAD_PAGE, MeshTreeError, parse_tree
from bioshards.corpus.text_config import parse_names
from tests.support.corpus.citation_strategies import parse_record, small_record_xml

DATA = (
    b"Rest;G11\nSleep;G11.100\nSleep, REM;G11.100.200\nSleepwalking;G11.101\r\n"
    b"Rest Disorders;C10\nSleepwalking;C10.300\nSleep;F02.500\nDreams;F02.500.100\nCaf\xc3\xa9s;J01\n"
)


def list_branches(names: str) -> set[str]:
    return {*parse_tree(io.BytesIO(DATA), "tree.bin").list_branches(parse_names(names))}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("branch:Rest; Sleepwalking", {"rest", "sleep", "sleep, rem", "sleepwalking"}),
        ("branch:sleep", {"sleep", "sleep, rem", "dreams"}),  # at two places
        ("Branch: G11.100", {"sleep", "sleep, rem"}),
        ("branch:c; branch:j01", {"rest disorders", "sleepwalking", "cafés"}),
        ("Rest; Mice", set()),
    ],
)
def test_branch_is_a_descriptor_and_all_below_it(names: str, expected: set[str]) -> None:
    assert list_branches(names) == expected


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            "branch:Slepe",
            "slepe is neither a descriptor nor a number of the tree of MeSH (did you mean Sleep?)",
        ),
        ("branch:C10.30", "c10.30 is neither"),
        ("branch:Z99", "z99 is neither"),
        ("branch:", "give branch:Neoplasms or branch:C04"),
    ],
)
def test_unknown_branch_is_refused(names: str, message: str) -> None:
    with pytest.raises(MeshTreeError) as raised:
        list_branches(names)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\r\n", "tree.bin is empty"),
        (b"Rest;G11\n\nSleep\n", "tree.bin, line 3 is no line of a MeSH tree"),
        (b"Rest,G11\n", "line 1"),
        (b"Rest;G1\n", "line 1"),
        (b";G11\n", "line 1"),
        (b"\xff\xfe;G11\n", "line 1"),
        (b"Rest;G11\n" * 2_000_000, "tree.bin has more than 16 MiB"),
    ],
)
def test_other_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(MeshTreeError) as raised:
        parse_tree(io.BytesIO(data), "tree.bin")
    assert message in str(raised.value)
    assert DOWNLOAD_PAGE in str(raised.value)


@pytest.mark.parametrize(
    ("mesh", "drop_mesh", "reason"),
    [
        ("branch:Sleep", "", None),
        ("branch:Rest Disorders", "", "mesh"),
        ("branch:Rest Disorders; Mice", "", None),
        ("", "branch:G11", "mesh"),
        ("", "branch:C10; branch:Caf\u00e9s", None),
        ("Mice", "branch:F", "mesh"),
    ],
)
def test_filters_take_branches(mesh: str, drop_mesh: str, reason: str | None) -> None:
    config = PubMedConfig(mesh=parse_names(mesh), drop_mesh=parse_names(drop_mesh))
    config = config.with_mesh_tree(parse_tree(io.BytesIO(DATA), "tree.bin"))
    names = ("Mice", "Dreams", *(["Sleep, REM"] if "G11" in drop_mesh else []))
    headings = tuple(MeshHeading(name, None, False, ()) for name in names)
    citation = parse_record(small_record_xml())._replace(columns=ArticleColumns(mesh=headings))
    assert CitationDocumentBuilder(config).build_document(citation, "a.xml", 0)[0] == reason
    settings = config.to_dict()
    assert settings["mesh_tree_sha256"] == hashlib.sha256(DATA).hexdigest()
    assert "mesh_branches" not in settings
