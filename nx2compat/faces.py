#!/usr/bin/env python3
"""Makes the entry points of libnx2 and the prototypes of its headers from calls.table.

usage: faces.py TABLE c|fortran|header|names

For a call with arrays of `long` there is a second C function, nx2_i_NAME, for programs compiled with NX_LONG_IS_INT;
scalars need none: every entry point takes the lower 32 bits of what it is given.
"""
import sys

NARROWED = {"longs", "inlongs", "info"}  # kinds whose elements are long or int

# How a kind is declared in C, for elements of type {n}, and what is passed on.
C_KINDS = {
    "i": ("long", "nx2::scalar({a})"),
    "wide": ("long", "{a}"),
    "in": ("const void*", "{a}"),
    "out": ("void*", "{a}"),
    "floats": ("float*", "{a}"),
    "doubles": ("double*", "{a}"),
    "longs": ("{n}*", "{a}"),
    "inlongs": ("const {n}*", "{a}"),
    "info": ("{n}*", "nx2::info_array({a})"),
    "handler": ("void (*{a})()", "nx2::c_handler({a})"),
    "xhandler": ("void (*{a})()", "nx2::c_handler({a})"),
    "combine": ("long (*{a})()", "nx2::combiner({a})"),
    "text": ("const char*", "nx2::text({a})"),
    "any": ("void*", "{a}"),
}
FORTRAN_KINDS = dict(
    C_KINDS,
    i=("const std::int32_t*", "*{a}"),
    wide=("const std::int32_t*", "*{a}"),
    handler=("void (*{a})()", "nx2::fortran_handler({a})"),
    xhandler=("void (*{a})()", "nx2::fortran_handler({a})"),
    combine=("void (*{a})()", "nx2::combiner({a})"),
    text=("const char*", "nx2::text({a}, {a}_length)"),
)
RESULTS = {"void": "void", "long": "long", "ulong": "unsigned long", "double": "double"}


def read(table):
    for line in open(table, encoding="utf-8"):
        words = line.split("#")[0].split()
        if words:
            yield words[0], words[1], [tuple(w.split(":")) for w in words[2:]]


def declare(kinds, arguments, element):
    def one(name, kind):
        text = kinds[kind][0].format(a=name, n=element)
        return text if "(*" in text else f"{text} {name}"

    return ", ".join(one(*argument) for argument in arguments)


def forward(kinds, name, arguments):
    passed = ", ".join(kinds[kind][1].format(a=argument) for argument, kind in arguments)
    return f"nx2::calls::{name}({passed})"


def is_narrowed(arguments):
    return any(kind in NARROWED for _, kind in arguments)


def both_forms(plain, underscore, result, name, declared, call):
    timed = f"const nx2::TimedCall timed(\"{name}\");"
    if result in ("ulong", "double"):
        return f"{RESULTS[result]} {plain}({declared}) {{ {timed} return {call}; }}\n" \
               f"{RESULTS[result]} {underscore}({declared}) {{ {timed} return {call}; }}\n"
    back = "return " if result == "long" else "(void)"
    value = "underscored" if result == "long" else "success_of"
    return f"{RESULTS[result]} {plain}({declared}) {{ {timed} {back}nx2::plain(\"{name}\", {call}); }}\n" \
           f"long {underscore}({declared}) {{ {timed} return nx2::{value}({call}); }}\n"


def c_face(calls):
    for result, name, arguments in calls:
        call = forward(C_KINDS, name, arguments)
        yield both_forms(name, "_" + name, result, name, declare(C_KINDS, arguments, "long"), call)
        if is_narrowed(arguments):
            declared = declare(C_KINDS, arguments, "std::int32_t")
            yield both_forms("nx2_i_" + name, "nx2_i__" + name, result, name, declared, call)


def fortran_face(calls):
    for result, name, arguments in calls:
        call = forward(FORTRAN_KINDS, name, arguments)
        declared = declare(FORTRAN_KINDS, arguments, "std::int32_t")
        # The lengths of character arguments come last.
        for argument, kind in arguments:
            if kind == "text":
                declared += f", std::size_t {argument}_length"
        # gfortran adds one underscore; f2c and -fsecond-underscore add two to a name that has one.
        for end in ["_"] + (["__"] if "_" in name else []):
            text = both_forms(name + end, "_" + name + end, result, name, declared, call)
            yield text.replace("unsigned long ", "std::int32_t ").replace("long ", "std::int32_t ") \
                if result != "double" else text


def prototype(result, name, arguments):
    kinds = {
        **{kind: text.replace("{n}", "nx_long") for kind, (text, _) in C_KINDS.items()},
        "i": "nx_long", "wide": "long",
        "handler": "nx_handler", "xhandler": "nx_xhandler", "combine": "nx_combiner",
        "text": "char*", "any": "void*", "in": "void*", "inlongs": "nx_long*",
    }
    declared = ", ".join(f"{kinds[kind]} {argument}" for argument, kind in arguments) or "void"
    types = {"void": "void", "long": "nx_long", "ulong": "unsigned nx_long", "double": "double"}
    underscored = types[result] if result in ("ulong", "double") else "nx_long"
    # A compiler that finds a program's own "extern int mynode()" in conflict shows this line.
    advice = "  /* declared as int by the program? -DNX_LONG_IS_INT */" if result == "long" else ""
    return f"{types[result]} {name}({declared});{advice}\n{underscored} _{name}({declared});\n"


def header(calls):
    yield "/* The calls of NX/2; made from calls.table. Included by nx.h, cube.h and mesh.h. */\n"
    yield "#ifdef NX_LONG_IS_INT\n"
    for _, name, arguments in calls:
        if is_narrowed(arguments):
            yield f"#define {name} nx2_i_{name}\n#define _{name} nx2_i__{name}\n"
    yield "#endif\n\n"
    for call in calls:
        yield prototype(*call)


def main():
    calls = list(read(sys.argv[1]))
    if sys.argv[2] == "header":
        parts = header(calls)
    elif sys.argv[2] == "names":
        parts = (name + "\n" for _, name, _ in calls)
    else:
        make = c_face if sys.argv[2] == "c" else fortran_face
        parts = ["#include \"face.hpp\"\n\nextern \"C\" {\n", *make(calls), "}  // extern \"C\"\n"]
    sys.stdout.write("".join(parts))


main()
