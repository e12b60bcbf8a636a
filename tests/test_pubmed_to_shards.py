"""The whole job: what comes out of the sample, and that the same bytes come out every time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import datasets
import pyarrow as pa
import pytest

from tests.conftest import SAMPLE, beam, citation, documents, manifest, pubmed_set, sums

Run = Callable[..., int]


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's output, dropped documents kept: what every other way of running must equal."""
    output = tmp_path_factory.mktemp("reference") / "out"
    done = beam("run", "pubmed_to_shards", "--workers", 1, "--keep-dropped", "--output", output)
    assert done.returncode == 0, done.stderr
    return output


def test_the_sample_gives_the_documents_its_authors_worked_out(reference: Path) -> None:
    facts = manifest(reference)
    assert facts["funnel"] == {
        "records": 112,
        "dropped: deleted": 5,
        "dropped: superseded": 15,
        "dropped: book": 1,
        "dropped: no-abstract": 14,
        "kept": 77,
    }
    assert facts["counts"]["deletions"] == 6
    found = documents(reference)
    assert len(found) == facts["counts"]["documents"] == 77
    assert facts["counts"]["sentences"] == sum(len(row["sentences"]) for row in found.values())
    assert facts["counts"]["words"] == sum(
        len(line.split()) for row in found.values() for line in row["sentences"]
    )
    assert facts["counts"]["characters"] == sum(
        len(line) for row in found.values() for line in row["sentences"]
    )
    assert sum(facts["years"].values()) == sum(facts["languages"].values()) == 77


def test_the_life_cycle_of_the_sample(reference: Path) -> None:
    found = documents(reference)
    origin = {id_: row["origin"]["file"] for id_, row in found.items()}
    assert "pubmed:90000040" not in found  # deleted by the first update
    assert "pubmed:90000060" not in found  # revised and deleted by the same update
    assert found["pubmed:90000041"]["version"] == 2  # a later file wins over a higher version
    assert origin["pubmed:90000041"] == "pubmed26n0003.xml"
    assert found["pubmed:90000020"]["retracted"]  # the retraction came with an update
    assert found["pubmed:90000091"]["origin"] == {"file": "pubmed26n0002.xml", "position": 9}


def test_every_record_is_kept_or_dropped_with_a_reason(reference: Path) -> None:
    funnel = dict(manifest(reference)["funnel"])
    assert funnel.pop("records") == sum(funnel.values())
    dropped = datasets.load_from_disk(str(reference / "dropped"))
    reasons = sorted(dropped["reason"])
    # A book record is counted but has no document of its own.
    assert len(reasons) == 112 - 77 - 1
    assert set(reasons) == {"deleted", "superseded", "no-abstract"}


def test_shards_open_memory_mapped_in_pyarrow_and_datasets(reference: Path) -> None:
    before = pa.total_allocated_bytes()
    loaded = datasets.load_from_disk(str(reference))
    assert pa.total_allocated_bytes() - before < 10_000
    assert {row["id"] for row in loaded} == set(documents(reference))
    assert loaded[0]["sentences"] == documents(reference)[loaded[0]["id"]]["sentences"]
    for shard in manifest(reference)["outputs"]:
        before = pa.total_allocated_bytes()
        table = pa.ipc.open_stream(pa.memory_map(str(reference / shard["file"]))).read_all()
        assert table.num_rows == shard["rows"]
        assert pa.total_allocated_bytes() - before < 10_000


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_workers_changes_no_byte(reference: Path, tmp_path: Path, workers: int) -> None:
    done = beam("run", "pubmed_to_shards", "--workers", workers, "--keep-dropped", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert sums(tmp_path) == sums(reference)


def test_the_order_and_spelling_of_inputs_changes_no_byte(reference: Path, tmp_path: Path, run: Run) -> None:
    names = ["pubmed26n0003.xml", "pubmed26n0001.xml", "pubmed26n0002.xml"]
    inputs = [word for name in names for word in ("--input", os.path.relpath(SAMPLE / name))]
    assert run("--keep-dropped", "--output", tmp_path, *inputs) == 0
    assert sums(tmp_path) == sums(reference)


def test_a_finished_run_again_does_nothing(
    reference: Path, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--output", tmp_path) == 0
    written = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*") if path.is_file()}
    capsys.readouterr()
    assert run("--output", tmp_path) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert written == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*") if path.is_file()}


def test_a_lost_or_cut_shard_is_made_again(tmp_path: Path, run: Run) -> None:
    assert run("--output", tmp_path) == 0
    before = sums(tmp_path)
    first, second, *_ = sorted(tmp_path.glob("data-*.arrow"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-100])
    assert run("--output", tmp_path) == 0
    assert sums(tmp_path) == before


def test_an_update_rewrites_only_the_shards_it_touches(tmp_path: Path, run: Run) -> None:
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "pubmed26n0001.xml").write_bytes(pubmed_set(citation(1), citation(2)))
    (inputs / "pubmed26n0002.xml").write_bytes(pubmed_set(citation(3), citation(4)))
    (inputs / "pubmed26n0003.xml").write_bytes(pubmed_set(citation(5)))
    assert run("--input", inputs, "--output", tmp_path / "grown") == 0
    shards = sorted((tmp_path / "grown").glob("data-*.arrow"))
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in shards}

    (inputs / "pubmed26n0004.xml").write_bytes(pubmed_set(citation(2, "New. Text."), deleted=(5,)))
    assert run("--input", inputs, "--output", tmp_path / "grown") == 0
    assert run("--input", inputs, "--output", tmp_path / "whole") == 0
    assert sums(tmp_path / "grown") == sums(tmp_path / "whole")
    after = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in shards if path.exists()}
    by_file = {item["file"]: item["shards"] for item in manifest(tmp_path / "grown")["inputs"]}
    assert by_file["pubmed26n0003.xml"] == []  # its only citation was deleted
    [touched], [untouched] = by_file["pubmed26n0001.xml"], by_file["pubmed26n0002.xml"]
    assert after[untouched] == before[untouched]
    assert after[touched] != before[touched]
    assert set(documents(tmp_path / "grown")) == {"pubmed:1", "pubmed:2", "pubmed:3", "pubmed:4"}

    # Taking the update away again brings back what it had replaced.
    (inputs / "pubmed26n0004.xml").unlink()
    assert run("--input", inputs, "--output", tmp_path / "grown") == 0
    assert {path.name: path.read_bytes() for path in (tmp_path / "grown").glob("data-*")} == {
        name: data for name, (_, data) in before.items()
    }


def test_a_finished_output_lives_without_its_work_folder(tmp_path: Path, run: Run) -> None:
    assert run("--output", tmp_path) == 0
    before = sums(tmp_path)
    shutil.rmtree(tmp_path / ".bioshards")
    assert run("--output", tmp_path, "--min-pmid", 5) == 2
    assert run("--output", tmp_path) == 0
    assert sums(tmp_path) == before


def test_a_file_that_changes_while_it_is_read_is_not_trusted(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bioshards.corpus import medline_file, staging

    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(pubmed_set(citation(1)))

    def growing(file: object) -> object:
        yield from medline_file.records(file)  # type: ignore[arg-type]
        source.write_bytes(pubmed_set(citation(1), citation(2)))

    with monkeypatch.context() as patched:
        patched.setattr(staging, "records", growing)
        assert run("--input", source, "--output", tmp_path / "out") == 3
    assert "changed while it was read" in capsys.readouterr().err
    assert run("--input", source, "--output", tmp_path / "out") == 0
    assert len(documents(tmp_path / "out")) == 2


def test_beam_metrics_show_the_funnel(tmp_path: Path) -> None:
    import apache_beam

    from bioshards.corpus import sources
    from bioshards.corpus.files import LocalFiles
    from bioshards.corpus.rules import Rules
    from bioshards.corpus.workspace import Workspace
    from bioshards.pipelines import local, pubmed_to_shards

    files = LocalFiles()
    job = pubmed_to_shards.Job(
        files=files,
        work=Workspace(str(tmp_path)),
        sources=sources.discover(files, [str(SAMPLE)]),
        rules=Rules(),
        keep_dropped=False,
        max_shard_bytes=10**8,
        max_rejected=0,
        config={"keep_dropped": False},
        run={},
    )
    options = apache_beam.options.pipeline_options.PipelineOptions([], **local.options_for(1))
    root = apache_beam.Pipeline(runner=local.runner(options), options=options)
    pubmed_to_shards.build(root, job)
    result = root.run()
    result.wait_until_finish()
    counters = {found.key.metric.name: found.committed for found in result.metrics().query()["counters"]}
    funnel = manifest(tmp_path)["funnel"]
    assert counters["records_read"] == funnel["records"]
    assert counters["documents_kept"] == funnel["kept"]
    assert counters["dropped_superseded"] == funnel["dropped: superseded"]
    assert counters["sentences"] == manifest(tmp_path)["counts"]["sentences"]
    assert counters["files_staged"] == 3


def test_a_file_published_again_under_its_name_replaces_itself(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(pubmed_set(citation(1), citation(2)))
    assert run("--input", source, "--output", tmp_path / "out") == 0
    source.write_bytes(pubmed_set(citation(1, "Quite another abstract. Yes.")))
    assert run("--input", source, "--output", tmp_path / "out") == 0
    assert run("--input", source, "--output", tmp_path / "fresh") == 0
    assert sums(tmp_path / "out") == sums(tmp_path / "fresh")
    left = list((tmp_path / "out" / ".bioshards" / "staged").iterdir())
    assert len(left) == 3  # shard, keys and report of the new bytes, nothing of the old


def test_copies_of_a_file_are_read_once(tmp_path: Path, run: Run) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "pubmed26n0001.xml").write_bytes(pubmed_set(citation(1)))
    assert run("--input", tmp_path / "a", "--input", tmp_path / "b", "--output", tmp_path / "out") == 0
    facts = manifest(tmp_path / "out")
    assert len(facts["inputs"]) == 1
    assert "is the same file as" in facts["warnings"][0]


def test_shards_are_bounded_in_size(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bioshards.corpus.shards.BATCH_ROWS", 100)
    long = " ".join(f"This is sentence number {number} of it." for number in range(60))
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(pubmed_set(*[citation(pmid, long) for pmid in range(1, 1501)]))
    assert run("--input", source, "--output", tmp_path / "out", "--max-shard-mb", 1) == 0
    outputs = manifest(tmp_path / "out")["outputs"]
    assert len(outputs) > 2
    assert all(shard["bytes"] <= 1_050_000 for shard in outputs)
    assert len(datasets.load_from_disk(str(tmp_path / "out"))) == 1500


def test_presets_and_options_reach_the_documents(tmp_path: Path, run: Run) -> None:
    assert run("--output", tmp_path / "a", "--preset", "pubmedbert") == 0
    for row in documents(tmp_path / "a").values():
        assert len(" ".join(row["sentences"]).split()) >= 128
        assert row["sections"][0]["first_sentence"] == 0
    assert (
        run("--output", tmp_path / "b", "--preset", "bio-electra", "--drop-retracted", "--languages", "eng")
        == 0
    )
    for row in documents(tmp_path / "b").values():
        assert row["pmid"] >= 10_000_000
        assert not row["retracted"]
        assert "eng" in row["language"]
    funnel = manifest(tmp_path / "b")["funnel"]
    assert {"dropped: below-min-pmid", "dropped: retracted", "dropped: language"} <= set(funnel)
    assert run("--output", tmp_path / "c", "--keep-title-only", "--section-labels") == 0
    found = documents(tmp_path / "c")
    assert len(found) == 91  # facts of the sample: all that live, the book apart, with a title or an abstract
    assert any(line.startswith("METHODS: ") for row in found.values() for line in row["sentences"])


@pytest.mark.timeout(600)
def test_killed_at_any_moment_and_continued_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """``kill -9`` at ten moments spread over the run, each time continued, over eight files."""
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(1, 9):
        records = [citation(number * 1000 + pmid, "Some words. And others here.") for pmid in range(1500)]
        (inputs / f"pubmed26n{number:04d}.xml").write_bytes(
            pubmed_set(*records, deleted=(number * 1000 - 7,))
        )
    command = ["run", "pubmed_to_shards", "--workers", "2", "--input", str(inputs), "--output"]
    started = time.monotonic()
    assert beam(*command, tmp_path / "whole").returncode == 0
    lasts = time.monotonic() - started

    chance = random.Random(7)
    killed = 0
    for attempt in range(10):
        if attempt == 5:  # a second life: from nothing again
            shutil.rmtree(tmp_path / "killed", ignore_errors=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "bioshards.pipelines.cli", *command, str(tmp_path / "killed")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=chance.uniform(0.3, lasts * 0.98))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
    assert killed >= 5
    done = beam(*command, tmp_path / "killed")
    assert done.returncode == 0, done.stderr
    assert sums(tmp_path / "killed") == sums(tmp_path / "whole")
    left = list((tmp_path / "killed").rglob(".tmp-*"))
    assert left == []


def _begun(tmp_path: Path) -> tuple[list[str], subprocess.Popen[str]]:
    """A run of two workers over four files that lasts a few seconds: its command, its process."""
    source = tmp_path / "in"
    source.mkdir()
    for number in range(1, 5):
        records = [citation(number * 10_000 + pmid, "Some words here. " * 30) for pmid in range(9000)]
        (source / f"pubmed26n{number:04d}.xml").write_bytes(pubmed_set(*records))
    command = [sys.executable, "-m", "bioshards.pipelines.cli", "run", "pubmed_to_shards", "--workers", "2"]
    command += ["--input", str(source), "--output", str(tmp_path / "out")]
    return command, subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)


def _workers(session: int) -> list[int]:
    """The worker processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if b"sdk_worker_main" in path.read_bytes() and os.getsid(int(path.parent.name)) == session:
                found.append(int(path.parent.name))
    return found


def test_ctrl_c_stops_cleanly_and_the_next_run_continues(tmp_path: Path) -> None:
    command, process = _begun(tmp_path)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out" / ".bioshards" / "staged").glob("*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run the same command again to continue" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "out" / "manifest.json").exists()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 0
    assert len(documents(tmp_path / "out")) == 36_000


def test_a_killed_worker_ends_the_run_with_a_clear_word(tmp_path: Path) -> None:
    command, process = _begun(tmp_path)
    staged = tmp_path / "out" / ".bioshards" / "staged"
    deadline = time.monotonic() + 60
    while not list(staged.glob(".tmp-*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(_workers(process.pid)[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "a worker process ended before its time" in errors
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert len(documents(tmp_path / "out")) == 36_000


def test_two_runs_into_one_folder_do_not_mix(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    import fcntl

    assert run("--output", tmp_path) == 0
    with (tmp_path / ".bioshards" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run("--output", tmp_path) == 2
    assert "another run is writing" in capsys.readouterr().err


def test_the_manifest_names_inputs_and_outputs_with_checksums(reference: Path) -> None:
    import hashlib

    facts = manifest(reference)
    for item in facts["inputs"]:
        data = (SAMPLE / item["file"]).read_bytes()
        assert item["md5"] == hashlib.md5(data).hexdigest()
        assert item["bytes"] == len(data)
    for shard in facts["outputs"]:
        data = (reference / shard["file"]).read_bytes()
        assert shard["sha256"] == hashlib.sha256(data).hexdigest()
        assert shard["bytes"] == len(data)
    assert facts["run"]["bioshards"]
    assert json.dumps(facts["config"]["rules"])


def test_export_and_show(reference: Path) -> None:
    command = [sys.executable, "-m", "bioshards.corpus"]
    text = subprocess.run([*command, "export", reference], capture_output=True, text=True, check=True).stdout
    blocks = text.rstrip("\n").split("\n\n")
    assert [block.split("\n") for block in blocks] == [
        row["sentences"] for row in documents(reference).values()
    ]
    shown = subprocess.run(
        [*command, "show", reference, "--id", "pubmed:90000041"], capture_output=True, text=True, check=True
    )
    assert "pubmed26n0003.xml" in shown.stdout
    missing = subprocess.run(
        [*command, "show", reference, "--id", "pubmed:1"], capture_output=True, text=True, check=False
    )
    assert (missing.returncode, "has no document pubmed:1" in missing.stderr) == (1, True)
    nowhere = subprocess.run(
        [*command, "export", reference / "dropped"], capture_output=True, text=True, check=False
    )
    assert (nowhere.returncode, "no manifest.json" in nowhere.stderr) == (2, True)
