"""The tokenizer's files in a checkpoint, so that ``AutoTokenizer`` finds them beside the model."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Final

from tokenizers import Tokenizer

from bioshards.train.data.piece_table import VocabularyError

FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
"""What vocab/ writes of a tokenizer, but for its settings."""
CONFIG_FILE: Final = "tokenizer_config.json"


def copy_to(vocabulary: str, folder: str, max_positions: int) -> None:
    """Copy the tokenizer of a vocabulary's folder, for a model of so many positions."""
    for name in FILES:
        if os.path.exists(f"{vocabulary}/{name}"):
            shutil.copyfile(f"{vocabulary}/{name}", f"{folder}/{name}")
    config = read_config(vocabulary)
    with open(f"{folder}/{CONFIG_FILE}", "w", encoding="utf-8") as file:
        json.dump({**config, "model_max_length": max_positions}, file, indent=2, ensure_ascii=False)


def read_config(vocabulary: str) -> dict[str, Any]:
    """What a vocabulary's folder says of its tokenizer.

    Raises:
        VocabularyError: nothing that can be read.
    """
    path = f"{vocabulary}/{CONFIG_FILE}"
    try:
        with open(path, encoding="utf-8") as file:
            config: dict[str, Any] = {**json.load(file)}
    except (OSError, ValueError, TypeError) as error:
        raise VocabularyError(
            f"{path} is missing or damaged ({error}), and the model's tokenizer would not load: give --vocab "
            "FOLDER, one that python -m bioshards.vocab wrote"
        ) from error
    return config


def read_vocabulary(vocabulary: str) -> dict[str, int]:
    """The ids of a vocabulary's folder, by their pieces."""
    token_ids: dict[str, int] = Tokenizer.from_file(f"{vocabulary}/{FILES[0]}").get_vocab()
    return token_ids
