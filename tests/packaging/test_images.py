"""The container images, tested without Docker.

The Dockerfile is parsed, and the commands of its stages are run in folders.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bioshards import __version__
from bioshards.pipelines.cli import PIPELINES
from tests.support.dockerfile import (
    DOCKERFILE,
    StageEnvironments,
    is_in_build_context,
    list_checkout_files,
    parse_stages,
)
from tests.support.paths import REPOSITORY

STAGES = ["", "beam", "python", "wheel", "worker", "trainer"]


def test_hadolint_passes_with_all_rules() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    completed = subprocess.run(
        [hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True, check=False
    )
    assert (completed.returncode, completed.stdout) == (0, "")
    assert "hadolint" not in DOCKERFILE.read_text()
    assert not [name for name in list_checkout_files() if "hadolint" in name]


def test_base_images_are_pinned() -> None:
    stages = parse_stages()
    assert list(stages) == STAGES
    bases = dict(value.split("=", 1) for value in stages[""].values("ARG"))
    for name, image in bases.items():
        assert re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", image), f"{name}={image} is not one version"
        assert not image.endswith(":latest")
    for stage in list(stages.values())[1:]:
        variable = re.fullmatch(r"\$\{(\w+)\}", stage.base)
        assert variable[1] in bases if variable else stage.base in stages, stage.base


def test_base_images_have_the_versions_of_beam_and_python() -> None:
    """Beam's image has the installed version of Beam; all images have the same Python version."""
    bases = dict(value.split("=", 1) for value in parse_stages()[""].values("ARG"))
    assert bases["BEAM"] == f"apache/beam_python3.11_sdk:{importlib.metadata.version('apache-beam')}"
    assert bases["PYTHON"].startswith("python:3.11.")


def test_copied_files_are_in_the_checkout_and_the_build_context() -> None:
    names = list_checkout_files()
    for stage in parse_stages().values():
        for value in stage.values("COPY"):
            arguments = [word for word in value.split() if not word.startswith("--")]
            if "--from=" in value:
                assert re.search(r"--from=(\S+)", value)[1] in parse_stages()  # type: ignore[index]
                continue
            for source in arguments[:-1]:
                matching = [name for name in names if name == source or name.startswith(f"{source}/")]
                assert any(map(is_in_build_context, matching)), f"{source} of {value} is not there"
        for mount in re.findall(r"--mount=(\S+)", " ".join(stage.values("RUN"))):
            mount_options = dict(part.split("=") for part in mount.split(","))
            assert (
                mount_options["from"] in parse_stages()
                if "from" in mount_options
                else is_in_build_context(mount_options["source"])
            ), mount


def test_build_context_has_only_the_sources() -> None:
    for name in (
        ".git/config",
        ".data/pubmed/a.xml",
        "out/sample/manifest.json",
        "build/docs/x.html",
        "docker/x",
    ):
        assert not is_in_build_context(name)
    assert not is_in_build_context("tests/conftest.py")
    assert not is_in_build_context("train/__pycache__/a.pyc")
    assert is_in_build_context("corpus/sample/pubmed/pubmed26n0001.xml")
    assert (
        sum(
            (REPOSITORY / name).lstat().st_size for name in filter(is_in_build_context, list_checkout_files())
        )
        < 4e6
    )


def test_no_secrets_no_remote_files_and_no_unneeded_root() -> None:
    stages = parse_stages()
    for stage in stages.values():
        assert not stage.values("ADD")
        assert not stage.values("HEALTHCHECK")  # batch jobs need no health check
        for instruction in ("ARG", "ENV"):
            for value in stage.values(instruction):
                assert not re.search("key|secret|token|password", value, re.IGNORECASE), value
    assert stages["trainer"].values("USER") == ["10001:10001"]
    assert stages["trainer"].steps[-3:-1][0][0] == "USER"
    assert not stages["worker"].values("USER")  # Dataflow mounts its output folders for root


def test_worker_starts_the_program_of_beam() -> None:
    assert parse_stages()["worker"].values("ENTRYPOINT") == ['["/opt/apache/beam/boot"]']


def test_make_image_builds_each_image_once() -> None:
    """A dry run of make lists docker builds and messages only."""
    command = ["make", "--dry-run", "--no-print-directory", "image", "REGISTRY=host/lab", "TAG=7"]
    completed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    build_commands = [line for line in completed.stdout.splitlines() if line.startswith("docker build ")]
    names = [re.search(r"--tag (\S+)", line)[1] for line in build_commands]  # type: ignore[index]
    assert names == [f"host/lab/bioshards-{name}:7" for name in ("worker", "trainer")]
    assert all(f"--build-arg VERSION={__version__} " in line for line in build_commands)
    for line in build_commands:
        assert re.search(r"--target (\S+)", line)[1] in STAGES  # type: ignore[index]
    assert all(
        not line or line.startswith(("docker build ", "echo ")) for line in completed.stdout.splitlines()
    )
    push = subprocess.run(["make", "push"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert push.returncode == 2
    assert "say where to" in push.stderr


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> StageEnvironments:
    """All stages, built from a checkout with unusual modes and times.

    Third-party packages come from this environment.
    """
    site_packages = next(path for path in sys.path if path.endswith("site-packages"))
    images = StageEnvironments(tmp_path_factory.mktemp("images"), site_packages)
    for path in images.context.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o664)
        os.utime(path, (1e9, 1e9))
    for stage in ("wheel", "worker", "trainer"):
        images.build_stage(stage)
    return images


def run_in_stage(
    images: StageEnvironments, stage: str, *command: object, **variables: str
) -> subprocess.CompletedProcess[str]:
    program, *rest = map(str, command)
    return subprocess.run(
        [images.bin(stage) / program, *rest],
        cwd=images.root(stage),
        env={**images.environment(stage), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_wheel_is_reproducible(images: StageEnvironments) -> None:
    """The same sources give the same bytes: metadata last, one time, one mode, the sources' bytes."""
    [path] = images.root("wheel").glob("wheels/*")
    assert path.name == f"bioshards-{__version__}-py3-none-any.whl"
    wheel = zipfile.ZipFile(path)
    entries = wheel.infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    modes = {entry.filename: entry.external_attr >> 16 for entry in entries}
    assert {mode for name, mode in modes.items() if not name.endswith("/RECORD")} == {0o100644}
    metadata_files = [entry.filename for entry in entries if ".dist-info/" in entry.filename]
    sources = [entry.filename for entry in entries if ".dist-info/" not in entry.filename]
    assert [entry.filename for entry in entries] == sources + metadata_files
    for name in sources:
        path_in_package = name.removeprefix("bioshards/")
        source = REPOSITORY / (
            path_in_package if "/" in path_in_package else f"src/bioshards/{path_in_package}"
        )
        assert wheel.read(name) == source.read_bytes()


def test_worker_has_the_pipelines_and_no_trainer(images: StageEnvironments) -> None:
    completed = run_in_stage(images, "worker", "beam", "list")
    assert completed.returncode == 0, completed.stderr
    assert all(name in completed.stdout for name in PIPELINES)
    package = images.site_packages("worker") / "bioshards"
    folders = {path.name for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {"corpus", "pipelines", "vocab"}


def test_installed_packages_are_pinned_and_compatible() -> None:
    """This repeats what ``pip check`` finds in a build.  Workers have neither torch nor its libraries."""
    assert read_extras("worker") == {"cloud", "vocab"}
    worker, trainer = (
        resolve_requirements("bioshards", read_extras(stage)) for stage in ("worker", "trainer")
    )
    assert {"apache-beam", "boto3", "google-auth", "lxml", "obstore", "pyarrow", "tokenizers"} <= worker
    assert not {"torch", "transformers", "matplotlib", "optuna", "pytest", "spacy"} & worker
    assert {"torch", "transformers", "tokenizers", "sentencepiece"} <= trainer


def read_extras(stage: str) -> set[str]:
    [command] = parse_stages()[stage].values("RUN")
    return set(re.search(r'"bioshards\[([\w,]+)\] @ ', command)[1].split(","))  # type: ignore[index]


def resolve_requirements(name: str, extras: set[str]) -> set[str]:
    """Return the names of a package and of all its requirements, and check their pinned versions."""
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    constraints = [Requirement(line) for line in lines if not line.startswith("#")]
    pinned = {
        canonicalize_name(constraint.name): str(constraint.specifier).removeprefix("==")
        for constraint in constraints
        if not constraint.marker or constraint.marker.evaluate()
    }
    seen: set[tuple[str, str]] = set()
    queue = [(name, extra) for extra in ("", *extras)]
    while queue:
        package, extra = queue.pop()
        if (package, extra) in seen:
            continue
        seen.add((package, extra))
        for line in list_requirements(package):
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
                continue
            dependency = canonicalize_name(requirement.name)
            queue += [(dependency, dependency_extra) for dependency_extra in ("", *requirement.extras)]
            if dependency != "bioshards":
                assert requirement.specifier.contains(pinned[dependency], prereleases=True), (
                    f"{package}: {line}"
                )
    return {package for package, _ in seen}


def list_requirements(package: str) -> list[str]:
    if package != "bioshards":
        return importlib.metadata.requires(package) or []
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"].items()
    return [
        *project["dependencies"],
        *(f'{line}; extra == "{extra}"' for extra, lines in optional for line in lines),
    ]


def test_entry_point_of_the_trainer(images: StageEnvironments) -> None:
    """The module is located without starting it, since importing torch takes seconds."""
    assert parse_stages()["trainer"].values("ENTRYPOINT") == ['["python", "-m", "bioshards.train"]']
    script = "import importlib.util as u; print(u.find_spec('bioshards.train.__main__').origin)"
    completed = run_in_stage(images, "trainer", "python", "-c", script)
    assert (
        Path(completed.stdout.strip()) == images.site_packages("trainer") / "bioshards/train/__main__.py"
    ), completed.stderr
    assert (images.site_packages("trainer") / "bioshards/evaluate/__main__.py").is_file()
