"""Composition data as a collective receives them: recordings with other codes, and names and titles in the wording of rights registers.

The rows of `recordings.tsv` come from many senders. They write names `SURNAME, FIRST NAME`, in capitals, cut to the width of a field or
without accents, name the writer instead of the performer, and mistype or mix up codes. Add a fault of such rows here. The layouts belong in
works.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from catalog_store.platforms import WORKS
from simulator.randomness import draw_flags, make_generator

if TYPE_CHECKING:
    from simulator.settings import SimulationSettings

WIDTH = 24
"""Characters of a cut text: old registers have fields of fixed width."""
WRONG_CODE_OF_OWN_ARTIST = 0.5
"""Share of the wrong codes for which the sender took the code of another song by the same artist, mostly the next line of his list."""
BOOKED_AS = ("{} FEAT. {}", "{} FT {}", "{} / {}", "{} & {}")
"""Guests within the one field for artists."""


def reword_recordings(settings: SimulationSettings, block: int, recordings: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Return the rows with the faults of their senders in `isrc`, `title` and `name`.

    `recordings`: isrc, title, artist, guest, name, has_isrc; `names`: of the cast.
    """
    # A stream of its own: the choice of works and the layouts draw the same numbers with and without these faults.
    rng = make_generator(settings.seed, f"{WORKS} senders", block)
    count = len(recordings)
    wording, cut, writer = (rng.random(count) for _ in range(3))
    text = {
        "name": pl.when(pl.col("writer") < settings.works_writer_as_artist).then("other_name").otherwise(_add_guests(pl.col("name"))),
        "title": pl.col("title"),
    }
    drawn = recordings.with_columns(
        isrc=_mix_up_codes(settings, rng, recordings),
        guest_name=names.gather(recordings["guest"].clip(lower_bound=0)),
        has_guest=recordings["guest"].to_numpy() >= 0,
        form=pl.Series(rng.integers(0, 2 * len(BOOKED_AS), count)),
        other_name=names.gather(rng.integers(0, len(names), count)),
        wording=pl.Series(wording),
        writer=pl.Series(writer),
        is_cut=pl.Series(cut < settings.works_cut_texts),
        is_reversed=pl.Series(draw_flags(rng, count, settings.works_reversed_names)),
        is_nameless=pl.Series(draw_flags(rng, count, settings.works_missing_artist)),
    )
    reworded = drawn.with_columns(**text)
    reworded = reworded.with_columns(name=_reverse(pl.col("name")))
    reworded = reworded.with_columns(_write_in_capitals(pl.col(name), settings) for name in ("name", "title"))
    reworded = reworded.with_columns(
        pl.when("is_cut").then(pl.col(name).str.slice(0, WIDTH).str.strip_chars()).otherwise(name).alias(name) for name in ("name", "title")
    )
    return reworded.with_columns(name=pl.when("is_nameless").then(pl.lit("")).otherwise("name"))


def _mix_up_codes(settings: SimulationSettings, rng: np.random.Generator, recordings: pl.DataFrame) -> pl.Series:
    """Return the codes, a share of them those of another song: of the same artist if there is one, or of anyone."""
    count = len(recordings)
    fate, stranger = rng.random(count), rng.integers(0, max(1, count), count)
    # Songs of an artist come together, and variants of a song too: a code of another variant would tell the right work.
    song, artist = recordings["song"].to_numpy(), recordings["artist"].to_numpy()
    following = np.searchsorted(song, song, side="right") % max(1, count)
    own = np.where(artist[following] == artist, following, stranger)
    taken = np.where(fate < settings.works_wrong_isrc * WRONG_CODE_OF_OWN_ARTIST, own, stranger)
    return recordings["isrc"].gather(np.where(fate < settings.works_wrong_isrc, taken, np.arange(count)))


def _add_guests(name: pl.Expr) -> pl.Expr:
    """Return the name with the guest after it, in half of the rows that have one."""
    whole = name
    for number, form in enumerate(BOOKED_AS):
        between = form.replace("{}", "")
        joined = pl.concat_str(name, pl.lit(between), pl.col("guest_name"))
        whole = pl.when(pl.col("has_guest") & (pl.col("form") == number)).then(joined).otherwise(whole)
    return whole


def _reverse(name: pl.Expr) -> pl.Expr:
    """Return `Surname, First name` of names of two words, where drawn."""
    return pl.when(pl.col("is_reversed")).then(name.str.replace(r"^([^ ,&/]+) ([^ ,&/]+)$", "${2}, ${1}")).otherwise(name)


def _write_in_capitals(text: pl.Expr, settings: SimulationSettings) -> pl.Expr:
    """Return the text in capitals, in half of these rows without its accents."""
    capitals = text.str.to_uppercase()
    plain = capitals.str.normalize("NFD").str.replace_all(r"\p{Mn}", "").str.normalize("NFC")
    return (
        pl.when(pl.col("wording") < settings.works_capitals / 2)
        .then(capitals)
        .when(pl.col("wording") < settings.works_capitals)
        .then(plain)
        .otherwise(text)
    )
