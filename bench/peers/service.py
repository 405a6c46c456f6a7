"""Runs the checkout service, its store and its load for bench/peers/end_to_end: one measurement is one
load against one running service. Every process that it starts ends with its `with` block.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import subprocess

READY_TIMEOUT_S = 20
STOP_TIMEOUT_S = 20
LOAD_MARGIN_S = 30  # beyond the load's own length
CONNECTIONS = 64
ANSWER_TIMEOUT_MS = 1000  # also how long a saturating load goes on after its end
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
RECORDED = re.compile(r"recorded (\d+) events, dropped (\d+)")


class Failed(Exception):
    """Why there is no measurement."""


class Process:
    """A program that prints its port once it listens."""

    def __init__(self, command, env=None):
        self._name = os.path.basename(command[0])
        self._process = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
        self.said = ""  # on stderr, once it has ended
        self.port = None

    def __enter__(self):
        line = self._process.stdout.readline()  # the end of the pipe, if it ends first
        match = re.search(r"listening on .*:(\d+)$", line.strip())
        if match is None:
            self._stop()
            raise Failed(f"{self._name} did not start: {self.said.strip() or line}")
        self.port = int(match.group(1))
        return self

    def __exit__(self, *_):
        self._stop()

    def cpu_seconds(self):
        """User and system time of all its threads so far."""
        with open(f"/proc/{self._process.pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def _stop(self):
        self._process.terminate()
        try:
            _, self.said = self._process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, self.said = self._process.communicate()

    def events(self):
        """(recorded, dropped) of an ended service; None if it recorded nothing."""
        match = RECORDED.search(self.said)
        return (int(match.group(1)), int(match.group(2))) if match else None


def store(build):
    return Process([str(build / "checkout_kv"), "--port", "0"])


def checkout(program, store_port, audit, options):
    """The service in one configuration: `options` are its command line beyond the ports."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("DIAL9_")}
    return Process([str(program), "--port", "0", "--kv-port", str(store_port),
                    "--audit", str(audit), *options], env=env)


def load(build, port, rate_hz, seconds, seed):
    """One load; the generator's own results. Fails if a request came back wrong; those that were never
    sent, or not answered in time, are in the results."""
    command = [str(build / "checkout_load"), "--port", str(port), "--rate", f"{rate_hz:.1f}",
               "--duration", f"{seconds:g}", "--connections", str(CONNECTIONS),
               "--timeout-ms", str(ANSWER_TIMEOUT_MS), "--seed", str(seed), "--json"]
    done = subprocess.run(command, text=True, capture_output=True, check=False,
                          timeout=seconds + LOAD_MARGIN_S)
    if done.returncode not in (0, 1):
        raise Failed(f"checkout_load: {done.stderr.strip()}")
    results = json.loads(done.stdout)
    errors = results["errors"]
    wrong = errors["closed"] + errors["bad_response"] + results["status"]["5xx"]
    if wrong or not results["answered"]:
        raise Failed(f"checkout_load: {wrong} requests failed, {results['answered']} answered")
    return results
