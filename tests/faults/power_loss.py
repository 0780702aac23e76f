"""A simulation of power loss: it replays a recorded operation up to any call, and drops or keeps unsynced changes.

The model is that of ALICE (Pillai et al., OSDI 2014) and of SQLite's crash tests, with what POSIX promises and no more: `fsync` of a file
makes its bytes durable, not its name; `fsync` of a folder makes the names in it durable. Of unsynced bytes any may be lost, page by page;
of unsynced names in a folder those after some point are lost, in each folder another point; a file may have its length and zeros in it.
Out of scope: recording (system_calls.py), what must hold (scenarios).
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults.injection import Findings, Harness, Scenario, describe_fault
from tests.faults.system_calls import Call, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PAGE_BYTES = 4096
_POINTS = frozenset(Operation) - {Operation.READ_OPEN}


@dataclass
class _Node:
    """A file, folder (`names`) or symbolic link (`leads_to`). The first `synced` changes of a file are durable."""

    number: int
    names: dict[str, _Node] | None = None
    leads_to: str = ""
    origin: Path | None = None
    """Path of its bytes from before the operation."""
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes: offset and bytes; or a new length and None."""
    synced: int = 0


@dataclass
class _Naming:
    """A change of names in one folder or two. It happens as a whole or not at all."""

    effects: list[tuple[_Node, str, _Node | None]]
    is_durable: bool = False


class Choice:
    """A choice of the unsynced changes that survive: one of the extremes, or a hash of `seed` and the change."""

    def __init__(self, seed: str) -> None:
        """Take a seed: `lost`, `kept`, `names only`, `bytes only`, or any text."""
        self.seed = seed

    def keeps_name(self, place: int, count: int, folder: int) -> bool:
        """Return whether the name change at `place` survives, of `count` unsynced ones in a folder."""
        if self.seed in ("lost", "bytes only"):
            return False
        return self.seed in ("kept", "names only") or place < self._number("names", folder) % (count + 1)

    def keeps_bytes(self, *what: int) -> bool:
        """Return whether a page of a write, or a change of length, survives."""
        if self.seed in ("lost", "names only"):
            return False
        return self.seed in ("kept", "bytes only") or bool(self._number("bytes", *what) & 1)

    def keeps_length(self, file: int) -> bool:
        """Return whether a file keeps the length that lost writes gave it, with zeros."""
        return self.seed not in ("lost", "kept", "names only", "bytes only") and bool(self._number("length", file) & 1)

    def _number(self, *what: object) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.seed} {what}".encode()).digest()[:4])


CHOICES = tuple(map(Choice, ("lost", "kept", "names only", "bytes only", "some", "others", "yet others")))


class Disk:
    """The state of a folder after some calls, and the part of it that survives a power cut."""

    def __init__(self, before: Path, recorded: Path, watched: str) -> None:
        """Take the durable state `before`.

        `recorded` is the folder where the calls found it. `watched` is the folder in it that the calls change.
        """
        self._count = 0
        self._elsewhere = before, recorded
        self._recorded = str(recorded / watched)
        self._namings: list[_Naming] = []
        self.root = self._load(before / watched)
        self._before = _all_names(self.root)

    def _node(self, **more: object) -> _Node:
        self._count += 1
        return _Node(self._count, **more)  # type: ignore[arg-type]

    def _load(self, path: Path) -> _Node:
        if path.is_symlink():
            return self._node(leads_to=str(path.readlink()))
        if path.is_dir():
            return self._node(names={child.name: self._load(child) for child in sorted(path.iterdir())})
        return self._node(origin=path)

    def apply(self, call: Call) -> None:
        """Apply one call."""
        if call.result < 0:
            return
        handler = {
            Operation.CREATE: self._open,
            Operation.WRITE_OPEN: self._open,
            Operation.WRITE: self._write,
            Operation.TRUNCATE: self._truncate,
            Operation.ALLOCATE: self._allocate,
            Operation.SYNC: self._sync,
            Operation.RENAME: self._rename,
            Operation.LINK: self._link,
            Operation.SYMLINK: lambda one: self._name(one.path, self._node(leads_to=one.other)),
            Operation.MKDIR: lambda one: self._name(one.path, self._node(names={})),
            Operation.UNLINK: lambda one: self._name(one.path, None),
            Operation.RMDIR: lambda one: self._name(one.path, None),
        }.get(call.operation)
        if handler is not None:
            handler(call)

    def _find(self, path: str) -> _Node | None:
        if path == self._recorded:
            return self.root
        if not path.startswith(self._recorded + "/"):
            return None
        node: _Node | None = self.root
        for name in path[len(self._recorded) + 1 :].split("/"):
            if node is None or node.names is None:
                return None
            node = node.names.get(name)
        return node

    def _effect(self, path: str, node: _Node | None) -> list[tuple[_Node, str, _Node | None]]:
        folder = self._find(os.path.dirname(path))  # noqa: PTH120 - of a path that is in the log alone
        return [] if folder is None or folder.names is None else [(folder, os.path.basename(path), node)]  # noqa: PTH119 - as above

    def _name(self, path: str, node: _Node | None, *, leaving: str = "") -> None:
        effects = [*(self._effect(leaving, None) if leaving else []), *self._effect(path, node)]
        for folder, name, named in effects:
            _set(folder, name, named)
        self._namings.append(_Naming(effects))

    def _open(self, call: Call) -> None:
        node = self._find(call.path)
        if node is None and call.operation is Operation.CREATE:
            self._name(call.path, self._node())
        elif node is not None and call.offset & os.O_TRUNC:
            node.changes.append((0, None))

    def _write(self, call: Call) -> None:
        if (node := self._find(call.path)) is not None:
            node.changes.append((call.offset, call.data))

    def _truncate(self, call: Call) -> None:
        if (node := self._find(call.path)) is not None:
            node.changes.append((call.length, None))

    def _allocate(self, call: Call) -> None:
        node = self._find(call.path)
        if node is not None and len(_content(node)) < call.offset + call.length:
            node.changes.append((call.offset + call.length, None))

    def _sync(self, call: Call) -> None:
        node = self._find(call.path)
        if node is None:
            return
        node.synced = len(node.changes)
        for naming in self._namings:
            if any(folder is node for folder, _, _ in naming.effects):
                naming.is_durable = True

    def _rename(self, call: Call) -> None:
        if (node := self._find(call.path)) is not None:
            self._name(call.other, node, leaving=call.path)

    def _link(self, call: Call) -> None:
        node = self._find(call.path)
        if node is None:  # from elsewhere: nobody has synced it
            before, recorded = self._elsewhere
            node = self._node(changes=[(0, (before / Path(call.path).relative_to(recorded)).read_bytes())])
        self._name(call.other, node)

    def survive(self, choice: Choice, target: Path) -> str:
        """Write the surviving state to `target` and return a hash of it."""
        kept = self._kept_names(choice)
        names = self._replayed(kept)
        digest = hashlib.sha256()
        self._write_out(self.root, names, choice, target, digest.update, "")
        return digest.hexdigest()

    def _kept_names(self, choice: Choice) -> set[int]:
        """Return the ids of the unsynced namings that survive: in each folder those before some point."""
        by_folder: dict[int, list[_Naming]] = {}
        for naming in self._namings:
            if not naming.is_durable and naming.effects:
                by_folder.setdefault(naming.effects[-1][0].number, []).append(naming)
        return {
            id(naming)
            for folder, namings in by_folder.items()
            for place, naming in enumerate(namings)
            if choice.keeps_name(place, len(namings), folder)
        }

    def _replayed(self, kept: set[int]) -> dict[int, dict[str, _Node]]:
        """Return the names in each folder after the namings that are durable or kept."""
        names: dict[int, dict[str, _Node]] = {}
        for naming in self._namings:
            for folder, _, _ in naming.effects:
                names.setdefault(folder.number, dict(self._before.get(folder.number, {})))
        for naming in self._namings:
            if naming.is_durable or id(naming) in kept:
                for folder, name, node in naming.effects:
                    if node is None:
                        names[folder.number].pop(name, None)
                    else:
                        names[folder.number][name] = node
        return names

    def _write_out(
        self, node: _Node, names: dict[int, dict[str, _Node]], choice: Choice, target: Path, tell: Callable[[bytes], None], name: str
    ) -> None:
        tell(f"\n{name} ".encode())
        if node.names is not None:
            target.mkdir(exist_ok=True)
            for child, inside in sorted(names.get(node.number, self._before.get(node.number, {})).items()):
                self._write_out(inside, names, choice, target / child, tell, f"{name}/{child}")
        elif node.leads_to:
            target.symlink_to(node.leads_to)
            tell(node.leads_to.encode())
        elif not node.changes and node.origin is not None:
            shutil.copyfile(node.origin, target)
        else:
            content = _content(node, choice)
            target.write_bytes(content)
            tell(hashlib.sha256(content).digest())


def _all_names(root: _Node) -> dict[int, dict[str, _Node]]:
    """Return the names in each folder below `root`, by its number."""
    found: dict[int, dict[str, _Node]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.names is not None:
            found[node.number] = dict(node.names)
            waiting += node.names.values()
    return found


def _set(folder: _Node, name: str, node: _Node | None) -> None:
    assert folder.names is not None
    if node is None:
        folder.names.pop(name, None)
    else:
        folder.names[name] = node


def _content(node: _Node, choice: Choice | None = None) -> bytes:
    """Return the bytes of a file; with a choice, only those that survive."""
    content = bytearray(node.origin.read_bytes() if node.origin else b"")
    length = len(content)
    for place, (offset, data) in enumerate(node.changes):
        is_sure = choice is None or place < node.synced
        if data is None:
            length = offset
            if is_sure or (choice is not None and choice.keeps_bytes(node.number, place)):
                del content[offset:]
                content.extend(bytes(offset - len(content)))
            continue
        length = max(length, offset + len(data))
        begin = 0
        while begin < len(data):
            end = min(len(data), begin + PAGE_BYTES - (offset + begin) % PAGE_BYTES)
            if is_sure or (choice is not None and choice.keeps_bytes(node.number, place, begin)):
                content.extend(bytes(max(0, offset + begin - len(content))))
                content[offset + begin : offset + end] = data[begin:end]
            begin = end
    if choice is not None and choice.keeps_length(node.number):
        del content[length:]
        content.extend(bytes(length - len(content)))
    return bytes(content)


class PowerLoss:
    """Power cuts in one recorded operation of a scenario, and the checks after them."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        """Record the operation."""
        self.scenario = scenario
        self.harness = Harness(scenario, folder)
        self.folder = folder
        self.findings = Findings(operations=len(self.harness.calls))
        self._seen: set[str] = set()

    def cuts(self) -> list[tuple[int, Choice]]:
        """Return every place in the log behind which the power can be cut, with every choice."""
        places = [number for number, call in enumerate(self.harness.log) if call.operation in _POINTS]
        return [(place, choice) for place in places for choice in CHOICES]

    def cover(self) -> list[tuple[int, Choice]]:
        """Return one choice behind each call, and each choice at least once behind each operation on each kind of file.

        CATALOG_ALL_FAULTS=1 runs all cuts; that takes hours.
        """
        if "CATALOG_ALL_FAULTS" in os.environ:
            return self.cuts()
        ranked = sorted(self.cuts(), key=_rank, reverse=True)
        by_place = {place: (place, choice) for place, choice in ranked}
        calls = self.harness.log
        by_choice = {(choice, calls[place].operation, Path(calls[place].path).suffix): (place, choice) for place, choice in ranked}
        return sorted({*by_place.values(), *by_choice.values()}, key=lambda cut: (cut[0], cut[1].seed))

    def sample(self, count: int) -> list[tuple[int, Choice]]:
        """Return some cuts, chosen by a hash. Some are always behind the last calls, which switch things."""
        cuts = self.cuts()
        ranked = sorted(cuts, key=_rank)
        late = [cut for cut in ranked if cut[0] >= len(self.harness.log) - 12]
        return sorted({*ranked[: count // 2], *late[: count - count // 2]}, key=lambda cut: cut[0])

    def run(self, cuts: Iterable[tuple[int, Choice]], *, follow_ups: int | None = None) -> Findings:
        """Try each cut, with at most `follow_ups` next operations in all."""
        before = self.harness.before
        disk = Disk(before, self.folder / "recorded", str(self.scenario.watched(before).relative_to(before)))
        done = 0
        for place, choice in sorted(cuts, key=lambda cut: cut[0]):
            for call in self.harness.log[done : place + 1]:
                disk.apply(call)
            done = max(done, place + 1)
            marks = [call.path for call in self.harness.log[:done] if call.operation is Operation.MARK]
            self.findings.runs += 1
            image = self.folder / "image"
            try:
                self._try(disk, choice, image, marks, follow_ups)
            except Exception as error:  # noqa: BLE001 - whatever the checks stumble over is a finding
                self.findings.faults[f"{choice.seed} behind {self.harness.log[place]}"] = describe_fault(error)
            finally:
                for made in self.folder.glob("image*"):
                    shutil.rmtree(made)
        return self.findings

    def _try(self, disk: Disk, choice: Choice, image: Path, marks: list[str], follow_ups: int | None) -> None:
        shutil.copytree(self.harness.before, image, symlinks=True)
        shutil.rmtree(self.scenario.watched(image))
        looks = disk.survive(choice, self.scenario.watched(image)) + str(marks)
        if looks in self._seen:
            return
        self._seen.add(looks)
        outcome = self.scenario.outcome_of(marks)
        self.scenario.check(image, outcome)
        following = sorted(
            self.scenario.next_operations(image, outcome), key=lambda one: hashlib.sha256(f"{one[0]} {looks}".encode()).digest()
        )
        most = self.harness.followed.count_next(image, outcome) if self.scenario.looks_alike else None
        for name, next_operation in following[:most]:
            if follow_ups is not None and self.findings.follow_ups >= follow_ups:
                return
            copy = image.with_name("image-next")
            shutil.copytree(image, copy, symlinks=True)
            self.findings.follow_ups += 1
            try:
                next_operation(copy)
            except Exception as error:
                raise AssertionError(f"then {name}: {describe_fault(error)}") from error
            shutil.rmtree(copy)


def _rank(cut: tuple[int, Choice]) -> bytes:
    return hashlib.sha256(f"{cut[0]} {cut[1].seed}".encode()).digest()
