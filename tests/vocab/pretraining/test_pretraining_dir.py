"""Publishing of pretraining sets: counts, problems, stale files, completeness."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lxml.html
import msgspec
import pyarrow as pa
import pytest
import yaml  # type: ignore[import-untyped]

from bioshards.corpus.lifecycle.job import is_up_to_date
from bioshards.corpus.manifest import (
    PretrainingCounts,
    PretrainingInput,
    PretrainingManifest,
    PretrainingRun,
    Shard,
)
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.output.rejects import RejectWriter
from bioshards.corpus.shards.pretraining_schema import make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import build, pretraining_dir
from bioshards.vocab.pretraining.build import BuildResult, PretrainingJob, ShardGroup
from bioshards.vocab.pretraining.example_recipes import OBJECTIVES, ExampleRecipe
from bioshards.vocab.pretraining.pretraining_dir import format_set_card
from tests.support.bit_flips import flip_bits
from tests.support.corpus.arrow_streams import write_stream
from tests.support.corpus.datasets_library import load_with_datasets
from tests.support.corpus.manifests import EMPTY_SPLIT, of_pretraining
from tests.support.vocab.block_factories import (
    build_from_group,
    list_files,
    make_abstracts,
    make_build_config,
    make_sentences_document,
    make_single_group,
    write_documents,
)

FILES = LocalStorage()


@pytest.fixture(autouse=True)
def loaded_vocabulary(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishing finds the vocabulary of :func:`make_job` as if a worker had loaded it."""
    monkeypatch.setitem(build._encoders, "5" * 64, encoder)


INPUTS = [PretrainingInput("pubmed_to_shards", "0" * 64, 1, 1, ())]


def make_job(
    out: Path, inputs: Sequence[PretrainingInput] = INPUTS, max_rejected: float = 0.001, **config: Any
) -> PretrainingJob:
    return PretrainingJob(
        storage=FILES,
        output=OutputDir(str(out)),
        config=msgspec.structs.replace(of_pretraining([]).config, **config),
        inputs=tuple(inputs),
        run=PretrainingRun(command=("test",), inputs=(), vocabulary="nowhere", started_at="then"),
        max_rejected=max_rejected,
    )


def publish(
    out: Path,
    *results: BuildResult,
    max_rejected: float = 0.001,
    **config: Any,
) -> str | None:
    job = make_job(out, max_rejected=max_rejected, **config)
    return pretraining_dir.publish(job, results).problem


def read_manifest(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return content


@pytest.mark.parametrize("objective", ["electra", "bert", "albert", "plain"])
def test_published_set_loads_with_datasets_and_shows_rows(
    objective: str, out: Path, tmp_path: Path, encoder: Encoder
) -> None:
    """pipelines/shards_to_pretraining/test_shards_to_pretraining.py compares the counts with the rows."""
    documents = [*make_abstracts(1, 70), make_sentences_document("pubmed:99", "")]
    groups = [
        make_single_group(write_documents(tmp_path / str(start), {"a": documents[start : start + 40]}))
        for start in (0, 40)
    ]
    config = make_build_config(encoder, ExampleRecipe(objective, 16))
    results = [build_from_group(out, group, config) for group in groups]
    assert publish(out, *results, objective=objective) is None
    counts = read_manifest(out)["counts"]
    assert (counts["documents"], counts["dropped"], counts["rejected"]) == (70, {"no-tokens": 1}, {})
    for split in ("train", "validation"):
        assert set(counts[split]["lost_tokens"]) <= {OBJECTIVES[objective].loss_reason}
    assert list(counts["years"]["pubmed"]) == ["2000", "2001", "2002"]
    assert_page_shows_three_rows(out, has_pairs=objective in ("bert", "albert"))
    opened = load_with_datasets(out)
    assert {name: len(rows) for name, rows in opened.items()} == {
        split: counts[split]["rows"] for split in ("train", "validation")
    }


def assert_page_shows_three_rows(out: Path, has_pairs: bool) -> None:
    tree: Any = lxml.html.document_fromstring((out / "report.html").read_bytes())
    [details] = [each for each in tree.iter("details") if "drawn at random" in each.text_content()]
    header, *lines = [[cell.text_content() for cell in row] for row in details.iter("tr")]
    assert header == ["", "segment", "tokens", "pieces; a trainer masks some of them, others in each epoch"]
    names = [name for name, *_ in lines if name]
    assert len(names) == 3
    for name, segment, num_tokens, pieces in lines:
        assert segment == "A" if name else "B"
        assert ("label" in name) == (has_pairs and segment == "A")
        assert re.fullmatch(r"(\[CLS\] )?((w\d+|\[SEP\]) )+\[SEP\]", pieces)
        assert pieces.startswith("[CLS]") == (segment == "A")
        assert int(num_tokens) == len(pieces.split())


def test_set_without_validation_documents_has_one_split(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    assert (
        publish(out, build_from_group(out, shard_group, make_build_config(encoder, validation_fraction=0)))
        is None
    )
    assert json.loads((out / "dataset_dict.json").read_text()) == {"splits": ["train"]}
    assert not (out / "validation").exists()
    assert read_manifest(out)["counts"]["validation"] == msgspec.to_builtins(EMPTY_SPLIT)
    assert list(load_with_datasets(out)) == ["train"]


# Problems that stop publishing


def make_result(name: str = "0" * 16, **more: Any) -> BuildResult:
    counts = Counter(documents=8, rows=5, tokens=50, special_tokens=10, input_tokens=40)
    outputs = [Shard("train/data-x-00000.arrow", 5, 1, "ab")]
    return BuildResult(name, outputs, split_counts={"train": counts}, documents=1000, **more)


def test_inconsistent_counts_are_not_published(out: Path) -> None:
    """One planned row is missing from the shards, or one input token from the counts."""
    lacking, too_many = make_result(), make_result()
    lacking.outputs = [msgspec.structs.replace(lacking.outputs[0], rows=4)]
    too_many.split_counts["train"]["input_tokens"] = 41
    for result, expected in (
        (lacking, "4 of 5 rows are in shards"),
        (too_many, "40 of 41 tokens are accounted for"),
    ):
        problem = publish(out, result)
        assert problem
        assert expected in problem
        assert "delete that folder and rerun" in problem
    assert list_files(out) == set()


def test_unreadable_shards_stop_publishing_and_are_listed(out: Path) -> None:
    result = [BuildResult(str(n), failures=[f"in/{n}: gone"]) for n in range(7, 0, -1)]
    problem = publish(out, make_result(), *result)
    assert problem
    assert problem.startswith(
        "7 shards cannot be read (in/1: gone; in/2: gone; in/3: gone; in/4: gone; in/5: gone (and 2 more))"
    )
    assert "rerun this one" in problem
    assert list_files(out) == set()


def test_any_flipped_bit_of_the_report_on_a_group_is_mended(
    out: Path, tmp_path: Path, encoder: Encoder
) -> None:
    group = make_single_group(write_documents(tmp_path / "one", {"a": make_abstracts(1, 3)}))
    config = make_build_config(encoder)
    expected = build_from_group(out, group, config)
    [path] = (out / ".bioshards/build_reports").iterdir()
    files, intact = list_files(out), path.read_bytes()
    for data in flip_bits(path):
        path.write_bytes(data)
        result = build_from_group(out, group, config)
        assert (result, result.damaged) == (expected, [str(path)])
        assert (list_files(out), path.read_bytes()) == (files, intact)


def test_too_many_rejected_documents_stop_publishing(out: Path) -> None:
    result = make_result(rejected=Counter({"too-long": 11}))
    rejects_path = f"{out}/rejected/{result.name}.jsonl"
    with RejectWriter(FILES, rejects_path) as rejects:
        for number in range(11):
            rejects.add_document("data/a.parquet", f"pubmed:{number}", "too-long", "9 tokens, more than 7")
    problem = publish(out, result, max_rejected=0.01)
    assert problem
    assert problem.startswith(
        "11 of 1,000 documents were rejected, more than --max-rejected 0.01 allows: "
        f"{rejects_path} (data/a.parquet, pubmed:0: 9 tokens, more than 7; "
    )
    assert "(and 6 more)" in problem
    assert list_files(out) == {f"rejected/{result.name}.jsonl"}
    schema = make_schema(100, False, {})
    rows = pa.record_batch([[[2, 9, 3]] * 5, [0] * 5], schema=schema)
    result.outputs = [write_stream(out, result.outputs[0].file, [rows], schema)]
    assert publish(out, result, max_rejected=0.011) is None
    assert read_manifest(out)["counts"]["rejected"] == {"too-long": 11}


@pytest.mark.parametrize("validation", [Counter(), Counter(documents=998, rows=99)])
def test_set_without_training_rows_is_not_published(validation: Counter[str], out: Path) -> None:
    dropped = Counter({"no-tokens": 1, "overlap": 2})
    result = BuildResult("x", split_counts={"validation": validation}, documents=1000, dropped=dropped)
    problem = publish(out, result)
    assert problem == (
        f"there is no row to train on: of 1,000 documents {validation['documents']} are in the validation "
        "split, 2 have their full text in another input, 1 have no tokens and 0 are rejected. "
        "Check --input and --validation-fraction"
    )
    assert publish(out) is not None
    assert list_files(out) == set()


def test_failed_publishing_leaves_all_files(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    result = build_from_group(out, shard_group, make_build_config(encoder))
    before = list_files(out)
    assert publish(out, result, BuildResult("bad", failures=["in/x: gone"])) is not None
    assert list_files(out) == before


# Files of earlier inputs


def test_publishing_removes_only_stale_files(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    result = build_from_group(out, shard_group, make_build_config(encoder))
    kept = list_files(out)
    other = "f" * 16
    leftovers = [
        f"train/data-{other}-00000.arrow",
        f"train/data-{shard_group.name}-00007.arrow",
        "validation/data-00000-of-00001.arrow",
        f".bioshards/build_reports/{other}.json",
        f"rejected/{other}.jsonl",
        f"rejected/{shard_group.name}.jsonl",
    ]
    others = ["train/notes.txt", "README.md", "report.html", ".bioshards/config.json"]
    for name in (*leftovers, *others):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("x")
    assert publish(out, result) is None
    published = {
        "manifest.json",
        "dataset_dict.json",
        *(f"{split}/{name}.json" for split in ("train", "validation") for name in ("state", "dataset_info")),
    }
    assert list_files(out) == kept | set(others) | published


def test_publishing_removes_an_empty_validation_split(
    out: Path, tmp_path: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    """This happens when PubMed deletes the only validation documents."""
    assert publish(out, build_from_group(out, shard_group, make_build_config(encoder))) is None
    config = CountConfig(validation_fraction=0.25)
    kept = [item for item in make_abstracts(1, 50) if not config.is_validation(item.id, item.pmid)]
    updated = make_single_group(write_documents(tmp_path / "updated", {"a": kept}))
    assert publish(out, build_from_group(out, updated, make_build_config(encoder))) is None
    assert not [name for name in list_files(out) if name.startswith("validation")]
    assert list(load_with_datasets(out)) == ["train"]


def test_reset_set_cannot_be_loaded(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    assert publish(out, build_from_group(out, shard_group, make_build_config(encoder))) is None
    output_layout.reset(FILES, OutputDir(str(out)))
    with pytest.raises(FileNotFoundError):
        load_with_datasets(out)
    with pytest.raises(FileNotFoundError):
        load_with_datasets(out / "train")
    assert not (out / "dataset_dict.json").exists()


# Up-to-date check


def is_finished(out: Path, inputs: list[PretrainingInput] | None = None) -> bool:
    job = make_job(out, INPUTS if inputs is None else inputs)
    return is_up_to_date(FILES, job.output, PretrainingManifest, job.inputs_key)


def test_set_is_up_to_date_while_inputs_are_unchanged_and_index_files_are_there(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    assert not is_finished(out)
    result = build_from_group(out, shard_group, make_build_config(encoder))
    assert not is_finished(out)
    assert publish(out, result) is None
    assert is_finished(out)
    assert not is_finished(out, [])
    assert not is_finished(out, [*INPUTS, *INPUTS])
    assert not is_finished(out, [msgspec.structs.replace(INPUTS[0], documents=2)])
    for name in ("dataset_dict.json", "train/state.json", "validation/state.json"):
        (out / name).rename(out / "elsewhere")
        assert not is_finished(out)
        (out / "elsewhere").rename(out / name)
        assert is_finished(out)
    (out / "manifest.json").unlink()
    assert not is_finished(out)


def test_card_has_splits_recipe_inputs_and_rights() -> None:
    inputs = [
        PretrainingInput("pubmed_to_shards", "a" * 64, 2, 1200, ()),
        PretrainingInput("text_to_shards", "b" * 64, 1, 34, ()),
    ]
    train = msgspec.structs.replace(EMPTY_SPLIT, rows=5678, tokens=90123)
    counts = PretrainingCounts(
        documents=1234, dropped={}, rejected={}, train=train, validation=EMPTY_SPLIT, years={}
    )
    card = format_set_card(of_pretraining([], "bert", 128, None, inputs, counts))
    header = yaml.safe_load(card.split("---\n")[1])
    assert (header["license"], header["size_categories"]) == ("other", ["1K<n<10K"])
    assert (header["task_categories"], header["multilinguality"]) == (["fill-mask"], "multilingual")
    english = format_set_card(of_pretraining([], "bert", 128, None, inputs[:1], counts))
    assert yaml.safe_load(english.split("---\n")[1])["language"] == "en"
    assert header["configs"][0]["data_files"] == [{"split": "train", "path": "train/data-*.arrow"}]
    for line in (
        "# Pretraining rows for BERT",
        "of 1,234 documents",
        "| train | 5,678 | 90,123 |",
        f"| `pubmed_to_shards` | 1,200 | `{'a' * 64}` |",
        "| `dupe_factor` | `1` |",
        "Courtesy of the U.S. National Library of Medicine.",
        "The rights in these documents are those of the text files",
    ):
        assert line in card
