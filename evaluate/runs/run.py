"""Score a model on tasks with several seeds (``evaluate run``).

A result file is written atomically and never recomputed, so rerunning the command resumes it. A failed or
missing task does not stop the others.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import torch
from msgspec import structs

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.evaluate import recipes
from bioshards.evaluate.benchmarks import verification
from bioshards.evaluate.benchmarks.catalogue import (
    BENCHMARKS,
    Benchmark,
    BenchmarkFiles,
    load_records,
    locate_benchmark,
)
from bioshards.evaluate.benchmarks.records import (
    BenchmarkFileError,
    BenchmarkNotFoundError,
    Question,
    Record,
    RecordsBySplit,
    Split,
    sample_records,
    split_off_dev,
)
from bioshards.evaluate.benchmarks.verification import judge_files, worse_status
from bioshards.evaluate.encoder import Checkpoint, Example, ModelTokenizer, load_encoder
from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.fine_tuner import EncoderWithHead, FineTuner, NaNLossError, predicts_in_bfloat16
from bioshards.evaluate.runs.results import PerExampleStats, Provenance, Result, ScoredModel
from bioshards.evaluate.tasks.question_answering import QuestionAnswering, group_by_question
from bioshards.evaluate.tasks.task_registry import PlannedTask, TaskAdapter, make_adapter
from bioshards.train.checkpoint import get_library_versions

NO_OFFICIAL_DEV_NOTE: Final = "no official dev split: 10 % of train is used (split by hash)"


@dataclass(frozen=True, slots=True)
class EvaluateJob:
    """Job of ``run`` and ``search``.

    Attributes:
        benchmarks_dir: directory of the benchmarks.
        output: directory of the results.
        progress: shows the runs.
        log: prints a line.
        num_seeds: number of seeds of each task; None: as many as its paper averages over.
        max_examples: maximum examples of each split; 0: all.
    """

    checkpoint: Checkpoint
    benchmarks_dir: str
    output: str
    tasks: Sequence[PlannedTask]
    device: torch.device
    progress: Progress
    log: Callable[[str], None]
    first_seed: int = 0
    num_seeds: int | None = None
    max_examples: int = 0

    def list_seeds(self, planned_task: PlannedTask) -> range:
        """Return the seeds of a task."""
        num_seeds = self.num_seeds or recipes.find_num_seeds(planned_task.suite, planned_task.task.name)
        return range(self.first_seed, self.first_seed + num_seeds)


@dataclass(slots=True)
class RunSummary:
    """Counts of written and skipped results, and the reasons of missing and failed tasks by name."""

    written: int = 0
    skipped: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run_evaluation(job: EvaluateJob) -> RunSummary:
    """Score all tasks with all seeds.

    Raises:
        OutputMismatchError: a result with other settings exists, or another process uses the output
            directory.
        ModelError: the checkpoint cannot be loaded.
    """
    summary = RunSummary()
    num_runs = sum(len(job.list_seeds(planned_task)) for planned_task in job.tasks)
    with (
        lock_output(job.output) as storage,
        job.progress.bar("evaluating", num_runs, " runs") as bar,
    ):
        for planned_task in job.tasks:
            try:
                _score_task(job, storage, planned_task, summary, bar)
            except BenchmarkNotFoundError as error:
                summary.missing[planned_task.name] = str(error)
            except (BenchmarkFileError, ValueError) as error:
                summary.failed[planned_task.name] = str(error)
                job.log(f"{planned_task.name}: {error}")
    return summary


@contextlib.contextmanager
def lock_output(output: str) -> Iterator[LocalStorage]:
    """Hold an exclusive lock on the output directory, creating it if needed.

    The storage that this yields writes nothing once another process has the lock.

    Raises:
        OutputMismatchError: the path is a file, or another process holds the lock.
    """
    try:
        os.makedirs(output, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputMismatchError(f"{error.filename} is a file, and --output must be a directory") from error
    storage = LocalStorage()
    with storage.lock(f"{output}/.lock", output):
        yield storage


def _score_task(
    job: EvaluateJob, storage: LocalStorage, planned_task: PlannedTask, summary: RunSummary, bar: ProgressBar
) -> None:
    """Score a task with all seeds."""
    bar.advance(0, planned_task.name)
    is_dev_needed = planned_task.recipe.select_epoch == "best"
    needed_splits: tuple[Split, ...] = ("train", "dev", "test") if is_dev_needed else ("train", "test")
    data = load_task_data(job.benchmarks_dir, planned_task, job.max_examples, needed_splits)
    inputs: TaskInputs | None = None
    for seed in bar.each(job.list_seeds(planned_task)):
        path = results.result_path(job.output, planned_task.suite, planned_task.task.name, seed)
        run_name = f"{planned_task.name}, seed {seed}"
        if storage.exists(path):
            _check_same_settings(path, results.read_result(storage, path), build_identity(job, data, seed))
            summary.skipped += 1
            continue
        start_time = time.monotonic()
        try:
            inputs = inputs or prepare_inputs(job, data)
            fine_tuner = fine_tune(inputs, seed, job.progress.with_prefix(f"{run_name}: "))
            result, predictions = _make_result(inputs, fine_tuner, seed, start_time)
        except NaNLossError as error:
            summary.failed[run_name] = str(error)
            job.log(f"{run_name}: {error}")
            continue
        with storage.write(path.removesuffix(".json") + ".predictions.jsonl") as file:
            file.write(predictions)
        results.write_result(storage, path, result)
        summary.written += 1
        job.log(f"{run_name}: {_format_result(result)}")


# Records


@dataclass(frozen=True, slots=True)
class TaskData:
    """A task with its records; the same for all seeds.

    Attributes:
        squad_records: training examples of SQuAD; empty unless the recipe uses them.
        sample_sizes: number of records of each split and of SQuAD; None if all are used.
    """

    planned_task: PlannedTask
    records_by_split: Mapping[str, Sequence[Record]]
    squad_records: Sequence[Any]
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
    benchmark, recipe = BENCHMARKS[planned_task.task.benchmark], planned_task.recipe
    required_splits: list[Split] = [split for split in needed_splits if split != "dev"]
    benchmark_files = _require_files(benchmarks_dir, benchmark, required_splits)
    all_records = load_records(benchmark_files)
    provenance = _describe_provenance(benchmark_files, all_records, needed_splits)
    records: dict[str, Sequence[Record]] = {
        split: all_records[split] for split in needed_splits if split in all_records
    }
    if recipe.train_on == "train+dev":
        records["train"] = [*all_records["train"], *all_records.get("dev", ())]
    if "dev" in needed_splits and "dev" not in records:
        records["train"], records["dev"] = split_off_dev(records["train"])
        provenance.notes.append(NO_OFFICIAL_DEV_NOTE)
    if recipe.squad_transfer != "no":
        squad_files = _require_files(benchmarks_dir, BENCHMARKS["squad"], ["train"])
        squad_records = load_records(squad_files)
        squad_provenance = _describe_provenance(squad_files, squad_records, ["train"])
        records["squad"] = squad_records["train"]
        provenance.files.update(squad_provenance.files)
        status = worse_status(provenance.file_status, squad_provenance.file_status)
        provenance = structs.replace(provenance, file_status=status)
    sample_sizes: dict[str, int] | None = None
    if max_examples:
        samples = {name: sample_records(part, max_examples) for name, part in records.items()}
        if any(len(samples[name]) < len(part) for name, part in records.items()):
            sample_sizes = {name: len(sample) for name, sample in samples.items()}
        records = {**samples}
    squad = records.pop("squad", ())
    return TaskData(planned_task, records, squad, provenance, sample_sizes)


def _require_files(
    benchmarks_dir: str, benchmark: Benchmark, needed_splits: Sequence[Split]
) -> BenchmarkFiles:
    benchmark_files = locate_benchmark(benchmarks_dir, benchmark)
    missing = [
        split for split in needed_splits if benchmark_files is None or split not in benchmark_files.splits
    ]
    if benchmark_files is None or missing:
        layout = benchmark_files.layout if benchmark_files else benchmark.layouts[0]
        names = dict.fromkeys(name for split in missing for name in layout.files_by_split.get(split, ()))
        file_list = ", ".join(layout.patterns[name] for name in names) or "no file of its authors has that"
        raise BenchmarkNotFoundError(
            f"{benchmark.title}: no {' and no '.join(missing)} in {benchmarks_dir} ({file_list}). "
            f"To be had: {benchmark.download_from} ({benchmark.licence})"
        )
    return benchmark_files


def _describe_provenance(
    benchmark_files: BenchmarkFiles, records_by_split: RecordsBySplit, needed_splits: Sequence[Split]
) -> Provenance:
    """Return files with SHA-256, counts, what is known of the files, and notes."""
    checks = verification.compare_counts(benchmark_files, records_by_split)
    checks = [check for check in checks if check.verdict != "missing"]
    do_counts_agree = verification.do_counts_agree(benchmark_files, checks)
    judgement = judge_files(benchmark_files, do_counts_agree, needed_splits)
    counts: dict[str, dict[str, int]] = {}
    for split, records in records_by_split.items():
        for unit, count in benchmark_files.benchmark.count_records(records).items():
            counts.setdefault(unit, {})[split] = count
    notes = [*benchmark_files.notes, *(note for check in checks for note in check.notes)]
    return Provenance(dict(judgement.checksums), counts, judgement.status, list(dict.fromkeys(notes)))


# Fine-tuning


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """What all seeds of a task share: its records, and their tokenized examples.

    Attributes:
        examples: of each split; those of train with SQuAD's if they are trained together.
        squad_adapter: adapter of SQuAD if it is trained first.
        squad_examples: its examples.
    """

    job: EvaluateJob
    data: TaskData
    tokenizer: ModelTokenizer
    adapter: TaskAdapter
    examples: Mapping[str, Sequence[Example]]
    squad_adapter: QuestionAnswering | None = None
    squad_examples: Sequence[Example] = ()


def prepare_inputs(job: EvaluateJob, data: TaskData) -> TaskInputs:
    """Load the tokenizer, and tokenize the records of a task.

    Raises:
        InvalidValueError: the recipe does not fit the task.
    """
    recipe, records_by_split = data.planned_task.recipe, dict(data.records_by_split)
    tokenizer = job.checkpoint.load_tokenizer()
    adapter = make_adapter(data.planned_task, tokenizer, records_by_split["train"])
    if recipe.squad_transfer == "joint":
        records_by_split["train"] = [*records_by_split["train"], *data.squad_records]
    examples = {
        split: adapter.make_examples(records, is_training=split == "train")
        for split, records in records_by_split.items()
    }
    if recipe.squad_transfer != "first":
        return TaskInputs(job, data, tokenizer, adapter, examples)
    squad_recipe = replace(recipes.SQUAD_RECIPE, precision=recipe.precision)
    squad_adapter = QuestionAnswering(tokenizer, squad_recipe, is_per_question=False)
    squad_examples = squad_adapter.make_examples(data.squad_records, is_training=True)
    return TaskInputs(job, data, tokenizer, adapter, examples, squad_adapter, squad_examples)


def fine_tune(inputs: TaskInputs, seed: int, progress: Progress) -> FineTuner:
    """Fine-tune a model on the train split; on SQuAD before or with it if the recipe says so.

    Args:
        progress: shows the steps.

    Raises:
        InvalidValueError: there are no examples to train on, or the recipe does not fit the model.
        NaNLossError: the training diverged.
        ModelError: the checkpoint cannot be loaded.
    """
    planned_task, adapter = inputs.data.planned_task, inputs.adapter
    torch.manual_seed(seed)
    encoder = load_encoder(inputs.job.checkpoint, inputs.tokenizer)
    model = EncoderWithHead(encoder, adapter.build_head(encoder.hidden_size)).to(inputs.job.device)
    if squad := inputs.squad_adapter:
        squad_tuner = FineTuner(model, squad, squad.recipe, progress.with_prefix("SQuAD, "))
        squad_tuner.train(inputs.squad_examples, seed)
    fine_tuner = FineTuner(model, adapter, planned_task.recipe, progress)
    should_select_best = planned_task.recipe.select_epoch == "best"
    fine_tuner.train(
        inputs.examples["train"],
        seed,
        (lambda: score_dev(inputs, fine_tuner)) if should_select_best else None,
        planned_task.metric.main_score,
    )
    return fine_tuner


def predict_split(inputs: TaskInputs, fine_tuner: FineTuner, split: Split) -> tuple[list[Any], list[Any]]:
    """Return the gold labels of a split, and the predictions."""
    records, examples = inputs.data.records_by_split[split], inputs.examples[split]
    predictions = inputs.adapter.merge_predictions(records, examples, fine_tuner.predict(examples))
    return inputs.adapter.gold_labels(records), predictions


def score_dev(inputs: TaskInputs, fine_tuner: FineTuner) -> dict[str, float]:
    """Return the scores of the current weights on dev."""
    metric = inputs.data.planned_task.metric
    return metric.compute_scores(*predict_split(inputs, fine_tuner, "dev"))


# Results


def build_identity(job: EvaluateJob, data: TaskData, seed: int) -> dict[str, Any]:
    """Return the fields of a result that must be equal for an existing one to be reused."""
    return {
        "task": data.planned_task.task.name,
        "suite": data.planned_task.suite,
        "seed": seed,
        "settings": asdict(data.planned_task.recipe),
        "sample_sizes": None if data.sample_sizes is None else dict(data.sample_sizes),
        "legacy": list(data.planned_task.legacy_modes),
        "provenance": data.provenance,
        "model": job.checkpoint.sha256,
    }


def _check_same_settings(path: str, existing: Result, identity: Mapping[str, Any]) -> None:
    """Check that an existing result is the one that this run would make.

    Raises:
        OutputMismatchError: its settings, model or files differ.
    """
    descriptions = {
        "provenance": "files or counts",
        "model": "weights",
        "sample_sizes": "--max-examples",
        "legacy": "--legacy",
    }
    for name, value in identity.items():
        existing_value: Any = existing.model.sha256 if name == "model" else getattr(existing, name)
        if existing_value == value:
            continue
        description = descriptions.get(name, name)
        if name == "settings":
            changes = [
                f"{setting} {existing_value.get(setting)}, now {value.get(setting)}"
                for setting in {**value, **existing_value}
                if existing_value.get(setting) != value.get(setting)
            ]
            description = f"settings ({', '.join(changes)})"
        raise OutputMismatchError(
            f"{path} was made with other {description}: give another --output, or remove that file"
        )


def _make_result(
    inputs: TaskInputs, fine_tuner: FineTuner, seed: int, start_time: float
) -> tuple[Result, bytes]:
    """Return the result of a fine-tuned model, and its test predictions as JSON Lines."""
    job, metric = inputs.job, inputs.data.planned_task.metric
    records_by_split = inputs.data.records_by_split
    test_records = records_by_split["test"]
    gold, predicted = predict_split(inputs, fine_tuner, "test")
    stats = metric.compute_stats(gold, predicted)
    scores = {"dev": fine_tuner.dev_scores} if fine_tuner.dev_scores else {}
    scores["test"] = metric.scores_from_stats(stats) | _score_by_batch(metric, stats, test_records)
    train_gold = inputs.adapter.gold_labels(records_by_split["train"])
    scores["majority"] = metric.compute_scores(gold, inputs.adapter.predict_majority(train_gold, gold))
    ids = [record.id for record in test_records]
    if len(ids) != len(gold):  # a prediction for each question, which has several passages
        ids = list(group_by_question([record for record in test_records if isinstance(record, Question)]))
    labelled = [[example_id, _to_json(label)] for example_id, label in zip(ids, gold, strict=True)]
    predictions = [
        json.dumps({"id": name, "gold": label, "predicted": _to_json(prediction)}, ensure_ascii=False)
        for (name, label), prediction in zip(labelled, predicted, strict=True)
    ]
    parameters = fine_tuner.model.encoder.model.parameters()
    model = ScoredModel(
        job.checkpoint.name,
        job.checkpoint.folder,
        job.checkpoint.model_type,
        sum(parameter.numel() for parameter in parameters),
        job.checkpoint.sha256,
    )
    result = Result(
        format=results.FORMAT,
        **(build_identity(job, inputs.data, seed) | {"model": model}),
        metric=metric.name,
        main_score=metric.main_score,
        scores=scores,
        per_example_stats=PerExampleStats(
            list(metric.stat_names),
            [
                [int(value) if value.is_integer() else value for value in column]
                for column in stats.T.tolist()
            ],
            # Of ids and gold labels: ids alone may be mere line numbers.
            hashlib.sha256(json.dumps(labelled).encode()).hexdigest(),
            _number_documents(test_records, len(stats)),
        ),
        checkpoints=fine_tuner.checkpoints,
        selected_step=fine_tuner.selected_step,
        seconds=round(time.monotonic() - start_time, 1),
        device=_describe_device(job.device),
        library_versions=get_library_versions(),
    )
    return result, "".join(f"{line}\n" for line in predictions).encode("utf-8", "backslashreplace")


def _to_json(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _number_documents(records: Sequence[Record], num_examples: int) -> list[int]:
    """Return the document number of each example.

    The list is empty unless every record is one example and names its document.
    """
    document_ids = [record.document_id for record in records]
    if len(document_ids) != num_examples or not all(document_ids):
        return []
    numbers = {document_id: number for number, document_id in enumerate(dict.fromkeys(document_ids))}
    return [numbers[document_id] for document_id in document_ids]


def _score_by_batch(metric: Metric, stats: Numbers, records: Sequence[Record]) -> dict[str, float]:
    """Return the scores of each test batch (BioASQ; ELECTRAMed, table 9); empty without batches."""
    questions = [record for record in records if isinstance(record, Question)]
    if not any(question.test_batch for question in questions):
        return {}
    batches = [questions[members[0]].test_batch for members in group_by_question(questions).values()]
    if len(batches) != len(stats):
        return {}
    scores = {}
    for batch in sorted(set(batches)):
        batch_stats = stats[[question_batch == batch for question_batch in batches]]
        for name, value in metric.scores_from_stats(batch_stats).items():
            scores[f"{name} of batch {batch}"] = value
    return scores


def _describe_device(device: torch.device) -> str:
    """Return ``cpu``, or the GPU's name and in what it computes float32."""
    if device.type != "cuda":
        return device.type
    suffix = ", TF32" if torch.get_float32_matmul_precision() == "high" else ""
    suffix += ", bfloat16 in prediction" if predicts_in_bfloat16(device) else ""
    return f"{torch.cuda.get_device_name(device)}{suffix}"


def _format_result(result: Result) -> str:
    """Format a result as one line."""
    scores = {split: 100 * values[result.main_score] for split, values in result.scores.items()}
    text = f"{result.main_score} {scores['test']:.2f}, majority class {scores['majority']:.2f}"
    if "dev" in scores:
        text += f", dev {scores['dev']:.2f} at step {result.selected_step:,}"
    if result.provenance.file_status == "invented":
        text += ", invented sample"
    return f"{text}, {result.seconds:,.0f} s"
