"""Tests of ``--exclude-ids`` and ``--include-ids``: listed documents are dropped or kept, all else is
unchanged, invalid lists are refused.

Runs with several workers are tested in test_dedup.py and test_find_overlap.py, object stores in
test_memory_store_runs.py.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.lifecycle import id_lists
from bioshards.corpus.lifecycle.decisions import DECISION_SCHEMA
from tests.support.corpus.identified_documents import make_identified_document
from tests.support.corpus.jats_articles import article_xml, europepmc_package_xml, write_files
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml, write_pubmed_files
from tests.support.outputs import load_documents, load_manifest, published_digests

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def make_text(number: int) -> str:
    return f"Text {number} is here. Yes."


def make_citation_with_pmcid(pmid: int) -> str:
    """Return a citation with a PMCID of ten times its PMID."""
    data = (
        f'<PubmedData><ArticleIdList><ArticleId IdType="pmc">PMC{10 * pmid}</ArticleId></ArticleIdList>'
        "</PubmedData></PubmedArticle>"
    )
    return citation_xml(pmid, make_text(pmid)).replace("</PubmedArticle>", data)


def make_citations(*numbers: int) -> list[str]:
    return [citation_xml(number, make_text(number)) for number in numbers]


def write_ids_file(folder: Path, *lines: object) -> Path:
    path = folder / "ids.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def write_exclusions(folder: Path, *lines: object) -> Path:
    (folder / "exclusions").mkdir(exist_ok=True)
    return write_ids_file(folder / "exclusions", *lines)


def parse_ids(data: bytes) -> list[str]:
    ids: list[str] = id_lists.parse(io.BytesIO(data), "ids.txt").to_pylist()
    return ids


def read_drop_reasons(output: Path) -> dict[str, str]:
    """Return the drop reason of each document in ``dropped/``, by id."""
    reasons: dict[str, str] = {}
    for path in output.glob("dropped/*"):
        for row in pq.read_table(path, columns=["id", "reason"]).to_pylist():
            reasons[row["id"]] = row["reason"]
    return reasons


def read_modification_times(output: Path) -> dict[str, int]:
    """Return the modification time of each shard, by source file."""
    return {path.name[5:18]: path.stat().st_mtime_ns for path in output.glob("data/*")}


def find_rewritten_shards(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def test_listed_documents_are_dropped_and_all_other_bytes_stay(
    tmp_path: Path, run: Run, capsys: Capture
) -> None:
    first_citations = [
        *make_citations(11, 12, 13),
        make_citation_with_pmcid(14),
        make_citation_with_pmcid(15),
    ]
    second_citations = [*make_citations(21, 22), citation_xml(23, "")]
    inputs = write_pubmed_files(
        tmp_path / "in", pubmed_set_xml(*first_citations), pubmed_set_xml(*second_citations)
    )
    id_lines = ("# benchmark", "11", "", " pubmed:12  # as in shards", "pmc:PMC140.1", "23", "99")
    ids = write_ids_file(tmp_path, *id_lines)
    arguments = ("--input", inputs, "--exclude-ids", ids, "--keep-dropped")
    assert run(*arguments, "--output", tmp_path / "out") == 0
    assert "3  dropped: excluded\n" in (stdout := capsys.readouterr().out)
    assert "3  of 5 ids to exclude dropped a document\n" in stdout
    manifest = load_manifest(tmp_path / "out")
    assert list(manifest["funnel"].items()) == [
        ("records", 8),
        ("dropped: no-abstract", 1),  # listed, but it would have been dropped anyway
        ("dropped: excluded", 3),
        ("kept", 4),
    ]
    assert (manifest["exclusion_list"]["num_ids"], manifest["exclusion_list"]["matched"]) == (5, 3)
    assert manifest["counts"]["documents"] == 4
    assert manifest["warnings"] == []
    dropped = read_drop_reasons(tmp_path / "out")
    assert dropped.pop("pubmed:23") == "no-abstract"
    assert dropped == dict.fromkeys(("pubmed:11", "pubmed:12", "pubmed:14"), "excluded")
    # The same records without abstracts are dropped for that: the shards are the same.
    for number in (11, 12, 14):
        first_citations[number - 11] = first_citations[number - 11].replace(make_text(number), "")
    write_files(inputs, {"pubmed26n0001.xml": pubmed_set_xml(*first_citations)})
    assert run("--input", inputs, "--output", tmp_path / "without") == 0
    assert [shard["sha256"] for shard in load_manifest(tmp_path / "without")["outputs"]] == [
        shard["sha256"] for shard in manifest["outputs"]
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


def test_changed_list_rewrites_the_shards_and_new_files_only_affected_ones(
    tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = write_pubmed_files(
        tmp_path / "in", *(pubmed_set_xml(*make_citations(number, number + 1)) for number in (10, 20, 30))
    )
    arguments = ("--input", inputs, "--output", tmp_path / "out")
    first, second, third = (f"pubmed26n000{number}" for number in (1, 2, 3))
    assert run(*arguments) == 0
    original_digests, original_times = (
        published_digests(tmp_path / "out"),
        read_modification_times(tmp_path / "out"),
    )

    def run_with_ids(*ids: object) -> dict[str, int]:
        assert run(*arguments, "--exclude-ids", write_ids_file(tmp_path, *ids)) == 0
        return read_modification_times(tmp_path / "out")

    first_times = run_with_ids(10, 11, 20)  # drops all documents of the first file
    assert find_rewritten_shards(original_times, first_times) == {first, second, third}
    assert first not in first_times
    capsys.readouterr()
    run_with_ids(20, "pubmed:10", 11, 11)
    assert "nothing to do" in capsys.readouterr().out
    second_times = run_with_ids(20, 10, 31, 77)
    assert find_rewritten_shards(first_times, second_times) == {first, second, third}
    assert run(*arguments[:3], tmp_path / "fresh", "--exclude-ids", tmp_path / "ids.txt") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "fresh")

    # With new files and the same list, only changed sources are examined.
    calls: list[int] = []
    extend_decisions = id_lists.extend_decisions

    def count_call(*call_arguments: Any) -> tuple[pa.Table, int]:
        calls.append(1)
        return extend_decisions(*call_arguments)

    monkeypatch.setattr(id_lists, "extend_decisions", count_call)
    (inputs / "pubmed26n0004.xml").write_bytes(pubmed_set_xml(*make_citations(77, 21)))
    assert run(*arguments, "--exclude-ids", tmp_path / "ids.txt") == 0
    assert find_rewritten_shards(second_times, read_modification_times(tmp_path / "out")) == {
        second,
        "pubmed26n0004",
    }
    assert len(calls) == 2
    assert load_documents(tmp_path / "out").keys() == {"pubmed:11", "pubmed:21", "pubmed:30"}

    (inputs / "pubmed26n0004.xml").unlink()
    assert run(*arguments, "--allow-fewer-inputs") == 0
    assert published_digests(tmp_path / "out") == original_digests
    assert load_manifest(tmp_path / "out")["exclusion_list"] is None
    assert not (tmp_path / "out/.bioshards/exclusion_list.arrow").exists()


def test_excluded_documents_are_not_replaced_by_others(tmp_path: Path, run: Run) -> None:
    """Older versions, deleted records and duplicates stay dropped."""
    inputs = write_pubmed_files(
        tmp_path / "in",
        pubmed_set_xml(
            citation_xml(1, "Older text. Yes."), citation_xml(2, "To be deleted. Yes."), *make_citations(3, 4)
        ),
        pubmed_set_xml(
            citation_xml(1, "Newer text. Yes."),
            citation_xml(5, make_text(3)),
            citation_xml(6, make_text(4)),
            deleted=(2,),
        ),
    )
    arguments = ("--input", inputs, "--dedup", "exact", "--keep-dropped", "--output")
    assert run(*arguments, tmp_path / "whole") == 0
    ids = write_ids_file(tmp_path, 1, 2, 3, 6)
    assert run(*arguments, tmp_path / "out", "--exclude-ids", ids) == 0
    whole = load_documents(tmp_path / "whole")
    assert load_documents(tmp_path / "out") == {"pubmed:4": whole["pubmed:4"]}
    funnel = load_manifest(tmp_path / "out")["funnel"]
    assert list(funnel.items())[1:-1] == [
        *(("dropped: deleted", 1), ("dropped: superseded", 1), ("dropped: duplicate", 2)),
        ("dropped: excluded", 2),
    ]
    assert load_manifest(tmp_path / "out")["exclusion_list"]["matched"] == 2
    pairs = [(output / "duplicates.tsv").read_text() for output in (tmp_path / "whole", tmp_path / "out")]
    assert pairs[0] == pairs[1]


def test_list_without_matches_gives_a_warning(tmp_path: Path, run: Run, capsys: Capture) -> None:
    inputs = write_pubmed_files(tmp_path / "in", pubmed_set_xml(*make_citations(10)))
    arguments = ("--input", inputs, "--output", tmp_path / "out", "--exclude-ids")
    for ids, message in (
        (("# nothing", ""), "--exclude-ids lists no id"),
        ((99, "PMC99"), "none of the 2 ids of --exclude-ids matches a document"),
    ):
        assert run(*arguments, write_ids_file(tmp_path, *ids)) == 0
        assert f"warning: {message}" in capsys.readouterr().err
        assert load_documents(tmp_path / "out").keys() == {"pubmed:10"}
        assert len(load_manifest(tmp_path / "out")["warnings"]) == 1
    assert run(*arguments, write_ids_file(tmp_path, 10)) == 3
    assert "no document was kept (records: 1, dropped: excluded: 1, kept: 0)" in capsys.readouterr().err


def test_unreadable_list_is_refused_before_writing(
    tmp_path: Path, run: Run, run_pmc: Run, capsys: Capture
) -> None:
    invalid_list = write_ids_file(tmp_path, "1", "PMID 2")
    for run_pipeline in (run, run_pmc):
        for path, message in (
            (tmp_path / "nowhere.txt", f"--exclude-ids {tmp_path}/nowhere.txt: there is no such file"),
            ("", "--exclude-ids : there is no such file"),  # an unset shell variable
            (tmp_path, f"--exclude-ids {tmp_path} cannot be read: Is a directory"),
            (
                invalid_list,
                f"--exclude-ids: {invalid_list}, line 2: 'PMID 2' is not an id; a line is a PMID (12345678)",
            ),
        ):
            assert run_pipeline("--exclude-ids", path, "--output", tmp_path / "out") == 2
            assert message in capsys.readouterr().err
    assert (
        run_pipeline("--exclude-ids", write_ids_file(tmp_path, 1), "--output", tmp_path / "out", "--dry-run")
        == 0
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "message"),
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
def test_invalid_line_is_reported(line: bytes, message: str) -> None:
    with pytest.raises(id_lists.IdListError) as raised:
        parse_ids(b"# ids\n1\n" + line + b"\n2\n")
    assert str(raised.value).startswith("ids.txt, line 3")
    assert message in str(raised.value)
    assert "PMC123456" in str(raised.value)


def test_list_of_more_than_all_ids_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_lists, "MAX_LIST_BYTES", 1 << 20)
    assert len(parse_ids(b"\n" * (1 << 19) + b"1\n")) == 1
    with pytest.raises(
        id_lists.IdListError, match=r"ids\.txt has more than 1 MiB, .*: see that it is a list"
    ):
        parse_ids(b"\n" * ((1 << 20) + 1))


def test_ids_are_normalised() -> None:
    assert parse_ids(b"") == parse_ids(b"\n  \n#1\n # 2") == []
    assert parse_ids(b"7\npubmed:7\npmid:7\npubmed:7 #8") == ["7"]
    assert parse_ids(b"PMC8\nPMC8.2\npmc:PMC8\npmc:PMC8.1\n") == ["PMC8"]
    assert parse_ids(b"doi:10.1002/A#b\t# c\n") == ["doi:10.1002/a#b"]
    assert parse_ids("\ufeff1\r\n2\r\n3".encode()) == ["1", "2", "3"]


LISTED_IDS = st.integers(1, 40).flatmap(
    lambda number: st.sampled_from([f"{number}", f"PMC{number}", f"doi:10.5555/{number}"])
)


@given(st.lists(LISTED_IDS))
def test_digest_is_computed_from_sorted_lines(ids: list[str]) -> None:
    parsed_ids = id_lists.parse(io.BytesIO("\n".join(ids).encode()), "ids.txt")
    lines = sorted(set(ids))
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
    assert parsed_ids.to_pylist() == lines
    assert id_lists.summarise(parsed_ids) == id_lists.IdList(len(lines), digest)


STAGED_ROWS = st.tuples(st.integers(0, 40), st.integers(0, 40), st.sampled_from([None, None, "short"]))


@given(
    st.lists(st.lists(STAGED_ROWS, max_size=8), max_size=4), st.sets(st.integers(0, 31)), st.sets(LISTED_IDS)
)
def test_decisions_equal_those_of_a_scan_of_the_documents(
    batches: list[list[tuple[int, int, str | None]]], deleted: set[int], ids: set[str]
) -> None:
    """A PMID or PMCID of 0 means none; positions are counted over all batches."""
    expected: list[int] = []
    matched_ids: set[str] = set()
    staged = []
    position = 0
    for batch in batches:
        rows: list[dict[str, Any]] = []
        for pmid, pmcid, drop_reason in batch:
            names = {str(pmid) if pmid else "", f"PMC{pmcid}" if pmcid else "", f"doi:10.5555/{position}"}
            names.add(f"doi:10.5555/{40 - pmcid}" if pmcid else "")
            if position not in deleted and drop_reason is None and names & ids:
                expected.append(position)
                matched_ids |= names & ids
            row: dict[str, Any] = {
                "id": f"doi:10.5555/{position}",
                "pmid": pmid or None,
                "drop_reason": drop_reason,
            }
            row |= {"doi": f"10.5555/{40 - pmcid}" if pmcid else None}
            row |= {"pmcid": f"PMC{pmcid}" if pmcid else None, "origin": {"file": "a", "position": position}}
            rows.append(row)
            position += 1
        staged.append(pa.RecordBatch.from_pylist(rows, STAGED_SCHEMA))
    positions = sorted(index for index in deleted if index < position)
    reason = pa.array(["deleted"] * len(positions), DECISION_SCHEMA.field("reason").type)
    columns = [pa.array(positions, pa.int32()), reason]
    columns += [pa.nulls(len(positions), field.type) for field in list(DECISION_SCHEMA)[2:]]
    decisions = pa.table(columns, schema=DECISION_SCHEMA)
    extended, match_count = id_lists.extend_decisions(staged, decisions, pa.array(sorted(ids), pa.string()))
    excluded = extended.filter(pc.equal(extended["reason"].cast(pa.string()), "excluded"))
    assert excluded["position"].to_pylist() == expected
    assert match_count == len(matched_ids)
    assert extended.num_rows == len(positions) + len(expected)
    assert extended.schema == DECISION_SCHEMA


def test_inclusion_list_keeps_listed_documents_by_any_of_their_ids(
    tmp_path: Path, run: Run, run_pmc: Run, capsys: Capture
) -> None:
    citations = [make_citation_with_pmcid(14), citation_xml(15, make_text(11)), *make_citations(11, 12)]
    inputs = write_pubmed_files(
        tmp_path / "in", pubmed_set_xml(*citations, citation_xml(16, "")), pubmed_set_xml(*make_citations(12))
    )
    ids = write_ids_file(tmp_path, "PMC140", 15, "pubmed:12", 16, "doi:10.5555/ODD", "PMC11", 3, 99)
    arguments = ("--input", inputs, "--include-ids", ids, "--dedup", "exact", "--keep-dropped", "--output")
    assert run(*arguments, tmp_path / "out") == 0
    assert "3  of 8 ids to include kept a document\n" in capsys.readouterr().out
    # 15 has the text of 11, a lower PMID, which is not listed.
    assert load_documents(tmp_path / "out").keys() == {"pubmed:12", "pubmed:14", "pubmed:15"}
    assert read_drop_reasons(tmp_path / "out").pop("pubmed:11") == "not-included"
    manifest = load_manifest(tmp_path / "out")
    assert list(manifest["funnel"].items()) == [
        *(("records", 6), ("dropped: superseded", 1), ("dropped: no-abstract", 1)),
        *(("dropped: not-included", 1), ("kept", 3)),
    ]
    assert (manifest["inclusion_list"]["num_ids"], manifest["inclusion_list"]["matched"]) == (8, 3)
    assert manifest["config"]["include_ids"] == manifest["inclusion_list"]["sha256"]
    articles = write_files(tmp_path / "articles", ARTICLES)
    of_articles = ("--input", articles, "--include-ids", ids, "--output", tmp_path / "articles-out")
    assert run_pmc(*of_articles, "--exclude-ids", write_exclusions(tmp_path, 3)) == 0
    assert load_documents(tmp_path / "articles-out").keys() == {"pmc:PMC11.1", "doi:10.5555/odd"}
    manifest = load_manifest(tmp_path / "articles-out")
    assert [manifest[name]["matched"] for name in ("inclusion_list", "exclusion_list")] == [2, 1]
    capsys.readouterr()
    assert run_pmc(*of_articles) == 0  # another exclusion list, the same inclusion list
    assert load_manifest(tmp_path / "articles-out")["inclusion_list"]["matched"] == 3
    write_ids_file(tmp_path, 1)
    assert run_pmc(*of_articles) == 2
    assert "has another configuration: include_ids was" in capsys.readouterr().err


def test_empty_inclusion_list_is_refused(tmp_path: Path, run: Run, capsys: Capture) -> None:
    ids = write_ids_file(tmp_path, "# nothing")
    assert run("--include-ids", ids, "--output", tmp_path / "out") == 2
    assert f"--include-ids {ids} lists no id: no document would be kept" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@given(st.sets(LISTED_IDS), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_document_is_found_as_in_a_set(ids: set[str], pmid: int, pmcid: int, doi: int) -> None:
    document = make_identified_document(
        "pubmed:1", pmid or None, f"PMC{pmcid}" if pmcid else None, f"10.5555/{doi}" if doi else None
    )
    names = {str(document.pmid), f"PMC{pmcid}", f"doi:10.5555/{doi}"}
    note = make_identified_document("text:note-17", None, None, None)
    assert id_lists.has_document(pa.array(sorted({*ids, note.id}), pa.string()), note)
    assert id_lists.has_document(pa.array(sorted(ids), pa.string()), document) == bool(names & ids)


STAGED_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("pmid", pa.int32()),
        ("pmcid", pa.string()),
        ("doi", pa.string()),
        ("origin", pa.struct([("file", pa.string()), ("position", pa.int32())])),
        ("drop_reason", pa.dictionary(pa.int8(), pa.string())),
    ]
)
