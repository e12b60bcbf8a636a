"""One training run: build or restore the model, train, write checkpoints and the manifest."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from threading import Event
from typing import Any, Final

import numpy as np
import torch
import transformers
from torch import Tensor

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.corpus.manifest import TrainingManifest, check_listed, find_manifest, utc_now
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.options import option_from_field
from bioshards.corpus.ui.progress import Progress
from bioshards.train import checkpoint, distributed, log, run_report
from bioshards.train.batch import BatchCounts
from bioshards.train.checkpoint import MODEL_FOLDER, STATE_FILE
from bioshards.train.data.loader import StepLoader, choose_micro_batch_size, prefetch
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import (
    PretrainingDataset,
    TrainingDataError,
    manifest_of,
    open_validation_set,
)
from bioshards.train.distributed import ProcessGroup
from bioshards.train.log import RunLog
from bioshards.train.models import attention
from bioshards.train.models.adversarial import AdversarialObjective
from bioshards.train.models.objectives import Objective
from bioshards.train.models.weights import InitialWeightsError, build_objective
from bioshards.train.optim import (
    Adam,
    FlatGradients,
    Lamb,
    OptimizerStateError,
    compute_layer_scales,
    learning_rate,
)
from bioshards.train.options import TrainJob
from bioshards.train.presets import STAGE_STEPS, describe_set_differences
from bioshards.train.recipe import DEFAULT_FAMILIES, FAMILIES, FamilyName, TrainRecipe, describe_warmup

MAX_NON_FINITE_STEPS: Final = 10
"""Consecutive steps without a finite gradient after which a run stops: one can be a bad batch, ten are a
diverged model."""
INITIAL_SCALE: Final = 2.0**16
MAX_SCALE: Final = 2.0**24
GROWTH_INTERVAL: Final = 2000
"""Loss scale of float16 (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2): the initial one, the
highest, and finite steps until it is doubled, as in torch.amp.GradScaler.  A step without a finite gradient
halves it, down to 1."""
_DEFAULT_CHECKPOINTS, _MIN_SAVE_INTERVAL = 100, 100
"""Default number of checkpoints of a run, and the fewest steps between them."""
_FIXED_FIELDS: Final = (
    "family",
    "hidden_size",
    "num_layers",
    "num_heads",
    "intermediate_size",
    "embedding_size",
    "max_positions",
    "generator_hidden_fraction",
    "generator_layers_fraction",
    "optimizer",
)
"""Recipe fields that a continued run must share with its source."""


class DivergedError(RunError):
    """The gradients of several steps in a row were not finite."""


def train(job: TrainJob, progress: Progress, stop: Event, stack: contextlib.ExitStack) -> str:
    """Start or resume a training run and train to its last step, or to ``--stop-after``.

    Args:
        progress: shows the steps of the main process.
        stop: set to stop after the current step.
        stack: closes what the run has opened.

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
    # The inputs.
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # progress has the bars
    processes = stack.enter_context(distributed.join(job.device))
    device, rank, world_size = processes.device, processes.rank, processes.world_size
    is_main = processes.is_main
    progress = progress if is_main else Progress(None)
    intervals = _resolve_intervals(job)
    dashboards = [name for name in ("tensorboard", "wandb") if getattr(job, name) and is_main]
    log.check_installed(dashboards)
    dataset, validation_set = PretrainingDataset(job.data), open_validation_set(job.data)
    vocabulary = job.vocab or manifest_of(job.data).run.vocabulary
    pieces = PieceTable.load(vocabulary, dataset.vocabulary_size, dataset.vocabulary_sha256)
    checkpoint.read_tokenizer_config(vocabulary)
    check_listed(LocalStorage(), vocabulary, checkpoint.VOCABULARY_FILES)
    recipe = _resolve_recipe(job, dataset, device)
    micro_batch_size = choose_micro_batch_size(
        recipe.batch_size, world_size, dataset.max_seq_length, device.type, job.micro_batch_size
    )
    origin = job.continue_from or job.init_checkpoint
    identity = {
        "pipeline": "train",
        "format": checkpoint.FORMAT,
        "recipe": recipe.to_dict(),
        "data_fingerprint": dataset.fingerprint,
        "vocabulary_sha256": dataset.vocabulary_sha256,
        "origin": os.path.realpath(origin) if origin else None,
    }

    # The run: new, to be resumed, or finished.
    storage = LocalStorage()
    if is_main:
        storage = stack.enter_context(checkpoint.claim(job.output))
        checkpoint.check_identity(job.output, identity)
    latest = checkpoint.find_latest(job.output)
    is_finished = find_manifest(storage, job.output, TrainingManifest) is not None
    source = latest or (job.continue_from and _find_source(job.continue_from, recipe, dataset))
    if is_main and not (latest or is_finished or job.no_verify):
        for split in filter(None, (dataset, validation_set)):
            split.verify(progress)
    if is_finished:
        processes.start_together({"step": "finished"}, job.output, stop)
        return f"{job.output} is finished: there is nothing to do\n{_format_hint(job.output)}" * is_main
    last_step = min(recipe.steps, job.stop_after or recipe.steps)

    # The model and its optimizer.
    threads = distributed.set_threads(job.threads)
    if device.type == "cuda":  # float32 products in TF32: the range of float32, and 10 bits of mantissa
        torch.set_float32_matmul_precision("high")
    torch.manual_seed(recipe.seed)
    # A resumed run does not need the initial checkpoint any more.
    init_checkpoint = f"{latest}/{MODEL_FOLDER}" if job.init_checkpoint and latest else job.init_checkpoint
    if not latest and init_checkpoint and (damage := checkpoint.describe_damage(init_checkpoint)):
        raise InitialWeightsError(f"--init-checkpoint: {damage}")
    objective = build_objective(recipe, dataset, init_checkpoint, vocabulary, progress.write).to(device)
    trained: Objective | AdversarialObjective = objective
    if recipe.adversarial_weight:
        trained = AdversarialObjective(objective, recipe.adversarial_weight)
    forward: Any = torch.compile(trained, dynamic=False) if recipe.compile else trained
    kernels = attention.choose_kernels(objective, device, getattr(torch, recipe.precision))
    named_parameters = list(objective.named_parameters())
    gradients = FlatGradients(named_parameters)
    optimizer = (Lamb if recipe.optimizer == "lamb" else Adam)(
        named_parameters,
        betas=(recipe.beta1, recipe.beta2),
        eps=recipe.epsilon,
        weight_decay=recipe.weight_decay,
        bias_correction=recipe.bias_correction,
        lr_scales=compute_layer_scales((name for name, _ in named_parameters), recipe.layer_decay),
    )

    # The state: what a checkpoint restores.
    step = first_step = tokens_seen = 0
    scale, finite_steps = INITIAL_SCALE if recipe.precision == "float16" else 1.0, 0
    sums, counts, skipped_steps = dict[str, Tensor](), BatchCounts(), 0  # since the last log line
    if source:
        state = checkpoint.load(source, device)
        try:
            objective.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimiser"])
        except (RuntimeError, OptimizerStateError) as error:
            raise InvalidValueError(
                f"cannot resume from {source}/{STATE_FILE}: {str(error).splitlines()[-1].strip()}"
            ) from error
        step, tokens_seen = state["done"], state["tokens"]
        if recipe.precision == "float16" and "loss_scale" in state:
            scale, finite_steps = state["loss_scale"]["scale"], state["loss_scale"]["finite_steps"]
        if latest:
            first_step, tally = state["first"], state["tally"]
            skipped_steps = tally["skipped"]
            counts = BatchCounts._make(tally["counts"][name] for name in BatchCounts._fields)
            sums = {  # those of all processes, in the main one
                name: torch.tensor(is_main * value, dtype=torch.float64, device=device)
                for name, value in tally["sums"].items()
            }
        elif step >= recipe.steps:
            raise InvalidValueError(
                f"--steps {recipe.steps:,} counts from step 0, and {job.continue_from} has done {step:,}: "
                "give more"
            )
        else:
            first_step = step  # another order and other masks than before
    if world_size > 1:
        settings = [recipe.to_dict(), intervals, micro_batch_size, job.max_validation_rows, last_step]
        fingerprints = [dataset.fingerprint, validation_set and validation_set.fingerprint]
        facts = {
            "recipe": distributed.digest_json(settings),
            "pretraining set": distributed.digest_json(fingerprints),
            "vocabulary": distributed.digest_json(dataset.vocabulary_sha256),
            "step": f"{step:,}",
            "weights": distributed.digest_weights(objective.state_dict()),
        }
        processes.start_together(facts, job.output, stop)
    loader = StepLoader(dataset, pieces, recipe, micro_batch_size, rank, world_size, first_step)
    run_info = {
        "identity": identity,
        "preset": job.preset,
        "data": {
            "folder": job.data,
            "objective": dataset.objective,
            "max_seq_length": dataset.max_seq_length,
            "rows": dataset.rows,
            "tokens": dataset.tokens,
        },
        "vocabulary": vocabulary,
        "first_step": first_step,
        "run": {
            "command": list(job.command),
            "world_size": world_size,
            "device": device.type,
            "threads": torch.get_num_threads(),
            "attention_kernel": kernels,
            "micro_batch_size": micro_batch_size,
            "library_versions": checkpoint.get_library_versions(),
        },
    }

    def save() -> None:
        """Write a checkpoint of the state above, as it is when this is called."""
        total_sums = _reduce_sums(sums, processes)
        state = {
            "model": objective.state_dict(),
            "optimiser": optimizer.state_dict(),
            "done": step,
            "first": first_step,
            "tokens": tokens_seen,
            "tally": {"sums": total_sums, "counts": counts._asdict(), "skipped": skipped_steps},
        }
        if recipe.precision == "float16":
            state["loss_scale"] = {"scale": scale, "finite_steps": finite_steps}

        def write_files(folder: str) -> None:
            model_folder = f"{folder}/{MODEL_FOLDER}"
            checkpoint.write_model(model_folder, objective, recipe, dataset, vocabulary, step, tokens_seen)
            with open(f"{folder}/{STATE_FILE}", "wb") as file:
                torch.save(state, file)
            files = checkpoint.digest_files(folder)
            saved = {**run_info, "files": files, "step": step, "tokens": tokens_seen, "saved": utc_now()}
            checkpoint.write_run_info(LocalStorage(), folder, saved)

        if is_main:
            checkpoint.save(storage, job.output, step, write_files, job.keep_checkpoints)
        processes.all_reduce([0.0])  # the others wait

    # The loop.
    run_log = None
    if is_main:
        if not latest:
            checkpoint.write_run_info(storage, job.output, {**run_info, "started_at": utc_now()})
        started_at = (checkpoint.read_run_info(job.output) or {}).get("started_at", "")
        shown = log.open_dashboards(dashboards, job.output, started_at, step, recipe.to_dict())
        run_log = RunLog(job.output, step, shown)
        stack.callback(run_log.close)
    for line in _describe_job(job, recipe, dataset):
        progress.write(line)
    progress.write(
        f"training on {device} in {recipe.precision}, with {kernels} attention"
        + f" and {threads}" * (device.type == "cpu")
    )
    bar = stack.enter_context(progress.bar("training", recipe.steps, " steps", initial=step))
    batches = stack.enter_context(contextlib.closing(prefetch(loader.load_step, range(step, last_step))))
    started = timer = time.perf_counter()
    waited_seconds, timed_tokens, non_finite_steps = 0.0, 0, 0
    while step < last_step:
        wait_started = time.perf_counter()
        micro_batches = next(batches)
        waited_seconds += time.perf_counter() - wait_started
        local_counts = [sum(column) for column in zip(*(counts for _, counts in micro_batches), strict=True)]
        is_stopped = stop.is_set() or processes.is_orphaned
        *reduced_counts, stop_requests = map(int, processes.all_reduce([*local_counts, is_stopped]))
        if stop_requests:
            save()
            raise KeyboardInterrupt
        step_counts = BatchCounts._make(reduced_counts)

        # The gradients, over this process's micro-batches.
        gradients.zero()
        trained.train()
        step_sums = dict[str, Tensor]()
        for index, (batch, _) in enumerate(micro_batches):
            torch.manual_seed(_make_dropout_seed(recipe.seed, step, rank * len(micro_batches) + index))
            with distributed.autocast(recipe.precision, device):
                micro_sums = forward(batch.to(device))
            torch.autograd.backward(trained.compute_loss(micro_sums, step_counts._asdict()) * scale)
            _add(step_sums, micro_sums)
        gradients.all_reduce()
        grad_norm = float(gradients.clip(recipe.grad_clip or math.inf, scale))

        # The update; a step whose gradients are not finite changes nothing.
        rate = learning_rate(recipe.schedule, step, recipe.steps, recipe.warmup_steps, recipe.learning_rate)
        mask_rate = recipe.mask_rate_at(step)
        step, tokens_seen = step + 1, tokens_seen + step_counts.tokens
        timed_tokens += step_counts.tokens
        bar.advance()
        if math.isfinite(grad_norm):
            optimizer.step(rate)
            _add(sums, step_sums)
            counts = BatchCounts._make(map(sum, zip(counts, step_counts, strict=True)))
            finite_steps, non_finite_steps = finite_steps + 1, 0
            if recipe.precision == "float16" and finite_steps == GROWTH_INTERVAL:
                scale, finite_steps = min(scale * 2, MAX_SCALE), 0
        else:
            skipped_steps += 1
            non_finite_steps += scale == 1  # others only find the scale of float16
            scale, finite_steps = max(scale / 2, 1.0), 0
            if non_finite_steps == MAX_NON_FINITE_STEPS:
                raise DivergedError(
                    f"training diverged: no finite gradient in {MAX_NON_FINITE_STEPS} consecutive steps up "
                    f"to step {step:,}. Start again with another --output and a lower --learning-rate, a "
                    "longer --warmup, or --precision float32"
                )

        # What is due.
        if step % intervals["log"] == 0 or step == recipe.steps:
            now, memory = time.perf_counter(), {}
            if device.type == "cuda":  # the peak of this process
                memory = {"device_memory_bytes": torch.cuda.max_memory_allocated(device)}
            entry = {
                "step": step,
                "split": "train",
                **_compute_metrics(objective, trained.losses, _reduce_sums(sums, processes), counts),
                "lr": rate,
                "mask_rate": mask_rate,
                "grad_norm": grad_norm,
                "skipped_steps": skipped_steps,
                **({"loss_scale": scale} if recipe.precision == "float16" else {}),
                "tokens_seen": tokens_seen,
                "epoch": loader.get_epoch(step),
                **memory,
                "tokens_per_second": timed_tokens / (now - timer),
                "data_wait_fraction": waited_seconds / (now - timer),
                "elapsed_seconds": now - started,
            }
            if run_log:
                run_log.write(entry)
                bar.advance(0, _format_progress(entry))
            sums, counts, skipped_steps = {}, BatchCounts(), 0
            timer, waited_seconds, timed_tokens = now, 0.0, 0
        pause_started = time.perf_counter()
        is_due = step % intervals["validate"] == 0 or step == recipe.steps
        if is_due and validation_set and validation_set.rows >= world_size:
            validation_loader = StepLoader(validation_set, pieces, recipe, micro_batch_size)
            num_rows = min(validation_set.rows, job.max_validation_rows)
            metrics = _validate(objective, validation_loader, num_rows, recipe.precision, processes, progress)
            if run_log:
                run_log.write({"step": step, "split": "validation", **metrics})
                progress.write(f"step {step:,}: validation {_format_losses(metrics['losses'])}")
        if step % intervals["save"] == 0 or step == last_step:
            save()
        timer += time.perf_counter() - pause_started

    if run_log is None:
        return ""
    if step < recipe.steps:
        return (
            f"stopped after step {step:,} of {recipe.steps:,}, as --stop-after says. Rerun the command with "
            f"another --stop-after, or without, to go on\n{_format_hint(job.output)}"
        )
    final_entry = run_log.find_last("train")
    shown_set = validation_set or dataset
    guesses = run_report.guess_masked_tokens(objective, shown_set, pieces, recipe, vocabulary, device)
    run_report.write_pages(job.output, recipe, shown_set, run_log.entries, guesses)
    seconds = time.perf_counter() - started
    checkpoint.write_run_manifest(storage, job.output, run_info, final_entry, seconds)
    return (
        f"{step:,} steps, {tokens_seen:,} tokens: {_format_losses(final_entry['losses'], ', ')}\n"
        f"{_format_learning(run_log)}{_format_hint(job.output)}\n"
        f"report:     {job.output}/report.html"
    )


def _resolve_recipe(job: TrainJob, dataset: PretrainingDataset, device: torch.device) -> TrainRecipe:
    """Return the recipe with its start, family and precision set, checked against the pretraining set.

    Raises:
        TrainingDataError: the set was built for another objective or length.
        InitialWeightsError: the run would continue itself.
        InvalidValueError: the start or the precision is not possible.
    """
    recipe = job.recipe
    if job.init_checkpoint and job.continue_from:
        raise InvalidValueError("--init-checkpoint and --continue-from exclude each other")
    if job.init_checkpoint:
        recipe = replace(recipe, start_from="checkpoint")
    elif job.continue_from:
        if os.path.realpath(job.continue_from) == os.path.realpath(job.output):
            raise InitialWeightsError(
                "--continue-from and --output are the same folder; rerun the command without --continue-from "
                "to resume it"
            )
        recipe = replace(recipe, start_from="run")
    elif recipe.start_from != "random":
        required_option = (
            "--init-checkpoint FOLDER, a Hugging Face checkpoint"
            if recipe.start_from == "checkpoint"
            else "--continue-from RUN"
        )
        raise InvalidValueError(
            f"this recipe starts from a {recipe.start_from}: give {required_option}, or --start-from "
            "random for random weights"
        )
    family: FamilyName = DEFAULT_FAMILIES[dataset.objective] if recipe.family == "auto" else recipe.family
    if dataset.objective not in FAMILIES[family].data_objectives:
        raise TrainingDataError(
            f"{job.data} was built with --objective {dataset.objective}, whose labels {family} cannot use. "
            f"Build a set with --objective {family}, or give --family {dataset.objective}"
        )
    if dataset.max_seq_length > recipe.max_positions:
        raise TrainingDataError(
            f"{job.data} has rows of up to {dataset.max_seq_length:,} tokens, more than --max-positions "
            f"{recipe.max_positions:,}. Raise it, or build a set with a lower --max-seq-length"
        )
    precision, asked_by = recipe.precision, "--precision"
    if precision == "auto":  # that of the run to resume, also on another device
        run_info = checkpoint.read_run_info(job.output)
        if run_info is None:
            precision = distributed.choose_precision(device)
        else:
            precision = run_info["identity"]["recipe"]["precision"]
            asked_by = f"{job.output} was started in"
    distributed.check_precision(precision, device, asked_by)
    return replace(recipe, family=family, precision=precision)


def _find_source(run: str, recipe: TrainRecipe, dataset: PretrainingDataset) -> str:
    """Return the latest checkpoint of the run to continue.

    Raises:
        InitialWeightsError: it has none, or its model, optimizer or vocabulary differs.
    """
    run_info, latest = checkpoint.read_run_info(run), checkpoint.find_latest(run)
    if run_info is None or latest is None:
        raise InitialWeightsError(
            f"--continue-from {run} has no checkpoint: give the --output of a training run"
        )
    source_recipe, own_recipe = run_info["identity"]["recipe"], recipe.to_dict()
    differences = [
        f"{option_from_field(name)} {source_recipe[name]}"
        for name in _FIXED_FIELDS
        if source_recipe[name] != own_recipe[name]
    ]
    if run_info["identity"]["vocabulary_sha256"] != dataset.vocabulary_sha256:
        differences.append("another vocabulary")
    if differences:
        raise InitialWeightsError(
            f"--continue-from {run}: that run has another model: {', '.join(differences)}"
        )
    return latest


def _resolve_intervals(job: TrainJob) -> dict[str, int]:
    """Return the steps between log lines, checkpoints and validations, and check the other numbers."""
    for name in (
        *("log_every", "save_every", "validate_every", "keep_checkpoints", "max_validation_rows"),
        *("stop_after", "threads"),
    ):
        value = getattr(job, name)
        if value is not None and value < 1:
            raise InvalidValueError(f"{option_from_field(name)} {value} is below 1")
    steps = job.recipe.steps
    default_interval = max(_MIN_SAVE_INTERVAL, steps // _DEFAULT_CHECKPOINTS)
    return {
        "log": job.log_every or min(max(10, steps // 200), 100),
        "save": job.save_every or default_interval,
        "validate": job.validate_every or default_interval,
    }


def _describe_job(job: TrainJob, recipe: TrainRecipe, dataset: PretrainingDataset) -> Iterator[str]:
    """Yield a line for everything in which the run differs from what the preset says."""
    yield from describe_set_differences(job.preset, dataset.objective, dataset.max_seq_length)
    if line := describe_warmup(recipe.requested_warmup_steps, recipe.steps):
        yield line
    if job.preset in STAGE_STEPS and not job.continue_from and recipe.steps == STAGE_STEPS[job.preset]:
        yield (
            f"--preset {job.preset} is a second stage: without --continue-from the run has the "
            f"{recipe.steps:,} steps of that stage alone"
        )


def _add(totals: dict[str, Tensor], sums: Mapping[str, Tensor]) -> None:
    """Add sums to totals, float64[] on the device, without waiting for it."""
    for name, value in sums.items():
        totals[name] = totals.get(name, 0) + value.detach().double()


def _reduce_sums(sums: Mapping[str, Tensor], processes: ProcessGroup) -> dict[str, float]:
    """Return the sums of all processes; empty in all of them if every step was skipped."""
    names = sorted(sums)
    values = torch.stack([sums[name] for name in names]).tolist() if names else []
    return dict(zip(names, processes.all_reduce(values), strict=True))


def _compute_metrics(
    objective: Objective,
    loss_weights: Mapping[str, tuple[float, str]],
    sums: Mapping[str, float],
    counts: BatchCounts,
) -> dict[str, Any]:
    """Compute losses and metrics over all processes; losses are NaN if all steps were skipped."""
    if not counts.rows:
        return {"loss": math.nan, "losses": dict.fromkeys(loss_weights, math.nan), "metrics": {}}
    denominators = counts._asdict()
    losses = {name: sums[name] / max(1, denominators[count]) for name, (_, count) in loss_weights.items()}
    return {
        "loss": sum(weight * losses[name] for name, (weight, _) in loss_weights.items()),
        "losses": losses,
        "metrics": objective.compute_metrics(sums, denominators),
    }


def _validate(
    objective: Objective,
    loader: StepLoader,
    num_rows: int,
    precision: str,
    processes: ProcessGroup,
    progress: Progress,
) -> dict[str, Any]:
    """Compute losses and metrics of the first rows, shared among all processes and without dropout."""
    objective.eval()
    sums, counts, size = dict[str, Tensor](), BatchCounts(), loader.micro_batch_size
    start, end = (
        num_rows * number // processes.world_size for number in (processes.rank, processes.rank + 1)
    )
    with (
        progress.bar("validating", unit=" batches", is_transient=True) as bar,
        torch.no_grad(),
        distributed.autocast(precision, processes.device),
    ):
        for first in bar.each(range(start, end, size)):
            batch, batch_counts = loader.load_sequential(first, min(size, end - first))
            _add(sums, objective(batch.to(processes.device)))
            counts = BatchCounts._make(map(sum, zip(counts, batch_counts, strict=True)))
    total_counts = BatchCounts._make(map(int, processes.all_reduce(counts)))
    return _compute_metrics(objective, objective.losses, _reduce_sums(sums, processes), total_counts)


def _make_dropout_seed(seed: int, step: int, index: int) -> int:
    """Return the dropout seed of a micro-batch; ``index`` counts the micro-batches of all processes."""
    return int(np.random.SeedSequence([seed, step, index]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _format_losses(losses: Mapping[str, float | None], separator: str = " ") -> str:
    return separator.join(f"{name} {value:.3f}" for name, value in losses.items() if value is not None)


def _format_progress(entry: Mapping[str, Any]) -> str:
    memory = ""
    if "device_memory_bytes" in entry:
        memory = f", {entry['device_memory_bytes'] / 1e9:.1f} GB"
    return (
        f"{_format_losses(entry['losses'])}, {entry['tokens_per_second']:,.0f} tokens/s{memory}, "
        f"data wait {entry['data_wait_fraction']:.1%}"
    )


def _format_learning(run_log: RunLog) -> str:
    """Return a line with accuracy and baseline of hidden tokens, of validation rows if there are any."""
    entry = run_log.find_last("validation") or run_log.find_last("train")
    metrics = entry.get("metrics", {})
    if metrics.get("mlm_accuracy") is None:
        return ""
    return (
        f"{entry['split']}: {metrics['mlm_accuracy']:.1%} of the hidden tokens predicted; "
        f"chance, always the most frequent token: {metrics['mlm_baseline']:.1%}\n"
    )


def _format_hint(run: str) -> str:
    folder = f"{checkpoint.find_latest(run)}/{MODEL_FOLDER}"
    return (
        f"checkpoint: {folder}\n"
        f'load it:    transformers.AutoModel.from_pretrained("{folder}"), or AutoTokenizer, '
        "AutoModelForTokenClassification ..."
    )
