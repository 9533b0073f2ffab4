#!/usr/bin/env bash
# Processes that did not begin together (worlds.c): who is put on one node, on one host and on several; servers that die while
# somebody connects to them; a name server that refuses a name, and one that is not there.
set -uo pipefail
# shellcheck source=hosts_common.bash
. "$(dirname "${BASH_SOURCE[0]}")/hosts_common.bash"
"$stage/bin/mpicc" -O1 "$here/worlds.c" -o worlds || exit 1

cat >asks.c <<'C'
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* asks serve WHAT: opens a port, which it writes into the file port, and WHAT: dies, closes (and lives on for 4 s), ends.
 * asks: connects to it. asks names: publishes a name twice and takes it back twice. */
static const char *class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class == MPI_SUCCESS ? "done" : class == MPI_ERR_PORT ? "port" : class == MPI_ERR_NAME ? "name" :
           class == MPI_ERR_SERVICE ? "service" : "other";
}
int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME];
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (argc == 1) {
        while (access("port", R_OK)) usleep(10000);
        FILE *in = fopen("port", "r");
        if (!fgets(port, sizeof port, in)) return 1;
        double begun = MPI_Wtime();
        int code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other);
        printf("connect %s, %s\n", class_of(code), MPI_Wtime() - begun < 30 ? "soon" : "late");
    } else if (!strcmp(argv[1], "names")) {
        MPI_Open_port(MPI_INFO_NULL, port);
        printf("names %s", class_of(MPI_Publish_name("one", MPI_INFO_NULL, port)));
        printf(" %s", class_of(MPI_Publish_name("one", MPI_INFO_NULL, port)));
        printf(" %s", class_of(MPI_Unpublish_name("one", MPI_INFO_NULL, port)));
        printf(" %s", class_of(MPI_Lookup_name("one", MPI_INFO_NULL, found)));
        printf(" %s\n", class_of(MPI_Unpublish_name("one", MPI_INFO_NULL, port)));
    } else {
        MPI_Open_port(MPI_INFO_NULL, port);
        FILE *out = fopen("port.new", "w");
        fputs(port, out);
        fclose(out);
        rename("port.new", "port");
        if (!strcmp(argv[2], "dies")) sleep(1), raise(SIGKILL);
        if (!strcmp(argv[2], "closes")) MPI_Close_port(port), sleep(4);
    }
    MPI_Finalize();
    return 0;
}
C
"$stage/bin/mpicc" -O1 asks.c -o asks || exit 1

for transport in direct mux; do over "spawned, $transport" 'worlds: right' --transport $transport -n 2 ./worlds spawn 3; done
over "spawned, an emulated interconnect" 'worlds: right' --transport xswitch --topology mesh:2x2 -n 2 ./worlds spawn 2

# meets_one_that WHAT SECONDS: whoever connects to a server that does so, and waits for so long at most, is told, and ends.
meets_one_that() {
    local transport
    for transport in direct tcp; do
        rm -f port
        timeout 60 "$stage/bin/ulfmrun" --transport $transport -n 1 ./asks serve "$1" >served 2>&1 &
        MPIR_CVAR_CH3_COMM_CONNECT_TIMEOUT=$2 over "a server that $1, $transport" 'connect port, soon' --transport $transport -n 1 ./asks
        wait $!
    done
}
meets_one_that dies 180
meets_one_that closes 2
meets_one_that ends 180

port=$((20000 + $$ % 10000))
"$stage/bin/hydra_nameserver" -port $port 2>nameserver &
nameserver=$!
for _ in $(seq 600); do
    (: </dev/tcp/127.0.0.1/$port) 2>>nameserver && break
    sleep 0.05
done
kill -0 $nameserver || { cat nameserver && exit 1; }
over "a name server and a name that is taken" 'names done name done name service' -nameserver 127.0.0.1:$port -n 1 ./asks names
kill $nameserver && wait $nameserver 2>/dev/null
over "a name server that is not there" 'names name name service name service' -nameserver 127.0.0.1:$port -n 1 ./asks names
grep -q "the name server at 127.0.0.1, port $port, cannot be reached" err || fail "a name server that is not there" "no sentence"

hosts_up 3
on 2 "spawned on two hosts" 'worlds: right' -n 2 ./worlds spawn 3
on 2 "spawned on an emulated interconnect over two hosts" 'worlds: right' --transport xswitch --topology mesh:2x2 -n 3 ./worlds spawn 2
for transport in mux tcp; do
    rm -f port
    beside_host 1 "$stage/bin/ulfmrun" -hosts h1,h2 -launcher ssh -launcher-exec "$hosts_launcher" --transport $transport -n 2 \
        ./worlds accept port >accepted 2>&1 &
    beside_host 2 "$stage/bin/ulfmrun" -hosts h2,h3 -launcher ssh -launcher-exec "$hosts_launcher" --transport $transport -n 3 \
        ./worlds connect port >out 2>err
    code=$?
    wait $! || code=$?
    cat accepted >>out
    check_run "two jobs that share a host, $transport" 'worlds: right' $code
done
exit $((failures != 0))
