"""What the table of bench/peers shows: which program's case is which row, and against which base.

Each row's base is another row, so that every number is also a ratio of two things timed in one round.
Method: bench/peers/README.md.
SPDX-License-Identifier: Apache-2.0
"""
import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    program: str
    case: str
    base: str  # a row's name
    minus: str = ""  # a case of the same program that is subtracted


RDTSC = "rdtsc + 16-byte store"
EMPTY = "empty loop"

ROWS = [
    Row(EMPTY, "floor", "empty", RDTSC),
    Row(RDTSC, "floor", "rdtsc_store", RDTSC),
    Row("clock_gettime + 16-byte memcpy", "floor", "clock_gettime_memcpy", RDTSC),
    Row("ours: event, 3 fields", "ours", "event_on", RDTSC),
    Row("ours: event, off", "ours", "event_off", EMPTY),
    Row("ours: poll start + end", "ours", "poll", RDTSC),
    Row("ours: span enter + exit, 2 fields", "ours", "span", "ours: event, 3 fields"),
    Row("original: event, 3 fields", "original", "event_on", "ours: event, 3 fields"),
    Row("original: event, off", "original", "event_off", "ours: event, off"),
    Row("original: poll start + end, by hand", "original", "poll_direct", "ours: poll start + end"),
    Row("original: poll start + end, by its hooks", "original", "tokio_on",
        "ours: poll start + end", minus="tokio_bare"),
    Row("original: span (one event), 2 fields", "original", "span",
        "ours: span enter + exit, 2 fields"),
    Row("tokio: one poll, bare", "original", "tokio_bare", RDTSC),
    Row("tokio: one poll, original's hooks off", "original", "tokio_off", "tokio: one poll, bare"),
    Row("LTTng-UST: event, 3 fields", "lttng", "event_on", "ours: event, 3 fields"),
    Row("LTTng-UST: event, off", "lttng", "event_off", "ours: event, off"),
]

THREADS = (1, 2)


def _value(row, threads, cases, key):
    """The row's number in one round; `cases` maps (program, case, threads) to a program's line."""
    value = cases[row.program, row.case, threads][key]
    if row.minus:
        value -= cases[row.program, row.minus, threads][key]
    return value


def _fastest(row, threads, rounds):
    return min(_value(row, threads, cases, "min_ns") for cases in rounds)


def make_rows(rounds, missing):
    """The finished rows: `rounds` is a list of `cases`, `missing` maps a program to a reason."""
    by_name = {row.name: row for row in ROWS}
    finished = []
    for threads in THREADS:
        for row in ROWS:
            base = by_name[row.base]
            entry = {"name": row.name, "threads": threads, "unit": "ns", "base": row.base}
            reason = missing.get(row.program) or missing.get(base.program)
            if reason:
                finished.append(entry | {"value": None, "min": None, "ratio": None,
                                         "ratio_of_min": None, "reason": reason})
                continue
            fastest = _fastest(row, threads, rounds)
            values = [_value(row, threads, cases, "median_ns") for cases in rounds]
            bases = [_value(base, threads, cases, "median_ns") for cases in rounds]
            losses = [cases[row.program, row.case, threads]["lost"] for cases in rounds]
            entry |= {
                "value": statistics.median(values),
                "min": fastest,
                "ratio": statistics.median(v / b for v, b in zip(values, bases)),
                "ratio_of_min": fastest / _fastest(base, threads, rounds),
                "lost": None if None in losses else sum(losses),
                "rounds": values,
            }
            finished.append(entry)
    return finished


def as_table(rows):
    head = f"{'what':<42}{'threads':>8}{'median':>11}{'min':>11}{'ratio':>8}{'of min':>8}  base"
    lines = [head, "-" * (len(head) + 30)]
    for row in rows:
        start = f"{row['name']:<42}{row['threads']:>8}"
        if row["value"] is None:
            lines.append(f"{start}  not measured: {row['reason']}")
            continue
        lost = f"; {row['lost']} events lost" if row["lost"] else ""
        lines.append(f"{start}{row['value']:>8.2f} ns{row['min']:>8.2f} ns{row['ratio']:>8.2f}"
                     f"{row['ratio_of_min']:>8.2f}  {row['base']}{lost}")
    return "\n".join(lines)
