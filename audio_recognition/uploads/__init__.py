"""Fingerprints of files from strangers: decoded window by window in a sandboxed process, so that no file can stop the server.

  sandbox = UploadSandbox()                           # one for a server process
  async with sandbox.open(file) as upload:            # an open file; UnsupportedAudioError, UndecodableAudioError, SandboxUnavailableError
      async for window in upload.iterate_windows():   # each is decoded on demand: stop at the first that is recognised
          ...                                         # window.fingerprints: one uint32[n] for each of PHASES
  await sandbox.close()

Parts: the server's end (sandbox.py, processes.py), the order of windows (audio_windows.py), the messages between the processes
(messages.py), the process that forks a new one for each file (fork_server.py), that process (child.py) and its permissions
(confinement.py, system_calls.py).
"""

from audio_recognition.uploads.limits import TIMELINE_LIMITS, Limits
from audio_recognition.uploads.sandbox import Upload, UploadSandbox, Window
from audio_recognition.uploads.sandbox_errors import SandboxBusyError, SandboxDownError, SandboxUnavailableError

__all__ = [
    "TIMELINE_LIMITS",
    "Limits",
    "SandboxBusyError",
    "SandboxDownError",
    "SandboxUnavailableError",
    "Upload",
    "UploadSandbox",
    "Window",
]
