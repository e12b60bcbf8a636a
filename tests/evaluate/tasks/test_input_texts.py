"""``evaluate texts``: the benchmarks' texts as a model reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bioshards.evaluate.__main__ import main
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.records import LabelledText, Mention, Question, Relation
from bioshards.evaluate.recipes import SUITES
from bioshards.evaluate.tasks.input_texts import list_texts
from bioshards.vocab.report.vocabulary_report import PUBLISHED_LENGTHS, load_benchmark_texts
from tests.support.paths import BENCHMARK_SAMPLE


def test_texts_of_records_are_those_that_a_model_reads() -> None:
    relation = Relation("1", "Aspirin and codeine.", Mention(0, 7, "DRUG"), Mention(12, 19, "DRUG"), "none")
    assert list_texts(relation) == ("@DRUG$ and @DRUG$.",)
    assert list_texts(LabelledText("1", "A", "yes", text_pair="B")) == ("A", "B")
    assert list_texts(Question("1", "Why?", "Since.", (), "1")) == ("Why?", "Since.")


def test_sample_is_written_for_the_report_of_a_vocabulary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "texts"
    assert main(["texts", str(BENCHMARK_SAMPLE), "--output", str(output)]) == 0
    assert f"texts: {output}" in capsys.readouterr().out
    texts = load_benchmark_texts(str(output))
    assert set(SUITES["blurb"]) <= set(texts) <= set(BENCHMARKS)
    assert set(PUBLISHED_LENGTHS) <= set(BENCHMARKS)
    for name, size in (("gad", 1), ("pubmedqa", 2), ("biosses", 2)):
        assert {len(model_input) for model_input in texts[name]} == {size}
    first = json.loads((output / "ddi.jsonl").read_text().splitlines()[0])
    assert "@DRUG" in first[0]


def test_directory_without_benchmarks_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["texts", str(tmp_path), "--output", str(tmp_path / "texts")]) == 2
    assert "has no benchmark" in capsys.readouterr().err
    assert not (tmp_path / "texts").exists()
