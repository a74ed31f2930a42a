"""The program ``infill serve --pipe``: a JSON line for each request and each answer."""

from __future__ import annotations

import collections
import importlib
import importlib.metadata
import io
import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Set
from concurrent.futures import Future
from typing import Any, NamedTuple

# A program at work writes at least a space every three seconds. One that is silent for so many
# looks, this many seconds apart, answers no more.
_LOOKS, _APART = 12, 5.0

# How many seconds a program has that is told to end.
_PATIENCE = 5.0

# The status of requests that the program gave up because it was told to end.
_GONE = 499


class InfillError(Exception):
    """What is wrong with a request, or with the program, in one line."""


def needed(module: str) -> Any:
    """Import a module that only some results need."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InfillError(f"this needs {module}: install it, as with pip install {module}") from None


class PipelineException(InfillError):
    """What is wrong with the input of a pipeline, as in transformers.

    If transformers.pipelines is loaded, the error is one of that module's class, too.
    """

    def __init__(self, *args: object):
        Exception.__init__(self, *args)  # the class of transformers takes other arguments
        self.task, self.model, self.reason = "fill-mask", None, str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return PipelineException, self.args


class ProgramEnded(InfillError):
    """The program ended before it answered."""


class Answer(NamedTuple):
    """What the program says to a request."""

    body: Any
    warnings: tuple[str, ...]


def program() -> str:
    """Return the path of the program: of this package, else of ``PATH``."""
    name = "infill.exe" if sys.platform == "win32" else "infill"
    try:
        files = importlib.metadata.files("infill") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == name and file.parent.name in ("bin", "Scripts"):
            path = str(file.locate())
            if os.path.exists(path):
                return path
    found = shutil.which("infill")
    if found is None:
        raise InfillError("the program infill is not here: install the wheel, or name it with Infill(program=...)")
    return found


def end(program: subprocess.Popen[Any]) -> None:
    """Tell a program to end, and kill it if it does not."""
    program.terminate()
    try:
        program.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


class Process:
    """One program, started at the first request and started again where it has ended.

    A copy, such as one that is sent to another process, starts a program of its own.
    """

    def __init__(self, arguments: list[str]):
        self._arguments = arguments
        self._forget()
        _processes.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Process, (self._arguments,)

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._child: _Child | None = None
        self._end: weakref.finalize[..., Any] | None = None

    def after_fork(self) -> None:
        """Leave the program to the parent process; this one starts its own."""
        if self._end is not None:
            self._end.detach()
        if self._child is not None:
            self._child.leave()
        self._forget()

    def send(self, path: str, body: dict[str, Any] | None) -> Future[Answer]:
        """Send a request, a GET if it has no body; the answer comes in the future."""
        number = next(self._numbers)
        rest = '"method": "GET"' if body is None else f'"body": {_object(body)}'
        line = f'{{"id": {number}, "path": {json.dumps(path)}, {rest}}}\n'
        with self._lock:
            if self._child is not None and self._child.ended is not None:
                self.close()
            if self._child is None:
                self._child = _Child(self._arguments)
                self._end = weakref.finalize(self, self._child.stop)
            return self._child.send(number, line.encode())

    def ask(self, path: str, body: dict[str, Any] | None) -> Answer:
        """Send a request and wait for the answer, once more where the program ended."""
        try:
            try:
                return self.send(path, body).result()
            except ProgramEnded:
                pass
            return self.send(path, body).result()
        except InfillError:
            raise
        except BaseException:
            self.interrupt()
            raise

    def interrupt(self) -> None:
        """End what is at work: requests of other threads are sent again, to another program."""
        child, stop = self._take()
        if child is not None:
            child.fail(ProgramEnded("interrupted"))
        stop()

    def close(self) -> None:
        """End the program. The next request starts it again."""
        _, stop = self._take()
        stop()

    def _take(self) -> tuple[_Child | None, Callable[[], Any]]:
        """Return the program, and what ends it. The next request, of any thread, starts another."""
        with self._lock:
            child, stop = self._child, self._end
            self._child = self._end = None
        return child, stop or (lambda: None)


_processes: weakref.WeakSet[Process] = weakref.WeakSet()


def _forked() -> None:
    for process in list(_processes):
        process.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Child:
    """A program that was started, and the requests that wait for its answers.

    Threads write and read. So an interrupt tears no line, and a program that does not read holds nobody up.
    """

    def __init__(self, arguments: list[str]):
        try:
            self._program = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=sys.platform != "win32",  # Ctrl-C is the notebook's
            )
        except (OSError, ValueError) as error:
            raise InfillError(f"{arguments[0]} does not start: {error}") from None
        self.ended: InfillError | None = None
        self._lock = threading.RLock()  # the garbage collector may stop the program in any thread
        self._waiting: dict[int, Future[Answer]] = {}
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._told: collections.deque[str] = collections.deque(maxlen=1000)
        self._heard = 0  # pieces of output so far
        self._over = threading.Event()
        self._silent = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        others = (self._write, self._read, self._watch)
        self._threads = [self._listener, *(threading.Thread(target=t, daemon=True) for t in others)]
        for thread in self._threads:
            thread.start()

    def send(self, number: int, line: bytes) -> Future[Answer]:
        future: Future[Answer] = Future()
        with self._lock:
            if self.ended is not None:
                future.set_exception(self.ended)
                return future
            self._waiting[number] = future
        self._lines.put(line)
        return future

    def fail(self, error: InfillError) -> None:
        """Give whoever waits, or comes later, an error."""
        with self._lock:
            self.ended = self.ended or error
        self._fail_waiting(error)
        self._lines.put(None)
        self._over.set()

    def stop(self) -> None:
        self.fail(InfillError("closed before the answer came"))
        end(self._program)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(1)

    def leave(self) -> None:
        """Close this process's ends of the pipes: the program is another's."""
        for stream in (self._program.stdin, self._program.stdout, self._program.stderr):
            if stream is not None:
                stream.close()
        self._program.returncode = 0  # not ours to wait for

    def _fail_waiting(self, error: InfillError) -> None:
        with self._lock:
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            future.set_exception(error)

    def _write(self) -> None:
        assert self._program.stdin is not None
        with self._program.stdin as stdin:
            while (line := self._lines.get()) is not None:
                left = memoryview(line)
                while left:
                    try:
                        left = left[stdin.write(left) or 0 :]
                    except OSError:
                        return  # it has ended: the reader says why

    def _listen(self) -> None:
        assert self._program.stderr is not None
        with io.BufferedReader(self._program.stderr) as lines:  # type: ignore[type-var]
            for line in lines:
                self._told.append(line.decode(errors="replace").strip())

    def _watch(self) -> None:
        """End a program that lives and is silent, perhaps inside a line."""
        heard = looks = 0
        while not self._over.wait(_APART):
            looks += 1
            if not self._waiting or self._heard != heard or self._heard == 0:  # it starts silently
                looks = 0
            heard = self._heard
            if looks == _LOOKS:
                self._silent = True
                self._program.kill()
                return

    def _lines_of(self, output: io.RawIOBase) -> Iterator[bytes]:
        """Yield the lines of what the program writes, a torn one included."""
        line: list[bytes] = []
        while piece := output.read(1 << 16):
            self._heard += 1
            *whole, rest = piece.split(b"\n")
            for end in whole:
                yield b"".join([*line, end, b"\n"])
                line = []
            line.append(rest)
        yield b"".join(line)

    def _read(self) -> None:
        broken = ""
        assert isinstance(self._program.stdout, io.RawIOBase)
        try:
            with self._program.stdout as output:
                for line in self._lines_of(output):
                    if not line.strip():
                        continue
                    try:
                        self._take(json.loads(line))
                    except (ValueError, KeyError, TypeError, AttributeError):
                        if line.endswith(b"\n"):  # else it was killed while it wrote
                            broken = f"the program wrote what is no answer: {line[:80]!r}"
                        break
        except Exception as error:
            broken = f"the answer cannot be read: {error!r}"
        try:
            code = self._program.wait(0 if broken else 1)
        except subprocess.TimeoutExpired:  # it lives, and will answer no more
            broken = broken or "the program closed its output"
            self._program.kill()
            code = self._program.wait()
        self._listener.join(1)
        if self._silent:
            broken = f"the program gave no sign of life for {_LOOKS * _APART:.0f} s"
        self.fail(ProgramEnded(broken or self._reason(code) or f"the program ended with exit code {code}"))

    def _take(self, answer: dict[str, Any]) -> None:
        body, status, number = answer["body"], answer["status"], answer["id"]
        message = str(body.get("error", body) if isinstance(body, dict) else body)
        message = message.replace("POST /v1/fill", "Infill.fill")
        if status == 500:  # as for strangers, who may not know; standard error says why
            time.sleep(0.1)
            message = f"{message}: {self._told[-1].removeprefix('infill: warning: ')}" if self._told else message
        error = InfillError(message)
        if status == _GONE:  # it was told to end, and gives up what it has
            error = ProgramEnded("the program was told to end")
        if number is None:  # of a line that the program could not read
            self._fail_waiting(error)
            return
        with self._lock:
            future = self._waiting.pop(number, None)
            if future is None and self.ended is None:
                raise KeyError(number)  # nobody has asked this
        if future is not None and status == 200:
            future.set_result(Answer(body, tuple(answer.get("warnings", ()))))
        elif future is not None:
            future.set_exception(error)

    def _reason(self, code: int) -> str:
        """Return the line that says why the program ended, and its hint."""
        if code < 0 and -code != signal.SIGABRT:
            return f"the program was ended by signal {-code}"
        lines = [line for line in self._told if line]
        for start in ("infill: ", "panic: ", "fatal error: "):
            for i, line in reversed(list(enumerate(lines))):
                if line.startswith(start) and not line.startswith("infill: warning: "):
                    hint = "; ".join(h.removeprefix("hint: ") for h in lines[i + 1 :] if h.startswith("hint: "))
                    reason = line.removeprefix("infill: ")
                    return f"{reason}; {hint}" if hint and "infill serve --help" not in hint else reason
        return lines[-1] if lines else ""


def _object(body: dict[str, Any]) -> str:
    """Write a JSON object; an error names the key."""
    fields = []
    for key, value in body.items():
        try:
            fields.append(f"{json.dumps(key)}: {json.dumps(value, allow_nan=False, default=_plain)}")
        except (TypeError, ValueError, RecursionError) as error:
            raise InfillError(f"{key}: {value!r:.80} cannot be sent: {error}") from None
    return "{" + ", ".join(fields) + "}"


def _plain(value: Any) -> Any:
    """Return numbers and arrays of numpy, sets and other collections as JSON has them."""
    if isinstance(value, Set):
        return sorted(value, key=str)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return list(value)
    raise TypeError(f"{value!r:.80} is no text, number or list")
