"""A task's records, ready to learn from and to be scored on, with what a result has to say about
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import datasets, splits, verify
from .datasets import BenchmarkNotFoundError, DataSet, Located, Part, Parts
from .records import Record
from .sets import SETS
from .tasks import Planned

CARVED: Final = (
    "the authors give no dev set: a tenth of the training examples, chosen by a hash, is taken for one"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task with its records, the same for all seeds.

    Attributes:
        squad: training examples of SQuAD, where the recipe wants them.
        data: files with their SHA-256, counts, whether these are the published ones, and notes.
        sampled: how many records of each part, and of SQuAD, are used, if not all.
    """

    planned: Planned
    parts: Parts
    squad: Sequence[Record]
    data: Mapping[str, Any]
    sampled: Mapping[str, int] | None


def prepare(folder: str, planned: Planned, sample: int, needed: Sequence[Part]) -> Prepared:
    """Read what a task needs.

    Args:
        sample: records of each part, at most; 0: all.
        needed: the parts that are given; a dev part that the authors have not is taken from train.

    Raises:
        BenchmarkNotFoundError: a part is not there.
        BenchmarkFileError: a file cannot be read.
    """
    located = _located(folder, SETS[planned.task.set], [part for part in needed if part != "dev"])
    whole = datasets.load(located)
    data = _data(located, whole)
    parts: dict[Part, Sequence[Record]] = {part: whole[part] for part in needed if part in whole}
    if planned.recipe.learn_from == "train+dev":
        parts["train"] = [*whole["train"], *whole.get("dev", ())]
    if "dev" in needed and "dev" not in parts:
        parts["train"], parts["dev"] = splits.carve(parts["train"])
        data["notes"].append(CARVED)
    squad: Sequence[Record] = ()
    if planned.recipe.squad != "no":
        source = _located(folder, SETS["squad"], ("train",))
        asked = datasets.load(source)
        squad, about = asked["train"], _data(source, asked)
        data["files"] |= about["files"]
        data["verified"] &= about["verified"]
    sampled: dict[str, int] | None = None
    if sample:
        every: dict[str, Sequence[Record]] = {str(part): records for part, records in parts.items()}
        if squad:
            every["squad"] = squad
        used = {name: splits.sample(records, sample) for name, records in every.items()}
        if any(len(used[name]) < len(every[name]) for name in every):
            sampled = {name: len(records) for name, records in used.items()}
        squad = used.get("squad", ())
        parts = {part: used[part] for part in parts}
    return Prepared(planned, parts, squad, data, sampled)


def _located(folder: str, dataset: DataSet, needed: Sequence[Part]) -> Located:
    located = datasets.locate(folder, dataset)
    lacking = [part for part in needed if located is None or part not in located.parts]
    if located is None or lacking:
        layout = located.layout if located else dataset.layouts[0]
        wanted = {name: layout.files[name] for part in lacking for name in layout.parts.get(part, ())}
        files = ", ".join(wanted.values()) or "no file of its authors has that"
        raise BenchmarkNotFoundError(
            f"{dataset.title}: no {' and no '.join(lacking)} in {folder} ({files}). "
            f"To be had: {dataset.where} ({dataset.licence})"
        )
    return located


def _data(located: Located, parts: Parts) -> dict[str, Any]:
    """What a result says of the files it was made from."""
    rows = [row for row in verify.compared(located, parts) if row.verdict != "absent"]
    same = {(one.unit, one.part) for one in located.layout.known if one.same}
    ok = [row.verdict == "ok" or (row.verdict == "known" and (row.unit, row.part) in same) for row in rows]
    counts: dict[str, dict[str, int]] = {}
    for part, records in parts.items():
        for unit, number in located.set.count(records).items():
            counts.setdefault(unit, {})[part] = number
    return {
        "files": datasets.checksums(located),
        "counts": counts,
        "verified": not located.own_split and all(ok),
        "notes": list(dict.fromkeys([*located.notes, *(note for row in rows for note in row.notes)])),
    }
