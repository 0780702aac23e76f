"""Generic titles: keys that many recordings of one artist have, and that therefore identify none of them.

Two kinds of titles: movements (`Allegro ma non troppo`, `Menuett I/II`), which mean something under the name of their work only, and
stand-ins for a title (`Untitled`, `Intro`). A title is generic if the vocabulary accounts for all of it. Out of scope: what
linkage does about a generic title (atoms.py, key_edges.py, typo_edges.py), live takes (live_takes.py), and the reading of titles
(catalog_store/name_keys).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_MOVEMENTS = (
    r"adagietto|adagi?o|allegretto|allegro|allegramente|allemand[ae]|andantino|andante|ari[ae]|arioso|badinerie|bourr?ee?|cadenza|chaconne|"
    r"chorale?|chor|chorus|ciaccona|coro|courante|corrente|finale|fug[ae]|fugue|furiant|gavott[ae]|gavotte|gigue|giga|grave|interme[dz]+o|"
    r"introduzione|largh?etto|largo|lento|maestoso|marcia|mazurka|menuett?o?|minuett?o?|moderato|musette|ouverture|overture|passacaglia|"
    r"passepied|pastorale|polonaise|pr[ae]+ludium|preludio|prelude|prestissimo|presto|promenade|recitativ[eo]?|recitative|rezitativ|"
    r"rigaudon|rondeau|rondo|saraband[ae]?|scherzando|scherzo|siciliana|siciliano|sinfonia|tarantella|thema|toccata|trio|variations?|"
    r"variation(?:en)?|vivacissimo|vivace|аллегро|адажио|анданте|ларго|менуэт|престо|рондо|скерцо|финал|увертюра|прелюдия|фуга"
)
_STAND_INS = (
    r"untitled|notitle|unknowntitle|unknowntrack|ohnetitel|sanstitre|senzatitolo|sintitulo|semtitulo|безназвания|无题|"
    r"bonustrack|hiddentrack|ghosttrack|track|titel|piste|"
    r"intro|introduction|outro|interlude|interludio|skit|segue|interview|dialogue|reprise|prologue|epilogue"
)
_FILLERS = (
    r"[0-9]+|[ivx]+|[abcd]|al|alla|assai|brio|cantabile|con|dance|dei|della|dell|di|dolce|dolente|dur|ed|energico|espressivo|et|fuoco|"
    r"giocoso|giusto|grazioso|grazia|in|ma|maggiore|major|meno|minor|minore|moll|molto|mosso|moto|no|non|nr|part|piu|poco|pomposo|pt|"
    r"quasi|satz|semplice|sostenuto|spirito|spiritoso|teil|tempo|the|tranquillo|troppo|un|und|and|e|de|scherzoso|sempre"
)
_WORKS = (
    r"(?i)concert|konzert|концерт|symphon|sinfoni|симфон|sonat|сонат|suite|сюита|partita|quartet|квартет|quintet|sextet|oct?et|\btrio\b|"
    r"requiem|\bmass\b|messe|missa|oratori|cantata|kantate|кантата|ouvert[uü]r|overture|увертюра|divertiment|serenad|rhapsod|fantasi|"
    r"passion|ballet|oper[ae]?\b|\bop(?:us|\.)|соч\.|"
    r"\b(?:bwv|kv?|rv|hob|hwv|twv|woo|wq|d)\.? ?[0-9ivx]|pictures at|\b(?:major|minor|dur|moll)\b"
)


_NAMELESS = (
    r"^(?:|\W+|(?:[0-9]*(?:untitled|notitle|unknowntitle|unknowntrack|ohnetitel|sanstitre|senzatitolo|sintitulo|semtitulo|безназвания|无题|"
    r"(?:audio)?track|titel|piste)[0-9]*))$"
)


_COMPACT_WORKS = (
    r"concert|konzert|концерт|symphon|sinfoni|симфон|sonat|сонат|suite|сюита|partita|quartet|quartett|квартет|quintet|sextet|requiem|messe|"
    r"missa|oratori|cantata|kantate|кантата|ouvert|overture|увертюра|divertiment|serenad|rhapsod|fantasi|passion|nocturne|etude|prelud|"
    r"mazurka|impromptu|op[0-9]+|(?:bwv|hwv|twv|rv|woo|kv|k|hob|d)[0-9]{2,}|[a-h](?:flat|sharp|es|is)?(?:major|minor|dur|moll)"
)
_PARTS_OF_MASSES = (
    r"kyrie(?:eleison)?|gloria(?:inexcelsisdeo)?|credo|sanctus|benedictus|agnusdei|introitus?|requiemaeternam|diesirae|tubamirum|rextremendae|"
    r"recordare|confutatis|lacr[iy]mosa|domineje[sz]u|hostias|luxaeterna|liberame|offertori(?:um|o)|pieje[sz]u|inparadisum|"
    r"temaconvariazioni|themeandvariations|themamitvariationen"
)


def is_work_title(title_key: pl.Expr) -> pl.Expr:
    """Return whether a compact title names a composition or a movement, which several artists play."""
    return title_key.str.contains(_COMPACT_WORKS) | is_movement_title(title_key)


def is_title_of_work(heading: pl.Expr) -> pl.Expr:
    """Return whether a heading is the title of a composition, and not of a side, a medium or a section (`CD 2`, `Bonus Tracks`)."""
    return heading.str.contains(_WORKS)


def is_movement_title(title_key: pl.Expr) -> pl.Expr:
    """Return whether a compact title names only movements: `iallegromanontroppo`."""
    # The parts of a mass are titles of songs as well: only behind a number do they name a movement.
    numbered = rf"^(?:[0-9]+|[ivx]+)(?:{_PARTS_OF_MASSES})(?:{_PARTS_OF_MASSES}|{_MOVEMENTS}|{_FILLERS})*$"
    return title_key.str.contains(rf"^(?:{_FILLERS})*(?:{_MOVEMENTS})(?:{_MOVEMENTS}|{_FILLERS})*$") | title_key.str.contains(numbered)


def is_generic_title(title_key: pl.Expr) -> pl.Expr:
    """Return whether a compact title names only movements or stands for a missing title: `untitled2`."""
    return is_movement_title(title_key) | title_key.str.contains(rf"^(?:{_FILLERS})*(?:{_STAND_INS})(?:{_STAND_INS}|{_FILLERS})*$")


def is_stand_in(title_key: pl.Expr) -> pl.Expr:
    """Return whether a compact title only says that the title is missing: `untitled`, `track03`, nothing."""
    return title_key.str.contains(_NAMELESS)
