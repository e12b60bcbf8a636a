"""Directories of documents as inputs: what two of them share."""

from __future__ import annotations

from bioshards.corpus.shards.input_dirs import DocumentsInput, describe_shared_sources


def test_inputs_that_were_made_from_the_same_file_are_named() -> None:
    inputs = [
        DocumentsInput(folder, "pubmed_to_shards", (), sources)
        for folder, sources in (
            ("one", {"0a": "pubmed26n0001.xml.gz", "0b": "pubmed26n0002.xml.gz"}),
            ("two", {"0b": "copy.xml.gz", "0c": "pubmed26n0003.xml.gz"}),
            ("three", {"0d": "pubmed26n0004.xml.gz"}),
        )
    ]
    [notice] = describe_shared_sources(inputs)
    assert notice.startswith("one and two were made from the same files (pubmed26n0002.xml.gz): ")
    assert describe_shared_sources(inputs[1:]) == []
