#!/usr/bin/env python3
"""Fails when a number in a page is not the one in the code.

usage: check_numbers.py TOP_FOLDER | --self-test

docs/numbers.table has a line for each: PAGE | WORDS WITH {} | SOURCE | CONSTANT. {} stands for the number in the page,
with its unit. Blanks and line ends in the page count as one blank. The constant is NAME = VALUE or NAME{VALUE} in the
source, a row "NAME" of the settings (base/config.cpp) with its default, or a #define. Settings in the man pages are
checked by docs/man/update, and tables of measurements are written by ./dev bench.
"""
import pathlib
import re
import sys

import checking

TABLE = "docs/numbers.table"
NUMBER = r"([0-9][0-9.,]*(?: ?(?:KB|MB|GB|B|ns|us|ms|seconds|s)\b)?|one|two|three|four|five|a tenth of a second)"
WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "a tenth of a second": 10**8}
UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "K": 1 << 10, "M": 1 << 20, "ns": 1, "us": 10**3,
         "ms": 10**6, "s": 10**9,
         "seconds": 10**9}
CHRONO = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}


def value_of_text(text):
    """A number of a page: bytes, nanoseconds, or just a number."""
    if text in WORDS:
        return WORDS[text]
    match = re.fullmatch(r"([0-9][0-9.,]*?)[.,]? ?([A-Za-z]*)", text)
    return round(float(match[1].replace(",", "")) * UNITS[match[2]])


def value_of_code(expression, scale=1):
    """A constant as it is written in C++."""
    text = re.sub(r"(?<=\d)'(?=\d)", "", expression.strip())
    text = re.sub(r"std::size_t\{(\d+)\}", r"\1", text)
    text = re.sub(r"\b(\d+)(ns|us|ms|s)\b", lambda m: str(int(m[1]) * UNITS[m[2]]), text)
    text = re.sub(r"(?:std::chrono::)?(nanoseconds|microseconds|milliseconds|seconds)\((\d+)\)",
                  lambda m: str(int(m[2]) * CHRONO[m[1]]), text)
    text = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", text)
    if not re.fullmatch(r"[0-9a-fA-Fx +*/()<-]+", text):
        return None
    return eval(text) * scale  # pylint: disable=eval-used


def constant(source, name):
    """What the source says of a name; None when it says nothing that can be read."""
    if row := re.search(rf'\{{"{name}", RowType::\w+, "(\w*)", "(\d+)([KM]|ms|s)?"', source):
        return int(row[2]) * UNITS[row[3] or (row[1] if row[1] in UNITS else "")]
    if define := re.search(rf"^\+?#define {name} ([^/\n]+)", source, re.MULTILINE):
        return value_of_code(define[1])
    if given := re.search(rf"\b{name} ?= ?([^;,}}]+)", source):
        return value_of_code(given[1])
    if given := re.search(rf"(\w+) (?:\w+\{{\w+\}}, )?{name}\{{([^}}]+)\}}", source):
        return value_of_code(given[2], CHRONO.get(given[1], 1))
    return None


def wrong(top, line):
    """What is wrong with a line of the table; None when nothing is."""
    fields = [field.strip() for field in line.split(" | ")]
    if len(fields) != 4 or "{}" not in fields[1]:
        return "a line needs PAGE | WORDS WITH {} | SOURCE | CONSTANT"
    page, words, source, name = fields
    pattern = NUMBER.join(r"\s+".join(re.escape(w) for w in part.split(" ")) for part in words.split("{}"))
    found = re.search(pattern, (top / page).read_text(encoding="utf-8"))
    if not found:
        return f'{page} does not have "{words}"'
    is_now = constant((top / source).read_text(encoding="utf-8"), name)
    if is_now is None:
        return f"{source} has no constant {name} that can be read"
    if value_of_text(found[1]) != is_now:
        return f'{page} says "{" ".join(found[0].split())}"; {name} in {source} is {is_now}'
    return None


def differences(top):
    """Yields a sentence for each line of the table that does not hold."""
    top = pathlib.Path(top)
    for i, line in enumerate((top / TABLE).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#") and (sentence := wrong(top, line)):
            yield f"{TABLE}:{i}: {sentence}"


def self_test():
    """Three lines that hold, and three that do not."""
    files = {
        "docs/page.md": "A box holds 16 KB and\nis open for 2 ms, or 1,024 turns; never 7.\n",
        "code.hpp": "constexpr int kBox = 16 * 1024, kTurns = 1 << 10;\nconstexpr std::chrono::milliseconds kOpen{2};\n"
                    "constexpr int kNever = 8;\n",
        TABLE: "docs/page.md | holds {} and is | code.hpp | kBox\ndocs/page.md | for {}, or | code.hpp | kOpen\n"
               "docs/page.md | or {} turns | code.hpp | kTurns\n"
               "docs/page.md | never {}. | code.hpp | kNever\ndocs/page.md | not {} there | code.hpp | kBox\n"
               "docs/page.md | never {}. | code.hpp | kGone\n",
    }
    return checking.self_test(files, lambda top: [line.split(": ")[0] for line in differences(top)],
                              [f"{TABLE}:{i}" for i in (4, 5, 6)])


if __name__ == "__main__":
    sys.exit(checking.run(sys.argv[1:], __doc__, lambda top: (top / TABLE).is_file(), differences, self_test))
