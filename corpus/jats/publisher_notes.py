"""Recognise what a publisher adds to the text of an article: how to cite it, its licence, where files are.

A note is a whole sentence with the wording of such notes. Those at the end of a paragraph are cut, also if
they are all of it; one that prose follows stays. Losing a sentence of the article is worse than keeping a
note.
"""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

from bioshards.corpus.sentences import spans
from bioshards.corpus.text import notices

_FLAGS: Final = re.VERBOSE | re.IGNORECASE
_LINK: Final = r"(?: https?:// | www\. | doi | \b10\.\d{4} )"
_SUPPLEMENT: Final = r"""
    (?: (?: additional | electronic | online ) \s )? (?: supplementa (?:l|ry) | supporting ) \s
    (?: data | digital \s content | files? | figures? | information | materials? | movies? | tables?
      | videos? )
    (?: ,? \s (?: and | & ) \s \w+ | \s \( [^()]{1,30} \) | \s s?\d{1,2} (?= \s related ) )?
"""
_SUPPLEMENT_TITLE = re.compile(
    r".{0,300}?\b(?:appendix|data|file|fig(?:ure|\.)?|movie|table|video)s?\sS?\d", re.IGNORECASE
)
"""Titles of supplements, which are text: "available online: Table S1: Primers"."""

_LICENCE = re.compile(
    r"""
    (?: open \s access [:.]? \s )? (?: © .{0,99} \s )?
      this (?: \s is \s an? | (?: \s \w+ )? \s (?: article | manuscript | paper | publication | work ) \s
               (?: is | was | has \s been ) (?: \s an? )? ) \s
      (?: open [- ] access \s (?: article | journal ) | (?: made \s )? available | distributed | licen[cs]ed
        | protected \s by \s copyright | published ) \b
      .{0,300} (?: copyright | creative \s commons | licen[cs]e | cc [- ] by | open [- ] access )
  | open [- ] access \.? $
  | to \s view \s a \s copy \s of \s this \s licen[cs]e
  | the \s images \s or \s other \s third [- ] party \s material \s in \s this \s article
  | if \s (?: the \s )? material \s is \s not \s included \s (?: in | under ) \s the
  | the \s creative \s commons \s public \s domain \s dedication \s waiver
  | the \s use, \s distribution \s (?: and | or ) \s reproduction \s in \s other \s forums
  | no \s use, \s distribution \s or \s reproduction \s is \s permitted
  | permission \s is \s granted \s subject \s to \s the \s terms \s of \s the \s licen[cs]e
  | please \s check \s the \s licen[cs]e \s for
  | non-? commercial \s uses? \s of \s the \s (?: article | work ) \s (?: are | is ) \s permitted
  | by \s accessing \s the \s work \s you \s hereby \s accept \s the \s terms
  | the \s data \s referenced \s by \s this \s article \s are \s under \s copyright
  | the \s full \s terms \s of \s this \s licen[cs]e \s are
  | this \s licen[cs]e \s (?: allows | lets | permits | requires ) \b
  | this \s article \s is \s made \s available \s via \s the \s .{1,40} \s subset \b
  | this \s work \s may \s not \s be \s copied, \s distributed
  | by \s downloading \s this \s file, \s you \s are \s agreeing \s to \s the \s publisher
  | these \s permissions \s are \s granted \s for \s the \s duration \s of \b
  | see :? \s https?://creativecommons\.org/
  | for \s (?: commercial \s re-?use | reprints? | permissions? | reprints? \s and \s permissions? )
      (?: \s queries | \s requests )? ,? \s (?: please \s )? (?: contact | e-?mail | see | visit ) \b
  | article \s reuse \s guidelines
  | authors \s agree \s to \s the \s terms \s of \s the \s springer \s open
  | the \s corresponding \s author \s has \s the \s right \s to \s grant \s on \s behalf \s of \s all
  | asm \s does \s not \s own \s the \s copyrights \s to \s supplemental
  | the \s authors \s have \s granted \s asm \s an? \s .{1,30} \s licen[cs]e
  | deposited \s in \s pmc \s for \s (?: immediate \s release | release \s after \b .{1,20} ) \W* $
  | this \s work \s is \s published \s under \s the \s standard \s licen[cs]e \s to \s publish
  | after \s \S{1,6} \s months \s (?: it | the \s work ) \s (?: is | will ) \b .{1,200} \b creative \s commons
  | please \s contact \s the \s corresponding \s author \s directly \s for \s reuse \W* $
  | the \s united \s states \s government \s retains \s and \s the \s publisher, \s by \s accepting
  | for \s the \s purposes? \s of \s open \s access, \s the \s authors? (?: \(s\) )?
      \s ha (?: s | ve ) \s applied \s an? \s (?: creative \s commons | cc [- ] by )
  | reprints? \s and \s permissions? (?: \s information )? \s (?: is | are ) \s available
  | (?: re (?: printed | produced | published ) (?: \s and \s \w+ (?: \s \w+ )? )? | used ) \s
      (?: with | by ) \s (?: (?: kind | the ) \s )? permission \b
  | re (?: printed | produced | published ) \s (?: in \s part \s )? from \s .{1,160}
      \b (?: permission | copyright | licen[cs]e | cc [- ] by )
  | original \s source: \s .{1,200} \b (?: permission | copyright | licen[cs]e | cc [- ] by )
    """,
    re.VERBOSE,
)
_PUBLISHER = re.compile(
    r"""
    (?: (?: disclaimer / )? publisher['’]?s \s (?: disclaimer | note ) \W* )?
    (?: (?: springer \s nature | mdpi | the \s publisher | the \s new \s phytologist \s foundation )
        \s (?: remains | stays ) \s neutral \s with \s regard
      | the \s statements, \s opinions \s and \s data \s contained \s in \s all \s publications
      | mdpi \s and/or \s the \s editors?
      | all \s claims \s expressed \s in \s this \s article \s are \s solely
      | any \s product \s that \s may \s be \s evaluated \s in \s this \s article
      | (?: please \s note :? \s )? (?: the \s publishers? | wiley (?: [ -] \w+ )? ) \s (?: is | are ) \s not
        \s responsible \s for \s the \s content
      | any \s queries \s \( other \s than \s missing
      | as \s a \s service \s to \s our \s (?: authors | customers )
      | such \s materials \s are \s peer \s reviewed \s and \s may \s be
      | technical \s support \s issues \s arising \s from \s supporting
      | this \s is \s a \s pdf \s file \s of \s an \s unedited \s manuscript
      | the \s manuscript \s will \s undergo \s copy-? \s? editing
      | please \s note \s that ,? \s during \s the \s production \s process
      | this \s article \s has \s been \s published \s as \s part \s of \s .{1,80} \s volume \s \d
      | the \s (?: opinions | views ) \s expressed \s in \s this \s
        (?: article | comment | commentary | editorial )
        \s do \s not \s necessarily \s (?: reflect | represent ) \s the \s (?: opinions | views ) \s of \s
        (?: the | this ) \s (?: journal | publisher )
      | the \s full \s contents \s of \s the \s supplement \s (?: are | will \s be ) \s available
      | no \s additional \s information \s is \s available \s for \s this \s (?: article | paper )
      | the \s costs? \s of \s publication \s of \s this \s article \s (?: was | were ) \s defrayed
      | the \s original \s version \s of \s this \s article \s (?: has \s been | was ) \s
        (?: corrected | revised (?= : ) | updated ) \b (?: : .{1,300} | \W* ) $
      | open \s access \s publishing \s facilitated \s by \s .{1,160} \s agreement \W* $
      | (?: the | this ) \s article \s must \s therefore \s be \s hereby \s marked
      | section \s 1734 \s solely \s to \s indicate
      | a \s slide \s set \s summarizing \s this \s article \s is \s available
      | this \s online \s publication \s has \s been \s corrected \W* $
      | the \s corrected \s version \s first \s appeared \s at \s
      | the \s opinions \s expressed \s by \s authors \s contributing \s to \s this \s journal
      | use \s of \s trade \s names \s is \s for \s identification \s only
      | a \s previous \s version \s of \s this \s article \s appeared \s as \s an \s early \s online
      | the \s (?: raw \s )? data \s for \s .{1,30} \s (?: has | have ) \s been \s added \s in \s this
        \s version \W* $
      | a \s list \s of \s authors \s and \s their \s affiliations \s appears \s at \s the \s end
      | correspondence \s and \s requests \s for \s materials \s should \s be \s \w{5,8}ed \s to
      | (?: \* \s )? \[ correction \s added \s on \s .{5,30} \s after \s (?: first \s )? online \s publication
      | the \s lancet \s group \s takes \s a \s neutral \s position
      | this \s paper \s was \s submitted \s via \s the \s \S{1,20} \s pathway
      | go \s to \s \S{2,30} \. \S{2,20} \s for \s full \s disclosures?
      | funding \s information \s and \s disclosures \b .{0,60} \b provided \s at \s the \s end \s of \s the
      | (?: disclosures: \s )? disclosures \s can \s be \s viewed \s at \s \S+ $
      | full \s text \s available \s through \s open \s access \s at \s \S+ $
      | contribute \s and \s read \s comments \s about \s this \s article: \s \S+ $
      | to \s view \s enhanced \s content \s for \s this \s article
      | high [ -] quality \s figures \s are \s available \s online \W* $
      | see \s page \s \d{1,5} \s for \s the \s editorial \s comment \s on \s this \s article
        (?: \s \( doi: \S+ )? \W* $
      | this \s is \s a \s plos \s [a-z\s]{3,40} \s paper \W* $
      | authors?['’]? \s (?: contributions | disclosures \s of \s potential \s conflicts ) \b .{0,60}
        \s are \s found \s (?: at \s the \s end \s of | in ) \s (?: the | this ) \s article \b
      | disclosures \s provided \s by \s the \s authors \s are \s available \s with \s this \s article
      | previously \s published \s online: \s \S+ $
      | the \s online \s version \s of \s the \s original \s article \s can \s be \s found \s
        (?: at | under ) \b
      | this \s article \s is \s a \s contribution \s to \s the \s special \s issue \s on \s
      | this \s article \s is \s part \s of \s (?: an? | the ) \s
          (?: special | themed? | thematic | topical | virtual ) \s
          (?: collection | issue | section | series ) \b
      | this \s is \s an \s editor['’]s \s choice \s article \s from \s the \s
      | although \s pnas \s asks \s authors \s to \s adhere \s to
      | this \s figure \s appears \s in \s colou?r \s at \s www\.
      | conflicts \s that \s the \s editors \s consider \s relevant \s to \s the \s content
      | consisting \s of \s data \s provided \s by \s the \s authors? \s to \s benefit \s the \s reader
      | the \s specific \s roles \s of \s these \s authors \s are \s articulated \s in \s the
      | this \s review \s comes \s from \s a \s themed \s issue \s on
      | for \s a \s complete \s overview \s see \s the \s issue \s and \s the \s editorial \W* $
      | available \s online \s \d{1,2} (?: st | nd | rd | th )? \s [a-z]{3,9} \s (?: 19 | 20 )\d\d \W* $
      | published \s by \s elsevier \b .{0,20} $
      | see \s related \s (?: article | commentar(?:y|ies) | editorial | research ) s? \b .{0,80} $
      | (?: the \s content \s published \s in | all \s content \s published \s within
          | additionally, \s articles \s published \s within ) \s cureus \b
      | cureus \s is \s not \s responsible \b
      | do \s not \s disregard \s or \s avoid \s professional \s medical \s advice \s due \s to \s content
      | papers \s of \s particular \s interest, \s published \s within \s the \s period \s of \s review,?
        \s have \s been \s highlighted \s as \W* $ )
    """,
    re.VERBOSE,
)
_REVIEW = re.compile(
    r"""
    (?: journal \s )? peer \s review \s information \b .{0,99} \s thanks? \s
  | peer (?: \s review (?: er )? )? \s reports? \s (?: is | are ) \s available \W* $
  | to \s view \s the \s open \s peer \s review \s materials \s for \s this \s article
  | a \s (?: transparent \s )? peer \s review \s file \s is \s available \W* $
  | provenance (?: \s and \s peer \s review )? \W+ (?: not \s )? commissioned \b
  | (?: peer [ -] review \W+ )? externally \s peer [ -] reviewed \W* $
  | (?: (?: not \s )? commissioned | freely \s submitted ) [;,] \s
      (?: not \s )? (?: externally | internally ) \s peer
  | the \s (?: reviewers? | handling \s editor ) \b .{0,120} \s declared \b .{0,160}
      \b (?: affiliations? | co-?authorship | collaborations? ) \b
  | an? \s (?: amendment | correction | erratum ) \s to \s this \s (?: article | paper ) \s
      (?: is | has | can \s be )
  | this \s article \s was \s submitted \s to \s .{1,80} \s section \s of
  | this \s article \s is \s a \s pnas \s direct \s submission
  | peer \s review \s under \s (?: the \s )? responsibility \s of \s
  | peer \s review \W+ (?: \w+ \s ){1,2} peer \s reviewers \s contributed \s to \s the \s peer \s review
  | this \s article \s was \s subject \s to \s blind, \s independent, \s expert \s peer \s review
  | the \s review \s history \s is \s available \s as \s additional \s file \s \d
  | this \s article \s is \s part \s of \s our \s transparent \s peer [- ] review \s trial
  | the \s reviewers \s reported \s no \s competing \s interests \W* $
  | reviewers['’] \s reports \s totall?ed \s \d
  | this \s article \s has \s been \s reviewed \s? / \s? commented \s by \s
  | (?: \[ \s? )? editorial \s note: \s this \s article \s has \s been \s through \s an \s editorial
  | the \s reviewing \s editor['’]s \s assessment \s is \s that \s
  | (?: \S{1,99} \s )? is \s a \s guest \s editor \s invited \s by \s the \s editorial \s board \W* $
    """,
    re.VERBOSE,
)
_SUPPLEMENT_NOTE = re.compile(
    rf"""
    (?: note: \s )?
    (?: (?: the \s )? {_SUPPLEMENT} \s
        (?: (?: is | are ) \s linked \s to \s the \s online
          | accompan (?:y|ies) \s (?: this | the ) \s (?: article | paper )
          | (?: associated \s with | for | related \s to | to ) \s this \s (?: article | paper | work ) \b
            .{{0,99}} \b (?: available | found | accessed ) \b
          | (?: (?: is | are ) \s )? available \s
            (?: free \s of \s charge | online | (?: at | from | in | on | via ) \s .{{0,120}}
              (?: {_LINK} | \b online | \b website | \b iucr \s electronic ) )
          | (?: are | is ) \s available \W* $
          | is \s available \s through \s direct \s url \s citations
          | (?: \(\w{{1,4}}\) \s )? (?: are | is ) \s provided \s (?: as | in ) \s .{{1,40}} \s files? \W* $
          | (?: can | may ) \s be \s (?: accessed | found | viewed ) \s
            (?: .{{0,80}} \b online | (?: at | on | via ) :? \s .{{0,80}} {_LINK} ) )
      | this \s (?: article | paper ) \s contains \s (?: online \s )? (?: supplementa (?:l|ry) | supporting )
      | the \s additional \s files? \s for \s this \s article \s can \s be \s found \s as \s follows
      | this \s materials? \s (?: is | are ) \s available \s free \s of \s charge
      | the \s on-?line \s version \s (?: of \s this \s (?: article | paper ) \b .{{0,160}} )? \s? contains \s
        (?: a \s supplement \b | (?: peer-reviewed \s but \s unedited \s )? supplementa (?:l|ry) )
      | supplementa (?:l|ry) \s materials \s consist \s of \s data \s provided \s by \s the \s authors?
      | the \s posted \s materials \s are \s not \s copyedited
      | the \s contents \s of \s all \s supplementa (?:l|ry) \s data \s are \s the \s sole
      | questions \s or \s messages \s regarding \s errors \s should \s be \s addressed \s to \s the \s author
      | electronic \s supplementary \s (?: information | material ) \W+ the \s online \s version
      | the \s following \s (?: materials? \s )? (?: is | are ) \s available \s online
        (?: \s at :? \s \S+ )? \W* $
      | any \s methods, \s additional \s references, \s nature \s (?: portfolio | research ) \s reporting
      | an? \s (?: life \s sciences \s )? reporting \s summary \s for \s this \s (?: article | paper ) \s is
        \s available
      | (?: please \s )? click \s here \s (?: for \s (?: additional | supplementa )
        | to \s (?: access | download | see | view ) \s (?: an? | other | the ) )
      | supplementa (?:l|ry) \s data \s at \s \S{{5,40}} $
      | the \s online- \s? only \s data \s supplement \s is \s available \s with \s this \s article
      | (?: additional \s )? online \s content \s is \s viewable \s at \b
      | is \s available \s for \s this \s paper \s at \s \S+ $
      | supplemental \s digital \s content \s is \s available \s for \s this \s article \W* $
      | the \s following \s online \s material \s is \s available \s for \s this \s article \W* $
      | this \s material \s is \s available \s as \s part \s of \s the \s online \s article
      | (?: supplementary \s (?: information | pdf \s file ) | extra \s material ) \s supplied \s by \s
        (?: the \s )? authors? \W* $
      | source \s data \s are \s available \s (?: online \s )? for \s this \s figure
      | check \s the \s online \s version \s for \s the \s most \s updated \s information \s on
        \s this \s article
      | further \s information \s on \s (?: experimental | research ) \s design \s is \s available
        \s in \s the \s nature )
    """,
    re.VERBOSE,
)
_SUPPLEMENT_LEAD = re.compile(
    rf"""
    (?: the \s following (?: \s supporting \s information )? | {_SUPPLEMENT} ) \s
    (?: (?: is | are ) \s available (?: \s online )? | can \s be \s (?: accessed | downloaded | found ) )
    (?: \s at :? \s (?: https?:// | www\. ) \S+ | [.,:] ) \s
    (?= (?: supplementa (?:l|ry) \s )? (?: appendix | data (?: set )? | file | fig (?: ure | \. )? | movie
        | table | video ) s? \s? S?\d )
    """,
    _FLAGS,
)
"""Before titles of supplements, which are text: "The following are available at URL, Table S1: Primers"."""
_LEAD_STARTS: Final = ("The following ", "Supplement", "Supporting ", "Additional ", "Electronic ", "Online ")
_SENTENCE_KINDS: Final = (
    ("licence-note", _LICENCE.match),
    ("publisher-note", _PUBLISHER.match),
    ("review-note", _REVIEW.match),
    ("supplement-note", _SUPPLEMENT_NOTE.match),
)
"""Patterns in small letters: where case counts, most alternatives are passed over by their first letter."""
_COPYRIGHT = re.compile(
    r"(?:[\d/-]{0,12}|\[?copyright:?\s)"
    r"(?:©(?=\d)|(?:©|copyright|\(c\)(?=\s(?:(?:19|20)\d\d|the\sauthor|copyright)))\s)",
    re.IGNORECASE,
)
"""A panel of a figure begins with "(c)" too: "(c) Controls."."""
_RIGHTS = re.compile(r"(?:all|some) rights reserved\.?", re.IGNORECASE)
_OWN_CITATION = re.compile(
    r"(?:How to cite|C[oó]mo citar:|Cite (?:this article|as:)|(?:Suggested |Recommended )?[Cc]itation:"
    r"|(?:Suggested|Recommended) citation\b|(?:Please|To) cite this (?:article|paper)\b"
    r"|Citation (?=(?:[\w’'-]+ ){0,2}[^\W\d_a-z][\w’'-]+ [A-Z](?:-?[A-Z]){0,3}[,.])|CITATION:?)"
    r".*\b(?:19|20)\d\d\b.*"
)
_JOURNAL_LINE = re.compile(
    r"[A-Z][A-Za-z&.: -]{2,79} (?:19|20)\d\d[,;] ?\d{1,4} ?(?:\([^()]{1,20}\))? ?: ?[A-Z]{0,2}-?\d{1,6}"
    r"(?:[-–]\d{1,6})?"
    r"|[A-Z][A-Za-z&.: -]{2,79} \d{1,3} \d{1,2}, \d{1,5}[-–]\d{1,5}\.?"
    r"|[A-Z][A-Za-z&.: -]{2,79} \((?:19|20)\d\d\) \d{1,4}, [\d–-]{1,14}\.? doi:? ?\S+ www\.\S+",
    re.IGNORECASE,
)
"""A whole paragraph that cites the article or a supplement: "Gull Lett 2031, 8(Suppl 1):P-40",
"Gull Lett 18 6, 60–67."."""
_MAX_JOURNAL_LINE: Final = 120
_CITATION_HEADING = re.compile(
    r"\W*(?:c[oó]mo citar este art[ií](?:cul|g)o\W+)?"
    r"(?:(?:how to |please )?cite this (?:article|paper)(?: as)?|(?:suggested|recommended) citation"
    r"|article citation)\W*",
    re.IGNORECASE,
)
_DATED_WORK = re.compile(r"[A-Z] \((?:19|20)\d\d\) [A-Z]")
_DOI = re.compile(r"doi\W.{0,20}\b10\.\d{4}", re.IGNORECASE)
"""What an article's own citation has that prose under the heading "Citation" has not."""
_PUBLISHER_HEADING = re.compile(r"\W*publisher['’]?s (?:disclaimer|note)s?\W*", re.IGNORECASE)
_REVIEW_HEADING = re.compile(
    r"\W*(?:editorial note on the review process|peer review information|pre-?publication history)\W*",
    re.IGNORECASE,
)
_HEADING_KINDS: Final = (
    ("publisher-note", _PUBLISHER_HEADING.fullmatch),
    ("review-note", _REVIEW_HEADING.fullmatch),
    ("citation-note", _CITATION_HEADING.fullmatch),
)
_LICENCE_PARAGRAPH = re.compile(
    r"open access: this is an open[- ]access article|springer nature or its licensor", re.IGNORECASE
)
_PUBLISHER_PARAGRAPH = re.compile(
    r"""
    article \s funded \s by \s scoap
  | please \s see \s later \s in \s the \s article \s for \s the \s editors['’] \s summary
  | any \s alternative \s text \s \( alt \s text \) \s provided \s alongside \s figures \s in \s this
  | correction \s notice: \s this \s (?: article | paper ) \s has \s been \s corrected
  | editorial \s on \s the \s research \s topic \b .{0,200} \Z
  | these \s authors \s (?: also \s )? contributed \s equally
      (?: (?: \s to \s this \s \w+ )? \.? | : \s .{0,300} ) \Z
  | these \s authors \s (?: also \s )? jointly \s supervised \s this \s work \b .{0,300} \Z
  | •{1,2} \s of \s (?: special | outstanding ) \s interest \Z
  | alt-text: \s unlabelled \s box \Z
  | enhanced \s content \Z
    """,
    _FLAGS,
)
_REVIEW_PARAGRAPH = re.compile(
    r"""
    (?: (?: transparent \s )? peer \s review \s file | review \s history ) \W* \Z
  | this \s submission \s was \s handled \s by \s .{3,60} \b editor
  | communicated \s by \s (?: (?-i: [A-Z] ) [\w.'’-]{0,20} \s? ){1,5} \Z
  | (?: \[reviews?\] \W{1,3} )? due \s to \s the \s commitment \s assumed \s by \b .{0,160}? \s open
    \s science, \s this \s journal \s only \s publishes \s reviews
  | paper \s subject \s to \s independent \s expert \b .{0,20} \s peer \s review
  | \[version \s \d+; \s (?: awaiting | peer \s review | referees ) [^\[\]]* \]? \Z
    """,
    _FLAGS,
)
_SUPPLEMENT_PARAGRAPH = re.compile(
    r"""
    (?: supplement (?: al | ary ) \s materials? \W+ )? this \s content \s has \s been \s supplied \s by \s the
      \s author
  | (?: article \s plus \s supplemental \s information | (?: data | web ) \s supplement | supplementary
      | supplemental \s digital \s content | download (?: \s (?: pdf | metadata \s file ) )?
      | \( only \s available \s in \s the \s electronic \s version \) ) \W* \Z
  | (?: crystal \s structure | structure \s factors ) : \s contains \s datablocks? \b .{1,200} \Z
  | (?: supplemental \s material, \s )? sj-[a-z0-9]{2,5}-\d{1,2}-[a-z]{2,6}-10\.\d{4}
  | please \s access \s these \s web \s? sites \s via \s the \s online \s version \s of \s this \s summary
    \s at \s \S+ \s? \S{0,9} \Z
    """,
    _FLAGS,
)
_PARAGRAPH_OPENINGS: Final = (
    ("citation-note", _OWN_CITATION.fullmatch),
    ("citation-note", _CITATION_HEADING.fullmatch),
    ("licence-note", _LICENCE_PARAGRAPH.match),
    ("publisher-note", _PUBLISHER_PARAGRAPH.match),
    ("publisher-note", _PUBLISHER_HEADING.match),
    ("review-note", _REVIEW_PARAGRAPH.match),
    ("supplement-note", _SUPPLEMENT_PARAGRAPH.match),
)
"""Openings of notes of several sentences, or of an abstract, whose other notes cleaning removes."""
_PARAGRAPH_START_LIST: Final = (
    "(onl Alt- Any_ Arti CITA Cita Cite Como Comm Corr Crys Cómo Data Down Due_ Edit Enha How_ Open Pape Peer"
    " Plea Publ Reco Revi Spri Stru Sugg Supp Thes This To_c Tran Web_ [Rev [ver •_of ••_o"
    " sj-d sj-j sj-m sj-p sj-r sj-s sj-t sj-v sj-x sj-z"
)
_PARAGRAPH_STARTS: Final = frozenset(start.replace("_", " ") for start in _PARAGRAPH_START_LIST.split())
"""First letters of such paragraphs, a fast prefilter."""
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_DATE: Final = r"""
    (?: \d{1,2} / \d{1,2} / \d{4} | \d{1,2} \s [A-Z][a-z]{2,8} \.? ,? \s \d{4}
      | [A-Z][a-z]{2,8} \.? \s \d{1,2} , \s \d{4} )
"""
_EDITORIAL_NOTE = re.compile(
    rf"""
    (?: (?: Academic | Associate | Communicating | Corresponding | Guest | Handling | Review | Scientific
          | Section | Subject ) \s )?
      [Ee]ditors? \s? : (?: [^.?!] | \b (?: [A-Z] | Dr | Prof | St ) \. )*
  | \(? (?: (?: Copye | E )dited (?: \s and \s reviewed )? | Reviewed ) \s by :? (?: [^.?!] | \b[A-Z]\. )*
  | (?: (?: Received | Revised | Accepted | Published ) (?: \s for \s Publication | \s online )? :?
        \s {_DATE} [.;,]? \s? )+ (?: doi: \S+ )?
  | {_DATE}
    """,
    re.VERBOSE,
)
_EDITORIAL_START_LIST: Final = (
    "(Cop Acad Acce Asso Comm Copy Corr Edit Gues Hand Publ Rece Revi Scie Sect Subj"
)
_EDITORIAL_STARTS: Final = frozenset(_EDITORIAL_START_LIST.split())
"""First letters of such notes, a fast prefilter; a date alone begins with a digit or is shorter."""
_MAX_EDITORIAL_NOTE: Final = 120
_ORCID = re.compile(r".{1,60}https?://orcid\.org/[\dX-]{19}\W*")
"""A paragraph that is an author's name and ORCID iD."""


def _is_editorial_note(text: str) -> bool:
    """Return True if a paragraph only names the editor of its article, or a date: "Received: 3 May 2011"."""
    return (
        len(text) <= _MAX_EDITORIAL_NOTE
        and (text[:4] in _EDITORIAL_STARTS or text[:1].isdigit())
        and _EDITORIAL_NOTE.fullmatch(text.rstrip(" .")) is not None
    )


_REVIEW_FOOTNOTE = re.compile(
    r"""
    (?: academic \s editor | approved \s by | article \s in \s press | clc \s number
      | country (?: /territory )? \s of \s origin | docum (?: ent | net ) \s code
      | english \s editing | first \s decision | ithenticate \s screening
      | manuscript \s source | peer[ -]review \s (?: started | comments \s to \s authors? )
      | published \s as \s ahead \s of \s print | specialty \s type ) \s? : [^.?!]{1,200}
  | peer[ -]review \s report (?: ['’]?s )? (?: \s scientific \s quality )? \s classification \W*
  | grade \s [a-e] \s? \( [a-z\s]{4,12} \) \s? : [\sa-e\d,;]{1,40}
  | [a-z]- \s? (?: editor | reviewer ) s? \s? : [^.?!]{1,250}
  | reviewers: \s .{1,300}
  | v\d; \s ref \s status: \s .{1,80}
    """,
    _FLAGS,
)
_PUBLISHER_FOOTNOTE = re.compile(
    r"""
    orcid (?: \s ids? | \s numbers? )? \s? : .{1,250}
  | see \s (?: (?: the | accompanying | companion | related ) \s ){0,2}
      (?: article | commentary | editorial | profile | qnas ) s? ,? \s (?: on \s )? p (?: p | ages? )?
      \.? \s? \d{1,6} (?: [-–]\d{1,6} )?
  | for \s the \s article \s discussed, \s see \s \S{1,99}
  | article \s (?: and \s publication \s date \s are \s at
      | published \s online \s (?: ahead \s of | before ) \s print ) \b .{1,120}
  | article \s url: \s \S{1,200}
  | \W? (?: current | present | authors?['’] ) \s address (?: es )? : .{1,1000}
  | (?: please \s )? address \s (?: all \s )? (?: correspondence | reprint \s requests? ) \s to \b .{1,250}
  | \W? corresponding \s author \b (?: .{1,250} \b e-?mail \b .{1,99} )?
  | (?: professor | prof\. | dr\.? ) \s [^.?!]{1,80} \s (?: academic | associate | scientific ) \s editor
  | twitter: (?: ,? \s @\w{1,15} ){1,20}
  | \W? the \s copyright \s line \s for \s this \s article \s was \s changed \s on \s .{1,99}
    """,
    _FLAGS,
)
_FOOTNOTE_KINDS: Final = (
    ("review-note", _REVIEW_FOOTNOTE.fullmatch),
    ("publisher-note", _PUBLISHER_FOOTNOTE.fullmatch),
)
"""Whole footnotes, which elsewhere may be text: "Country of origin: Iceland"."""
FOOTNOTES_HEADING: Final = "Footnotes"
"""Heading of footnotes that have none."""
_SUPPLEMENT_POINTER = re.compile(
    r"""
    (?: the \s )? on-?line \s version \b (?: .* \b contains )? \s supplementa (?:l|ry) \s .*
  | (?: the \s | for \s )? supplementa (?:l|ry) \s (?: data | information | materials? | files? ) \b .*
    \b (?: accompan (?:y|ies|ying) | available | found | visit ) \b .*
    (?: \b online \b | https?:// | doi | \b10\.\d ) .*
  | supplementa (?:l|ry) \s (?: figures? | tables? ) \b .* \b available \s at \s .{3,90} \s online \b .*
  | below \s (?: is | are ) \s the \s links? \s to \s the \s (?: electronic \s )? supplementa (?:l|ry) \s .*
  | transparency \s (?: data | document ) \s associated \s with \s this \s article \s .*
  | (?: the \s following \s )? (?: additional | supporting ) \s (?: supporting \s )? information \s
    (?: is \s available | (?: may | can ) \s be \s found ) \s in \s the \s online \s version
    \s of \s this \s article \W*
  | the \s following \s (?: is | are ) \s (?: the \s )? supplementa (?:l|ry) \s .* \b this \s article \W*
    """,
    _FLAGS,
)
_POINTER_STARTS: Final = frozenset(("add", "bel", "for", "onl", "sup", "the", "tra"))
"""First letters of such paragraphs: a search for words takes fifty times as long."""
_SENTENCE_END = re.compile(r"(?<!\S)[^\w\s]*+(?!Figs?\.)\w\S*[.!?] [A-Z]")
_MAX_NOTE: Final = 1000
"""Characters of a paragraph that is a note as a whole, and of a sentence."""
_MAX_POINTER: Final = 300
_TAIL: Final = 300
_START_AFTER_ARTICLE: Final = r"""
    authors | corresponding | corrected \s v | creative | data | raw \s data | full | images | use, | costs?
  | manuscript | new \s phyto | lancet | opinions | original \s version | publisher | specific \s roles
  | united \s states | statements | views | review (?: er | ing | \s hist )
  | handling | supp | addi | elec | on-?line | foll | posted | contents
"""
"""How notes begin, with "the" before it or without."""
_SENTENCE_START = re.compile(
    rf"""
    the \s (?: {_START_AFTER_ARTICLE} )
  | {_START_AFTER_ARTICLE}
  | this \s (?: is \s an? | figure \s app | review \s comes
        | (?: \w+ \s )? (?: article | licen | manuscript | material | paper | publication | work ) )
  | if \s | no \s | to \s | by \s | non-? | see | for \s | any \s | as \s a | all \s | some \s | an? \s
  | article | permission | please | re (?: print | produc | publish ) | open | copyright | spring | mdpi
  | wiley | such \s mat | click | technical | journal | peer | provenance | commissioned
  | not \s com | check | disclaimer
  | externally | further | section \s 1734 | source \s data | \(c\) | reviewers
  | used \s (?: with | by ) | use \s of \s trade | original \s source
  | online \s con | is \s avail | extra \s mat | note: \s supp | asm \s | although \s pnas
  | correspondence \s and | \* \s \[ corr | \[ corr | go \s to | funding \s info | disclosures | full \s text
  | authors?['’]? \s (?: contributions | disclosures ) | contribute \s and | high [ -] qual | freely \s sub
  | available \s online | do \s not \s dis | conflicts \s that | consisting \s of | papers \s of \s part
  | \[ \s? editorial \s note | \s editorial \s note | editorial \s note | published \s by
  | is \s a \s guest | deposited \s in | after \s \S{{1,6}} \s months | previously \s pub | questions \s or
  | these \s permissions
    """,
    re.VERBOSE,
)
"""How notes begin, in small letters: a fast prefilter. Most alternatives are passed over by their first
character; none begins with what may be missing.
"""
_START_LENGTH: Final = 40
_MAX_HEADING: Final = 50


class NotedText(NamedTuple):
    """A paragraph without its notes, and the notes in order: (kind, text)."""

    text: str
    notes: list[tuple[str, str]]


def split_notes(text: str) -> NotedText | None:
    """Split the notes from a paragraph, which is in one line; return None if it has none.

    They stand at its end, or where supplements are before their titles.
    """
    lead = _SUPPLEMENT_LEAD.match(text) if text.startswith(_LEAD_STARTS) else None
    if lead is not None:
        text = text[lead.end() :]
        ended = split_notes(text) or NotedText(text, [])
        return NotedText(ended.text, [("supplement-note", lead[0].rstrip()), *ended.notes])
    last_start = text.rfind(". ", 0, -1) + 2
    last_start = 0 if last_start == 1 else last_start
    may_be_note = text.startswith("©", last_start) or _SENTENCE_START.match(
        text[last_start : last_start + _START_LENGTH].lower()
    )
    last_kind = _classify_sentence(text[last_start:]) if may_be_note else None
    if (
        last_kind is None
        and (text.isascii() or "©" not in text[-_TAIL:])
        and text.find("ith permission", -_TAIL) < 0
    ):
        return None
    notes: list[tuple[str, str]] = []
    start = end = len(text)
    for start, stop in reversed(spans(text)):
        sentence_kind = _classify_sentence(text[start:stop])
        if sentence_kind is None:
            break
        notes.append((sentence_kind, text[start:stop]))
        end = start
    # The splitter sees no boundary in "We counted gulls. is available for this paper at".
    if not notes and last_kind is not None and start < last_start:
        notes.append((last_kind, text[last_start:]))
        end = last_start
    return NotedText(text[:end].rstrip(), notes[::-1]) if notes else None


@functools.lru_cache(maxsize=1 << 10)
def _classify_heading(heading: str) -> str | None:
    """Return the kind of the notes under a heading, or None. Most headings come again and again."""
    if len(heading) > _MAX_HEADING:
        return None
    for kind, match in _HEADING_KINDS:
        if match(heading):
            return kind
    return None


def is_citation_title(text: str) -> bool:
    """Return True if a text is the title of how to cite the article: "Please cite this paper as:"."""
    return _classify_heading(text) == "citation-note"


def classify_paragraph(text: str, heading: str) -> str | None:
    """Return the kind of a paragraph that is a note by its opening or its heading, or None."""
    if len(text) > _MAX_NOTE:
        return None
    kind = _classify_heading(heading)
    if kind is not None and (kind != "citation-note" or _YEAR.search(text)):
        return kind
    if heading == "Citation" and _DATED_WORK.search(text) and _DOI.search(text):
        return "citation-note"
    if heading == FOOTNOTES_HEADING:
        for kind, match in _FOOTNOTE_KINDS:
            if match(text.rstrip(" .")):
                return kind
    if len(text) <= _MAX_POINTER:
        may_be_line = text.rstrip(".")[-1:].isdigit() or text.endswith(".com")
        if may_be_line and len(text) <= _MAX_JOURNAL_LINE and _JOURNAL_LINE.fullmatch(text):
            return "citation-note"
        if _is_editorial_note(text):
            return "review-note"
        if "orcid.org/" in text and _ORCID.fullmatch(text):
            return "publisher-note"
        if _is_supplement_pointer(text):
            return "supplement-note"
    if text[:4] in _PARAGRAPH_STARTS:
        for kind, match in _PARAGRAPH_OPENINGS:
            if match(text):
                return kind
    return None


def _classify_sentence(sentence: str) -> str | None:
    """Return the kind of a sentence that is a note, or None."""
    if len(sentence) > _MAX_NOTE:
        return None
    small_letters = sentence.lower()
    for kind, match in _SENTENCE_KINDS:
        if match(small_letters):
            is_title = (
                kind == "supplement-note"
                and " related to this article" not in sentence
                and _SUPPLEMENT_TITLE.match(sentence)
            )
            return None if is_title else kind
    if _RIGHTS.fullmatch(sentence) or (_COPYRIGHT.match(sentence) and notices.is_notice(sentence)):
        return "licence-note"
    return None


def _is_supplement_pointer(text: str) -> bool:
    """Return True if a paragraph is one sentence that says where the supplements are."""
    return (
        text[:3].lower() in _POINTER_STARTS
        and ("upplement" in text or "ransparency d" in text or "online version" in text)
        and _SUPPLEMENT_POINTER.fullmatch(text) is not None
        and _SENTENCE_END.search(text) is None
    )
