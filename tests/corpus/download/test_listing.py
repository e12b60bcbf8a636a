"""Listings of PubMed and Europe PMC: parsing, hostile pages and the selection of files."""

from __future__ import annotations

import time
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download import europepmc, pubmed
from bioshards.corpus.download.listing import (
    EmptySelectionError,
    ListingError,
    RemoteFile,
    SelectedFiles,
    is_complete,
    parse_links,
)
from bioshards.corpus.download.sources import SOURCES, SourceSpec, parse_source_spec
from tests.support.hypothesis_profiles import examples

PUBMED_URL = SOURCES["pubmed"].url
EUROPEPMC_URL = SOURCES["europepmc"].url
TEXT_PAGE = """<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">
<html><head><title>Index of /pubmed/baseline</title></head><body><h1>Index of /pubmed/baseline</h1>
<pre>Name                     Last modified      Size  <hr><a href="/pubmed/">Parent Directory</a>      -
<a href="README.txt">README.txt</a>               2031-01-30 09:00  4.5K
<a href="pubmed31n0002.xml.gz">pubmed31n0002.xml.gz</a>     2031-01-29 14:03   17M
<a href="pubmed31n0002.xml.gz.md5">pubmed31n0002.xml.gz.md5</a> 2031-01-29 14:04   60
<a href="pubmed31n0001.xml.gz">pubmed31n0001.xml.gz</a>     2031-01-29 14:02  1.5M
<a href="pubmed31n0001.xml.gz.md5">pubmed31n0001.xml.gz.md5</a> 2031-01-29 14:02   60
<a href="pubmed31n0001_stats.html">pubmed31n0001_stats.html</a> 2031-01-29 14:02  582
<hr></pre></body></html>
"""

TABLE_ROW = (
    '<tr><td valign="top"><img src="/icons/compressed.gif" alt="[   ]"></td><td><a href="{0}">{0}</a></td>'
    '<td align="right">{1}  </td><td align="right">{2}</td><td>&nbsp;</td></tr>\n'
)
TABLE_PAGE = (
    '<html><body><table><tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Modified</a></th></tr>'
    '<tr><td><a href="/pub/databases/pmc/">Parent Directory</a></td><td>&nbsp;</td><td>  - </td></tr>\n'
    + TABLE_ROW.format("PMC20001_PMC30000.xml.gz", "2031-07-25 03:11", " 65M")
    + TABLE_ROW.format("PMC9001_PMC19990.xml.gz", "2031-07-18 03:10", "1.1M")
    + TABLE_ROW.format("PMC100007_PMC120000.xml.gz", "2031-07-25 03:12", "1.2G")
    + "</table><address>Apache Server Port 443</address></body></html>"
)


def format_row(file_name: str, date_and_size: str = "2031-01-29 14:02   19M") -> str:
    return f'<a href="{file_name}">{file_name}</a>   {date_and_size}\n'


def list_pubmed_files(
    year: int, *file_numbers: int, folder: str = pubmed.BASELINE, day: str = "2031-01-29"
) -> list[RemoteFile]:
    """Return listed files that have MD5 files."""
    names = [f"pubmed{year}n{number:04d}.xml.gz" for number in file_numbers]
    page = "".join(
        format_row(f"{file_name}{suffix}", f"{day} 14:02 19M")
        for file_name in names
        for suffix in ("", ".md5")
    )
    return pubmed.parse_listing(page, PUBMED_URL, folder)


def parse_spec(text: str) -> SourceSpec:
    spec = parse_source_spec(text)
    assert spec is not None
    return spec


def get_file_numbers(selection: SelectedFiles) -> list[str]:
    """Return the year and number of each file, such as ``31n0001``."""
    return [remote.name.removeprefix("pubmed").removesuffix(".xml.gz") for remote in selection.files]


# Pages


def test_pubmed_listing_is_parsed_in_order() -> None:
    first, second = pubmed.parse_listing(TEXT_PAGE, PUBMED_URL, pubmed.BASELINE)
    assert (first.year, first.first, first.is_md5_listed) == (31, 1, True)
    assert first.url == "https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/pubmed31n0001.xml.gz"
    assert first.path == "pubmed/baseline/pubmed31n0001.xml.gz"
    assert (first.root_name, first.has_md5_file) == ("PubmedArticleSet", True)
    assert first.modified_at == datetime(2031, 1, 29, 14, 2)
    assert first.size == 1.5 * 1024**2
    assert first.listing_text == "2031-01-29 14:02 1.5M; 2031-01-29 14:02 60"
    assert second.first == 2
    assert second.size == 17 * 1024**2
    assert second.listing_text == "2031-01-29 14:03 17M; 2031-01-29 14:04 60"


def test_europe_pmc_listing_is_parsed_in_order() -> None:
    packages = europepmc.parse_listing(TABLE_PAGE, EUROPEPMC_URL)
    assert [(package.first, package.last) for package in packages] == [
        (9001, 19990),
        (20001, 30000),
        (100007, 120000),
    ]
    remote = packages[0]
    assert remote.url == "https://ftp.ebi.ac.uk/pub/databases/pmc/oa/PMC9001_PMC19990.xml.gz"
    assert remote.path == "europepmc/PMC9001_PMC19990.xml.gz"
    assert (remote.root_name, remote.has_md5_file) == ("articles", False)
    assert (remote.listing_text, remote.modified_at) == (
        "2031-07-18 03:10 1.1M",
        datetime(2031, 7, 18, 3, 10),
    )
    assert remote.size == int(1.1 * 1024**2)


@pytest.mark.parametrize(
    ("details", "modified_at", "size", "listing_text"),
    [
        ("2031-01-29 14:02   19M", datetime(2031, 1, 29, 14, 2), 19 * 1024**2, "2031-01-29 14:02 19M"),
        ("29-Jan-2031 14:02  4.5K", datetime(2031, 1, 29, 14, 2), 4608, "29-Jan-2031 14:02 4.5K"),
        (
            "</td><td>29-Dec-2031 14:02:59</td> <td> 60</td>",
            datetime(2031, 12, 29, 14, 2),
            60,
            "29-Dec-2031 14:02:59 60",
        ),
        ("2031-01-29 14:02", datetime(2031, 1, 29, 14, 2), 0, "2031-01-29 14:02"),
        ("2031-01-29 14:02   -", datetime(2031, 1, 29, 14, 2), 0, "2031-01-29 14:02"),
        ("2031-13-29 14:02   19M", None, 19 * 1024**2, "2031-13-29 14:02 19M"),
        ("31-Foo-2031 25:61   19M", None, 19 * 1024**2, "31-Foo-2031 25:61 19M"),
        ("2031-02-30 14:02", None, 0, "2031-02-30 14:02"),
        ("29.01.2031 14:02  19M", None, 0, ""),
        ("2031-01-29", None, 0, ""),
        ("٢٠٣١-٠١-٢٩ ١٤:٠٢", None, 0, ""),
        ("19M", None, 0, ""),
        ("", None, 0, ""),
        (" " * 500 + "2031-01-29 14:02   19M", None, 0, ""),
    ],
)
def test_dates_and_sizes_in_other_formats(
    details: str, modified_at: datetime | None, size: int, listing_text: str
) -> None:
    for page in (
        format_row("a", details),
        f"<A class='x' HREF='a'>a {details}",
        f'<a href="a">a</a>{details}' + format_row("b"),
    ):
        link = next(parse_links(page))
        assert link == ("a", modified_at, size, listing_text)


@pytest.mark.parametrize(
    "address",
    [
        "../pubmed31n0001.xml.gz",
        "/pubmed31n0001.xml.gz",
        "https://elsewhere.example/pubmed31n0001.xml.gz",
        "//elsewhere.example/pubmed31n0001.xml.gz",
        "javascript:pubmed31n0001.xml.gz",
        "pubmed31n0001.xml.gz?x=1",
        "PUBMED31N0001.XML.GZ",
        "pubmed31n0001%2exml.gz",
        "xpubmed31n0001.xml.gz",
        "pubmed31n001.xml.gz",
        "pubmed31n1234567.xml.gz",
        "pubmed31n٠٠٠١.xml.gz",
        "pubmed31n0001.xml.gz\\",
        "pubmed31n0001.xml",
        "pubmed31n0001.xml.gz.md5",
        "pubmed31n0001&#46;xml.gz",
        "pubmed31n0001.xml.gz\n",
        "PMC1_PMC2.xml.gz",
    ],
)
def test_only_exact_file_names_are_accepted(address: str) -> None:
    parsed = pubmed.parse_listing(
        format_row(address) + format_row("pubmed31n0777.xml.gz"), PUBMED_URL, pubmed.BASELINE
    )
    assert [file.first for file in parsed] == [777]


@pytest.mark.parametrize(
    "template",
    [
        "{name}",
        '<a href="x">{name}</a>',
        '<a title="x" name="{name}">x</a>',
        '<a data-href="{name}">x</a>',
        '<img src="{name}"><link href="{name}">',
        '<!-- <a href="{name}">x</a> -->',
        "<script>document.write('<a href=\"{name}\">')</script>",
        '<STYLE><a href="{name}"></STYLE>',
        '<!-- <script> --> <script> <!-- <a href="{name}"> --> </script>',
    ],
)
def test_names_outside_links_are_ignored(template: str) -> None:
    page = (
        format_row("pubmed31n0777.xml.gz")
        + template.format(name="pubmed31n0001.xml.gz")
        + format_row("pubmed31n0778.xml.gz")
    )
    parsed = pubmed.parse_listing(page, PUBMED_URL, pubmed.BASELINE)
    assert [file.first for file in parsed] == [777, 778]


def test_repeated_name_counts_once() -> None:
    page = format_row("pubmed31n0001.xml.gz") + format_row("pubmed31n0001.xml.gz", "2031-02-01 00:00 20M")
    [file] = pubmed.parse_listing(page, PUBMED_URL, pubmed.BASELINE)
    assert file.listing_text == "2031-01-29 14:02 19M"
    [package] = europepmc.parse_listing(format_row("PMC1_PMC2.xml.gz") * 3, EUROPEPMC_URL)
    assert package.last == 2


def test_unclosed_tags_are_tolerated() -> None:
    page = (
        '<table><tr><td><a href="pubmed31n0001.xml.gz">x<td>2031-01-29 14:02<td>19M'
        '<tr><a href="pubmed31n0002.xml.gz"'
    )
    first, second = pubmed.parse_listing(page, PUBMED_URL, pubmed.BASELINE)
    assert first.listing_text == "2031-01-29 14:02 19M"
    assert second.listing_text == ""


@pytest.mark.parametrize(
    "page", ["", "<html>503 <b>busy</b>\x1b[2J" + "x" * 999, format_row("other"), TABLE_PAGE]
)
def test_page_without_files_is_an_error_with_url_and_module(page: str) -> None:
    with pytest.raises(ListingError) as caught:
        pubmed.parse_listing(page, PUBMED_URL, pubmed.UPDATES)
    message = str(caught.value)
    assert "https://ftp.ncbi.nlm.nih.gov/pubmed/updatefiles/ lists no PubMed file" in message
    assert "corpus/download/pubmed.py" in message
    assert message.endswith(f"{page[:200]!r}")
    with pytest.raises(ListingError, match=r"pub/databases/pmc/oa/ lists no package .*europepmc\.py"):
        europepmc.parse_listing(TEXT_PAGE, EUROPEPMC_URL)


# Hostile pages

PIECES = [
    '<a href="',
    '">',
    "</a>",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "../",
    "https://x.example/",
    "<td>",
    '<a href="pubmed31n0001.xml.gz',
    '<a href="../pubmed31n0001.xml.gz',
    "pubmed31n0001",
    ".xml.gz",
    ".md5",
    "2031-01-29 14:02",
    " 19M",
    "\n",
    "'",
    '"',
    "\x00",
    "é",
    " ",
]


@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_urls_of_hostile_pages_are_those_of_the_source(page: str) -> None:
    try:
        parsed = pubmed.parse_listing(page, PUBMED_URL, pubmed.BASELINE)
    except ListingError:
        return
    assert [file.url for file in parsed] == [f"{PUBMED_URL}baseline/pubmed31n0001.xml.gz"]


def measure_seconds(page: str) -> float:
    """Return the processor time of parsing a page."""
    started = time.process_time()
    for _ in parse_links(page):
        pass
    return time.process_time() - started


@pytest.mark.parametrize(
    "piece",
    [
        "x",
        " ",
        "<",
        "<a ",
        '<a href="',
        'href="x',
        "<!--",
        "<script>",
        "</script ",
        "<a" + " " * 90,
        "\x00",
        '<a href="pubmed31n0001.xml.gz"',
        "<a href='x'>2031-01-29 14:02 ",
        "&nbsp;",
        "<a href='x'><td>",
        "é",
        "<a href='x'>2031-01-29 14:02" + "<td>" * 90 + "9",
        "<a href='x'>2031-01-29 14:02" + "9" * 300,
    ],
)
def test_megabyte_of_garbage_is_parsed_in_a_second(piece: str) -> None:
    assert measure_seconds(piece * (2**20 // len(piece))) < 1
    assert measure_seconds('<a href="x">2031-01-29 14:02' + piece * (2**20 // len(piece))) < 1


@pytest.mark.thorough
def test_parsing_takes_linear_time() -> None:
    def measure_parsing(num_files: int) -> float:
        file_names = (
            f"pubmed31n{index:06d}.xml.gz{suffix}" for index in range(num_files) for suffix in ("", ".md5")
        )
        page = "".join(map(format_row, file_names))
        started = time.process_time()
        assert len(pubmed.parse_listing(page, PUBMED_URL, pubmed.BASELINE)) == num_files
        return time.process_time() - started

    assert measure_parsing(50_000) < 40 * min(measure_parsing(5_000) for _ in range(3))


# Selection of PubMed's files

BASELINE_FILES = list_pubmed_files(31, 1, 2, 3, 4)
UPDATE_FILES = [
    *list_pubmed_files(31, 5, 6, folder=pubmed.UPDATES, day="2031-02-01"),
    *list_pubmed_files(31, 7, folder=pubmed.UPDATES, day="2031-02-02"),
]


def select(text: str, *arguments: Any) -> SelectedFiles:
    """Select the files of a source spec."""
    return pubmed.select_files(parse_spec(text), *arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pubmed:", [1, 2, 3, 4, 5, 6, 7]),
        ("pubmed:baseline", [1, 2, 3, 4]),
        ("pubmed:updates", [5, 6, 7]),
        ("pubmed:[2-5,7]", [2, 3, 4, 5, 7]),
        ("pubmed:baseline[3-]", [3, 4]),
        ("pubmed:updates[6-99]", [6, 7]),
        ("pubmed:updates[-2:]", [6, 7]),
        ("pubmed:[-4:]", [4, 5, 6, 7]),
        ("pubmed:baseline[-99:]", [1, 2, 3, 4]),
        ("pubmed:since=2031-02-01", [5, 6, 7]),
        ("pubmed:updates,since=2031-02-02", [7]),
    ],
)
def test_selection_returns_files_in_order(text: str, expected: list[int]) -> None:
    selected = select(text, BASELINE_FILES, UPDATE_FILES)
    assert get_file_numbers(selected) == [f"31n{number:04d}" for number in expected]
    assert selected.notices == ()
    assert [remote.path.split("/")[1] for remote in selected.files] == [
        "baseline" if number < 5 else "updatefiles" for number in expected
    ]


def test_newest_baseline_determines_the_year() -> None:
    baseline = [*list_pubmed_files(30, 1, 2, 3), *BASELINE_FILES]
    updates = [
        *list_pubmed_files(30, 4, 5, folder=pubmed.UPDATES),
        *UPDATE_FILES,
        *list_pubmed_files(32, 9, folder=pubmed.UPDATES),
    ]
    selected = select("pubmed:", baseline, updates)
    assert get_file_numbers(selected) == [f"31n{number:04d}" for number in range(1, 8)]
    in_baseline, older, newer = selected.notices
    assert "pubmed/baseline/ still lists 3 file(s) of another year, pubmed30" in in_baseline
    assert "pubmed/updatefiles/ still lists 2 file(s) of another year, pubmed30" in older
    assert "pubmed31, includes all of last year's updates" in older
    assert "pubmed/updatefiles/ lists 1 file(s) of a later year, pubmed32" in newer
    assert get_file_numbers(select("pubmed:updates", [], updates)) == ["32n0009"]


def test_gaps_in_the_numbers_are_reported() -> None:
    baseline = list_pubmed_files(31, 2, 3, 5, 9, 10)
    updates = list_pubmed_files(31, 12, 13, 15, folder=pubmed.UPDATES)
    selected = select("pubmed:[10]", baseline, updates)
    assert get_file_numbers(selected) == ["31n0010"]
    in_baseline, in_updates = selected.notices
    assert (
        "pubmed/baseline/ has no pubmed31n0001, pubmed31n0004, pubmed31n0006 to pubmed31n0008: 5 file(s) "
        "before pubmed31n0010" in in_baseline
    )
    assert "pubmed/updatefiles/ has no pubmed31n0011, pubmed31n0014: 2 file(s)" in in_updates
    assert select("pubmed:updates", [], updates).notices[0].count("pubmed31n00") == 2


README = "The complete baseline consists of files pubmed31n0001.xml through pubmed31n{0}.xml. It is ..."


def test_baseline_shorter_than_its_readme_says_is_incomplete() -> None:
    updates = list_pubmed_files(31, 7, 8, folder=pubmed.UPDATES)
    with pytest.raises(ListingError, match="still being posted") as caught:
        select("pubmed:", BASELINE_FILES, updates, README.format("0006"))
    assert "ends with pubmed31n0004" in str(caught.value)
    assert "goes to pubmed31n0006" in str(caught.value)
    selected = select("pubmed:baseline[1-2]", BASELINE_FILES, updates, README.format("0006"))
    assert "still being posted" in selected.notices[0]
    assert select("pubmed:", BASELINE_FILES, UPDATE_FILES, README.format("0004")).notices == ()


@pytest.mark.parametrize(
    "readme",
    [
        "",
        "no range",
        README.format("0006").replace("31n", "30n"),
        README.format("1234567"),
        "pubmed31n" * 999,
    ],
)
def test_readme_of_another_baseline_is_ignored(readme: str) -> None:
    assert select("pubmed:", BASELINE_FILES, UPDATE_FILES, readme).notices == ()


def test_missing_md5_files_are_reported_for_selected_files() -> None:
    page = "".join(format_row(f"pubmed31n{number:04d}.xml.gz") for number in range(1, 9))
    without_md5 = pubmed.parse_listing(
        page + format_row("pubmed31n0008.xml.gz.md5"), PUBMED_URL, pubmed.BASELINE
    )
    assert all(file.has_md5_file for file in without_md5)
    [notice] = select("pubmed:baseline", without_md5, []).notices
    assert "No .md5 is listed for pubmed31n0001.xml.gz, " in notice
    assert "pubmed31n0005.xml.gz (and 2 more)" in notice
    assert select("pubmed:baseline[8]", without_md5, []).notices == ()


@pytest.mark.parametrize("text", ["pubmed:baseline[5-]", "pubmed:baseline,since=2031-02-01"])
def test_empty_selection_is_an_error_that_describes_the_files(text: str) -> None:
    with pytest.raises(EmptySelectionError) as caught:
        select(text, BASELINE_FILES, UPDATE_FILES)
    assert str(caught.value) == (
        f"--input {text} selects no file. There are 4 files, pubmed31n0001.xml.gz to pubmed31n0004.xml.gz, "
        "modified from 2031-01-29 to 2031-01-29."
    )
    with pytest.raises(EmptySelectionError, match="No file is listed"):
        select("pubmed:", [], [])


def test_since_needs_dates() -> None:
    page = format_row("pubmed31n0001.xml.gz") + format_row("pubmed31n0002.xml.gz", "")
    undated = pubmed.parse_listing(page, PUBMED_URL, pubmed.BASELINE)
    with pytest.raises(ListingError, match=r"no date for https://\S+/pubmed31n0002\.xml\.gz"):
        select("pubmed:since=2031-01-01", undated, [])
    assert len(select("pubmed:[2]", undated, []).files) == 1


def make_paths(year: int, *file_numbers: int, folder: str = pubmed.BASELINE) -> list[str]:
    """Return the paths of files in the mirror."""
    return [file.path for file in list_pubmed_files(year, *file_numbers, folder=folder)]


UNANNOUNCED = pytest.mark.parametrize("readme", ["", "Files of 2030: pubmed30n0001 and others."])


@UNANNOUNCED
@pytest.mark.parametrize("text", ["pubmed:", "pubmed:baseline"])
def test_unannounced_baseline_does_not_replace_the_mirror(text: str, readme: str) -> None:
    mirrored = make_paths(30, 1, 2)
    later = list_pubmed_files(31, 9, folder=pubmed.UPDATES)
    with pytest.raises(ListingError) as caught:
        select(text, BASELINE_FILES, later, readme, mirrored)
    message = str(caught.value)
    assert "pubmed31 may be a part" in message
    assert "would replace the 2 files of pubmed30" in message
    assert "--allow-removals" in message
    selected = select(text, BASELINE_FILES, later, readme, mirrored, True)
    assert len(selected.files) >= 4
    assert "would replace the 2 files" in "".join(selected.notices)


@UNANNOUNCED
def test_updates_that_continue_the_numbers_confirm_the_baseline(readme: str) -> None:
    selected = select("pubmed:", BASELINE_FILES, UPDATE_FILES, readme, make_paths(30, 1, 2))
    assert len(selected.files) == 7
    assert "pubmed31 replaces pubmed30" in selected.notices[0]


@UNANNOUNCED
def test_unannounced_updates_do_not_replace_the_mirror(readme: str) -> None:
    mirrored = make_paths(30, 5, 6, 7, folder=pubmed.UPDATES)
    spec = "pubmed:updates"
    with pytest.raises(ListingError, match="would replace the 3 files of pubmed30"):
        select(spec, [], UPDATE_FILES, readme, mirrored)
    assert len(select(spec, [], UPDATE_FILES, README.format("0004"), mirrored).files) == 3
    assert len(select(spec, [], UPDATE_FILES, readme, make_paths(30, 1)).files) == 3


def test_baseline_of_a_later_year_than_the_readme_is_incomplete() -> None:
    readme = README.format("0003").replace("pubmed31", "pubmed30")
    with pytest.raises(ListingError, match=r"README\.txt still announces pubmed30"):
        select("pubmed:", BASELINE_FILES, [], readme)
    selected = select("pubmed:baseline[1]", BASELINE_FILES, [], readme)
    assert "still announces" in selected.notices[0]


def test_readme_is_not_needed_once_the_mirror_has_new_files() -> None:
    mirrored = [*make_paths(30, 1, 2), *make_paths(31, 1, 2, 3)]
    assert len(select("pubmed:", BASELINE_FILES, [], "", mirrored).files) == 4


def test_listing_of_an_earlier_year_than_the_mirror_is_out_of_date() -> None:
    with pytest.raises(ListingError, match="the mirror has 2 of pubmed32: it is out of date"):
        select("pubmed:", BASELINE_FILES, [], "", make_paths(32, 1, 2))


@pytest.mark.parametrize(
    ("text", "unlisted"),
    [
        ("pubmed:", ["baseline/pubmed31n0009", "updatefiles/pubmed31n0010"]),
        ("pubmed:baseline", ["baseline/pubmed31n0009"]),
        ("pubmed:updates", ["updatefiles/pubmed31n0010"]),
        ("pubmed:[1-99]", []),
    ],
)
def test_pubmed_files_that_the_listing_lost_stay(text: str, unlisted: list[str]) -> None:
    mirrored = [
        *make_paths(31, 1, 9),
        *make_paths(31, 5, 10, folder=pubmed.UPDATES),
        *make_paths(30, 7, folder=pubmed.UPDATES),
        "pubmed/baseline/notes.txt",
        "pubmed/baseline/pubmed31n0008.xml.gz.md5",
    ]
    selected = select(text, BASELINE_FILES, UPDATE_FILES, "", mirrored)
    assert list(selected.unlisted) == [f"pubmed/{path}.xml.gz" for path in unlisted]


# Selection of Europe PMC's packages

PACKAGES = europepmc.parse_listing(TABLE_PAGE, EUROPEPMC_URL)
TODAY = date(2031, 8, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("europepmc:", [9001, 20001, 100007]),
        ("europepmc:[1-20000]", [9001]),
        ("europepmc:[19990-20001]", [9001, 20001]),
        ("europepmc:[25000]", [20001]),
        ("europepmc:[30000-]", [20001, 100007]),
        ("europepmc:[-2:]", [20001, 100007]),
        ("europepmc:since=2031-07-25", [20001, 100007]),
    ],
)
def test_packages_are_selected_by_ids_position_or_date(text: str, expected: list[int]) -> None:
    selected = europepmc.select_files(parse_spec(text), PACKAGES, TODAY)
    assert [int(remote.name[3:].split("_")[0]) for remote in selected.files] == expected
    assert selected.notices == ()


def test_ids_between_packages_select_nothing() -> None:
    with pytest.raises(
        EmptySelectionError, match=r"There are 3 files, PMC9001_PMC19990\.xml\.gz to PMC100007"
    ):
        europepmc.select_files(parse_spec("europepmc:[19991-20000,40000-50000]"), PACKAGES, TODAY)


def test_outdated_packages_are_reported() -> None:
    assert europepmc.select_files(parse_spec("europepmc:"), PACKAGES, date(2031, 9, 8)).notices == ()
    [notice] = europepmc.select_files(parse_spec("europepmc:[1-20000]"), PACKAGES, date(2031, 9, 9)).notices
    assert "is of 2031-07-25, 46 days before 2031-09-09" in notice
    undated = europepmc.parse_listing(format_row("PMC1_PMC2.xml.gz", ""), EUROPEPMC_URL)
    assert europepmc.select_files(parse_spec("europepmc:"), undated, TODAY).notices == ()


@pytest.mark.parametrize(
    ("text", "unlisted"),
    [
        ("europepmc:", ["PMC1_PMC9000", "PMC30001_PMC40000"]),
        ("europepmc:[1-20000]", ["PMC1_PMC9000"]),
        ("europepmc:[-2:]", []),
        ("europepmc:since=2031-07-25", []),
    ],
)
def test_packages_that_the_listing_lost_stay(text: str, unlisted: list[str]) -> None:
    """A package of an overlapping range has another name now."""
    names = ("PMC1_PMC9000", "PMC9001_PMC19990", "PMC100007_PMC119000", "PMC30001_PMC40000", "PMC5_")
    mirrored = [f"europepmc/{name}.xml.gz" for name in names]
    selected = europepmc.select_files(parse_spec(text), PACKAGES, TODAY, mirrored)
    assert sorted(selected.unlisted) == sorted(f"europepmc/{name}.xml.gz" for name in unlisted)


# Incomplete pages


@pytest.mark.parametrize("page", [TEXT_PAGE, TABLE_PAGE, TEXT_PAGE.upper(), format_row("a") * 2, ""])
def test_page_with_its_end_is_complete(page: str) -> None:
    assert is_complete(page)


@pytest.mark.parametrize("page", [TEXT_PAGE, TABLE_PAGE])
def test_page_that_is_cut_in_its_rows_is_incomplete(page: str) -> None:
    end = page.rindex("</pre" if "</pre" in page else "</table")
    for length in range(page.index("<a "), end + 5):
        assert not is_complete(page[:length])


def test_page_without_html_tags_is_complete_with_its_container() -> None:
    assert is_complete(f"<pre>{format_row('a')}</pre>")
    assert is_complete(f"<html><body><table>{format_row('a')}</table><p>By a server")
    assert not is_complete(f"<table></table><table>{format_row('a')}")
    assert not is_complete(f"<html><body>{format_row('a')}")
