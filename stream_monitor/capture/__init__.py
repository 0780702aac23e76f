"""Capture: from an address to samples, through redirects, playlists, ICY and decoding. One source at a time; blocks; never retries.

    source = open_source(outbound, url)                  # errors.py: CaptureError with what an operator can do about it
    for samples in decode_sound(source): ...             # int16[n], mono, chromaprint.SAMPLE_RATE

Out of scope: retries (listener.py), fingerprints and matching (fingerprint_buffer.py, tracker.py).
"""
