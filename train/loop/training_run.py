"""A run from its command to its end: begin or go on, train, and say how the model is loaded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any

import torch
import transformers

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.manifest import utc_now
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.data import pretraining_dataset
from bioshards.train.data.loader import StepLoader
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.models import factory, flops

from . import checkpoint, run_dir, tokenizer_files
from . import distributed as processes
from .checkpoint import MODEL_FOLDER, STATE_FILE
from .distributed import ProcessGroup
from .metrics_log import MetricsLog
from .train_job import TrainJob, TrainPlan, plan_training
from .trainer import MetricSums, Trainer
from .training_loop import FlopsModel, TrainingLoop

# Ours is the one live line.
transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def train(job: TrainJob, progress: Callable[[str], None], stop: Event) -> str:
    """Train, or go on, until the last step; returns what the first process is to tell.

    Args:
        progress: is told how far it is.
        stop: set from elsewhere when the run is to end after the step that it is in.

    Raises:
        TrainingDataError, VocabularyError, InitialWeightsError, OutputMismatchError, ValueError: what is
            asked for cannot be done.
        KeyboardInterrupt, DivergedError, CheckpointError: see training_loop.py and checkpoint.py.
    """
    us = processes.initialize(job.device)
    planned = plan_training(job, us)
    if us.is_main:
        with run_dir.claim_run_dir(job.output):
            run_dir.check_identity(job.output, planned.identity)
            result = _TrainingRun(job, planned, us, progress).train(stop)
    else:
        _TrainingRun(job, planned, us, _ignore_progress).train(stop)
        result = ""
    us.close()  # not after an error: it would wait for processes that wait for this one
    return result


def _ignore_progress(_line: str) -> None:
    """What the processes but the first say."""


@dataclass(frozen=True, slots=True)
class _TrainingRun:
    job: TrainJob
    plan: TrainPlan
    processes: ProcessGroup
    progress: Callable[[str], None]

    def train(self, stop: Event) -> str:
        job, processes = self.job, self.processes
        if os.path.exists(f"{job.output}/{run_dir.MANIFEST_FILE}"):
            return f"{job.output} is finished: there is nothing to do\n{self._format_loading_hint()}"
        last_checkpoint = checkpoint.find_latest(job.output)
        processes.barrier()  # nobody writes before all have looked
        if last_checkpoint is None and processes.is_main and job.verify_checksums:
            for dataset in (self.plan.dataset, self._open_validation_set()):
                if dataset is not None:
                    dataset.verify(self.progress)
        trainer = self._build_trainer(last_checkpoint)
        state = self._restore_state(trainer, last_checkpoint)
        if last_checkpoint is None and processes.is_main:
            LocalStorage().write_json(
                f"{job.output}/{run_dir.RUN_FILE}", {**self._build_run_info(state), "started": utc_now()}
            )
        metrics_log = MetricsLog(job.output, state["done"]) if processes.is_main else None
        loop = self._build_loop(trainer, state, metrics_log, stop)
        started = time.monotonic()
        loop.run()
        if metrics_log is None:
            return ""
        metrics_log.close()
        run_dir.write_run_manifest(
            job.output, self._build_run_info(state), metrics_log.last_train_entry, time.monotonic() - started
        )
        return self._format_result(loop, metrics_log.last_train_entry)

    def _build_trainer(self, last_checkpoint: str | None) -> Trainer:
        recipe, init_checkpoint = self.plan.recipe, self.job.init_checkpoint
        if init_checkpoint and last_checkpoint:  # its configuration, and no need for the folder any more
            init_checkpoint = f"{last_checkpoint}/{MODEL_FOLDER}"
        torch.manual_seed(recipe.seed)
        vocabulary = tokenizer_files.read_vocabulary(self.plan.vocabulary) if init_checkpoint else None
        objective = factory.build_objective(
            recipe.model_config, self.plan.dataset, init_checkpoint, vocabulary
        )
        return Trainer(
            objective.to(self.processes.device),
            recipe,
            self.processes,
            self.plan.partition.accumulation_steps,
        )

    def _restore_state(self, trainer: Trainer, last_checkpoint: str | None) -> dict[str, Any]:
        """Where the run is: what its loop had said of itself, and ``first_step``, the step at which this set
        began; the trainer is taken there."""
        source_checkpoint = last_checkpoint or self.plan.continue_checkpoint
        if source_checkpoint is None:
            return {"done": 0, "first": 0, "tokens": 0, "tally": None}
        state = checkpoint.load(source_checkpoint, self.processes.device)
        try:
            trainer.load_state_dict(state)
        except ValueError as error:
            raise InvalidValueError(
                f"{source_checkpoint}/{STATE_FILE} cannot be gone on with: {error}"
            ) from error
        if last_checkpoint:
            return {name: state[name] for name in ("done", "first", "tokens", "tally")}
        first_step = state["done"]
        if first_step >= self.plan.recipe.steps:
            raise InvalidValueError(
                f"--steps {self.plan.recipe.steps:,} are all, and {self.job.continue_from} has done "
                f"{first_step:,} "
                "of them already: give more"
            )
        return {"done": first_step, "first": first_step, "tokens": state["tokens"], "tally": None}

    def _build_run_info(self, state: dict[str, Any]) -> dict[str, Any]:
        """What run.json and every checkpoint say."""
        dataset = self.plan.dataset
        return {
            "identity": self.plan.identity,
            "preset": self.job.preset,
            "data": {
                "folder": os.path.abspath(self.job.data),
                "objective": dataset.objective,
                "max_seq_length": dataset.max_seq_length,
                "rows": dataset.rows,
                "tokens": dataset.tokens,
            },
            "vocabulary": os.path.abspath(self.plan.vocabulary),
            "first_step": state["first"],
            "run": {
                "command": list(self.job.command),
                "world_size": self.processes.world_size,
                "device": str(self.processes.device.type),
                "micro_batch_size": self.plan.partition.micro_batch_size,
                "library_versions": run_dir.get_library_versions(),
            },
        }

    def _build_loop(
        self, trainer: Trainer, state: dict[str, Any], metrics_log: MetricsLog | None, stop: Event
    ) -> TrainingLoop:
        processes, recipe = self.processes, self.plan.recipe
        loader = self._build_loader(self.plan.dataset, state["first"])

        def save_checkpoint(loop_state: dict[str, Any]) -> None:
            if processes.is_main:
                checkpoint_state = {**loop_state, "first": state["first"]}
                checkpoint.save(
                    self.job.output,
                    loop_state["done"],
                    lambda folder: self._write_checkpoint(folder, trainer, checkpoint_state),
                    self.job.keep_checkpoints,
                )
            processes.barrier()

        metric_sums = MetricSums()
        if state["tally"]:
            metric_sums.load_state_dict(state["tally"], processes)

        flops_model = FlopsModel(
            lambda counts: flops.count_training_step(trainer.training_objective, BatchCounts(**counts)),
            processes.world_size * flops.get_peak(processes.device, getattr(torch, recipe.precision)),
        )
        return TrainingLoop(
            trainer=trainer,
            loader=loader,
            validation_batches=self._build_validation_batches(),
            recipe=recipe,
            processes=processes,
            intervals=self.plan.intervals,
            flops_model=flops_model,
            log=metrics_log,
            progress=self.progress,
            save_checkpoint=save_checkpoint,
            stop=stop,
            steps_done=state["done"],
            tokens_seen=state["tokens"],
            metric_sums=metric_sums,
        )

    def _build_loader(self, dataset: PretrainingDataset, first_step: int = 0) -> StepLoader:
        return StepLoader(
            *(dataset, self.plan.piece_table, self.plan.recipe, self.plan.partition),
            rank=self.processes.rank,
            first_step=first_step,
        )

    def _open_validation_set(self) -> PretrainingDataset | None:
        """The validation split, if there is one."""
        return (
            None
            if pretraining_dataset.is_empty(self.job.data, "validation")
            else PretrainingDataset(self.job.data, "validation")
        )

    def _build_validation_batches(self) -> Callable[[], Iterator[tuple[Batch, BatchCounts]]] | None:
        """This process's part of the validation split, if there is one."""
        validation_set = self._open_validation_set()
        if validation_set is None:
            return None
        num_rows = min(validation_set.rows, self.job.max_validation_rows)
        loader, micro_batch_size, processes = (
            self._build_loader(validation_set),
            self.plan.partition.micro_batch_size,
            self.processes,
        )
        first_row, end_row = (
            num_rows * rank // processes.world_size for rank in (processes.rank, processes.rank + 1)
        )

        def batches() -> Iterator[tuple[Batch, BatchCounts]]:
            for start in range(first_row, end_row, micro_batch_size):
                yield loader.load_sequential(start, min(micro_batch_size, end_row - start))

        return batches if num_rows >= processes.world_size else None

    def _write_checkpoint(self, folder: str, trainer: Trainer, state: dict[str, Any]) -> None:
        """The files of a checkpoint."""
        model_folder = f"{folder}/{MODEL_FOLDER}"
        trainer.objective.save(model_folder)
        tokenizer_files.copy_to(self.plan.vocabulary, model_folder, self.plan.recipe.max_positions)
        with open(f"{folder}/{STATE_FILE}", "wb") as file:
            torch.save({**trainer.state_dict(), **state}, file)
        run_info = {
            **self._build_run_info(state),
            "step": state["done"],
            "tokens": state["tokens"],
            "saved": utc_now(),
        }
        LocalStorage().write_json(f"{folder}/{run_dir.RUN_FILE}", run_info)

    def _format_result(self, loop: TrainingLoop, final_metrics: dict[str, Any]) -> str:
        finite_losses = {
            name: value for name, value in final_metrics.get("losses", {}).items() if value is not None
        }
        losses = ", ".join(f"{name} {value:.3f}" for name, value in finite_losses.items())
        return (
            f"{loop.steps_done:,} steps, {loop.tokens_seen:,} tokens: "
            f"{losses}\n{self._format_loading_hint()}\n"
            f"curves:     python -m bioshards.train plot {self.job.output}"
        )

    def _format_loading_hint(self) -> str:
        folder = f"{checkpoint.find_latest(self.job.output)}/{MODEL_FOLDER}"
        return (
            f"checkpoint: {folder}\n"
            f'load it:    transformers.AutoModel.from_pretrained("{folder}"), AutoTokenizer, '
            "AutoModelForTokenClassification ... too"
        )
