"""Language codes: those of PubMed's records, and the conversion of others to them.

PubMed uses the three-letter codes of MARC (https://www.loc.gov/marc/languages/). JATS ``xml:lang`` uses the
two letters of ISO 639-1 where they exist (https://www.rfc-editor.org/info/bcp47).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from bioshards.corpus.errors import InvalidValueError, find_nearest

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
_TERMINOLOGICAL_TO_MARC: Final = """
bod:tib ces:cze cym:wel deu:ger ell:gre eus:baq fas:per fra:fre hye:arm isl:ice kat:geo mkd:mac mri:mao
msa:may mya:bur nld:dut ron:rum slk:slo sqi:alb zho:chi
"""
"""The 20 languages that have another code in ISO 639-2/T, which JATS articles may use, to MARC."""

_MARC_BY_ISO: Final = dict(pair.split(":") for pair in (_ISO_639_1_TO_MARC + _TERMINOLOGICAL_TO_MARC).split())

_LANGUAGE_NAMES: Final = """
aar Afar; abk Abkhazian; ace Achinese; ach Acoli; ada Adangme; ady Adyghe; afa Afro-Asiatic languages; afh
Afrihili; afr Afrikaans; ain Ainu; aka Akan; akk Akkadian; alb Albanian; ale Aleut; alg Algonquian
languages; alt Southern Altai; amh Amharic; ang Old English; anp Angika; apa Apache languages; ara Arabic;
arc Official Aramaic; arg Aragonese; arm Armenian; arn Mapudungun; arp Arapaho; art Artificial languages;
arw Arawak; asm Assamese; ast Asturian; ath Athapascan languages; aus Australian languages; ava Avaric; ave
Avestan; awa Awadhi; aym Aymara; aze Azerbaijani; bad Banda languages; bai Bamileke languages; bak Bashkir;
bal Baluchi; bam Bambara; ban Balinese; baq Basque; bas Basa; bat Baltic languages; bej Beja; bel
Belarusian; bem Bemba; ben Bengali; ber Berber languages; bho Bhojpuri; bih Bihari languages; bik Bikol; bin
Bini; bis Bislama; bla Siksika; bnt Bantu; bos Bosnian; bra Braj; bre Breton; btk Batak languages; bua
Buriat; bug Buginese; bul Bulgarian; bur Burmese; byn Blin; cad Caddo; cai Central American Indian
languages; car Galibi Carib; cat Catalan; cau Caucasian languages; ceb Cebuano; cel Celtic languages; cha
Chamorro; chb Chibcha; che Chechen; chg Chagatai; chi Chinese; chk Chuukese; chm Mari; chn Chinook jargon;
cho Choctaw; chp Chipewyan; chr Cherokee; chu Church Slavic; chv Chuvash; chy Cheyenne; cmc Chamic
languages; cnr Montenegrin; cop Coptic; cor Cornish; cos Corsican; cpe English creoles; cpf French creoles;
cpp Portuguese creoles; cre Cree; crh Crimean Tatar; crp Creoles and pidgins; csb Kashubian; cus Cushitic
languages; cze Czech; dak Dakota; dan Danish; dar Dargwa; day Land Dayak languages; del Delaware; den Slave;
dgr Dogrib; din Dinka; div Divehi; doi Dogri; dra Dravidian languages; dsb Lower Sorbian; dua Duala; dum
Middle Dutch; dut Dutch; dyu Dyula; dzo Dzongkha; efi Efik; egy Egyptian; eka Ekajuk; elx Elamite; eng
English; enm Middle English; epo Esperanto; est Estonian; ewe Ewe; ewo Ewondo; fan Fang; fao Faroese; fat
Fanti; fij Fijian; fil Filipino; fin Finnish; fiu Finno-Ugrian languages; fon Fon; fre French; frm Middle
French; fro Old French; frr Northern Frisian; frs Eastern Frisian; fry Western Frisian; ful Fulah; fur
Friulian; gaa Ga; gay Gayo; gba Gbaya; gem Germanic languages; geo Georgian; ger German; gez Geez; gil
Gilbertese; gla Gaelic; gle Irish; glg Galician; glv Manx; gmh Middle High German; goh Old High German; gon
Gondi; gor Gorontalo; got Gothic; grb Grebo; grc Ancient Greek; gre Greek; grn Guarani; gsw Swiss German;
guj Gujarati; gwi Gwich'in; hai Haida; hat Haitian; hau Hausa; haw Hawaiian; heb Hebrew; her Herero; hil
Hiligaynon; him Himachali languages; hin Hindi; hit Hittite; hmn Hmong; hmo Hiri Motu; hrv Croatian; hsb
Upper Sorbian; hun Hungarian; hup Hupa; iba Iban; ibo Igbo; ice Icelandic; ido Ido; iii Sichuan Yi; ijo Ijo
languages; iku Inuktitut; ile Interlingue; ilo Iloko; ina Interlingua; inc Indic languages; ind Indonesian;
ine Indo-European languages; inh Ingush; ipk Inupiaq; ira Iranian languages; iro Iroquoian languages; ita
Italian; jav Javanese; jbo Lojban; jpn Japanese; jpr Judeo-Persian; jrb Judeo-Arabic; kaa Kara-Kalpak; kab
Kabyle; kac Kachin; kal Kalaallisut; kam Kamba; kan Kannada; kar Karen languages; kas Kashmiri; kau Kanuri;
kaw Kawi; kaz Kazakh; kbd Kabardian; kha Khasi; khi Khoisan languages; khm Central Khmer; kho Khotanese; kik
Kikuyu; kin Kinyarwanda; kir Kirghiz; kmb Kimbundu; kok Konkani; kom Komi; kon Kongo; kor Korean; kos
Kosraean; kpe Kpelle; krc Karachay-Balkar; krl Karelian; kro Kru languages; kru Kurukh; kua Kuanyama; kum
Kumyk; kur Kurdish; kut Kutenai; lad Ladino; lah Lahnda; lam Lamba; lao Lao; lat Latin; lav Latvian; lez
Lezghian; lim Limburgan; lin Lingala; lit Lithuanian; lol Mongo; loz Lozi; ltz Luxembourgish; lua
Luba-Lulua; lub Luba-Katanga; lug Ganda; lui Luiseno; lun Lunda; luo Luo; lus Lushai; mac Macedonian; mad
Madurese; mag Magahi; mah Marshallese; mai Maithili; mak Makasar; mal Malayalam; man Mandingo; mao Maori;
map Austronesian languages; mar Marathi; mas Masai; may Malay; mdf Moksha; mdr Mandar; men Mende; mga Middle
Irish; mic Mi'kmaq; min Minangkabau; mis Uncoded languages; mkh Mon-Khmer languages; mlg Malagasy; mlt
Maltese; mnc Manchu; mni Manipuri; mno Manobo languages; moh Mohawk; mon Mongolian; mos Mossi; mul Multiple
languages; mun Munda languages; mus Creek; mwl Mirandese; mwr Marwari; myn Mayan languages; myv Erzya; nah
Nahuatl languages; nai North American Indian languages; nap Neapolitan; nau Nauru; nav Navajo; nbl South
Ndebele; nde North Ndebele; ndo Ndonga; nds Low German; nep Nepali; new Nepal Bhasa; nia Nias; nic
Niger-Kordofanian languages; niu Niuean; nno Norwegian Nynorsk; nob Norwegian Bokmål; nog Nogai; non Old
Norse; nor Norwegian; nqo N'Ko; nso Pedi; nub Nubian languages; nwc Classical Newari; nya Chichewa; nym
Nyamwezi; nyn Nyankole; nyo Nyoro; nzi Nzima; oci Occitan; oji Ojibwa; ori Oriya; orm Oromo; osa Osage; oss
Ossetian; ota Ottoman Turkish; oto Otomian languages; paa Papuan languages; pag Pangasinan; pal Pahlavi; pam
Pampanga; pan Panjabi; pap Papiamento; pau Palauan; peo Old Persian; per Persian; phi Philippine languages;
phn Phoenician; pli Pali; pol Polish; pon Pohnpeian; por Portuguese; pra Prakrit languages; pro Old
Provençal; pus Pushto; que Quechua; raj Rajasthani; rap Rapanui; rar Rarotongan; roa Romance languages; roh
Romansh; rom Romany; rum Romanian; run Rundi; rup Aromanian; rus Russian; sad Sandawe; sag Sango; sah Yakut;
sai South American Indian; sal Salishan languages; sam Samaritan Aramaic; san Sanskrit; sas Sasak; sat
Santali; scn Sicilian; sco Scots; sel Selkup; sem Semitic languages; sga Old Irish; sgn Sign Languages; shn
Shan; sid Sidamo; sin Sinhala; sio Siouan languages; sit Sino-Tibetan languages; sla Slavic languages; slo
Slovak; slv Slovenian; sma Southern Sami; sme Northern Sami; smi Sami languages; smj Lule Sami; smn Inari
Sami; smo Samoan; sms Skolt Sami; sna Shona; snd Sindhi; snk Soninke; sog Sogdian; som Somali; son Songhai
languages; sot Southern Sotho; spa Spanish; srd Sardinian; srn Sranan Tongo; srp Serbian; srr Serer; ssa
Nilo-Saharan languages; ssw Swati; suk Sukuma; sun Sundanese; sus Susu; sux Sumerian; swa Swahili; swe
Swedish; syc Classical Syriac; syr Syriac; tah Tahitian; tai Tai languages; tam Tamil; tat Tatar; tel
Telugu; tem Timne; ter Tereno; tet Tetum; tgk Tajik; tgl Tagalog; tha Thai; tib Tibetan; tig Tigre; tir
Tigrinya; tiv Tiv; tkl Tokelau; tlh Klingon; tli Tlingit; tmh Tamashek; tog Tonga; ton Tonga; tpi Tok Pisin;
tsi Tsimshian; tsn Tswana; tso Tsonga; tuk Turkmen; tum Tumbuka; tup Tupi languages; tur Turkish; tut Altaic
languages; tvl Tuvalu; twi Twi; tyv Tuvinian; udm Udmurt; uga Ugaritic; uig Uighur; ukr Ukrainian; umb
Umbundu; und Undetermined; urd Urdu; uzb Uzbek; vai Vai; ven Venda; vie Vietnamese; vol Volapük; vot Votic;
wak Wakashan languages; wal Walamo; war Waray; was Washo; wel Welsh; wen Sorbian languages; wln Walloon; wol
Wolof; xal Kalmyk; xho Xhosa; yao Yao; yap Yapese; yid Yiddish; yor Yoruba; ypk Yupik languages; zap
Zapotec; zbl Blissymbols; zen Zenaga; zgh Standard Moroccan Tamazight; zha Zhuang; znd Zande languages; zul
Zulu; zun Zuni; zxx No linguistic content; zza Zaza
"""
"""Codes of ISO 639-2/B, https://www.loc.gov/standards/iso639-2/php/code_list.php, with a name in English."""
_WITHDRAWN_CODES: Final = {"mol": "Moldavian", "scc": "Serbian", "scr": "Croatian"}
"""Codes that MARC has withdrawn; records of before 2008 may have them."""
_NAME_BY_CODE: Final = (
    dict(entry.split(None, 1) for entry in " ".join(_LANGUAGE_NAMES.split()).split("; ")) | _WITHDRAWN_CODES
)

_LANGUAGE_TAG: Final = re.compile(r"([a-z]{2,3})(?:[-_].*)?", re.DOTALL)


@lru_cache(maxsize=1024)
def to_marc_code(code: str) -> str:
    """Return the MARC code of a language: ``eng`` for ``en``, ``EN`` and ``en-US``, ``ger`` for ``deu``.

    Three-letter codes lose their suffix; unknown codes are lower-cased.
    """
    normalised = code.strip().lower()
    match = _LANGUAGE_TAG.fullmatch(normalised)
    if match is None:
        return normalised
    return _MARC_BY_ISO.get(match[1], match[1] if len(match[1]) == 3 else normalised)


def parse_language(text: str) -> str:
    """Return the MARC code that a person means: ``eng`` for ``eng``, ``ENG`` and ``en``.

    Raises:
        InvalidValueError: there is no such code; the message names the nearest.
    """
    code = to_marc_code(text)
    if code in _NAME_BY_CODE:
        return code
    code_by_name = {name: code for code, name in _NAME_BY_CODE.items()}
    nearest = code_by_name.get(find_nearest(text, code_by_name, 0.7)) or find_nearest(
        code, _NAME_BY_CODE, 0.6
    )
    hint = "eng is English, fre French, ger German"
    if nearest:
        hint = f"did you mean {nearest} ({_NAME_BY_CODE[nearest]})?"
    raise InvalidValueError(f"{text} is no code of a language: {hint}")
