"""The tokenizer's files in a checkpoint, so that ``AutoTokenizer`` finds them beside the model."""

from __future__ import annotations

import json
import os
import shutil
from typing import Final

from tokenizers import Tokenizer

FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
"""What vocab/ writes of a tokenizer, but for its settings."""
SETTINGS: Final = "tokenizer_config.json"


def copy(vocabulary: str, folder: str, positions: int) -> None:
    """Copy the tokenizer of a vocabulary's folder, for a model of so many positions."""
    for name in FILES:
        if os.path.exists(f"{vocabulary}/{name}"):
            shutil.copyfile(f"{vocabulary}/{name}", f"{folder}/{name}")
    with open(f"{vocabulary}/{SETTINGS}", encoding="utf-8") as file:
        settings = json.load(file)
    with open(f"{folder}/{SETTINGS}", "w", encoding="utf-8") as file:
        json.dump({**settings, "model_max_length": positions}, file, indent=2, ensure_ascii=False)


def pieces(vocabulary: str) -> dict[str, int]:
    """The ids of a vocabulary's folder, by their pieces."""
    found: dict[str, int] = Tokenizer.from_file(f"{vocabulary}/{FILES[0]}").get_vocab()
    return found
