"""The format of `serving/lists/`: the contents of each array.

The lists are a base, shared by snapshot after snapshot as hard links, and a delta in `delta/`, with the tracks (or releases) that the base
lacks or has in another place. All arrays are .npy, little endian, one dimension, opened by memory map. N tracks of the base, R releases, D
and E distinct dates, I the largest recording id.

A *number* is a position in the order of all tracks (or releases) of one layer: the newest is 0. A *rank* orders those of both layers and is
a uint64: of the base, the number above PLACE_BITS bits that are all set; of the delta, the place above the number. The place is how many of
the base come before. An ascending list of ranks is therefore in page order, two lists are intersected by their ranks, and a year is a
range of ranks.

  track_ids.npy           uint32 (uint64 when needed) [N]  recording ids: stamp descending, then id ascending
  track_stamps.npy        uint32 [D]      the stamps (dates.py) that occur, descending; 0, no date, last
  track_starts.npy        uint32 [D+1]    tracks of stamp i have the numbers starts[i]..starts[i+1]
  track_numbers.npy       uint32 [I+1]    number of each recording id, ABSENT where there is none
  release_ids.npy         uint32 (uint64 when needed) [R]  release ids: stamp descending, then unheard ascending, then id ascending
  release_unheard.npy     uint32 [R]      `unheard` (dates.py) of the popularity of the release's artist
  release_stamps.npy, release_starts.npy  as for tracks
  genre_tracks.npy        uint32          numbers of the tracks of each genre, main or subgenre, those of its subgenres included
  label_tracks.npy        uint32          of each label: tracks that are on a release of it
  artist_tracks.npy       uint32          of each artist: tracks on which it is credited in any role
  label_releases.npy      uint32          numbers of the releases of each label
  artist_releases.npy     uint32          of each artist: releases of which it is the artist
  <name>_starts.npy       uint32 or uint64 [largest id + 2]  of each of the last five: the list of id i is <name>[starts[i]..starts[i+1]]

The five hold one list after the other, in the order of ids, each ascending and without repeats. These files are written by each publish:

  format.json             {"format_version"}
  delta/<kind>_ids.npy, _stamps.npy, _starts.npy, release_unheard.npy   of track and release: as in the base
  delta/<kind>_ranks.npy  uint64          the rank of each, ascending
  delta/<kind>_dead.npy   uint32          numbers of the base that no longer count, ascending
  delta/track_known_ids.npy uint64        recording ids of the delta, ascending
  delta/track_known_ranks.npy uint64      the rank of each
  delta/<name>_owners.npy uint32 or uint64  ids whose list differs from that of the base, ascending
  delta/<name>_added.npy  uint64          ranks that the list of each owner has more, ascending
  delta/<name>_removed.npy  uint32        numbers of the base that it lacks, ascending, dead ones included
  delta/<name>_added_starts.npy, <name>_removed_starts.npy  uint32 or uint64  where those of each owner begin, and the end

Format 2 has no delta, and names `track_numbers.npy` `track_ranks.npy`. Change anything here together with FORMAT_VERSION.
"""

from __future__ import annotations

import numpy as np

FORMAT_VERSION = 3
READ_VERSIONS = frozenset({2, 3})
"""Versions that this program reads (catalog_store/format_versions.py)."""
UNLAYERED_VERSION = 2
FORMAT_FILE = "format.json"
DELTA_FOLDER = "delta"

LISTS = ("genre_tracks", "label_tracks", "artist_tracks", "label_releases", "artist_releases")
BASE_FILES = (
    "track_ids.npy", "track_stamps.npy", "track_starts.npy", "track_numbers.npy",
    "release_ids.npy", "release_unheard.npy", "release_stamps.npy", "release_starts.npy",
    *(f"{name}{end}.npy" for name in LISTS for end in ("", "_starts")),
)  # fmt: skip
"""Files that snapshots share."""
NO_RANK = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
