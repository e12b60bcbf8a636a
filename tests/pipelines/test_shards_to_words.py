"""``beam run shards_to_words``: the counts of one process, however it runs and whatever goes wrong."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.manifest import WordsRun
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.pipelines.job_types import WordsJob
from bioshards.vocab.counting import count_steps as steps
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.word_counts import CountConfig, WordCounts
from tests.support.fork_server import run_beam
from tests.support.outputs import load_manifest, published_digests
from tests.support.vocab.text_directories import count_directly, write_texts

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run() -> Run:
    """``beam run shards_to_words`` in this process, one worker unless said otherwise."""

    def call(*arguments: object) -> int:
        return cli.main(["run", "shards_to_words", "--workers", "1", *map(str, arguments)])

    return call


FIRST = {1: "Mice were fed, mice grew.", 2: "Naïve β-cells grew in mice."}
SECOND = {3: "Mice slept.", 4: "All mice, all night."}
THIRD = {5: "Rats did not sleep."}


@pytest.fixture
def abstracts(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "abstracts", {"first": FIRST, "second": SECOND})


def lines(found: dict[str, int], min_count: int = 1) -> bytes:
    return b"".join(word_counts.lines_from_counts(found, min_count))


def words(output: Path, name: str = "words.tsv") -> dict[str, int]:
    with (output / name).open("rb") as file:
        return dict(word_counts.read_counts(file))


# The same counts


@pytest.mark.parametrize("kind", word_counts.PRETOKENIZERS)
@pytest.mark.parametrize("workers", [1, 2])
def test_the_counts_are_those_of_one_process(
    kind: str, workers: int, reference: Path, full_text: Path, tmp_path: Path
) -> None:
    inputs = ("--input", reference, "--input", full_text)
    options = ("--pretokenizer", kind, "--validation-fraction", 0.3, "--seed", 5, "--workers", workers)
    done = run_beam("run", "shards_to_words", *inputs, *options, "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    expected = count_directly(reference, full_text, pretokenizer=kind, validation_fraction=0.3, seed=5)
    assert (tmp_path / "words.tsv").read_bytes() == lines(expected.words)
    assert (tmp_path / "validation-words.tsv").read_bytes() == lines(expected.validation_words)
    found = load_manifest(tmp_path)["counts"]
    assert found == {
        "documents": expected.documents,
        "tokens": expected.words.total(),
        "distinct_words": len(expected.words),
        "pruned": {"distinct_words": 0, "tokens": 0},
        "validation": {
            "documents": expected.validation_documents,
            "tokens": expected.validation_words.total(),
            "distinct_words": len(expected.validation_words),
        },
    }
    assert found["documents"] > found["validation"]["documents"] > 10
    assert f"{found['documents']} documents, {found['tokens']:,} tokens" in done.stdout
    assert "5/5 data-" in done.stderr


def test_the_number_of_workers_and_the_order_of_inputs_change_no_byte(
    reference: Path, full_text: Path, tmp_path: Path, run: Run
) -> None:
    for output, workers, inputs in (
        ("a", 1, [reference, full_text]),
        ("b", 2, [f"{full_text}/", os.path.relpath(reference)]),
    ):
        given = [word for folder in inputs for word in ("--input", folder)]
        options = ("--validation-fraction", 0.2, "--workers", workers, "--output", tmp_path / output)
        assert run_beam("run", "shards_to_words", *given, *options).returncode == 0
    assert published_digests(tmp_path / "a") == published_digests(tmp_path / "b")


def test_words_are_counted_as_written(abstracts: Path, tmp_path: Path, run: Run) -> None:
    assert run("--input", abstracts, "--output", tmp_path / "out") == 0
    assert (tmp_path / "out" / "words.tsv").read_text() == (
        ".\t4\nmice\t3\n,\t2\nMice\t2\ngrew\t2\n"
        "-\t1\nAll\t1\nNaïve\t1\nall\t1\ncells\t1\nfed\t1\nin\t1\nnight\t1\nslept\t1\nwere\t1\nβ\t1\n"
    )
    assert not (tmp_path / "out" / "validation-words.tsv").exists()


def test_words_between_white_space(abstracts: Path, tmp_path: Path, run: Run) -> None:
    assert run("--input", abstracts, "--output", tmp_path / "out", "--pretokenizer", "white-space") == 0
    found = words(tmp_path / "out")
    assert found["mice"] == 1
    assert found["mice,"] == found["mice."] == found["β-cells"] == 1


def test_rare_words_are_left_out_and_counted(abstracts: Path, tmp_path: Path, run: Run) -> None:
    options = ("--min-count", 2, "--validation-fraction", 0.5)
    assert run("--input", abstracts, "--output", tmp_path / "out", *options) == 0
    expected = count_directly(abstracts, validation_fraction=0.5)
    assert (tmp_path / "out" / "words.tsv").read_bytes() == lines(expected.words, 2)
    assert (tmp_path / "out" / "validation-words.tsv").read_bytes() == lines(expected.validation_words)
    facts = load_manifest(tmp_path / "out")
    rare = [word for word, times in expected.words.items() if times == 1]
    assert len(rare) > 2
    assert facts["config"]["min_count"] == 2
    assert facts["counts"]["pruned"] == {"distinct_words": len(rare), "tokens": len(rare)}
    assert facts["counts"]["distinct_words"] - len(rare) == facts["outputs"][0]["rows"]


def test_a_document_is_held_out_whatever_else_is_there(tmp_path: Path, run: Run) -> None:
    """Each document has a word of its own, so that the lists say which are held out."""
    numbers = range(100, 400)
    whole = {number: f"word{number}" for number in numbers}
    write_texts(tmp_path / "all", {"one": whole})
    write_texts(
        tmp_path / "some", {f"n{number}": {number: whole[number]} for number in numbers if number % 50 < 9}
    )
    for name, options in (
        ("all", ()),
        ("some", ()),
        ("all", ("--seed", 1)),
        ("all", ("--validation-fraction", 0.4)),
    ):
        output = tmp_path / "-".join(["out", name, *map(str, options)])
        assert (
            run("--input", tmp_path / name, "--output", output, "--validation-fraction", 0.2, *options) == 0
        )
    held = words(tmp_path / "out-all", "validation-words.tsv").keys()
    assert 40 < len(held) < 80
    assert held.isdisjoint(words(tmp_path / "out-all"))
    some = words(tmp_path / "out-some", "validation-words.tsv").keys()
    assert some == held & (some | words(tmp_path / "out-some").keys())
    assert held != words(tmp_path / "out-all---seed-1", "validation-words.tsv").keys()
    assert held < words(tmp_path / "out-all---validation-fraction-0.4", "validation-words.tsv").keys()


def test_the_manifest_says_what_was_counted(abstracts: Path, tmp_path: Path, run: Run) -> None:
    other = write_texts(tmp_path / "fulltext", {"third": THIRD}, "pmc_to_shards")
    output = tmp_path / "out"
    options = ("--validation-fraction", 0.1, "--min-count", 1)
    assert run("--input", abstracts, "--input", other, *options, "--output", output) == 0
    facts = load_manifest(output)
    assert facts["config"].pop("library_versions").keys() == {"tokenizers"}
    assert facts["config"] == {
        "pipeline": "shards_to_words",
        "format": FORMAT,
        "pretokenizer": "bert",
        "validation_fraction": 0.1,
        "seed": 0,
        "min_count": 1,
    }
    listed = {item["pipeline"]: item for item in facts["inputs"]}
    assert listed["pubmed_to_shards"] == {
        "pipeline": "pubmed_to_shards",
        "shards_sha256": arrow_io.combine_digests(
            shard["sha256"] for shard in load_manifest(abstracts)["outputs"]
        ),
        "shards": 2,
        "documents": 4,
    }
    assert [item["file"] for item in facts["outputs"]] == ["words.tsv", "validation-words.tsv"]
    for item in facts["outputs"]:
        data = (output / item["file"]).read_bytes()
        assert item["sha256"] == hashlib.sha256(data).hexdigest()
        assert (item["bytes"], item["rows"]) == (len(data), data.count(b"\n"))
    assert sorted(facts["run"]["inputs"]) == sorted([str(abstracts), str(other)])
    assert facts["run"]["command"][:3] == ["beam", "run", "shards_to_words"]
    assert facts["run"]["started_at"] <= facts["run"]["finished_at"]
    del facts["run"]
    assert str(tmp_path) not in json.dumps(facts)


# Run again, stopped, grown


def test_a_finished_run_again_does_nothing(
    abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    command = ("--input", abstracts, "--output", tmp_path / "out")
    assert run(*command) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("[!.]*")}
    assert run(*command) == 0
    assert "is finished and its input is unchanged: nothing to do" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_a_lost_or_cut_list_is_made_again_as_is_all_without_the_work_folder(
    abstracts: Path, tmp_path: Path, run: Run
) -> None:
    command = ("--input", abstracts, "--output", tmp_path / "out", "--validation-fraction", 0.5)
    assert run(*command) == 0
    before = published_digests(tmp_path / "out")
    for with_work_folder in (True, False):
        (tmp_path / "out" / "words.tsv").unlink()
        (tmp_path / "out" / "validation-words.tsv").write_bytes(b"the\t1\n")
        if not with_work_folder:
            shutil.rmtree(tmp_path / "out" / ".bioshards")
        assert run(*command) == 0
        assert published_digests(tmp_path / "out") == before


def test_stopped_at_any_shard_it_goes_on_where_it_was(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The third shard cannot be written: the others are there, and only what is missing is counted then."""
    source = write_texts(tmp_path / "in", {f"n{at}": {at: f"Mice number {at}."} for at in range(6)})
    whole, calls = word_counts.write_counts, []

    def counting(storage: LocalStorage, path: str, found: WordCounts, failing: bool) -> None:
        calls.append(path)
        if failing and len(calls) == 3:
            raise RuntimeError("no more")
        whole(storage, path, found)

    for failing in (True, False):
        monkeypatch.setattr(word_counts, "write_counts", functools.partial(counting, failing=failing))
        assert run("--input", source, "--output", tmp_path / "out") == (1 if failing else 0)
        assert (tmp_path / "out" / "manifest.json").exists() is not failing
    assert "the run failed: RuntimeError: no more. Completed work is kept" in capsys.readouterr().err
    assert len(calls) == 3 + 4
    assert len(set(calls)) == 6
    assert (tmp_path / "out" / "words.tsv").read_bytes() == lines(count_directly(source).words)


def test_a_full_disk_loses_nothing(
    abstracts: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The disk is full at one write or another, in every step; each time the next run goes on."""
    whole, left = LocalStorage.write, [0]

    @contextlib.contextmanager
    def failing(self: LocalStorage, path: str) -> Iterator[Any]:
        with whole(self, path) as file:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield file

    command = ("--input", abstracts, "--validation-fraction", 0.5, "--output")
    with monkeypatch.context() as full:
        full.setattr(LocalStorage, "write", failing)
        for room in (0, 1, 2, 3, 70, 129, 130, 131, 132):
            left[0] = room
            code = run(*command, tmp_path / "out")
            said = capsys.readouterr().err
            assert code != 0
            assert "No space left" in said or "the disk is full" in said
    assert run(*command, tmp_path / "out") == 0
    assert run(*command, tmp_path / "fresh") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "fresh")
    assert list((tmp_path / "out").rglob(".tmp-*")) == []


def test_an_update_counts_what_is_new_alone(
    abstracts: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, counted_now = word_counts.count_shard_words, []

    def counting(*arguments: Any) -> WordCounts:
        counted_now.append(arguments[2].file)
        return whole(*arguments)

    monkeypatch.setattr(word_counts, "count_shard_words", counting)
    command = ("--input", abstracts, "--output", tmp_path / "out")
    assert run(*command) == 0
    assert len(counted_now) == 2
    for grown, new in (
        ({"first": FIRST, "second": SECOND, "third": THIRD}, ["data-third-00000.arrow"]),
        ({"first": FIRST, "third": {6: "Nobody slept."}}, ["data-third-00000.arrow"]),
    ):
        shutil.rmtree(abstracts)
        write_texts(abstracts, grown)
        counted_now.clear()
        assert run(*command) == 0
        assert counted_now == new
        assert (tmp_path / "out" / "words.tsv").read_bytes() == lines(count_directly(abstracts).words)
    kept = {path.stem for path in (tmp_path / "out" / ".bioshards" / "word_counts").iterdir()}
    assert kept == {shard["sha256"] for shard in load_manifest(abstracts)["outputs"]}


# What passes between the steps


def _note(path: str, element: object) -> None:
    with open(path, "a") as file:
        file.write(f"{element!r}\n")


def test_no_word_passes_between_the_steps(abstracts: Path, tmp_path: Path) -> None:
    """Everything that any transform gives is written down: names, numbers and reports."""
    import apache_beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.pipeline import PipelineVisitor

    from bioshards.corpus.output.output_layout import OutputDir
    from bioshards.corpus.shards import input_dirs as inputs
    from bioshards.pipelines import shards_to_words
    from bioshards.pipelines.execution import local_runner

    storage, made = LocalStorage(), []

    class Looking(PipelineVisitor):  # type: ignore[misc]
        def visit_transform(self, node: Any) -> None:
            made.extend(node.outputs.values())

    counting = CountConfig(validation_fraction=0.5)
    job = WordsJob(
        storage=storage,
        output_dir=OutputDir(str(tmp_path / "out")),
        inputs=inputs.load_document_inputs(storage, [str(abstracts)]),
        count_config=counting,
        min_count=1,
        config={
            "pipeline": "shards_to_words",
            "format": FORMAT,
            **counting.to_dict(),
            "min_count": 1,
            "library_versions": {},
        },
        run_info=WordsRun(command=("test",), inputs=()),
    )
    options = PipelineOptions([], **local_runner.make_local_options(1))
    root = apache_beam.Pipeline(runner=local_runner.make_runner(options), options=options)
    shards_to_words.build(root, job)
    root.visit(Looking())
    for number, collection in enumerate(made):
        note = apache_beam.Map(functools.partial(_note, str(tmp_path / "notes")))
        collection | f"Note {number}" >> note
    result = root.run()
    result.wait_until_finish()
    notes = (tmp_path / "notes").read_text()
    assert "ShardCounts(" in notes
    assert "BucketCounts(" in notes
    for word in ("mice", "Mice", "Naïve", "β", "grew", "pubmed:"):
        assert word not in notes
    metrics = {found.key.metric.name: found.committed for found in result.metrics().query()["counters"]}
    facts = load_manifest(tmp_path / "out")["counts"]
    assert metrics["count_items"] == 2
    assert metrics["count_tokens"] == facts["tokens"]
    assert metrics["merge_distinct_words"] == facts["distinct_words"]
    assert metrics["count_validation_documents"] == facts["validation"]["documents"] > 0


# What goes wrong


def harm_missing(shard: Path) -> str:
    shard.unlink()
    return "No such file or directory"


def harm_cut(shard: Path) -> str:
    size = shard.stat().st_size
    os.truncate(shard, size - 8)
    return f"it has {size - 8:,} bytes, and its manifest lists {size:,}"


def harm_changed(shard: Path) -> str:
    data = shard.read_bytes()
    shard.write_bytes(data.replace(b"Mice slept", b"Rats slept"))
    return "its SHA-256 is not the one that its manifest lists"


def harm_folder(shard: Path) -> str:
    shard.unlink()
    shard.mkdir()
    return "Is a directory"


@pytest.mark.parametrize("harm", [harm_missing, harm_cut, harm_changed, harm_folder])
def test_a_shard_that_is_not_what_its_manifest_lists_is_named(
    harm: Callable[[Path], str], abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    shard = abstracts / "data-second-00000.arrow"
    whole = shard.read_bytes()
    message = harm(shard)
    command = ("--input", abstracts, "--output", tmp_path / "out")
    assert run(*command) == 3
    said = capsys.readouterr().err
    assert f"1 of 2 shards cannot be read ({shard}: {message})" in said
    assert "rerun the command that made them" in said
    assert [path.name for path in (tmp_path / "out").glob("*")] == [".bioshards"]
    # Mended, the same command goes on.
    if shard.is_dir():
        shard.rmdir()
    shard.write_bytes(whole)
    assert run(*command) == 0
    assert (tmp_path / "out" / "words.tsv").read_bytes() == lines(count_directly(abstracts).words)


@pytest.mark.parametrize("options", [("--validation-fraction", 0.999999), ("--min-count", 1000)])
def test_nothing_left_is_no_success(
    options: tuple[object, ...], abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    assert run("--input", abstracts, "--output", tmp_path / "out", *options) == 3
    assert "no word is left" in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_an_input_that_cannot_be_counted_is_explained(
    abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    folders = {name: tmp_path / name for name in ("nowhere", "unfinished", "fetched", "strange", "broken")}
    shutil.copytree(abstracts, folders["unfinished"])
    (folders["unfinished"] / "manifest.json").unlink()
    write_texts(folders["fetched"], {}, "fetch")
    for name, text in (("strange", "[1]"), ("broken", "{")):
        folders[name].mkdir()
        (folders[name] / "manifest.json").write_text(text)
    expected = {
        "nowhere": "has no manifest.json: it is not a finished output",
        "unfinished": "rerun the command to complete it",
        "fetched": "does not hold documents: by its manifest.json it was made by fetch. Give the --output of",
        "strange": "does not hold documents: by its manifest.json it is not of bioshards",
        "broken": "/manifest.json cannot be read",
    }
    for name, message in expected.items():
        words = ("--input", abstracts, "--input", folders[name], "--output", tmp_path / "out")
        assert run(*words) == 2
        said = capsys.readouterr().err
        assert str(folders[name]) in said
        assert message in said
        assert ".." not in said
    assert not (tmp_path / "out").exists()


def test_shards_of_another_version_are_not_mixed_in(
    abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    facts = load_manifest(abstracts)
    facts["config"]["format"] = FORMAT - 1
    (abstracts / "manifest.json").write_text(json.dumps(facts))
    assert run("--input", abstracts, "--output", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert f"{abstracts} was made by another version of bioshards (format {FORMAT - 1}" in said
    assert "Make it anew: beam run pubmed_to_shards" in said


def test_no_shard_is_counted_twice(abstracts: Path, tmp_path: Path, run: Run, capsys: Capture) -> None:
    copy, link, grown = tmp_path / "copy", tmp_path / "link", tmp_path / "grown"
    shutil.copytree(abstracts, copy)
    link.symlink_to(abstracts)
    write_texts(grown, {"second": SECOND, "third": THIRD})
    for other in (f"{abstracts}/", copy, link, grown):
        assert run("--input", abstracts, "--input", other, "--output", tmp_path / "out") == 2
        said = capsys.readouterr().err
        assert f"{abstracts} and {str(other).rstrip('/')} hold the same shard (data-" in said
        assert "counted twice" in said
    assert not (tmp_path / "out").exists()


def test_an_output_in_an_input_or_of_something_else(
    abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    before = published_digests(abstracts)
    for output in (abstracts, abstracts / "words"):
        assert run("--input", abstracts, "--output", output) == 2
        assert f"{output} is inside the input {abstracts}" in capsys.readouterr().err
    assert run("--input", abstracts, "--output", tmp_path) == 2
    assert f"the input {abstracts} is inside {tmp_path}" in capsys.readouterr().err
    other = write_texts(tmp_path / "other", {"third": THIRD})
    assert run("--input", abstracts, "--output", other) == 2
    assert "was written by pubmed_to_shards, and this is shards_to_words" in capsys.readouterr().err
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("dear to its author")
    assert run("--input", abstracts, "--output", tmp_path / "thesis") == 2
    assert "thesis.tex" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run("--input", abstracts, "--output", tmp_path / "file" / "out") == 2
    assert "cannot be written" in capsys.readouterr().err
    assert published_digests(abstracts) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--min-count", 3), "min_count was 1, now 3"),
        (("--seed", 7), "seed was 0, now 7"),
        (("--validation-fraction", 0.25), "validation_fraction was 0.5, now 0.25"),
        (("--pretokenizer", "white-space"), "pretokenizer was 'bert', now 'white-space'"),
    ],
)
def test_an_output_of_another_configuration(
    options: tuple[object, ...], said: str, abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    command = ("--input", abstracts, "--output", tmp_path / "out", "--validation-fraction", 0.5)
    assert run(*command) == 0
    before = published_digests(tmp_path / "out")
    assert run(*command, *options) == 2
    assert said in capsys.readouterr().err
    assert published_digests(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--output", "x"), "--input DIR is missing: a finished --output of pubmed_to_shards or"),
        (("--input", "x"), "--output DIR is missing"),
        (("--output", "x", "--validation-fraction", 1), "validation_fraction 1.0 is not"),
        (("--output", "x", "--validation-fraction", 1.5), "1.5 is not between 0 and 1"),
        (("--output", "x", "--validation-fraction", "nan"), "nan is not between 0 and 1"),
        (("--output", "x", "--validation-fraction", "tenth"), "invalid fraction value: 'tenth'"),
        (("--output", "x", "--min-count", 0), "0 is below 1"),
        (("--output", "x", "--pretokenizer", "sentencepiece"), "invalid choice: 'sentencepiece'"),
        (
            ("--output", "x", "--validation", 0.1),
            "unknown option --validation (did you mean --validation-fraction?)",
        ),
        (("--output", "x", "--mincount=3"), "did you mean --min-count?"),
        (("--output", "x", "stray"), "stray is no option"),
        (("--output", "x", "--runner=DataflowRunner"), "is local; Dataflow's workers need gs://"),
    ],
)
def test_a_wrong_command_line(
    options: tuple[object, ...],
    said: str,
    abstracts: Path,
    tmp_path: Path,
    run: Run,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given = () if "is missing" in said else ("--input", abstracts)
    assert run(*given, *options) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_the_kinds_of_words_are_those_that_can_be_counted() -> None:
    from bioshards.pipelines import shards_to_words

    [option] = [action for action in shards_to_words.make_parser()._actions if action.dest == "pretokenizer"]
    assert tuple(option.choices or ()) == word_counts.PRETOKENIZERS


def test_without_its_extra_it_says_what_to_install(abstracts: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['tokenizers'] = None; from bioshards.pipelines import cli; "
        "sys.exit(cli.main(['run', 'shards_to_words', *sys.argv[1:]]))"
    )
    words = ("--input", abstracts, "--output", tmp_path / "out")
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "shards_to_words needs a library that cannot be imported" in done.stderr
    assert "pip install 'bioshards[vocab]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_counts_of_a_bucket_are_added_up_in_files(abstracts: Path, tmp_path: Path) -> None:
    """The steps alone, without Beam: a shard's report says what its counts hold."""
    from bioshards.corpus.output.output_layout import OutputDir
    from bioshards.corpus.shards.arrow_io import Shard

    storage, output_dir = LocalStorage(), OutputDir(str(tmp_path / "out"))
    listed = [Shard(**item) for item in load_manifest(abstracts)["outputs"]]
    found = [steps.count_shard(storage, output_dir, str(abstracts), shard, CountConfig()) for shard in listed]
    assert [(one.documents, one.tokens, one.distinct_words) for one in found] == [(2, 15, 12), (2, 9, 8)]
    merged = [
        steps.merge_bucket(storage, output_dir, [one.sha256 for one in found], bucket, 2)
        for bucket in range(64)
    ]
    assert sum(bucket.distinct_words for bucket in merged) == len(count_directly(abstracts).words) == 16
    assert sum(bucket.pruned_tokens for bucket in merged) == 11
    assert sum(bucket.validation_distinct_words for bucket in merged) == 0
