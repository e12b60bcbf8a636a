"""One fine-tuning run: train a model on a task with a seed, predict, and build the result."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy
import tokenizers
import torch
import transformers

from bioshards import __version__
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.record_types import Question, Record, Relation
from bioshards.evaluate.config import suites
from bioshards.evaluate.config.legacy_mode import LegacyMode
from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.modeling import pretrained
from bioshards.evaluate.modeling.pretrained import Checkpoint
from bioshards.evaluate.modeling.tokenization import ModelTokenizer
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.fine_tuner import (
    CheckpointScore,
    EncoderWithHead,
    ExampleCache,
    FineTuner,
    predicts_in_bfloat16,
)
from bioshards.evaluate.runs.results import PerExampleStats, Result, ResultIdentity
from bioshards.evaluate.runs.task_data import TaskData
from bioshards.evaluate.tasks.adapter import TaskAdapter, make_adapter
from bioshards.evaluate.tasks.majority import predict_majority
from bioshards.evaluate.tasks.question_answering import QuestionAnswering, group_by_question
from bioshards.evaluate.tasks.relation_inputs import list_special_tokens


@dataclass(frozen=True, slots=True)
class FineTuneRun:
    """Inputs of one fine-tuning run.

    Attributes:
        legacy_modes: published deviations in reading and counting (metrics/tag_f1.py).
        progress: shows the steps.
    """

    checkpoint: Checkpoint
    data: TaskData
    seed: int
    device: torch.device
    legacy_modes: Sequence[LegacyMode]
    progress: Progress

    @property
    def metric(self) -> Metric:
        """Metric of the task, or its legacy variant."""
        return self.data.planned_task.task.metric_for(self.legacy_modes)


@dataclass(slots=True)
class FineTunedModel:
    """A fine-tuned model.

    Attributes:
        selected: index of the checkpoint that has these weights.
        dev_scores: scores on dev of that checkpoint; None if the last one was selected without dev.
    """

    run: FineTuneRun
    fine_tuner: FineTuner
    tokenizer: ModelTokenizer
    checkpoints: list[CheckpointScore]
    selected: int
    dev_scores: dict[str, float] | None


@dataclass(frozen=True, slots=True)
class TaskInputs:
    """What all seeds of a task share beside its records.

    Attributes:
        train_records: records to train on, with those of SQuAD if they are trained together.
        example_cache: tokenized examples of the task.
        squad_cache: those of SQuAD if it is trained first.
    """

    tokenizer: ModelTokenizer
    adapter: TaskAdapter
    train_records: Sequence[Record]
    example_cache: ExampleCache = field(default_factory=dict)
    squad_cache: ExampleCache = field(default_factory=dict)


def prepare_inputs(run: FineTuneRun) -> TaskInputs:
    """Load the tokenizer and build the task adapter; the seed of the run does not matter.

    Raises:
        InvalidValueError: the recipe does not fit the task.
    """
    planned_task, train_records = run.data.planned_task, run.data.records_by_split["train"]
    recipe, tokenizer = planned_task.recipe, run.checkpoint.load_tokenizer()
    if any(isinstance(record, Relation) for record in train_records):
        tokenizer.hf_tokenizer.add_tokens(list(list_special_tokens(recipe.entity_format)))
    adapter = make_adapter(planned_task.task, tokenizer, recipe, train_records, run.legacy_modes)
    if recipe.squad_transfer == "joint":
        train_records = [*train_records, *run.data.squad_records]
    return TaskInputs(tokenizer, adapter, train_records)


def fine_tune(run: FineTuneRun, inputs: TaskInputs) -> FineTunedModel:
    """Fine-tune a model on the train split; on SQuAD before or with it if the recipe says so.

    Args:
        inputs: those of any run with the same checkpoint, data and legacy modes.

    Raises:
        NaNLossError: the training diverged.
        ModelError: the checkpoint cannot be loaded.
    """
    records_by_split, recipe = run.data.records_by_split, run.data.planned_task.recipe
    tokenizer, adapter = inputs.tokenizer, inputs.adapter
    torch.manual_seed(run.seed)
    encoder_model = pretrained.load_encoder(run.checkpoint, len(tokenizer.hf_tokenizer))
    model = EncoderWithHead(encoder_model, adapter.build_head(encoder_model.hidden_size)).to(run.device)
    pad_id = tokenizer.hf_tokenizer.pad_token_id or 0
    if recipe.squad_transfer == "first":
        squad_recipe = replace(suites.SQUAD_RECIPE, precision=recipe.precision)
        squad_tuner = FineTuner(
            model,
            QuestionAnswering(tokenizer, squad_recipe, is_per_question=False),
            squad_recipe,
            pad_id,
            run.device,
            run.progress.with_prefix("SQuAD, "),
            inputs.squad_cache,
        )
        squad_tuner.train(run.data.squad_records, run.seed, None)
    fine_tuner = FineTuner(model, adapter, recipe, pad_id, run.device, run.progress, inputs.example_cache)
    fine_tuned = FineTunedModel(run, fine_tuner, tokenizer, [], 0, None)
    dev_scores: list[dict[str, float]] = []

    def score_dev() -> float:
        dev_scores.append(
            run.metric.scores_from_stats(compute_example_stats(fine_tuned, records_by_split["dev"]))
        )
        return dev_scores[-1][run.metric.main_score]

    should_select_best = recipe.select_epoch == "best"
    fine_tuned.checkpoints, fine_tuned.selected = fine_tuned.fine_tuner.train(
        inputs.train_records, run.seed, score_dev if should_select_best else None
    )
    fine_tuned.dev_scores = dev_scores[fine_tuned.selected] if should_select_best else None
    return fine_tuned


def compute_example_stats(fine_tuned: FineTunedModel, records: Sequence[Record]) -> Numbers:
    """Return the per-example statistics of the metric on records, float64 [examples, stats]."""
    fine_tuner = fine_tuned.fine_tuner
    gold, predicted = fine_tuner.adapter.gold_labels(records), fine_tuner.predict(records)
    return fine_tuned.run.metric.compute_stats(gold, predicted)


def build_identity(run: FineTuneRun) -> ResultIdentity:
    """Return the inputs that must be equal for an existing result to be reused."""
    data = run.data
    return {
        "task": data.planned_task.task.name,
        "suite": data.planned_task.suite,
        "seed": run.seed,
        "settings": data.planned_task.recipe.to_dict(),
        "sample_sizes": None if data.sample_sizes is None else dict(data.sample_sizes),
        "legacy": list(run.legacy_modes),
        "provenance": dict(data.provenance),
    }


def score_model(fine_tuned: FineTunedModel, start_time: float) -> tuple[Result, bytes]:
    """Return the result of a fine-tuned model, and its test predictions as JSON Lines."""
    run, metric = fine_tuned.run, fine_tuned.run.metric
    test_records = run.data.records_by_split["test"]
    fine_tuner = fine_tuned.fine_tuner
    gold, predicted = fine_tuner.adapter.gold_labels(test_records), fine_tuner.predict(test_records)
    stats = metric.compute_stats(gold, predicted)
    ids = _prediction_ids(test_records, len(gold))
    lines = [
        json.dumps(
            {"id": example_id, "gold": _to_json(gold_label), "predicted": _to_json(prediction)},
            ensure_ascii=False,
        )
        for example_id, gold_label, prediction in zip(ids, gold, predicted, strict=True)
    ]
    example_stats: PerExampleStats = {
        "names": list(metric.stat_names),
        "test": [[_int_if_whole(value) for value in column] for column in stats.T.tolist()],
        "examples_sha256": _hash_examples(ids, gold),
    }
    if documents := _number_documents(test_records, len(stats)):
        example_stats["documents"] = documents
    model = fine_tuner.model.encoder.model
    result: Result = {
        "format": results.FORMAT,
        "model": {
            "name": run.checkpoint.name,
            "path": run.checkpoint.folder,
            "type": run.checkpoint.model_type,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "sha256": run.checkpoint.sha256,
        },
        **build_identity(run),
        "metric": metric.name,
        "main_score": metric.main_score,
        "scores": {
            **({"dev": fine_tuned.dev_scores} if fine_tuned.dev_scores else {}),
            "test": metric.scores_from_stats(stats) | _score_by_batch(metric, stats, test_records),
            "majority": metric.compute_scores(
                gold,
                predict_majority(
                    run.data.planned_task.task.problem_type,
                    fine_tuner.adapter.gold_labels(run.data.records_by_split["train"]),
                    gold,
                ),
            ),
        },
        "per_example_stats": example_stats,
        "checkpoints": [asdict(checkpoint) for checkpoint in fine_tuned.checkpoints],
        "selected_step": fine_tuned.checkpoints[fine_tuned.selected].step,
        "seconds": round(time.monotonic() - start_time, 1),
        "device": describe_device(run.device),
        "library_versions": get_library_versions(),
    }
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


def describe_device(device: torch.device) -> str:
    """Return ``cpu``, or the GPU's name and in what it computes float32."""
    if device.type != "cuda":
        return device.type
    suffix = ", TF32" if torch.get_float32_matmul_precision() == "high" else ""
    suffix += ", bfloat16 in prediction" if predicts_in_bfloat16(device) else ""
    return f"{torch.cuda.get_device_name(device)}{suffix}"


def get_library_versions() -> dict[str, str]:
    """Return the versions of the libraries that influence scores."""
    libraries = {
        library.__name__: library.__version__ for library in (numpy, tokenizers, torch, transformers)
    }
    return {"bioshards": __version__, "python": platform.python_version(), **libraries}


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
