"""Checks before rows are built: abstracts with full text among the inputs, and the fit of the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

from bioshards.corpus.document import Document
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import pretraining_inputs
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from tests.support.vocab.block_factories import (
    build_from_group,
    count_text_tokens,
    count_word_tokens,
    make_abstracts,
    make_build_config,
    make_sentences_document,
    make_single_group,
    read_listed_rows,
    save_encoder,
    write_documents,
)
from tests.support.vocab.tiny_tokenizers import UNCASED, make_wordpiece

FILES = LocalStorage()


# Abstracts with full text


def write_full_text(
    folder: Path,
    ids: list[str],
    abstracts: DocumentsInput,
    articles: list[Document] | None = None,
    name: str = "a",
) -> DocumentsInput:
    """Write a full-text directory whose overlap list has these ids of an abstract directory."""
    identity = full_text_overlap.digest_abstracts(FILES, abstracts.folder)
    rows = [{"id": id_, "full_text_id": "pmc:PMC1.1", "matched_by": "pmid"} for id_ in ids]
    batches = [pa.RecordBatch.from_pylist(rows, full_text_overlap.OVERLAP_SCHEMA)]
    entry = full_text_overlap.write(
        FILES, str(folder / full_text_overlap.FILE_NAME), abstracts.folder, identity, batches
    )
    articles = articles or [make_sentences_document(f"pmc:PMC9{len(ids)}.1", "w1 w2 w3")]
    return write_documents(folder, {name: articles}, "pmc_to_shards", [entry])


def test_abstracts_with_full_text_are_dropped_and_counted(
    out: Path, tmp_path: Path, encoder: Encoder
) -> None:
    abstracts = write_documents(
        tmp_path / "abstracts", {"a": make_abstracts(1, 30), "b": make_abstracts(30, 60)}
    )
    full = write_full_text(tmp_path / "full", ["pubmed:3", "pubmed:7", "pubmed:40", "pubmed:9999"], abstracts)
    lists = pretraining_inputs.load_overlap_lists(FILES, [abstracts, full])
    (listed,) = document_shards.read_documents_manifest(FILES, full.folder).overlap
    assert lists == {abstracts.folder: {full.folder: listed.sha256}}
    config = make_build_config(encoder, ExampleRecipe("plain", 16))  # which loses nothing
    group = make_single_group(abstracts, overlap_lists=lists[abstracts.folder])
    result = build_from_group(out, group, config)
    assert (result.documents, result.dropped["overlap"]) == (59, 3)
    kept = [one for one in make_abstracts(1, 60) if one.pmid not in (3, 7, 40)]
    rows = read_listed_rows(out, result.outputs)
    assert count_text_tokens(rows) == count_word_tokens(encoder, kept)
    assert (
        make_single_group(abstracts, overlap_lists=lists[abstracts.folder]).name
        != make_single_group(abstracts).name
    )


def test_several_full_text_directories_list_several_abstract_directories(
    out: Path, tmp_path: Path, encoder: Encoder
) -> None:
    one = write_documents(tmp_path / "one", {"a": make_abstracts(1, 10)})
    two = write_documents(tmp_path / "two", {"a": make_abstracts(10, 20)})
    full = write_full_text(tmp_path / "full", ["pubmed:3"], one)
    more = write_full_text(
        tmp_path / "more",
        ["pubmed:3", "pubmed:5"],
        one,
        [make_sentences_document("pmc:PMC8.1", "w2")],
        "more",
    )
    other = write_full_text(
        tmp_path / "other", ["pubmed:11"], two, [make_sentences_document("pmc:PMC7.1", "w3")], "other"
    )
    lists = pretraining_inputs.load_overlap_lists(FILES, [one, two, full, more, other])
    assert {folder: set(full_text_folders) for folder, full_text_folders in lists.items()} == {
        one.folder: {full.folder, more.folder},
        two.folder: {other.folder},
    }
    for documents, num_dropped in ((one, 2), (two, 1)):
        result = build_from_group(
            out,
            make_single_group(documents, overlap_lists=lists[documents.folder]),
            make_build_config(encoder),
        )
        assert result.dropped["overlap"] == num_dropped


def test_empty_overlap_list_drops_nothing(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    one = write_documents(tmp_path / "one", {"a": make_abstracts(1, 10)})
    full = write_full_text(tmp_path / "full", [], one)
    lists = pretraining_inputs.load_overlap_lists(FILES, [one, full])
    result = build_from_group(
        out, make_single_group(one, overlap_lists=lists[one.folder]), make_build_config(encoder)
    )
    assert (result.dropped["overlap"], result.documents) == (0, 9)


def test_stale_overlap_list_is_refused(tmp_path: Path) -> None:
    before = write_documents(tmp_path / "one", {"a": make_abstracts(1, 10)})
    full = write_full_text(tmp_path / "full", ["pubmed:3"], before)
    updated = write_documents(tmp_path / "one", {"a": make_abstracts(1, 11)})
    message = r"full/overlap\.arrow lists abstracts of other shards than .*/one has"
    with pytest.raises(InputError, match=message):
        pretraining_inputs.load_overlap_lists(FILES, [updated, full])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (Path.unlink, "No such file or directory"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes, and its manifest lists"),
        (lambda path: path.write_bytes(bytes([*path.read_bytes()[:-1], 1])), "its SHA-256 is not the one"),
    ],
)
def test_missing_or_damaged_overlap_list_is_refused(
    damage: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    one = write_documents(tmp_path / "one", {"a": make_abstracts(1, 10)})
    full = write_full_text(tmp_path / "full", ["pubmed:3"], one)
    damage(tmp_path / "full" / full_text_overlap.FILE_NAME)
    with pytest.raises(InputError, match=f"{message}.*rerun pmc_to_shards with the same --find-overlap-with"):
        pretraining_inputs.load_overlap_lists(FILES, [one, full])


def test_overlap_list_is_ignored_without_abstracts(tmp_path: Path) -> None:
    one = write_documents(tmp_path / "one", {"a": make_abstracts(1, 10)})
    full = write_full_text(tmp_path / "full", ["pubmed:3"], one)
    assert pretraining_inputs.load_overlap_lists(FILES, [full]) == {}


def test_full_text_without_overlap_list_drops_nothing(tmp_path: Path) -> None:
    one = write_documents(tmp_path / "one", {"a": make_abstracts(1, 10)})
    full = write_documents(
        tmp_path / "full", {"x": [make_sentences_document("pmc:PMC1.1", "w1")]}, "pmc_to_shards"
    )
    assert pretraining_inputs.load_overlap_lists(FILES, [one, full]) == {one.folder: {}}
    assert pretraining_inputs.read_overlap_ids(FILES, one.folder, [], []).to_pylist() == []


# Fit of vocabulary and documents


def check_vocabulary(documents: DocumentsInput, encoder: Encoder, storage: LocalStorage = FILES) -> None:
    pretraining_inputs.check_vocabulary(storage, [documents], encoder, "VOCABULARY")


def write_sentences(folder: Path, *sentences: str) -> DocumentsInput:
    return write_documents(
        folder / "in",
        {
            "a": [
                make_sentences_document("pubmed:1", *sentences),
                make_sentences_document("pubmed:2", sentences[0]),
            ]
        },
    )


LOWER = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def cased(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    pieces = [*LOWER, *(f"##{one}" for one in LOWER), *LOWER.upper(), *(f"##{one}" for one in LOWER.upper())]
    return save_encoder(tmp_path_factory.mktemp("cased"), make_wordpiece(*pieces))


@pytest.fixture(scope="module")
def uncased(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    pieces = [*LOWER, *(f"##{one}" for one in LOWER)]
    return save_encoder(tmp_path_factory.mktemp("uncased"), make_wordpiece(*pieces, casing=UNCASED))


def test_matching_vocabulary_is_accepted(tmp_path: Path, cased: Encoder, uncased: Encoder) -> None:
    check_vocabulary(write_sentences(tmp_path / "1", "Cells grow", "cells"), cased)
    check_vocabulary(write_sentences(tmp_path / "2", "Cells grow"), uncased)
    check_vocabulary(write_sentences(tmp_path / "3", "cells grow"), uncased)


@pytest.mark.parametrize("missing", ["[CLS]", "[SEP]", "[MASK]"])
def test_a_vocabulary_without_a_special_token_is_refused(missing: str, tmp_path: Path) -> None:
    special = ["[UNK]", *({"[CLS]", "[SEP]", "[MASK]"} - {missing})]
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0, missing: 1}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in special])
    encoder = save_encoder(tmp_path / "vocabulary", tokenizer)
    message = rf"VOCABULARY has no special token \{missing}.*bioshards vocab build"
    with pytest.raises(InputError, match=message):
        check_vocabulary(write_sentences(tmp_path, "Cells"), encoder)


def test_vocabulary_with_too_many_unknown_tokens_is_refused(tmp_path: Path, uncased: Encoder) -> None:
    """The limit is 5 % of [UNK]: 5 % is accepted, 10 % is refused."""
    check_vocabulary(write_sentences(tmp_path / "fits", " ".join([*"abcdefghijklmnopqrs", "細"])), uncased)
    with pytest.raises(InputError, match=r"does not fit .*/in: 10% of the tokens .* \[UNK\]\. Build a"):
        check_vocabulary(
            write_sentences(tmp_path / "not", " ".join([*"abcdefghijklmnopqr", "細", "胞"])), uncased
        )


def test_unknown_token_may_be_an_ordinary_piece(tmp_path: Path) -> None:
    ids = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "cell": 4}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[MASK]"])
    with pytest.raises(InputError, match=r"67% of the tokens"):
        check_vocabulary(
            write_sentences(tmp_path, "cell mice mice"), save_encoder(tmp_path / "vocabulary", tokenizer)
        )


def test_cased_vocabulary_with_lower_case_documents_is_refused(tmp_path: Path, cased: Encoder) -> None:
    message = "is cased, and the documents are in lower case.*--lower-case"
    with pytest.raises(InputError, match=message):
        check_vocabulary(write_sentences(tmp_path / "lower", "cells grow"), cased)
    check_vocabulary(write_sentences(tmp_path / "one", "cells grow", "cells Grow"), cased)


def test_only_the_first_500_documents_are_checked(tmp_path: Path, uncased: Encoder) -> None:
    known = [make_sentences_document(f"pubmed:{n}", "cells") for n in range(1, 501)]
    unknown = [make_sentences_document(f"pubmed:{n}", "細 胞 生 物 " * 9) for n in range(501, 560)]
    for first in ([*known, *unknown], [*unknown, *known]):
        documents = write_documents(
            tmp_path / "in", {"a": first + known}
        )  # two batches, the first of more than 500
        if first[0] is known[0]:
            check_vocabulary(documents, uncased)
        else:
            with pytest.raises(InputError, match="does not fit"):
                check_vocabulary(documents, uncased)


def test_documents_without_text_fit_any_vocabulary(tmp_path: Path, cased: Encoder) -> None:
    check_vocabulary(write_sentences(tmp_path, "", "\x07"), cased)


def test_a_directory_without_documents_is_refused(tmp_path: Path, cased: Encoder) -> None:
    message = r"/in has no documents. The funnel"
    with pytest.raises(InputError, match=message):
        check_vocabulary(write_documents(tmp_path / "in", {}), cased)
    with pytest.raises(InputError, match=message):
        check_vocabulary(write_documents(tmp_path / "in", {"a": [], "b": []}), cased)


def test_empty_shard_is_skipped_by_the_check(tmp_path: Path, uncased: Encoder) -> None:
    strange = [make_sentences_document("pubmed:1", "細 胞")]
    with pytest.raises(InputError, match="does not fit"):
        check_vocabulary(write_documents(tmp_path / "in", {"a": [], "b": strange}), uncased)


def test_unreachable_shard_is_reported_by_the_build(out: Path, tmp_path: Path, cased: Encoder) -> None:
    class UnreachableStorage(LocalStorage):
        def open(self, path: str) -> BinaryIO:
            if "://" not in path:
                return super().open(path)
            raise OSError("503 Service Unavailable")

    documents = replace(write_sentences(tmp_path, "Cells"), folder="gs://nowhere/in")
    check_vocabulary(documents, cased, UnreachableStorage())
    result = build_from_group(
        out, make_single_group(documents), make_build_config(cased), UnreachableStorage()
    )
    assert result.failures == ["gs://nowhere/in/data/data-a-00000.parquet: 503 Service Unavailable"]
