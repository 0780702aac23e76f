"""The words of a key that the index pairs: texts between spaces, and overlapping pairs of characters in runs of Chinese and Japanese.

One form splits a single key (queries), the other a column (build). Both must agree, and a test compares them.
"""

from __future__ import annotations

import re

import polars as pl

_CJK = r"\u3005-\u3007\u3040-\u30ff\u3099\u309a\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Han and kana, which are written without spaces. Korean is not here: it separates its words by spaces."""
_RUN = f"[{_CJK}]+|[^ {_CJK}]+"
_CJK_RUN = f"^[{_CJK}]+$"
_run = re.compile(_RUN)
_cjk_run = re.compile(_CJK_RUN)
_PAIR = 2


def split_words(key: str) -> list[str]:
    """Return the distinct words of a key, in order of first appearance."""
    # ASCII has no Han or kana, so nearly all keys need no regular expression.
    if key.isascii():
        return list(dict.fromkeys(key.split()))
    found: dict[str, None] = {}
    for run in _run.findall(key):
        # A run of one or two characters is a word itself: it has no two overlapping pairs.
        if len(run) > _PAIR and _cjk_run.match(run):
            found.update(dict.fromkeys(run[i : i + _PAIR] for i in range(len(run) - 1)))
        else:
            found[run] = None
    return list(found)


def split_word_column(keys: pl.DataFrame, key: str) -> pl.DataFrame:
    """Replace the text column `key` by `word`: one row per distinct word of each row, in no particular order.

    All other columns together must identify a row.
    """
    has_cjk = pl.col(key).str.contains(f"[{_CJK}]")
    spaced = keys.filter(~has_cjk).with_columns(pl.col(key).str.split(" ").list.unique()).explode(key, empty_as_null=False)
    spaced = spaced.rename({key: "word"}).filter(pl.col("word") != "")
    unspaced = keys.filter(has_cjk)
    return pl.concat([spaced, _split_runs(unspaced, key)]) if unspaced.height else spaced


def _split_runs(keys: pl.DataFrame, key: str) -> pl.DataFrame:
    # A word may occur twice in a row, within a run or in two runs. The other columns identify the row.
    others = [name for name in keys.columns if name != key]
    runs = keys.with_columns(pl.col(key).str.extract_all(_RUN)).explode(key, empty_as_null=False).rename({key: "word"})
    is_long = pl.col("word").str.contains(_CJK_RUN) & (pl.col("word").str.len_chars() > _PAIR)
    return pl.concat([runs.filter(~is_long), _split_pairs(runs.filter(is_long))]).unique([*others, "word"])


def _split_pairs(runs: pl.DataFrame) -> pl.DataFrame:
    characters = runs.with_row_index("run").with_columns(pl.col("word").str.split("")).explode("word")
    # The last character of a run has no following one: the sum is null and is dropped.
    following = pl.col("word").shift(-1).over("run", order_by=None)
    return characters.with_columns(word=pl.col("word") + following).filter(pl.col("word").is_not_null()).drop("run")
