"""Wording of versions and guests in titles: the words of a variant and the places where platforms put them.

Add a wording here. The platform modules and `PlatformRates` decide the place that a platform prefers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from simulator.dirt import corrupt_titles
from simulator.mixed_fields import damage_rows
from simulator.randomness import draw_flags, make_generator
from simulator.regimes import draw_regime
from simulator.rows import spell_artists

if TYPE_CHECKING:
    from simulator.rows import PlatformRows
    from simulator.settings import SimulationSettings

ALIASES = {
    "Radio Edit": "Radio Mix",
    "Extended Mix": "Extended Version",
    "Club Mix": "Club Version",
    "Acoustic": "Acoustic Version",
    "Acoustic Version": "Acoustic",
    "Instrumental": "Instrumental Version",
    "Instrumental Version": "Instrumental",
    "Live": "Live Version",
    "Demo": "Demo Version",
    "Sped Up": "Sped Up Version",
}
"""Other words for the same variant, used in a share of the rows."""
FEATURED_FORMS = (" (feat. {})", " feat. {}", " (ft. {})", " (featuring {})", " (with {})", " [feat. {}]")
FEATURED_WEIGHTS = (0.72, 0.88, 0.93, 0.96, 0.98, 1.0)
"""Cumulated shares of the forms."""
FOREIGN_WORDS = {
    "Live": ("En Vivo", "Ao Vivo", "En Directo", "Dal Vivo", "En public"),
    "Live Version": ("Versión En Vivo", "Versão Ao Vivo", "Liveversion", "Version Live", "Versione Live"),
    "Radio Edit": ("Radioversion", "Versión Radio", "Version Radio", "Edição Rádio", "Radio Versie"),
    "Extended Mix": ("Maxiversion", "Versión Extendida", "Version Longue", "Versão Estendida", "Versione Estesa"),
    "Acoustic": ("Akustisch", "Acústico", "Acoustique", "Acústica", "Versione Acustica"),
    "Acoustic Version": ("Akustikversion", "Versión Acústica", "Version Acoustique", "Versão Acústica", "Versione Acustica"),
    "Instrumental": ("Instrumentalversion", "Versión Instrumental", "Version Instrumentale", "Versão Instrumental", "Strumentale"),
    "Instrumental Version": ("Instrumentalversion", "Versión Instrumental", "Version Instrumentale", "Versão Instrumental", "Strumentale"),
    "Demo": ("Demoversion", "Maqueta", "Démo", "Demonstração", "Provino"),
    "Karaoke Version": ("Karaokeversion", "Versión Karaoke", "Version Karaoké", "Versão Karaokê", "Versione Karaoke"),
    "Remastered": ("Remasterisé", "Remasterizado", "Remasterizada", "Rimasterizzato", "Neu gemastert"),
}
"""Version words in the languages of distributors; each platform row takes one of the five."""
COSMETIC = ("Album Version", "Original Version", "Bonus Track")
COSMETIC_SHARE = 0.015


def build_version_words() -> pl.Expr:
    """Return the words of a variant, with its remixer (`remixer_name`) or place if its wording has one."""
    before = pl.col("before")
    subject = (
        pl.when(pl.col("kind") == "remix")
        .then(pl.col("remixer_name"))
        .when(before.str.ends_with(" "))
        .then(pl.col("place"))
        .otherwise(pl.lit(""))
    )
    return pl.concat_str(before, subject, "after").str.strip_chars()


def add_versions(settings: SimulationSettings, platform: str, source: PlatformRows) -> pl.DataFrame:
    """Return the rows with `version` (words without brackets, null for plain originals) and this platform's `<credit>_name` of each credit.

    Variants get their words, and a share of them other words. Tracks of remastered editions are marked. Some originals have words without
    meaning.
    """
    rows, rng, count = source.rows, source.rng, len(source.rows)
    rows = rows.with_columns(
        spell_artists(settings, platform, rows[credit]).alias(f"{credit}_name")
        for credit in ("artist", "second_artist", "guest", "second_guest", "remixer")
    )
    before = pl.col("before")
    year = pl.col("remaster_year").cast(pl.String)
    remaster = (
        pl.when(pl.col("wording") < 0.4)  # noqa: PLR2004 - shares of the remaster wordings
        .then(pl.lit("Remastered ") + year)
        .when(pl.col("wording") < 0.8)  # noqa: PLR2004
        .then(year + " Remaster")
        .when(pl.col("wording") < 0.9)  # noqa: PLR2004
        .then(pl.lit("Remastered"))
        .otherwise(year + " Remastered Version")
    )
    return (
        rows.with_columns(
            wording=pl.Series(rng.random(count)),
            takes_alias=pl.Series(draw_flags(rng, count, settings.version_alias)),
            cosmetic=pl.Series(COSMETIC).gather(rng.integers(0, len(COSMETIC), count)),
            is_cosmetic=pl.Series(draw_flags(rng, count, COSMETIC_SHARE)),
        )
        # Before the version is put together, so that the alias is in all its forms.
        .with_columns(before=pl.when("takes_alias").then(before.replace(ALIASES)).otherwise(before))
        .with_columns(
            version=pl.when(pl.col("kind") != "original")
            .then(build_version_words())
            .when(pl.col("remaster_year") > 0)
            .then(remaster)
            .when("is_cosmetic")
            .then(pl.col("cosmetic"))
        )
        .drop("cosmetic", "is_cosmetic", "wording", "takes_alias")
        .pipe(lambda frame: reword_versions(settings, source, frame) if settings.is_harsh else frame)
    )


def reword_versions(settings: SimulationSettings, source: PlatformRows, rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows of the harsh world with version words in another language, or without any, each in a share."""
    regime, rng = draw_regime(settings.seed, source.platform), make_generator(settings.seed, f"versions/{source.platform}", source.block)
    count, version = len(rows), pl.col("version")
    language = pl.Series(rng.integers(0, 5, count))
    foreign = version
    for word, others in FOREIGN_WORDS.items():
        said = pl.lit(list(others)).list.get(pl.col("language"))
        foreign = pl.when(version == word).then(said).when(version.str.starts_with(f"{word} at ")).then(
            pl.concat_str(said, pl.lit(" "), version.str.slice(len(word) + 4))
        ).otherwise(foreign)  # fmt: skip
    is_said = version.is_not_null() & (pl.col("kind") != "original")
    return (
        rows.with_columns(language=language, speaks=pl.Series(draw_flags(rng, count, regime.foreign_versions)))
        .with_columns(
            foreign=foreign,
            dirt_missing_version=is_said & pl.Series(draw_flags(rng, count, regime.missing_versions)),
        )
        .with_columns(dirt_foreign_version=pl.col("speaks") & ~pl.col("dirt_missing_version") & (pl.col("foreign") != version))
        .with_columns(version=pl.when("dirt_missing_version").then(None).when("dirt_foreign_version").then("foreign").otherwise("version"))
        .drop("language", "speaks", "foreign")
    )


def add_original_mix(rows: pl.DataFrame, is_dance: pl.Series, share: float, source: PlatformRows) -> pl.DataFrame:
    """Return `Original Mix` on a share of the plain originals of dance music."""
    hit = is_dance & pl.Series(draw_flags(source.rng, len(rows), share))
    return rows.with_columns(version=pl.when(hit & pl.col("version").is_null()).then(pl.lit("Original Mix")).otherwise("version"))


def build_featured_text(rows: pl.DataFrame, source: PlatformRows) -> pl.Series:
    """Return ` (feat. X & Y)` and its other forms; null for rows without guests."""
    guests = pl.concat_str("guest_name", "second_guest_name", separator=" & ", ignore_nulls=True)
    form = pl.Series(source.rng.random(len(rows)))
    names = rows.select(pl.when(pl.col("guest_name").is_not_null()).then(guests)).to_series()
    expression = pl.lit(None, dtype=pl.String)
    # Built from the last form to the first, so that the smallest limit is tested first.
    for text, upper in reversed(list(zip(FEATURED_FORMS, FEATURED_WEIGHTS, strict=True))):
        lead, tail = text.split("{}")
        expression = pl.when(pl.col("form") <= upper).then(pl.concat_str(pl.lit(lead), "names", pl.lit(tail))).otherwise(expression)
    return pl.DataFrame({"names": names, "form": form}).select(expression).to_series()


def compose_titles(
    settings: SimulationSettings, rows: pl.DataFrame, source: PlatformRows, *, featured: float, in_title: float, form: str
) -> pl.DataFrame:
    """Write `title` as the platform shows it: base title, guests in a share, version in a share; then the dirt of titles.

    `form` holds `{}` for the version words, e.g. ` - {}`. Rows whose version went into the title have a null `version` afterwards.
    """
    count = len(rows)
    lead, tail = form.split("{}")
    rows = rows.with_columns(
        featured=build_featured_text(rows, source),
        shows_guests=pl.Series(draw_flags(source.rng, count, featured)),
        shows_version=pl.Series(draw_flags(source.rng, count, in_title)),
    )
    guests = pl.when("shows_guests").then(pl.col("featured")).fill_null("")
    version = pl.when("shows_version").then(pl.concat_str(pl.lit(lead), "version", pl.lit(tail))).fill_null("")
    title = rows.select(pl.concat_str("title", guests, version)).to_series()
    rows = rows.with_columns(
        title=corrupt_titles(title, source.rng, settings),
        version=pl.when(~pl.col("shows_version")).then("version"),
    ).drop("featured", "shows_guests", "shows_version")
    return damage_rows(settings, source, rows) if settings.is_harsh else rows
