"""The options of the training command, without slow imports: ``--help`` answers at once."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Annotated

from bioshards.corpus.ui.options import Argument, Option, Overrides
from bioshards.train.config.model_presets import PRESETS
from bioshards.train.config.recipe import TrainRecipe

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
        Option(
            "run to continue on this data, with its weights, optimizer state and step",
            metavar="RUN",
        ),
    ] = None
    device: Annotated[str | None, _run_option("cpu, cuda or cuda:1 (default: a GPU if available)")] = None
    micro_batch_size: Annotated[
        int | None, _run_option("maximum rows in a forward pass (default: by memory)")
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

    @property
    def dashboards(self) -> list[str]:
        """Names of the dashboards that show the log."""
        return [name for name, is_on in (("tensorboard", self.tensorboard), ("wandb", self.wandb)) if is_on]

    def make_recipe(self) -> TrainRecipe:
        """Return the preset, changed by --config and the options.

        Raises:
            InvalidValueError: a value is invalid, or --config cannot be read.
        """
        return self.changes.with_config(self.config, TrainRecipe).apply(PRESETS[self.preset])
