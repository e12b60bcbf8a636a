"""Detection of texts that are plainly not in English; the texts are invented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.errors import DataError
from bioshards.corpus.pubmed.citation import parse_citation
from bioshards.corpus.pubmed.documents import iter_records
from bioshards.corpus.text.language_detection import MIN_WORDS, detect_language
from tests.support.hypothesis_profiles import examples
from tests.support.real_data import DATA, needs_data

TEXTS = {
    "fre": "Les souris ont dormi dans des cages pendant la nuit et le sommeil a été mesuré par une "
    "caméra. Dans le groupe qui n'a pas reçu de sucre, la durée du sommeil est plus courte que "
    "celle des autres souris au réveil.",
    "ger": "Die Mäuse schliefen in der Nacht in Käfigen, und der Schlaf wurde mit einer Kamera "
    "gemessen. In der Gruppe, die keinen Zucker erhielt, ist die Dauer des Schlafs kürzer als "
    "bei den anderen Mäusen, die auch nicht länger im Käfig waren.",
    "spa": "Los ratones durmieron en jaulas durante la noche y el sueño se midió con una cámara. En el "
    "grupo que no recibió azúcar, la duración del sueño fue más corta que la de los otros "
    "ratones, y no se encontró una causa.",
    "por": "Os camundongos dormiram em gaiolas durante a noite e o sono foi medido com uma câmera. No "
    "grupo que não recebeu açúcar, a duração do sono foi mais curta do que a dos outros, e não "
    "se encontrou uma causa para isso.",
    "ita": "I topi hanno dormito nelle gabbie durante la notte e il sonno è stato misurato con una "
    "telecamera. Nel gruppo che non ha ricevuto zucchero, la durata del sonno è più breve di "
    "quella degli altri topi della gabbia.",
    "dut": "De muizen sliepen in de nacht in kooien en de slaap werd met een camera gemeten. In de "
    "groep die geen suiker kreeg, is de duur van de slaap korter dan die van de andere muizen, "
    "en dat was ook bij het begin zo.",
    "pol": "Myszy spały w nocy w klatkach, a sen był mierzony przez kamerę. W grupie, która nie była "
    "karmiona cukrem, długość snu jest krótsza od snu innych myszy, a po kilku dniach nie ma "
    "różnicy. To nie jest wynik, który zależy od klatki.",
    "swe": "Mössen sov på natten i burar och sömnen mättes med en kamera. I gruppen som inte fick "
    "socker är sömnen kortare än för de andra, och det var inte en följd av att buren stod vid "
    "ett fönster eller på ett bord.",
    "dan": "Musene sov om natten i bure, og søvnen blev målt med et kamera. I den gruppe, der ikke fik "
    "sukker, er søvnen kortere end for de andre, og det var ikke en følge af, at buret stod ved "
    "et vindue eller på et bord.",
    "hun": "Az egerek éjjel ketrecben aludtak, és az alvást egy kamera mérte. A csoport, amely nem "
    "kapott cukrot, rövidebb ideig aludt, mint a többi, és ez nem volt független a ketrec "
    "helyétől, vagy csak a fénytől, hogy a vizsgálat ideje is más volt.",
    "rus": "Мыши спали ночью в клетках, и сон измеряли камерой. В группе без сахара сон был короче, чем "
    "у других.",
    "chi": "小鼠夜间睡在笼子里,睡眠由摄像机测量。没有得到糖的一组的睡眠时间比其他小鼠短。原因没有找到,结"
    "果在第二天再次得到证实。第三天的测量结果与第二天的结果相同,小鼠的体重没有变化。",
    "jpn": "マウスは夜にケージの中で眠り、睡眠はカメラで測定された。砂糖を与えられなかった群の睡眠時間は"
    "他のマウスより短かった。その原因は見つからなかったが、結果は翌日にも確認された。",
    "kor": "생쥐는 밤에 우리에서 잠을 잤고 수면은 카메라로 측정되었다. 설탕을 받지 않은 집단의 수면 시간"
    "은 다른 생쥐보다 짧았다. 원인은 발견되지 않았지만 결과는 다음 날에도 확인되었다.",
}
ENGLISH_TEXTS = {
    "prose": "The mice slept in cages during the night, and their sleep was measured by a camera. In the "
    "group without sugar it was shorter than in all the others.",
    "names": "Sleep of mice was described before (García de la Torre et al., 1999; von der Mühlen and van "
    "den Berg, 2001; De Luca et al., 2003; Dos Santos e Silva et al., 2005), and so was that of "
    "rats.",
    "species": "Mus musculus, Rattus rattus, Rattus norvegicus, Apodemus sylvaticus, Apodemus flavicollis, "
    "Microtus agrestis, Microtus arvalis, Arvicola terrestris, Myodes glareolus, Sorex araneus, "
    "Talpa europaea, Lepus europaeus, Oryctolagus cuniculus, Erinaceus europaeus, Castor fiber, "
    "Sciurus vulgaris, Glis glis",
    "symbols": "a b c d e i o u y a i e o w z v s u k a, α β γ δ ε ζ η θ, " * 3,
    "a quotation": "The mice slept. " * 6 + "They were called “les souris de la nuit”. " * 2,
}


@pytest.mark.parametrize("language", TEXTS)
def test_foreign_texts_are_detected(language: str) -> None:
    assert detect_language([TEXTS[language]]) == language
    assert detect_language(TEXTS[language].split(". ")) == language


@pytest.mark.parametrize("case", ENGLISH_TEXTS)
def test_english_texts_are_english(case: str) -> None:
    assert detect_language([ENGLISH_TEXTS[case]]) is None


@pytest.mark.parametrize("language", TEXTS)
def test_short_and_mixed_texts_are_not_detected(language: str) -> None:
    text = TEXTS[language]
    words = text.split()[: MIN_WORDS - 1]
    assert detect_language([" ".join(words)[:55]]) is None
    assert detect_language([]) is None
    assert detect_language([text, *[ENGLISH_TEXTS["prose"]] * 2]) is None


def test_sample_is_spread_over_the_document() -> None:
    french, english = TEXTS["fre"], ENGLISH_TEXTS["prose"]
    assert detect_language([english * 100, *[french] * 30]) == "fre"
    assert detect_language([french * 100, *[english] * 30]) is None


@settings(max_examples=examples(200))
@given(st.lists(st.text(max_size=200), max_size=5))
def test_any_text_has_a_language_or_none(texts: list[str]) -> None:
    language = detect_language(texts)
    assert language is None or len(language) == 3


@needs_data
def test_abstracts_of_real_records_are_detected() -> None:
    """English abstracts are never taken for another language; those in other languages are found."""
    other_abstract = re.compile(
        r'<OtherAbstract[^>]*Language="([a-z]{3})"[^>]*>(.*?)</OtherAbstract>', re.DOTALL
    )
    english: dict[int, list[str]] = {}
    foreign: set[tuple[str, str]] = set()
    for path in sorted(Path(str(DATA), "pubmed").rglob("*.xml*")):
        try:
            with path.open("rb") as file:
                for name, xml in iter_records(file):
                    if name in ("PubmedArticle", "MedlineCitation"):
                        record = parse_citation(xml)
                        english[record.pmid] = [text for _, text in record.abstract]
                        for language, content in other_abstract.findall(xml.decode()):
                            foreign.add((language, re.sub("<[^>]*>", " ", content)))
        except DataError:
            continue
    assert len(english) > 2000
    assert [pmid for pmid, texts in english.items() if detect_language(texts)] == []
    whole = [(language, text) for language, text in foreign if len(text) > 200 and language != "eng"]
    assert len(whole) > 100
    assert [item for item in whole if detect_language([item[1]]) != item[0]] == []
