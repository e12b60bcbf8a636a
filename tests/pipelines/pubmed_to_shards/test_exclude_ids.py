"""``--exclude-ids``: the documents of a list are left out, nothing else changes, and no list is misread.

That any number of workers gives the same bytes is in test_dedup.py and test_find_overlap.py, from an object
store in test_beam_filesystem.py.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.lifecycle import exclusion_list, finalize, versions
from tests.support.corpus.jats_articles import article_xml, europepmc_package_xml, write_files
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.outputs import load_documents, load_manifest, published_digests

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def text_of(number: int) -> str:
    return f"Text {number} is here. Yes."


def in_pmc(pmid: int) -> str:
    """A citation of which the article is in PMC too, under ten times its number."""
    data = (
        f'<PubmedData><ArticleIdList><ArticleId IdType="pmc">PMC{10 * pmid}</ArticleId></ArticleIdList>'
        "</PubmedData></PubmedArticle>"
    )
    return citation_xml(pmid, text_of(pmid)).replace("</PubmedArticle>", data)


def citations(*numbers: int) -> list[str]:
    return [citation_xml(number, text_of(number)) for number in numbers]


def pubmed_files(folder: Path, *sets: bytes) -> Path:
    return write_files(folder, {f"pubmed26n{number:04d}.xml": one for number, one in enumerate(sets, 1)})


def ids_file(folder: Path, *lines: object) -> Path:
    path = folder / "ids.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def parsed(data: bytes) -> list[str]:
    ids: list[str] = exclusion_list.parse(io.BytesIO(data), "ids.txt").to_pylist()
    return ids


def reasons(output: Path) -> dict[str, str]:
    """Why each document under ``dropped/`` is there."""
    found: dict[str, str] = {}
    for path in output.glob("dropped/data-*"):
        for row in pa.ipc.open_stream(path.read_bytes()).read_all().select(["id", "reason"]).to_pylist():
            found[row["id"]] = row["reason"]
    return found


def times(output: Path) -> dict[str, int]:
    """When each shard was written, by its source."""
    return {path.name[5:18]: path.stat().st_mtime_ns for path in output.glob("data-*")}


def rewritten(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_the_documents_of_a_list_go_and_all_else_stays_byte_by_byte(
    tmp_path: Path, run: Run, capsys: Capture
) -> None:
    first = [*citations(11, 12, 13), in_pmc(14), in_pmc(15)]
    second = [*citations(21, 22), citation_xml(23, "")]
    inputs = pubmed_files(tmp_path / "in", pubmed_set_xml(*first), pubmed_set_xml(*second))
    listed = ("# benchmark", "11", "", " pubmed:12  # as in shards", "pmc:PMC140.1", "23", "99")
    ids = ids_file(tmp_path, *listed)
    words = ("--input", inputs, "--exclude-ids", ids, "--keep-dropped")
    assert run(*words, "--output", tmp_path / "out") == 0
    assert "3  dropped: excluded\n" in (said := capsys.readouterr().out)
    assert "3  of 5 ids to exclude dropped a document\n" in said
    facts = load_manifest(tmp_path / "out")
    assert list(facts["funnel"].items()) == [
        ("records", 8),
        ("dropped: no-abstract", 1),  # listed, but it would have been dropped anyway
        ("dropped: excluded", 3),
        ("kept", 4),
    ]
    assert (facts["exclusion_list"]["num_ids"], facts["exclusion_list"]["matched"]) == (5, 3)
    assert facts["counts"]["documents"] == 4
    assert facts["warnings"] == []
    dropped = reasons(tmp_path / "out")
    assert dropped.pop("pubmed:23") == "no-abstract"
    assert dropped == dict.fromkeys(("pubmed:11", "pubmed:12", "pubmed:14"), "excluded")
    # The same records without abstracts are dropped for that: the shards are the same.
    for number in (11, 12, 14):
        first[number - 11] = first[number - 11].replace(text_of(number), "")
    write_files(inputs, {"pubmed26n0001.xml": pubmed_set_xml(*first)})
    assert run("--input", inputs, "--output", tmp_path / "without") == 0
    assert [shard["sha256"] for shard in load_manifest(tmp_path / "without")["outputs"]] == [
        shard["sha256"] for shard in facts["outputs"]
    ]
    assert load_documents(tmp_path / "out").keys() == {"pubmed:13", "pubmed:15", "pubmed:21", "pubmed:22"}


ARTICLES = {
    "PMC1_PMC20000.xml": europepmc_package_xml(
        [
            article_xml(11, pmid=1),
            article_xml(12, version=1),
            article_xml(12, "A newer one.", version=2),
            article_xml(13, pmid=3),
            article_xml(14, licence=None, pmid=4),
            article_xml(15),
        ]
    ),
    "loose.xml": article_xml(None, doi="10.5555/Odd"),
    "PMC40001.xml": article_xml(40001, pmid=7),
}


def test_articles_go_by_pmcid_pmid_and_document_id(tmp_path: Path, run_pmc: Run) -> None:
    inputs = write_files(tmp_path / "in", ARTICLES)
    ids = ids_file(tmp_path, "pubmed:1", "PMC12.1", "4", "doi:10.5555/ODD", "PMC40001", "7", "PMC1")
    words = ("--input", inputs, "--exclude-ids", ids)
    assert run_pmc(*words, "--keep-dropped", "--output", tmp_path / "out") == 0
    assert load_documents(tmp_path / "out").keys() == {"pmc:PMC13.1", "pmc:PMC15.1"}
    assert reasons(tmp_path / "out") == {
        "pmc:PMC11.1": "excluded",
        "pmc:PMC12.1": "superseded",
        "pmc:PMC12.2": "excluded",
        "pmc:PMC14.1": "licence",
        "doi:10.5555/odd": "excluded",
        "pmc:PMC40001.1": "excluded",
    }
    facts = load_manifest(tmp_path / "out")
    assert facts["funnel"]["dropped: excluded"] == 4
    assert (facts["exclusion_list"]["num_ids"], facts["exclusion_list"]["matched"]) == (
        7,
        5,
    )  # one is there by both its ids


def test_a_changed_list_rewrites_the_shards_it_touches_and_no_others(
    tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = pubmed_files(
        tmp_path / "in", *(pubmed_set_xml(*citations(number, number + 1)) for number in (10, 20, 30))
    )
    words = ("--input", inputs, "--output", tmp_path / "out")
    first, second, third = (f"pubmed26n000{number}" for number in (1, 2, 3))
    assert run(*words) == 0
    whole, began = published_digests(tmp_path / "out"), times(tmp_path / "out")

    def with_ids(*ids: object) -> dict[str, int]:
        assert run(*words, "--exclude-ids", ids_file(tmp_path, *ids)) == 0
        return times(tmp_path / "out")

    one = with_ids(10, 11, 20)  # of the first file nothing is left
    assert rewritten(began, one) == {first, second}
    assert first not in one
    capsys.readouterr()
    with_ids(20, "pubmed:10", 11, 11)
    assert "nothing to do" in capsys.readouterr().out
    other = with_ids(20, 10, 31, 77)
    assert rewritten(one, other) == {first, third}
    assert run(*words[:3], tmp_path / "fresh", "--exclude-ids", tmp_path / "ids.txt") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "fresh")

    # With new files and the same list, no source is looked at that has not changed.
    looked: list[int] = []
    ask = exclusion_list.extend_decisions

    def counted(*of: Any) -> tuple[pa.Table, int]:
        looked.append(1)
        return ask(*of)

    monkeypatch.setattr(exclusion_list, "extend_decisions", counted)
    (inputs / "pubmed26n0004.xml").write_bytes(pubmed_set_xml(*citations(77, 21)))
    assert run(*words, "--exclude-ids", tmp_path / "ids.txt") == 0
    assert rewritten(other, times(tmp_path / "out")) == {second, "pubmed26n0004"}
    assert len(looked) == 2
    assert load_documents(tmp_path / "out").keys() == {"pubmed:11", "pubmed:21", "pubmed:30"}

    (inputs / "pubmed26n0004.xml").unlink()
    assert run(*words) == 0
    assert published_digests(tmp_path / "out") == whole
    assert load_manifest(tmp_path / "out")["exclusion_list"] is None
    assert not (tmp_path / "out/.bioshards/exclusion_list.arrow").exists()


def test_a_run_killed_while_a_changed_list_is_applied_is_no_trap(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = pubmed_files(tmp_path / "in", pubmed_set_xml(*citations(10, 11, 12)))
    words = ("--input", inputs, "--output", tmp_path / "out")
    assert run(*words) == 0
    whole = published_digests(tmp_path / "out")

    def killed(self: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(finalize._Finalizer, "_count_funnel", killed)  # shard written, no report
        assert run(*words, "--exclude-ids", ids_file(tmp_path, 10)) == 1
    assert run(*words) == 0
    assert published_digests(tmp_path / "out") == whole


def test_nothing_comes_in_for_what_is_left_out(tmp_path: Path, run: Run) -> None:
    """No older version, no deleted record, no duplicate: a list only takes documents away."""
    inputs = pubmed_files(
        tmp_path / "in",
        pubmed_set_xml(
            citation_xml(1, "Older text. Yes."), citation_xml(2, "To be deleted. Yes."), *citations(3, 4)
        ),
        pubmed_set_xml(
            citation_xml(1, "Newer text. Yes."),
            citation_xml(5, text_of(3)),
            citation_xml(6, text_of(4)),
            deleted=(2,),
        ),
    )
    words = ("--input", inputs, "--dedup", "exact", "--keep-dropped", "--output")
    assert run(*words, tmp_path / "whole") == 0
    ids = ids_file(tmp_path, 1, 2, 3, 6)
    assert run(*words, tmp_path / "out", "--exclude-ids", ids) == 0
    whole = load_documents(tmp_path / "whole")
    assert load_documents(tmp_path / "out") == {"pubmed:4": whole["pubmed:4"]}
    funnel = load_manifest(tmp_path / "out")["funnel"]
    assert list(funnel.items())[1:-1] == [
        *(("dropped: deleted", 1), ("dropped: superseded", 1), ("dropped: duplicate", 2)),
        ("dropped: excluded", 2),
    ]
    assert load_manifest(tmp_path / "out")["exclusion_list"]["matched"] == 2
    pairs = [(one / "duplicates.tsv").read_text() for one in (tmp_path / "whole", tmp_path / "out")]
    assert pairs[0] == pairs[1]


def test_a_list_that_matches_nothing_is_warned_of(tmp_path: Path, run: Run, capsys: Capture) -> None:
    inputs = pubmed_files(tmp_path / "in", pubmed_set_xml(*citations(10)))
    words = ("--input", inputs, "--output", tmp_path / "out", "--exclude-ids")
    for ids, said in (
        (("# nothing", ""), "--exclude-ids lists no id"),
        ((99, "PMC99"), "none of the 2 ids of --exclude-ids names a document"),
    ):
        assert run(*words, ids_file(tmp_path, *ids)) == 0
        assert f"warning: {said}" in capsys.readouterr().err
        assert load_documents(tmp_path / "out").keys() == {"pubmed:10"}
        assert len(load_manifest(tmp_path / "out")["warnings"]) == 1
    assert run(*words, ids_file(tmp_path, 10)) == 3
    assert "no document was kept (records: 1, dropped: excluded: 1, kept: 0)" in capsys.readouterr().err


def test_a_list_that_cannot_be_read_stops_before_anything_is_written(
    tmp_path: Path, run: Run, run_pmc: Run, capsys: Capture
) -> None:
    wrong = ids_file(tmp_path, "1", "PMID 2")
    for one in (run, run_pmc):
        for path, said in (
            (tmp_path / "nowhere.txt", f"--exclude-ids {tmp_path}/nowhere.txt: there is no such file"),
            ("", "--exclude-ids : there is no such file"),  # of a variable that is not set
            (tmp_path, f"--exclude-ids {tmp_path} cannot be read: Is a directory"),
            (wrong, f"--exclude-ids: {wrong}, line 2: 'PMID 2' is not an id; a line is a PMID (12345678)"),
        ):
            assert one("--exclude-ids", path, "--output", tmp_path / "out") == 2
            assert said in capsys.readouterr().err
    assert one("--exclude-ids", ids_file(tmp_path, 1), "--output", tmp_path / "out", "--dry-run") == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"abc", "'abc' is not an id"),
        (b"0", "'0' is not an id"),
        (b"0123", "'0123' is not an id"),
        (b"12345678901", "'12345678901' is not an id"),
        (b"-1", "'-1' is not an id"),
        (b"1 2", "'1 2' is not an id"),
        (b"1,2", "'1,2' is not an id"),
        ("\u0661\u0662".encode(), "is not an id"),
        (b"pmc:123", "'pmc:123' is not an id"),
        (b"pubmed:PMC1", "'pubmed:PMC1' is not an id"),
        (b"PMC1.", "'PMC1.' is not an id"),
        (b"10.5555/1", "'10.5555/1' is not an id"),
        (b"doi:", "'doi:' is not an id"),
        (b"1#2", "'1#2' is not an id"),
        (b"\x1f\x8b\x08\x00\xff\xfe", "is not UTF-8"),
        (b"\x00" * 70, "'" + r"\x00" * 60 + "...' is not an id"),
        (b"1" * 200_000, "1...' is not an id"),
    ],
)
def test_a_line_that_is_no_id_is_named(line: bytes, said: str) -> None:
    with pytest.raises(exclusion_list.ExclusionListError) as raised:
        parsed(b"# ids\n1\n" + line + b"\n2\n")
    assert str(raised.value).startswith("ids.txt, line 3")
    assert said in str(raised.value)
    assert "PMC123456" in str(raised.value)


def test_ids_are_brought_to_one_form() -> None:
    assert parsed(b"") == parsed(b"\n  \n#1\n # 2") == []
    assert parsed(b"7\npubmed:7\npmid:7\npubmed:7 #8") == ["7"]
    assert parsed(b"PMC8\nPMC8.2\npmc:PMC8\npmc:PMC8.1\n") == ["PMC8"]
    assert parsed(b"doi:10.1002/A#b\t# c\n") == ["doi:10.1002/a#b"]
    assert parsed("\ufeff1\r\n2\r\n3".encode()) == ["1", "2", "3"]


ID = st.integers(1, 40).flatmap(
    lambda number: st.sampled_from([f"{number}", f"PMC{number}", f"doi:10.5555/{number}"])
)


@given(st.lists(ID))
def test_a_digest_is_that_of_the_sorted_lines(ids: list[str]) -> None:
    found = exclusion_list.parse(io.BytesIO("\n".join(ids).encode()), "ids.txt")
    lines = sorted(set(ids))
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    assert found.to_pylist() == lines
    assert exclusion_list.summarise(found) == exclusion_list.ExclusionList(len(lines), digest)


ROW = st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from([None, None, "short"]))


@given(st.lists(st.lists(ROW, max_size=8), max_size=4), st.sets(st.integers(0, 31)), st.sets(ID))
def test_verdicts_are_those_of_going_through_the_documents(
    batches: list[list[tuple[int, int, str | None]]], dead: set[int], ids: set[str]
) -> None:
    """PMIDs and PMCIDs of 0 stand for none; positions count over all batches."""
    expected: list[int] = []
    named: set[str] = set()
    staged = []
    at = 0
    for batch in batches:
        rows: list[dict[str, Any]] = []
        for pmid, pmcid, drop in batch:
            names = {str(pmid) if pmid else "", f"PMC{pmcid}" if pmcid else "", f"doi:10.5555/{at}"}
            if at not in dead and drop is None and names & ids:
                expected.append(at)
                named |= names & ids
            row: dict[str, Any] = {"id": f"doi:10.5555/{at}", "pmid": pmid or None, "drop_reason": drop}
            row |= {"pmcid": f"PMC{pmcid}" if pmcid else None, "origin": {"file": "a", "position": at}}
            rows.append(row)
            at += 1
        staged.append(pa.RecordBatch.from_pylist(rows, SCHEMA))
    positions = sorted(position for position in dead if position < at)
    reason = pa.array(["deleted"] * len(positions), versions.DECISION_SCHEMA.field("reason").type)
    columns = [pa.array(positions, pa.int32()), reason, pa.nulls(len(positions), pa.string())]
    decided = pa.table(columns, schema=versions.DECISION_SCHEMA)
    verdicts, found = exclusion_list.extend_decisions(staged, decided, pa.array(sorted(ids), pa.string()))
    listed = verdicts.filter(pc.equal(verdicts["reason"].cast(pa.string()), "excluded"))
    assert listed["position"].to_pylist() == expected
    assert found == len(named)
    assert verdicts.num_rows == len(positions) + len(expected)
    assert verdicts.schema == versions.DECISION_SCHEMA


SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("pmid", pa.int32()),
        ("pmcid", pa.string()),
        ("origin", pa.struct([("file", pa.string()), ("position", pa.int32())])),
        ("drop_reason", pa.dictionary(pa.int8(), pa.string())),
    ]
)
