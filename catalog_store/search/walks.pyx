# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# distutils: language = c++
"""Loops over the arrays of an index and over lines of words. They are compiled, because Python takes 50 to 100 ns a value.

`make setup` and the wheel compile this module (pyproject.toml); walks.pyi has its types. The meaning of a query and how well a name fits do
not belong here.
"""

from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.math cimport log2
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp
from libcpp.algorithm cimport sort, stable_sort
from libcpp.string cimport string
from libcpp.vector cimport vector

from catalog_store.search.credits import Artists
from catalog_store.layered_order import IN_BASE, PLACE_BITS
from catalog_store.search.layout import DELTA_TAG_BITS, FIELD_SEPARATOR, HASH_BITS, POSTINGS_CAP, SHORT_RANKS, TAG_BITS
from catalog_store.search.titles import Title

cdef char _SEPARATOR = ord(FIELD_SEPARATOR)
cdef uint64_t _SHORT_RANKS = SHORT_RANKS
cdef int _TAG_BITS = TAG_BITS
cdef int _HASH_BITS = HASH_BITS
cdef int _DELTA_TAG_BITS = DELTA_TAG_BITS
cdef int _PLACE_BITS = PLACE_BITS
cdef uint64_t _IN_BASE = IN_BASE
cdef int _CAP = POSTINGS_CAP
cdef int _UNIT_BITS = 16


cdef extern from *:
    int _bits "__builtin_popcountll"(unsigned long long value) noexcept nogil


cdef struct Numbers:
    # Values of an array of uint32 or uint64, as in its file. The pointer does not keep the array alive: its holder does.
    const uint8_t* first
    uint64_t length
    bint is_wide


cdef Numbers _numbers(array) except *:
    cdef const uint8_t[::1] values = array.view("uint8")
    cdef Numbers numbers
    if array.dtype.str not in ("<u4", "<u8"):
        raise ValueError(f"an array of {array.dtype}, where uint32 or uint64 is expected")
    numbers.length = len(array)
    numbers.first = &values[0] if numbers.length else NULL
    numbers.is_wide = array.dtype.itemsize == sizeof(uint64_t)
    return numbers


cdef inline uint64_t _at(const Numbers& numbers, uint64_t place) noexcept nogil:
    return (<const uint64_t*> numbers.first)[place] if numbers.is_wide else (<const uint32_t*> numbers.first)[place]


cdef struct Evidence:
    uint64_t document
    double weight


cdef bint _comes_first(const Evidence& one, const Evidence& other) noexcept nogil:
    return one.document < other.document


cdef inline bint _is_in_base(uint64_t document) noexcept nogil:
    return (document & _IN_BASE) == _IN_BASE


cdef inline uint64_t _number(uint64_t document) noexcept nogil:
    # A document of the base has its number above, one of the delta has it below its place.
    return document >> _PLACE_BITS if _is_in_base(document) else document & _IN_BASE


cdef class Column:
    """One value of each document, in base and delta."""

    cdef object _base, _delta

    def __init__(self, base, delta):
        """Take the values of both as memory views: half the time of a NumPy access."""
        self._base, self._delta = base, delta

    def __getitem__(self, uint64_t document):
        """Return the value of a document; IndexError for an unknown one."""
        return (self._base if _is_in_base(document) else self._delta)[_number(document)]

    def of(self, documents):
        """Return the values of several documents, in their order; IndexError for an unknown one."""
        cdef uint64_t document
        return [(self._base if _is_in_base(document) else self._delta)[_number(document)] for document in documents]


cdef class Postings:
    """The posting lists of word pairs: `pair_starts`, `pair_tags` and `pair_documents` of base and delta (layout.py)."""

    cdef object _arrays
    cdef Numbers _starts, _documents, _delta_starts, _delta_documents, _places
    cdef const uint16_t[::1] _tags
    cdef const uint32_t[::1] _delta_tags
    cdef const uint8_t[::1] _dead
    cdef int _bits, _delta_bits

    def __init__(self, base, delta, int bits, int delta_bits, dead, places):
        """Take (starts, tags, documents) of both, their bits of a bucket, the bitmap of replaced documents, and the places of the delta.

        ValueError when the arrays do not belong together.
        """
        # The pointers of `Numbers` do not own their memory: this reference keeps the mapped files open.
        self._arrays = base, delta, places
        self._starts, self._documents = _numbers(base[0]), _numbers(base[2])
        self._delta_starts, self._delta_documents, self._places = _numbers(delta[0]), _numbers(delta[2]), _numbers(places)
        self._tags, self._delta_tags, self._dead = base[1], delta[1], dead
        self._bits, self._delta_bits = bits, delta_bits
        for (starts, tags, documents), width in ((base, bits), (delta, delta_bits)):
            if not 0 < width <= _HASH_BITS - _TAG_BITS or len(starts) != (1 << width) + 1 or len(tags) != len(documents):
                raise ValueError(f"{len(starts)} starts, {len(tags)} tags, {len(documents)} documents do not belong together")

    def look(self, grids):
        """Return (number of documents of each pair, all these documents ascending, evidence for each document).

        A grid is (hashes of artist words, hashes of title words); each is paired with each, row by row. A pair is evidence for its
        documents. It weighs more when it has fewer of them.
        """
        cdef vector[Evidence] found
        cdef vector[uint64_t] others
        cdef Evidence one
        cdef uint64_t word, other
        cdef size_t at, begin
        cdef list counts = [], documents = [], weights = []
        for left, right in grids:
            others.clear()
            for other in right:
                others.push_back(other)
            for word in left:
                for at in range(others.size()):
                    begin = found.size()
                    self._collect(word ^ others[at], found)
                    counts.append(found.size() - begin)
        # A stable sort adds up weights in the order of the pairs, so every machine gets the same sums.
        stable_sort(found.begin(), found.end(), &_comes_first)
        at = 0
        while at < found.size():
            one = found[at]
            at += 1
            while at < found.size() and found[at].document == one.document:
                one.weight += found[at].weight
                at += 1
            documents.append(one.document)
            weights.append(one.weight)
        return counts, documents, weights

    cdef void _collect(self, uint64_t pair, vector[Evidence]& found) noexcept:
        """Append the documents of a pair, at most POSTINGS_CAP and the most popular ones."""
        cdef uint64_t bucket, number, place, end
        cdef uint64_t known = pair >> (_HASH_BITS - self._bits - _TAG_BITS)
        cdef uint16_t tag = <uint16_t> known
        cdef uint32_t delta_tag = <uint32_t> known
        cdef size_t begin = found.size(), most = begin + _CAP
        cdef Evidence one
        one.weight = 0.0
        # Damaged starts may be behind the end of the file. Every place that a file names is clamped before it is used.
        bucket = pair >> (_HASH_BITS - self._bits)
        end = min(_at(self._starts, bucket + 1), self._documents.length)
        place = _at(self._starts, bucket)
        while place < end and self._tags[place] < tag:
            place += 1
        while place < end and self._tags[place] == tag and found.size() < most:
            number = _at(self._documents, place)
            place += 1
            if (number >> 3) >= <uint64_t> self._dead.shape[0] or not (self._dead[number >> 3] >> (number & 7)) & 1:
                one.document = number << _PLACE_BITS | _IN_BASE
                found.push_back(one)
        if self._delta_documents.length:
            bucket = pair >> (_HASH_BITS - self._delta_bits)
            end = min(_at(self._delta_starts, bucket + 1), self._delta_documents.length)
            place = _at(self._delta_starts, bucket)
            while place < end and self._delta_tags[place] < delta_tag:
                place += 1
            while place < end and self._delta_tags[place] == delta_tag:
                number = _at(self._delta_documents, place)
                place += 1
                if number < self._places.length:
                    one.document = _at(self._places, number) << _PLACE_BITS | number
                    found.push_back(one)
            if found.size() > most:
                sort(found.begin() + begin, found.end(), &_comes_first)
                found.resize(most)
        if found.size() > begin:
            one.weight = 1.0 / (1.0 + log2(<double> (found.size() - begin)))
            for place in range(begin, found.size()):
                found[place].weight = one.weight


cdef class _TitlePool:
    """The titles of one layer: `title_starts`, `title_units`, and the texts of their words by rank (layout.py)."""

    cdef object _arrays
    cdef Numbers _starts, _word_starts
    cdef const uint16_t[::1] _units
    cdef const uint8_t[::1] _words

    def __init__(self, starts, units, word_starts, words):
        self._arrays = starts, word_starts
        self._starts, self._word_starts = _numbers(starts), _numbers(word_starts)
        self._units, self._words = units, words

    cdef bint holds(self, uint64_t number) noexcept nogil:
        return number + 1 < self._starts.length

    cdef int64_t count_words(self, uint64_t number) noexcept nogil:
        cdef uint64_t place, end
        cdef int64_t count = 0
        place, end = _at(self._starts, number), min(_at(self._starts, number + 1), <uint64_t> self._units.shape[0])
        while place < end:
            # The rank of a word depends on the layer. Its units do not count, so that both layers give the same answers.
            place += 1 + (self._units[place] >= _SHORT_RANKS)
            count += 1
        return count

    cdef object read(self, uint64_t number):
        cdef string core, variant
        cdef tuple others = ()
        cdef uint64_t place, end, rank, begin, stop
        cdef const char* word
        cdef size_t length
        place, end = _at(self._starts, number), min(_at(self._starts, number + 1), <uint64_t> self._units.shape[0])
        while place < end:
            rank = self._units[place]
            place += 1
            if rank >= _SHORT_RANKS and place < end:
                rank = _SHORT_RANKS + ((rank - _SHORT_RANKS) << _UNIT_BITS) + self._units[place]
                place += 1
            # An unknown rank leaves begin behind stop, which is reported below. A word may be empty.
            begin, stop = 1, 0
            if rank + 1 < self._word_starts.length:
                begin, stop = _at(self._word_starts, rank), min(_at(self._word_starts, rank + 1), <uint64_t> self._words.shape[0])
            if begin > stop:
                raise IndexError(f"the title of document {number} has a word of rank {rank}, which is none")
            word, length = <const char*> &self._words[0] + begin, stop - begin
            if length > 1 and word[0] == _SEPARATOR and word[1] == _SEPARATOR:
                others += (PyUnicode_DecodeUTF8(word + 2, length - 2, NULL),)
            elif length and word[0] == _SEPARATOR:
                variant.append(word + 1, length - 1)
            else:
                if core.size():
                    core.push_back(b" ")
                core.append(word, length)
        return Title(PyUnicode_DecodeUTF8(core.data(), core.size(), NULL), PyUnicode_DecodeUTF8(variant.data(), variant.size(), NULL), others)


cdef class Titles:
    """The titles of all documents."""

    cdef _TitlePool _base, _delta

    def __init__(self, base, delta):
        """Take (starts, units, starts of words, words) of base and delta."""
        self._base, self._delta = _TitlePool(*base), _TitlePool(*delta)

    cdef _TitlePool _pool(self, uint64_t document):
        cdef _TitlePool pool = self._base if _is_in_base(document) else self._delta
        if not pool.holds(_number(document)):
            raise IndexError(f"there is no document {_number(document)}")
        return pool

    def of(self, documents):
        """Return the titles of several documents, in their order; IndexError for an unknown document or an unknown word in a title."""
        cdef uint64_t document
        return [self._pool(document).read(_number(document)) for document in documents]

    def count_words(self, const int64_t[::1] documents, int64_t[::1] counts):
        """Write the number of words of each document's title into `counts`; a variant counts as one word."""
        cdef Py_ssize_t at
        for at in range(documents.shape[0]):
            counts[at] = self._pool(documents[at]).count_words(_number(documents[at]))


cdef class _CreditPool:
    """The lists of artists of one layer: `credit_starts`, `credit_artists`, `artist_starts` and `artist.bin` of layout.py."""

    cdef object _arrays
    cdef Numbers _starts, _artists, _name_starts
    cdef const uint8_t[::1] _names
    cdef int _role_bits

    def __init__(self, starts, artists, name_starts, names, int role_bits):
        self._arrays, self._role_bits = (starts, artists, name_starts), role_bits
        self._starts, self._artists, self._name_starts = _numbers(starts), _numbers(artists), _numbers(name_starts)
        self._names = names

    cdef object join_primary(self, uint64_t number):
        """Return the keys of the primary artists, in one text."""
        cdef string joined
        cdef uint64_t place, end, artist, begin, stop
        if number + 1 >= self._starts.length:
            raise IndexError(f"there is no list of artists {number}")
        end = min(_at(self._starts, number + 1), self._artists.length)
        for place in range(_at(self._starts, number), end):
            artist = _at(self._artists, place)
            if artist & ((1 << self._role_bits) - 1):
                break
            artist = artist >> self._role_bits
            if artist + 1 >= self._name_starts.length:
                raise IndexError(f"list {number} names an artist {artist}, which is none")
            begin, stop = _at(self._name_starts, artist), min(_at(self._name_starts, artist + 1), <uint64_t> self._names.shape[0])
            if joined.size():
                joined.append(b" ")
            if stop > begin:
                joined.append(<const char*> &self._names[0] + begin, stop - begin)
        return PyUnicode_DecodeUTF8(joined.data(), joined.size(), NULL)

    cdef object read(self, uint64_t number):
        cdef uint64_t place, end, artist, role, begin, stop
        cdef list primary = [], featured = [], aliases = []
        if number + 1 >= self._starts.length:
            raise IndexError(f"there is no list of artists {number}")
        end = min(_at(self._starts, number + 1), self._artists.length)
        for place in range(_at(self._starts, number), end):
            artist = _at(self._artists, place)
            artist, role = artist >> self._role_bits, artist & ((1 << self._role_bits) - 1)
            if artist + 1 >= self._name_starts.length:
                raise IndexError(f"list {number} names an artist {artist}, which is none")
            begin, stop = _at(self._name_starts, artist), min(_at(self._name_starts, artist + 1), <uint64_t> self._names.shape[0])
            name = PyUnicode_DecodeUTF8(<const char*> &self._names[0] + begin, stop - begin, NULL) if stop > begin else ""
            (primary if role == 0 else featured if role == 1 else aliases).append(name)
        return Artists(tuple(primary), tuple(featured), tuple(aliases))


cdef class Credits:
    """The artists of all lists. Numbers of lists go on from the base to the delta."""

    cdef _CreditPool _base, _delta
    cdef uint64_t _in_base

    def __init__(self, base, delta, int role_bits):
        """Take (starts, artists, starts of names, names) of base and delta, and the bits of a role below the number of a name."""
        self._base, self._delta = _CreditPool(*base, role_bits), _CreditPool(*delta, role_bits)
        self._in_base = max(len(base[0]), 1) - 1

    def __getitem__(self, uint64_t number):
        """Return the artists of one list; IndexError for an unknown list or an unknown artist in it."""
        return self._base.read(number) if number < self._in_base else self._delta.read(number - self._in_base)

    def join_primary(self, numbers):
        """Return the keys of the primary artists of several lists, in one text each; IndexError as for one list."""
        cdef uint64_t number
        return [
            self._base.join_primary(number) if number < self._in_base else self._delta.join_primary(number - self._in_base)
            for number in numbers
        ]


cdef const uint8_t* _read(const uint8_t* text, uint32_t* point) noexcept nogil:
    """Read one UTF-8 character and return where the next begins."""
    cdef uint32_t first = text[0]
    if first < 0x80:
        point[0] = first
        return text + 1
    if first < 0xE0:
        point[0] = (first & 0x1F) << 6 | (text[1] & 0x3F)
        return text + 2
    if first < 0xF0:
        point[0] = (first & 0x0F) << 12 | (text[1] & 0x3F) << 6 | (text[2] & 0x3F)
        return text + 3
    point[0] = (first & 0x07) << 18 | (text[1] & 0x3F) << 12 | (text[2] & 0x3F) << 6 | (text[3] & 0x3F)
    return text + 4


cdef int _edits(const uint32_t* one, int length, const uint32_t* other, int other_length, int most, int* rows, int width) noexcept nogil:
    """Count edits between two words by optimal string alignment. The result is only known to exceed `most` when there are more.

    `rows` holds three rows, `width` apart. Only cells at most `most` from the diagonal are filled: others cannot be part of so few edits.
    """
    cdef int row, column, low, high, cost, edits, least = 0, least_before
    cdef int *before = rows
    cdef int *last = rows + width
    cdef int *this = rows + 2 * width
    # Equal beginnings and ends take part in no edit. Most words that reach this function share one of them.
    while length and other_length and one[0] == other[0]:
        one, other, length, other_length = one + 1, other + 1, length - 1, other_length - 1
    while length and other_length and one[length - 1] == other[other_length - 1]:
        length, other_length = length - 1, other_length - 1
    if abs(length - other_length) > most:
        return most + 1
    if length == 0 or other_length == 0:
        return length + other_length
    for column in range(other_length + 1):
        last[column] = column
    for row in range(1, length + 1):
        low, high = max(1, row - most), min(other_length, row + most)
        this[low - 1] = row if low == 1 else most + 1
        least_before, least = least, most + 1
        for column in range(low, high + 1):
            cost = one[row - 1] != other[column - 1]
            edits = min(last[column - 1] + cost, this[column - 1] + 1)
            if column < row + most:
                edits = min(edits, last[column] + 1)
            if cost and row > 1 and column > 1 and one[row - 1] == other[column - 2] and one[row - 2] == other[column - 1]:
                edits = min(edits, before[column - 2] + 1)
            this[column] = edits
            least = min(least, edits)
        # A swap of neighbours reads the row before the last one, so both must exceed `most`.
        if least > most and least_before > most:
            return most + 1
        before, last, this = last, this, before
    return last[other_length]


cdef class SortedWords:
    """Words between newlines, by number of characters and text, and where every `stride`-th word begins: the vocabulary (layout.py)."""

    cdef object _arrays
    cdef Numbers _starts
    cdef const uint8_t[::1] _texts
    cdef Py_ssize_t _stride, _count
    cdef int _longest_told

    def __init__(self, texts, starts, Py_ssize_t stride, int longest_told):
        """Take `starts` of every `stride`-th word and the end. Words over `longest_told` characters count as words of that length."""
        self._arrays, self._texts, self._stride, self._longest_told = starts, texts, stride, longest_told
        self._starts = _numbers(starts)
        self._count = self._starts.length - 1
        if self._count < 0:
            raise ValueError("the end of the words is not stored")

    cdef const uint8_t* _head(self, Py_ssize_t stride) noexcept nogil:
        return &self._texts[0] + min(_at(self._starts, stride), <uint64_t> self._texts.shape[0])

    cdef Py_ssize_t _behind(
        self, int characters, const char* text, Py_ssize_t size, Py_ssize_t first, Py_ssize_t last, bint is_beginning
    ) noexcept nogil:
        """Find the first stride of first..last whose word sorts behind the given one, or behind all words that begin with it."""
        cdef Py_ssize_t middle
        cdef const uint8_t *word
        cdef const uint8_t *stop
        cdef int order
        while first < last:
            middle = (first + last) // 2
            word = self._head(middle)
            stop = _line_end(word, self._head(middle + 1))
            order = min(_characters(word, stop), self._longest_told) - characters
            if order == 0:
                order = memcmp(word, text, min(size, stop - word))
            if order == 0 and not (is_beginning and stop - word >= size):
                order = 1 if stop - word > size else 0
            if order > 0:
                last = middle
            else:
                first = middle + 1
        return first

    def place(self, str word):
        """Return the number of a word; -1 when it is unknown."""
        cdef Py_ssize_t size, stride, number
        cdef const char* text = PyUnicode_AsUTF8AndSize(word, &size)
        cdef const uint8_t *line
        cdef const uint8_t *stop
        cdef const uint8_t *end
        stride = self._behind(min(<int> len(word), self._longest_told), text, size, 0, self._count, False) - 1
        if stride < 0:
            return -1
        number, line, end = stride * self._stride, self._head(stride), self._head(stride + 1)
        while line < end:
            stop = _line_end(line, end)
            if stop - line == size and memcmp(line, text, size) == 0:
                return number
            number, line = number + 1, stop + 1
        return -1

    def close(self, str word, int kept, int characters, int most, Py_ssize_t at_most, bint beside):
        """Return (edits, other) of words that are at most `most` edits from `word` and share its first `kept` letters.

        The words have about `characters` characters. About `at_most` are compared; with `beside` some of them begin only nearly the same.
        An edit is a letter missing, added or changed, or two neighbours swapped (optimal string alignment).
        """
        cdef vector[uint32_t] asked, found
        cdef vector[int] rows
        cdef Py_ssize_t size, first, last
        cdef const char* text
        cdef const uint8_t *line
        cdef const uint8_t *stop
        cdef const uint8_t *end
        cdef const uint8_t *letter
        cdef int length = len(word), other_length, edits, width = length + most + 1
        cdef uint64_t letters = 0, other_letters
        cdef bint is_near
        cdef str beginning = word[:kept]
        cdef list close = []
        text = PyUnicode_AsUTF8AndSize(beginning, &size)
        characters = min(characters, self._longest_told)
        # Bit c % 64 of `letters` is set for every character c: a set in one register.
        for point in word:
            asked.push_back(ord(point))
            letters |= <uint64_t> 1 << (asked.back() & 63)
        found.resize(width)
        rows.resize(3 * width)
        # The stride before the first one behind may hold words that begin with `beginning`, too.
        first = max(0, self._behind(characters, text, size, 0, self._count, False) - 1)
        last = self._behind(characters, text, size, first, min(self._count, first + (at_most + self._stride - 1) // self._stride), True)
        line, end = self._head(first), self._head(last)
        while line < end:
            stop = _line_end(line, end)
            if beside or (stop - line >= size and memcmp(line, text, size) == 0):
                letter, other_length, other_letters = line, 0, 0
                while letter < stop and other_length < width:
                    letter = _read(letter, &found[other_length])
                    other_letters |= <uint64_t> 1 << (found[other_length] & 63)
                    other_length += 1
                # An edit adds at most one letter and removes at most one. This test rejects most words without a comparison.
                is_near = _bits(letters & ~other_letters) <= most and _bits(other_letters & ~letters) <= most
                if is_near and letter >= stop and other_length >= length - most:
                    edits = _edits(asked.data(), length, found.data(), other_length, most, rows.data(), width)
                    if edits <= most:
                        close.append((edits, PyUnicode_DecodeUTF8(<const char*> line, stop - line, NULL)))
            line = stop + 1
        return close


cdef inline const uint8_t* _line_end(const uint8_t* line, const uint8_t* end) noexcept nogil:
    if line >= end:
        return line
    cdef const void* newline = memchr(line, b"\n", end - line)
    return <const uint8_t*> newline if newline != NULL else end


cdef inline int _characters(const uint8_t* text, const uint8_t* stop) noexcept nogil:
    cdef int count = 0
    while text < stop:
        # Continuation bytes of UTF-8 begin with the bits 10; every other byte begins a character.
        count += (text[0] & 0xC0) != 0x80
        text += 1
    return count
