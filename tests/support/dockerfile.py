"""docker/Dockerfile without Docker: its stages, and the files that it may copy."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile_parse import DockerfileParser

from tests.support.paths import REPOSITORY

DOCKERFILE = REPOSITORY / "docker/Dockerfile"
SOURCE_DATE_EPOCH = "315532800"
"""The time of all files in a wheel: 1980-01-01, the first that a zip archive can hold."""


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
