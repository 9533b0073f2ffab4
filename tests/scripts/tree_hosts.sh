#!/usr/bin/env bash
# A group opened as a tree on several hosts, which are namespaces of this machine (tests/hosts/hosts.bash): members that
# send on reach those below them on other hosts, by the address that the list of the tree has.
set -uo pipefail
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"
"${CC:-gcc}" -std=c17 -O1 -Wall -Werror "$here/tree.c" -o tree -I"$stage/include" -L"$stage/lib" -lulfm -Wl,-rpath,"$stage/lib"
hosts_up 3
on 2 'a tree on two hosts in turn' '^3 of 3 have all$' -n 4 ./tree 60 0 0
on 3 'a tree on three hosts in turn' '^5 of 5 have all$' -n 6 ./tree 60 0 0
on 3 'a tree on three hosts, host by host' '^5 of 5 have all$' -n 6 -ppn 2 ./tree 60 0 0
on 3 'a tree over connections alone' '^5 of 5 have all$' --transport tcp -n 6 ./tree 60 0 0
on 3 'a tree on an emulated interconnect of three hosts' '^5 of 5 have all$' --transport xswitch --topology mesh:4x4 -n 6 ./tree 60 0 0
exit $((failures != 0))
