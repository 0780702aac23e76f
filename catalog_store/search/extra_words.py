"""Words that find a document although no name has them: initials of artists, sounds of names in other scripts, composers.

Each has a column form (build) and a plain form (queries); both must agree. They are paired like words of names (search_build.py), but no
title and no list of artists holds them: line_comparison.py decides whether a document fits. A sound begins with TAB like a variant, so
that typing errors are never looked for among sounds.
"""

from __future__ import annotations

import re

import polars as pl

from catalog_store.name_keys.romanisation import build_sound_key, romanise
from catalog_store.search.layout import FIELD_SEPARATOR
from catalog_store.search.whole_names import write_as_heard

SOUND = f"{FIELD_SEPARATOR}~"
"""Prefix that marks a word of the index as a sound."""
_LEAST_WORDS, _MOST_WORDS = 3, 6
"""Words of a name that is known by its initials."""
_SMALL_WORDS = ("in", "the", "of", "and", "a", "on", "at", "for", "to")
_LEAST_INITIALS = 3
_LEAST_CONSONANTS = 3

_SURNAMES = (
    "albeniz albinoni bach bartok beethoven bellini berlioz bernstein bizet borodin brahms britten bruch bruckner byrd chabrier"
    " chopin clementi copland corelli couperin czerny debussy delibes donizetti dowland dvorak elgar enescu faure franck gershwin"
    " gluck gounod granados grieg handel haydn hindemith hummel janacek khachaturian kodaly lehar liszt lully mahler massenet"
    " mendelssohn messiaen monteverdi mozart mussorgsky nielsen offenbach orff pachelbel paganini palestrina pergolesi piazzolla"
    " poulenc prokofiev puccini purcell rachmaninoff rameau ravel respighi rossini saens satie scarlatti schoenberg schubert"
    " schumann scriabin shostakovich sibelius smetana strauss stravinsky szymanowski tallis tchaikovsky telemann verdi vieuxtemps"
    " vivaldi wagner webern wieniawski ysaye"
)
COMPOSERS = frozenset(_SURNAMES.split())
"""Surnames as keys, without those that are words or common names."""
_CATALOGUES = {"bwv": "bach", "hwv": "handel", "kv": "mozart", "rv": "vivaldi", "hob": "haydn", "k": "mozart"}
"""Catalogues of one composer's works, and the composer."""
_CLASSICAL = (
    "op|opus|no|nr|symphon[a-z]*|sinfon[a-z]*|concert[a-z]*|konzert[a-z]*|sonat[a-z]*|quartet[a-z]*|requiem|mass|messe|missa|aria|suite"
    "|prelude|fugue|etude[a-z]*|nocturne[a-z]*|waltz|walzer|overture|act|king|ballade|mazurka[a-z]*|polonaise[a-z]*|cantata|minor|major"
    "|dur|moll|lieder|opera|romance|impromptu|variations|toccata|partita"
)
_IS_CLASSICAL = rf"(?:^| )(?:{_CLASSICAL})(?: |$)|(?:^| )(?:bwv|hwv|kv?|rv|hob|d)(?: |)[0-9]"
_CATALOGUE = r"(?:^| )(bwv|hwv|kv|rv|hob|k) ?(?:[ivx]+ ?)?[0-9]{1,4}(?: |$)"

_DIGIT_IN_WORD = "[0-9][a-z]|[a-z][0-9]"
_IS_CLASSICAL_RE, _CATALOGUE_RE, _DIGIT_IN_WORD_RE = map(re.compile, (_IS_CLASSICAL, _CATALOGUE, _DIGIT_IN_WORD))


def build_sounds(keys: pl.DataFrame, key: str) -> pl.DataFrame:
    """Replace the text column `key` by `word`: the sound of each key with letters of other scripts, or with digits in a word (`2pac`)."""
    other = keys.filter((pl.col(key).str.len_bytes() != pl.col(key).str.len_chars()) | pl.col(key).str.contains(_DIGIT_IN_WORD))
    # One by one and not as `build_sound_key_series`, which leaves a letter of five in a row doubled: queries would not find it.
    sounds = other.with_columns(word=pl.Series([build_sound_key(text) for text in other[key]], dtype=pl.String))
    return sounds.filter(pl.col("word") != "").with_columns(word=pl.lit(SOUND) + pl.col("word")).drop(key)


def build_sound(key: str) -> str:
    """Return the sound of a key, as `build_sounds` does for each of a column; also of a Latin key."""
    return SOUND + build_sound_key(key)


def build_reading_key(folded: str) -> str:
    """Return the sound of a Japanese reading: its consonants; of fewer than three, all letters as heard (`uso`)."""
    consonants = build_sound_key(folded)
    return consonants if len(consonants) >= _LEAST_CONSONANTS or not consonants else write_as_heard(romanise(folded))


def has_digit_in_word(key: str) -> bool:
    """Return whether a word of the key has both letters and digits."""
    return _DIGIT_IN_WORD_RE.search(key) is not None


def build_initials(keys: pl.DataFrame, key: str) -> pl.DataFrame:
    """Replace the text column `key` by `word`: the initials of names of three to six words, with and without small words."""
    words = pl.col(key).str.split(" ")
    fitting = keys.filter(
        words.list.len().is_between(_LEAST_WORDS, _MOST_WORDS) & (pl.col(key).str.len_bytes() == pl.col(key).str.len_chars())
    )
    large = words.list.filter(~pl.element().is_in(_SMALL_WORDS))
    first = [part.list.eval(pl.element().str.head(1)).list.join("") for part in (words, large)]
    spelled = fitting.with_columns(word=pl.concat_list(first).list.unique()).drop(key).explode("word", empty_as_null=False)
    return spelled.filter(pl.col("word").str.len_chars() >= _LEAST_INITIALS)


def list_initials(words: tuple[str, ...]) -> set[str]:
    """Return the initials of a name, as `build_initials` does."""
    if not _LEAST_WORDS <= len(words) <= _MOST_WORDS:
        return set()
    found = {"".join(word[0] for word in words), "".join(word[0] for word in words if word not in _SMALL_WORDS)}
    return {one for one in found if len(one) >= _LEAST_INITIALS}


def build_composers(titles: pl.DataFrame, core: str) -> pl.DataFrame:
    """Replace the text column `core` by `word`: composers that a title of classical music names, by surname or catalogue."""
    classical = titles.filter(pl.col(core).str.contains(_IS_CLASSICAL))
    named = pl.col(core).str.split(" ").list.filter(pl.element().is_in(list(COMPOSERS)))
    catalogue = pl.col(core).str.extract(_CATALOGUE).replace_strict(_CATALOGUES, default=None)
    found = classical.with_columns(word=pl.concat_list(named, catalogue).list.drop_nulls().list.unique()).drop(core)
    return found.explode("word", empty_as_null=False)


def list_composers(core: str) -> frozenset[str]:
    """Return the composers that a title names, as `build_composers` does."""
    if not _IS_CLASSICAL_RE.search(core):
        return frozenset()
    catalogue = _CATALOGUE_RE.search(core)
    return COMPOSERS.intersection(core.split(" ")) | ({_CATALOGUES[catalogue[1]]} if catalogue else set())
