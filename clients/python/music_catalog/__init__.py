"""Client of the music catalog API.

from music_catalog import Client

with Client("https://catalog.example.org", "your key") as catalog:
for track in catalog.iterate_search(artist="Daft Punk", title="One More Time"):
print(track.id, track.title, track.isrc)
"""

from music_catalog.async_client import AsyncClient
from music_catalog.client import Client
from music_catalog.errors import ApiError, CatalogError, ConnectionFailedError, JobEndedError, NotFoundError, SignatureError
from music_catalog.retries import RetryPolicy
from music_catalog.webhooks import Event, verify_webhook

__all__ = [
    "ApiError",
    "AsyncClient",
    "CatalogError",
    "Client",
    "ConnectionFailedError",
    "Event",
    "JobEndedError",
    "NotFoundError",
    "RetryPolicy",
    "SignatureError",
    "verify_webhook",
]
