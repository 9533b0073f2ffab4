#!/usr/bin/env bash
# The man pages about NX/2 against calls.table, nx.h and phrases.cpp: each call is on one page, with the arguments it
# has, in C and Fortran; nx2(7) lists it under that page; error numbers and phrases are those of the library.
set -uo pipefail
source=${ULFM_SOURCE:?source folder}

python3 - "$source" <<'PYTHON' || exit 1
import glob, re, sys

source = sys.argv[1]
failures = []


def read(path):
    return open(f"{source}/{path}", encoding="utf-8").read()


def fail(text):
    failures.append(text)


def calls():
    for line in read("nx2compat/calls.table").splitlines():
        words = line.split("#")[0].split()
        if words:
            yield words[1], words[0], [word.split(":")[0] for word in words[2:]]


def section(page, name):
    found = re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)", page, re.M | re.S)
    return found.group(1) if found else ""


def functions_of(text):
    """Names after Fn, wherever it stands in a line."""
    return re.findall(r"\bFn (\w+)", text)


def c_arguments(line):
    """Of .Fn NAME "long a" "void *b": the names."""
    return [re.findall(r"\w+", text.replace("()", ""))[-1] for text in re.findall(r'"([^"]*)"', line)]


TYPES = {"void": "void", "long": "long", "ulong": "unsigned long", "double": "double"}
table = {name: (TYPES[result], arguments) for name, result, arguments in calls()}
pages = {path.split("/")[-1][:-2]: read("docs/man/" + path.split("/")[-1])
         for path in glob.glob(source + "/docs/man/nx2_*.3")}
place = {}

for title, page in sorted(pages.items()):
    synopsis = section(page, "SYNOPSIS")
    rest = page.split(".Sh DESCRIPTION", 1)[1]
    here = []
    for result, line in re.findall(r"^\.Ft (.*)\n(\.Fn .*)$", synopsis, re.M):
        name = line.split()[1]
        here.append(name)
        if name in place:
            fail(f"{name} is on {place[name]} and on {title}")
        place[name] = title
        if name not in table:
            fail(f"{title}: there is no call {name}")
            continue
        want_result, want = table[name]
        if (result, c_arguments(line)) != (want_result, want):
            fail(f"{title}: {line}: calls.table has {want_result} and {want}")
        fortran = name.upper() + ("(" + ", ".join(want).upper() + ")" if want or want_result != "void" else "")
        before = "CALL " if want_result == "void" else r"\w+ = "
        if not re.search(rf"^{before}{re.escape(fortran)}$", synopsis, re.M):
            fail(f"{title}: no line for {fortran} in Fortran")
        if name not in functions_of(rest):
            fail(f"{title}: nothing is said of {name}")
        for argument in want:
            if not re.search(rf"\bFa (\w+ , )*{argument}\b", rest):
                fail(f"{title}: nothing is said of the argument {argument} of {name}")
    named = re.findall(r"\w+", " ".join(re.findall(r"^\.Nm (.*)$", section(page, "NAME"), re.M)))
    if named != here:
        fail(f"{title}: NAME has {named}, SYNOPSIS {here}")

for name in table.keys() - place.keys():
    fail(f"{name} is on no page")

overview = read("docs/man/nx2.7")
listed = re.search(r"^\.Ss Calls\n(.*?)^\.El", overview, re.M | re.S).group(1)
index = {}
for part in listed.split(".It Xr ")[1:]:
    for name in functions_of(part):
        index[name] = part.split()[0]
if index != place:
    fail(f"nx2(7) does not list these as their pages have them: {sorted(set(index.items()) ^ set(place.items()))}")

numbers = dict(re.findall(r"#define (EQ\w+) (\d+)", read("nx2compat/include/nx2/nx.h")))
phrases = dict(re.findall(r'case (EQ\w+):\s+return "([^"]*)"', read("nx2compat/src/phrases.cpp")))
for title, page in [*pages.items(), ("nx2", overview)]:
    for name, number in re.findall(r"^\.It (EQ\w+) Ta (\d+) Ta", page, re.M):
        if numbers.get(name) != number:
            fail(f"{title}: {name} is {numbers.get(name)}, not {number}")
# \& keeps a first word from being taken for a macro.
if dict(re.findall(r"^\.It (EQ\w+) Ta \d+ Ta (?:\\&)?(.*)$", overview, re.M)) != phrases or numbers.keys() != phrases.keys():
    fail("nx2(7) does not have the errors of nx.h and phrases.cpp")

for line in failures:
    print("FAIL", line)
print(f"{len(place)} calls on {len(pages)} pages, {len(failures)} failures")
sys.exit(1 if failures else 0)
PYTHON

# What mandoc finds wrong; that manuals of other packages are not on this machine is no fault.
if command -v mandoc >/dev/null; then
    for page in "$source"/docs/man/nx*; do
        mandoc -T lint -W warning "$page" | grep -E 'WARNING|ERROR' && status=1
    done
fi
exit "${status:-0}"
