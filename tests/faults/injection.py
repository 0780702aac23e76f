"""A harness that makes each file operation of a scenario fail once, runs next operations and checks invariants.

A `Scenario` prepares a folder, does one operation in it, and says what must hold afterwards and after the next operations. The operation is
recorded once to count its calls; then it runs once for each call and kind of fault, each time in a process of its own on a copy of the
folder. What follows runs on what the fault left; states that look alike are followed up once. Out of scope: what the calls are
(system_calls.py), what must hold (scenarios of each package).
"""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults import system_calls
from tests.faults.system_calls import Action, Call, Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_OPENS = {Operation.READ_OPEN, Operation.WRITE_OPEN, Operation.CREATE}
_CHANGES = frozenset(Operation) - {Operation.MARK, Operation.READ_OPEN}
_TAKES_SPACE = frozenset(
    {Operation.CREATE, Operation.WRITE, Operation.RENAME, Operation.LINK, Operation.SYMLINK, Operation.MKDIR, Operation.ALLOCATE}
)
_BY_NAME = (_OPENS | _CHANGES) - {Operation.WRITE, Operation.SYNC, Operation.TRUNCATE, Operation.ALLOCATE}
_TRIES = 40
"""Tries of a run. A starting thread masks all signals: the kernel ends a process that is trapped in that moment. Seen once in some 500
runs, and twelve times in a row where six processes shared two processors."""
_HANG_SECONDS = 300
"""Time after which a child counts as hung. The longest child takes some 2 s."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault: its effect on a call, the calls that it fits, and the calls that fail from then on."""

    name: str
    action: Action
    happens_to: frozenset[Operation]
    error: int = 0
    from_then_on: frozenset[Operation] = frozenset()

    @property
    def kills(self) -> bool:
        """Return whether the fault ends the process."""
        return self.action in (Action.KILL, Action.TORN)

    def fits(self, call: Call) -> bool:
        """Return whether the fault can happen to this call. Half of a write needs two bytes."""
        return call.operation in self.happens_to and (self.action not in (Action.SHORT, Action.TORN) or call.length > 1)


def _fails(name: str, happens_to: Iterable[Operation], from_then_on: Iterable[Operation] = ()) -> Kind:
    return Kind(name, Action.FAIL, frozenset(happens_to), getattr(errno, name.partition(" ")[0]), frozenset(from_then_on))


KINDS = (
    _fails("ENOSPC", _TAKES_SPACE | {Operation.SYNC}),
    _fails("EDQUOT", _TAKES_SPACE),
    _fails("EIO", _OPENS | _CHANGES),
    _fails("EACCES", _BY_NAME),
    _fails("EROFS", _BY_NAME - {Operation.READ_OPEN}),
    _fails("EMFILE", _OPENS),
    _fails("ENOSPC from then on", _TAKES_SPACE, _TAKES_SPACE),
    _fails("EROFS from then on", _BY_NAME - {Operation.READ_OPEN}, _CHANGES - {Operation.SYNC}),
    Kind("kill", Action.KILL, _CHANGES),
    Kind("short write", Action.SHORT, frozenset({Operation.WRITE})),
    Kind("kill in a write", Action.TORN, frozenset({Operation.WRITE})),
)


@dataclass
class Outcome:
    """The result of the operation under fault: `answer` when it returned, `error` when it raised. Both are None when the process died."""

    answer: str | None = None
    error: str | None = None
    faults: list[str] = field(default_factory=list)


class Scenario(ABC):
    """An operation and its invariants. It is sent to child processes, so its only state is paths."""

    is_killed = True
    """Whether a killed process is a fault with an aftermath of its own."""
    looks_alike = True
    """Whether states with the same names and sizes of small files may count as one."""
    patience_seconds = 1
    """Longest wait for an event that a fault may prevent. The wait is longer while calls are counted, because nothing prevents it then."""

    @abstractmethod
    def prepare(self, folder: Path) -> None:
        """Make the state before the operation."""

    @abstractmethod
    def operate(self, folder: Path) -> str:
        """Run the operation and return its answer as text."""

    def operate_next(self, folder: Path) -> None:
        """Run a small operation afterwards in the same process. It must succeed although the first operation failed."""
        self.check(folder, Outcome())

    @abstractmethod
    def check(self, folder: Path, outcome: Outcome) -> None:
        """Raise AssertionError when an invariant is broken after the fault."""

    def outcome_of(self, marks: list[str]) -> Outcome:
        """Return the outcome of a power cut after these lines of the log. The answer is the last line."""
        return Outcome(answer=marks[-1] if marks else None)

    def next_operations(self, _folder: Path, _outcome: Outcome) -> Iterator[tuple[str, Callable[[Path], None]]]:
        """Yield operations that may come next: a name, and a function that runs it in a copy of the folder and raises AssertionError."""
        yield from ()

    def watched(self, folder: Path) -> Path:
        """Return the folder whose calls count."""
        return folder


@dataclass(frozen=True)
class Fault:
    """A kind of fault at a call."""

    call: Call
    kind: Kind

    def __str__(self) -> str:
        return f"{self.kind.name} at {self.call}"


class FaultFoundError(AssertionError):
    """An invariant that is broken after some fault."""


@dataclass
class Findings:
    """The results of the runs of one scenario."""

    operations: int = 0
    runs: int = 0
    follow_ups: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    """Broken invariants, by run."""

    def require_none(self) -> None:
        """Raise FaultFoundError when an invariant is broken. It names the runs."""
        if self.faults:
            describe_fault = "\n".join(f"{fault}\n    {wrong}" for fault, wrong in self.faults.items())
            raise FaultFoundError(f"{len(self.faults)} of {self.runs} runs over {self.operations} operations:\n{describe_fault}")


class Followed:
    """The states that next operations have run on.

    States differ in the names and sizes of small files. Those inside half-written folders of killed publishes matter least: nothing reads
    them. So the first state with equal names outside is followed by all next operations, and each other one by a single operation.
    """

    def __init__(self) -> None:
        """Begin with no state."""
        self._seen: set[str] = set()

    def count_next(self, folder: Path, outcome: Outcome) -> int | None:
        """Return the number of next operations to run on a state; None: all."""
        outside, whole = (_fingerprint(folder, outcome, with_half_written=one) for one in (False, True))
        is_new = outside not in self._seen, whole not in self._seen
        self._seen |= {outside, whole}
        return None if is_new[0] else int(is_new[1])


def _fingerprint(folder: Path, outcome: Outcome, *, with_half_written: bool) -> str:
    seen = [str(with_half_written), str(outcome.answer)]
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_half_written = any(part.startswith(".building") for part in path.relative_to(folder).parts[:-1])
        if is_half_written and not with_half_written:
            continue
        if path.is_symlink():
            seen.append(f"{name} -> {path.readlink()}")
        elif path.is_file():
            size = path.stat().st_size
            seen.append(f"{name} {size if size < 4096 and '/.' not in name else min(size, 1)}")
        else:
            seen.append(name)
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()


class Harness:
    """A runner of the faults of one scenario below `folder`."""

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        """Prepare the state before the operation, and record the operation once."""
        self.scenario = scenario
        self.folder = folder
        self.before = folder / "before"
        self.before.mkdir(parents=True)
        scenario.prepare(self.before)
        self.findings = Findings()
        self.followed = Followed()
        outcome, log = self._operate(folder / "recorded", None)
        assert outcome.answer is not None, f"the operation fails without a fault: {outcome.error}"
        assert not outcome.faults, outcome.faults
        self.log = system_calls.read_log(log)
        self.calls = [call for call in self.log if call.operation is not Operation.MARK]
        assert self.calls, "no file operation was seen"
        self.findings.operations = len(self.calls)
        shutil.rmtree(folder / "recorded")

    def faults(self) -> list[Fault]:
        """Return every call with every kind of fault that can happen to it."""
        kinds = [kind for kind in KINDS if self.scenario.is_killed or not kind.kills]
        return [Fault(call, kind) for call in self.calls for kind in kinds if kind.fits(call)]

    def cover(self) -> list[Fault]:
        """Return one fault for each call, and each kind of fault at least once at each operation on each file name.

        A publish of three recordings has 6,178 faults, of which five in a row differ in the error number alone. CATALOG_ALL_FAULTS=1 runs
        them all; that takes hours.
        """
        if "CATALOG_ALL_FAULTS" in os.environ:
            return self.faults()
        ranked = sorted(self.faults(), key=_rank)
        by_call = {fault.call.number: fault for fault in reversed(ranked)}
        by_kind = {(fault.kind.name, fault.call.operation, Path(fault.call.path).name): fault for fault in reversed(ranked)}
        return sorted({*by_call.values(), *by_kind.values()}, key=lambda fault: (fault.call.number, fault.kind.name))

    def sample(self, count: int) -> list[Fault]:
        """Return about `count` faults, chosen by a hash of their contents."""
        return sorted(self.faults(), key=_rank)[:count]

    def run(self, faults: Iterable[Fault], *, follow_ups: int | None = None, only: str = "") -> Findings:
        """Try each fault, and then some next operations whose names begin with `only`. A hash chooses at most `follow_ups` of them."""
        for fault in faults:
            self.findings.runs += 1
            place = self.folder / "run"
            try:
                self._run(fault, place, follow_ups, only)
            except Exception as error:  # noqa: BLE001 - whatever the checks stumble over is a finding
                self.findings.faults[str(fault)] = describe_fault(error)
            finally:
                for made in self.folder.glob("run*"):
                    shutil.rmtree(made) if made.is_dir() else made.unlink()
        return self.findings

    def _run(self, fault: Fault, place: Path, follow_ups: int | None, only: str) -> None:
        outcome, log = self._operate(place, fault)
        hit = [call for call in system_calls.read_log(log) if call.injected]
        if not hit:
            return  # this run had fewer calls: threads that did not meet, a folder that lists in another order
        after = place.with_name("run-after") if place.with_name("run-after").exists() else place
        self.scenario.check(after, outcome)
        assert not outcome.faults, "; ".join(outcome.faults)
        most = self.followed.count_next(after, outcome) if self.scenario.looks_alike else None
        most = min((limit for limit in (most, follow_ups) if limit is not None), default=None)
        wrong = []
        following = [one for one in self.scenario.next_operations(after, outcome) if one[0].startswith(only)]
        chosen = sorted(following, key=lambda one: hashlib.sha256(f"{one[0]} after {_name(fault)}".encode()).digest())[:most]
        for number, (name, next_operation) in enumerate(chosen):
            copy = place.with_name(f"run-next-{number}")
            shutil.copytree(after, copy, symlinks=True)
            self.findings.follow_ups += 1
            try:
                next_operation(copy)
            except Exception as error:  # noqa: BLE001 - the next operation must not fail either
                wrong.append(f"then {name}: {describe_fault(error)}")
            shutil.rmtree(copy)
        assert not wrong, "; ".join(wrong)

    def _operate(self, place: Path, fault: Fault | None, tries: int = _TRIES) -> tuple[Outcome, Path]:
        shutil.copytree(self.before, place, symlinks=True)
        log, answer = place.with_name("run.log"), place.with_name("run.json")
        answer.unlink(missing_ok=True)
        log.unlink(missing_ok=True)
        child = _children().Process(target=_operate_in_child, args=(self.scenario, place, fault, log, answer))
        child.start()
        child.join(_HANG_SECONDS)
        if child.is_alive():
            child.kill()
            child.join()
            raise AssertionError(f"hangs for {_HANG_SECONDS} s")
        if answer.exists():
            return Outcome(**json.loads(answer.read_text())), log
        if child.exitcode == -signal.SIGSYS and tries > 1:
            shutil.rmtree(place)
            shutil.rmtree(place.with_name("run-after"), ignore_errors=True)
            return self._operate(place, fault, tries - 1)
        killed = fault is not None and fault.kind.kills and child.exitcode == -signal.SIGKILL
        assert killed, f"the process ended with {child.exitcode}"
        return Outcome(), log


def _operate_in_child(scenario: Scenario, place: Path, fault: Fault | None, log: Path, answer: Path) -> None:
    """Write the outcome to `answer`. When the process went on, `run-after` holds the resulting state."""
    outcome = Outcome()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what is logged of faults is as long as the output of pytest
    open_before = _open_files(place)
    system_calls.watch()
    if fault is None:
        scenario.patience_seconds = 300
        system_calls.arm(scenario.watched(place), log, with_data=True)
    else:
        kind = fault.kind
        system_calls.arm(
            scenario.watched(place), log, at=fault.call.number, action=kind.action, error=kind.error, from_then_on=kind.from_then_on
        )
    try:
        outcome.answer = scenario.operate(place)
        system_calls.mark(outcome.answer)
    except Exception as error:  # noqa: BLE001 - the scenario judges it
        outcome.error = describe_fault(error)
    system_calls.disarm()
    gc.collect()  # an error keeps alive what its traceback names
    if left := _open_files(place) - open_before:
        outcome.faults.append(f"files left open: {sorted(left)}")
    if fault is not None:
        shutil.copytree(place, place.with_name("run-after"), symlinks=True)
        try:
            scenario.operate_next(place)
        except Exception as error:  # noqa: BLE001 - as above
            outcome.faults.append(f"the next operation of the same process fails: {describe_fault(error)}")
    answer.write_text(json.dumps(outcome.__dict__))
    os._exit(0)


def describe_fault(error: Exception) -> str:
    """Return an error in one line, with the place that raised it."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"


def _open_files(place: Path) -> set[str]:
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            target = str(descriptor.readlink())
        except OSError:
            continue
        if target.startswith(f"{place}/"):
            found.add(target)
    return found


def _children() -> multiprocessing.context.ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"tests.faults.{name}_scenarios" for name in ("catalog", "dump", "account", "pull", "backup")])
    return context


def _name(fault: Fault) -> str:
    """Return a name that is the same in every run, wherever the folder is."""
    return f"{fault.kind.name} {fault.call.operation.name} {Path(fault.call.path).name} {fault.call.number}"


def _rank(fault: Fault) -> bytes:
    return hashlib.sha256(_name(fault).encode()).digest()
