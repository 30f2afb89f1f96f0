"""What the system says has changed in the workspace.

Invariants: where it does not say, whoever asks learns that and walks now and then; no more watches are taken than leave others enough.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

_DEBOUNCE_MS = 500
_STEP_MS = 100
_SHARE = 4
"""Of the watches that the system lends to this user, one in so many."""
_REMOTE = frozenset({
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "ncpfs", "vboxsf", "drvfs", "virtiofs",
    "fuse.sshfs", "fuse.rclone", "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.vmhgfs-fuse", "fuse.osxfs", "fuse.grpcfuse",
})  # fmt: skip
"""File systems on which changes of other machines are not told."""


class Watcher:
    """Watches the folders that were given last."""

    # The mutable state is the thread that watches, and what it watches; it changes in `watch` only.

    def __init__(self, root: Path, told: Callable[[frozenset[str]], None], *, most_folders: int) -> None:
        """`told` is called on a thread of ours, with paths relative to `root`, `/` separated."""
        self._root = root
        self._told = told
        self._most_folders = most_folders
        self._watch: _Watch | None = None
        self._watched: frozenset[str] = frozenset()

    @property
    def is_watching(self) -> bool:
        return self._watch is not None

    def watch(self, folders: Collection[str]) -> str:
        """Watch these from now on; empty, or for people why that is not possible."""
        wanted = frozenset(folders) if sys.platform == "linux" else frozenset({""})
        if self.is_watching and wanted == self._watched:
            return ""
        why = _is_remote(self._root) or _too_many(len(wanted), self._most_folders)
        if not why:
            why = self._start(wanted)
        elif self._watch is not None:
            self._watch.stop()
            self._watch = None
        return why

    def _start(self, wanted: frozenset[str]) -> str:
        places = [place for folder in wanted if (place := self._root / folder).is_dir()]
        before, watch = self._watch, _Watch(places, self._hear)
        watch.start()
        why = watch.has_begun()
        if before is not None:
            before.stop()  # only now: what happens in between is told twice rather than not at all
        self._watch, self._watched = (None if why else watch), wanted
        return f"the system cannot watch it ({why})" if why else ""

    def _hear(self, paths: Iterable[str]) -> None:
        if found := frozenset(filter(None, map(self._relative, paths))):
            self._told(found)

    def _relative(self, path: str) -> str:
        try:
            inside = Path(path).relative_to(self._root).as_posix()
        except ValueError:
            return ""
        return inside if inside != "." else ""


class _Watch(threading.Thread):
    """One watch, of which it is known when it has begun."""

    # The mutable state is why it has ended, set before `_begun`, and the two events.

    def __init__(self, places: Sequence[Path], told: Callable[[Iterable[str]], None]) -> None:
        super().__init__(name="watch", daemon=True)
        self._places = places
        self._told = told
        self._begun = threading.Event()
        self._stopped = threading.Event()
        self._why = ""

    def run(self) -> None:
        """On the thread."""
        import watchfiles  # noqa: PLC0415 - only a process that watches needs it

        try:
            for changes in watchfiles.watch(
                *self._places,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                stop_event=self,
                raise_interrupt=False,
                recursive=sys.platform != "linux",
                ignore_permission_denied=True,
            ):
                self._told(path for _, path in changes)
        except Exception as exc:  # noqa: BLE001 - it raises whatever the system says: a limit, a folder that has gone
            self._why = str(exc) or type(exc).__name__
        self._begun.set()

    def is_set(self) -> bool:
        """Asked by the library at each step, the first time as soon as it watches."""
        self._begun.set()
        return self._stopped.is_set()

    def has_begun(self) -> str:
        """Wait for that; empty, or why it never will."""
        self._begun.wait()
        return self._why

    def stop(self) -> None:
        self._stopped.set()


def _too_many(n_folders: int, most: int) -> str:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            most = min(most, int(Path("/proc/sys/fs/inotify/max_user_watches").read_text("ascii")) // _SHARE)
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
