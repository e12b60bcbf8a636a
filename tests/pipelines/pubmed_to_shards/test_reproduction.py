"""``beam run NAME --like manifest.json`` repeats a run and compares its files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.manifest import DocumentsManifest, read_manifest
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli, reproduction
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml, write_pubmed_files
from tests.support.outputs import load_manifest, save_manifest

Capture = pytest.CaptureFixture[str]


def write_inputs(folder: Path, *texts: str) -> Path:
    return write_pubmed_files(
        folder, *(pubmed_set_xml(citation_xml(number, text)) for number, text in enumerate(texts, 1))
    )


def run(*arguments: str | Path) -> int:
    return cli.main(["run", "pubmed_to_shards", "--workers", "1", *map(str, arguments)])


@pytest.fixture(scope="module")
def first_output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of a run with options."""
    folder = tmp_path_factory.mktemp("first")
    inputs = write_inputs(folder / "in", "The mice slept. They woke.", "Another text. It is short.")
    assert run("--input", inputs, "--output", folder / "out", "--section-labels", "--min-pmid=2") == 0
    return folder / "out"


@pytest.fixture
def finished(first_output: Path, tmp_path: Path) -> Path:
    """Return the manifest of a copy of that output."""
    return Path(shutil.copytree(first_output, tmp_path / "out"), "manifest.json")


def test_run_is_repeated_from_its_manifest_alone(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    kept = shutil.copy(finished, tmp_path / "kept.json")
    shutil.rmtree(finished.parent)
    assert run("--like", kept, "--output", tmp_path / "again") == 0
    assert f"all 1 files have the SHA-256 of {kept}" in capsys.readouterr().out
    manifest = read_manifest(LocalStorage(), str(tmp_path / "again"))
    assert isinstance(manifest, DocumentsManifest)
    assert manifest.config.document_config["min_pmid"] == 2
    assert run(f"--like={kept}", "--output", tmp_path / "again") == 0
    assert "nothing to do" in capsys.readouterr().out


def test_differences_are_named(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    moved = write_inputs(tmp_path / "moved", "The mice slept. They woke.", "A changed text.", "A third one.")
    assert run("--like", finished, "--input", moved, "--output", tmp_path / "again") == 1
    output = capsys.readouterr().out
    assert "input pubmed26n0002.xml: other content" in output
    assert "input pubmed26n0003.xml: new" in output
    assert "pubmed26n0001.xml" not in output
    assert "differs from" in output


def test_manifest_that_the_run_replaces_is_compared_as_it_was(finished: Path, capsys: Capture) -> None:
    manifest = load_manifest(finished.parent)
    manifest["outputs"][0]["sha256"] = "0"
    save_manifest(finished.parent, manifest)
    assert run("--like", finished, "--output", finished.parent) == 1
    assert "other content" in capsys.readouterr().out


def test_edited_manifest_is_not_replayed(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    finished.write_text(finished.read_text().replace('"--min-pmid=2"', '"--min-pmid=3"'))
    assert run("--like", finished, "--output", tmp_path / "again") == 2
    assert f"{finished} is damaged or was edited: its SHA-256 is not" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def test_manifest_of_a_command_with_options_of_the_machine_alone(tmp_path: Path, capsys: Capture) -> None:
    assert run("--output", tmp_path / "out") == 0
    assert run("--like", tmp_path / "out" / "manifest.json", "--output", tmp_path / "again") == 0
    assert "all 3 files have the SHA-256 of" in capsys.readouterr().out


def add_to_command(manifest_path: Path, *words: str) -> None:
    """Add words to the command line in a manifest."""
    manifest = load_manifest(manifest_path.parent)
    manifest["run"]["command"] += words
    save_manifest(manifest_path.parent, manifest)


def test_secret_is_not_replayed(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    add_to_command(finished, "--s3_secret_access_key", "***")
    assert run("--like", finished, "--output", tmp_path / "again") == 0
    assert "recorded, not replayed: --s3_secret_access_key '***'" in capsys.readouterr().err


def test_manifest_of_a_stranger_names_no_program(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    """Beam would run the setup file, and start the worker that is named."""
    program = tmp_path / "setup.py"
    program.write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')")
    add_to_command(
        finished,
        *("--runner=DataflowRunner", "--setup_file", str(program), "--sdk_location", "\x1b[2J"),
        *("--pubmed-url", "https://example.org", "-x", "--mirror=/elsewhere", "--force"),
    )
    assert run("--like", finished, "--output", tmp_path / "again") == 0
    captured = capsys.readouterr()
    assert "all 1 files have the SHA-256 of" in captured.out
    assert not (tmp_path / "was_run").exists()
    assert f"--setup_file {program} --sdk_location" in captured.err
    assert "\x1b" not in captured.err
    assert "--runner=DataflowRunner" in captured.err
    assert "--pubmed-url https://example.org -x --mirror=/elsewhere --force" in captured.err


MACHINE_OPTIONS = {
    *("--help", "--output", "--like", "--dry-run", "--verify-inputs", "--workers", "--force"),
    *(
        "--connections",
        "--mirror",
        "--contact",
        "--allow-removals",
        "--allow-fewer-inputs",
        "--pubmed-url",
        "--pmc-url",
        "--europepmc-url",
    ),
}
"""Options of the machine and of the servers, which a manifest does not decide."""


def test_each_option_is_of_the_output_or_of_the_machine() -> None:
    names = {
        name
        for pipeline in cli.PIPELINES
        if pipeline != "fetch"  # it writes no manifest
        for name in cli.load_pipeline(pipeline).make_parser()._option_string_actions
        if name.startswith("--")
    }
    assert names == reproduction._REPLAYED | MACHINE_OPTIONS
    assert not reproduction._REPLAYED & MACHINE_OPTIONS


def test_no_option_of_beam_is_replayed(first_output: Path, finished: Path, capsys: Capture) -> None:
    names = [f"--{name}" for name in PipelineOptions([]).get_all_options()]
    assert len(names) > 150
    add_to_command(finished, *(word for name in names for word in (name, "value")))
    assert reproduction.expand_arguments("pubmed_to_shards", ["--like", str(finished)]) == [
        *("--input", str(first_output.parent / "in"), "--section-labels", "--min-pmid=2"),
        *("--like", str(finished)),
    ]
    printed = capsys.readouterr().err
    assert all(f" {name} value" in printed for name in names)


def test_unusable_manifests(finished: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "broken.json").write_text("{")
    for path, pipeline, message in (
        (tmp_path / "gone.json", "pubmed_to_shards", "cannot be read (No such file or directory)"),
        (tmp_path / "broken.json", "pubmed_to_shards", "cannot be read (Expecting"),
        (finished, "pmc_to_shards", "is the manifest of a run of pubmed_to_shards, not pmc_to_shards"),
    ):
        assert cli.main(["run", pipeline, "--like", str(path), "--output", str(tmp_path / "x")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
