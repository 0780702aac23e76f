"""Fingerprints of files that strangers sent: decoded window by window in a sandboxed process, so that no file can take the server down.

    sandbox = UploadSandbox()                       # one for a server process
    async with sandbox.opened(file) as upload:      # an open file; UnsupportedAudioError, UndecodableAudioError, SandboxUnavailableError
        async for window in upload.windows():       # each is decoded when it is asked for: stop at the first that is recognised
            ...                                     # window.fingerprints: one uint32[n] for each of PHASES
    await sandbox.close()

Parts: the server's end (sandbox.py, processes.py), which windows in which order (windows.py), what goes between the processes
(messages.py), the process that forks a fresh one for each file (fork_server.py), that one (child.py) and what it may do (confinement.py,
system_calls.py).
"""

from audio_recognition.uploads.errors import SandboxBusyError, SandboxDownError, SandboxUnavailableError
from audio_recognition.uploads.limits import Limits
from audio_recognition.uploads.sandbox import Upload, UploadSandbox, Window

__all__ = ["Limits", "SandboxBusyError", "SandboxDownError", "SandboxUnavailableError", "Upload", "UploadSandbox", "Window"]
