"""Buckets that bring platform releases together, so that no step holds or sorts the titles and names of the whole catalog.

A release is its *node*: its place among all platform releases, in the order of (platform, release id). Listings (a recording on a release)
are numbers. They go to buckets of nodes first, and once ids are known to the ranges of their recordings. Editions are compared by numbers,
in buckets of one barcode or one product (artist, title and kind of edition). Their texts are read twice, a slice at a time: for their keys,
and for the rows that are written. Two keys share a number with a chance of 1 in 2^64; then releases with a common recording or barcode
count as titled alike. Out of scope: which releases are one, and which value of a field is chosen (releases.py).
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from catalog_store.array_files import ArrayWriter, map_array, write_array
from catalog_store.folder_listing import list_folder
from catalog_store.pending_files import write_aside
from catalog_store.platforms import CATALOG_PLATFORMS
from catalog_store.record_keys.numbers import hash_columns, number_record, number_release
from catalog_store.row_shuffle import count_bucket_rows, write_run
from catalog_store.tables.files import count_rows, list_parts
from pipeline.build.artist_names import NAME_ONLY
from pipeline.build.artists import VARIOUS_KEY, VARIOUS_KEYS
from pipeline.build.name_forms import build_artist_key, build_edition_form, build_label_key
from pipeline.build.priorities import RECORDING_POSITION
from pipeline.build.recording_index import open_recording_index
from pipeline.build.recording_ranges import find_range, read_sent
from pipeline.build.workbench import open_text_memory, open_workbench
from pipeline.engine.number_index import NumberIndex, count_index_parts
from pipeline.linkage.staged_records import list_record_parts, list_staged_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from catalog_store.remembered_texts import Recall, TextMemory
    from pipeline.build.recording_ranges import RangeWork, SliceJob
    from pipeline.paths import BuildPaths

NODES_PER_BUCKET = 500_000
"""Nodes of one bucket, on average where a hash decides: with their listings some 60 MB."""
RELEASES_PER_RANGE = 100_000
"""Releases whose values are chosen at a time. DuckDB cannot spill the choices of a group: they take 1.5 KB for a release."""
PLACE_BITS = 15
UNPLACED = (1 << PLACE_BITS) - 1
"""Value of an unknown disc or track number in the search for the smallest: the largest of its type."""
NODE_BITS = 31
"""Bits of a node in the rank of a place: two thousand million platform releases."""

FORMS = "releases-forms"
"""Name under which the forms of titles and names are remembered."""

_RELEASE = ("platform", "release_id")
_KEYS = "SELECT platform, release_id, len(artists) = 0 AS is_nameless FROM source_release ORDER BY platform, release_id"
_WIDE = ("catalog_number", "gtin", "release_date", "release_date_precision", "release_type", "is_compilation", "is_official")
_LISTING = {
    "node": pl.Int64(),
    "recording_id": pl.Int64(),
    "place": pl.Int32(),
    "is_track": pl.Boolean(),
    "is_remaster": pl.Boolean(),
}
_NAMELESS = {"number": pl.UInt64(), "node": pl.Int64()}
_RANKED = {"recording_id": pl.Int64(), "platform": pl.UInt8(), "popularity": pl.Float64()}
_PLACED = {"recording_id": pl.Int64(), "release_id": pl.Int64(), "rank": pl.Int64()}
_TOTAL = {"id": pl.Int64(), "popularity": pl.Float64()}
_OWN = {"node": pl.Int64(), "own_artist_id": pl.Int64(), "own_name": pl.String()}
_KEYED = {
    "node": pl.Int64(),
    "is_remaster": pl.Boolean(),
    "gtin": pl.Int64(),
    "year": pl.Int32(),
    "title": pl.UInt64(),
    "product": pl.UInt64(),
}
_MEMBER = {"node": pl.Int64(), "gtin": pl.Int64(), "group": pl.Int32()}
_PARTNER = {"node": pl.Int64(), "partner_gtin": pl.Int64(), "group": pl.Int32()}
_BEARER = {
    "gtin": pl.Int64(),
    "node": pl.Int64(),
    "title": pl.UInt64(),
    "known_tracks": pl.UInt32(),
    "recordings": pl.List(pl.Int64()),
}
_PRODUCT = {
    "product": pl.UInt64(),
    "node": pl.Int64(),
    "gtin": pl.Int64(),
    "year": pl.Int32(),
    "is_remaster": pl.Boolean(),
    "known_tracks": pl.UInt32(),
    "recordings": pl.List(pl.Int64()),
}


class ReleaseBuckets(NamedTuple):
    """The sent rows, as folders of runs and files below one folder for spilled data."""

    folder: Path
    recordings: NumberIndex
    nodes: NumberIndex
    """`node` and `is_nameless` (no artist) by `number_release`."""
    artists: NumberIndex
    labels: NumberIndex
    """Ids by the number of (platform, external id)."""
    memory: TextMemory
    platforms: pl.DataFrame
    """platform, first (node), nodes, in order of nodes."""

    def fill(self, paths: BuildPaths, work: RangeWork) -> None:
        """Send listings and editions to the buckets in which they are compared."""
        self._number_nodes(paths)
        for table, index in (("artist", self.artists), ("label", self.labels)):
            work.map_slices(f"index_{table}s", partial(_index_sources, index), list_parts(paths.table(f"{table}_source")))
        for index in (self.nodes, self.artists, self.labels):
            work.run(f"seal_{index.folder.name}", index.seal, range(index.parts))
            index.remove_entries()
        remastered = work.map_slices("send_records", self._send_records, list_record_parts(paths))
        write_array(self.folder / "remastered.npy", _pack_bits(remastered, count_rows(paths.table("recording_member")) + 1))
        work.map_slices("send_tracks", self._send_tracks, list_staged_parts(paths, "source_release_track"))
        work.run("sort_listings", self._sort_listings, self.list_buckets())
        self.remove("listing")
        self._write_own_artists(paths, work)
        names = work.map_slices("key_editions", self._key_editions, list_staged_parts(paths, "source_release"))
        self.memory.keep_only(FORMS, names)
        self.remove("node_index", "artist_index", "label_index")
        work.run("send_editions", self._send_editions, self.list_buckets())
        self.remove("keyed", "nodes")

    def list_buckets(self) -> range:
        """Return the buckets of nodes; there are as many of barcodes, and of products."""
        return range(max(1, -(-int(self.platforms["nodes"].sum()) // NODES_PER_BUCKET)))

    def remove(self, *names: str) -> None:
        """Remove folders that no later step reads. A resumed build skips the finished steps that read them."""
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def list_recording_ranges(self) -> list[int]:
        """Return the ranges of recordings that are on a release."""
        return list(count_bucket_rows(self.folder / "placed"))

    def list_release_ranges(self) -> list[int]:
        """Return the ranges of release ids."""
        return list(count_bucket_rows(self.folder / "merged"))

    def read_bearers(self, bucket: int) -> pl.DataFrame:
        """Return _BEARER of the editions of a bucket whose barcode others bear, too."""
        return read_sent(self.folder / "bearer", bucket, _BEARER).filter(pl.col("gtin").is_duplicated())

    def read_products(self, bucket: int) -> pl.DataFrame:
        """Return _PRODUCT of the editions of a bucket that share artist, title and kind of edition with another one.

        A distrusted barcode is null.
        """
        rows = read_sent(self.folder / "product", bucket, _PRODUCT).filter(pl.col("product").is_duplicated())
        is_distrusted = pl.Series(np.isin(rows["node"].to_numpy(), map_array(self.folder / "distrusted.npy")), dtype=pl.Boolean)
        return rows.with_columns(gtin=pl.when(~is_distrusted).then("gtin"))

    def read_places(self, number: int) -> pl.DataFrame:
        """Return recording_id, release_id, rank (see `_rank_places`) of each listing of a range of recordings."""
        return read_sent(self.folder / "placed", number, _PLACED)

    def read_ranks(self, number: int) -> pl.DataFrame:
        """Return recording_id, platform, popularity of each source record of a range of recordings."""
        rows = read_sent(self.folder / "ranked", number, _RANKED)
        return rows.with_columns(pl.col("platform").replace_strict(dict(enumerate(CATALOG_PLATFORMS)), return_dtype=pl.String))

    def send_totals(self, number: int, rows: pl.DataFrame) -> None:
        """Send id (of a release) and popularity of each recording on it, of one range of recordings."""
        write_run(self.folder / "total", number, rows.select(*_TOTAL), pl.col("id") // RELEASES_PER_RANGE)

    def read_totals(self, number: int) -> pl.DataFrame:
        """Return what `send_totals` has sent to a range of releases."""
        return read_sent(self.folder / "total", number, _TOTAL)

    def read_merged(self, number: int) -> pl.DataFrame:
        """Return the editions of a range of releases with their texts, in order of id and node."""
        return read_sent(self.folder / "merged", number, {}).sort("id", "node")

    def send_groups(self, groups: npt.NDArray[np.int32], partners: list[Path]) -> None:
        """Send the members of groups of several nodes to buckets of whole groups, each with its trusted barcode and that of its partner.

        `groups`: the group of each node. `partners`: files of node, partner_gtin.
        """
        is_group = np.zeros(len(groups), bool)
        for file in self._list("codes"):
            nodes = pl.read_parquet(file, columns=["node"])["node"].to_numpy()
            is_group[groups[nodes[groups[nodes] != nodes]]] = True
        distrusted = pl.Series(map_array(self.folder / "distrusted.npy")).implode()
        is_trusted = ~pl.col("node").is_in(distrusted)
        for name, files in (("member", self._list("codes")), ("partner", partners)):
            for number, file in enumerate(files):
                rows = pl.read_parquet(file)
                rows = rows.with_columns(group=pl.Series(groups[rows["node"].to_numpy()]))
                rows = rows.filter(pl.Series(is_group[rows["group"].to_numpy()], dtype=pl.Boolean))
                if name == "member":
                    rows = rows.with_columns(gtin=pl.when(is_trusted).then("gtin"))
                write_run(self.folder / name, number, rows, pl.col("group") % len(self.list_buckets()))

    def read_groups(self, bucket: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return node, gtin, group of the members of a bucket of groups, and node, partner_gtin, group of those that have a partner."""
        return read_sent(self.folder / "member", bucket, _MEMBER), read_sent(self.folder / "partner", bucket, _PARTNER)

    def read_members(self) -> Iterator[pl.DataFrame]:
        """Yield node, source_key of the releases with a track of ours, bucket by bucket in the order of nodes."""
        source_key = pl.concat_str("platform", pl.lit(":"), "release_id")
        for file in self._list("codes"):
            nodes = pl.read_parquet(file, columns=["node"])
            yield nodes.join(self._read("keys", int(file.stem)), on="node", how="left", maintain_order="left").select(
                "node", source_key=source_key
            )

    def write_ids(self, blocks: Iterable[pl.DataFrame]) -> None:
        """Lay down the release id of each node. `blocks`: node, entity_id, in order of nodes."""
        with write_aside(self.folder / "ids.npy") as pending, ArrayWriter(pending, np.int64) as writer:
            for block in blocks:
                nodes = block["node"].to_numpy()
                ids = np.zeros(nodes[-1] + 1 - writer.length if len(nodes) else 0, np.int64)
                ids[nodes - writer.length] = block["entity_id"].to_numpy()
                writer.append(ids)

    def send_merged(self, paths: BuildPaths, work: RangeWork) -> None:
        """Send the texts of editions to the ranges of their ids, and listings to those of recordings."""
        work.run("send_places", self._send_places, self.list_buckets())
        self.remove("listings")
        work.map_slices("send_merged", self._send_merged, list_staged_parts(paths, "source_release"))
        self.remove("editions")

    def read_sources(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of release_source in order."""
        ids = map_array(self.folder / "ids.npy")
        for file in self._list("codes"):
            nodes = pl.read_parquet(file, columns=["node"])
            keys = nodes.join(self._read("keys", int(file.stem)), on="node", how="left", maintain_order="left")
            yield keys.select("platform", external_id="release_id", release_id=pl.Series(ids[keys["node"].to_numpy()]))

    def _number_nodes(self, paths: BuildPaths) -> None:
        """Number all platform releases. Dumps are in an order of their own, so the ids are sorted, and nothing but the ids."""
        keys = pl.DataFrame(schema={"platform": pl.String, "release_id": pl.String, "is_nameless": pl.Boolean})
        number = 0
        with open_workbench(paths, "release_order") as bench:
            for block in bench.stream(_KEYS):
                keys = pl.concat([keys, block])
                while keys.height >= NODES_PER_BUCKET:
                    self._add_nodes(number, keys[:NODES_PER_BUCKET])
                    number, keys = number + 1, keys[NODES_PER_BUCKET:]
        self._add_nodes(number, keys)

    def _add_nodes(self, bucket: int, keys: pl.DataFrame) -> None:
        rows = keys.with_row_index("node", bucket * NODES_PER_BUCKET).with_columns(pl.col("node").cast(pl.Int64))
        self.nodes.add(bucket, rows.select(number_release()).to_series(), rows)
        self.write("keys", bucket, rows.select("node", *_RELEASE))

    def _send_records(self, job: SliceJob) -> npt.NDArray[np.int64]:
        """Send listings and ranks of a slice of records; return the numbers of the remastered ones."""
        rows = job.rows.read_columns("platform", "external_id", "release_id", "title", "version", "popularity")
        rows = self.recordings.join(rows, number_record())
        code = pl.col("platform").replace_strict({key: code for code, key in enumerate(CATALOG_PLATFORMS)}, return_dtype=pl.UInt8)
        ranked = rows.select("recording_id", code, pl.col("popularity").cast(pl.Float64))
        write_run(self.folder / "ranked", job.number, ranked, find_range())
        listed = rows.drop_nulls("release_id").select("platform", "external_id", "release_id", "recording_id")
        place = pl.lit((UNPLACED << PLACE_BITS) | UNPLACED, pl.Int32)
        self._send_listings(2 * job.number, listed.with_columns(place=place, is_track=False, is_remaster=False))
        is_remaster = [pl.col(name).str.contains_any(["remaster"], ascii_case_insensitive=True) for name in ("title", "version")]
        return rows.filter(pl.any_horizontal(is_remaster))["record"].to_numpy()

    def _send_tracks(self, job: SliceJob) -> None:
        rows = job.rows.read_columns("platform", "release_id", "external_id", "disc_number", "track_number")
        rows = self.recordings.join(rows, number_record())
        bits, record = map_array(self.folder / "remastered.npy"), rows["record"].to_numpy()
        disc, track = (pl.col(f"{name}_number").cast(pl.Int32).fill_null(UNPLACED) for name in ("disc", "track"))
        rows = rows.with_columns(
            place=disc * (1 << PLACE_BITS) + track,
            is_track=True,
            is_remaster=pl.Series((bits[record >> 3] >> (record & 7).astype(np.uint8) & 1).astype(bool)),
        )
        # Slices of both tables are numbered from 0: those of records are the even runs, those of tracks the odd ones.
        self._send_listings(2 * job.number + 1, rows)

    def _send_listings(self, run: int, rows: pl.DataFrame) -> None:
        rows = self.nodes.join(rows, number_release())
        listings = rows.select(pl.col(name).cast(dtype) for name, dtype in _LISTING.items())
        write_run(self.folder / "listing", run, listings, pl.col("node") // NODES_PER_BUCKET)
        nameless = rows.filter(pl.col("is_nameless") == 1).select(number=number_record(), node="node")
        if nameless.height:
            write_run(self.folder / "nameless", run, nameless, pl.repeat(0, pl.len()))

    def _sort_listings(self, bucket: int) -> None:
        """Write node, recording_id, place (the first one) of a bucket in order, and node, known_tracks, is_remastered."""
        rows = read_sent(self.folder / "listing", bucket, _LISTING)
        listings = rows.group_by("node", "recording_id").agg(pl.col("place").min()).sort("node", "recording_id")
        # Some platforms mark the tracks alone.
        counts = rows.group_by("node").agg(pl.col("is_remaster").sum(), pl.col("is_track").sum())
        nodes = listings.group_by("node", maintain_order=True).agg(known_tracks=pl.len())
        nodes = nodes.join(counts, on="node", how="left", maintain_order="left").select(
            "node", "known_tracks", is_remastered=2 * pl.col("is_remaster") > pl.col("is_track")
        )
        self.write("listings", bucket, listings)
        self.write("nodes", bucket, nodes)

    def _write_own_artists(self, paths: BuildPaths, work: RangeWork) -> None:
        """Write the artist of each release that names none: the lead artist of its tracks, if all have the same."""
        nameless = read_sent(self.folder / "nameless", 0, _NAMELESS).unique()
        self.write("nameless_record", 0, nameless)
        found = [pl.DataFrame(schema=_OWN)]
        if nameless.height:
            found += work.map_slices("find_leads", self._find_leads, list_parts(paths.table("source_credit")))
        # Releases without artists are few; so their rows may be held.
        own = pl.concat(found).group_by("node").agg(pl.col("own_artist_id").n_unique().alias("artists"), pl.all().min())
        self.write("own", 0, own.filter(pl.col("artists") == 1).select(*_OWN))

    def _find_leads(self, job: SliceJob) -> pl.DataFrame:
        credits_ = job.rows.read_columns("platform", "external_id", "position", "artist_id", "name").filter(pl.col("position") == 0)
        found = credits_.with_columns(number=number_record()).join(self._read("nameless_record", 0), on="number")
        return found.select("node", own_artist_id="artist_id", own_name="name").unique()

    def _key_editions(self, job: SliceJob) -> str:
        """Send the keys of a slice of releases to the buckets of their nodes; return the name of its remembered texts."""
        rows = job.rows.read_columns(*_RELEASE, "title", "version", "artists", "label_id", "label_name", "gtin", "release_date")
        rows = self.nodes.join(rows, number_release())
        part = job.rows.part
        name = f"{FORMS}-{part.parts[-3]}-{part.stem.rpartition('-')[2]}-{job.rows.start}"
        recall = partial(self.memory.recall, name)
        titles = recall(rows.select("title", "version").unique(maintain_order=True), build_title_forms, "title")
        rows = rows.join(titles, on=["title", "version"], how="left", nulls_equal=True, maintain_order="left")
        first = pl.col("artists").list.first().struct
        rows = rows.with_columns(stated_artist=first.field("artist_id"), artist_name=first.field("name"), stated_label="label_id")
        various = pl.DataFrame({"platform": [NAME_ONLY], "external_id": [f"name:{VARIOUS_KEY}"]})
        various_id = self.artists.join(various, number_record())["artist_id"].item()
        rows = _find_ids(rows, "artist", self.artists, build_artist_names, recall)
        rows = _find_ids(rows.drop("label_id"), "label", self.labels, build_label_names, recall)
        rows = rows.join(self._read("own", 0), on="node", how="left", maintain_order="left").with_columns(
            artist_id=pl.coalesce("artist_id", "own_artist_id", pl.lit(various_id)), is_credited=pl.col("artist_id").is_not_null()
        )
        self.write("editions", job.number, rows.select("node", "artist_id", "is_credited", "own_name", "label_id"))
        keyed = rows.select(
            "node",
            "is_remaster",
            gtin=pl.col("gtin").cast(pl.Int64),
            year=pl.col("release_date").str.slice(0, 4).cast(pl.Int32),
            title=hash_columns(("title_key",)),
            product=hash_columns(("artist_id", "title_key", "edition")),
        )
        write_run(self.folder / "keyed", job.number, keyed, pl.col("node") // NODES_PER_BUCKET)
        return name

    def _send_editions(self, bucket: int) -> None:
        """Send the editions of a bucket of nodes, with their recordings, to those with which they are compared."""
        tracks = self._read("listings", bucket).group_by("node", maintain_order=True).agg(recordings="recording_id")
        rows = self._read("nodes", bucket).hstack(tracks.select("recordings"))
        rows = rows.join(read_sent(self.folder / "keyed", bucket, _KEYED), on="node", how="left", maintain_order="left")
        rows = rows.with_columns(is_remaster=pl.col("is_remaster") | pl.col("is_remastered"))
        self.write("codes", bucket, rows.select("node", "gtin"))
        count = len(self.list_buckets())
        bearers = rows.drop_nulls("gtin").select(_BEARER.keys())
        write_run(self.folder / "bearer", bucket, bearers, pl.col("gtin").hash() % count)
        write_run(self.folder / "product", bucket, rows.select(_PRODUCT.keys()), pl.col("product") % count)

    def _send_places(self, bucket: int) -> None:
        rows = self._read("listings", bucket)
        ids = map_array(self.folder / "ids.npy")
        rows = rows.with_columns(release_id=pl.Series(ids[rows["node"].to_numpy()]), rank=self._rank_places(rows))
        write_run(self.folder / "placed", bucket, rows.select(*_PLACED), find_range())

    def _rank_places(self, rows: pl.DataFrame) -> pl.Series:
        """Return the rank of each place among those of one recording on one release: known numbers, the chain, the node, the place."""
        order = sorted(range(self.platforms.height), key=lambda place: _rank_platform(self.platforms["platform"][place]))
        ahead = np.zeros(self.platforms.height, np.int64)
        ahead[order[1:]] = np.cumsum(self.platforms["nodes"].to_numpy()[order])[:-1]
        node, place = rows["node"].to_numpy(), rows["place"].to_numpy().astype(np.int64)
        first = self.platforms["first"].to_numpy()
        of = np.searchsorted(first, node, side="right") - 1
        rank = node - first[of] + ahead[of]
        is_unplaced = (place & UNPLACED == UNPLACED).astype(np.int64)
        # 1 + 31 + 30 bits: the sign bit stays free.
        return pl.Series(((is_unplaced << NODE_BITS) | rank) << (2 * PLACE_BITS) | place)

    def _send_merged(self, job: SliceJob) -> None:
        """Send the editions of a slice with their texts to the ranges of their ids."""
        rows = self._read("editions", job.number).hstack(job.rows.read_columns(*_RELEASE, "title", "version", "artists", *_WIDE))
        nodes = rows["node"].to_numpy()
        ids = map_array(self.folder / "ids.npy")
        # The ids end with the last release that has one.
        rows = rows.with_columns(
            id=pl.Series(np.where(nodes < len(ids), ids[np.minimum(nodes, max(0, len(ids) - 1))], 0) if len(ids) else np.zeros_like(nodes)),
            first_name=pl.col("artists").list.first().struct.field("name"),
            stated_gtin="gtin",
            gtin=pl.when(~pl.Series(np.isin(nodes, map_array(self.folder / "distrusted.npy")), dtype=pl.Boolean)).then("gtin"),
        )
        rows = rows.filter(pl.col("id") > 0).drop("artists")
        write_run(self.folder / "merged", job.number, rows, pl.col("id") // RELEASES_PER_RANGE)

    def write(self, name: str, number: int, rows: pl.DataFrame) -> Path:
        """Write rows as file `number` of the folder `name`, and return the file."""
        file = self.folder / name / f"{number:06d}.parquet"
        file.parent.mkdir(exist_ok=True)
        with write_aside(file) as pending:
            rows.write_parquet(pending, compression="lz4")
        return file

    def _read(self, name: str, number: int) -> pl.DataFrame:
        return pl.read_parquet(self.folder / name / f"{number:06d}.parquet")

    def _list(self, name: str) -> list[Path]:
        return list_folder(self.folder / name, "*.parquet")


def open_release_buckets(paths: BuildPaths, work: RangeWork) -> ReleaseBuckets:
    """Return buckets in the folder of the stage."""
    counts = {folder.parent.name: count_rows(folder) for folder in sorted(paths.staged("source_release"))}
    platforms = pl.DataFrame({"platform": list(counts), "nodes": list(counts.values())}, schema={"platform": pl.String, "nodes": pl.Int64})
    platforms = platforms.filter(pl.col("nodes") > 0).with_columns(first=pl.col("nodes").cum_sum() - pl.col("nodes"))
    sources = [count_rows(paths.table(f"{kind}_source")) for kind in ("artist", "label")]
    return ReleaseBuckets(
        work.folder,
        open_recording_index(paths, work.folder / "recordings", work.pool),
        NumberIndex(work.folder / "node_index", ("node", "is_nameless"), count_index_parts(sum(counts.values()))),
        NumberIndex(work.folder / "artist_index", ("artist_id",), count_index_parts(sources[0])),
        NumberIndex(work.folder / "label_index", ("label_id",), count_index_parts(sources[1])),
        open_text_memory(paths),
        platforms,
    )


def build_title_forms(titles: pl.DataFrame) -> pl.DataFrame:
    """Return title, version, title_key, edition, is_remaster of distinct pairs."""
    return titles.with_columns(form=build_edition_form(pl.col("title"), pl.col("version"))).unnest("form")


def build_artist_names(names: pl.DataFrame) -> pl.DataFrame:
    """Return name, key of distinct names of artists."""
    # `Various`, `VA` and their translations must meet under one key, as artists.py gives them one.
    key = build_artist_key(pl.col("name"))
    return names.with_columns(key=pl.when(key.is_in(VARIOUS_KEYS)).then(pl.lit(VARIOUS_KEY)).otherwise(key))


def build_label_names(names: pl.DataFrame) -> pl.DataFrame:
    """Return name, key of distinct names of labels."""
    return names.with_columns(key=build_label_key(pl.col("name")))


def _find_ids(
    rows: pl.DataFrame, kind: str, index: NumberIndex, build_names: Callable[[pl.DataFrame], pl.DataFrame], recall: Recall
) -> pl.DataFrame:
    """Add `<kind>_id`, found by the platform's id (`stated_<kind>`) or, without one, by the name (`<kind>_name`)."""
    stated, name = f"stated_{kind}", f"{kind}_name"
    unnumbered = rows.filter(pl.col(stated).is_null()).select(name=name).drop_nulls().unique(maintain_order=True)
    keys = recall(unnumbered, build_names, kind).select(pl.col("name").alias(name), name_key=pl.concat_str(pl.lit("name:"), "key"))
    asked = rows.select("node", "platform", stated, name).join(keys, on=name, how="left", maintain_order="left")
    asked = asked.select("node", "platform", external_id=pl.coalesce(stated, "name_key")).drop_nulls()
    found = index.join(asked, number_record()).select("node", f"{kind}_id")
    return rows.join(found, on="node", how="left", maintain_order="left")


def _index_sources(index: NumberIndex, job: SliceJob) -> None:
    """Index the ids of a slice of artist_source or label_source."""
    rows = job.rows.read_columns("platform", "external_id", *index.columns)
    index.add(job.number, rows.select(number_record()).to_series(), rows)


def _pack_bits(found: list[npt.NDArray[np.int64]], count: int) -> npt.NDArray[np.uint8]:
    """Return a bit for each of `count` numbers, the lowest first: whether it was found."""
    bits = np.zeros(count // 8 + 1, np.uint8)
    for numbers in found:
        np.bitwise_or.at(bits, numbers >> 3, np.uint8(1) << (numbers & 7).astype(np.uint8))
    return bits


def _rank_platform(platform: str) -> int:
    return RECORDING_POSITION.index(platform) if platform in RECORDING_POSITION else len(RECORDING_POSITION)
