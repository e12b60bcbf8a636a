"""The container images, tested without Docker: the Dockerfile is parsed."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bioshards import __version__
from tests.support.dockerfile import SOURCE_DATE_EPOCH, is_in_build_context, list_checkout_files, parse_stages
from tests.support.paths import REPOSITORY

pytestmark = pytest.mark.thorough  # this file takes minutes

STAGES = ["", "beam", "python", "wheel", "worker", "trainer"]


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


def test_images_start_programs_that_they_have() -> None:
    stages = parse_stages()
    assert stages["worker"].values("ENTRYPOINT") == ['["/opt/apache/beam/boot"]']
    assert stages["worker"].values("COPY") == ["--from=beam /opt/apache/beam /opt/apache/beam"]
    assert stages["trainer"].values("ENTRYPOINT") == ['["python", "-m", "bioshards.train"]']
    assert (REPOSITORY / "train/__main__.py").is_file()


def test_wheel_depends_on_the_sources_alone() -> None:
    """Times and modes are in a wheel; test_installations.py builds one with this time."""
    stages = parse_stages()
    assert f"SOURCE_DATE_EPOCH={SOURCE_DATE_EPOCH}" in stages["python"].values("ARG")
    assert any("chmod -R u=rwX,go=rX ." in command for command in stages["wheel"].values("RUN"))


def test_worker_lacks_the_folders_of_the_trainer() -> None:
    [command] = parse_stages()["worker"].values("RUN")
    removed = re.findall(r'"\$packages/bioshards/(\w+)"', command)
    assert removed == ["evaluate", "train"]
    assert all((REPOSITORY / name / "__init__.py").is_file() for name in removed)


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
