"""Settings of ``make docs``: the Markdown files of the repository as a site, without a network.

The pages of all options and of the manifest are generated first.
"""

from pathlib import Path

from sphinx.application import Sphinx

from tests.support.corpus.manifest_reference import format_markdown, make_schema
from tests.support.options_reference import format_page

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
smartquotes = False  # -- begins an option
html_show_copyright = False
html_show_search_summary = False  # a page that is opened as a file may not fetch others
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]


def setup(app: Sphinx) -> None:
    """Generate pages when a build begins."""
    app.connect("builder-inited", _write_pages)


def _write_pages(_app: Sphinx) -> None:
    for name, text in (("options", format_page()), ("manifest", format_markdown(make_schema()))):
        page = Path(__file__).with_name(f"{name}.md")
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
