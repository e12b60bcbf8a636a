"""The servers' listings: what is taken from them, what is passed over, and what the user is told.

All that is downloaded hangs on these pages.  They are made by others, change without notice, and must
not be able to name any file but the source's own.
"""

from __future__ import annotations

import time
from datetime import date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download import europepmc, pubmed
from bioshards.corpus.download.listing import EmptySelectionError, ListingError, SelectedFiles, parse_links
from bioshards.corpus.download.source_parser import parse_source_spec
from bioshards.corpus.download.source_spec import SourceSpec

PROFILE = settings(derandomize=True, deadline=None, database=None)

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


def row(name: str, words: str = "2031-01-29 14:02   19M") -> str:
    return f'<a href="{name}">{name}</a>   {words}\n'


def files(
    year: int, *numbers: int, folder: str = pubmed.BASELINE, day: str = "2031-01-29"
) -> list[pubmed.ListedFile]:
    """Listed files with their sidecars."""
    names = [f"pubmed{year}n{number:04d}.xml.gz" for number in numbers]
    page = "".join(row(f"{name}{end}", f"{day} 14:02 19M") for name in names for end in ("", ".md5"))
    return pubmed.parse_listing(page, pubmed.URL, folder)


def name(text: str) -> SourceSpec:
    read = parse_source_spec(text)
    assert read is not None
    return read


def numbers(chosen: SelectedFiles) -> list[str]:
    return [remote.name.removeprefix("pubmed").removesuffix(".xml.gz") for remote in chosen.files]


# Pages


def test_nlms_page_gives_its_files_in_their_order() -> None:
    first, second = pubmed.parse_listing(TEXT_PAGE, pubmed.URL, pubmed.BASELINE)
    assert (first.year, first.number, first.has_md5_file) == (31, 1, True)
    assert first.remote_file.url == "https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/pubmed31n0001.xml.gz"
    assert first.remote_file.path == "pubmed/baseline/pubmed31n0001.xml.gz"
    assert (first.remote_file.root_name, first.remote_file.has_md5_file) == ("PubmedArticleSet", True)
    assert first.remote_file.modified_at == datetime(2031, 1, 29, 14, 2)
    assert first.remote_file.size == 1.5 * 1024**2
    assert first.remote_file.listing_text == "2031-01-29 14:02 1.5M; 2031-01-29 14:02 60"
    assert second.number == 2
    assert second.remote_file.size == 17 * 1024**2
    assert second.remote_file.listing_text == "2031-01-29 14:03 17M; 2031-01-29 14:04 60"


def test_europe_pmcs_page_gives_its_packages_in_the_order_of_ids() -> None:
    packages = europepmc.parse_listing(TABLE_PAGE, europepmc.URL)
    assert [(package.first_pmcid, package.last_pmcid) for package in packages] == [
        (9001, 19990),
        (20001, 30000),
        (100007, 120000),
    ]
    remote = packages[0].remote_file
    assert remote.url == "https://ftp.ebi.ac.uk/pub/databases/pmc/oa/PMC9001_PMC19990.xml.gz"
    assert remote.path == "europepmc/PMC9001_PMC19990.xml.gz"
    assert (remote.root_name, remote.has_md5_file) == ("articles", False)
    assert (remote.listing_text, remote.modified_at) == (
        "2031-07-18 03:10 1.1M",
        datetime(2031, 7, 18, 3, 10),
    )
    assert remote.size == int(1.1 * 1024**2)


def test_an_address_of_a_mirror_is_the_one_that_is_used() -> None:
    [file] = pubmed.parse_listing(
        row("pubmed31n0001.xml.gz"), "http://127.0.0.1:8000/pubmed/", pubmed.UPDATES
    )
    assert file.remote_file.url == "http://127.0.0.1:8000/pubmed/updatefiles/pubmed31n0001.xml.gz"
    assert file.remote_file.path == "pubmed/updatefiles/pubmed31n0001.xml.gz"


@pytest.mark.parametrize(
    ("row_", "changed", "size", "words"),
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
def test_dates_and_sizes_may_have_another_form_or_be_missing(
    row_: str, changed: datetime | None, size: int, words: str
) -> None:
    for page in (row("a", row_), f"<A class='x' HREF='a'>a {row_}", f'<a href="a">a</a>{row_}' + row("b")):
        link = next(parse_links(page))
        assert link == ("a", changed, size, words)


@pytest.mark.parametrize(
    "address",
    [
        *(
            "../pubmed31n0001.xml.gz",
            "/pubmed31n0001.xml.gz",
            "./pubmed31n0001.xml.gz",
            "x/pubmed31n0001.xml.gz",
        ),
        *("https://elsewhere.example/pubmed31n0001.xml.gz", "//elsewhere.example/pubmed31n0001.xml.gz"),
        *("javascript:pubmed31n0001.xml.gz", "file:pubmed31n0001.xml.gz", "pubmed31n0001.xml.gz?x=1"),
        *("pubmed31n0001.xml.gz#x", "PUBMED31N0001.XML.GZ", "pubmed31n0001.xml.GZ", "pubmed31n0001%2exml.gz"),
        *(
            "pubmed31n0001.xml.gz%00",
            "..%2fpubmed31n0001.xml.gz",
            "pubmed31n0001.xml.gz.",
            "xpubmed31n0001.xml.gz",
        ),
        *("pubmed31n001.xml.gz", "pubmed31n1234567.xml.gz", "pubmed2031n0001.xml.gz", "pubmed31n٠٠٠١.xml.gz"),
        *(
            "pubmed31n0001.xml.gz\\",
            "pubmed31n0001.xml",
            "pubmed31n0001.xml.gz.md5",
            "pubmed31n0001&#46;xml.gz",
        ),
        *("pubmed31n0001.xml.gz\n", " pubmed31n0001.xml.gz", "pubmed31n0001_xml.gz", "PMC1_PMC2.xml.gz"),
    ],
)
def test_only_whole_names_are_taken(address: str) -> None:
    taken = pubmed.parse_listing(row(address) + row("pubmed31n0777.xml.gz"), pubmed.URL, pubmed.BASELINE)
    assert [file.number for file in taken] == [777]


@pytest.mark.parametrize(
    "around",
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
def test_names_that_are_not_links_are_passed_over(around: str) -> None:
    page = (
        row("pubmed31n0777.xml.gz") + around.format(name="pubmed31n0001.xml.gz") + row("pubmed31n0778.xml.gz")
    )
    taken = pubmed.parse_listing(page, pubmed.URL, pubmed.BASELINE)
    assert [file.number for file in taken] == [777, 778]


def test_a_repeated_name_counts_once() -> None:
    page = row("pubmed31n0001.xml.gz") + row("pubmed31n0001.xml.gz", "2031-02-01 00:00 20M")
    [file] = pubmed.parse_listing(page, pubmed.URL, pubmed.BASELINE)
    assert file.remote_file.listing_text == "2031-01-29 14:02 19M"
    [package] = europepmc.parse_listing(row("PMC1_PMC2.xml.gz") * 3, europepmc.URL)
    assert package.last_pmcid == 2


def test_unclosed_tags_do_not_hide_what_follows() -> None:
    page = (
        '<table><tr><td><a href="pubmed31n0001.xml.gz">x<td>2031-01-29 14:02<td>19M'
        '<tr><a href="pubmed31n0002.xml.gz"'
    )
    first, second = pubmed.parse_listing(page, pubmed.URL, pubmed.BASELINE)
    assert first.remote_file.listing_text == "2031-01-29 14:02 19M"
    assert second.remote_file.listing_text == ""


@pytest.mark.parametrize("page", ["", "<html>503 <b>busy</b>\x1b[2J" + "x" * 999, row("other"), TABLE_PAGE])
def test_a_page_without_files_is_an_error_that_says_where_and_what_to_mend(page: str) -> None:
    with pytest.raises(ListingError) as caught:
        pubmed.parse_listing(page, pubmed.URL, pubmed.UPDATES)
    message = str(caught.value)
    assert "https://ftp.ncbi.nlm.nih.gov/pubmed/updatefiles/ lists no PubMed file" in message
    assert "corpus/download/pubmed.py" in message
    assert message.endswith(f"{page[:200]!r}")
    with pytest.raises(ListingError, match=r"pub/databases/pmc/oa/ lists no package .*europepmc\.py"):
        europepmc.parse_listing(TEXT_PAGE, europepmc.URL)


# Hostile pages

PIECES = [
    *('<a href="', '">', "</a>", "<!--", "-->", "<script>", "</script>", "../", "https://x.example/", "<td>"),
    *(
        '<a href="pubmed31n0001.xml.gz',
        '<a href="../pubmed31n0001.xml.gz',
        "pubmed31n0001",
        ".xml.gz",
        ".md5",
    ),
    *("2031-01-29 14:02", " 19M", "\n", "'", '"', "\x00", "é", " "),
]


@settings(PROFILE, max_examples=300)
@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
def test_whatever_the_page_the_addresses_are_ours(page: str) -> None:
    try:
        taken = pubmed.parse_listing(page, pubmed.URL, pubmed.BASELINE)
    except ListingError:
        return
    assert [file.remote_file.url for file in taken] == [f"{pubmed.URL}baseline/pubmed31n0001.xml.gz"]


def seconds(page: str) -> float:
    begin = time.process_time()
    for _ in parse_links(page):
        pass
    return time.process_time() - begin


@pytest.mark.parametrize(
    "piece",
    [
        *(
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
        ),
        *(
            '<a href="pubmed31n0001.xml.gz"',
            "<a href='x'>2031-01-29 14:02 ",
            "&nbsp;",
            "<a href='x'><td>",
            "é",
        ),
        *("<a href='x'>2031-01-29 14:02" + "<td>" * 90 + "9", "<a href='x'>2031-01-29 14:02" + "9" * 300),
    ],
)
def test_a_megabyte_of_garbage_is_read_in_no_time(piece: str) -> None:
    assert seconds(piece * (2**20 // len(piece))) < 1
    assert seconds('<a href="x">2031-01-29 14:02' + piece * (2**20 // len(piece))) < 1


def test_ten_times_the_rows_take_ten_times_as_long_and_not_a_hundred() -> None:
    def seconds_of(files: int) -> float:
        names = (f"pubmed31n{number:06d}.xml.gz{end}" for number in range(files) for end in ("", ".md5"))
        page = "".join(map(row, names))
        begin = time.process_time()
        assert len(pubmed.parse_listing(page, pubmed.URL, pubmed.BASELINE)) == files
        return time.process_time() - begin

    assert seconds_of(50_000) < 40 * min(seconds_of(5_000) for _ in range(3))


# Choosing among PubMed's files

BASE = files(31, 1, 2, 3, 4)
LATER = [
    *files(31, 5, 6, folder=pubmed.UPDATES, day="2031-02-01"),
    *files(31, 7, folder=pubmed.UPDATES, day="2031-02-02"),
]


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
def test_a_selection_gives_its_files_in_nlms_order(text: str, expected: list[int]) -> None:
    chosen = pubmed.select_files(name(text), BASE, LATER)
    assert numbers(chosen) == [f"31n{number:04d}" for number in expected]
    assert chosen.notices == ()
    assert [remote.path.split("/")[1] for remote in chosen.files] == [
        "baseline" if number < 5 else "updatefiles" for number in expected
    ]


def test_a_part_that_is_not_asked_for_need_not_be_listed() -> None:
    assert len(pubmed.select_files(name("pubmed:baseline"), BASE, []).files) == 4
    assert pubmed.select_files(name("pubmed:updates"), [], LATER) == pubmed.select_files(
        name("pubmed:updates"), BASE, LATER
    )


def test_the_newest_baseline_says_which_year_and_the_others_are_left_out() -> None:
    baseline = [*files(30, 1, 2, 3), *BASE]
    updates = [*files(30, 4, 5, folder=pubmed.UPDATES), *LATER, *files(32, 9, folder=pubmed.UPDATES)]
    chosen = pubmed.select_files(name("pubmed:"), baseline, updates)
    assert numbers(chosen) == [f"31n{number:04d}" for number in range(1, 8)]
    in_baseline, older, newer = chosen.notices
    assert "pubmed/baseline/ still lists 3 file(s) of another year, pubmed30" in in_baseline
    assert "pubmed/updatefiles/ still lists 2 file(s) of another year, pubmed30" in older
    assert "pubmed31, includes all of last year's updates" in older
    assert "pubmed/updatefiles/ lists 1 file(s) of a later year, pubmed32" in newer
    assert numbers(pubmed.select_files(name("pubmed:updates"), [], updates)) == ["32n0009"]


def test_gaps_in_the_numbers_are_said_whatever_is_selected() -> None:
    baseline = files(31, 2, 3, 5, 9, 10)
    updates = files(31, 12, 13, 15, folder=pubmed.UPDATES)
    chosen = pubmed.select_files(name("pubmed:[10]"), baseline, updates)
    assert numbers(chosen) == ["31n0010"]
    in_baseline, in_updates = chosen.notices
    assert (
        "pubmed/baseline/ has no pubmed31n0001, pubmed31n0004, pubmed31n0006 to pubmed31n0008: 5 file(s) "
        "before pubmed31n0010" in in_baseline
    )
    assert "pubmed/updatefiles/ has no pubmed31n0011, pubmed31n0014: 2 file(s)" in in_updates
    assert pubmed.select_files(name("pubmed:updates"), [], updates).notices[0].count("pubmed31n00") == 2


def test_many_gaps_are_counted_not_listed() -> None:
    [notice] = pubmed.select_files(name("pubmed:baseline"), files(31, *range(1, 999, 2)), []).notices
    assert notice.count(",") == 4
    assert "and 493 more gaps: 498 file(s)" in notice


README = "The complete baseline consists of files pubmed31n0001.xml through pubmed31n{0}.xml. It is ..."


def test_a_baseline_that_ends_before_its_readme_says_is_still_being_posted() -> None:
    updates = files(31, 7, 8, folder=pubmed.UPDATES)
    with pytest.raises(ListingError, match="still being posted") as refused:
        pubmed.select_files(name("pubmed:"), BASE, updates, README.format("0006"))
    assert "ends with pubmed31n0004" in str(refused.value)
    assert "goes to pubmed31n0006" in str(refused.value)
    selected = pubmed.select_files(name("pubmed:baseline[1-2]"), BASE, updates, README.format("0006"))
    assert "still being posted" in selected.notices[0]
    assert pubmed.select_files(name("pubmed:"), BASE, LATER, README.format("0004")).notices == ()


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
def test_a_readme_that_says_nothing_of_this_baseline_changes_nothing(readme: str) -> None:
    assert pubmed.select_files(name("pubmed:"), BASE, LATER, readme).notices == ()


def test_a_missing_sidecar_is_said_of_the_files_that_are_fetched() -> None:
    page = "".join(row(f"pubmed31n{number:04d}.xml.gz") for number in range(1, 9))
    bare = pubmed.parse_listing(page + row("pubmed31n0008.xml.gz.md5"), pubmed.URL, pubmed.BASELINE)
    assert all(file.remote_file.has_md5_file for file in bare)
    [notice] = pubmed.select_files(name("pubmed:baseline"), bare, []).notices
    assert "No .md5 is listed for pubmed31n0001.xml.gz, " in notice
    assert "pubmed31n0005.xml.gz and 2 more" in notice
    assert pubmed.select_files(name("pubmed:baseline[8]"), bare, []).notices == ()


@pytest.mark.parametrize("text", ["pubmed:baseline[5-]", "pubmed:baseline,since=2031-02-01"])
def test_a_selection_of_nothing_is_an_error_that_says_what_there_is(text: str) -> None:
    with pytest.raises(EmptySelectionError) as caught:
        pubmed.select_files(name(text), BASE, LATER)
    assert str(caught.value) == (
        f"--input {text} selects no file. There are 4 files, pubmed31n0001.xml.gz to pubmed31n0004.xml.gz, "
        "modified from 2031-01-29 to 2031-01-29."
    )
    with pytest.raises(EmptySelectionError, match="No file is listed"):
        pubmed.select_files(name("pubmed:"), [], [])


def test_since_needs_dates() -> None:
    page = row("pubmed31n0001.xml.gz") + row("pubmed31n0002.xml.gz", "")
    undated = pubmed.parse_listing(page, pubmed.URL, pubmed.BASELINE)
    with pytest.raises(ListingError, match=r"no date for https://\S+/pubmed31n0002\.xml\.gz"):
        pubmed.select_files(name("pubmed:since=2031-01-01"), undated, [])
    assert len(pubmed.select_files(name("pubmed:[2]"), undated, []).files) == 1


# Choosing among Europe PMC's packages

PACKAGES = europepmc.parse_listing(TABLE_PAGE, europepmc.URL)
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
def test_packages_are_chosen_by_ids_place_or_date(text: str, expected: list[int]) -> None:
    chosen = europepmc.select_files(name(text), PACKAGES, TODAY)
    assert [int(remote.name[3:].split("_")[0]) for remote in chosen.files] == expected
    assert chosen.notices == ()


def test_ids_between_packages_select_nothing() -> None:
    with pytest.raises(
        EmptySelectionError, match=r"There are 3 files, PMC9001_PMC19990\.xml\.gz to PMC100007"
    ):
        europepmc.select_files(name("europepmc:[19991-20000,40000-50000]"), PACKAGES, TODAY)


def test_packages_that_are_not_refreshed_any_more_are_noticed() -> None:
    assert europepmc.select_files(name("europepmc:"), PACKAGES, date(2031, 9, 8)).notices == ()
    [notice] = europepmc.select_files(name("europepmc:[1-20000]"), PACKAGES, date(2031, 9, 9)).notices
    assert "is of 2031-07-25, 46 days before 2031-09-09" in notice
    undated = europepmc.parse_listing(row("PMC1_PMC2.xml.gz", ""), europepmc.URL)
    assert europepmc.select_files(name("europepmc:"), undated, TODAY).notices == ()
