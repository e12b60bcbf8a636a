"""One training run: build or restore the model, train, write checkpoints and the manifest."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any, NamedTuple

import torch
import transformers

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.manifest import utc_now
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.train_job import TrainJob
from bioshards.train.data import pretraining_dataset
from bioshards.train.data.loader import StepLoader
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.loop import (
    agreement,
    checkpoint,
    dashboards,
    distributed,
    model_card,
    run_dir,
    tokenizer_files,
)
from bioshards.train.loop.agreement import StartFacts
from bioshards.train.loop.checkpoint import MODEL_FOLDER, STATE_FILE, LoopState
from bioshards.train.loop.dashboards import DashboardRun
from bioshards.train.loop.distributed import ProcessGroup
from bioshards.train.loop.metrics_log import MetricsLog
from bioshards.train.loop.trainer import MetricSums, Trainer
from bioshards.train.loop.training_loop import FlopsModel, TrainingLoop
from bioshards.train.loop.training_plan import TrainPlan, plan_training
from bioshards.train.models import factory, flops


def train(job: TrainJob, progress: Progress, stop: Event) -> str:
    """Start or resume a training run and train to its last step.

    Args:
        progress: shows the steps of the main process.
        stop: set to stop after the current step.

    Returns:
        the summary that the main process prints; empty in other processes.

    Raises:
        UserError: the job cannot be done: TrainingDataError, VocabularyError, InitialWeightsError,
            OutputMismatchError, InvalidValueError.
        KeyboardInterrupt: ``stop`` was set; a checkpoint is saved.
        DivergedError: the gradients of several steps in a row were not finite.
        CheckpointError: a checkpoint could not be written.
        ProcessMismatchError: other processes begin with other data, another recipe, step or model.
        LostProcessError: another process was killed, or its machine is off.
    """
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # progress has the bars
    processes = distributed.initialize(job.device)
    with processes.report_errors(), contextlib.ExitStack() as stack:

        def start() -> tuple[_StartedRun, StartFacts | None]:
            plan = plan_training(job, processes)
            if processes.is_main:
                stack.enter_context(run_dir.claim_run_dir(job.output))
                run_dir.check_identity(job.output, plan.identity)
            run = _TrainingRun(job, plan, processes, progress if processes.is_main else Progress(None))
            started_run = run.start()
            return started_run, run.list_facts(started_run) if processes.world_size > 1 else None

        started_run = agreement.start_together(processes, start, job.output)
        result = started_run.run.train(started_run, stop)
    processes.close()  # only after success: after an error it would wait for processes that wait for this one
    return result if processes.is_main else ""


class _StartedRun(NamedTuple):
    """A run whose model is ready to train; ``trainer`` is None if the run is finished."""

    run: _TrainingRun
    last_checkpoint: str | None
    trainer: Trainer | None
    state: LoopState


@dataclass(frozen=True, slots=True)
class _TrainingRun:
    job: TrainJob
    plan: TrainPlan
    processes: ProcessGroup
    progress: Progress

    def start(self) -> _StartedRun:
        """Build or restore the model; nothing is written."""
        job = self.job
        last_checkpoint = checkpoint.find_latest(job.output)
        if os.path.exists(f"{job.output}/{run_dir.MANIFEST_FILE}"):
            return _StartedRun(self, last_checkpoint, None, LoopState())
        if last_checkpoint is None and self.processes.is_main and not job.no_verify:
            for dataset in (self.plan.dataset, self._open_validation_set()):
                if dataset is not None:
                    dataset.verify(self.progress)
        trainer = self._build_trainer(last_checkpoint)
        return _StartedRun(self, last_checkpoint, trainer, self._restore_state(trainer, last_checkpoint))

    def list_facts(self, started_run: _StartedRun) -> StartFacts:
        """Return what all processes must share."""
        plan, trainer = self.plan, started_run.trainer
        validation_set = self._open_validation_set()
        return StartFacts(
            recipe=agreement.digest_json(
                [
                    plan.recipe.to_dict(),
                    dataclasses.asdict(plan.intervals),
                    plan.partition.micro_batch_size,
                    self.job.max_validation_rows,
                ]
            ),
            pretraining_set=agreement.digest_json(
                [plan.dataset.fingerprint, validation_set and validation_set.fingerprint]
            ),
            vocabulary=agreement.digest_json(plan.dataset.vocabulary_sha256),
            step=f"{started_run.state.steps_done:,}" if trainer else "finished",
            weights=agreement.digest_weights(trainer.objective.state_dict()) if trainer else "finished",
        )

    def train(self, started_run: _StartedRun, stop: Event) -> str:
        """Train to the last step, and return the summary."""
        job, processes = self.job, self.processes
        _, last_checkpoint, trainer, state = started_run
        if trainer is None:
            return f"{job.output} is finished: there is nothing to do\n{self._format_loading_hint()}"
        if last_checkpoint is None and processes.is_main:
            LocalStorage().write_json(
                f"{job.output}/{run_dir.RUN_FILE}",
                {**self._build_run_info(state, trainer), "started_at": utc_now()},
            )
        metrics_log = self._open_log(state) if processes.is_main else None
        self.progress.write(
            f"training on {processes.device} in {self.plan.recipe.precision}, with "
            f"{trainer.attention_kernel} attention"
        )
        loop = self._build_loop(trainer, state, metrics_log, stop)
        started = time.monotonic()
        loop.run()
        if metrics_log is None:
            return ""
        metrics_log.close()
        run_info = self._build_run_info(
            dataclasses.replace(state, micro_batch_limit=loop.micro_batch_limit), trainer
        )
        run_dir.write_run_manifest(
            job.output, run_info, metrics_log.last_train_entry, time.monotonic() - started
        )
        return self._format_result(loop, metrics_log)

    def _open_log(self, state: LoopState) -> MetricsLog:
        run_info = run_dir.read_run_info(self.job.output) or {}
        run = DashboardRun(
            folder=self.job.output,
            started_at=run_info.get("started_at", ""),
            steps_done=state.steps_done,
            recipe=self.plan.recipe.to_dict(),
        )
        return MetricsLog(
            self.job.output, state.steps_done, dashboards.open_dashboards(self.job.dashboards, run)
        )

    def _build_trainer(self, last_checkpoint: str | None) -> Trainer:
        recipe, init_checkpoint = self.plan.recipe, self.job.init_checkpoint
        if init_checkpoint and last_checkpoint:  # a resumed run does not need the initial checkpoint any more
            init_checkpoint = f"{last_checkpoint}/{MODEL_FOLDER}"
        torch.manual_seed(recipe.seed)
        vocabulary = None
        if init_checkpoint:
            vocabulary = tokenizer_files.read_vocabulary(self.plan.vocabulary)
            tokenizer_files.check_spiece_model(self.plan.vocabulary, init_checkpoint)
        objective = factory.build_objective(
            recipe.model_config, self.plan.dataset, init_checkpoint, vocabulary
        )
        return Trainer(objective.to(self.processes.device), recipe, self.processes)

    def _restore_state(self, trainer: Trainer, last_checkpoint: str | None) -> LoopState:
        """Load a checkpoint of this run, or of the run to continue, and return the state of the loop."""
        source_checkpoint = last_checkpoint or self.plan.continue_checkpoint
        if source_checkpoint is None:
            return LoopState()
        state = checkpoint.load(source_checkpoint, self.processes.device)
        try:
            trainer.load_state_dict(state)
        except ValueError as error:
            raise InvalidValueError(
                f"cannot resume from {source_checkpoint}/{STATE_FILE}: {error}"
            ) from error
        loop_state = LoopState.from_dict(state)
        if last_checkpoint:
            return loop_state
        if loop_state.steps_done >= self.plan.recipe.steps:
            raise InvalidValueError(
                f"--steps {self.plan.recipe.steps:,} counts from step 0, and {self.job.continue_from} has "
                f"done {loop_state.steps_done:,}: give more"
            )
        return LoopState(
            steps_done=loop_state.steps_done,
            first_step=loop_state.steps_done,
            tokens_seen=loop_state.tokens_seen,
        )

    def _build_run_info(self, state: LoopState, trainer: Trainer) -> dict[str, Any]:
        """Build the JSON value of run.json, common to the run and its checkpoints."""
        dataset = self.plan.dataset
        return {
            "identity": self.plan.identity.to_dict(),
            "preset": self.job.preset,
            "data": {
                "folder": os.path.abspath(self.job.data),
                "objective": dataset.objective,
                "max_seq_length": dataset.max_seq_length,
                "rows": dataset.rows,
                "tokens": dataset.tokens,
            },
            "vocabulary": os.path.abspath(self.plan.vocabulary),
            "first_step": state.first_step,
            "run": {
                "command": list(self.job.command),
                "world_size": self.processes.world_size,
                "device": str(self.processes.device.type),
                "attention_kernel": trainer.attention_kernel,
                "micro_batch_size": state.micro_batch_limit or self.plan.partition.micro_batch_size,
                "library_versions": run_dir.get_library_versions(),
            },
        }

    def _build_loop(
        self, trainer: Trainer, state: LoopState, metrics_log: MetricsLog | None, stop: Event
    ) -> TrainingLoop:
        processes, recipe = self.processes, self.plan.recipe

        def save_checkpoint(loop_state: LoopState) -> None:
            if processes.is_main:
                checkpoint.save(
                    self.job.output,
                    loop_state.steps_done,
                    lambda folder: self._write_checkpoint(folder, trainer, loop_state),
                    self.job.keep_checkpoints,
                )
            processes.barrier()

        metric_sums = MetricSums()
        if state.metric_sums:
            metric_sums.load_state_dict(state.metric_sums, processes)

        flops_model = FlopsModel(
            count_flops=lambda counts: trainer.training_objective.count_training_flops(BatchCounts(**counts)),
            peak_flops_per_second=processes.world_size
            * flops.get_peak(processes.device, getattr(torch, recipe.precision)),
        )
        loader = self._build_loader(self.plan.dataset, state.first_step)
        if state.micro_batch_limit:
            loader = loader.with_micro_batch_size(state.micro_batch_limit)
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
            first_step=state.first_step,
            steps_done=state.steps_done,
            tokens_seen=state.tokens_seen,
            metric_sums=metric_sums,
            micro_batch_limit=state.micro_batch_limit,
        )

    def _build_loader(self, dataset: PretrainingDataset, first_step: int = 0) -> StepLoader:
        return StepLoader(
            dataset,
            self.plan.piece_table,
            self.plan.recipe,
            self.plan.partition,
            rank=self.processes.rank,
            first_step=first_step,
        )

    def _open_validation_set(self) -> PretrainingDataset | None:
        """Open the validation split; None if it is empty."""
        return (
            None
            if pretraining_dataset.is_empty(self.job.data, "validation")
            else PretrainingDataset(self.job.data, "validation")
        )

    def _build_validation_batches(self) -> Callable[[], Iterator[tuple[Batch, BatchCounts]]] | None:
        """Return an iterator factory over this process's validation rows.

        None: the split is empty, or has fewer rows than there are processes.
        """
        validation_set = self._open_validation_set()
        if validation_set is None:
            return None
        num_rows = min(validation_set.rows, self.job.max_validation_rows)
        loader, processes = self._build_loader(validation_set), self.processes
        micro_batch_size = self.plan.partition.micro_batch_size
        first_row, end_row = (
            num_rows * rank // processes.world_size for rank in (processes.rank, processes.rank + 1)
        )

        def batches() -> Iterator[tuple[Batch, BatchCounts]]:
            for start in range(first_row, end_row, micro_batch_size):
                yield loader.load_sequential(start, min(micro_batch_size, end_row - start))

        return batches if num_rows >= processes.world_size else None

    def _write_checkpoint(self, folder: str, trainer: Trainer, state: LoopState) -> None:
        """Write the files of a checkpoint into a folder."""
        model_folder = f"{folder}/{MODEL_FOLDER}"
        trainer.objective.save(model_folder)
        for subfolder, _, names in os.walk(model_folder):
            if "config.json" in names:  # the model, and ELECTRA's generator
                tokenizer_files.copy_to(self.plan.vocabulary, subfolder, self.plan.recipe.max_positions)
        card = model_card.format_model_card(
            trainer.objective, self.plan.recipe, self.plan.dataset, state.steps_done, state.tokens_seen
        )
        with open(f"{model_folder}/{model_card.FILE}", "w", encoding="utf-8") as file:
            file.write(card)
        with open(f"{folder}/{STATE_FILE}", "wb") as state_file:
            torch.save({**trainer.state_dict(), **state.to_dict()}, state_file)
        run_info = {
            **self._build_run_info(state, trainer),
            "step": state.steps_done,
            "tokens": state.tokens_seen,
            "saved": utc_now(),
        }
        LocalStorage().write_json(f"{folder}/{run_dir.RUN_FILE}", run_info)

    def _format_result(self, loop: TrainingLoop, metrics_log: MetricsLog) -> str:
        finite_losses = {
            name: value
            for name, value in metrics_log.last_train_entry.get("losses", {}).items()
            if value is not None
        }
        losses = ", ".join(f"{name} {value:.3f}" for name, value in finite_losses.items())
        return (
            f"{loop.steps_done:,} steps, {loop.tokens_seen:,} tokens: {losses}\n"
            f"{_format_learning(metrics_log)}{self._format_loading_hint()}\n"
            f"curves:     python -m bioshards.train plot {self.job.output}"
        )

    def _format_loading_hint(self) -> str:
        folder = f"{checkpoint.find_latest(self.job.output)}/{MODEL_FOLDER}"
        return (
            f"checkpoint: {folder}\n"
            f'load it:    transformers.AutoModel.from_pretrained("{folder}"), or AutoTokenizer, '
            "AutoModelForTokenClassification ..."
        )


def _format_learning(metrics_log: MetricsLog) -> str:
    """Return a line with accuracy and baseline of hidden tokens, of validation rows if there are any."""
    entry = metrics_log.last_validation_entry or metrics_log.last_train_entry
    metrics = entry.get("metrics", {})
    if metrics.get("mlm_accuracy") is None:
        return ""
    return (
        f"{entry['split']}: {metrics['mlm_accuracy']:.1%} of the hidden tokens predicted; "
        f"chance, always the most frequent token: {metrics['mlm_baseline']:.1%}\n"
    )
