#!/usr/bin/env python3
"""Fails when two types of one program have the same name, so that a reader never asks which one is meant.

usage: check_types.py TOP | --self-test

Counted are types at namespace scope in libulfm, in nx2compat, and in each tool with what the tools share. Types nested
in a class are named with it. Public headers keep their names. Each model of an interconnect has Parameters, a Network
and a Reference of its own, in its own namespace: the same part of each model has the same name.
"""
import collections
import pathlib
import re
import sys

import checking

SAME_IN_EACH_MODEL = {"Parameters", "Network", "Reference"}
MODELS = "libulfm/fabric/"
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
TYPE = re.compile(r"^(?:template *<[^{;]*> *)?(?:struct|class|union|enum class|enum struct|enum)\s+"
                  r"(?:alignas\([^)]*\)\s*|\[\[[^\]]*\]\]\s*)*([A-Za-z_]\w*)(?:\s+final)?\s*(?::(?!:)[^;{(]*)?\{",
                  re.MULTILINE)


def programs(top):
    """Names of programs and the sources of each."""
    def sources(*folders):
        return [p for f in folders for p in sorted((top / f).rglob("*.[ch]pp")) if "include" not in p.parts]
    yield "libulfm", sources("libulfm")
    yield "nx2compat", sources("nx2compat")
    for tool in sorted(p for p in (top / "tools").glob("*") if p.is_dir() and p.name != "common"):
        yield tool.name, sources(f"tools/{tool.name}", "tools/common")


def types_of(path):
    """Names of the types at namespace scope, which begin their line, and their lines."""
    text = NOISE.sub(lambda m: "\n" * m[0].count("\n"), path.read_text(encoding="utf-8", errors="replace"))
    return [(m[1], text.count("\n", 0, m.start()) + 1) for m in TYPE.finditer(text)]


def doubles(top):
    """Yields one line of text for each name that is taken more than once."""
    top = pathlib.Path(top)
    for program, sources in programs(top):
        places = collections.defaultdict(list)
        for path in sources:
            inside = path.relative_to(top).as_posix()
            for name, line in types_of(path):
                if not (name in SAME_IN_EACH_MODEL and inside.startswith(MODELS)):
                    places[name].append(f"{inside}:{line}")
        for name, where in sorted(places.items()):
            if len(where) > 1:
                yield f"{program} has {len(where)} types named {name}: {', '.join(where)}"


def self_test():
    """Proves that the check can fail."""
    files = {
        "libulfm/base/a.hpp": "struct Arena {\n  struct State {};\n};\nstruct Other;\n// struct Twice {\n",
        "libulfm/port/b.cpp": "struct alignas(64) Arena final : Base {\n};\nclass Twice {\n  enum State { x };\n};\n",
        "libulfm/include/c.hpp": "struct Twice {\n};\n",
        "libulfm/fabric/x/n.hpp": "class Network {\n};\n",
        "libulfm/fabric/y/n.hpp": "class Network {\n};\n",
        "nx2compat/src/d.hpp": "enum class Arena : int { a };\n",
        "tools/one/e.cpp": "struct Row {\n};\n",
        "tools/common/f.hpp": "template <typename T> struct Row {\n};\n",
    }
    expected = ["libulfm has 2 types named Arena", "one has 2 types named Row"]
    return checking.self_test(files, lambda top: [line.split(":")[0] for line in doubles(top)], expected)


if __name__ == "__main__":
    sys.exit(checking.run(sys.argv[1:], __doc__, lambda top: (top / "libulfm").is_dir(), doubles, self_test))
