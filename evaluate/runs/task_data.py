"""Load the records of a task, with their provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from bioshards.evaluate.benchmarks import verification
from bioshards.evaluate.benchmarks.catalogue import (
    BENCHMARKS,
    Benchmark,
    BenchmarkFiles,
    load_records,
    locate_benchmark,
)
from bioshards.evaluate.benchmarks.records import (
    BenchmarkNotFoundError,
    Record,
    RecordsBySplit,
    Split,
    sample_records,
    split_off_dev,
)
from bioshards.evaluate.benchmarks.verification import judge_files, worse_status
from bioshards.evaluate.runs.results import Provenance
from bioshards.evaluate.tasks.task_registry import PlannedTask

NO_OFFICIAL_DEV_NOTE: Final = "no official dev split: 10 % of train is used (split by hash)"


@dataclass(frozen=True, slots=True)
class TaskData:
    """A task with its records; the same for all seeds.

    Attributes:
        squad_records: training examples of SQuAD; empty unless the recipe uses them.
        sample_sizes: number of records of each split and of SQuAD; None if all are used.
    """

    planned_task: PlannedTask
    records_by_split: RecordsBySplit
    squad_records: Sequence[Record]
    provenance: Provenance
    sample_sizes: Mapping[str, int] | None


def load_task_data(
    benchmarks_dir: str, planned_task: PlannedTask, max_examples: int, needed_splits: Sequence[Split]
) -> TaskData:
    """Read the records of a task.

    Args:
        max_examples: maximum records of each split; 0: all.
        needed_splits: splits to load. A missing official dev split is taken from train.

    Raises:
        BenchmarkNotFoundError: a split is missing.
        BenchmarkFileError: a file cannot be read.
    """
    benchmark_files = _require_files(
        benchmarks_dir,
        BENCHMARKS[planned_task.task.benchmark],
        [split for split in needed_splits if split != "dev"],
    )
    all_records = load_records(benchmark_files)
    provenance = _describe_provenance(benchmark_files, all_records, needed_splits)
    records_by_split: dict[Split, Sequence[Record]] = {
        split: all_records[split] for split in needed_splits if split in all_records
    }
    if planned_task.recipe.train_on == "train+dev":
        records_by_split["train"] = [*all_records["train"], *all_records.get("dev", ())]
    if "dev" in needed_splits and "dev" not in records_by_split:
        records_by_split["train"], records_by_split["dev"] = split_off_dev(records_by_split["train"])
        provenance.notes.append(NO_OFFICIAL_DEV_NOTE)
    squad_records: Sequence[Record] = ()
    if planned_task.recipe.squad_transfer != "no":
        squad_files = _require_files(benchmarks_dir, BENCHMARKS["squad"], ("train",))
        squad_by_split = load_records(squad_files)
        squad_records, squad_provenance = (
            squad_by_split["train"],
            _describe_provenance(squad_files, squad_by_split, ("train",)),
        )
        provenance.files.update(squad_provenance.files)
        status = worse_status(provenance.file_status, squad_provenance.file_status)
        provenance = replace(provenance, file_status=status)
    sample_sizes: dict[str, int] | None = None
    if max_examples:
        records_by_name: dict[str, Sequence[Record]] = {
            str(split): records for split, records in records_by_split.items()
        }
        if squad_records:
            records_by_name["squad"] = squad_records
        sampled_records = {
            name: sample_records(records, max_examples) for name, records in records_by_name.items()
        }
        if any(len(sampled_records[name]) < len(records_by_name[name]) for name in records_by_name):
            sample_sizes = {name: len(records) for name, records in sampled_records.items()}
        squad_records = sampled_records.get("squad", ())
        records_by_split = {split: sampled_records[split] for split in records_by_split}
    return TaskData(planned_task, records_by_split, squad_records, provenance, sample_sizes)


def _require_files(
    benchmarks_dir: str, benchmark: Benchmark, needed_splits: Sequence[Split]
) -> BenchmarkFiles:
    benchmark_files = locate_benchmark(benchmarks_dir, benchmark)
    missing = [
        split for split in needed_splits if benchmark_files is None or split not in benchmark_files.splits
    ]
    if benchmark_files is None or missing:
        layout = benchmark_files.layout if benchmark_files else benchmark.layouts[0]
        patterns = {
            name: layout.patterns[name] for split in missing for name in layout.files_by_split.get(split, ())
        }
        file_list = ", ".join(patterns.values()) or "no file of its authors has that"
        raise BenchmarkNotFoundError(
            f"{benchmark.title}: no {' and no '.join(missing)} in {benchmarks_dir} ({file_list}). "
            f"To be had: {benchmark.download_from} ({benchmark.licence})"
        )
    return benchmark_files


def _describe_provenance(
    benchmark_files: BenchmarkFiles, records_by_split: RecordsBySplit, needed_splits: Sequence[Split]
) -> Provenance:
    """Return files with SHA-256, counts, what is known of the files, and notes."""
    checks = [
        check
        for check in verification.compare_counts(benchmark_files, records_by_split)
        if check.verdict != "missing"
    ]
    do_counts_agree = verification.do_counts_agree(benchmark_files, checks)
    judgement = judge_files(benchmark_files, do_counts_agree, needed_splits)
    counts: dict[str, dict[str, int]] = {}
    for split, records in records_by_split.items():
        for unit, count in benchmark_files.benchmark.count_records(records).items():
            counts.setdefault(unit, {})[split] = count
    notes = [*benchmark_files.notes, *(note for check in checks for note in check.notes)]
    return Provenance(dict(judgement.checksums), counts, judgement.status, list(dict.fromkeys(notes)))
