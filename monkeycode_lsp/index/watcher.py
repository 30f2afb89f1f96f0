"""What the system says has changed in the workspace.

Invariants: where it does not say, whoever asks learns that and walks now and then; no more watches are taken than leave others enough.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path

logger = logging.getLogger(__name__)

_DEBOUNCE_MS = 500
_STEP_MS = 100
_SHARE = 4
"""Of the watches that the system lends to this user, one in so many."""
_MOST_FOLDERS = 20_000
_REMOTE = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "ncpfs", "vboxsf", "drvfs", "virtiofs",
    "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.vmhgfs-fuse", "fuse.osxfs", "fuse.grpcfuse",
})  # fmt: skip
"""File systems on which changes of other machines are not told."""


class Watcher:
    """Watches the folders that were given last."""

    # The mutable state is the thread that watches and the event that ends it; they change in `watch` only.

    def __init__(self, root: Path, told: Callable[[frozenset[str]], None]) -> None:
        """`told` is called on a thread of ours, with paths relative to `root`, `/` separated."""
        self._root = root
        self._told = told
        self._stop = threading.Event()
        self.is_watching = False
        self._watched: frozenset[str] = frozenset()

    def watch(self, folders: Collection[str]) -> str:
        """Watch these from now on; empty, or for people why that is not possible."""
        wanted = frozenset(folders) if sys.platform == "linux" else frozenset({""})
        if self.is_watching and wanted == self._watched:
            return ""
        why = _is_remote(self._root) or _too_many(len(wanted))
        if not why:
            why = self._start(wanted)
        elif self.is_watching:
            self._stop.set()
            self.is_watching = False
        return why

    def _start(self, wanted: frozenset[str]) -> str:
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415, PLC2701 - the library's generator cannot say when it has begun

        before, stop = self._stop, threading.Event()
        places = [str(self._root / folder) for folder in wanted if (self._root / folder).is_dir()]
        try:
            notify = RustNotify(places, False, False, 0, sys.platform != "linux", True)  # noqa: FBT003 - the library's signature
        except Exception as exc:  # noqa: BLE001 - it raises whatever the system says: a limit, a folder that has gone
            logger.info("The workspace is not watched (%s).", exc)
            before.set()
            self.is_watching = False
            return f"the system cannot watch it ({exc})"
        threading.Thread(target=self._listen, args=(notify, stop), name="watch", daemon=True).start()
        before.set()  # only now: what happens in between is told twice rather than not at all
        self._stop, self._watched, self.is_watching = stop, wanted, True
        return ""

    def _listen(self, notify: RustNotify, stop: threading.Event) -> None:
        with notify:
            while True:
                found = notify.watch(_DEBOUNCE_MS, _STEP_MS, 60_000, stop)
                if found == "timeout":
                    continue
                if not isinstance(found, set):
                    return
                if paths := frozenset(filter(None, (self._relative(path) for _, path in found))):
                    self._told(paths)

    def _relative(self, path: str) -> str:
        try:
            return Path(path).relative_to(self._root).as_posix().removeprefix(".")
        except ValueError:
            return ""


def _too_many(n_folders: int) -> str:
    most = _MOST_FOLDERS
    if sys.platform == "linux":
        try:
            most = min(most, int(Path("/proc/sys/fs/inotify/max_user_watches").read_text("ascii")) // _SHARE)
        except (OSError, ValueError):
            pass
    return f"it has more than {most} folders" if n_folders > most else ""


def _is_remote(root: Path) -> str:
    """Why changes there are not told; empty: they are, as far as can be seen."""
    try:
        mounts = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    kind, longest = "", -1
    for mount in mounts:
        _, place, this_kind, *_ = [*mount.split(" "), "", "", ""]
        place = place.replace("\\040", " ")
        if len(place) > longest and (root == Path(place) or Path(place) in root.parents):
            kind, longest = this_kind, len(place)
    return f"it lies on a network drive ({kind})" if kind in _REMOTE else ""
