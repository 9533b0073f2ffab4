#!/usr/bin/env bash
# README and troubleshooting followed literally by somebody with an empty home: every command of their blocks is run, and every
# command that stands in a sentence. A block behind "<!-- elsewhere: WHERE -->" is run there. The porting guide has
# nx2_porting.sh.
set -uo pipefail
: "${ULFM_STAGE:?}" "${ULFM_SOURCE:?}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
[[ -x $stage/bin/mpicc ]] || { echo "skipped: no mpicc in the stage" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/home" "$work/ulfm/build"
ln -s "$stage" "$work/ulfm/build/stage"
cp -r "$ULFM_SOURCE/examples" "$work/ulfm/"
cd "$work/ulfm" || exit 1

# What the pages take for granted: a program of one's own.
cat >hello.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("hello from %d of %d\n", rank, size);
    MPI_Finalize();
    return sum != size * (size - 1) / 2;
}
C
"$stage/bin/mpicc" hello.c -o built-elsewhere && cp built-elsewhere program || exit 1

env -i HOME="$work/home" PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 python3 - "$ULFM_SOURCE" <<'P'
import os, re, shutil, signal, subprocess, sys, time

source = sys.argv[1]
seconds = int(os.environ.get("ULFM_PAGE_SECONDS", "8"))  # what still works then has begun well
failures = commands = 0
path = f"{os.getcwd()}/build/stage/bin:{os.environ['PATH']}"


def run(command, may_fail=False, background=None):
    global failures, commands
    commands += 1
    before = subprocess.Popen(["bash", "-c", background], env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) if background else None
    for _ in range(300 if before else 0):  # until there is something to look at
        if subprocess.run(["bash", "-c", "ulfm_stat --list"], env={**os.environ, "PATH": path}, capture_output=True).returncode == 0:
            break
        time.sleep(0.1)
    done = subprocess.Popen(["bash", "-c", command], env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output, code = done.communicate(timeout=seconds if not command.startswith(("g++", "mpicc", "nx")) else 120)[0], done.returncode
    except subprocess.TimeoutExpired:
        os.killpg(done.pid, signal.SIGTERM)
        try:
            output, code = done.communicate(timeout=20)[0], 0
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGKILL)
            output, code = done.communicate()[0], 0
    if before:
        os.killpg(before.pid, signal.SIGTERM)
        before.wait()
    # Other jobs of this machine are none of ours.
    if code != 0 and not may_fail and b"several jobs run" not in output:
        failures += 1
        print(f"FAIL {command}\n     " + output.decode(errors="replace")[-600:].replace("\n", "\n     "))


# A look at a running job needs one.
JOB = "ulfm_perf soak --transport xswitch --topology mesh:2x2 --iterations 100000000"

readme = open(source + "/README.md", encoding="utf-8").read()
for where, language, body in re.findall(r"(<!-- elsewhere: [^>]* -->\n+)?^```(\w*)\n(.*?)^```$", readme, re.M | re.S):
    if where or language not in ("sh", "cpp"):
        continue
    if language == "cpp":
        open("greet.cpp", "w", encoding="utf-8").write(body)
        name = re.search(r"// (ulfmrun .*)", body).group(1)
        continue
    for line in re.sub(r"\\\n", " ", body).splitlines():
        line = re.sub(r"\s+#.*", "", line).strip()
        if line.startswith("PATH="):
            continue  # every command is run with it
        if line and "node1" not in line:  # hosts that nobody has
            run(line, background=JOB if line.startswith("ulfm_stat") else None)
run(name)  # the program of the page, as its comment says
assert os.path.exists("greet") and os.path.exists("t.json"), "the page's own files are not there"

# Commands in sentences, of README, too: those that need nothing but what is here.
for page in ("README.md", "docs/troubleshooting.md"):
    text = re.sub(r"^```.*?^```$", "", open(f"{source}/{page}", encoding="utf-8").read(), flags=re.M | re.S)
    for span in re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", text):
        span = re.sub(r"\s+", " ", span)
        if re.fullmatch(r"(?:\w+=\S+ )*ulfm_?\w+(?: .*)", span) and "..." not in span and "ADDRESS" not in span \
                and (" ./" in span or not span.split("=")[-1].count("ulfmrun")) and "ulfm_stat" not in span and "node1" not in span:
            run(span)
        elif span in ("ulfm_info", "ulfmrun --help") or (span.startswith("man -M ") and shutil.which("man")):
            run(span)
left = [os.path.join(where, name) for where, _, files in os.walk(os.environ["HOME"]) for name in files
        if not where.endswith("/.cache/ulfm")]
if left:
    failures += 1
    print("FAIL left behind in the home:", left)
print(f"{commands} commands of the pages, {failures} failures")
sys.exit(1 if failures or commands < 30 else 0)
P
