"""Candidate selection: documents that hold word pairs of the query, those with most evidence first.

There are two lookups. `find_by_words` takes the words as typed. `find_by_other_readings` runs only when the first found nothing good: it
reads each word that matched no pair in other ways (typo_lookup.py) and pairs it with all words of the other side. How well a document fits
is decided in reranker.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rapidfuzz import fuzz, process

from catalog_store.search.extra_words import SOUND, build_reading_key, build_sound
from catalog_store.search.layout import hash_artist_word, hash_title_word
from catalog_store.search.line_query import select_lookup_words
from catalog_store.search.typo_lookup import find_neighbours, join_neighbours, split_parts
from catalog_store.search.whole_names import ANY, build_whole_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalog_store.search.line_query import LineQuery
    from catalog_store.search.query_names import QueryNames
    from catalog_store.search.search_index import SearchIndex

WORDS_PER_SIDE = 10
"""Words of one field that are looked up: the rarest, because the index holds the rarest words of each name."""
COMPARED_AT_ONCE, COMPARED_AT_MOST = 50, 1_000
"""Documents compared at first, and at most."""
_SHORTEST_SOUND = len(SOUND) + 3
"""Three consonants."""
COMPARED_IN_ANY_FIELD, COMPARED_OF_FEW_WORDS, COMPARED_BY_WHOLE_NAME = 64, 12, 12
"""Documents compared in the wide reading: those with pairs of words, the same for a query of few words, and those of one artist or with one
title."""
_FEW_WORDS = 20
_LEAST_EVIDENCE = 0.35
"""Least evidence for a document of the wide reading, as a share of the best one's."""
_LEAST_ALIKE_NAME = 55
"""Least likeness, in hundredths, of a name with one that was asked for."""
_LEAST_ALIKE_PART = 75
_SHORTEST_PART_OF_NAME, _MOST_OF_ONE_ARTIST = 4, 128
_LENGTH_PENALTY, _LARGEST_LENGTH_GAP = 0.009, 10
"""Penalty per word of difference in title length, and the largest difference that counts. Their product, .09, stays below the least
evidence of a pair: 1 / (1 + log2 POSTINGS_CAP) = .1."""
_WIDENED_WORDS = 4
"""Words of one side that are read in other ways."""
_COMMON_COUNT, _COMMON_SHARE = 64, 1 / 16_000
"""A word in this many documents, and in this share of all, is common. A typing error seldom produces another common word."""
_READINGS_PER_SIDE = 48
"""Other readings of all words of one side together."""


class Lookup(NamedTuple):
    """The result of the first lookup.

    `counts` is how many documents hold each pair, row by row: a row per artist word, a column per title word.
    """

    artist_words: Sequence[str]
    title_words: Sequence[str]
    counts: Sequence[int]
    documents: Sequence[int]


def find_by_words(index: SearchIndex, query: QueryNames) -> Lookup:
    """Find documents that hold pairs of the words as typed."""
    artist_words, title_words = _select_words(index, query.artist_words), _select_words(index, query.title_words)
    counts, documents, weights = index.postings.look([_hash_words(artist_words, title_words)])
    return Lookup(artist_words, title_words, counts, _rank_documents(index, documents, weights, query))


def find_by_other_readings(index: SearchIndex, query: QueryNames, lookup: Lookup) -> Sequence[int]:
    """Find documents that hold pairs of corrected words; none when every word as typed is in a pair.

    If only one side has unmatched words, the others may have matched by chance. Then all words of the other side are read in other ways
    too.
    """
    # `counts` is a flat grid, row by row: a slice per artist word, a stride per title word.
    width = len(lookup.title_words)
    unmatched_artist = [word for row, word in enumerate(lookup.artist_words) if not any(lookup.counts[row * width : (row + 1) * width])]
    unmatched_title = [word for column, word in enumerate(lookup.title_words) if not any(lookup.counts[column::width])]
    if not (unmatched_artist or unmatched_title):
        return ()
    left = _collect_readings(index, lookup.artist_words, unmatched_artist or lookup.artist_words)
    right = _collect_readings(index, lookup.title_words, unmatched_title or lookup.title_words)
    # Other readings of one side are paired with all words of the other side; words as typed were paired before.
    grids = _hash_words(left, lookup.title_words), _hash_words([*lookup.artist_words, *left], right)
    _, documents, weights = index.postings.look(grids)
    return _rank_documents(index, documents, weights, query)


def find_in_any_field(index: SearchIndex, query: QueryNames, line: LineQuery) -> tuple[Sequence[int], frozenset[int]]:
    """Find documents that hold pairs of any words of both fields, in any spelling, best first; and those whose title sounds like it."""
    artist_words, title_words = select_lookup_words(index.vocabulary, line, query)
    every = list(dict.fromkeys((*artist_words, *title_words)))
    if not every:
        return (), frozenset()
    # Letters stand for initials of one of two names (`acdc`, `pimp`): two letters together find names by chance.
    letters, words = [word for word in every if len(word) == 1], [word for word in every if len(word) > 1]
    _, documents, weights = index.postings.look([_hash_words(words, every), _hash_words(letters, words)])
    # Documents with few pairs beside one with many have them by chance. Their comparison is most of the cost of an absent query.
    least = _LEAST_EVIDENCE * max(weights, default=0.0)
    kept = [place for place, weight in enumerate(weights) if weight >= least]
    documents, weights = [documents[place] for place in kept], [weights[place] for place in kept]
    by_sound = _find_by_sound(index, line, artist_words)
    limit = COMPARED_OF_FEW_WORDS if len(every) <= _FEW_WORDS else COMPARED_IN_ANY_FIELD
    return [*_rank_documents(index, documents, weights, query, limit)[:limit], *sorted(by_sound.difference(documents))], by_sound


def find_by_whole_names(index: SearchIndex, line: LineQuery) -> Sequence[int]:
    """Find documents of an artist whose whole name sounds like a part of the query, and documents with such a title.

    Most of them fit no better than by chance: only those whose other name is nearly in the query are returned.
    """
    by_artist, by_title = _look_whole_names(index, line.artist_names, line.title_names)
    # Parts of a line may be names by chance. They are read only when the fields as typed name no artist.
    if not by_artist:
        by_artist, _ = _look_whole_names(index, line.parts, ())
    by_artist = by_artist[:_MOST_OF_ONE_ARTIST]
    titles = index.titles.of(by_artist)
    titled, named = [*by_artist], [title.core for title in titles]
    for document, title in zip(by_artist, titles, strict=True):
        if title.others:
            titled += [document] * len(title.others)
            named += title.others
    credit_of = index.credit_of.of(by_title)
    credits_ = list(dict.fromkeys(credit_of))
    names = index.credits.join_primary(credits_)
    alike = set(_select_alike(line.artist_names, credits_, names))
    if len(line.artist.words) == 1:
        alike.update(credit for credit, name in zip(credits_, names, strict=True) if _is_part_alike(line.artist.compact, name))
    by_title = [document for document, credit in zip(by_title, credit_of, strict=True) if credit in alike] if alike else []
    return list(dict.fromkeys((*_select_alike(line.title_names, titled, named), *by_title[:COMPARED_BY_WHOLE_NAME])))


def _look_whole_names(index: SearchIndex, artists: Sequence[str], titles: Sequence[str]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the documents of the artists, and the documents with the titles."""
    keys = [[build_whole_key(name) for name in names if name] for names in (artists, titles)]
    _, by_artist, _ = index.postings.look([_hash_words(keys[0], [ANY])])
    _, by_title, _ = index.postings.look([_hash_words([ANY], keys[1])])
    return by_artist, by_title


def _select_alike(asked: Sequence[str], numbers: Sequence[int], names: Sequence[str]) -> Sequence[int]:
    """Return the numbers of the names that are like one of those asked for, best first."""
    if not names:
        return ()
    # A measure of common letters takes 45 ns a name; one that finds a name inside a longer text takes 800.
    likeness = process.cdist(asked, names, scorer=fuzz.ratio, score_cutoff=_LEAST_ALIKE_NAME, dtype=np.uint8).max(axis=0, initial=0)
    # Half a name is unlike the whole: `rhapsody` and `bohemian rhapsody in blue`. One text of all names is searched at once.
    text = "\n".join(names)
    for one in asked:
        place = text.find(one) if len(one) >= _SHORTEST_PART_OF_NAME else -1
        while place >= 0:
            number = text.count("\n", 0, place)
            likeness[number] = max(likeness[number], _LEAST_ALIKE_NAME)
            line_end = text.find("\n", place)
            place = text.find(one, line_end) if line_end >= 0 else -1
    best = np.argsort(-likeness.astype(np.int16), kind="stable")[:COMPARED_BY_WHOLE_NAME]
    return [numbers[place] for place in best.tolist() if likeness[place]]


def _is_part_alike(asked: str, name: str) -> bool:
    """Return whether a name of several words may be meant by its first or last word, or by the initials of two words."""
    first, last = name.partition(" ")[0], name.rpartition(" ")[2]
    if len(asked) < _SHORTEST_PART_OF_NAME:
        return asked == first[:1] + last[:1]
    return any(asked[0] == part[0] and fuzz.ratio(asked, part) >= _LEAST_ALIKE_PART for part in (first, last))


def _find_by_sound(index: SearchIndex, line: LineQuery, artist_words: Sequence[str]) -> frozenset[int]:
    """Find documents whose title sounds like the title field and that have a word of the artist field."""
    # Few consonants are shared by many titles. Short readings are in the index with their vowels.
    sound = build_sound(line.keys[1])
    read = sound if len(sound) >= _SHORTEST_SOUND else SOUND + build_reading_key(line.titles[0].field.compact)
    if len(read) < _SHORTEST_SOUND or not index.vocabulary.has(read):
        return frozenset()
    _, documents, _ = index.postings.look([_hash_words(artist_words, [read])])
    return frozenset(documents)


def _hash_words(artist_words: Sequence[str], title_words: Sequence[str]) -> tuple[list[int], list[int]]:
    return list(map(hash_artist_word, artist_words)), list(map(hash_title_word, title_words))


def _select_words(index: SearchIndex, words: Sequence[str]) -> Sequence[str]:
    return words if len(words) <= WORDS_PER_SIDE else index.vocabulary.select_rarest(words, WORDS_PER_SIDE)


def _collect_readings(index: SearchIndex, words: Sequence[str], doubtful: Sequence[str]) -> list[str]:
    """Return other readings of the `doubtful` words: words a few edits away, and words with a space added or removed."""
    # A common word beside others is taken to be right. The lookup of near words is most of the cost of a query without an answer: without
    # this rule such a query costs twice as much.
    if len(words) > 1:
        # Trusting common words cut the words read in other ways from .69 to .23 a query (1 M recordings), and changed one answer of 10,800.
        common = max(_COMMON_COUNT, int(_COMMON_SHARE * index.documents))
        doubtful = [word for word in doubtful if index.vocabulary.count(word) < common]
    doubtful = doubtful[:_WIDENED_WORDS]
    # Without doubtful words nothing is divided by their number.
    near = [other for word in doubtful for other in find_neighbours(index.vocabulary, word)[: _READINGS_PER_SIDE // len(doubtful)]]
    pieces = [*join_neighbours(words), *(part for word in doubtful for part in split_parts(word))]
    return list(dict.fromkeys((*near, *filter(index.vocabulary.has, pieces))))


def _rank_documents(
    index: SearchIndex, found: Sequence[int], weights: Sequence[float], query: QueryNames, unsorted: int = COMPARED_AT_ONCE
) -> Sequence[int]:
    """Return the best documents, best first: more and rarer pairs, then a title of similar length, then popularity.

    At most `unsorted` documents stay unsorted.
    """
    if len(found) <= unsorted:
        # All of them are compared, so their order does not matter.
        return found
    # An artist may have a hundred sonatas. The one titled just `Sonata` must be among the documents that are compared.
    size = query.title.count(" ") + 1 + bool(query.variant)
    documents = np.array(found)
    unlike = np.minimum(np.abs(index.count_title_words(documents) - size), _LARGEST_LENGTH_GAP)
    weight = np.array(weights) - _LENGTH_PENALTY * unlike
    if len(documents) > COMPARED_AT_MOST:
        # A partition finds the limit without sorting all candidates. The slice below cuts ties at the limit.
        kept = weight >= np.partition(weight, -COMPARED_AT_MOST)[-COMPARED_AT_MOST]
        documents, weight = documents[kept], weight[kept]
    # Documents ascend, so a stable sort leaves equal weights in order of popularity.
    best: list[int] = documents[np.argsort(-weight, kind="stable")][:COMPARED_AT_MOST].tolist()
    return best
