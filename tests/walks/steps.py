"""For gdb: steps through an MPI_Send and an MPI_Recv, and prints the functions called, one line each. See count."""
import re

import gdb

MOST = 50000  # instructions


def register(name):
    return int(gdb.newest_frame().read_register(name))


def walk(function, ignore):
    """From the entry of a function to its return."""
    breakpoint = gdb.Breakpoint(function)
    breakpoint.ignore_count = ignore
    gdb.execute("continue", to_string=True)
    breakpoint.delete()
    entry, depth, calls, locked, system = register("rsp"), 0, [], 0, 0
    architecture = gdb.newest_frame().architecture()
    for steps in range(1, MOST):
        text = architecture.disassemble(register("rip"))[0]["asm"]
        locked += text.startswith("lock") or re.match(r"xchg .*\(", text) is not None
        system += text.startswith("syscall")
        is_return = re.match(r"(repz )?ret", text) is not None
        done = is_return and register("rsp") == entry
        gdb.execute("stepi", to_string=True)
        if done:
            break
        depth -= is_return
        if text.startswith("call"):
            depth += 1
            calls.append("  " * depth + re.sub(r"\(.*", "", gdb.newest_frame().name() or "?"))
    print(f"walk: {function}: {steps} instructions, {locked} locked, {system} system calls")
    for call in calls:
        print(f"walk: {call}")


gdb.execute("set pagination off")
gdb.execute("set confirm off")
gdb.execute("break main")
gdb.execute("run", to_string=True)
walk("PMPI_Send", 102)
walk("PMPI_Recv", 0)
gdb.execute("kill")
