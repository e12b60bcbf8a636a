"""Settings of ``make docs``: the Markdown files of the repository as a site, without a network."""

project = "bioshards"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**",
    "docker/README.md",
    "corpus/sample/*.md",
    "evaluate/sample/*.md",
    "tests/bench/*.md",
]
html_theme = "furo"
html_title = "bioshards"
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
