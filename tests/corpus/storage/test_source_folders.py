"""Inputs that are folders of another kind are named as what they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.errors import InputNotFoundError
from bioshards.corpus.jats import inputs
from bioshards.corpus.pubmed import discovery
from bioshards.corpus.storage.local_storage import LocalStorage

FILES = LocalStorage()


@pytest.mark.parametrize("discover", [discovery.discover_sources, inputs.discover])
def test_output_given_as_an_input_is_recognised(tmp_path: Path, discover: Callable[..., Any]) -> None:
    with pytest.raises(InputNotFoundError) as error:
        discover(FILES, [str(tmp_path)])
    assert "an output of bioshards" not in str(error.value)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(InputNotFoundError, match=r"It is an output of bioshards, .*: give the files"):
        discover(FILES, [f"{tmp_path}/"])
