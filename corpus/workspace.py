"""An output directory and the work folder in it, by name.

``OUT/.bioshards/`` holds what a run needs to continue and an update to be cheap.  It may be deleted
once a run is finished: the next one then starts from the inputs again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from .files import LocalFiles

FORMAT: Final = 1
"""Raised whenever the same input and rules give other bytes than before, so that nothing made by
an older version is taken for the new one's."""


class WrongOutput(Exception):
    """The output directory holds something else than this run would write."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths in an output directory.  ``name`` is a source's: its stem and the MD5's beginning."""

    output: str

    @property
    def folder(self) -> str:
        return f"{self.output}/.bioshards"

    @property
    def manifest(self) -> str:
        return f"{self.output}/manifest.json"

    @property
    def config(self) -> str:
        return f"{self.folder}/config.json"

    @property
    def outcome(self) -> str:
        return f"{self.folder}/outcome.json"

    def seen(self, path: str, stamp: str) -> str:
        """Where the MD5 of an unchanged input is remembered."""
        return f"{self.folder}/seen/{hashlib.md5(f'{path} {stamp}'.encode()).hexdigest()}.json"

    def staged(self, name: str, ending: str) -> str:
        return f"{self.folder}/staged/{name}.{ending}"

    def verdicts(self, bucket: int) -> str:
        return f"{self.folder}/verdicts/{bucket:05d}.arrow"

    def finished(self, name: str) -> str:
        return f"{self.folder}/finished/{name}.json"


def check(files: LocalFiles, work: Workspace, config: dict[str, Any]) -> None:
    """Make sure that the output directory is new, or begun with the same configuration.

    Raises:
        WrongOutput: it holds something else; the message says what and what to do.
    """
    if files.exists(work.config):
        before = files.read_json(work.config)
        if before != config:
            raise WrongOutput(
                f"{work.output} was begun with another configuration: {_difference(before, config)}. "
                "Choose another --output, give the same options, or delete that folder."
            )
        return
    strangers = [name for name in files.names(work.output) if not name.startswith(".")]
    if strangers:
        raise WrongOutput(
            f"{work.output} is not empty and was not begun by this version of bioshards (it holds "
            f"{', '.join(strangers[:3])}{' ...' if len(strangers) > 3 else ''}). "
            "Choose another --output or empty that folder."
        )
    files.write_json(work.config, config)


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    flat_before, flat_now = _flat(before), _flat(now)
    return "; ".join(
        f"{name} was {flat_before.get(name)!r}, now {flat_now.get(name)!r}"
        for name in sorted(flat_before.keys() | flat_now.keys())
        if flat_before.get(name) != flat_now.get(name)
    )


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat.update(value)
        else:
            flat[name] = value
    return flat
