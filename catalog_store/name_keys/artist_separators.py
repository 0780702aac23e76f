"""Separators of several artists in one string: `A & B feat. C`. The patterns apply to folded text; Rust and Python read them alike.

Characters alone do not decide whether a separator joins two artists or is part of one name (`Earth, Wind & Fire`). That needs known names
(pipeline/linkage/credits.py at build time; search keeps the whole string beside the parts). Add a separator here, for all that split.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from catalog_store.name_keys.folding import is_bare

_DOTTED_GUEST = r"[ (\[]*feat\. ?|[ (\[]+ft\. ?"
"""Japanese credits leave out the space after `feat.`, and the one before it."""
_CROSS = " ?[\u00d7\u2715\u2716\u2661\u2665\u2764] ?"
"""Crosses and hearts join names without spaces, too: `m-flo♥BoA`."""
GUEST_SEPARATOR = rf"{_DOTTED_GUEST}|[ (\[]+(?:feat|ft|featuring|with|starring) | w/ ?"
"""The text after it is a guest."""
_WORDS = r"and|x|vs\.?|versus|with|feat\.?|ft\.?|featuring|starring"
SEPARATOR = rf" ?[,;/&+\u3001] ?|{_CROSS}| (?:{_WORDS}) | w/ ?"
"""Separators of a field that may hold several names."""
NAME_GUEST_SEPARATOR = rf"{_DOTTED_GUEST}|[ (\[]+(?:feat|ft|featuring|starring) | w/ ?"
NAME_SEPARATOR = rf"[,;] | ?\u3001 ?| [/&+] |{_CROSS}| (?:and|x|vs\.?|versus|with|pres\.?|presents|meets|con|avec|mit|und|et|y|og|och) "
"""Separators of a string that may be one name, once that is ruled out: before guests, and between others. Signs inside words (`AC/DC`,
`W&W`) and numbers (`10,000`) stay."""

_NO_KATAKANA = r"[\u3041-\u3096\u3400-\u9fff]"
TIGHT_SEPARATOR = rf"([^0-9 ]),([^0-9 ])|([^ -~])[/&+]([^ -~])|({_NO_KATAKANA})\u30fb({_NO_KATAKANA})"
"""`A,B`, but not `10,000 Maniacs`; signs between letters of other scripts, but not `AC/DC`; the middle dot, but not between katakana, where
it is within the name of a foreigner. Write SPACED instead before splitting."""
SPACED = "${1}${3}${5}, ${2}${4}${6}"

ACCOMPANIMENT = (
    r"^(?:(?:his|her|their)(?:[a-z]*)(?:orch|orchestra|band|boys|girls|trio|quartet|quintet|sextet|combo|ensemble|chorus|choir|friends|musicians|group|stars)"
    r"|(?:all)?(?:friends|guests|others|company|co|more|orch|orchestra|chorus|choir|band|orchester|orquesta|orchestre|the))$"
)
"""After a separator these are not artists: `Glenn Miller & His Orchestra`, `A & Friends`. Matched against keys without spaces."""

_SEPARATOR_WORDS = frozenset({"and", "x", "vs", "versus", "with", "feat", "ft", "featuring", "starring"})
"""A field without signs and without one of these words has no separator."""
_GUEST_SEPARATOR_RE, _SEPARATOR_RE = re.compile(GUEST_SEPARATOR), re.compile(SEPARATOR)


class ArtistField(NamedTuple):
    """A folded artist field split up: all primary artists as one text, each of them, and the guests."""

    primary: str
    names: tuple[str, ...]
    guests: tuple[str, ...]


def split_artist_field(folded: str) -> ArtistField:
    """Split `a & b feat. c` into `a & b`, (a, b), (c,). A field that begins with a guest separator has no guests: all of it is primary."""
    if is_bare(folded) and _SEPARATOR_WORDS.isdisjoint(folded.split(" ")):
        return ArtistField(folded, (folded,), ())
    # Guests first: `&` after `feat.` joins guests, not main artists.
    before, *after = _GUEST_SEPARATOR_RE.split(folded)
    if not before.strip():
        before, after = folded, []
    return ArtistField(before, _split_names(before), tuple(name for part in after for name in _split_names(part.rstrip(")]"))))


def _split_names(folded: str) -> tuple[str, ...]:
    return tuple(name for name in _SEPARATOR_RE.split(folded) if name.strip())
