"""Tokenizer files of a checkpoint, for ``AutoTokenizer.from_pretrained``."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Final

from tokenizers import Tokenizer

from bioshards.train.data.piece_table import VocabularyError

FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
"""Tokenizer files of a vocabulary, except its configuration; a vocabulary has some of them."""
CONFIG_FILE: Final = "tokenizer_config.json"


def copy_to(vocabulary: str, folder: str, max_positions: int) -> None:
    """Copy the tokenizer of a vocabulary into a folder and set its ``model_max_length``."""
    for name in FILES:
        if os.path.exists(f"{vocabulary}/{name}"):
            shutil.copyfile(f"{vocabulary}/{name}", f"{folder}/{name}")
    config = read_config(vocabulary)
    with open(f"{folder}/{CONFIG_FILE}", "w", encoding="utf-8") as file:
        json.dump({**config, "model_max_length": max_positions}, file, indent=2, ensure_ascii=False)


def read_config(vocabulary: str) -> dict[str, Any]:
    """Read the tokenizer_config.json of a vocabulary.

    Raises:
        VocabularyError: it is missing or damaged.
    """
    path = f"{vocabulary}/{CONFIG_FILE}"
    try:
        with open(path, encoding="utf-8") as file:
            config: dict[str, Any] = {**json.load(file)}
    except (OSError, ValueError, TypeError) as error:
        raise VocabularyError(
            f"{path} is missing or damaged ({error}). Give --vocab FOLDER, a vocabulary written by "
            "python -m bioshards.vocab"
        ) from error
    return config


def read_vocabulary(vocabulary: str) -> dict[str, int]:
    """Read the ids of a vocabulary by piece."""
    token_ids: dict[str, int] = Tokenizer.from_file(f"{vocabulary}/{FILES[0]}").get_vocab()
    return token_ids
