"""The format of `serving/lists/`: the contents of each array.

All arrays are .npy, little endian, one dimension, opened by memory map. A *rank* is a position in the order of all tracks (or releases):
the newest is 0. An ascending list of ranks is therefore in page order, two lists are intersected by their numbers, and a year is a range of
ranks. N tracks, R releases, D and E distinct dates, I the largest recording id.

  format.json             {"format_version"}
  track_ids.npy           uint32 (uint64 when needed) [N]  recording ids: stamp descending, then id ascending
  track_stamps.npy        uint32 [D]      the stamps (dates.py) that occur, descending; 0, no date, last
  track_starts.npy        uint32 [D+1]    tracks of stamp i have the ranks starts[i]..starts[i+1]
  track_ranks.npy         uint32 [I+1]    rank of each recording id, NO_RANK where there is none
  release_ids.npy         uint32 (uint64 when needed) [R]  release ids: stamp descending, then unheard ascending, then id ascending
  release_unheard.npy     uint32 [R]      `unheard` (dates.py) of the popularity of the release's artist
  release_stamps.npy, release_starts.npy  as for tracks
  genre_tracks.npy        uint32          ranks of the tracks of each genre, main or subgenre, those of its subgenres included
  label_tracks.npy        uint32          of each label: tracks that are on a release of it
  artist_tracks.npy       uint32          of each artist: tracks on which it is credited in any role
  label_releases.npy      uint32          ranks of the releases of each label
  artist_releases.npy     uint32          of each artist: releases of which it is the artist
  <name>_starts.npy       uint32 or uint64 [largest id + 2]  of each of the last five: the list of id i is <name>[starts[i]..starts[i+1]]

The five hold one list after the other, in the order of ids, each ascending and without repeats. Change anything here together with
FORMAT_VERSION.
"""

from __future__ import annotations

import numpy as np

FORMAT_VERSION = 2
READ_VERSIONS = frozenset({2})
"""Versions that this program reads (catalog_store/format_versions.py)."""
FORMAT_FILE = "format.json"

NO_RANK = np.uint32(0xFFFF_FFFF)
LISTS = ("genre_tracks", "label_tracks", "artist_tracks", "label_releases", "artist_releases")
