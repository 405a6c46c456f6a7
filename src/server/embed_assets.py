#!/usr/bin/env python3
"""Turns a folder of built web files into a C++ table of gzipped bytes (src/server/assets.h).

  embed_assets.py FOLDER OUTPUT.cc

Without the folder (no npm on the building machine) the table holds one page that says so.
Output is the same for the same input. Exit: 0 written, 2 wrong usage.
SPDX-License-Identifier: Apache-2.0
"""
import gzip
import hashlib
import pathlib
import re
import sys

TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png",
         ".ico": "image/x-icon", ".json": "application/json", ".woff2": "font/woff2"}
MISSING = b"""<!doctype html><html lang="en"><title>dial9</title><h1>The viewer isn't in this build</h1>
<p>Run <code>tools/bootstrap</code> (it installs the viewer's npm packages), then configure and build
again. The HTTP API works without it.</p></html>
"""
HASHED = re.compile(r"-[A-Za-z0-9_-]{8}\.\w+$")


def bytes_literal(data):
    rows = []
    for start in range(0, len(data), 24):
        rows.append("    " + ",".join(str(byte) for byte in data[start:start + 24]) + ",")
    return "\n".join(rows)


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(argv[0])
    files = {str(p.relative_to(folder)): p.read_bytes()
             for p in sorted(folder.rglob("*")) if p.is_file()} if folder.is_dir() else {}
    if "index.html" not in files:
        files = {"index.html": MISSING}
    out = ["// Made by embed_assets.py. SPDX-License-Identifier: Apache-2.0",
           '#include "server/assets.h"', "", "namespace dial9::server {", "namespace {", ""]
    rows = []
    for index, (name, data) in enumerate(files.items()):
        packed = gzip.compress(data, 9, mtime=0)
        etag = hashlib.sha256(data).hexdigest()[:20]
        kind = TYPES.get(pathlib.PurePath(name).suffix, "application/octet-stream")
        hashed = "true" if HASHED.search(name) else "false"
        out += [f"constexpr unsigned char kFile{index}[] = {{", bytes_literal(packed), "};"]
        rows.append(f'    {{"{name}", "{kind}", "\\"{etag}\\"",\n'
                    f"     {{reinterpret_cast<const char*>(kFile{index}), sizeof kFile{index}}}, "
                    f"{hashed}}},")
    out += ["", "}  // namespace", "", "std::span<const Asset> embedded_assets() {",
            "  static const Asset kAssets[] = {", *rows, "  };", "  return kAssets;", "}", "",
            "}  // namespace dial9::server", ""]
    pathlib.Path(argv[1]).write_text("\n".join(out))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
