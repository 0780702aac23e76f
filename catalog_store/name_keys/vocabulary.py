"""What the words in brackets and after dashes mean: version words, credits, DJ-pool tags. Data only.

Phrases are written as `words` leaves them (folded, no punctuation). Add one where its meaning stands, and a line in
tests/catalog_store/test_name_keys.py. A phrase maps to the kind of variant it makes; "" is cosmetic: the same recording.
Sources: delivery style guides of the platforms, suffix counts over 26,230 real titles, public cleaners of DJ-pool titles.
"""

# ruff: noqa: E501 - one kind a line, like a table
from __future__ import annotations

_COSMETIC = """
original | original mix | original version | original album version | original recording | original single version | original studio version
album version | album mix | lp version | ep version | single version | single | 7 version | 7 inch version | 7 inch | 7 inch mix | 7 mix | 45 version
main mix | main version | main | explicit | explicit version | explicit album version | album version explicit | dirty | dirty version | uncensored
remastered version | remaster version | remastered album version | remastered single version | remastered original
mono | stereo | mono version | stereo version | bonus track | bonus | bonus version | bonus track version | hidden track
deluxe | deluxe edition | deluxe version | deluxe mix | expanded edition | special edition | anniversary edition | anniversary version | anniversary
standard version | studio version | full version | official | official video | official music video | official audio | official version
music video | audio | official lyric video | lyric video | lyrics | hd | hq | 4k | throwback
soundtrack | soundtrack version | original soundtrack | original motion picture soundtrack | motion picture soundtrack | original score | theme song version
dj city | djcity | bpm supreme | club killers | trayze | nick bike | flipout | kid cut up | mixshow | hh
"""

_KINDS = {
    "remix": "remix | rmx | remixed | rework | reworked | bootleg | flip | refix | re fix | remake | reboot | reconstruction | retouch"
    " | remix version | remix edit | remode | redux | reinterpretation",
    "mix": "mix",
    "edit": "edit | re edit | reedit | edit version | video edit | video version | tv edit | tv version | cut",
    "version": "version | ver | edition | rendition | interpretation | verzija | versao",
    "session": "session | sessions",
    "radio": "radio edit | radio version | radio mix | radio cut | radio | radio single | single edit | single mix | original radio edit | radio edit version"
    " | original radio mix | edit radio | original mix edit",
    "extended": "extended mix | extended version | extended | extended edit | ext | ext mix | ext edit | edit ext | 12 version | 12 inch version | 12 mix"
    " | 12 inch mix | 12 inch | long version | long mix | full length version | full length | original extended mix | extended original mix | extended remix version",
    "club": "club mix | club version | club edit | club | original club mix | original club version",
    "vocal": "vocal mix | vocal version | vocal | main vocal mix",
    "dub": "dub | dub mix | dub version | dub edit",
    "instrumental": "instrumental | inst | instrumental mix | instrumental version | instrumental edit | instr",
    "acapella": "acapella | a cappella | acappella | a capella | acap | accapella | acapella version | a cappella version | vocals only",
    "live": "live | live version | en vivo | ao vivo | en directo | en direct | dal vivo | in concert | live session | live sessions | live performance"
    " | live recording | recorded live | recorded at | performance | live acoustic | live edit",
    "acoustic": "acoustic | acoustic version | acoustic mix | acustico | acustica | version acustica | version acustico | acoustique | acoustic edit",
    "unplugged": "unplugged | unplugged version",
    "demo": "demo | demo version | rough mix | early version | alternate take | alternative take | outtake",
    "alternate": "alternate version | alternative version | alternate mix | alternative mix | alt version | alt mix",
    "karaoke": "karaoke | karaoke version | backing track | minus one",
    "cover": "cover | cover version | tribute | tribute version",
    "sped up": "sped up | spedup | sped up version | speed up | nightcore | nightcore version",
    "slowed": "slowed | slowed down | slowed version | slowed reverb | slowed and reverb | slowed down version",
    "rerecorded": "re recorded | rerecorded | re recorded version | rerecorded version | re recording | rerecording | newly recorded"
    " | taylors version | new recording | re record",
    "mixed": "mixed | mix cut | dj mix | continuous mix | continuous dj mix",
    "vip": "vip | vip mix | vip edit | vip remix | vip version",
    "clean": "clean | clean version | edited | edited version | censored | clean edit | radio clean | clean radio edit | album version edited",
    "intro": "intro | dj intro | break intro | hype intro | hype in | epic intro | slam intro | slam edit | clap intro | party starter | intro edit"
    " | jump off | dj edit | intro mix",
    "outro": "outro",
    "short": "quick hit | quick hitter | qh | quick | snip | super short | short | short edit | short version | short cut | short mix | ck cut",
    "acap mix": "acap in | acap out | acap in out | acap in and out | acap loop | clapapella | acapella in | acapella out",
    "blend": "blend | mash | mash up | mashup | segue | segway | word play | wordplay | redrum | perfect version",
    "transition": "transition | trans",
}

_FOLLOWED = {
    "karaoke": "originally performed by | in the style of | made famous by | as made famous by | originally by",
    "cover": "cover of | tribute to | a tribute to",
    "remix": "remix by | remixed by | rmx by | rework by",
    "edit": "edit by",
    "mixed": "mixed by",
    "live": "live at | live in | live from | live on | live for | live by | live bei | live im | live a | live au | live en | recorded at | recorded live at"
    " | recorded live in | en vivo en | en vivo desde | ao vivo em | ao vivo no | ao vivo na | dal vivo a | from the live album",
}
"""Phrases whose meaning is completed by what follows: `Live at Wembley`, `Remix by X`."""


def _phrases(text: str) -> list[str]:
    return [phrase.strip() for line in text.splitlines() for phrase in line.split("|") if phrase.strip()]


COSMETIC = ""
PHRASES: dict[str, str] = dict.fromkeys(_phrases(_COSMETIC), COSMETIC) | {
    phrase: kind for kind, text in _KINDS.items() for phrase in _phrases(text)
}
FOLLOWED_PHRASES: dict[str, str] = {phrase: kind for kind, text in _FOLLOWED.items() for phrase in _phrases(text)}

REMASTER_WORDS = frozenset({"remaster", "remastered", "remastering", "remasterizado", "remasterizada", "remasterise", "remastert"})
"""Cosmetic whatever stands around them: `2011 Remaster`, `Remastered at Abbey Road`, `40th Anniversary Version / 2011 Remastered`."""

NAMED_KINDS = frozenset({"remix", "mix", "edit", "version", "session"})
"""Kinds that take the words before them as their name: `Tiësto Remix` -> `remix:tiesto`."""
REMIX_ASPECTS = frozenset(
    {"extended", "club", "vocal", "dub", "radio", "instrumental", "acapella", "vip", "acoustic", "blend", "intro", "short"}
)
"""Kinds that with a name before them are an aspect of that person's remix: `Tiësto Extended Mix` -> `extended+remix:tiesto`."""
PLACED_KINDS = frozenset({"live", "unplugged", "demo", "cover", "rerecorded", "remaster"})
"""Kinds whose name is a place or an occasion, before or after them: `BBC Live`, `Live 1985`."""

CREDIT_WORDS = frozenset({"feat", "ft", "featuring", "with", "w", "starring"})
PRODUCER_WORDS = frozenset({"prod", "produced"})
NOT_A_GUEST = frozenset(
    {"you", "me", "u", "us", "him", "her", "them", "it", "my", "your", "or", "out", "a", "love", "no", "that", "this", "all"}
)
"""After `(with ...` these begin a line of the lyrics, not a name."""
MENDED = (
    *("mix", "edit", "live", "demo", "club", "vocal", "radio", "remix", "rework", "bootleg", "version", "extended", "original", "acoustic"),
    *(
        "acustico",
        "acustica",
        "instrumental",
        "karaoke",
        "remaster",
        "remastered",
        "acapella",
        "explicit",
        "album",
        "single",
        "bonus",
        "sped",
    ),
)
"""Version words that are set right when misspelt by a letter; words one letter from common ones (cover, clean, short) are not among them."""
NOT_A_NAME = frozenset(
    {"in", "on", "to", "of", "my", "your", "this", "that", "it", "me", "you", "the", "a", "an", "our", "for", "i", "and"}
)
"""`(In the Mix)`, `(Your Version)`: a version word behind nothing but these is part of the title."""

SOUNDTRACK_PATTERN = (
    r"^(?:music |theme |song |songs |taken |love theme |original song |from and inspired by )*from (?:the )?"
    r"(?:\"|.*\b(?:movie|film|soundtrack|motion picture|series|musical|netflix|disney|anime|ost|game|television|broadway)\b)"
)
"""`From "Rocky IV"`, `From the Original Motion Picture ...`; `(From Amsterdam With Love)` has neither quote nor medium and stays."""

TAIL_AMBIGUOUS = frozenset(
    {"live", "original", "main", "cover", "demo", "single", "radio", "club", "vocal", "dub", "mix", "edit", "version", "audio", "lyrics", "bonus",
     "short", "quick", "official", "mono", "stereo", "soundtrack", "trans", "cut", "tribute", "anniversary", "session", "performance", "mixed"}
)  # fmt: skip
"""Single words that, bare after a closing bracket, may as well end the title: `Nobody (But You) Live`."""

TEMPO_PATTERN = r"^(?:[6-9][0-9]|1[0-9][0-9]|2[0-2][0-9])$"
MUSICAL_KEY_PATTERN = r"^(?:(?:1[0-2]|[1-9])[ab]|[a-g][b#]?(?:m|min|maj|major|minor))$"
"""Pool stamps: `130 11a`, `(132 Ebm)`, `102 4a`."""
