"""The container images, as far as they can be told of without Docker.

What their Dockerfile says, and all that it does to Python environments, done in folders with its commands.
"""

from __future__ import annotations

import importlib.metadata
import json
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
from bioshards.pipelines.dataflow.settings import DEFAULTS
from bioshards.pipelines.registry import PIPELINES
from tests.support.cloud import store_emulators
from tests.support.dockerfile import (
    DOCKERFILE,
    StageEnvironments,
    is_in_build_context,
    list_checkout_files,
    parse_stages,
)
from tests.support.paths import PUBMED_SAMPLE, REPOSITORY

STAGES = ["", "beam", "template-launcher", "python", "wheel", "worker", "launcher", "trainer"]


def test_hadolint_has_nothing_to_say_and_no_rule_is_off() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([hadolint, "--no-color", DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "hadolint" not in DOCKERFILE.read_text()
    assert not [name for name in list_checkout_files() if "hadolint" in name]


def test_every_base_is_one_version() -> None:
    found = parse_stages()
    assert list(found) == STAGES
    bases = dict(value.split("=", 1) for value in found[""].values("ARG"))
    for name, image in bases.items():
        assert re.fullmatch(r"[\w./-]+:[\w.-]*\d[\w.-]*", image), f"{name}={image} is not one version"
        assert not image.endswith(":latest")
    for stage in list(found.values())[1:]:
        given = re.fullmatch(r"\$\{(\w+)\}", stage.base)
        assert given[1] in bases if given else stage.base in found, stage.base


def test_bases_fit_the_package() -> None:
    """Beam's image is of our Beam, and all are of one Python, one that the package allows."""
    bases = dict(value.split("=", 1) for value in parse_stages()[""].values("ARG"))
    assert bases["BEAM"] == f"apache/beam_python3.11_sdk:{importlib.metadata.version('apache-beam')}"
    assert bases["PYTHON"].startswith("python:3.11.")
    assert "/python311-template-launcher-base:" in bases["LAUNCHER"]


def test_what_is_copied_is_in_a_fresh_checkout_and_in_the_context() -> None:
    names = list_checkout_files()
    for stage in parse_stages().values():
        for value in stage.values("COPY"):
            words = [word for word in value.split() if not word.startswith("--")]
            if "--from=" in value:
                assert re.search(r"--from=(\S+)", value)[1] in parse_stages()  # type: ignore[index]
                continue
            for source in words[:-1]:
                below = [name for name in names if name == source or name.startswith(f"{source}/")]
                assert any(map(is_in_build_context, below)), f"{source} of {value} is not there"
        for mount in re.findall(r"--mount=(\S+)", " ".join(stage.values("RUN"))):
            given = dict(part.split("=") for part in mount.split(","))
            assert (
                given["from"] in parse_stages() if "from" in given else is_in_build_context(given["source"])
            ), mount


def test_the_context_is_what_images_are_made_of() -> None:
    for name in (
        ".git/config",
        ".data/pubmed/a.xml",
        "out/sample/manifest.json",
        "build/typing/x.py",
        "docker/x",
    ):
        assert not is_in_build_context(name)
    assert not is_in_build_context("tests/conftest.py")
    assert not is_in_build_context("train/__pycache__/a.pyc")
    assert is_in_build_context("corpus/sample/pubmed/pubmed26n0001.xml")
    assert (
        sum((REPOSITORY / name).stat().st_size for name in filter(is_in_build_context, list_checkout_files()))
        < 4e6
    )


def test_nothing_is_secret_fetched_from_addresses_or_run_as_root_without_need() -> None:
    found = parse_stages()
    for stage in found.values():
        assert not stage.values("ADD")
        assert not stage.values("HEALTHCHECK")  # they are batch jobs: their end is their health
        for instruction in ("ARG", "ENV"):
            for value in stage.values(instruction):
                assert not re.search("key|secret|token|password", value, re.IGNORECASE), value
    assert found["trainer"].values("USER") == ["10001:10001"]
    assert found["trainer"].steps[-3:-1][0][0] == "USER"
    for name in ("worker", "launcher"):  # Dataflow mounts for root what they write to
        assert not found[name].values("USER")


def test_launchers_differ_in_nothing_but_a_variable() -> None:
    """So that they share the worker's layers, and are at once worker and launcher."""
    launcher = parse_stages()["launcher"]
    assert launcher.base == "worker"
    assert not launcher.values("RUN")
    assert not launcher.values("ENTRYPOINT")
    assert parse_stages()["worker"].values("ENTRYPOINT") == ['["/opt/apache/beam/boot"]']
    after = [instruction for instruction, _ in launcher.steps]
    assert after.index("ARG") > max(i for i, instruction in enumerate(after) if instruction == "COPY")


def test_make_image_makes_each_once() -> None:
    """What make would do; it needs nothing but Docker."""
    command = ["make", "--dry-run", "--no-print-directory", "image", "REGISTRY=host/lab", "TAG=7"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    built = [line for line in done.stdout.splitlines() if line.startswith("docker build ")]
    names = [re.search(r"--tag (\S+)", line)[1] for line in built]  # type: ignore[index]
    wanted = ["worker", "trainer", *(name.replace("_", "-") for name in PIPELINES)]
    assert sorted(names) == sorted(f"host/lab/bioshards-{name}:7" for name in wanted)
    assert names[0] == "host/lab/bioshards-worker:7"
    assert all(f"--build-arg VERSION={__version__} " in line for line in built)
    for line in built:
        assert re.search(r"--target (\S+)", line)[1] in STAGES  # type: ignore[index]
    assert all(not line or line.startswith(("docker build ", "echo ")) for line in done.stdout.splitlines())
    refused = subprocess.run(["make", "push"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "say where to" in refused.stderr


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> StageEnvironments:
    """All stages, carried out on an odd checkout; third-party packages are lent by this environment."""
    lent = next(path for path in sys.path if path.endswith("site-packages"))
    images = StageEnvironments(tmp_path_factory.mktemp("images"), lent)
    for path in images.context.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o664)
        os.utime(path, (1e9, 1e9))
    for stage in ("wheel", "worker", "launcher", "trainer"):
        images.build_stage(stage)
    return images


def _run(
    images: StageEnvironments, stage: str, *words: object, **variables: str
) -> subprocess.CompletedProcess[str]:
    program, *rest = map(str, words)
    return subprocess.run(
        [images.bin(stage) / program, *rest],
        cwd=images.root(stage),
        env={**images.environment(stage), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_says_nothing_of_who_built_it_and_when(images: StageEnvironments) -> None:
    """So that the same sources are the same bytes: names in order, one time, one mode, the sources' bytes."""
    [path] = images.root("wheel").glob("wheels/*")
    assert path.name == f"bioshards-{__version__}-py3-none-any.whl"
    wheel = zipfile.ZipFile(path)
    entries = wheel.infolist()
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    modes = {entry.filename: entry.external_attr >> 16 for entry in entries}
    assert {mode for name, mode in modes.items() if not name.endswith("/RECORD")} == {0o100644}
    made = [entry.filename for entry in entries if ".dist-info/" in entry.filename]
    sources = [entry.filename for entry in entries if ".dist-info/" not in entry.filename]
    assert [entry.filename for entry in entries] == sources + made
    for name in sources:
        inside = name.removeprefix("bioshards/")
        source = REPOSITORY / (inside if "/" in inside else f"pipelines/_root/{inside}")
        assert wheel.read(name) == source.read_bytes()


def test_a_worker_has_the_pipelines_and_no_trainer(images: StageEnvironments) -> None:
    done = _run(images, "worker", "beam", "list")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in PIPELINES)
    package = images.site_packages("worker") / "bioshards"
    folders = {path.name for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {"corpus", "pipelines", "vocab"}


def test_a_launcher_makes_the_job_that_dataflow_starts(images: StageEnvironments, tmp_path: Path) -> None:
    """With the words that Dataflow's launcher gives; and the job's workers have the image, no wheel."""
    variables = images.environment("launcher")
    assert variables["BIOSHARDS_PIPELINE"] == "${PIPELINE}"
    image = "host/lab/bioshards-pubmed-to-shards:7"
    nobody = "import google.auth as a; from google.auth.credentials import AnonymousCredentials as C; "
    script = (
        f"{nobody}a.default = lambda *_, **__: (C(), 'test'); import runpy, sys; del sys.argv[0]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    with store_emulators.run_gcs() as store:
        for path in PUBMED_SAMPLE.iterdir():
            store_emulators.upload_object(store, f"in/{path.name}", path.read_bytes())
        words = [
            f"--input={store.url}/in/pubmed26n0001.xml;{store.url}/in/pubmed26n0003.xml",
            f"--output={store.url}/out",
            "--titles=false",
            "--runner=DataflowRunner",
            "--job_name=abstracts",
            "--project=my-lab",
            "--region=us-central1",
            f"--temp_location={store.url}/tmp",
            f"--staging_location={store.url}/staging",
            f"--template_location={store.url}/staging/job_object",
            f"--sdk_container_image={image}",
            "--newer_than_our_beam=1",
        ]
        done = _run(
            images,
            "launcher",
            *("python", "-c", script, variables["FLEX_TEMPLATE_PYTHON_PY_FILE"], *words, *store.options),
            **{**store.environment, "BIOSHARDS_PIPELINE": "pubmed_to_shards"},
        )
        assert done.returncode == 0, done.stderr
        job = json.loads(store_emulators.download_object(store, "staging/job_object"))
    assert job["name"] == "abstracts"
    [workers] = job["environment"]["workerPools"]
    assert workers["workerHarnessContainerImage"] == image
    assert workers["machineType"] == DEFAULTS.machine_type
    assert [package["name"] for package in workers["packages"]] == ["submission_environment_dependencies.txt"]
    assert "--newer_than_our_beam=1 is passed over" in done.stderr


def test_what_images_install_is_pinned_and_fits_together() -> None:
    """What ``pip check`` says in a build; and that torch and what is made for it are not on workers."""
    assert _extras("worker") == {"cloud", "vocab"}
    worker, trainer = (_installed("bioshards", _extras(stage)) for stage in ("worker", "trainer"))
    assert {"apache-beam", "boto3", "google-cloud-storage", "lxml", "pyarrow", "tokenizers"} <= worker
    assert not {"torch", "transformers", "matplotlib", "optuna", "pytest", "spacy"} & worker
    assert {"torch", "transformers", "tokenizers", "sentencepiece"} <= trainer


def _extras(stage: str) -> set[str]:
    [command] = parse_stages()[stage].values("RUN")
    return set(re.search(r'"bioshards\[([\w,]+)\] @ ', command)[1].split(","))  # type: ignore[index]


def _installed(name: str, extras: set[str]) -> set[str]:
    """The names of a package and of all that it needs, each of which has the version that is pinned."""
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines if "==" in line}
    seen: set[tuple[str, str]] = set()
    waiting = [(name, extra) for extra in ("", *extras)]
    while waiting:
        package, extra = waiting.pop()
        if (package, extra) in seen:
            continue
        seen.add((package, extra))
        for line in _requirements(package):
            wanted = Requirement(line)
            if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
                continue
            other = canonicalize_name(wanted.name)
            waiting += [(other, each) for each in ("", *wanted.extras)]
            if other != "bioshards":
                assert wanted.specifier.contains(pinned[other], prereleases=True), f"{package}: {line}"
    return {package for package, _ in seen}


def _requirements(package: str) -> list[str]:
    if package != "bioshards":
        return importlib.metadata.requires(package) or []
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"].items()
    return [
        *project["dependencies"],
        *(f'{line}; extra == "{extra}"' for extra, lines in optional for line in lines),
    ]


def test_the_trainer_s_entry_point_is_the_trainer(images: StageEnvironments) -> None:
    """Found where it runs, not started: it would import torch for seconds to say its options."""
    assert parse_stages()["trainer"].values("ENTRYPOINT") == ['["python", "-m", "bioshards.train"]']
    script = "import importlib.util as u; print(u.find_spec('bioshards.train.__main__').origin)"
    done = _run(images, "trainer", "python", "-c", script)
    assert Path(done.stdout.strip()) == images.site_packages("trainer") / "bioshards/train/__main__.py", (
        done.stderr
    )
    assert (images.site_packages("trainer") / "bioshards/evaluate/__main__.py").is_file()
