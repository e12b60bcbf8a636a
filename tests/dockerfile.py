"""docker/Dockerfile without Docker: its stages, and what they do to a Python environment, done in a folder.

A stage's COPY, ENV and RUN lines are carried out as they are written, but for where ``/`` is: in a folder,
with an environment of Python's own for what the base image has.  ``python -m tests.dockerfile FOLDER`` does
so with all dependencies, as a build does, and says what each stage takes.
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

ROOT = Path(__file__).parent.parent
DOCKERFILE = ROOT / "docker/Dockerfile"


@dataclass
class Stage:
    """One ``FROM ... AS name`` with what follows it: (instruction, value) in order."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def values(self, instruction: str) -> list[str]:
        return [value for name, value in self.steps if name == instruction]


def stages() -> dict[str, Stage]:
    """The Dockerfile's stages by name; what stands before the first is that of no name."""
    found = {"": Stage("", "")}
    stage = found[""]
    for step in DockerfileParser(str(DOCKERFILE)).structure:
        if step["instruction"] == "FROM":
            base, _, name = step["value"].partition(" AS ")
            stage = found[name] = Stage(name, base)
        elif step["instruction"] != "COMMENT":
            stage.steps.append((step["instruction"], step["value"]))
    return found


def in_context(path: str) -> bool:
    """Does .dockerignore let the path into a build?  By Docker's rule: the last line that fits decides."""
    let = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        if line and not line.startswith("#"):
            wanted = line.startswith("!")
            pattern = re.escape(line.lstrip("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
            if re.fullmatch(f"{pattern}(/.*)?", path):
                let = wanted
    return let


def checkout() -> list[str]:
    """The files that git would check out, and new ones that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:  # a checkout without git's own files
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return [str(path) for path in paths if not str(path).startswith(("build/", "out/", "."))]
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


class Images:
    """Stages carried out below a folder.

    Args:
        lent: a folder of installed packages that stands for what a network would give; None to install
            everything.  ``pip check`` is left out then, as it would check the lender.
    """

    def __init__(self, folder: Path, lent: str | None) -> None:
        self.folder, self.lent = folder, lent
        self.stages = stages()
        self.context = folder / "context"
        for name in filter(in_context, checkout()):
            (self.context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, self.context / name)

    def root(self, stage: str) -> Path:
        """What is ``/`` to a stage; one that goes on from another that is more than a base has the same."""
        base = self.stages[stage].base
        return self.root(base) if base in ("worker", "trainer") else self.folder / stage

    def bin(self, stage: str) -> Path:
        return self.root(stage) / "usr/local/bin"

    def packages(self, stage: str) -> Path:
        [found] = self.root(stage).glob("usr/local/lib/python*/site-packages")
        return found

    def environment(self, stage: str) -> dict[str, str]:
        """The variables of a process in the stage: what it and the stages below it set, and few besides."""
        if self.lent:
            found = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_COMPILE": "1"}
        else:  # where packages come from
            found = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        found |= {
            "PATH": f"{self.bin(stage)}:/usr/bin:/bin",
            "HOME": str(self.root(stage)),
            "LANG": "C.UTF-8",
        }
        below = stage
        while below in self.stages:
            for instruction, value in self.stages[below].steps:
                if instruction in ("ARG", "ENV"):
                    set_here = re.findall(r'(\w+)=("[^"]*"|\S+)', value)
                    found = {name: self._here(stage, text.strip('"')) for name, text in set_here} | found
            below = self.stages[below].base
        return found

    def make(self, stage: str) -> None:
        """Carry the stage out, from an empty environment or that of the stage below it."""
        where = root = self.root(stage)
        if not self.bin(stage).exists():
            self._environment_of_base(stage)
        for instruction, value in self.stages[stage].steps:
            if instruction == "WORKDIR":
                where = root / value.lstrip("/")
                where.mkdir(parents=True)
            elif instruction == "COPY" and not value.startswith("--from"):
                self._copy(stage, where, value)
            elif instruction == "RUN":
                self._run(stage, where, value)

    def _environment_of_base(self, stage: str) -> None:
        venv.create(self.root(stage) / "usr/local", with_pip=self.lent is None, symlinks=True)
        if self.lent:
            (self.packages(stage) / "lent.pth").write_text(f"{self.lent}\n")
            pip = self.bin(stage) / "pip"
            pip.write_text(f'#!/bin/sh\n[ "$1" = check ] || exec {self.bin(stage)}/python -m pip "$@"\n')
            pip.chmod(0o755)

    def _copy(self, stage: str, where: Path, value: str) -> None:
        *sources, target = value.split()
        for source in sources:
            path = self.context / source
            into = self.root(stage) / target.lstrip("/") if target.startswith("/") else where / target
            if path.is_dir():
                shutil.copytree(path, into)
            else:
                into.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, into / path.name)

    def _run(self, stage: str, where: Path, value: str) -> None:
        mounted = []
        for mount in re.findall(r"--mount=(\S+)", value):
            given = dict(part.split("=") for part in mount.split(","))
            source = self.root(given["from"]) if "from" in given else self.context
            mounted.append(self.root(stage) / given["target"].lstrip("/"))
            mounted[-1].symlink_to(source / given["source"].lstrip("/"))
        command = self._here(stage, re.sub(r"--mount=\S+\s*", "", value))
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=where,
            env=self.environment(stage),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        for link in mounted:
            link.unlink()

    def _here(self, stage: str, text: str) -> str:
        """The text with absolute paths of the image below the stage's folder."""
        return re.sub(
            r"(?<![\w./}$:])/(?=(wheels|constraints\.txt|opt|source)\b)", f"{self.root(stage)}/", text
        )


def main() -> None:
    """Make the images' environments for real, and print what they take."""
    images = Images(Path(sys.argv[1]).absolute(), None)
    for stage in ("wheel", "worker", "trainer"):
        begun = time.monotonic()
        images.make(stage)
        taken = time.monotonic() - begun
        size = sum(path.lstat().st_size for path in images.root(stage).rglob("*") if path.is_file())
        print(f"{stage}: {taken:.0f} s, {size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
