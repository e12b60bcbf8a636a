"""Tokenizer files of a checkpoint, for ``AutoTokenizer.from_pretrained``."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from typing import Any, Final

from tokenizers import Tokenizer

from bioshards.train.data.piece_table import VocabularyError
from bioshards.train.models.factory import InitialWeightsError

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


def check_spiece_model(vocabulary: str, checkpoint: str) -> None:
    """Check that a checkpoint whose only tokenizer file is a spiece.model has that of the vocabulary.

    Raises:
        InitialWeightsError: it is another one.
    """
    own, other = (f"{folder}/spiece.model" for folder in (vocabulary, checkpoint))
    if os.path.exists(f"{checkpoint}/{FILES[0]}") or not (os.path.exists(own) and os.path.exists(other)):
        return
    if not filecmp.cmp(own, other, shallow=False):
        raise InitialWeightsError(
            f"{other} is not the model of the pretraining set's vocabulary. Make it yours (python -m "
            f"bioshards.vocab adopt {checkpoint}) and build the set with it, or give another folder"
        )


def read_vocabulary(vocabulary: str) -> dict[str, int]:
    """Read the ids of a vocabulary by piece."""
    token_ids: dict[str, int] = Tokenizer.from_file(f"{vocabulary}/{FILES[0]}").get_vocab()
    return token_ids
