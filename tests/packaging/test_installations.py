"""The package: folders that keep their arrows, and installations that work and overwrite nothing."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.evaluate.sample import benchmark_sample
from tests.support.paths import REPOSITORY

ROOT = REPOSITORY
FOLDERS = ("corpus", "evaluate", "pipelines", "train", "vocab")


def test_the_libraries_of_extras_are_imported_when_asked_for(tmp_path: Path) -> None:
    script = (
        "import sys; from bioshards.pipelines import cli; "
        "assert cli.main(['run', 'pubmed_to_shards', '--workers', '1', '--output', sys.argv[1]]) == 0; "
        "assert not {'spacy', 'scispacy', 'nltk', 'tokenizers'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_module_says_why_it_exists() -> None:
    for folder in (*FOLDERS, "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            if path.read_text().strip():
                assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"


def test_the_repository_speaks_of_itself_alone() -> None:
    """No path of one machine and no package registry's host in what is committed."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.split("\n") if listed.returncode == 0 else []
    forbidden = [f"/{name}/" for name in ("work", "root", "home")] + [
        "pypi" + ".org",
        "files.python" + "hosted",
    ]
    for name in filter(None, names):
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".cff", "", ".xml"}:
            text = path.read_text()
            for word in forbidden:
                assert word not in text, f"{name} holds {word}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(sdist, wheel made from that sdist), built from a copy of what git would check out."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
    )
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def test_the_wheel_holds_one_top_level_package_and_the_sample(built: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(built[1]).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"bioshards"}
    for wanted in (
        "__init__.py",
        "py.typed",
        "corpus/pubmed/citation.py",
        "pipelines/cli.py",
        "corpus/sample/pubmed/pubmed26n0001.xml",
        "corpus/sample/pmc/PMC9990001.1.xml",
        "evaluate/metrics/tag_f1.py",
        "evaluate/benchmarks/formats/iob.py",
        "evaluate/sample/README.md",
        *(f"evaluate/sample/{name}" for name in benchmark_sample.sample_contents()),
    ):
        assert f"bioshards/{wanted}" in names
    with tarfile.open(built[0]) as sdist:
        for wanted in ("corpus/sample/pubmed/pubmed26n0003.xml", "evaluate/sample/biosses/biosses.tsv"):
            assert any(name.endswith(f"/{wanted}") for name in sdist.getnames())


def test_nothing_of_the_evaluate_package_is_overwritten(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Hugging Face's ``evaluate`` is installed beside us here, as are its users' other packages.

    Looked for from elsewhere: in this folder Python's path begins with it, and our evaluate/ is here.
    """
    found = [sys.executable, "-c", "import evaluate; print(evaluate.load)"]
    done = subprocess.run(found, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ours = {name for name in zipfile.ZipFile(built[1]).namelist() if ".dist-info/" not in name}
    for package in ("evaluate", "datasets", "apache-beam"):
        theirs = {str(path) for path in importlib.metadata.files(package) or []}
        assert theirs
        assert not ours & theirs


@pytest.fixture(scope="module")
def second_environment(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of another environment, with our sdist installed; our dependencies are lent to it."""
    folder = tmp_path_factory.mktemp("second")
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    lent = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "lent.pth").write_text(lent + "\n")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install"),
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            built[0],
        ],
        check=True,
        cwd=folder,
    )
    return folder / "bin"


def test_the_sdist_works_in_a_second_environment(second_environment: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            second_environment / "beam",
            "run",
            "pubmed_to_shards",
            "--workers",
            "1",
            "--output",
            tmp_path / "out",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "77 documents" in done.stdout
    where = subprocess.run(
        [second_environment / "python", "-c", "import bioshards.corpus; print(bioshards.corpus.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(second_environment.parent) in where.stdout


@pytest.mark.timeout(300)
def test_a_job_service_with_a_worker_of_its_own_gives_the_same_bytes(
    second_environment: Path, reference: Path, full_text: Path, tmp_path: Path
) -> None:
    """The portable path to Flink and Spark: our pipelines, Beam's job service, a worker with our sdist."""
    from tests.support.cloud import portable_runner
    from tests.support.fork_server import run_beam
    from tests.support.outputs import published_digests

    words = tmp_path / "words"
    assert run_beam("run", "shards_to_words", "--input", reference, "--output", words).returncode == 0
    expected: dict[str, tuple[Path, list[object]]] = {
        "pubmed_to_shards": (reference, ["--keep-dropped"]),
        "pmc_to_shards": (full_text, ["--keep-dropped"]),
        "shards_to_words": (words, ["--input", reference]),
    }
    with portable_runner.run_portable_services(tmp_path, str(second_environment / "python")) as options:
        for pipeline, (here, given) in expected.items():
            done = run_beam("run", pipeline, *given, "--output", tmp_path / pipeline, *options)
            assert done.returncode == 0, done.stderr
            assert published_digests(tmp_path / pipeline) == published_digests(here), pipeline
