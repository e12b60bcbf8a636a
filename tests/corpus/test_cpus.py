"""The number of CPUs that a process may use: its affinity, and the quotas of its control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bioshards.corpus import cpus


@pytest.mark.parametrize(
    ("groups", "quotas", "expected"),
    [
        ("0::/\n", {}, 8),
        ("0::/\n", {"": "max 100000\n"}, 8),
        ("0::/\n", {"": "350000 100000\n"}, 3),
        ("0::/\n", {"": "50000 100000\n"}, 1),
        ("0::/\n", {"": "1600000 100000\n"}, 8),
        ("1:cpu:/old\n0::/job/task\n", {"job": "400000 100000\n", "job/task": "600000 100000\n"}, 4),
        ("0::/job/task\n", {"job": "400000 100000\n", "job/task": "max 100000\n"}, 4),
        ("0::/seen/from/the/host\n", {"": "200000 100000\n"}, 2),
        (None, {"": "200000 100000\n"}, 2),
        ("0::/\n", {"": "damaged\n"}, 8),
    ],
)
def test_fewest_of_affinity_and_quotas(
    groups: str | None,
    quotas: dict[str, str],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for folder, text in quotas.items():
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "cpu.max").write_text(text)
    if groups is not None:
        (tmp_path / "groups").write_text(groups)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cpus, "_PROCESS_GROUPS", str(tmp_path / "groups"))
    monkeypatch.setattr(cpus, "_GROUPS_FOLDER", str(tmp_path))
    assert cpus.count_cpus() == expected
