"""The meaning of words in brackets and after dashes: version words, credits, DJ-pool tags. Data only.

Phrases are written as `extract_words` leaves them (folded, no punctuation). Add one beside its meaning, and a line in
tests/catalog_store/name_keys/test_version_notes.py. A phrase maps to a kind of variant; "" is cosmetic: the same recording. Sources:
delivery style guides of the platforms, suffix counts over 26,230 real titles, public cleaners of DJ-pool titles.
"""

# ruff: noqa: E501 - one kind a line, like a table
from __future__ import annotations

from catalog_store.name_keys.folding import extract_words, fold

_COSMETIC = {
    "": "完整 版 | 原 版 | 原曲 | 원곡 | original | original mix | original version | original album version | original recording | original single version | original studio version"
    " | album version | album mix | album | lp version | ep version | single version | single | digital single | single master | 7inch | 7inch version"
    " | 7inch mix | 7inch single | 7 version | 7 mix | 45 version | main mix | main version | main | standard version | regular version | studio version"
    " | full version | full song | official | official version | original verze | version originale | version original | versione originale | originalversion"
    " | orijinal | original album mix | mixed and mastered | high resolution | advanced resolution | hi res | hi res version | 24 bit | from the vault | preview | tm"
    " | albumversion | singleversion | albumfassung | originalfassung | studioversion | albumversie | originele versie | albumversjon | wersja albumowa | wersja oryginalna | oryginalna wersja | альбомная версия | оригинальная версия | оригинал",
    "explicit": "explicit | explicit version | explicit album version | album version explicit | dirty | dirty version | uncensored | parental advisory",
    "mono": "mono | mono version | mono mix",
    "stereo": "stereo | stereo version | stereo mix",
    "bonus": "bonus track | bonus | bonus version | bonus track version | hidden track | hidden bonus track | exclusive | exclusive track | pre order exclusive"
    " | digital bonus track | bonus cut | previously unreleased | unreleased | previously unreleased version",
    "edition": "deluxe | deluxe edition | deluxe version | deluxe mix | expanded edition | special edition | anniversary edition | anniversary version"
    " | anniversary | limited edition | super deluxe | super deluxe edition"
    " | rudy van gelder edition | rvg edition | rudy van gelder | keepnews collection | original jazz classics",
    "video": "mv | m v | pv | official mv | official video | official music video | official audio | music video | video clip | videoclip | video | audio | audio only | official lyric video"
    " | lyric video | lyrics | official visualizer | visualizer | clip officiel | video oficial | hd | hq | 4k",
    "soundtrack": "soundtrack | soundtrack version | original soundtrack | original motion picture soundtrack | motion picture soundtrack | original score"
    " | theme song version | ost | original soundtrack version | саундтрек | banda sonora | banda sonora original | colonna sonora | colonna sonora originale | bande originale",
    "pool": "dj city | djcity | bpm supreme | club killers | trayze | nick bike | flipout | kid cut up | mixshow | hh | throwback | verse",
}
"""Notes of the same recording: kept as notes (`=explicit`), never part of the variant."""

_KINDS = {
    "remix": "remix | rmx | remixed | rework | reworked | bootleg | flip | refix | re fix | remake | reboot | reconstruction | retouch | re touch | re work"
    " | remix version | remixed version | remix edit | remode | redux | rethink | reinterpretation | re mix | re mixed | re mixed version | remezcla | remiks | rerub | re rub"
    " | recut | overhaul | edit remix | ремикс | リミックス | 리믹스 | רמיקס | ريمكس | 混音 | 混音版",
    "mix": "mix | мікс | микс | ミックス | 믹스",
    "edit": "edit | re edit | reedit | edit version | video edit | video version | tv edit | tv version | tv size | tv size version | tvサイズ | cut | versao editada | version editada | эдит"
    " | エディット | 에디트",
    "version": "version | ver | vers | edition | rendition | interpretation | verzija | verze | versao | versione | wersja | versija | versio | fassung | versie | versjon | versiyon | versiyonu | versiune | versiunea | verzio | versi"
    " | версия | バージョン | ヴァージョン | 버전 | 版",
    "session": "session | sessions",
    "radio": "radio edit | radio version | radio mix | radio cut | radio | radio single | single edit | single mix | single cut | original radio edit"
    " | radio edit version | original radio mix | edit radio | original mix edit | version radio | radioversion | album radio edit | радио версия | радио эдит | radiofassung | radioversie | radio versie | radioversjon | wersja radiowa | radioedit | edicao radio | edicao de radio | edicion radio | edicion de radio",
    "extended": "extended mix | extended version | extended | extended edit | ext | ext mix | ext edit | edit ext | 12inch | 12inch version | 12inch mix"
    " | 12 version | 12 mix | 12inch single | long version | longer version | long mix | full length version | full length | original extended mix"
    " | extended original mix | 12 extended | 12 extended mix | 12 extended version | 12inch extended mix | 12inch extended version | extended remix version | extended dance mix | extended dance version | extended dance remix | maxi version | maxi mix"
    " | version longue | versione estesa | versao estendida | langversion | extendedversion | xtended | xtended mix | extended play | version extendida | version etendue | verlangerte version | maxiversion",
    "club": "club mix | club version | club edit | club | original club mix | original club version | clubversion | clubmix",
    "vocal": "vocal mix | vocal version | vocal | main vocal mix",
    "dub": "dub | dub mix | dub version | dub edit | dubb | 12 dub",
    "instrumental": "オフボーカル | オフヴォーカル | ボーカルオフ | 반주 | mr ver | mr version | inst mr | mr inst | without vocal | instrumental | inst | instrumental mix | instrumental version | instrumental edit | instr | instrumentals | off vocal | off vocal version"
    " | off vocal ver | off vocal mix | version instrumentale | versione strumentale | strumentale | instrumentale | versao instrumental | version instrumental"
    " | instrumentalversion | instrumentalfassung | instrumentale versie | instrumentaal | instrumentalversjon | enstrumantal | enstrumantal versiyon | instrumentalna | wersja instrumentalna | instrumentalni | 12 instrumental"
    " | инструментал | инструментальная версия | инструментальная | אינסטרומנטלי | موسيقى فقط | インストゥルメンタル | インスト | 인스트루멘탈 | 纯音乐 | オリジナルカラオケ",
    "acapella": "acapella | a cappella | acappella | a capella | acap | accapella | acapella version | a cappella version | vocals only | акапелла",
    "live": "live | live version | en vivo | ao vivo | en directo | en direct | dal vivo | in concert | live session | live sessions | live performance"
    " | live recording | recorded live | recorded in concert | live lounge | radio 1 live lounge | bbc radio 1 live lounge | in the live lounge | live aid | recorded at | performance | live edit | live set | live mix | version en vivo | version live"
    " | versao ao vivo | versione live | liveversion | en concert | en public | im konzert | na zywo | canli | nazivo | концерт | концертная версия | живой концерт | живой звук | живое исполнение | лайв | koncertowa | wersja koncertowa | zive | zivo"
    " | live versie | liveversie | live versjon | livefassung | livemitschnitt | live mitschnitt | live aufnahme | liveaufnahme | konzertmitschnitt | canli performans"
    " | ライブ | ライヴ | 라이브 | 演唱会 | 演唱会版 | 现场 | 現場 | 现场版 | 現場版 | הופעה חיה | לייב | הקלטה חיה | מהופעה חיה | مباشر | لايف | حفله | ζωντανη ηχογραφηση | ζωντανα | live ηχογραφηση | แสดงสด | บันทึกการแสดงสด",
    "acoustic": "弾き語り | アコギ | acoustic | acoustic version | acoustic mix | acustico | acustica | version acustica | version acustico | acoustique | acoustic edit"
    " | version acoustique | versione acustica | versao acustica | akustik | akustik version | akustisch | akustikversion | akustikfassung | akoestisch | akoestische versie | akustisk | akustisk version | akustisk versjon | akusticky | akusticka verze | versi akustik | אקוסטי | גרסה אקוסטית | ακουστικη εκτελεση | akustyczna | wersja akustyczna | акустика"
    " | акустическая версия | アコースティック | 어쿠스틱 | 不插电",
    "stripped": "stripped | stripped version | stripped down | stripped down version | stripped back",
    "unplugged": "unplugged | unplugged version",
    "demo": "demo | demo version | demoversion | rough mix | early version | alternate take | alternative take | alt take | outtake | out take | home demo | studio demo | voice memo"
    " | work tape | work in progress | rehearsal | demos | demo recording | original demo version | original demo | демо | デモ",
    "alternate": "alternate version | alternative version | alternate mix | alternative mix | alt version | alt mix | version alternative | numberedtake"
    " | alternate lyrics | alternative lyrics | alt lyrics",
    "karaoke": "karaoke | karaoke version | backing track | minus one | karaoke instrumental | karaoke instrumental version | instrumental karaoke"
    " | karaoke mix | karaokeversion | karaoke versie | playback | караоке | минусовка | минус | カラオケ | 노래방 | 伴奏 | 伴奏版 | كاريوكي",
    "cover": "cover | cover version | tribute | tribute version | кавер | кавер версия | カバー | カヴァー | 커버 | 翻唱 | 翻唱版 | קאבר",
    "sped up": "sped up | spedup | sped up version | speed up | speed up version | nightcore | nightcore version | super sped up | ultra sped up | faster version"
    " | fast version | speed version | tiktok speed up | 加速版",
    "slowed": "slowed | slowed down | slowed version | slowed reverb | slowed and reverb | slowed down version | slowed n reverb | super slowed | ultra slowed"
    " | chopped and screwed | screwed and chopped | slowed and chopped | chopped not slopped | slowed to perfection | daycore | slowed down reverb | reverb",
    "8d": "8d | 8d audio | 8d version",
    "rerecorded": "re recorded | rerecorded | re recorded version | rerecorded version | re recording | rerecording | newly recorded | re recorded in stereo"
    " | taylors version | new recording | re record | neuaufnahme | regrabado | regrabada",
    "reimagined": "reimagined | re imagined | revisited | reinvented | reimagined version",
    "mixed": "mixed | mix cut | dj mix | continuous mix | continuous dj mix | mixed version | dj mixed",
    "vip": "vip | vip mix | vip edit | vip remix | vip version",
    "clean": "clean | clean version | edited | edited version | censored | clean edit | radio clean | clean radio edit | album version edited | clean album version"
    " | no rap version | super clean",
    "intro": "intro | dj intro | break intro | hype intro | hype in | hype edit | epic intro | slam intro | slam edit | clap intro | party starter | intro edit"
    " | jump off | dj edit | intro mix",
    "outro": "outro",
    "short": "kurzversion | quick hit | quick hitter | qh | quick | snip | super short | short | short edit | short version | short cut | short mix | ck cut | short take | no intro"
    " | version courte | versione breve",
    "acap mix": "acap in | acap out | acap in out | acap in and out | acap loop | clapapella | acapella in | acapella out | acapella loop",
    "blend": "blend | mash | mash up | mashup | segue | segway | word play | wordplay | redrum | perfect version",
    "transition": "transition | trans",
    "surround": "surround | surround mix | surround sound | surround version | 5 1 | 5 1 mix | 5 1 surround | 5 1 surround mix | 5 1 surround sound mix"
    " | 5 1 version | quad | quad mix | quadraphonic | quadraphonic mix | dolby atmos | dolby atmos mix | dolby atmos version | atmos mix | binaural mix",
    "medley": "medley",
    "commentary": "commentary | track by track | track by track commentary",
}

_FOLLOWED = {
    "karaoke": "originally performed by | in the style of | made famous by | as made famous by | originally by | made popular by | as made popular by"
    " | as performed by | karaoke version of | instrumental version of | in stile",
    "cover": "cover of | tribute to | a tribute to | cover by | rendition of | cover version of",
    "remix": "remix by | remixed by | rmx by | rework by | reworked by | bootleg by | remix von | remix de | remix par | remix di",
    "edit": "edit by | re edit by | edited by",
    "mixed": "mixed by",
    "live": "live at | live in | live from | live on | live for | live bei | live im | live aus | live vom | live a | live au | live aux | live en | live al"
    " | live dal | live dalla | recorded at | recorded live at | recorded live in | recorded live from | live recording from | live recording at"
    " | en vivo | en vivo en | en vivo desde | ao vivo | ao vivo em | ao vivo no | ao vivo na | dal vivo | dal vivo a | dal vivo al | en directo"
    " | en directo en | en directo desde | en public | en public a | en public au | from the live album | live session at | live sessions at | in concert at | в живую в",
}
"""Phrases completed by the words behind them: `Live at Wembley`, `Remix by X`."""
WITHOUT_PREPOSITION = frozenset({"en vivo", "ao vivo", "dal vivo", "en directo", "en public"})
"""Live phrases without a preposition. The next word may name a place (`En Vivo Buenos Aires`) or another kind (`En Vivo Acústico`)."""


WHOLE_NOTES = {"in out": "acap mix", "mr": "instrumental"}
"""Notes only if nothing is beside them: a DJ-pool cut with the voice alone at both ends, and the Korean word for a backing track. `Mr.`
also begins names."""


def _split(text: str) -> list[str]:
    return text.split()


def _read_set(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


def _read_phrases(text: str) -> list[str]:
    return [extract_words(fold(phrase)) for phrase in text.split("|")]


COSMETIC = "="
"""The first character of a note, so that notes and kinds can share one list: `=remaster:2011`, `=`."""
PHRASES: dict[str, str] = {phrase: COSMETIC + note for note, text in _COSMETIC.items() for phrase in _read_phrases(text)} | {
    phrase: kind for kind, text in _KINDS.items() for phrase in _read_phrases(text)
}
FOLLOWED_PHRASES: dict[str, str] = {phrase: kind for kind, text in _FOLLOWED.items() for phrase in _read_phrases(text)}

SUFFIXES = ("版", "リミックス", "バージョン", "ヴァージョン", "エディット", "リマスター", "リマスタリング", "리믹스", "버전", "리마스터")
"""Version words attached to the word before them: `現場版`, `英語バージョン`."""

_LANGUAGES = {
    "english": "english eng 英語 英文 영어 inglese ingles inglesa anglais anglaise englisch englische английская",
    "japanese": "japanese jpn jp 日本語 日語 日文 일본어 일어 giapponese japonesa japonais japonaise japanisch japanische японская",
    "korean": "korean kor kr 韓国語 韓語 韓文 한국어 한글 coreana coreen koreanisch корейская",
    "chinese": "chinese chn cn mandarin 中国語 中文 国語 国语 普通話 華語 중국어 cinese chinois chinoise chinesisch китайская",
    "cantonese": "cantonese 粤語 広東語 廣東話",
    "spanish": "spanish esp espanol espanola castellano castellana spagnolo spagnola espagnol espagnole spanisch spanische スペイン語 스페인어 西班牙語 испанская",
    "french": "french francais francaise frances francesa francese franzosisch franzosische フランス語 프랑스어 法語 французская",
    "german": "german deutsch deutsche aleman alemana allemand allemande tedesco tedesca ドイツ語 독일어 德語 немецкая",
    "italian": "italian italiano italiana italien italienne italienisch italienische イタリア語 итальянская",
    "portuguese": "portuguese portugues portuguesa portugais portugaise portoghese portugiesisch ポルトガル語",
    "russian": "russian ruso rusa russe russo russa russisch russische русская ロシア語 俄語",
}
LANGUAGES = {word: language for language, words in _LANGUAGES.items() for word in fold(words).split()}
"""Names of languages of a version: `English Ver.`, `英語版`, `Versión Inglesa` are one version."""
LANGUAGE_JOINTS = frozenset({"in", "en", "em", "auf"})
"""`Versión en Español`: words before a language that say nothing."""

MARKETS = _read_set(
    "japan japanese uk us usa european europe german french canada canadian australian asian international itunes spotify amazon target tidal"
    " deluxe digital cd lp vinyl import only for"
)
"""Beside `bonus` these name the edition that had the track."""
KARAOKE_WORDS = frozenset({"with", "no", "without"})
"""`Karaoke with Background Vocals`: words beside `Karaoke` make no other recording, unless they are words of a sentence."""
REMASTER_WORDS = _read_set(
    "remaster remasters remastered remastering remastert remasterizado remasterizada remasterise remasterisee remasterise remasterizacao ремастер"
    " ремастеринг リマスター リマスタリング 리마스터 리마스터링 重製"
)
"""Cosmetic whatever the words around them, unless those are a version: `Remastered at Abbey Road`, but `Remastered Remix`."""
REMASTERING = _read_set("digital digitally newly 24 bit hd from the original tapes tape analog analogue new high resolution collection in")
"""Words of the process, never of the version."""

NAMED_KINDS = frozenset({"remix", "mix", "edit", "version", "session"})
"""Kinds whose name is the words before them: `Tiësto Remix` -> `remix:tiesto`."""
TAKES_WORDS_BEHIND = frozenset({"remix", "version", "versao", "versione", "wersja", "ver", "versija"})
"""Romance word order: `Versión Salsa`, `Remix Brega Funk`."""
REMIX_ASPECTS = frozenset(
    {
        "extended",
        "club",
        "vocal",
        "dub",
        "radio",
        "instrumental",
        "acapella",
        "vip",
        "acoustic",
        "blend",
        "intro",
        "short",
        "transition",
        "outro",
    }
)
"""Kinds that with a name before them are an aspect of that person's remix: `Tiësto Extended Mix` -> `extended+remix:tiesto`."""
PLACED_KINDS = frozenset({"live", "unplugged", "demo", "cover", "rerecorded", "alternate", "stripped", "commentary"})
"""Kinds whose name is a place or an occasion, before or after them: `BBC Live`, `Live 1985`."""
SIZES = frozenset({"extended"})
"""Kinds that only give the length of a dub or an instrumental: `12" Dub` is `Dub`."""

CREDIT_WORDS = _read_set("cv vo feat ft featuring with w starring con avec mit duet duetto dueto duett participacao part при goscinnie")
"""First words of a bracket that names guests. Most of them also begin lyrics: see NOT_A_GUEST."""
CREDIT_PHRASES = (
    "in a duet with",
    "a duet with",
    "participacao especial de",
    "participacao especial",
    "participacao de",
    "part especial de",
    "part especial",
    "part esp de",
    "part esp",
    "при участии",
    "при уч",
    "goscinnie",
    "part",
    "in duet with",
    "duet with",
    "duet w",
    "duetto con",
    "dueto con",
    "en duo avec",
    "duo avec",
    "duett mit",
    "featuring",
    "starring",
    "feat",
    "ft",
    "with",
    "w",
    "con",
    "avec",
    "mit",
)
"""Beginnings of a credit, the longest first."""
PRODUCER_WORDS = frozenset({"prod", "produced"})
NOT_A_GUEST = _read_set(
    "you me u us him her them it my your our his their or out a an love no that this all these those some every just one only someone somebody"
    " each nothing everything everybody ya pen"
    " te ti el la los las un una mi tu su sus toda todo amor brio moto fuoco spirito anima espressione variazioni sordino grazia forza affetto bravura calma tenerezza"
    " effetti toi moi le les une mon ton son lui elle nous vous amour dir mir dem der den ein einem einer uns euch ihm ihr viel liebe chor orchester spielleuten"
    " paradeschlagen gesang klavier begleitung musik"
)
"""After `(with`, `(con`, `(avec`, `(mit` these begin a line of lyrics or a way of playing, not a name."""
ENDS_IN_VER = _read_set(
    "ever never over cover river silver fever lover forever whatever however wherever whenever whoever discover recover undercover uncover"
    " clever deliver oliver denver vancouver moreover hangover takeover makeover leftover crossover rollover pushover flyover rover clover"
    " driver diver liver giver shiver quiver beaver saver waiver server observer believer achiever receiver reliever retriever sliver carver"
    " weaver cleaver quaver maneuver solver resolver revolver survivor glover hoover gulliver popover pullover sever forgiver caregiver"
    " lifesaver screensaver screwdriver layover turnover spillover changeover stopover handover"
)
"""Words that only end like a glued `Ver.`."""
NOT_A_MUSICIAN = _read_set(
    "rap raps sax saxophone strings string orchestra lyrics vocals vocal chorus choir piano intro outro guitar band drums hook verse ending commentary"
    " dialogue applause fade count oboe brass backing"
)
"""`With Rap`, `W/ Strings`: another version, not a guest."""
CORRECTABLE_WORDS = tuple(
    _split(
        "mix edit live demo club vocal radio remix rework bootleg version extended original acoustic acustico acustica instrumental karaoke remaster"
        " remastered acapella explicit album single bonus sped slowed unplugged"
    )
)
"""Version words that are corrected when one letter is wrong. Words one letter from common ones (cover, clean, short) are not included."""
NOT_MISSPELLED = _read_set(
    "love life like lives olive alive lies give line lime five mia max mi six fix mia miss mit mid nix dit exit edith edict credit demon memo domo clubs"
    " vocals focal local vocalist ratio radios radius radial audio remit bone bonds album albums singles mingle jingle speed spend spied shed spread showed flowed glowed slower allowed"
    " versions aversion conversion originals extend extends mixes mixer remixes edits demos lived liver liven deliver emix lve"
)
"""Words one letter from a version word that have a meaning of their own: `(I'm in Love)` is not live."""
_FUNCTION = (
    "to we i you u he she they it my your our his her their me us him them this that these those the a an is are was be am do dont does did can cant could"
    " will wont would should shall must let lets gonna wanna gotta not no never ever how why when where what who if and or but so as of for"
    " with without by at in on into out up down off over under again always just only more too very all every some any there here now then"
    " than love im youre were theyre its ive id ill got get go come aint until till through"
)
FUNCTION_WORDS = _read_set(_FUNCTION)
"""Words of sentences. With one of them before `Live` or `Cover` the bracket is a line of lyrics (`(Dying to Live)`)."""
NOT_A_PLACE = _read_set(
    "my your our his her their fear love me you us it this that the a peace harmony sin tonight today forever moment now life little lie lies lot long dream"
    " dreams hope fast free young loud like wire color colour colours pieces all always alone again without everything and or without 4ever"
)
"""After `Live in`, `Live for` and similar phrases these continue lyrics; `the` only before one of them."""
NOT_A_NAME = _read_set(
    "in on to of my your this that it me you the a an our for i and his her their no not all get got let lets we us with into do dont take run duck"
)
"""`(In the Mix)`, `(Your Version)`: a version word behind only these words is part of the title."""
MONTHS = _read_set(
    "january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec"
)

SOUNDTRACK_PATTERN = (
    r"^(?:(?:music|main|opening|closing|ending|title|theme|song|songs|taken|love|original|tv|version|the|end|credits|as heard|featured) )*from (?:the )?"
    r"(?:\"|.*\b(?:movie|film|soundtrack|motion picture|series|musical|netflix|disney|disneys|anime|ost|game|television|broadway|tv show)\b)"
    r"|^(?:(?:the|main|title|love|opening|closing) )*theme(?: song)? from "
    r"|\b(?:soundtrack|ost|banda sonora|colonna sonora|bande originale|motion picture)(?: (?:recording|version|theme|original|album|originale))*\"?$"
    r"|^(?:the )?official (?:.* )?(?:song|anthem|theme|hymn|single)(?: of .*| for .*| [0-9]{4}| [a-z]+ [a-z]+ [0-9]{4})?$"
    r"|^(?:the )?official (?:song|anthem|theme) "
    r"|^(?:ost|саундтрек) [^ ]|^(?:из|к) (?:фильма|фильму|сериала|сериалу|мультфильма|мультфильму|кинофильма|кинофильму|[ктм]/[фс])\b"
    r"|^cancion original de la pelicula|^(?:de|aus|uit) \"|^(?:aus dem film|du film|dal film|de la pelicula|from the film)\b"
)
"""`From "Rocky IV"`, `Theme from Jaws`, `Season 2 Soundtrack`, `Official Anthem 2014`; `(From the Inside)` has neither quote nor medium and
stays."""
SOURCE_WORDS = _read_set("from official soundtrack ost banda colonna bande motion cancion de aus uit du dal из к саундтрек")
"""Every note that SOUNDTRACK_PATTERN finds has one of these words."""
FROM_SOMEWHERE = r"^from (?!(?:the|me|you|my|your|a|an|here|now|this|that|his|her|our|where|what|within|inside|heaven|hell|above|below|afar|us|them|it|him|dusk|dawn|all)\b)"
"""`(From Breakfast at Tiffany's)`: a source, unless it continues as lyrics do (`From Amsterdam with Love`, `From Paris to Berlin`)."""
FROM_LYRICS = frozenset({"to", "with", "till", "until"})

TAIL_AMBIGUOUS = _read_set(
    "live original main cover demo single radio club vocal dub mix edit version audio lyrics bonus short quick official mono stereo soundtrack trans cut"
    " tribute anniversary session performance mixed album video verse preview exclusive reverb playback stripped medley revisited"
)
"""Single words that, bare after a closing bracket, may also end the title: `Nobody (But You) Live`."""
BARE_TAILS = (
    "remix | rmx | radio edit | radio mix | radio version | extended mix | extended version | extended remix | original mix | original version | club mix"
    " | album version | karaoke version | instrumental version | acoustic version | live version | single version | dub mix | vip mix | sped up version"
    " | inst | off vocal | off vocal ver | tv size | tv size ver | english ver | english version | japanese ver | japanese version | korean ver"
    " | korean version | chinese ver | chinese version | spanish version | remastered | bonus track | sped up | slowed reverb | slowed and reverb"
)
"""Notes that are unmistakable at the end of a title without bracket or dash, as in `Loca Remix`; never the whole title."""

TEMPO_PATTERN = r"^(?:[6-9][0-9]|1[0-9][0-9]|2[0-2][0-9])$"
MUSICAL_KEY_PATTERN = r"^(?:(?:1[0-2]|[1-9])[ab]|[a-g][b#]?(?:m|min|maj|major|minor))$"
"""Stamps of DJ pools: `130 11a`, `(132 Ebm)`, `102 4a`."""
LONGEST_STAMP = 3
