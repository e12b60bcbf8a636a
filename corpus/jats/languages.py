"""Convert the language codes of JATS articles to those of PubMed's records.

PubMed uses the three-letter codes of MARC (https://www.loc.gov/marc/languages/). JATS ``xml:lang`` uses the
two letters of ISO 639-1 where they exist (https://www.rfc-editor.org/info/bcp47).
"""

from __future__ import annotations

import re
from typing import Final

_ISO_639_1_TO_MARC: Final = """
aa:aar ab:abk ae:ave af:afr ak:aka am:amh an:arg ar:ara as:asm av:ava ay:aym az:aze ba:bak be:bel
bg:bul bh:bih bi:bis bm:bam bn:ben bo:tib br:bre bs:bos ca:cat ce:che ch:cha co:cos cr:cre cs:cze
cu:chu cv:chv cy:wel da:dan de:ger dv:div dz:dzo ee:ewe el:gre en:eng eo:epo es:spa et:est eu:baq
fa:per ff:ful fi:fin fj:fij fo:fao fr:fre fy:fry ga:gle gd:gla gl:glg gn:grn gu:guj gv:glv ha:hau
he:heb hi:hin ho:hmo hr:hrv ht:hat hu:hun hy:arm hz:her ia:ina id:ind ie:ile ig:ibo ii:iii ik:ipk
io:ido is:ice it:ita iu:iku ja:jpn jv:jav ka:geo kg:kon ki:kik kj:kua kk:kaz kl:kal km:khm kn:kan
ko:kor kr:kau ks:kas ku:kur kv:kom kw:cor ky:kir la:lat lb:ltz lg:lug li:lim ln:lin lo:lao lt:lit
lu:lub lv:lav mg:mlg mh:mah mi:mao mk:mac ml:mal mn:mon mr:mar ms:may mt:mlt my:bur na:nau nb:nob
nd:nde ne:nep ng:ndo nl:dut nn:nno no:nor nr:nbl nv:nav ny:nya oc:oci oj:oji om:orm or:ori os:oss
pa:pan pi:pli pl:pol ps:pus pt:por qu:que rm:roh rn:run ro:rum ru:rus rw:kin sa:san sc:srd sd:snd
se:sme sg:sag si:sin sk:slo sl:slv sm:smo sn:sna so:som sq:alb sr:srp ss:ssw st:sot su:sun sv:swe
sw:swa ta:tam te:tel tg:tgk th:tha ti:tir tk:tuk tl:tgl tn:tsn to:ton tr:tur ts:tso tt:tat tw:twi
ty:tah ug:uig uk:ukr ur:urd uz:uzb ve:ven vi:vie vo:vol wa:wln wo:wol xh:xho yi:yid yo:yor za:zha
zh:chi zu:zul
"""
"""ISO 639-1 to MARC: all 184 two-letter codes of https://www.loc.gov/standards/iso639-2/php/code_list.php.

MARC's codes are those of ISO 639-2, the bibliographic one if there are two (20 languages): ``ger``, not
``deu``. ``bh`` (Bihari) was withdrawn from ISO 639-1 later. ``sh`` (Serbo-Croatian) is absent: it was
withdrawn earlier and has no code of its own in ISO 639-2.
"""
_MARC_BY_ISO: Final = dict(pair.split(":") for pair in _ISO_639_1_TO_MARC.split())

_LANGUAGE_TAG: Final = re.compile(r"([a-z]{2,3})(?:[-_].*)?", re.DOTALL)


def to_marc_code(code: str) -> str:
    """Return the MARC code of a language: ``eng`` for ``en``, ``EN`` and ``en-US``.

    Three-letter codes lose their suffix; unknown codes are lower-cased.
    """
    normalised = code.strip().lower()
    match = _LANGUAGE_TAG.fullmatch(normalised)
    if match is None:
        return normalised
    return match[1] if len(match[1]) == 3 else _MARC_BY_ISO.get(match[1], normalised)
