"""The program ``infill serve --pipe``: a JSON line for each request and each answer."""

from __future__ import annotations

import collections
import importlib.metadata
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future
from typing import Any


class InfillError(Exception):
    """What is wrong with a request, or with the program, in one line."""


class ProgramEnded(InfillError):
    """The program ended before it answered."""


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


class Process:
    """One program, started at the first request and started again where it has ended."""

    def __init__(self, arguments: list[str]):
        self._arguments = arguments
        self._forget()
        if hasattr(os, "register_at_fork"):
            own = weakref.ref(self)

            def forked() -> None:
                process = own()
                if process is not None:
                    process._after_fork()

            os.register_at_fork(after_in_child=forked)

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize[..., Any] | None = None

    def _after_fork(self) -> None:
        """Leave the program to the parent process; this one starts its own."""
        if self._end is not None:
            self._end.detach()
        if self._child is not None:
            for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
                if stream is not None:
                    os.close(stream.fileno())
            self._child.returncode = 0  # not ours to wait for
        self._forget()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is not None:
            return self._child
        try:
            child = subprocess.Popen(
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=sys.platform != "win32",  # Ctrl-C is the notebook's
            )
        except OSError as error:
            raise InfillError(f"{self._arguments[0]} does not start: {error}") from None
        told: collections.deque[str] = collections.deque(maxlen=20)
        listener = threading.Thread(target=_listen, args=(child, told), daemon=True)
        listener.start()
        waiting: dict[int, Future[Any]] = {}
        threading.Thread(target=_read, args=(weakref.ref(self), child, waiting, told, listener), daemon=True).start()
        self._child, self._waiting = child, waiting
        self._end = weakref.finalize(self, _stop, child)
        return child

    def send(self, path: str, body: Any) -> Future[Any]:
        """Send a request; the answer's body comes in the future."""
        future: Future[Any] = Future()
        with self._lock:
            child = self._start()
            number = next(self._numbers)
            self._waiting[number] = future
            line = json.dumps({"id": number, "path": path, "body": body}) + "\n"
            assert child.stdin is not None
            try:
                child.stdin.write(line.encode())
                child.stdin.flush()
            except OSError:
                pass  # it has ended: the reader says why
        return future

    def ask(self, path: str, body: Any) -> Any:
        """Send a request and wait for the answer, once more where the program ended."""
        try:
            return self.send(path, body).result()
        except ProgramEnded:
            return self.send(path, body).result()

    def ended(self, child: subprocess.Popen[bytes]) -> None:
        """Start another program at the next request."""
        with self._lock:
            if self._child is child:
                self._child = None

    def close(self) -> None:
        """End the program. The next request starts it again."""
        with self._lock:
            end, self._end, self._child = self._end, None, None
        if end is not None:
            end()


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _listen(child: subprocess.Popen[bytes], told: collections.deque[str]) -> None:
    assert child.stderr is not None
    with child.stderr:
        for line in child.stderr:
            told.append(line.decode(errors="replace").strip())


def _read(
    process: weakref.ref[Process],
    child: subprocess.Popen[bytes],
    waiting: dict[int, Future[Any]],
    told: collections.deque[str],
    listener: threading.Thread,
) -> None:
    assert child.stdout is not None
    with child.stdout:
        for line in child.stdout:
            answer = json.loads(line)
            future = waiting.pop(answer["id"], None)
            if future is None:
                continue
            body = answer["body"]
            if answer["status"] == 200:
                future.set_result(body)
            else:
                future.set_exception(InfillError(body.get("error", body) if isinstance(body, dict) else body))
    own = process()
    if own is not None:
        own.ended(child)
    code = child.wait()
    listener.join(1)
    reason = next((line for line in reversed(told) if line), f"exit code {code}")
    for number in list(waiting):
        waiting.pop(number).set_exception(ProgramEnded(reason.removeprefix("infill: ")))
