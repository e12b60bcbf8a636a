"""Publishing of pretraining sets: counts, problems, stale files, completeness."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pytest

from bioshards.corpus.manifest import PretrainingInput, PretrainingRun, Shard, encode
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import pretraining_dir
from bioshards.vocab.pretraining.build_result import BuildResult
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES
from bioshards.vocab.pretraining.pretraining_dir import MergeResult
from bioshards.vocab.pretraining.shard_groups import ShardGroup
from bioshards.vocab.pretraining.shard_writer import ShardWriter
from bioshards.vocab.pretraining.tfrecord.record_encoder import make_record_encoder
from tests.support.corpus.manifests import of_pretraining
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


INPUTS = [PretrainingInput("pubmed_to_shards", "0" * 64, 1, 1, ())]
CONFIG: dict[str, Any] = encode(of_pretraining([]).config)


def publish(
    out: Path,
    *made: BuildResult,
    merged: tuple[MergeResult, ...] = (),
    max_rejected: float = 0.001,
    **config: Any,
) -> str | None:
    output_dir = OutputDir(str(out))
    run = PretrainingRun(command=("test",), inputs=(), vocabulary="nowhere", started_at="then")
    return pretraining_dir.publish_pretraining_set(
        FILES, output_dir, CONFIG | config, INPUTS, made, merged, run, max_rejected
    )


def manifest(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return found


@pytest.mark.parametrize("objective", ["electra", "bert", "albert", "plain"])
def test_a_published_set_accounts_for_every_token_and_opens(
    objective: str, out: Path, tmp_path: Path, encoder: Encoder
) -> None:
    several = [
        make_single_group(write_documents(tmp_path / "one", {"a": make_abstracts(1, 40)})),
        make_single_group(
            write_documents(
                tmp_path / "two", {"a": [*make_abstracts(40, 70), make_sentences_document("pubmed:99", "")]}
            )
        ),
    ]
    how = make_build_config(encoder, ExampleRecipe(objective, 16))
    made = [build_from_group(out, group, how) for group in several]
    assert publish(out, *made, objective=objective) is None
    found = manifest(out)
    outputs = sorted((one for of in made for one in of.outputs), key=lambda one: one.file)
    assert found["outputs"] == encode(outputs)
    counts = found["counts"]
    assert (counts["documents"], counts["dropped"], counts["rejected"]) == (70, {"no-tokens": 1}, {})
    for split in ("train", "validation"):
        of = counts[split]
        assert of["input_tokens"] == of["tokens"] - of["special_tokens"] - of["other_document_tokens"] + sum(
            of["lost_tokens"].values()
        )
        assert set(of["lost_tokens"]) <= {OBJECTIVES[objective].loss_reason}
        assert of["documents"] == sum(one.split_counts[split]["documents"] for one in made)
    assert counts["train"]["documents"] + counts["validation"]["documents"] == 69
    years = counts["years"]["pubmed"]
    assert list(years) == ["2000", "2001", "2002"]
    assert sum(years.values()) == counts["train"]["input_tokens"] + counts["validation"]["input_tokens"]
    assert found["run"]["started_at"] == "then"
    assert found["run"]["finished_at"]
    opened = datasets.load_from_disk(str(out))
    assert {name: len(of) for name, of in opened.items()} == {
        split: counts[split]["rows"] for split in ("train", "validation")
    }


def test_the_order_of_groups_changes_nothing(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    several = [
        make_single_group(write_documents(tmp_path / str(n), {"a": make_abstracts(n * 30 + 1, n * 30 + 30)}))
        for n in range(3)
    ]
    found = []
    for order in ([0, 1, 2], [2, 0, 1]):
        made = [build_from_group(out, several[n], make_build_config(encoder)) for n in order]
        assert publish(out, *made) is None
        data = manifest(out)
        del data["run"]
        found.append((json.dumps(data), (out / "train" / "state.json").read_bytes()))
    assert found[0] == found[1]


def test_without_held_out_documents_there_is_one_split(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    assert (
        publish(out, build_from_group(out, shard_group, make_build_config(encoder, validation_fraction=0)))
        is None
    )
    assert json.loads((out / "dataset_dict.json").read_text()) == {"splits": ["train"]}
    assert not (out / "validation").exists()
    assert manifest(out)["counts"]["validation"] == {
        **dict.fromkeys(
            [
                "documents",
                "rows",
                "tokens",
                "special_tokens",
                "other_document_tokens",
                "input_tokens",
                "unknown_tokens",
                "unlabelled_rows",
            ],
            0,
        ),
        "lost_tokens": {},
    }
    assert list(datasets.load_from_disk(str(out))) == ["train"]


def test_buckets_without_rows_open_too(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    how = make_build_config(encoder, num_buckets={"train": 200, "validation": 90})
    made = build_from_group(out, shard_group, how)
    merged = [
        pretraining_dir.merge_bucket(FILES, OutputDir(str(out)), how, made.spill_files[split], split, bucket)
        for split, buckets in how.num_buckets.items()
        for bucket in range(buckets)
    ]
    assert publish(out, made, merged=tuple(merged)) is None
    counts = manifest(out)["counts"]
    opened = datasets.load_from_disk(str(out))
    assert {name: len(of) for name, of in opened.items()} == {
        split: counts[split]["rows"] for split in how.num_buckets
    }
    assert len(list_files(out / ".bioshards" / "merged_buckets")) == 290
    assert list_files(out / ".bioshards" / "shuffle_spill") == set()


# What stops it


def plain_made(name: str = "0" * 16, **more: Any) -> BuildResult:
    counts = Counter(documents=8, rows=5, tokens=50, special_tokens=10, input_tokens=40)
    outputs = [Shard("train/data-x-00000.arrow", 5, 1, "ab")]
    return BuildResult(name, outputs, split_counts={"train": counts}, documents=1000, **more)


def test_what_does_not_add_up_is_not_published(out: Path) -> None:
    """Of rows that were planned one is in no shard; of tokens that were read one is nowhere."""
    lacking, too_many = plain_made(), plain_made()
    lacking.outputs = [replace(lacking.outputs[0], rows=4)]
    too_many.split_counts["train"]["input_tokens"] = 41
    for made, said in (
        (lacking, "4 of 5 rows are in shards"),
        (too_many, "40 of 41 tokens are accounted for"),
    ):
        problem = publish(out, made)
        assert problem
        assert said in problem
        assert "delete that folder and rerun" in problem
    assert list_files(out) == set()


def test_bad_shards_are_named_and_nothing_is_published(out: Path) -> None:
    made = [BuildResult(str(n), failures=[f"in/{n}: gone"]) for n in range(7, 0, -1)]
    problem = publish(out, plain_made(), *made)
    assert problem
    assert problem.startswith(
        "7 shards cannot be read (in/1: gone; in/2: gone; in/3: gone; in/4: gone; in/5: gone (and 2 more))"
    )
    assert "rerun this one" in problem
    assert list_files(out) == set()


def test_more_rejected_documents_than_allowed_stop_it(out: Path) -> None:
    made = plain_made(rejected=Counter({"too-long": 11}))
    problem = publish(out, made, max_rejected=0.01)
    assert problem
    assert problem.startswith(
        "11 of 1,000 documents were rejected, more than --max-rejected 0.01 allows; OUT/rejected/ has"
    )
    assert list_files(out) == set()
    assert publish(out, made, max_rejected=0.011) is None
    assert manifest(out)["counts"]["rejected"] == {"too-long": 11}


@pytest.mark.parametrize("validation", [Counter(), Counter(documents=998, rows=99)])
def test_nothing_to_train_on_stops_it(validation: Counter[str], out: Path) -> None:
    dropped = Counter({"no-tokens": 1, "overlap": 2})
    made = BuildResult("x", split_counts={"validation": validation}, documents=1000, dropped=dropped)
    problem = publish(out, made)
    assert problem == (
        f"there is no row to train on: of 1,000 documents {validation['documents']} are in the validation "
        "split, 2 have their full text in another input, 1 have no tokens and 0 are rejected. "
        "Check --input and --validation-fraction"
    )
    assert publish(out) is not None
    assert list_files(out) == set()


def test_a_problem_leaves_what_is_there(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    made = build_from_group(out, shard_group, make_build_config(encoder))
    before = list_files(out)
    assert publish(out, made, BuildResult("bad", failures=["in/x: gone"])) is not None
    assert list_files(out) == before


# What is left of other inputs


def test_leftovers_are_swept_and_nothing_else(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    made = build_from_group(out, shard_group, make_build_config(encoder))
    kept = list_files(out)
    other = "f" * 16
    leftovers = [
        f"train/data-{other}-00000.arrow",
        f"train/data-{shard_group.name}-00007.arrow",
        "validation/data-00000-of-00001.arrow",
        f"pretrain_tfrecords/pretrain_data.tfrecord-{other}-00000",
        f"validation_tfrecords/pretrain_data.tfrecord-{other}-00000",
        f".bioshards/build_reports/{other}.json",
        ".bioshards/merged_buckets/00000-train.json",
        f".bioshards/shuffle_spill/train-{other}-00000.arrow",
        f"rejected/{other}.jsonl",
        f"rejected/{shard_group.name}.jsonl",
    ]
    others = ["train/notes.txt", "README.md", ".bioshards/config.json"]
    for name in (*leftovers, *others):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text("x")
    assert publish(out, made) is None
    published = {
        "manifest.json",
        "dataset_dict.json",
        *(f"{split}/{name}.json" for split in ("train", "validation") for name in ("state", "dataset_info")),
    }
    assert list_files(out) == kept | set(others) | published


def test_what_opened_a_split_goes_with_its_last_row(
    out: Path, tmp_path: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    """As when the only documents held out have been deleted in PubMed."""
    assert publish(out, build_from_group(out, shard_group, make_build_config(encoder))) is None
    counting = CountConfig(validation_fraction=0.25)
    kept = [one for one in make_abstracts(1, 50) if not counting.is_validation(one.id, one.pmid)]
    updated = make_single_group(write_documents(tmp_path / "updated", {"a": kept}))
    assert publish(out, build_from_group(out, updated, make_build_config(encoder))) is None
    assert not [name for name in list_files(out) if name.startswith("validation")]
    assert list(datasets.load_from_disk(str(out))) == ["train"]


def test_an_unfinished_set_is_not_opened_as_the_one_before(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    assert publish(out, build_from_group(out, shard_group, make_build_config(encoder))) is None
    output_layout.reset(FILES, OutputDir(str(out)))
    with pytest.raises(FileNotFoundError):
        datasets.load_from_disk(str(out))
    with pytest.raises(FileNotFoundError):
        datasets.load_from_disk(str(out / "train"))
    assert not (out / "dataset_dict.json").exists()


def test_spill_files_are_removed_and_may_be_gone(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    made = build_from_group(
        out, shard_group, make_build_config(encoder, num_buckets={"train": 3, "validation": 2})
    )
    assert made.spill_files["train"]
    for _ in range(2):
        pretraining_dir.remove_spill_files(FILES, OutputDir(str(out)))
        assert list_files(out) == {f".bioshards/build_reports/{shard_group.name}.json"}


# Is it finished?


def finished(out: Path, inputs: list[PretrainingInput] | None = None) -> bool:
    return pretraining_dir.is_up_to_date(FILES, OutputDir(str(out)), INPUTS if inputs is None else inputs)


def test_a_set_is_finished_while_its_inputs_and_its_files_are_the_same(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    assert not finished(out)
    made = build_from_group(
        out,
        shard_group,
        make_build_config(
            encoder, writer=ShardWriter(make_record_encoder(encoder, ExampleRecipe("electra", 16)))
        ),
    )
    assert not finished(out)
    assert publish(out, made) is None
    assert finished(out)
    assert not finished(out, [])
    assert not finished(out, [*INPUTS, *INPUTS])
    assert not finished(out, [replace(INPUTS[0], documents=2)])
    assert len(made.outputs) == 4
    for one in made.outputs:
        path = out / one.file
        data = path.read_bytes()
        for other in (data[:-1], data + b"x"):
            path.write_bytes(other)
            assert not finished(out)
        path.unlink()
        assert not finished(out)
        path.write_bytes(data)
        assert finished(out)
    for name in ("dataset_dict.json", "train/state.json", "validation/state.json"):
        (out / name).rename(out / "elsewhere")
        assert not finished(out)
        (out / "elsewhere").rename(out / name)
        assert finished(out)
    (out / "manifest.json").unlink()
    assert not finished(out)


def test_a_work_folder_that_is_deleted_does_not_unfinish_it(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    assert publish(out, build_from_group(out, shard_group, make_build_config(encoder))) is None
    shutil.rmtree(out / ".bioshards")
    assert finished(out)
