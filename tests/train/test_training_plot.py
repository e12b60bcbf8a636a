"""Curves: of runs of several kinds, of broken logs, the same bytes each time, and nothing that does harm."""

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

import lxml.html
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.plot import plot
from bioshards.train.plot.curves import NoLogsError, read_logs, smooth
from bioshards.train.plot.panels import format_title, format_value, select_panels

ELECTRA = {
    "losses": {"mlm": 6.0, "rtd": 0.2},
    "metrics": {"mlm_accuracy": 0.2, "rtd_accuracy": 0.9, "replaced": 0.1, "replaced_entropy": 0.33},
}
BERT = {"losses": {"mlm": 5.0, "nsp": 0.6}, "metrics": {"mlm_accuracy": 0.3, "nsp_accuracy": 0.7}}


REST = {"grad_norm": 1.5, "tokens_seen": 1000, "tokens_per_second": 1234.5, "mfu": None}


def line(step: int, kind: str = "train", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"step": step, "split": kind, "loss": 20.0 / (1 + step)}
    if kind == "train":
        found |= {"lr": 5e-4}
    return found | more


def run(folder: Path, lines: Iterable[dict[str, Any] | str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    whole = [one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines]
    (folder / "log.jsonl").write_text("".join(whole))
    return str(folder)


def both(steps: int, **more: Any) -> list[dict[str, Any]]:
    return [line(step, kind, **more) for step in range(1, steps + 1) for kind in ("train", "validation")]


def titles(page: str) -> list[str]:
    """What is written in the picture."""
    return [html.unescape(found) for found in re.findall(r"<text [^>]*>([^<]*)</text>", page)]


def parsed(page: str) -> Any:
    return lxml.html.document_fromstring(page)


def test_runs_of_different_kinds_are_on_one_picture(tmp_path: Path) -> None:
    folders = [
        run(tmp_path / "electra", both(5, **ELECTRA, **REST)),
        run(tmp_path / "bert", both(4, **BERT, **REST)),
    ]
    png, page = plot(folders, str(tmp_path / "out" / "curves.png"))
    assert Path(png).read_bytes().startswith(b"\x89PNG")
    assert [os.path.basename(one) for one in (png, page)] == ["curves.png", "curves.html"]
    written_page = Path(page).read_text()
    assert {
        *("electra", "bert", "training", "validation", "baseline: fraction of replaced tokens", "step"),
        *("loss (weighted sum)", "loss: MLM", "loss: RTD", "loss: NSP", "MLM accuracy"),
        *("RTD accuracy", "NSP accuracy", "tokens replaced", "learning rate", "tokens per second"),
        *("gradient norm before clipping", "nats"),
    } <= set(titles(written_page))
    assert "replaced entropy" not in titles(written_page)
    tree = parsed(written_page)
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


@pytest.mark.parametrize("out", ["curves", "curves.png", "curves.html"])
def test_the_files_are_named_by_the_picture_the_page_or_neither(tmp_path: Path, out: str) -> None:
    folder = run(tmp_path / "one", both(2))
    files = plot([folder], str(tmp_path / out))
    assert files == [str(tmp_path / "curves.png"), str(tmp_path / "curves.html")]
    assert sorted(os.listdir(tmp_path)) == ["curves.html", "curves.png", "one"]


def test_the_same_logs_give_the_same_bytes(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", both(3))
    settings = tmp_path / "matplotlibrc"
    settings.write_text("lines.linewidth: 9\nsvg.fonttype: path\n")
    script = "import sys; from bioshards.train.plot import plot; plot(sys.argv[1:2], sys.argv[2])"
    first = plot([folder], str(tmp_path / "first"))
    environment = {**os.environ, "MATPLOTLIBRC": str(settings), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-c", script, folder, str(tmp_path / "second")]
    subprocess.run(command, check=True, env=environment, timeout=120)
    for one in first:
        other = one.replace("first", "second")
        assert Path(one).read_bytes() == Path(other).read_bytes()


def test_the_page_loads_nothing_and_takes_its_colours_from_the_frame(tmp_path: Path) -> None:
    _, page = plot([run(tmp_path / "one", both(3, **ELECTRA))], str(tmp_path / "curves"))
    written_page = Path(page).read_text()
    assert "default-src 'none'" in written_page
    tree = parsed(written_page)
    assert not tree.xpath("//script | //link | //img | //image | //iframe | //object | //metadata")
    for element in tree.iter():
        for name, value in element.attrib.items():
            if name.endswith(("href", "src")):
                assert value.startswith("#"), value
            elif not name.startswith("xmlns"):
                assert "//" not in value
                assert not re.search(r"url\((?!#)", value), value
    assert written_page.count("<svg") == 1
    assert "<?xml" not in written_page
    assert "DOCTYPE svg" not in written_page
    # Text and lines are seen on a dark page too: no colour of text is fixed.
    drawn = written_page[written_page.index("<svg") : written_page.index("</svg>")]
    assert "var(--text)" in drawn
    assert "var(--line)" in drawn
    assert not {"#000000", "#ffffff", "#1b1f24", "#d4dae1"} & set(re.findall("#[0-9a-f]{6}", drawn))
    for text in re.findall("<text [^>]*>", drawn):
        assert "fill: var(--text)" in text


HOSTILE = ["<script>x</script>", "$\\frac{", "_hidden", "a&b;", "\u202egnp", "x" * 150, 'q"uote', "]]>"]


def test_names_of_runs_and_quantities_are_text_only(tmp_path: Path) -> None:
    folders = [run(tmp_path / name.replace("/", "|"), both(2)) for name in HOSTILE]
    odd = line(3, losses={"<b>$x": 1.0}, metrics={"</svg>": 2.0}, more="<i>")
    folders.append(run(tmp_path / "odd", [odd]))
    _, page = plot(folders, str(tmp_path / "curves"))
    written_page = Path(page).read_text()
    tree = parsed(written_page)
    assert not tree.xpath("//script | //b | //i")
    assert written_page.count("</svg>") == 1
    head = [one.text_content() for one in tree.xpath("//table[1]/thead//th")]
    assert head[3:5] == ["_hidden", "a&b;"]
    assert "U+202Egnp" in head
    assert "_hidden" in titles(written_page)
    assert f"{'x' * 20}…{'x' * 20}" in titles(written_page)


def test_a_last_line_that_is_cut_is_left_out_and_said(tmp_path: Path) -> None:
    cut = json.dumps(line(3))[:40]
    folder = run(tmp_path / "one", [line(1), line(2), cut])
    [read_run] = read_logs([folder])
    assert [one["step"] for one in read_run.entries["train"]] == [1, 2]
    assert read_run.notes == ["1 unreadable lines, the first is line 3"]
    _, page = plot([folder], str(tmp_path / "curves"))
    assert "one: 1 unreadable lines, the first is line 3." in Path(page).read_text()


@pytest.mark.parametrize(
    "bad", ["[]", "3", "{}", '{"step": "x", "split": "train"}', "\x00\x00", "nonsense", '"']
)
def test_other_lines_that_are_none_are_left_out_and_counted(tmp_path: Path, bad: str) -> None:
    [found] = read_logs([run(tmp_path / "one", [line(1), bad + "\n", line(2)])])
    assert [one["step"] for one in found.entries["train"]] == [1, 2]
    assert found.notes == ["1 unreadable lines, the first is line 2"]


def test_a_kind_of_line_yet_to_come_is_passed_over(tmp_path: Path) -> None:
    [found] = read_logs([run(tmp_path / "one", [line(1), {"step": 1, "split": "checkpoint"}])])
    assert found.notes == []


def test_what_a_resumed_run_logs_anew_takes_the_place_of_the_old(tmp_path: Path) -> None:
    old = [line(1), line(2), line(2, "validation"), line(3), line(4), line(4, "validation")]
    new = [line(3, loss=7.0), line(4, loss=8.0), line(4, "validation", loss=9.0), line(5)]
    [found] = read_logs([run(tmp_path / "one", [*old, *new])])
    assert found.get_curve("train", ("loss",))[0].tolist() == [1, 2, 3, 4, 5]
    assert found.get_curve("train", ("loss",))[1].tolist()[2:4] == [7.0, 8.0]
    assert [one.tolist() for one in found.get_curve("validation", ("loss",))] == [[2, 4], [20 / 3, 9.0]]


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "x", [1], True, {}])
def test_a_value_that_is_no_number_leaves_a_gap(tmp_path: Path, value: object) -> None:
    folder = run(tmp_path / "one", [line(1), line(2, loss=value, grad_norm=value), line(3)])
    [found] = read_logs([folder])
    assert found.get_curve("train", ("loss",))[0].tolist() == [1, 2, 3]
    assert np.isnan(found.get_curve("train", ("loss",))[1]).tolist() == [False, True, False]
    assert found.notes == ["1 train losses are not finite, the first at step 2"]
    plot([folder], str(tmp_path / "curves"))


def test_keys_may_be_missing(tmp_path: Path) -> None:
    bare = [{"step": 1, "split": "train", "losses": None}, {"step": 2, "split": "train", "lr": 0.1}]
    folder = run(tmp_path / "one", bare)
    assert [panel.metric for panel in select_panels(read_logs([folder]))] == [("lr",)]
    plot([folder], str(tmp_path / "curves"))


def test_one_step_and_equal_values_can_be_drawn(tmp_path: Path) -> None:
    plot([run(tmp_path / "one", [line(0, loss=0.0, grad_norm=0.0)])], str(tmp_path / "curves"))


def test_a_run_without_a_step_is_noted_beside_others_and_refused_alone(tmp_path: Path) -> None:
    empty, other = run(tmp_path / "empty", []), run(tmp_path / "other", both(2))
    _, page = plot([empty, other], str(tmp_path / "curves"))
    assert "<li>empty: no step is logged yet.</li>" in Path(page).read_text()
    with pytest.raises(NoLogsError, match=r"nothing to plot: no step is logged in .*empty"):
        plot([empty], str(tmp_path / "none"))
    assert not (tmp_path / "none.png").exists()


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoLogsError, match=r"has no log.jsonl. Give the --output of a training run"):
        plot([str(tmp_path)], str(tmp_path / "curves"))
    with pytest.raises(NoLogsError, match="nowhere does not exist"):
        plot([str(tmp_path / "nowhere")], str(tmp_path / "curves"))
    (tmp_path / "odd" / "log.jsonl").mkdir(parents=True)
    with pytest.raises(NoLogsError, match="cannot be read: Is a directory"):
        plot([str(tmp_path / "odd")], str(tmp_path / "curves"))


def test_runs_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    folders = [run(tmp_path / one / "run", both(1)) for one in "ab"]
    assert [one.name for one in read_logs([*folders, folders[0] + "/"])][:2] == folders
    assert [one.name for one in read_logs([folders[0], folders[0]])] == ["run"]
    assert [one.name for one in read_logs([folders[0] + "/"])] == ["run"]


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path) -> None:
    folder = run(tmp_path / "one", both(1))
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from bioshards.train.plot import NoLogsError, plot\n"
        "assert 'torch' not in sys.modules\n"
        "try: plot(sys.argv[1:], sys.argv[1] + '/curves')\n"
        "except NoLogsError as error: print(error)"
    )
    command = [sys.executable, "-c", script, folder]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "plot needs matplotlib: pip install 'bioshards[train]'\n"


def test_training_does_not_import_matplotlib() -> None:
    script = (
        "import sys; import bioshards.train.plot, bioshards.train.optim.optimizers, "
        "bioshards.train.optim.schedules; "
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


def test_smoothing_is_said_where_it_is_done_and_only_there(tmp_path: Path) -> None:
    few, many = run(tmp_path / "few", both(99)), run(tmp_path / "many", both(100))
    _, page = plot([few], str(tmp_path / "curves"))
    assert "smoothed" not in Path(page).read_text()
    _, page = plot([few, many], str(tmp_path / "curves"))
    assert "are smoothed" in Path(page).read_text()


def test_very_many_steps_make_no_very_large_page(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    noisy = [line(step, loss=3 + float(chance.normal())) for step in range(5000)]
    _, page = plot([run(tmp_path / "one", noisy)], str(tmp_path / "curves"))
    assert os.path.getsize(page) < 500_000


numbers = st.lists(st.floats(-1e3, 1e3) | st.just(math.nan), min_size=1, max_size=60)


@settings(derandomize=True, deadline=None, database=None)
@given(numbers, st.integers(0, 70))
def test_a_smoothed_value_is_the_mean_of_its_neighbours(values: list[float], half: int) -> None:
    found = smooth(np.array(values), half)
    for at, mean in enumerate(found):
        before = min(half, at)
        near = values[at - before : at + before + 1]
        there = [value for value in near if not math.isnan(value)]
        if there:
            assert mean == pytest.approx(sum(there) / len(there), abs=1e-6)
        else:
            assert math.isnan(mean)


@pytest.mark.parametrize(
    ("place", "value", "said"),
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
def test_values_are_written_by_what_they_are(place: tuple[str, ...], value: object, said: str) -> None:
    assert format_value(place, value) == said


def test_quantities_nobody_has_named_are_called_by_their_keys() -> None:
    assert format_title(("losses", "adversarial")) == "loss: adversarial"
    assert format_title(("metrics", "sop_accuracy")) == "SOP accuracy"
    assert format_title(("mask_rate",)) == "mask rate"
