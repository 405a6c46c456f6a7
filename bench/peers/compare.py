#!/usr/bin/env python3
"""Runs the programs of bench/peers in turns and writes bench_peers.json (see bench/peers/run --help).

A round runs every program once, the next round in the next order; a ratio is the median over rounds of
the two numbers of one round. Method: bench/peers/README.md.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import contextlib
import json
import pathlib
import subprocess
import sys

import lttng
import machine
import rows

PROGRAM_TIMEOUT_S = 120
MIN_ROUNDS = 7


class Failed(Exception):
    """Why a program has no numbers."""


class Programs:
    """The programs that can run, by the name that rows.py uses for them."""

    def __init__(self, build, directory, missing):
        self._directory = directory
        self._commands = {
            "floor": build / "peers" / "peers_floor",
            "ours": build / "peers" / "peers_dial9",
            "original": build / "peers" / "cargo" / "release" / "dial9_peer",
            "lttng": build / "peers" / "peers_lttng",
        }
        self.missing = dict(missing)
        self.session = None

    def names(self):
        return [name for name in self._commands if name not in self.missing]

    def run(self, name):
        """One run: {(program, case, threads): line}."""
        command = [str(self._commands[name]), "--directory", str(self._directory)]
        env = self.session.env if name == "lttng" else None
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=env, check=False,
                                  timeout=PROGRAM_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failed(str(error)) from error
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise Failed(said[-1] if said else f"ended with {done.returncode}")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return {(name, line["case"], line["threads"]): line for line in lines}


def show_progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:<40}\r", end="", file=sys.stderr, flush=True)


def run_rounds(programs, count):
    """`count` rounds; a program that fails is taken out, with its reason."""
    rounds = []
    for index in range(count):
        cases = {}
        order = programs.names()
        shift = index % len(order)
        for name in order[shift:] + order[:shift]:
            show_progress(f"round {index + 1} of {count}: {name}")
            try:
                cases |= programs.run(name)
            except Failed as error:
                programs.missing[name] = str(error)
        rounds.append(cases)
    show_progress("")
    return rounds


def measure(build, missing, count):
    other_work = machine.OtherWork()
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(machine.memory_directory())
        programs = Programs(build, directory, missing)
        if "lttng" not in programs.missing:
            try:
                programs.session = stack.enter_context(lttng.SnapshotSession(directory))
            except lttng.Unavailable as error:
                programs.missing["lttng"] = str(error)
        rounds = run_rounds(programs, count)
        if "lttng" not in programs.missing and programs.session.snapshot_bytes() == 0:
            programs.missing["lttng"] = "its snapshot is empty: nothing was recorded"
        kind = machine.filesystem_of(directory)
    return {
        **machine.describe(),
        "other_work_cores": other_work.cores(),
        "directory": kind,
        "rounds": count,
        "rows": rows.make_rows(rounds, programs.missing),
    }, programs.missing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=MIN_ROUNDS)
    parser.add_argument("--missing", action="append", default=[], metavar="PROGRAM=REASON",
                        help="a program that could not be built")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds: at least 1")

    missing = dict(item.split("=", 1) for item in args.missing)
    result, missing = measure(args.build, missing, args.rounds)
    result["command"] = f"bench/peers/run BUILD_DIR --rounds {args.rounds}"
    output = args.build / "bench_peers.json"
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{result['date']}, {result['processor']}, {result['cores']} cores, Linux "
          f"{result['kernel']}; recording into {result['directory']}; {args.rounds} rounds in turns")
    print(machine.note_on(result["other_work_cores"]))
    print(rows.as_table(result["rows"]))
    print(f"written: {output}")
    return 1 if {"floor", "ours"} & missing.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
