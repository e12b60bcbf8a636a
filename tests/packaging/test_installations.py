"""The repository, the built distributions, and installations of them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.cloud import portable_runner
from tests.support.distributions import build_distributions
from tests.support.fork_server import run_beam
from tests.support.outputs import published_digests
from tests.support.paths import REPOSITORY

pytestmark = pytest.mark.thorough  # this file takes minutes

ROOT = REPOSITORY


def test_libraries_of_extras_are_imported_lazily(tmp_path: Path) -> None:
    script = (
        "import sys; from bioshards.pipelines import cli; "
        "assert cli.main(['run', 'pubmed_to_shards', '--workers', '1', '--output', sys.argv[1]]) == 0; "
        "assert not {'spacy', 'scispacy', 'nltk', 'tokenizers', 'obstore'} & set(sys.modules)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr


def _list_tracked_files(*folders: str) -> list[str]:
    """Return the names of the files of this repository, of some folders or of all."""
    command = ["git", "ls-files", *folders]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_repository_has_no_local_paths_and_no_registry_hosts() -> None:
    forbidden = [f"/{name}/" for name in ("work", "root", "home")] + [
        "pypi" + ".org",
        "files.python" + "hosted",
    ]
    for name in _list_tracked_files():
        path = ROOT / name
        if path.is_file() and path.suffix in {".py", ".md", ".toml", ".txt", ".cff", "", ".xml"}:
            text = path.read_text()
            for word in forbidden:
                assert word not in text, f"{name} holds {word}"


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(sdist, wheel built from that sdist), built from the files of a checkout."""
    return build_distributions(tmp_path_factory.mktemp("dist"))


def test_wheel_has_every_file_of_the_package(distributions: tuple[Path, Path]) -> None:
    tracked = _list_tracked_files("corpus", "evaluate", "pipelines", "train", "vocab")
    wheel = zipfile.ZipFile(distributions[1])
    assert {entry.date_time for entry in wheel.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    names = wheel.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"bioshards"}
    assert {f"bioshards/{name}" for name in (*tracked, "__init__.py", "py.typed")} <= set(names)
    with tarfile.open(distributions[0]) as sdist:
        assert set(tracked) <= {
            name.partition("/")[2].removeprefix("src/bioshards/") for name in sdist.getnames()
        }


def test_every_module_of_the_wheel_can_be_imported(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    zipfile.ZipFile(distributions[1]).extractall(tmp_path)
    program = """
import importlib, pkgutil, bioshards
for module in pkgutil.walk_packages(bioshards.__path__, "bioshards."):
    if not module.name.endswith("__main__"):
        print(importlib.import_module(module.name).__file__)
"""
    completed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    modules = completed.stdout.splitlines()
    assert all(module.startswith(str(tmp_path)) for module in modules)
    assert len(modules) > 200


def test_wheel_overwrites_no_file_of_other_packages(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    """Hugging Face's ``evaluate`` and other packages are installed beside ours.

    It is imported from another folder, since this one contains our ``evaluate/``.
    """
    command = [sys.executable, "-c", "import evaluate; print(evaluate.load)"]
    completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    ours = {name for name in zipfile.ZipFile(distributions[1]).namelist() if ".dist-info/" not in name}
    for package in ("evaluate", "datasets", "apache-beam"):
        theirs = {str(path) for path in importlib.metadata.files(package) or []}
        assert theirs
        assert not ours & theirs


@pytest.fixture(scope="module")
def second_environment(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of another environment with our sdist; dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("second")
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    site_packages = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "lent.pth").write_text(site_packages + "\n")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install"),
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            distributions[0],
        ],
        check=True,
        cwd=folder,
    )
    return folder / "bin"


def test_sdist_works_in_a_second_environment(second_environment: Path, tmp_path: Path) -> None:
    def run(program: str, *arguments: str) -> str:
        command = [str(second_environment / program), *arguments]
        completed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr
        return completed.stdout

    assert "77 documents" in run("beam", "run", "pubmed_to_shards", "--workers", "1", "--output", "out")
    run("python", "-m", "bioshards.corpus", "stats", "out", "--html", "stats.html")
    assert "Document shards: out" in (tmp_path / "stats.html").read_text()
    location = run("python", "-c", "import bioshards.corpus; print(bioshards.corpus.__file__)")
    assert str(second_environment.parent) in location


@pytest.mark.timeout(300)
def test_portable_job_service_gives_the_same_bytes(
    second_environment: Path, reference: Path, full_text: Path, tmp_path: Path
) -> None:
    """The portable path to Flink and Spark: Beam's job service, and a worker with our sdist."""
    words = tmp_path / "words"
    assert run_beam("run", "shards_to_words", "--input", reference, "--output", words).returncode == 0
    expected: dict[str, tuple[Path, list[object]]] = {
        "pubmed_to_shards": (reference, ["--keep-dropped"]),
        "pmc_to_shards": (full_text, ["--keep-dropped"]),
        "shards_to_words": (words, ["--input", reference]),
    }
    with portable_runner.run_portable_services(tmp_path, str(second_environment / "python")) as options:
        for pipeline, (reference_output, arguments) in expected.items():
            completed = run_beam("run", pipeline, *arguments, "--output", tmp_path / pipeline, *options)
            assert completed.returncode == 0, completed.stderr
            assert published_digests(tmp_path / pipeline) == published_digests(reference_output), pipeline
