"""Names the recording in a piece of audio: decode, fingerprint, index, match. Knows nothing of HTTP, streams or credits."""
