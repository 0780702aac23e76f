"""tantivy over the same names, as an expert would configure it. Runs in `.venv-bench`: imports nothing of ours.

Two text fields, lower case, accents folded, one segment, ids as a stored number. A query is read into words as the index reads texts. Forms
tried (`FORMS`): exact terms alone; every word exact (thrice the weight) or within one edit; the same with two edits for words of six
letters and more, as search servers do by default; and staged: all words exact, and only when nothing has them all, the fuzzy form.
With `free-` before it, a form searches the words of both texts in either field, as a single search box would. Phrase, n-gram and
disjunction-max forms found no more and cost more. There is no floor: absent queries always find something.
"""

from __future__ import annotations

import json
import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tantivy
from tantivy import Filter, Occur, Query, TextAnalyzerBuilder, Tokenizer

FIELDS = ("artist", "title")
ANALYSER = "names"
HEAP_BYTES = 1_000_000_000
LIMIT = 10
FORMS = ("exact", "fuzzy1", "fuzzy2", "staged1", "staged2")
EXACT_WEIGHT = 3.0
SHORTEST_FUZZY, SHORTEST_TWO_EDITS = 3, 6
_HIT = ("query", "rank", "id")
_HIT_SCHEMA = pa.schema([(name, pa.int64()) for name in _HIT])
_WORD = re.compile(r"\w+")


def build(names: str, folder: str) -> int:
    """Index the Parquet file `names` [id, artist, title] into the new folder; return the bytes on disk."""
    Path(folder).mkdir(parents=True)
    index = tantivy.Index(_build_schema(), path=folder)
    index.register_tokenizer(ANALYSER, _build_analyser())
    writer = index.writer(HEAP_BYTES, 1)
    for batch in pq.ParquetFile(names).iter_batches(100_000):
        for row in batch.to_pylist():
            writer.add_document(tantivy.Document(id=row["id"], artist=row["artist"], title=row["title"]))
    writer.commit()
    writer.wait_merging_threads()
    return sum(file.stat().st_size for file in Path(folder).iterdir())


def ask(folder: str, asked: str, out: str, form: str) -> dict[str, Any]:
    """Ask every row of `asked` [query, artist, title, is_measured]; writes [query, rank, id]; CPU seconds of each measured query."""
    index = tantivy.Index(_build_schema(), path=folder)
    index.register_tokenizer(ANALYSER, _build_analyser())
    index.reload()
    searcher = index.searcher()
    hits: list[tuple[int, int, int]] = []
    spent: list[float] = []
    for row in pq.read_table(asked).to_pylist():
        started = time.process_time()
        found = [searcher.doc(address)["id"][0] for address in _search(searcher, index.schema, row["artist"], row["title"], form)]
        if row["is_measured"]:
            spent.append(time.process_time() - started)
            hits += [(row["query"], rank, one) for rank, one in enumerate(found)]
    pq.write_table(pa.Table.from_pylist([dict(zip(_HIT, hit, strict=True)) for hit in hits], _HIT_SCHEMA), out)
    return {"cpu": spent, "version": json.dumps(tantivy.__version__)}


def _build_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder().add_unsigned_field("id", stored=True)
    for field in FIELDS:
        builder.add_text_field(field, tokenizer_name=ANALYSER, index_option="position")
    return builder.build()


def _build_analyser() -> tantivy.TextAnalyzer:
    return TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase()).filter(Filter.ascii_fold()).build()


def _split_words(text: str) -> list[str]:
    plain = "".join(one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one))
    return _WORD.findall(unicodedata.normalize("NFC", plain).lower())[:64]


def _search(searcher: tantivy.Searcher, schema: tantivy.Schema, artist: str, title: str, form: str) -> list[tantivy.DocAddress]:
    words: list[tuple[tuple[str, ...], str]]
    if form.startswith("free-"):
        words = [(FIELDS, word) for word in dict.fromkeys((*_split_words(artist), *_split_words(title)))]
    else:
        words = [((field,), word) for field, text in zip(FIELDS, (artist, title), strict=True) for word in _split_words(text)]
    form = form.removeprefix("free-")
    if form.startswith("staged"):
        every = Query.boolean_query([(Occur.Must, _search_fields(schema, fields, word, form="exact")) for fields, word in words])
        found = searcher.search(every, LIMIT, count=False).hits
        if found:
            return [address for _, address in found]
    parts = [(Occur.Should, _search_fields(schema, fields, word, form=form)) for fields, word in words]
    return [address for _, address in searcher.search(Query.boolean_query(parts), LIMIT, count=False).hits]


def _search_fields(schema: tantivy.Schema, fields: tuple[str, ...], word: str, *, form: str) -> Query:
    parts = [_search_one(schema, field, word, is_fuzzy=form != "exact", two_edits=form.endswith("2")) for field in fields]
    return parts[0] if len(parts) == 1 else Query.boolean_query([(Occur.Should, part) for part in parts])


def _search_one(schema: tantivy.Schema, field: str, word: str, *, is_fuzzy: bool, two_edits: bool) -> Query:
    exact = Query.term_query(schema, field, word)
    if not is_fuzzy or len(word) < SHORTEST_FUZZY:
        return exact
    edits = 2 if two_edits and len(word) >= SHORTEST_TWO_EDITS else 1
    fuzzy = Query.fuzzy_term_query(schema, field, word, distance=edits, transposition_cost_one=True)
    return Query.boolean_query([(Occur.Should, Query.boost_query(exact, EXACT_WEIGHT)), (Occur.Should, fuzzy)])
