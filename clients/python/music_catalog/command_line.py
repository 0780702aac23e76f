"""The command `music-catalog`: search, look up, identify, resolve files.

Address and key come from `--url` and `--key`, or from MUSIC_CATALOG_URL and MUSIC_CATALOG_KEY. Bars go to the error output, and only if it
is a terminal.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from tqdm import tqdm

from music_catalog.client import Client
from music_catalog.errors import CatalogError
from music_catalog.messages import read_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from music_catalog.generated.types import Job, Track

MEDIA_TYPES = {".csv": "text/csv", ".ndjson": "application/x-ndjson", ".parquet": "application/vnd.apache.parquet"}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="music-catalog", description="Ask a music catalog.")
    parser.add_argument("--url", help="address of the server (default: MUSIC_CATALOG_URL)")
    parser.add_argument("--key", help="your key (default: MUSIC_CATALOG_KEY)")
    parser.add_argument("--json", action="store_true", help="print answers as JSON, one a line")
    commands = parser.add_subparsers(dest="command", required=True)
    search = commands.add_parser("search", help="search by artist and title")
    search.add_argument("artist")
    search.add_argument("title")
    search.add_argument("--limit", type=int, default=10, help="results (default: 10)")
    track = commands.add_parser("track", help="show a track by id or ISRC")
    track.add_argument("id_or_isrc")
    identify = commands.add_parser("identify", help="name the recording of an audio file")
    identify.add_argument("file", type=Path)
    identify.add_argument("--timeline", action="store_true", help="list every track of a long file")
    resolve = commands.add_parser("resolve", help="resolve a file of up to a million rows as a bulk job")
    resolve.add_argument("file", type=Path, help="CSV, NDJSON or Parquet, by its ending")
    resolve.add_argument("--type", default="isrc", help="isrc, track_name, barcode, ... (default: isrc)")
    resolve.add_argument("--kind", help="tracks, artists or releases (default: tracks)")
    resolve.add_argument("--output", type=Path, help="file of the result (default: <file>.result.<ending>)")
    resolve.add_argument("--poll", type=float, default=1.0, help="seconds between two looks at the job (default: 1)")
    commands.add_parser("usage", help="show credits of this month")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        with Client(options.url, options.key) as catalog:
            run_command(catalog, options)
    except (CatalogError, OSError, ValueError) as error:
        print(f"music-catalog: {error}", file=sys.stderr)
        return 1
    return 0


def run_command(catalog: Client, options: argparse.Namespace) -> None:
    """Run the command that the options name."""
    if options.command == "search":
        show = itertools.islice(
            catalog.iterate_search(artist=options.artist, title=options.title, limit=min(options.limit, 100)), options.limit
        )
        for track in show:
            _print(options, track, _describe(track))
    elif options.command == "track":
        name = options.id_or_isrc
        track = catalog.track_by_id(int(name)) if name.isdigit() else catalog.track_by_isrc(name)
        _print(options, track, _describe(track))
    elif options.command == "identify":
        _identify(catalog, options)
    elif options.command == "resolve":
        _resolve(catalog, options)
    else:
        usage = catalog.usage()
        _print(
            options, usage, f"{usage.plan}: {usage.credits_used} of {usage.credits_allowed} credits used, {usage.credits_remaining} left"
        )


def _print(options: argparse.Namespace, answer: object, text: str) -> None:
    print(msgspec.json.encode(answer).decode() if options.json else text)


def _describe(track: Track) -> str:
    artists = ", ".join(one.credited_as or one.name for one in track.artists if one.is_primary)
    match = "" if track.match is None else f"  {track.match.class_} {track.match.score:.2f}"
    return f"{track.id}\t{artists} - {track.title}\t{track.isrc or '-'}{match}"


def _identify(catalog: Client, options: argparse.Namespace) -> None:
    size = options.file.stat().st_size
    with tqdm(total=size, unit="B", unit_scale=True, desc="upload", disable=None) as bar:

        def read() -> Iterator[bytes]:
            bar.reset(total=size)
            for part in read_parts(options.file):
                yield part
                bar.update(len(part))

        found = catalog.identify_upload(read, mode="timeline" if options.timeline else None)
    if options.json:
        print(msgspec.json.encode(found).decode())
    elif found.timeline:
        for entry in found.timeline:
            name = "-" if entry.track is None else f"{entry.track.title} ({entry.track.id})"
            print(f"{entry.start_seconds:.1f}\t{entry.end_seconds:.1f}\t{name}")
    else:
        for one in found.results:
            artists = ", ".join(artist.name for artist in one.artists if artist.is_primary)
            print(f"{one.id}\t{artists} - {one.title}\tprobability {one.probability:.3f}")
        if not found.matched:
            print(f"not recognised: {found.reason}")


def _resolve(catalog: Client, options: argparse.Namespace) -> None:
    media_type = MEDIA_TYPES.get(options.file.suffix.lower())
    if media_type is None:
        raise ValueError(f"{options.file}: the ending must be one of {', '.join(MEDIA_TYPES)}")
    output = options.output or options.file.with_name(f"{options.file.stem}.result{options.file.suffix}")
    job = catalog.create_job_upload(options.file, input_type=options.type, kind=options.kind, media_type=media_type)
    with tqdm(total=job.rows, unit="row", desc="resolve", disable=None) as bar:

        def show(job: Job) -> None:
            bar.total = job.rows
            bar.update(job.rows_done - bar.n)

        job = catalog.wait_for_job(job.id, poll_seconds=options.poll, on_progress=show)
    catalog.save_job_result(job.id, output)
    facts: dict[str, Any] = {"rows": job.rows, "matched": job.rows_matched, "credits": job.credits_charged, "output": str(output)}
    _print(options, facts, f"{job.rows_matched} of {job.rows} rows matched for {job.credits_charged} credits: {output}")


if __name__ == "__main__":
    raise SystemExit(main())
