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
