# Hosts to test on, on one machine: a host is a set of namespaces (network, mount, pid, uts, ipc), a cable is a veth pair
# to a bridge. Each host has decoys: a docker0 with the address that all others have too, and a tunnel without a route.
#
#   hosts_up N        hosts h1 ... hN with the addresses 10.77.0.1 ... 10.77.0.N (and fd77::1 ...); exits with 77 where
#                     that is not permitted
#   on_host K CMD...  runs a command on host K
#   on_hosts N OPTION...  ulfmrun on the hosts h1 to hN, started on h1
#   beside_host K CMD...  a command that starts others by the launcher, as a user of host K does
#   $hosts_launcher   for mpiexec -launcher-exec: starts a command on a host, as ssh does
#   cut_cable K, join_cable K
# shellcheck shell=bash

if [[ ${ULFM_IN_NAMESPACE:-} != yes ]]; then
  for tool in ip unshare nsenter; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here (Debian: apt install iproute2 util-linux)"; exit 77; }
  done
  map=()
  [[ $(id -u) == 0 ]] || map=(--map-root-user)
  why=$(unshare "${map[@]}" --net --mount --pid --uts --ipc --fork true 2>&1) ||
    { echo "skipped: this machine does not permit namespaces: $why"; exit 77; }
  # A switch of our own, in a network namespace that ends with this script; so do all processes in it.
  export ULFM_IN_NAMESPACE=yes
  exec unshare "${map[@]}" --net --mount --pid --fork --kill-child --mount-proc bash "$0" "$@"
fi

unset ULFM_IN_NAMESPACE
ip link set lo up
hosts_folder=$(mktemp -d /tmp/ulfm-hosts.XXXXXX)
hosts_launcher=$hosts_folder/launch
trap 'rm -rf "$hosts_folder"' EXIT

hosts_fail() { echo "hosts: $*" >&2; exit 1; }

decoys_on() {  # the same on every host
  nsenter -t "$1" -n sh -ec '
    ip link add docker0 type bridge && ip addr add 172.17.0.1/16 dev docker0 && ip link set docker0 up
    ip link add virbr0 type bridge && ip addr add 192.168.122.1/24 dev virbr0 && ip link set virbr0 up
    if ip tuntap add mode tun name vpn0 2>/dev/null; then ip addr add 10.8.0.1/32 dev vpn0; ip link set vpn0 up; fi'
}

host_up() {
  local k=$1 pid
  # shellcheck disable=SC2016
  unshare --net --mount --pid --uts --ipc --fork --kill-child --mount-proc sh -c '
    hostname h'"$k"' && mount --bind '"$hosts_folder"'/hosts /etc/hosts && mount -t tmpfs tmpfs /dev/shm
    exec sleep 100000' &
  for _ in $(seq 500); do
    pid=$(pgrep -P $! sleep) && break
    sleep 0.02
  done
  [[ -n ${pid:-} ]] || hosts_fail "host $k did not come up"
  echo "$pid" >"$hosts_folder/h$k.pid"
  ip link add "cable$k" type veth peer name eth0 netns "$pid" || hosts_fail "no veth devices here"
  ip link set "cable$k" master switch up
  nsenter -t "$pid" -n sh -ec "ip link set lo up; ip addr add 10.77.0.$k/24 dev eth0; ip link set eth0 up
    ip addr add fd77::$k/64 dev eth0 nodad 2>/dev/null || true"
  decoys_on "$pid"
}

hosts_up() {
  local k
  ip link set lo up
  ip link add switch type bridge 2>/dev/null || { echo "skipped: this kernel has no bridges"; exit 77; }
  ip link set switch up
  echo "127.0.0.1 localhost" >"$hosts_folder/hosts"
  for k in $(seq "$1"); do echo "10.77.0.$k h$k" >>"$hosts_folder/hosts"; done
  mount --bind "$hosts_folder/hosts" /etc/hosts || hosts_fail "no mounts here"
  cat >"$hosts_launcher" <<LAUNCH
#!/bin/bash
# As ssh: [options] HOST COMMAND...
while [[ \$1 == -* ]]; do shift; done
host=\$1
shift
pid=\$(cat "$hosts_folder/\$host.pid") || { echo "no host \$host" >&2; exit 255; }
exec nsenter -t "\$pid" -n -m -p -u -i sh -c "\$*"
LAUNCH
  chmod +x "$hosts_launcher"
  for k in $(seq "$1"); do host_up "$k"; done
}

on_host() {
  local pid
  pid=$(cat "$hosts_folder/h$1.pid")
  shift
  nsenter -t "$pid" -n -m -p -u -i -- "$@"
}

cut_cable() { ip link set "cable$1" down; }
join_cable() { ip link set "cable$1" up; }

# h1,h2,...,hN
host_list() { seq -s, -f 'h%g' "$1"; }

# A command with the network and the name of a host, and our own processes: its launcher has to find the other hosts.
beside_host() {
  local k=$1
  shift
  timeout "${hosts_limit:-120}" nsenter -t "$(cat "$hosts_folder/h$k.pid")" -n -u -- "$@" </dev/null
}

on_hosts() {
  local n=$1
  shift
  beside_host 1 "$stage/bin/ulfmrun" -hosts "$(host_list "$n")" -launcher ssh -launcher-exec "$hosts_launcher" "$@"
}
