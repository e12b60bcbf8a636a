"""docker/Dockerfile without Docker: its stages, executed in a folder with a virtual environment.

COPY, ENV and RUN lines are executed as written, except that ``/`` is a folder and a virtual environment
stands for the base image.  ``python -m tests.support.dockerfile
FOLDER`` does so with all dependencies, as a build does, and says what each stage takes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import venv
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser

from tests.support.paths import REPOSITORY

DOCKERFILE = REPOSITORY / "docker/Dockerfile"


@dataclass
class Stage:
    """One ``FROM ... AS name`` with what follows it: (instruction, value) in order."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def values(self, instruction: str) -> list[str]:
        return [value for name, value in self.steps if name == instruction]


def parse_stages() -> dict[str, Stage]:
    """Parse the stages of the Dockerfile by name; lines before the first stage have the name ''."""
    stages_by_name = {"": Stage("", "")}
    stage = stages_by_name[""]
    for step in DockerfileParser(str(DOCKERFILE)).structure:
        if step["instruction"] == "FROM":
            base, _, name = step["value"].partition(" AS ")
            stage = stages_by_name[name] = Stage(name, base)
        elif step["instruction"] != "COMMENT":
            stage.steps.append((step["instruction"], step["value"]))
    return stages_by_name


def is_in_build_context(path: str) -> bool:
    """Return True if .dockerignore admits a path: the last matching line decides, as in Docker."""
    is_included = True
    for line in (REPOSITORY / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            is_negated = line.startswith("!")
            pattern = re.escape(line.lstrip("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
            if re.fullmatch(f"{pattern}(/.*)?", path):
                is_included = is_negated
    return is_included


def list_checkout_files() -> list[str]:
    """List tracked files, and untracked ones that git does not ignore."""
    completed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:  # a checkout without git's own files
        paths = (path.relative_to(REPOSITORY) for path in REPOSITORY.rglob("*") if _is_file(path))
        return [str(path) for path in paths if not str(path).startswith(("build/", "out/", "."))]
    return [name for name in completed.stdout.splitlines() if _is_file(REPOSITORY / name)]


def _is_file(path: Path) -> bool:
    """Return True for a file or a link, such as those in src/bioshards."""
    return path.is_file() or path.is_symlink()


class StageEnvironments:
    """Stages executed below a folder.

    Args:
        lent: a folder of installed packages that stands for what a network would give; None to install
            everything.  ``pip check`` is left out then, as it would check the lender.
    """

    def __init__(self, folder: Path, host_packages: str | None) -> None:
        self.folder, self.host_packages = folder, host_packages
        self.stages = parse_stages()
        self.context = folder / "context"
        for name in filter(is_in_build_context, list_checkout_files()):
            (self.context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY / name, self.context / name, follow_symlinks=False)

    def root(self, stage: str) -> Path:
        """Return the root folder of a stage, shared with the stage that it continues."""
        base = self.stages[stage].base
        return self.root(base) if base in ("worker", "trainer") else self.folder / stage

    def bin(self, stage: str) -> Path:
        return self.root(stage) / "usr/local/bin"

    def site_packages(self, stage: str) -> Path:
        [found] = self.root(stage).glob("usr/local/lib/python*/site-packages")
        return found

    def environment(self, stage: str) -> dict[str, str]:
        """The variables of a process in the stage: what it and the stages below it set, and few besides."""
        if self.host_packages:
            variables = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_COMPILE": "1"}
        else:  # where packages come from
            variables = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        variables |= {
            "PATH": f"{self.bin(stage)}:/usr/bin:/bin",
            "HOME": str(self.root(stage)),
            "LANG": "C.UTF-8",
        }
        current_stage = stage
        while current_stage in self.stages:
            for instruction, value in self.stages[current_stage].steps:
                if instruction in ("ARG", "ENV"):
                    assignments = re.findall(r'(\w+)=("[^"]*"|\S+)', value)
                    variables = {
                        name: self._resolve_image_paths(stage, text.strip('"')) for name, text in assignments
                    } | variables
            current_stage = self.stages[current_stage].base
        return variables

    def build_stage(self, stage: str) -> None:
        """Execute a stage in an empty environment or in that of its base stage."""
        working_dir = root = self.root(stage)
        if not self.bin(stage).exists():
            self._create_base_environment(stage)
        for instruction, value in self.stages[stage].steps:
            if instruction == "WORKDIR":
                working_dir = root / value.lstrip("/")
                working_dir.mkdir(parents=True)
            elif instruction == "COPY" and not value.startswith("--from"):
                self._run_copy_step(stage, working_dir, value)
            elif instruction == "RUN":
                self._run_command_step(stage, working_dir, value)

    def _create_base_environment(self, stage: str) -> None:
        venv.create(self.root(stage) / "usr/local", with_pip=self.host_packages is None, symlinks=True)
        if self.host_packages:
            (self.site_packages(stage) / "lent.pth").write_text(f"{self.host_packages}\n")
            pip = self.bin(stage) / "pip"
            pip.write_text(f'#!/bin/sh\n[ "$1" = check ] || exec {self.bin(stage)}/python -m pip "$@"\n')
            pip.chmod(0o755)

    def _run_copy_step(self, stage: str, working_dir: Path, value: str) -> None:
        *sources, target = value.split()
        for source in sources:
            path = self.context / source
            target_dir = (
                self.root(stage) / target.lstrip("/") if target.startswith("/") else working_dir / target
            )
            if path.is_dir():
                shutil.copytree(path, target_dir, symlinks=True)
            else:
                target_dir.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target_dir / path.name)

    def _run_command_step(self, stage: str, working_dir: Path, value: str) -> None:
        mount_links = []
        for mount in re.findall(r"--mount=(\S+)", value):
            mount_options = dict(part.split("=") for part in mount.split(","))
            source = self.root(mount_options["from"]) if "from" in mount_options else self.context
            mount_links.append(self.root(stage) / mount_options["target"].lstrip("/"))
            mount_links[-1].symlink_to(source / mount_options["source"].lstrip("/"))
        command = self._resolve_image_paths(stage, re.sub(r"--mount=\S+\s*", "", value))
        completed = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=working_dir,
            env=self.environment(stage),
            capture_output=True,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, f"{command}\n{completed.stdout}\n{completed.stderr}"
        for link in mount_links:
            link.unlink()

    def _resolve_image_paths(self, stage: str, text: str) -> str:
        """Replace absolute paths of the image by paths below the stage's folder."""
        return re.sub(
            r"(?<![\w./}$:])/(?=(wheels|constraints\.txt|opt|source)\b)", f"{self.root(stage)}/", text
        )


def main() -> None:
    """Make the images' environments for real, and print what they take."""
    images = StageEnvironments(Path(sys.argv[1]).absolute(), None)
    for stage in ("wheel", "worker", "trainer"):
        started_at = time.monotonic()
        images.build_stage(stage)
        seconds = time.monotonic() - started_at
        size = sum(path.lstat().st_size for path in images.root(stage).rglob("*") if path.is_file())
        print(f"{stage}: {seconds:.0f} s, {size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
