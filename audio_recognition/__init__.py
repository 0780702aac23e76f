"""Recognition of the recording in a piece of audio: decode, fingerprint, index, match. HTTP, streams and credits do not belong here."""
