"""A receiver of webhooks: `WEBHOOK_SECRET=whsec_... python receiver.py` listens on 127.0.0.1:9000 and prints events."""

import base64
import hashlib
import hmac
import os
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

TOLERANCE_SECONDS = 300


class Receiver(BaseHTTPRequestHandler):
    """Check each message, answer soon, print the event."""

    def do_POST(self) -> None:
        """Answer 204 to a message that the secret signed, else 400."""
        body = self.rfile.read(int(self.headers["content-length"]))
        if not self.is_signed(body):
            self.send_error(400)
            return
        self.send_response(204)
        self.end_headers()
        print(self.headers["webhook-id"], body.decode(), flush=True)  # a repeat has the same id: handle each id once

    def is_signed(self, body: bytes) -> bool:
        """Return whether the message is fresh and one of its signatures fits."""
        key = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
        expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        is_fresh = abs(time.time() - int(self.headers["webhook-timestamp"])) <= TOLERANCE_SECONDS
        return is_fresh and any(hmac.compare_digest(expected, one) for one in self.headers["webhook-signature"].split())


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
