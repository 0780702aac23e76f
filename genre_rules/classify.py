"""The classifier: a source string -> nodes of the tree.

The tests of a string in order; the first answer wins:

1. dropped: a rule of kind drop fires, or the whole string is listed as no genre (years, places, moods, roles) and has no exact rule on
   this platform or below this parent
2. exact: the whole string belongs to a rule, the narrowest scope first: platform and parent, parent, platform, everywhere (with or
   without spaces: `melodicdeathmetal`)
3. parts: the string is cut at strong separators, but not inside a part that a rule knows whole. Each part starts at 1. A path (`A→B`) is
   its last step with an answer, below the step before. A pair (`jazz & blues`, `techno/house`) is cut when either side has a meaning
4. phrases: the longest match takes its words. Then position, `unless` and the remaining words decide; of two heads the last wins
5. patterns: the few regular expressions
6. parent: where every string is a genre, an unknown one below a known parent is at least that parent

Where not every string is a genre (platforms not in `curated`), steps 2 and 4 skip texts that look like a name: see `openers`, `bearers`,
`homely` and `everyday` in words.yaml.

All rules of one step answer. An exact rule that emits nothing marks the string as no genre of the tree. Pass distinct strings only; callers
join back. Strings themselves belong in the rule files.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from genre_rules.classification import Classification, collect_fired, collect_steps
from genre_rules.compile import Above, join_normal_forms, select_narrowest
from genre_rules.compounds import SHORTEST_PIECE, split_compound
from genre_rules.everyday_speech import is_everyday, is_like_a_name
from genre_rules.hashtags import HASHTAG, spell_out
from genre_rules.joined_names import JOINTS, MOST_JOINTS, SLASH, share_head, share_last_head, split_at_joints, split_bare_list, turn_bracket
from genre_rules.normal_form import decode_entities
from genre_rules.separators import ARROW, MACHINE_MARK, cut_list, split_path
from genre_rules.tags import Tag, keep_finest, suppress_umbrellas
from genre_rules.taxonomy import DEEPEST_LEVEL
from genre_rules.word_order import put_adjective_first, put_people_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from genre_rules.compile import CompiledBook, CompiledRule

CONNECTORS = frozenset(("and", "n", "y", "e", "et", "und", "the", "music"))
"""Words that may remain beside any phrase."""
BELOW_A_PARENT = 2
"""The least scope of a rule that names a parent."""
_ID3_NUMBER = re.compile(r"^\(\d{1,3}\)(?=.)")
"""The number of a genre that old tags of files put before its name: `(52)Electronic`."""
_DECADE = re.compile(r"(?:19|20)?\d0s")
_ADDRESS = re.compile(r"(?i)://|\bwww\.|\w@\w|\w\.(?:com|net|org|fm|de|uk|html?|mp3|m4a|flac|wav|ogg|zip|rar|txt|pdf|jpe?g|png)\b")
NOTHING_ABOVE = Above()


class _Match(NamedTuple):
    start: int
    end: int
    rule: CompiledRule

    def is_covering(self, other: _Match) -> bool:
        return self.start <= other.start and other.end <= self.end and (self.end - self.start) > (other.end - other.start)


class Classifier:
    """Classifies strings with a compiled book."""

    def __init__(self, book: CompiledBook) -> None:
        """Take `book` from `compile_book`."""
        self.book = book
        self._above: dict[tuple[str, str], Above] = {("", ""): NOTHING_ABOVE}
        self._tags_by_rules: dict[tuple[str, ...], tuple[Tag, ...]] = {}

    def classify(self, platform: str, string: str, parent: str = "") -> Classification:
        """Return the meaning of `string` of `platform` below `parent` in that platform's own list (empty: none). Never raises."""
        # Nearly all strings have none of these signs, and `in` costs a fraction of the regular expression.
        if ("." in string or "@" in string or "//" in string) and _ADDRESS.search(string):
            return Classification((), is_known=False, path=(f"{string!r} is an address or a file",))
        string = _ID3_NUMBER.sub("", string)
        if "#" in string:
            string = HASHTAG.sub(lambda match: f"#{self._spell_out(platform, match[1])}", string)
        turned = turn_bracket(string) if "(" in string or "[" in string else ""
        if turned and self._is_name(platform, self.book.spellings.normalise(turned)):
            string = turned
        return self._classify_form(platform, decode_entities(string), decode_entities(parent))

    def _spell_out(self, platform: str, tag: str) -> str:
        """Return the hashtag with spaces between its words if they are a genre; else as it is."""
        form = self.book.spellings.normalise(tag)
        known = " " in form or form in self.book.squeezed or form in self.book.phrases
        words = "" if known else spell_out(form, self.book.vocabulary)
        return words if words and self._classify_form(platform, words, "").tags else tag

    def _classify_form(self, platform: str, string: str, parent: str) -> Classification:
        for mark in self.book.path_marks.get(platform, ()):
            string = string.replace(mark, ARROW)
        form = self.book.spellings.normalise(string)
        above = self._read_parent(platform, parent)
        cut = cut_list(string)
        parts, is_list = cut.parts, cut.is_certain
        names = self._find_named_parts(parts)
        is_row = is_list or cut.is_row
        whole = [rule for rule in names if not rule.is_guard] if is_row else self._find_exact(string, form)
        exact, scope = select_narrowest(whole, platform, above)
        is_curated = platform in self.book.curated
        # An everyday word names a genre only where a rule of this platform or parent says so.
        if scope == 0 and not is_curated and is_everyday(self.book, form):
            exact, scope = [], -1
        if above.means and scope < BELOW_A_PARENT and not is_row:
            exact = self._find_kind_of_parent(form, platform, above, exact)
        dropping, _ = select_narrowest(self.book.drop_rules.get(form, ()), platform, above)
        if dropping:
            return self._answer(dropping, f"{form!r} is dropped")
        if scope <= 0 and not is_row and self._is_dropped(form):
            # A decade below a genre is that genre: `1980s` below Classic Rock.
            tags = self._classify_form(platform, parent, "").tags if above.means and _DECADE.fullmatch(form) and is_curated else ()
            return Classification(tags, is_known=True, path=(f"{form!r} is dropped: drop.yaml",))
        # `Dance / Pop` is not Dance-Pop: two genres around a slash win over a node's own name.
        if exact:
            pair = self._classify_fusion(platform, string, parent, exact, is_free=scope == 0 and not is_curated)
            return pair or self._answer(exact, f"{form!r} exactly")
        if len(parts) > 1 and not any(rule.is_guard and rule.find_scope(platform, above) >= 0 for rule in names):
            parts = parts if is_list else self._join_names(parts, platform, above)
            may_be_name = not is_list and MACHINE_MARK not in string
            loose = self._classify_loose_name(platform, string, parts, parent) if cut.is_row and "," not in string else None
            return loose or self._classify_parts(platform, parts, parent, may_be_name=may_be_name)
        steps = split_path(string)
        if len(steps) > 1:
            return self._classify_path(platform, steps)
        return self._classify_pair(platform, string, parent) or self._search_inside(platform, form, parent, above)

    def _classify_loose_name(self, platform: str, string: str, parts: list[str], parent: str) -> Classification | None:
        """Classify a name with a loose hyphen: `Trip - Hop` is one name, `Pop - Rock` are two."""
        if all(self._classify_form(platform, part, parent).tags for part in parts):
            return None
        form = self.book.spellings.normalise(string)
        rules, _ = select_narrowest(self._find_exact(string, form), platform, self._read_parent(platform, parent))
        return self._answer(rules, f"{form!r} exactly") if rules else None

    def _find_exact(self, string: str, form: str) -> Sequence[CompiledRule]:
        found = self.book.exact.get(form, ()) or self.book.squeezed.get(form.replace(" ", ""), ())
        joined = self.book.exact.get(self.book.spellings.normalise(SLASH.sub(" & ", string)), ()) if SLASH.search(string) else ()
        # A name with the joint hides the alias without it: `Rock / Pop` is two genres, `rock pop` is Pop Rock.
        return (*joined, *(rule for rule in found if not rule.id.startswith("node-") and rule not in joined)) if joined else found

    def _is_name(self, platform: str, form: str) -> bool:
        """Return whether the form is the whole name of a genre on this platform, whatever stands above it."""
        rules, _ = select_narrowest(self.book.exact.get(form, ()), platform, NOTHING_ABOVE)
        return any(rule.emit for rule in rules) and (platform in self.book.curated or not is_everyday(self.book, form))

    def _is_fusion(self, exact: Sequence[CompiledRule], platform: str) -> bool:
        """Return whether a name with a slash in it may be two: `Dance/Pop` anywhere, `ambient/drone` where people write freely."""
        is_free = platform not in self.book.curated
        return all(rule.is_name or (is_free and rule.id.startswith(("node-", "heads-"))) for rule in exact)

    def _find_kind_of_parent(self, form: str, platform: str, above: Above, exact: Sequence[CompiledRule]) -> Sequence[CompiledRule]:
        """Return the tree's rules for this kind of the parent when the word alone has another meaning: `Progressive` below Trance."""
        if exact and self._is_below(exact, above):
            return exact
        for name in above.kinds:
            # `Rap & Hip-Hop` below Christian is one kind of it, whichever side names it.
            sides = form.split(" and ") if " and " in form else []
            sides = sides if all(self._is_name(platform, side) for side in sides) else []
            for kind in () if form == name else (f"{form} {name}", f"{name} {form}", *(f"{name} {side}" for side in sides)):
                rules = self.book.exact.get(kind, ()) or self.book.phrases.get(kind, ())
                found, _ = select_narrowest(rules, platform, NOTHING_ABOVE)
                if found and self._is_below(found, above):
                    return found
        return exact

    def _is_below(self, rules: Sequence[CompiledRule], above: Above) -> bool:
        nodes = [self.book.taxonomy.by_id[node_id] for rule in rules for node_id in rule.emit]
        return bool(nodes) and all(self.book.spellings.normalise(node.main_name) in above.means for node in nodes)

    def _classify_fusion(
        self, platform: str, string: str, parent: str, exact: Sequence[CompiledRule], *, is_free: bool
    ) -> Classification | None:
        """Classify the sides of a string that rules know whole, if it is two names all the same."""
        pair = self._classify_pair(platform, string, parent) if SLASH.search(string) and self._is_fusion(exact, platform) else None
        # In free text `cumbia y vallenato` is two names, even if a shop has such a heading.
        if pair or not is_free or any(rule.is_name or len(rule.emit) > 1 for rule in exact):
            return pair
        names = split_at_joints(self.book.spellings.normalise(string).split(), partial(self._is_name, platform))
        return self._classify_parts(platform, names, parent, may_be_name=False) if names else None

    def _classify_pair(self, platform: str, string: str, parent: str) -> Classification | None:
        """Classify both sides of the first joint where a side has a meaning: `r & b & soul` has one, `drum & bass` none."""
        sides = SLASH.split(string)
        if len(sides) == 2:  # noqa: PLR2004 - `black/death metal`
            left, right = (self.book.spellings.normalise(side).split() for side in sides)
            names = share_head(left, right, partial(self._is_name, platform), self.book.own_names.__contains__)
            if names:
                return self._classify_parts(platform, names, parent, may_be_name=False)
        if len(sides) > 2:  # noqa: PLR2004 - `thrash/death/black metal`
            sides = share_last_head(sides, lambda side: self._is_name(platform, self.book.spellings.normalise(side)))
        is_sure = len(sides) > (2 if platform in self.book.curated else 1)
        if is_sure and all(self._is_name(platform, self.book.spellings.normalise(side)) for side in sides):
            return self._classify_parts(platform, sides, parent, may_be_name=False)
        words = self.book.spellings.normalise(SLASH.sub(" & ", string)).split()
        bare = split_bare_list(words, self.book.bare, self.book.longest)
        if bare:
            return self._classify_parts(platform, bare, parent, may_be_name=False)
        joints = [index for index, word in enumerate(words) if word in JOINTS and self._is_joint(words, index)]
        for joint in joints if len(joints) <= MOST_JOINTS else ():
            is_name, is_own_name = partial(self._is_name, platform), self.book.own_names.__contains__
            names = share_head(words[:joint], words[joint + 1 :], is_name, is_own_name) if len(words) > joint + 2 else []
            if names:
                return self._classify_parts(platform, names, parent, may_be_name=False)
            first = self._classify_form(platform, " ".join(words[:joint]), parent)
            if first.tags and first.is_known:
                second = self._classify_form(platform, " ".join(words[joint + 1 :]), parent)
                if second.tags and second.is_known:
                    path = tuple(f"side {side.path[-1]}" for side in (first, second))
                    return Classification(suppress_umbrellas((*first.tags, *second.tags)), True, path, first.fired + second.fired)
        return None

    def find_named(self, string: str) -> Sequence[CompiledRule]:
        """Return rules, guards included, for a name that contains separators; none when `string` contains none."""
        return self._find_named_parts(cut_list(string).parts)

    def _find_named_parts(self, parts: Sequence[str]) -> Sequence[CompiledRule]:
        return self.book.compounds.get(join_normal_forms(parts, self.book.spellings), ()) if len(parts) > 1 else ()

    def _join_names(self, parts: list[str], platform: str, above: Above) -> list[str]:
        """Rejoin neighbouring parts that a rule knows as one name: `Folk, World, & Country, Jazz`."""
        joined: list[str] = []
        start = 0
        # The longest run of parts that a rule knows wins; a part without one stays alone.
        while start < len(parts):
            end = min(len(parts), start + self.book.longest)
            while end > start + 1 and select_narrowest(self._find_named_parts(parts[start:end]), platform, above)[1] < 0:
                end -= 1
            joined.append(" / ".join(parts[start:end]))
            start = end
        return joined

    def _is_dropped(self, form: str) -> bool:
        pattern = self.book.drop_pattern
        return not form or form in self.book.drops or bool(pattern and pattern.fullmatch(form))

    def _is_joint(self, words: list[str], joint: int) -> bool:
        """Return whether the word between is a joint and not part of a name: `jazzy drum and bass` has none."""
        reach = self.book.longest
        inside = (
            " ".join(words[start:end]) in self.book.phrases
            for start in range(max(0, joint - reach), joint)
            for end in range(joint + 2, min(len(words), start + reach) + 1)
        )
        return 0 < joint < len(words) - 1 and not any(inside)

    def _read_parent(self, platform: str, parent: str) -> Above:
        if not parent:
            return NOTHING_ABOVE
        known = self._above.get((platform, parent))
        # A platform repeats few parents under many strings.
        if known is None:
            normalise = self.book.spellings.normalise
            nodes = [tag.node for tag in self._classify_form(platform, parent, "").tags]
            names = [*(node.name for node in nodes if node.level), *(node.main_name for node in nodes)]
            kinds = tuple(dict.fromkeys(map(normalise, names)))
            sides = [side for side in map(normalise, SLASH.split(parent)) if self._is_name(platform, side)]
            form = normalise(split_path(parent)[-1]) if split_path(parent) else ""
            known = self._above[platform, parent] = Above(form, frozenset(kinds), tuple(dict.fromkeys((*sides, *kinds))))
        return known

    def _classify_path(self, platform: str, steps: Sequence[str]) -> Classification:
        answers = []
        # From the narrowest step on: the last one with an answer is the meaning of the path.
        for index in range(len(steps) - 1, -1, -1):
            answer = self._classify_form(platform, steps[index], steps[index - 1] if index else "")
            if answer.tags:
                return Classification(answer.tags, is_known=True, path=(f"path step {steps[index]!r}", *answer.path), fired=answer.fired)
            answers.append(answer)
        known = any(answer.is_known for answer in answers)
        return Classification(
            (), is_known=known, path=("no step of the path says anything", *collect_steps(answers)), fired=collect_fired(answers)
        )

    def _classify_parts(self, platform: str, parts: list[str], parent: str, *, may_be_name: bool) -> Classification:
        parts = list(dict.fromkeys(share_last_head(parts, lambda part: self._is_name(platform, self.book.spellings.normalise(part)))))
        turned = f"{parts[-1]} {parts[0]}"
        # `Blues - Delta`, `Drum & Bass / Liquid`: the second part is a kind of the first and nothing else.
        if len(parts) == 2 and not self._is_name(platform, self.book.spellings.normalise(parts[1])):  # noqa: PLR2004
            parts = [turned] if self._is_name(platform, self.book.spellings.normalise(turned)) else parts
        answers = [self._classify_form(platform, part, parent) for part in parts]
        path = tuple(f"part {part!r}: {step}" for part, answer in zip(parts, answers, strict=True) for step in answer.path)
        if may_be_name and platform not in self.book.curated:
            strange = [part for part, answer in zip(parts, answers, strict=True) if not answer.is_known and not self._is_descriptive(part)]
            # `Pop, Iggy` is a name: an unknown part makes the whole list doubtful.
            if strange:
                return Classification(
                    (), is_known=False, path=(*path, f"{strange[0]!r} is strange beside a genre"), fired=collect_fired(answers)
                )
        tags = suppress_umbrellas(tag for answer in answers for tag in answer.tags)
        return Classification(tags, all(answer.is_known for answer in answers) or bool(tags), path, collect_fired(answers))

    def _is_descriptive(self, part: str) -> bool:
        words = self.book.spellings.normalise(part).split()
        return all(word in self.book.modifiers or word in CONNECTORS for word in words)

    def _search_inside(self, platform: str, form: str, parent: str, above: Above) -> Classification:
        words = form.split()
        path: list[str] = []
        why = "" if self.book.negations.isdisjoint(words) else "negates"
        if not why and platform not in self.book.curated and (is_everyday(self.book, form) or is_like_a_name(self.book, words)):
            why = "reads like everyday speech, a name, a title or a place"
        if why:
            return self._uncarry(platform, form, parent) or Classification((), is_known=False, path=(f"{form!r} {why}",))
        if len(words) > 1:
            words = put_people_first(words, self.book.peoples, self.book.phrases)
            words = put_adjective_first(words, self.book.own_names, self.book.nouns)
        matches = self._find_phrases(platform, words, above, path)
        if not matches and len(words) == 1:
            matches = self._find_phrases(platform, split_compound(self.book, form), above, path)
        if matches:
            return self._answer([match.rule for match in matches], f"{form!r} by phrase", path)
        patterns = [rule for pattern, rule in self.book.find_patterns(form) if not rule.is_vetoed(form)]
        fired, _ = select_narrowest(patterns, platform, above)
        if fired:
            return self._answer(fired, f"{form!r} by pattern", path)
        answer = (
            self._unframe(platform, form, above) or self._uncarry(platform, form, parent) or self._correct(platform, words, above, path)
        )
        if answer:
            return answer
        path.append(f"no rule for {form!r}")
        if above.means and platform in self.book.curated:
            below = self._classify_form(platform, parent, "")
            return Classification(below.tags, is_known=False, path=(*path, f"at least what it stands below, {parent!r}", *below.path))
        return Classification((), is_known=False, path=tuple(path))

    def _uncarry(self, platform: str, form: str, parent: str) -> Classification | None:
        """Classify what is left without the words that carry a genre: `used jazz lps`, `techno podcast`."""
        if platform not in self.book.curated and is_everyday(self.book, form):
            return None
        for core in self.book.carriers.strip(form.split(), self.book.homely_heads):
            answer = self._classify_form(platform, core, parent)
            if answer.tags:
                return replace(answer, path=(*answer.path, f"{form!r} carries {core!r}"))
        return None

    def _unframe(self, platform: str, form: str, above: Above) -> Classification | None:
        """Classify the genre inside the first frame that holds a genre's whole name: `rock music of chile`."""
        is_free = platform not in self.book.curated
        # A sentence is no frame on lists of genres: `this is punk`.
        for frame in self.book.frames:
            if frame.is_curated and (is_free or not self.book.function_words.isdisjoint(form.split())):
                continue
            for name in map(self.book.spellings.normalise, frame.find_names(form, self.book.geography)):
                rules, _ = select_narrowest(self._find_exact(name, name), platform, above)
                is_silent = is_free and (name in self.book.everyday or name in self.book.alone)
                if not is_silent and any(rule.emit for rule in rules):
                    return self._answer(rules, f"{form!r} as {name!r} in a frame")
        return None

    def _correct(self, platform: str, words: list[str], above: Above, path: list[str]) -> Classification | None:
        """Classify the string with its typing errors corrected, the whole string as one name first, or the plural of a name."""
        corrector = self.book.typo_corrector
        # A word that the rules know is never corrected, however close it is to another.
        unknown = [word for word in words if word not in self.book.correct]
        singular = words[0][:-1] if len(unknown) == len(words) == 1 and words[0].endswith(("as", "os")) else ""
        rules, _ = select_narrowest(self.book.phrases.get(singular, ()), platform, above)
        if rules and len(singular) > SHORTEST_PIECE and not is_everyday(self.book, singular):
            return self._answer(rules, f"{words[0]!r} as {singular!r} exactly")
        whole = corrector.correct_whole(words) if unknown else ""
        rules, _ = select_narrowest(self.book.exact.get(whole, ()), platform, above) if whole else ((), -1)
        if rules and not (whole in self.book.everyday and platform not in self.book.curated):
            return self._answer(rules, f"{' '.join(words)!r} as {whole!r} exactly")
        corrected = [word if word in self.book.correct else corrector.correct(word, is_alone=len(words) == 1) for word in words]
        # With all words corrected nothing says that the string is about music.
        if corrected == words or (len(words) > 1 and not any(map(str.__eq__, words, corrected))):
            return None
        form = self.book.spellings.normalise(" ".join(corrected))
        rules, _ = select_narrowest(self.book.exact.get(form, ()), platform, above)
        if rules and not (form in self.book.everyday and platform not in self.book.curated):
            return self._answer(rules, f"{' '.join(words)!r} as {form!r} exactly")
        matches = self._find_phrases(platform, form.split(), above, path)
        if not matches:
            return None
        return self._answer([match.rule for match in matches], f"{' '.join(words)!r} as {' '.join(corrected)!r} by phrase", path)

    def _explain_rejection(self, words: list[str], found: list[_Match]) -> str:
        """Return why it is a person, an instrument or everyday speech in spite of a genre's word; empty when it is not."""
        last = len(words) - 1
        if last and words[last] in self.book.bearers and not any(match.end > last > match.start for match in found):
            return f"what ends in {words[last]!r} is not a genre"
        heads = {" ".join(words[match.start : match.end]) for match in found if match.start and self._is_last(match, words)}
        is_homely = words[0] in self.book.homely_beside and not any(match.start == 0 for match in found)
        if is_homely and not heads.isdisjoint(self.book.homely_heads):
            return f"{words[0]!r} makes everyday speech of it"
        return ""

    def _find_phrases(self, platform: str, words: list[str], above: Above, path: list[str]) -> list[_Match]:
        """Return the matches that are allowed: not inside a longer one, in position, not vetoed, no foreign words left.

        `path` gets the failures.
        """
        form = " ".join(words)
        candidates = self._find_candidates(platform, words, above)
        is_free = platform not in self.book.curated
        silent = self.book.everyday if len(words) == 1 else self.book.everyday | self.book.alone
        everyday = [m for m in candidates if is_free and " ".join(words[m.start : m.end]) in silent]
        # A longer phrase takes the words of the shorter ones inside it.
        found = [match for match in candidates if match not in everyday and not any(longer.is_covering(match) for longer in candidates)]
        why = self._explain_rejection(words, found) if found and is_free else ""
        if why:
            path.append(why)
            return []
        allowed = [match for match in found if not match.rule.is_vetoed(form)]
        last = [match for match in allowed if self._is_last(match, words)]
        fitting = [m for m in allowed if m.rule.place == "anywhere" or m in last or (m.rule.place == "head" and m.start == 0 and not last)]
        heads = [match for match in last if match in fitting]
        # Languages that put the people last put the head first: `hip hop cubano`.
        if heads and all(self.book.geography.issuperset(words[match.start : match.end]) for match in heads):
            first = [match for match in allowed if match.start == 0 and match not in heads and match.rule.place != "last"]
            last, heads, fitting = ([], [], first) if first else (last, heads, fitting)
        if not heads and any(match.end == len(words) for match in everyday):
            return []  # A text that ends in an everyday word is a name: `electro world`.
        start = min((match.start for match in heads), default=0)
        fitting = [match for match in heads if match.start == start] or fitting
        # A name below the head says more than the head: `lovers rock reggae`.
        before = [match for match in allowed if match.start < start and " ".join(words[match.start : match.end]) in self.book.own_names]
        fitting = [match for match in before if self._is_finer(match, fitting, words)] or fitting
        # `outlaw blues`, but not `blues outlaw`: an everyday word only describes a head after it.
        describing = [match for match in everyday if match.end <= start]
        covered = {index for match in (*allowed, *describing) for index in range(match.start, match.end)}
        left = [word for index, word in enumerate(words) if index not in covered and word not in CONNECTORS]
        strange = [word for word in left if word not in self.book.modifiers and word not in self.book.tails]
        kept = [match for match in fitting if self._can_leave(match, platform, words, left, strange)]
        path.extend(
            _explain_failure(match, words, vetoed=match not in allowed, misplaced=match not in fitting, left=strange or left)
            for match in found
            if match not in kept
        )
        return kept

    def _is_finer(self, before: _Match, heads: Sequence[_Match], words: list[str]) -> bool:
        above = {node_id for match in heads for node_id in match.rule.emit}
        nodes = [self.book.taxonomy.by_id[node_id] for node_id in before.rule.emit]
        if len(nodes) != 1 or nodes[0].id in above:
            return False
        if not above.isdisjoint((nodes[0].parent_id, nodes[0].main_id)):
            return True
        # A style of its own says more than any main behind it: `bossa nova jazz`, but not `breton metal`.
        is_main = all(not self.book.taxonomy.by_id[node_id].level for node_id in above)
        name = words[before.start : before.end]
        is_named = nodes[0].level == DEEPEST_LEVEL and self.book.describing.isdisjoint(name) and self.book.bare.isdisjoint(name)
        return is_main and is_named and any(match.start == before.end for match in heads)

    def _can_leave(self, match: _Match, platform: str, words: list[str], left: list[str], strange: list[str]) -> bool:
        if match.rule.residual == "none":
            return not left
        if match.rule.residual == "any":
            return True
        # `rap francais`, but not `jazz hands`.
        if not strange:
            return all(word in self.book.behind or word in CONNECTORS for word in words[match.end :] if word in left)
        # An unknown scene: `wollongong punk`, but not `punk prayer` and not `this is punk`.
        if not self._is_last(match, words) or not self.book.function_words.isdisjoint(words):
            return False
        if platform in self.book.curated:
            return True
        # In free text only one word counts, before a head that nothing else has: `wollongong black metal`.
        head = " ".join(words[match.start : match.end])
        is_distinct = head in (self.book.own_names if " " in head else self.book.distinct)
        is_error = is_distinct and self.book.typo_corrector.correct(words[0]) != words[0]
        return is_distinct and not is_error and strange == words[:1] and len(words[0]) >= SHORTEST_PIECE

    def _is_last(self, match: _Match, words: list[str]) -> bool:
        return all(word in self.book.tails for word in words[match.end :])

    def _find_candidates(self, platform: str, words: list[str], above: Above) -> list[_Match]:
        found: list[_Match] = []
        for start, word in enumerate(words):
            for length in self.book.phrase_lengths.get(word, ()):
                phrase = self.book.phrases.get(" ".join(words[start : start + length]))
                if phrase and start + length <= len(words):
                    rules, _ = select_narrowest(phrase, platform, above)
                    found.extend(_Match(start, start + length, rule) for rule in rules)
        return found

    def _answer(self, rules: Sequence[CompiledRule], how: str, before: Iterable[str] = ()) -> Classification:
        fired = tuple(rule.id for rule in rules)
        # Many strings fire the same rules, so tags are built once per set of rules.
        tags = self._tags_by_rules.get(fired)
        if tags is None:
            nodes = self.book.taxonomy.by_id
            found = [Tag(nodes[node_id], rule.id) for rule in rules for node_id in rule.emit]
            tags = self._tags_by_rules[fired] = suppress_umbrellas(keep_finest(found))
        path = (*before, *(f"{how}: rule {rule_id}" for rule_id in fired))
        return Classification(tags, is_known=True, path=path, fired=fired)


def _explain_failure(match: _Match, words: list[str], *, vetoed: bool, misplaced: bool, left: list[str]) -> str:
    why = "`unless` forbids it" if vetoed else f"must be {match.rule.place}" if misplaced else f"{' '.join(left)!r} is left over"
    return f"not {' '.join(words[match.start : match.end])!r} of rule {match.rule.id}: {why}"
