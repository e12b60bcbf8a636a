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
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.locks import lock_folder
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.evaluate.benchmarks.records import (
    BenchmarkFileError,
    BenchmarkNotFoundError,
    Question,
    Record,
    Split,
)
from bioshards.evaluate.config import suites
from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.modeling.encoder import Checkpoint, Example, load_encoder
from bioshards.evaluate.modeling.tokenization import ModelTokenizer
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.fine_tuner import EncoderWithHead, FineTuner, NaNLossError, predicts_in_bfloat16
from bioshards.evaluate.runs.results import CheckpointScore, PerExampleStats, Result, ScoredModel
from bioshards.evaluate.runs.task_data import TaskData, load_task_data
from bioshards.evaluate.tasks.adapter import TaskAdapter, make_adapter
from bioshards.evaluate.tasks.question_answering import QuestionAnswering, group_by_question
from bioshards.evaluate.tasks.task_registry import PlannedTask
from bioshards.train.checkpoint import get_library_versions


@dataclass(frozen=True, slots=True)
class EvaluateJob:
    """Job of ``run`` and ``search``.

    Attributes:
        benchmarks_dir: directory of the benchmarks.
        output: directory of the results.
        num_seeds: number of seeds of each task; None: as many as its paper averages over.
        progress: shows the runs.
        log: prints a line.
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
    num_runs = sum(len(_list_seeds(job, planned_task)) for planned_task in job.tasks)
    with lock_output(job.output), job.progress.bar("evaluating", num_runs, " runs") as bar:
        for planned_task in job.tasks:
            try:
                _score_task(job, planned_task, summary, bar)
            except BenchmarkNotFoundError as error:
                summary.missing[planned_task.name] = str(error)
            except (BenchmarkFileError, ValueError) as error:
                summary.failed[planned_task.name] = str(error)
                job.log(f"{planned_task.name}: {error}")
    return summary


def _list_seeds(job: EvaluateJob, planned_task: PlannedTask) -> range:
    num_seeds = job.num_seeds or suites.find_num_seeds(planned_task.suite, planned_task.task.name)
    return range(job.first_seed, job.first_seed + num_seeds)


def _score_task(job: EvaluateJob, planned_task: PlannedTask, summary: RunSummary, bar: ProgressBar) -> None:
    """Score a task with all seeds."""
    storage = LocalStorage()
    bar.advance(0, planned_task.name)
    is_dev_needed = planned_task.recipe.select_epoch == "best"
    needed_splits: tuple[Split, ...] = ("train", "dev", "test") if is_dev_needed else ("train", "test")
    data = load_task_data(job.benchmarks_dir, planned_task, job.max_examples, needed_splits)
    inputs: TaskInputs | None = None
    for seed in bar.each(_list_seeds(job, planned_task)):
        path = results.result_path(job.output, planned_task.suite, planned_task.task.name, seed)
        prefix = f"{planned_task.name}, seed {seed}: "
        if storage.exists(path):
            identity = build_identity(data, seed)
            _check_same_settings(path, results.read_result(storage, path), identity, job.checkpoint)
            summary.skipped += 1
            continue
        start_time = time.monotonic()
        try:
            inputs = inputs or prepare_inputs(job, data)
            fine_tuned = fine_tune(inputs, seed, job.progress.with_prefix(prefix))
            result, predictions = _make_result(fine_tuned, seed, start_time)
        except NaNLossError as error:
            summary.failed[prefix.removesuffix(": ")] = str(error)
            job.log(f"{prefix}{error}")
            continue
        with storage.write(path.removesuffix(".json") + ".predictions.jsonl") as file:
            file.write(predictions)
        results.write_result(storage, path, result)
        summary.written += 1
        job.log(prefix + _format_result(result))


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """What all seeds of a task share: its records, and their tokenized examples.

    Attributes:
        examples: of each split; those of train with SQuAD's if they are trained together.
        squad_adapter: adapter of SQuAD if it is trained first.
        squad_examples: its examples.
    """

    checkpoint: Checkpoint
    device: torch.device
    data: TaskData
    tokenizer: ModelTokenizer
    adapter: TaskAdapter
    examples: Mapping[Split, Sequence[Example]]
    squad_adapter: QuestionAnswering | None
    squad_examples: Sequence[Example]


def prepare_inputs(job: EvaluateJob, data: TaskData) -> TaskInputs:
    """Load the tokenizer, and tokenize the records of a task.

    Raises:
        InvalidValueError: the recipe does not fit the task.
    """
    recipe, records_by_split = data.planned_task.recipe, dict(data.records_by_split)
    tokenizer = job.checkpoint.load_tokenizer()
    adapter = make_adapter(data.planned_task, tokenizer, records_by_split["train"])
    squad_adapter = None
    if recipe.squad_transfer == "joint":
        records_by_split["train"] = [*records_by_split["train"], *data.squad_records]
    elif recipe.squad_transfer == "first":
        squad_recipe = replace(suites.SQUAD_RECIPE, precision=recipe.precision)
        squad_adapter = QuestionAnswering(tokenizer, squad_recipe, is_per_question=False)
    return TaskInputs(
        job.checkpoint,
        job.device,
        data,
        tokenizer,
        adapter,
        {
            split: adapter.make_examples(records, is_training=split == "train")
            for split, records in records_by_split.items()
        },
        squad_adapter,
        squad_adapter.make_examples(data.squad_records, is_training=True) if squad_adapter else (),
    )


@dataclass(slots=True)
class FineTunedModel:
    """A fine-tuned model.

    Attributes:
        selected: index of the checkpoint that has these weights.
        dev_scores: scores on dev of that checkpoint; None if the last one was selected without dev.
    """

    inputs: TaskInputs
    fine_tuner: FineTuner
    checkpoints: Sequence[CheckpointScore] = ()
    selected: int = 0
    dev_scores: dict[str, float] | None = None

    def predict(self, split: Split) -> tuple[list[Any], list[Any]]:
        """Return the gold labels of a split, and the predictions."""
        adapter, examples = self.inputs.adapter, self.inputs.examples[split]
        records = self.inputs.data.records_by_split[split]
        predictions = adapter.merge_predictions(records, examples, self.fine_tuner.predict(examples))
        return adapter.gold_labels(records), predictions

    def score_dev(self) -> dict[str, float]:
        """Return the scores of the current weights on dev."""
        return self.inputs.data.planned_task.metric.compute_scores(*self.predict("dev"))


def fine_tune(inputs: TaskInputs, seed: int, progress: Progress) -> FineTunedModel:
    """Fine-tune a model on the train split; on SQuAD before or with it if the recipe says so.

    Args:
        progress: shows the steps.

    Raises:
        InvalidValueError: there are no examples to train on, or the recipe does not fit the model.
        NaNLossError: the training diverged.
        ModelError: the checkpoint cannot be loaded.
    """
    planned_task, adapter = inputs.data.planned_task, inputs.adapter
    hf_tokenizer = inputs.tokenizer.hf_tokenizer
    torch.manual_seed(seed)
    encoder = load_encoder(inputs.checkpoint, hf_tokenizer.pad_token_id or 0, len(hf_tokenizer))
    model = EncoderWithHead(encoder, adapter.build_head(encoder.hidden_size)).to(inputs.device)
    if inputs.squad_adapter:
        squad_recipe, squad_progress = inputs.squad_adapter.recipe, progress.with_prefix("SQuAD, ")
        squad_tuner = FineTuner(model, inputs.squad_adapter, squad_recipe, squad_progress)
        squad_tuner.train(inputs.squad_examples, seed, None)
    fine_tuner = FineTuner(model, adapter, planned_task.recipe, progress)
    fine_tuned = FineTunedModel(inputs, fine_tuner)
    dev_scores: list[dict[str, float]] = []

    def score_dev() -> float:
        dev_scores.append(fine_tuned.score_dev())
        return dev_scores[-1][planned_task.metric.main_score]

    should_select_best = planned_task.recipe.select_epoch == "best"
    fine_tuned.checkpoints, fine_tuned.selected = fine_tuner.train(
        inputs.examples["train"], seed, score_dev if should_select_best else None
    )
    fine_tuned.dev_scores = dev_scores[fine_tuned.selected] if should_select_best else None
    return fine_tuned


def build_identity(data: TaskData, seed: int) -> dict[str, Any]:
    """Return the fields of a result that must be equal for an existing one to be reused, beside its model."""
    return {
        "task": data.planned_task.task.name,
        "suite": data.planned_task.suite,
        "seed": seed,
        "settings": data.planned_task.recipe.to_dict(),
        "sample_sizes": None if data.sample_sizes is None else dict(data.sample_sizes),
        "legacy": list(data.planned_task.legacy_modes),
        "provenance": data.provenance,
    }


def _make_result(fine_tuned: FineTunedModel, seed: int, start_time: float) -> tuple[Result, bytes]:
    """Return the result of a fine-tuned model, and its test predictions as JSON Lines."""
    inputs, metric = fine_tuned.inputs, fine_tuned.inputs.data.planned_task.metric
    records_by_split, checkpoint = inputs.data.records_by_split, inputs.checkpoint
    test_records = records_by_split["test"]
    gold, predicted = fine_tuned.predict("test")
    stats = metric.compute_stats(gold, predicted)
    ids = _prediction_ids(test_records, len(gold))
    lines = [
        json.dumps(
            {"id": example_id, "gold": _to_json(gold_label), "predicted": _to_json(prediction)},
            ensure_ascii=False,
        )
        for example_id, gold_label, prediction in zip(ids, gold, predicted, strict=True)
    ]
    scores = {
        "test": metric.scores_from_stats(stats) | _score_by_batch(metric, stats, test_records),
        "majority": metric.compute_scores(
            gold, inputs.adapter.predict_majority(inputs.adapter.gold_labels(records_by_split["train"]), gold)
        ),
    }
    model = fine_tuned.fine_tuner.model.encoder.model
    result = Result(
        format=results.FORMAT,
        model=ScoredModel(
            checkpoint.name,
            checkpoint.folder,
            checkpoint.model_type,
            sum(parameter.numel() for parameter in model.parameters()),
            checkpoint.sha256,
        ),
        **build_identity(inputs.data, seed),
        metric=metric.name,
        main_score=metric.main_score,
        scores={"dev": fine_tuned.dev_scores, **scores} if fine_tuned.dev_scores else scores,
        per_example_stats=PerExampleStats(
            list(metric.stat_names),
            [[_int_if_whole(value) for value in column] for column in stats.T.tolist()],
            _hash_examples(ids, gold),
            _number_documents(test_records, len(stats)),
        ),
        checkpoints=list(fine_tuned.checkpoints),
        selected_step=fine_tuned.checkpoints[fine_tuned.selected].step,
        seconds=round(time.monotonic() - start_time, 1),
        device=_describe_device(inputs.device),
        library_versions=get_library_versions(),
    )
    return result, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


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
    batches = [questions[members[0]].test_batch for members in group_by_question(questions).values()]
    if len(batches) != len(stats) or not any(batches):
        return {}
    return {
        f"{name} of batch {batch}": value
        for batch in sorted(set(batches))
        for name, value in metric.scores_from_stats(
            stats[[question_batch == batch for question_batch in batches]]
        ).items()
    }


def _describe_device(device: torch.device) -> str:
    """Return ``cpu``, or the GPU's name and in what it computes float32."""
    if device.type != "cuda":
        return device.type
    suffix = ", TF32" if torch.get_float32_matmul_precision() == "high" else ""
    suffix += ", bfloat16 in prediction" if predicts_in_bfloat16(device) else ""
    return f"{torch.cuda.get_device_name(device)}{suffix}"


def _hash_examples(ids: Sequence[str], gold: Sequence[Any]) -> str:
    """Return the SHA-256 of ids and gold labels; ids alone may be mere line numbers."""
    lines = json.dumps([[example_id, _to_json(label)] for example_id, label in zip(ids, gold, strict=True)])
    return hashlib.sha256(lines.encode()).hexdigest()


def _prediction_ids(records: Sequence[Record], num_predictions: int) -> list[str]:
    """Return the id of each prediction: of a record, or of a question with all its passages."""
    if num_predictions == len(records):
        return [record.id for record in records]
    return list(group_by_question([record for record in records if isinstance(record, Question)]))


def _to_json(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _int_if_whole(value: float) -> float:
    return int(value) if value == int(value) else value


def _format_result(result: Result) -> str:
    """Format a result as one line."""
    scores, main_score = result.scores, result.main_score
    dev_text = (
        f", dev {100 * scores['dev'][main_score]:.2f} at step {result.selected_step:,}"
        if "dev" in scores
        else ""
    )
    majority_text = f", majority class {100 * scores['majority'][main_score]:.2f}"
    invented_text = ", invented sample" if result.provenance.file_status == "invented" else ""
    return (
        f"{main_score} {100 * scores['test'][main_score]:.2f}{majority_text}{dev_text}{invented_text}, "
        f"{result.seconds:,.0f} s"
    )


def _check_same_settings(
    path: str, existing_result: Result, identity: Mapping[str, object], checkpoint: Checkpoint
) -> None:
    """Check that an existing result is the one that this run would make.

    Raises:
        OutputMismatchError: its settings, model or files differ.
    """
    existing = {name: getattr(existing_result, name) for name in identity}
    existing["model"] = existing_result.model.sha256
    for name, value in {**identity, "model": checkpoint.sha256}.items():
        if existing[name] != value:
            raise OutputMismatchError(
                f"{path} was made with other {_describe_difference(name, existing[name], value)}: give "
                "another --output, or remove that file"
            )


def _describe_difference(name: str, existing: object, expected: object) -> str:
    if name == "settings" and isinstance(existing, dict) and isinstance(expected, dict):
        changed_names = [
            setting for setting in {**expected, **existing} if existing.get(setting) != expected.get(setting)
        ]
        changes = (
            f"{setting} {existing.get(setting)}, now {expected.get(setting)}" for setting in changed_names
        )
        return f"settings ({', '.join(changes)})"
    descriptions = {
        "provenance": "files or counts",
        "model": "weights",
        "sample_sizes": "--max-examples",
        "legacy": "--legacy",
    }
    return descriptions.get(name, name)


@contextlib.contextmanager
def lock_output(output: str) -> Iterator[None]:
    """Hold an exclusive lock on the output directory, creating it if needed.

    Raises:
        OutputMismatchError: the path is a file, or another process holds the lock.
    """
    try:
        os.makedirs(output, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputMismatchError(f"{error.filename} is a file, and --output must be a directory") from error
    with lock_folder(f"{output}/.lock", f"another process writes to {output}; wait for it or stop it"):
        yield
