#!/usr/bin/env python3
"""Fails when a file in a lower layer of libulfm includes a header of an upper one.

usage: check_layers.py LIBULFM_FOLDER | --self-test
"""
import pathlib
import re
import sys
import tempfile

# Lowest first. A file may include from its own layer and from those before it.
LAYERS = ["base", "reduce", "job", "coll", "fabric", "transport", "proto", "process", "port", "api"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".inl"}


def layer_of(path, root):
    """The layer a path lies in, or None for the public headers and what is outside."""
    try:
        first = path.relative_to(root).parts[0]
    except (ValueError, IndexError):
        return None
    return first if first in LAYERS else None


def resolve(name, including, root):
    """The file an include means: beside the including file first, as the compiler looks, then from the root."""
    for folder in (including.parent, root):
        candidate = pathlib.Path(folder, name)
        if candidate.exists():
            return candidate.resolve()
    return pathlib.Path(root, name)


def breaches(root):
    """Yields one line of text for each include that goes upwards. Tests may include anything."""
    root = pathlib.Path(root).resolve()
    for path in sorted(root.rglob("*")):
        layer = layer_of(path, root)
        if layer is None or path.suffix not in SUFFIXES or path.stem.endswith("_test"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in INCLUDE.finditer(text):
            upper = layer_of(resolve(match[1], path, root), root)
            if upper and LAYERS.index(upper) > LAYERS.index(layer):
                line = text.count("\n", 0, match.start()) + 1
                yield f'{path.relative_to(root)}:{line}: layer {layer} includes "{match[1]}" of upper layer {upper}'


def self_test():
    """Proves that the check can fail, on a tree with known breaches."""
    files = {
        "base/fine.hpp": "#include <vector>\n",
        "port/fine.hpp": '#include "base/fine.hpp"\n#include "../proto/fine.hpp"\n',
        "proto/fine.hpp": '// #include "port/fine.hpp"\n',
        "base/deep/bad.cpp": '\n#  include "api/none.hpp"\n',
        "fabric/relative.hpp": '#include "../transport/x.hpp"\n',
        "transport/x.hpp": "",
        "base/free_test.cpp": '#include "port/fine.hpp"\n',
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = [line.split(" ")[0] for line in breaches(folder)]
    expected = ["base/deep/bad.cpp:2:", "fabric/relative.hpp:1:"]
    if found != expected:
        print(f"self-test: expected breaches {expected}, found {found}", file=sys.stderr)
        return 1
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or not pathlib.Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    found = list(breaches(arguments[0]))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
