"""The reader of PubMed files: records of every kind in order, and what a rejected one leaves behind."""

from __future__ import annotations

import gc
from pathlib import Path

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.pubmed.documents import CitationReader
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.source_record import SourceRecord
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml


def read_records(path: Path, *records: str) -> list[SourceRecord]:
    path.write_bytes(pubmed_set_xml(*records))
    source = SourceFile(26, 1, path.name, str(path), path.stat().st_size, "")
    return list(CitationReader(PubMedConfig()).read_records(LocalStorage(), source))


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
