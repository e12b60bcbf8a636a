"""Training plots: several families, damaged logs, reproducible bytes and escaping."""

from __future__ import annotations

import html
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import lxml.html
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.plot import plot
from bioshards.train.plot.curves import NoLogsError, read_logs, smooth
from bioshards.train.plot.panels import format_title, format_value, select_panels

ELECTRA = {
    "losses": {"mlm": 6.0, "rtd": 0.2},
    "metrics": {"mlm_accuracy": 0.2, "rtd_accuracy": 0.9, "replaced": 0.1, "replaced_entropy": 0.33},
}
BERT = {
    "losses": {"mlm": 5.0, "nsp": 0.6},
    "metrics": {"mlm_accuracy": 0.3, "mlm_baseline": 0.06, "nsp_accuracy": 0.7},
}


REST = {"grad_norm": 1.5, "tokens_seen": 1000, "tokens_per_second": 1234.5, "mfu": None}


def make_entry(step: int, split: str = "train", **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"step": step, "split": split, "loss": 20.0 / (1 + step)}
    if split == "train":
        entry |= {"lr": 5e-4}
    return entry | more


def write_run(folder: Path, lines: Iterable[dict[str, Any] | str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    texts = [entry if isinstance(entry, str) else json.dumps(entry) + "\n" for entry in lines]
    (folder / "log.jsonl").write_text("".join(texts))
    return str(folder)


def make_entries(steps: int, **more: Any) -> list[dict[str, Any]]:
    return [
        make_entry(step, split, **more) for step in range(1, steps + 1) for split in ("train", "validation")
    ]


def list_titles(page: str) -> list[str]:
    """Return the texts of the SVG picture."""
    return [html.unescape(title) for title in re.findall(r"<text [^>]*>([^<]*)</text>", page)]


def parse_html(page: str) -> Any:
    return lxml.html.document_fromstring(page)


@pytest.mark.thorough
def test_runs_of_different_families_share_a_plot(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / "electra", make_entries(5, **ELECTRA, **REST)),
        write_run(tmp_path / "bert", make_entries(4, **BERT, **REST)),
    ]
    picture, page = plot(folders, str(tmp_path / "out" / "curves.svg"))
    assert [os.path.basename(path) for path in (picture, page)] == ["curves.svg", "curves.html"]
    page_text = Path(page).read_text()
    assert list_titles(page_text) == list_titles(Path(picture).read_text())
    assert {
        *("electra", "bert", "training", "validation", "baseline: frequencies alone", "step"),
        *("loss (weighted sum)", "loss: MLM", "loss: RTD", "loss: NSP", "MLM accuracy"),
        *("RTD accuracy", "NSP accuracy", "tokens replaced", "learning rate", "tokens per second"),
        *("gradient norm before clipping", "nats"),
    } <= set(list_titles(page_text))
    assert "replaced entropy" not in list_titles(page_text)
    tree = parse_html(page_text)
    training, validation = tree.xpath("//table")
    assert training.xpath("thead//th//text()") == ["electra", "bert"]
    cells = {row.findtext("th"): row.xpath("td//text()") for row in training.iter("tr")}
    assert cells["step"] == ["5", "4"]
    assert cells["loss: NSP"] == ["–", "0.6"]
    assert cells["RTD accuracy"] == ["90 %", "–"]
    assert cells["tokens per second"] == ["1,234", "1,234"]
    assert cells["model FLOP/s utilisation"] == ["–", "–"]
    assert cells["learning rate"] == ["0.0005", "0.0005"]
    assert "learning rate" not in {row.findtext("th") for row in validation.iter("tr")}


@pytest.mark.parametrize("out", ["curves", "curves.svg", "curves.html"])
def test_output_name_may_have_either_extension_or_none(tmp_path: Path, out: str) -> None:
    folder = write_run(tmp_path / "one", make_entries(2))
    files = plot([folder], str(tmp_path / out))
    assert files == [str(tmp_path / "curves.svg"), str(tmp_path / "curves.html")]
    assert sorted(os.listdir(tmp_path)) == ["curves.html", "curves.svg", "one"]


def test_the_same_logs_give_the_same_bytes(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", make_entries(3))
    script = "import sys; from bioshards.train.plot import plot; plot(sys.argv[1:2], sys.argv[2])"
    first = plot([folder], str(tmp_path / "first"))
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", script, folder, str(tmp_path / "second")]
    subprocess.run(command, check=True, env=environment, timeout=120)
    for path in first:
        other_path = path.replace("first", "second")
        assert Path(path).read_bytes() == Path(other_path).read_bytes()


def test_page_has_no_external_resources_and_no_fixed_text_colours(tmp_path: Path) -> None:
    _, page = plot([write_run(tmp_path / "one", make_entries(3, **ELECTRA))], str(tmp_path / "curves"))
    page_text = Path(page).read_text()
    assert "default-src 'none'" in page_text
    tree = parse_html(page_text)
    assert not tree.xpath("//script | //link | //img | //image | //iframe | //object | //metadata")
    for element in tree.iter():
        for name, value in element.attrib.items():
            if name.endswith(("href", "src")):
                assert value.startswith("#"), value
            elif not name.startswith("xmlns"):
                assert "//" not in value
                assert not re.search(r"url\((?!#)", value), value
    assert "<?xml" not in page_text
    # No colour is fixed, so that text and lines are visible on a dark page.
    svg = page_text[page_text.index("<svg") : page_text.rindex("</svg>")]
    assert "var(--line)" in svg
    assert 'fill="currentColor"' in svg
    assert not re.findall("#[0-9a-f]{3}", svg)
    assert not tree.xpath("//text/@fill")


HOSTILE = ["<script>x</script>", "$\\frac{", "_hidden", "a&b;", "\u202egnp", "x" * 150, 'q"uote', "]]>"]


def test_names_of_runs_and_metrics_are_escaped(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name.replace("/", "|"), make_entries(2)) for name in HOSTILE]
    unusual_entry = make_entry(3, losses={"<b>$x": 1.0}, metrics={"</svg>": 2.0}, more="<i>")
    folders.append(write_run(tmp_path / "odd", [unusual_entry]))
    picture, page = plot(folders, str(tmp_path / "curves"))
    page_text = Path(page).read_text()
    tree = parse_html(page_text)
    assert not tree.xpath("//script | //b | //i")
    assert page_text.count("</svg>") == 5  # the legend and four metrics
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    header = [cell.text_content() for cell in tree.xpath("//table[1]/thead//th")]
    assert header[3:5] == ["_hidden", "a&b;"]
    assert "U+202Egnp" in header
    assert "_hidden" in list_titles(page_text)
    assert any(re.fullmatch("x{20,}…x{20,}", title) for title in list_titles(page_text))


def test_truncated_last_line_is_skipped_and_reported(tmp_path: Path) -> None:
    truncated_line = json.dumps(make_entry(3))[:40]
    folder = write_run(tmp_path / "one", [make_entry(1), make_entry(2), truncated_line])
    [run_log] = read_logs([folder])
    assert [entry["step"] for entry in run_log.entries["train"]] == [1, 2]
    assert run_log.notes == ["1 unreadable lines, the first is line 3"]
    _, page = plot([folder], str(tmp_path / "curves"))
    assert "one: 1 unreadable lines, the first is line 3." in Path(page).read_text()


@pytest.mark.parametrize(
    "bad_line", ["[]", "3", "{}", '{"step": "x", "split": "train"}', "\x00\x00", "nonsense", '"']
)
def test_invalid_lines_are_skipped_and_counted(tmp_path: Path, bad_line: str) -> None:
    [run_log] = read_logs([write_run(tmp_path / "one", [make_entry(1), bad_line + "\n", make_entry(2)])])
    assert [entry["step"] for entry in run_log.entries["train"]] == [1, 2]
    assert run_log.notes == ["1 unreadable lines, the first is line 2"]


def test_unknown_split_is_ignored(tmp_path: Path) -> None:
    [run_log] = read_logs([write_run(tmp_path / "one", [make_entry(1), {"step": 1, "split": "checkpoint"}])])
    assert run_log.notes == []


def test_lines_of_a_resumed_run_replace_earlier_ones(tmp_path: Path) -> None:
    old = [
        make_entry(1),
        make_entry(2),
        make_entry(2, "validation"),
        make_entry(3),
        make_entry(4),
        make_entry(4, "validation"),
    ]
    new = [
        make_entry(3, loss=7.0),
        make_entry(4, loss=8.0),
        make_entry(4, "validation", loss=9.0),
        make_entry(5),
    ]
    [run_log] = read_logs([write_run(tmp_path / "one", [*old, *new])])
    assert run_log.get_curve("train", ("loss",))[0].tolist() == [1, 2, 3, 4, 5]
    assert run_log.get_curve("train", ("loss",))[1].tolist()[2:4] == [7.0, 8.0]
    assert [values.tolist() for values in run_log.get_curve("validation", ("loss",))] == [
        [2, 4],
        [20 / 3, 9.0],
    ]


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "x", [1], True, {}])
def test_non_finite_value_leaves_a_gap(tmp_path: Path, value: object) -> None:
    folder = write_run(
        tmp_path / "one", [make_entry(1), make_entry(2, loss=value, grad_norm=value), make_entry(3)]
    )
    [run_log] = read_logs([folder])
    assert run_log.get_curve("train", ("loss",))[0].tolist() == [1, 2, 3]
    assert np.isnan(run_log.get_curve("train", ("loss",))[1]).tolist() == [False, True, False]
    assert run_log.notes == ["1 train losses are not finite, the first at step 2"]
    plot([folder], str(tmp_path / "curves"))


def test_keys_may_be_missing(tmp_path: Path) -> None:
    bare = [{"step": 1, "split": "train", "losses": None}, {"step": 2, "split": "train", "lr": 0.1}]
    folder = write_run(tmp_path / "one", bare)
    assert [panel.metric for panel in select_panels(read_logs([folder]))] == [("lr",)]
    plot([folder], str(tmp_path / "curves"))


def test_single_step_can_be_plotted(tmp_path: Path) -> None:
    plot([write_run(tmp_path / "one", [make_entry(0, loss=0.0, grad_norm=0.0)])], str(tmp_path / "curves"))


def test_run_without_steps_is_noted_beside_others_and_refused_alone(tmp_path: Path) -> None:
    empty, other = write_run(tmp_path / "empty", []), write_run(tmp_path / "other", make_entries(2))
    _, page = plot([empty, other], str(tmp_path / "curves"))
    assert "<li>empty: no step is logged yet.</li>" in Path(page).read_text()
    with pytest.raises(NoLogsError, match=r"nothing to plot: no step is logged in .*empty"):
        plot([empty], str(tmp_path / "none"))
    assert not (tmp_path / "none.svg").exists()


def test_error_names_directory_without_log(tmp_path: Path) -> None:
    with pytest.raises(NoLogsError, match=r"has no log.jsonl. Give the --output of a training run"):
        plot([str(tmp_path)], str(tmp_path / "curves"))
    with pytest.raises(NoLogsError, match="nowhere does not exist"):
        plot([str(tmp_path / "nowhere")], str(tmp_path / "curves"))
    (tmp_path / "odd" / "log.jsonl").mkdir(parents=True)
    with pytest.raises(NoLogsError, match="cannot be read: Is a directory"):
        plot([str(tmp_path / "odd")], str(tmp_path / "curves"))


def test_runs_with_equal_names_are_shown_by_path(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / item / "run", make_entries(1)) for item in "ab"]
    assert [item.name for item in read_logs([*folders, folders[0] + "/"])][:2] == folders
    assert [item.name for item in read_logs([folders[0], folders[0]])] == ["run"]
    assert [item.name for item in read_logs([folders[0] + "/"])] == ["run"]


def test_page_mentions_smoothing_only_if_applied(tmp_path: Path) -> None:
    few, many = write_run(tmp_path / "few", make_entries(99)), write_run(tmp_path / "many", make_entries(100))
    _, page = plot([few], str(tmp_path / "curves"))
    assert "smoothed" not in Path(page).read_text()
    _, page = plot([few, many], str(tmp_path / "curves"))
    assert "are smoothed" in Path(page).read_text()


def test_page_size_is_bounded_for_many_steps(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noisy = [make_entry(step, loss=3 + float(rng.normal())) for step in range(5000)]
    _, page = plot([write_run(tmp_path / "one", noisy)], str(tmp_path / "curves"))
    assert os.path.getsize(page) < 500_000


numbers = st.lists(st.floats(-1e3, 1e3) | st.just(math.nan), min_size=1, max_size=60)


@given(numbers, st.integers(0, 70))
def test_smoothed_value_is_the_mean_of_its_neighbours(values: list[float], half: int) -> None:
    smoothed = smooth(np.array(values), half)
    for index, mean in enumerate(smoothed):
        width = min(half, index)
        neighbours = values[index - width : index + width + 1]
        finite = [value for value in neighbours if not math.isnan(value)]
        if finite:
            assert mean == pytest.approx(sum(finite) / len(finite), abs=1e-6)
        else:
            assert math.isnan(mean)


@pytest.mark.parametrize(
    ("metric", "value", "expected"),
    [
        (("loss",), 3.14159, "3.142"),
        (("tokens_seen",), 1234567, "1,234,567"),
        (("data_wait_fraction",), 0.00123, "0.123 %"),
        (("mfu",), None, "–"),
        (("loss",), math.nan, "nan"),
        (("metrics", "rtd_recall"), 0.5, "50 %"),
        (("losses", "replaced"), 0.5, "0.5"),
        (("epoch",), 0.31, "0.31"),
    ],
)
def test_values_are_formatted_by_metric(metric: tuple[str, ...], value: object, expected: str) -> None:
    assert format_value(metric, value) == expected


def test_metrics_without_a_title_are_named_by_their_keys() -> None:
    assert format_title(("losses", "adversarial")) == "loss: adversarial"
    assert format_title(("metrics", "sop_accuracy")) == "SOP accuracy"
    assert format_title(("mask_rate",)) == "mask rate"
