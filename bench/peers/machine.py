"""What a benchmark's result must say about where it was measured, and where it may write.

SPDX-License-Identifier: Apache-2.0
"""
import datetime
import os
import platform
import tempfile


def describe():
    """Date (UTC), processor, cores, kernel: for the head of a result."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
    }


class OtherWork:
    """How busy the machine was with what isn't ours, between construction and `cores()`: a comparison
    on a busy machine must say so."""

    def __init__(self):
        self._start = self._now()

    @staticmethod
    def _now():
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, _, _, irq, softirq, steal = map(int, stat.readline().split()[1:9])
        busy_s = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        own = os.times()
        return own.elapsed, busy_s, own.user + own.system + own.children_user + own.children_system

    def cores(self):
        """Cores that other work took, on average; ask once all children have been waited for."""
        elapsed_s, busy_s, own_s = (now - then for now, then in zip(self._now(), self._start))
        return max(0.0, busy_s - own_s) / elapsed_s


QUIET_CORES = 0.1  # other work below this doesn't matter


def note_on(other_cores):
    """One line for the head of a table."""
    text = f"other work took {other_cores:.2f} of {os.cpu_count()} cores meanwhile"
    if other_cores < QUIET_CORES:
        return text
    return f"{text}: THE MACHINE WAS BUSY, repeat this on a quiet one before you trust a median"


def filesystem_of(path):
    """The type of the mount that `path` lies on, as the kernel names it."""
    real = os.path.realpath(path)
    best, kind = "", "unknown"
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            _, mount, mount_kind = line.split()[:3]
            if len(mount) >= len(best) and os.path.commonpath([real, mount]) == mount:
                best, kind = mount, mount_kind
    return kind


def memory_directory():
    """A fresh directory on tmpfs where the machine has one, else in the usual place (say which)."""
    shared = "/dev/shm"
    parent = shared if os.access(shared, os.W_OK) and filesystem_of(shared) == "tmpfs" else None
    return tempfile.TemporaryDirectory(prefix="dial9-bench-", dir=parent)
