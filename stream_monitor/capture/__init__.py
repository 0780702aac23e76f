"""From an address to samples: connecting, redirects, playlists, ICY, decoding. One source at a time; blocks; never tries again by itself.

    source = open_source(outbound, url)                  # errors.py: CaptureError with what an operator can do about it
    for samples in sound(source): ...                    # int16[n], mono, chromaprint.SAMPLE_RATE

What must not live here: when to try again (listener.py), what the sound is (ear.py and below).
"""
