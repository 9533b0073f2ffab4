#!/usr/bin/env bash
# docs/porting-nx2.md does what it says: its programs compile, its commands run in its order, and print what it shows.
set -uo pipefail
# shellcheck source=nx2_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/nx2_common.bash"
command -v gfortran >/dev/null || { echo "skipped: no gfortran" && exit 77; }
export PATH=$stage/bin:$PATH LC_ALL=C.UTF-8

# Programs are blocks of c or fortran, whose first line has the name of the file. Blocks of sh must succeed. In blocks of
# console, a line with a $ is a command, and the lines after it are parts of what it prints.
python3 - "$ULFM_SOURCE/docs/porting-nx2.md" <<'PYTHON'
import re, subprocess, sys, textwrap

page = open(sys.argv[1], encoding="utf-8").read()
commands = failures = 0


def run(command):
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    return done.returncode, done.stdout.decode()


def check(command, good, output):
    global commands, failures
    commands += 1
    failures += not good
    print("ok  " if good else "FAIL", command.strip().replace("\n", "; "))
    if not good:
        print(textwrap.indent(output, "     | "))


for language, body in re.findall(r"^ *```(\w+)\n(.*?)^ *```$", page, re.M | re.S):
    body = textwrap.dedent(body)
    if language in ("c", "fortran"):
        name = re.search(r"\b(\w+\.[cf])\b", body.split("\n")[0]).group(1)
        open(name, "w", encoding="utf-8").write(body)
    elif language == "sh":
        code, output = run("set -e\n" + body)
        check(body, code == 0, output)
    elif language == "console":
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, *shown = part.splitlines()
            code, output = run(command)
            missing = [line for line in shown if line not in output]
            check(command, not missing, f"exit code {code}, without: {missing}\n{output}")
    else:
        check(language, False, "a block of a kind that this script does not know")
print(f"{commands} commands, {failures} failures")
sys.exit(1 if failures or commands == 0 else 0)
PYTHON
