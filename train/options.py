"""The options of the training command, without slow imports: ``--help`` answers at once."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Annotated

from bioshards.corpus.ui.options import Argument, Option, Overrides
from bioshards.train.presets import PRESETS, STAGE_STEPS
from bioshards.train.recipe import TrainRecipe

_run_option = functools.partial(Option, group="run options")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJob:
    """The options of the training command.

    Attributes:
        recipe: the recipe that the options ask for; see :meth:`make_recipe`.
        command: the command line, for run.json.
    """

    data: Annotated[str, Argument("finished output of shards_to_pretraining", metavar="DATA")]
    output: Annotated[str, Option("folder of the run", metavar="RUN")]
    vocab: Annotated[
        str | None, Option("vocabulary of the pretraining set, if it was moved", metavar="FOLDER")
    ] = None
    preset: Annotated[str, Option("recipe; --config and options override it", choices=tuple(PRESETS))] = (
        "tiny"
    )
    config: Annotated[
        str | None, Option("TOML file of recipe fields: lines of NAME = VALUE", metavar="FILE.toml")
    ] = None
    init_checkpoint: Annotated[
        str | None, Option("Hugging Face checkpoint with the initial weights", metavar="FOLDER")
    ] = None
    continue_from: Annotated[
        str | None,
        Option("run to continue on this data, with its weights, optimizer state and step", metavar="RUN"),
    ] = None
    device: Annotated[str | None, _run_option("cpu, cuda or cuda:1 (default: a GPU if available)")] = None
    threads: Annotated[
        int | None, _run_option("threads of a process on a CPU (default: its share of the physical cores)")
    ] = None
    micro_batch_size: Annotated[
        int | None, _run_option("maximum rows in a forward pass (default: by memory)")
    ] = None
    stop_after: Annotated[
        int | None,
        _run_option("stop with a checkpoint after this step of a longer schedule, which stays as it is"),
    ] = None
    log_every: Annotated[
        int | None, _run_option("steps between lines in log.jsonl (default: by --steps)")
    ] = None
    save_every: Annotated[int | None, _run_option("steps between checkpoints (default: by --steps)")] = None
    validate_every: Annotated[int | None, _run_option("steps between validations (default: by --steps)")] = (
        None
    )
    max_validation_rows: Annotated[int, _run_option("maximum rows to validate on (default: %(default)s)")] = (
        1024
    )
    keep_checkpoints: Annotated[int, _run_option("checkpoints to keep (default: %(default)s)")] = 3
    tensorboard: Annotated[bool, _run_option("write event files for TensorBoard to RUN/tensorboard")] = False
    wandb: Annotated[bool, _run_option("send the log's entries to Weights & Biases")] = False
    no_verify: Annotated[bool, _run_option("do not verify the SHA-256 of the shards before a new run")] = (
        False
    )
    changes: Annotated[
        Overrides[TrainRecipe], Option(" (default: %(default)s)", group="recipe (defaults: those of tiny)")
    ]
    recipe: TrainRecipe = field(default_factory=TrainRecipe)
    command: tuple[str, ...] = ()

    def make_recipe(self) -> TrainRecipe:
        """Return the preset, changed by --config and the options.

        A second stage that does not continue a run has the steps of that stage alone.

        Raises:
            InvalidValueError: a value is invalid, or --config cannot be read.
        """
        changes, preset = self.changes.with_config(self.config, TrainRecipe), PRESETS[self.preset]
        starts_anew = self.init_checkpoint or changes.values.get("start_from", "run") != "run"
        if self.preset in STAGE_STEPS and starts_anew and not self.continue_from:
            preset = replace(preset, steps=STAGE_STEPS[self.preset])
        return changes.apply(preset)
