"""Values of JATS ``article-type``, to check what a person writes.

The vocabulary is open: publishers have others.
"""

from __future__ import annotations

from typing import Final

ARTICLE_TYPES: Final = (
    "abstract",
    "addendum",
    "announcement",
    "article-commentary",
    "book-review",
    "books-received",
    "brief-report",
    "calendar",
    "case-report",
    "case-study",
    "clinical-trial",
    "collection",
    "community-comment",
    "companion",
    "corrected-article",
    "correction",
    "data-paper",
    "decision-letter",
    "discussion",
    "dissertation",
    "editorial",
    "expression-of-concern",
    "guideline",
    "in-brief",
    "introduction",
    "letter",
    "meeting-report",
    "methods-article",
    "news",
    "obituary",
    "oration",
    "other",
    "partial-retraction",
    "preprint",
    "product-review",
    "protocol",
    "rapid-communication",
    "referee-report",
    "removal",
    "reply",
    "report",
    "reprint",
    "research-article",
    "retracted-article",
    "retraction",
    "review-article",
    "reviewer-report",
    "study-protocol",
    "systematic-review",
    "technical-report",
    "translation",
)
"""Types that JATS (https://jats.nlm.nih.gov/archiving/tag-library/1.3/attribute/article-type.html) and PMC
(https://pmc.ncbi.nlm.nih.gov/tagging-guidelines/article/tags/#el-article) suggest, and frequent others."""
