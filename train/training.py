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
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import utc_now

from . import checkpoint, flops, models, processes, runs, shards, tokenizer
from .batch import Batch, Counts
from .checkpoint import MODEL, STATE
from .job import Job, Plan, plan
from .log import Log
from .loop import Cost, Loop
from .processes import Processes
from .shards import Shards
from .steps import Steps
from .trainer import Tally, Trainer

# Ours is the one live line.
transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def train(job: Job, say: Callable[[str], None], stop: Event) -> str:
    """Train, or go on, until the last step; returns what the first process is to tell.

    Args:
        say: is told how far it is.
        stop: set from elsewhere when the run is to end after the step that it is in.

    Raises:
        TrainingDataError, VocabularyError, InitialWeightsError, OutputMismatchError, ValueError: what is
            asked for cannot be done.
        KeyboardInterrupt, DivergedError, CheckpointError: see loop.py and checkpoint.py.
    """
    us = processes.start(job.device)
    planned = plan(job, us)
    if us.first:
        with runs.opened(job.out):
            runs.same(job.out, planned.identity)
            said = _Run(job, planned, us, say).train(stop)
    else:
        _Run(job, planned, us, _silent).train(stop)
        said = ""
    us.close()  # not after an error: it would wait for processes that wait for this one
    return said


def _silent(_line: str) -> None:
    """What the processes but the first say."""


@dataclass(frozen=True, slots=True)
class _Run:
    job: Job
    plan: Plan
    us: Processes
    say: Callable[[str], None]

    def train(self, stop: Event) -> str:
        job, us = self.job, self.us
        if os.path.exists(f"{job.out}/{runs.MANIFEST}"):
            return f"{job.out} is finished: there is nothing to do\n{self._how_to_load()}"
        resumed = checkpoint.last(job.out)
        us.wait()  # nobody writes before all have looked
        if resumed is None and us.first and job.verify:
            for split in (self.plan.shards, self._held_out()):
                if split is not None:
                    split.verify(self.say)
        trainer = self._trainer(resumed)
        state = self._state(trainer, resumed)
        if resumed is None and us.first:
            LocalFiles().write_json(f"{job.out}/{runs.ABOUT}", {**self._about(state), "begun": utc_now()})
        log = Log(job.out, state["done"]) if us.first else None
        loop = self._loop(trainer, state, log, stop)
        began = time.monotonic()
        loop.run()
        if log is None:
            return ""
        log.close()
        runs.finish(job.out, self._about(state), log.last, time.monotonic() - began)
        return self._told(loop, log.last)

    def _trainer(self, resumed: str | None) -> Trainer:
        recipe, init = self.plan.recipe, self.job.init
        if init and resumed:  # its configuration, and no need for the folder any more
            init = f"{resumed}/{MODEL}"
        torch.manual_seed(recipe.seed)
        pieces = tokenizer.pieces(self.plan.vocabulary) if init else None
        objective = models.build(recipe.shape, self.plan.shards, init, pieces)
        return Trainer(objective.to(self.us.device), recipe, self.us, self.plan.dealt.accumulate)

    def _state(self, trainer: Trainer, resumed: str | None) -> dict[str, Any]:
        """Where the run is: what its loop had said of itself, and ``first``, the step at which this set
        began; the trainer is taken there."""
        found = resumed or self.plan.origin
        if found is None:
            return {"done": 0, "first": 0, "tokens": 0, "tally": None}
        state = checkpoint.load(found, self.us.device)
        try:
            trainer.load(state)
        except ValueError as error:
            raise InvalidValueError(f"{found}/{STATE} cannot be gone on with: {error}") from error
        if resumed:
            return {name: state[name] for name in ("done", "first", "tokens", "tally")}
        first = state["done"]
        if first >= self.plan.recipe.steps:
            raise InvalidValueError(
                f"--steps {self.plan.recipe.steps:,} are all, and {self.job.continued} has done {first:,} "
                "of them already: give more"
            )
        return {"done": first, "first": first, "tokens": state["tokens"], "tally": None}

    def _about(self, state: dict[str, Any]) -> dict[str, Any]:
        """What run.json and every checkpoint say."""
        data = self.plan.shards
        return {
            "identity": self.plan.identity,
            "preset": self.job.preset,
            "data": {
                "folder": os.path.abspath(self.job.data),
                "objective": data.objective,
                "length": data.length,
                "rows": data.rows,
                "tokens": data.tokens,
            },
            "vocabulary": os.path.abspath(self.plan.vocabulary),
            "first_step": state["first"],
            "run": {
                "command": list(self.job.command),
                "processes": self.us.world,
                "device": str(self.us.device.type),
                "micro_batch": self.plan.dealt.micro,
                "versions": runs.versions(),
            },
        }

    def _loop(self, trainer: Trainer, state: dict[str, Any], log: Log | None, stop: Event) -> Loop:
        us, recipe = self.us, self.plan.recipe
        steps = self._steps(self.plan.shards, state["first"])

        def save(now: dict[str, Any]) -> None:
            if us.first:
                where = {**now, "first": state["first"]}
                checkpoint.save(
                    self.job.out,
                    now["done"],
                    lambda folder: self._write(folder, trainer, where),
                    self.job.keep,
                )
            us.wait()

        tally = Tally()
        if state["tally"]:
            tally.load(state["tally"], us)

        cost = Cost(
            lambda counts: flops.step(trainer.trained, Counts(**counts)),
            us.world * flops.peak(us.device, getattr(torch, recipe.precision)),
        )
        return Loop(
            trainer=trainer,
            steps=steps,
            validation=self._validation(),
            recipe=recipe,
            processes=us,
            every=self.plan.every,
            cost=cost,
            log=log,
            say=self.say,
            save=save,
            stop=stop,
            done=state["done"],
            tokens=state["tokens"],
            tally=tally,
        )

    def _steps(self, rows: Shards, first: int = 0) -> Steps:
        return Steps(
            *(rows, self.plan.pieces, self.plan.recipe, self.plan.dealt),
            rank=self.us.rank,
            first=first,
        )

    def _held_out(self) -> Shards | None:
        """The validation split, if there is one."""
        return None if shards.empty(self.job.data, "validation") else Shards(self.job.data, "validation")

    def _validation(self) -> Callable[[], Iterator[tuple[Batch, Counts]]] | None:
        """This process's part of the validation split, if there is one."""
        held_out = self._held_out()
        if held_out is None:
            return None
        rows = min(held_out.rows, self.job.validation_rows)
        steps, micro, us = self._steps(held_out), self.plan.dealt.micro, self.us
        begin, end = (rows * rank // us.world for rank in (us.rank, us.rank + 1))

        def batches() -> Iterator[tuple[Batch, Counts]]:
            for start in range(begin, end, micro):
                yield steps.in_order(start, min(micro, end - start))

        return batches if rows >= us.world else None

    def _write(self, folder: str, trainer: Trainer, state: dict[str, Any]) -> None:
        """The files of a checkpoint."""
        hf = f"{folder}/{MODEL}"
        trainer.objective.save(hf)
        tokenizer.copy(self.plan.vocabulary, hf, self.plan.recipe.positions)
        with open(f"{folder}/{STATE}", "wb") as file:
            torch.save({**trainer.state(), **state}, file)
        said = {**self._about(state), "step": state["done"], "tokens": state["tokens"], "saved": utc_now()}
        LocalFiles().write_json(f"{folder}/{runs.ABOUT}", said)

    def _told(self, loop: Loop, last: dict[str, Any]) -> str:
        known = {name: value for name, value in last.get("losses", {}).items() if value is not None}
        losses = ", ".join(f"{name} {value:.3f}" for name, value in known.items())
        return (
            f"{loop.done:,} steps, {loop.tokens:,} tokens: {losses}\n{self._how_to_load()}\n"
            f"curves:     python -m bioshards.train plot {self.job.out}"
        )

    def _how_to_load(self) -> str:
        folder = f"{checkpoint.last(self.job.out)}/{MODEL}"
        return (
            f"checkpoint: {folder}\n"
            f'load it:    transformers.AutoModel.from_pretrained("{folder}"), AutoTokenizer, '
            "AutoModelForTokenClassification ... too"
        )
