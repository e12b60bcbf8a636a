"""Configuration of an output directory: the same one is accepted, another is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage


@pytest.mark.parametrize(
    ("years", "published"),
    [([], []), ([2000, 9999], ["2000", ""]), ([0, 2019], ["", "2019"]), ([2001, 2001], ["2001", "2001"])],
)
def test_years_of_an_older_output_are_dates_of_publication(
    tmp_path: Path, years: list[int], published: list[str]
) -> None:
    storage, output = LocalStorage(), OutputDir(str(tmp_path))

    def make_config(**filters: Any) -> dict[str, Any]:
        return {"pipeline": "pubmed_to_shards", "format": 7, "document_config": {"min_words": 5, **filters}}

    output_layout.mark_started(storage, output, make_config(years=years))
    output_layout.check_config(storage, output, make_config(published=published))
    with pytest.raises(
        OutputMismatchError, match=r"has another configuration: published was .*, now \['1999'"
    ):
        output_layout.check_config(storage, output, make_config(published=["1999", "1999"]))


def test_option_that_this_version_has_no_more_is_named(tmp_path: Path) -> None:
    storage, output = LocalStorage(), OutputDir(str(tmp_path))
    config = {"pipeline": "shards_to_pretraining", "format": 7, "seed": 0}
    output_layout.mark_started(storage, output, {**config, "shuffle": "global"})
    message = (
        "shuffle was 'global', and this version of bioshards has no such option. Choose another --output"
    )
    with pytest.raises(OutputMismatchError, match=message):
        output_layout.check_config(storage, output, config)
