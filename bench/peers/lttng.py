"""A snapshot session of LTTng-UST with our tracepoint on, for the length of a `with` block.

Starts a session daemon of its own unless one runs (kernel tracing is never touched), and stops only what
it started. Method: bench/peers/README.md.
SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import subprocess
import time

START_TIMEOUT_S = 10
EVENT = "dial9_bench:order_placed"


class Unavailable(Exception):
    """Why there is no session."""


class SnapshotSession:
    def __init__(self, directory):
        self._output = pathlib.Path(directory) / "lttng"
        self._env = os.environ | {"LTTNG_HOME": str(directory), "LTTNG_UST_REGISTER_TIMEOUT": "5000"}
        self._name = f"dial9-bench-{os.getpid()}"
        self._daemon = None

    def __enter__(self):
        try:
            if not self._answers():
                self._start_daemon()
            self._lttng("create", self._name, "--snapshot", f"--output={self._output}")
            self._lttng("enable-event", "--userspace", EVENT, f"--session={self._name}")
            self._lttng("start", self._name)
        except (Unavailable, OSError) as error:
            self._stop()
            raise Unavailable(str(error)) from error
        return self

    def __exit__(self, *_):
        self._stop()

    @property
    def env(self):
        """The environment in which a program finds this session's daemon."""
        return self._env

    def snapshot_bytes(self):
        """Takes a snapshot, as one would after an incident, and returns its size: 0 means that nothing
        was recorded."""
        self._lttng("snapshot", "record", f"--session={self._name}")
        return sum(f.stat().st_size for f in self._output.rglob("channel*") if f.is_file())

    def _command(self, *args):
        return subprocess.run(["lttng", "--no-sessiond", *args], env=self._env, text=True,
                              capture_output=True, timeout=30, check=False)

    def _lttng(self, *args):
        done = self._command(*args)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Unavailable(f"lttng {args[0]}: {said[-1] if said else 'failed'}")

    def _answers(self):
        return self._command("list").returncode == 0

    def _start_daemon(self):
        self._daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self._env,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._daemon.poll() is not None:
                raise Unavailable(f"lttng-sessiond ended with {self._daemon.returncode}")
            if time.monotonic() > until:
                raise Unavailable("lttng-sessiond doesn't answer")
            time.sleep(0.1)

    def _stop(self):
        self._command("destroy", self._name)
        if self._daemon is not None:
            self._daemon.terminate()
            self._daemon.wait(timeout=30)
            self._daemon = None
