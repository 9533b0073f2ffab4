#!/usr/bin/env python3
"""Fails when a file in a lower layer of libulfm includes a header of an upper one, or one that is not its business.

usage: check_layers.py LIBULFM_FOLDER | --self-test
"""
import pathlib
import re
import sys

import checking

# Lowest first. A file may include from its own layer and from those before it.
LAYERS = ["base", "reduce", "job", "coll", "fabric", "transport", "proto", "process", "port", "api"]
# Below the layers: what only some folders may include, although the layer allows it. Shared memory is an affair of two
# transports, of the engine under one of them, and of what the ranks of a host share for themselves (segments with
# names of their own); whoever else sends goes by the contract of transports.
KEPT = {
    "base/ring.hpp": ["base", "transport/direct"],
    "base/cell.hpp": ["base", "transport/direct"],
    "base/claim.hpp": ["base", "transport/direct", "transport/emulated"],
    "base/detour.hpp": ["base", "transport/direct"],
    "base/doorbell.hpp": ["base", "coll", "fabric/engine", "job/card_board.cpp", "transport/direct", "transport/emulated"],
    "base/segment.hpp": ["base", "coll", "fabric/engine", "transport/direct", "transport/emulated"],
    "fabric/engine/": ["fabric", "transport/emulated", "transport/proxy"],
    "fabric/": ["fabric", "transport/emulated", "transport/proxy", "transport/registry.cpp"],
    "transport/direct/": ["transport/direct", "transport/mux", "transport/registry.cpp"],
    "transport/emulated/": ["transport/emulated", "transport/proxy", "transport/registry.cpp"],
    "<sys/mman.h>": ["base", "job/card_board.cpp", "job/stall_board.cpp"],
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*("[^"]+"|<sys/mman.h>)', re.MULTILINE)
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


def kept_from(path, included):
    """The folder or file that is kept from `path` and that `included` belongs to; both from the root. None: none."""
    for kept, owners in KEPT.items():
        if included.startswith(kept) and not any(path == o or path.startswith(o + "/") for o in owners):
            return kept
    return None


def breaches(root):
    """Yields one line of text for each include that is not allowed. Tests may include anything."""
    root = pathlib.Path(root).resolve()
    for path in sorted(root.rglob("*")):
        layer = layer_of(path, root)
        if layer is None or path.suffix not in SUFFIXES or path.stem.endswith("_test"):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        inside = path.relative_to(root).as_posix()
        for match in INCLUDE.finditer(text):
            at = f"{inside}:{text.count(chr(10), 0, match.start()) + 1}"
            if match[1].startswith("<"):
                if kept_from(inside, match[1]):
                    yield f"{at}: {match[1]} is for base/segment and what shares memory by itself"
                continue
            target = resolve(match[1][1:-1], path, root)
            upper = layer_of(target, root)
            if upper and LAYERS.index(upper) > LAYERS.index(layer):
                yield f"{at}: layer {layer} includes {match[1]} of upper layer {upper}"
            elif upper and (kept := kept_from(inside, target.relative_to(root).as_posix())):
                yield f"{at}: {match[1]} is kept for {', '.join(KEPT[kept])}"


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
        "base/segment.hpp": "#include <sys/mman.h>\n",
        "proto/maps.cpp": '#include <sys/mman.h>\n#include "base/segment.hpp"\n',
        "transport/direct/fine.cpp": '#include "base/segment.hpp"\n',
        "port/direct.cpp": '#include "transport/direct/fine.hpp"\n',
        "transport/direct/fine.hpp": "",
        "transport/registry.cpp": '#include "fabric/models.hpp"\n',
        "api/model.cpp": '#include "fabric/models.hpp"\n',
        "fabric/models.hpp": "",
    }
    expected = ["api/model.cpp:1:", "base/deep/bad.cpp:2:", "fabric/relative.hpp:1:", "port/direct.cpp:1:",
                "proto/maps.cpp:1:", "proto/maps.cpp:2:"]
    return checking.self_test(files, lambda root: [line.split(" ")[0] for line in breaches(root)], expected)


if __name__ == "__main__":
    sys.exit(checking.run(sys.argv[1:], __doc__, pathlib.Path.is_dir, breaches, self_test))
