"""Every report's page in headless Chromium: on a phone and a screen, light and dark.

With the environment variable BIOSHARDS_SCREENSHOTS, pictures are written into that folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.browser import MISSING, Browser
from tests.support.report_pages import write_pages

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
SCREENS = [(width, scheme) for width in (390, 1280) for scheme in ("light", "dark")]
FIND_PROBLEMS = """
const problems = [], root = document.documentElement;
document.querySelectorAll("details").forEach(details => details.open = true);
if (!document.querySelector("h1 + .headline")) problems.push("no headline figure at the top");
if (root.scrollWidth > innerWidth) problems.push(`${root.scrollWidth} px wide`);
for (const svg of document.querySelectorAll("svg")) {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll(":scope > text")].map(text => [text, text.getBoundingClientRect()]);
  for (const [text, box] of boxes) {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
        || box.bottom > frame.bottom + 1) problems.push(`cut off: ${text.textContent}`);
    for (const [other, otherBox] of boxes)
      if (text !== other && box.left < otherBox.right - 1 && otherBox.left < box.right - 1
          && box.top < otherBox.bottom - 3 && otherBox.top < box.bottom - 3)
        problems.push(`${text.textContent} overlaps ${other.textContent}`);
    if (box.height < 10) problems.push(`too small to read: ${text.textContent}`);
  }
}
for (const labels of document.querySelectorAll(".axis, .score, .legend")) {
  const boxes = [...labels.children].map(label => [label, label.getBoundingClientRect()]);
  for (const [label, box] of boxes) {
    if (box.left < 0 || box.right > root.clientWidth) problems.push(`cut off: ${label.textContent}`);
    for (const [other, otherBox] of boxes)
      if (label !== other && box.left < otherBox.right - 1 && otherBox.left < box.right - 1
          && box.top < otherBox.bottom - 3 && otherBox.top < box.bottom - 3)
        problems.push(`${label.textContent} overlaps ${other.textContent}`);
  }
}
for (const columns of document.querySelectorAll(".columns")) {
  const bars = [...columns.querySelectorAll("i, svg")].map(bar => bar.getBoundingClientRect());
  if (bars.some(bar => bar.width < 2)) problems.push("columns too narrow to see");
}
for (const scroller of document.querySelectorAll(".scroll")) {
  scroller.scrollLeft = 60;
  const first = scroller.querySelector("th:first-child")?.getBoundingClientRect();
  if (!first) continue;
  if (Math.abs(first.left - scroller.getBoundingClientRect().left) > 1) problems.push("first column scrolls");
  if (first.width > 0.55 * root.clientWidth) problems.push(`first column is ${first.width} px wide`);
  scroller.scrollLeft = 0;
  if (!getComputedStyle(scroller).backgroundImage.includes("gradient")) problems.push("no cue for scrolling");
}
return problems;
"""


def test_pages_fit_every_screen(tmp_path: Path) -> None:
    problems = []
    with Browser(tmp_path / "profile") as browser:
        for path in write_pages(tmp_path):
            browser.open(path)
            for width, scheme in SCREENS:
                browser.emulate(width, scheme)
                case = f"{path.name} at {width} px, {scheme}"
                found = browser.run_script(FIND_PROBLEMS)
                problems += [f"{case}: {problem}" for problem in (*found, *browser.read_log())]
                if folder := os.environ.get("BIOSHARDS_SCREENSHOTS"):
                    browser.take_screenshot(Path(folder) / f"{path.name}-{width}-{scheme}.png")
    assert not problems, "\n".join(problems)
