"""The tokenizer's files in a checkpoint, so that ``AutoTokenizer`` finds them beside the model."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Final

from tokenizers import Tokenizer

from .pieces import VocabularyError

FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
"""What vocab/ writes of a tokenizer, but for its settings."""
SETTINGS: Final = "tokenizer_config.json"


def copy(vocabulary: str, folder: str, positions: int) -> None:
    """Copy the tokenizer of a vocabulary's folder, for a model of so many positions."""
    for name in FILES:
        if os.path.exists(f"{vocabulary}/{name}"):
            shutil.copyfile(f"{vocabulary}/{name}", f"{folder}/{name}")
    found = settings(vocabulary)
    with open(f"{folder}/{SETTINGS}", "w", encoding="utf-8") as file:
        json.dump({**found, "model_max_length": positions}, file, indent=2, ensure_ascii=False)


def settings(vocabulary: str) -> dict[str, Any]:
    """What a vocabulary's folder says of its tokenizer.

    Raises:
        VocabularyError: nothing that can be read.
    """
    path = f"{vocabulary}/{SETTINGS}"
    try:
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = {**json.load(file)}
    except (OSError, ValueError, TypeError) as error:
        raise VocabularyError(
            f"{path} is missing or damaged ({error}), and the model's tokenizer would not load: give --vocab "
            "FOLDER, one that python -m bioshards.vocab wrote"
        ) from error
    return found


def pieces(vocabulary: str) -> dict[str, int]:
    """The ids of a vocabulary's folder, by their pieces."""
    found: dict[str, int] = Tokenizer.from_file(f"{vocabulary}/{FILES[0]}").get_vocab()
    return found
