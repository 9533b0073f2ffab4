# Hosts to test on, on one machine: a host is a set of namespaces (network, mount, pid, uts, ipc), a cable is a veth pair
# to a bridge, or two TAP devices and a program between them that makes faults. Each host has decoys: a docker0 with the
# address that all others have too, and a tunnel without a route.
#
#   hosts_up N        hosts h1 ... hN with the addresses 10.77.0.1 ... 10.77.0.N (and fd77::1 ...); exits with 77 where
#                     that is not permitted
#   on_host K CMD...  runs a command on host K
#   on_hosts N OPTION...  ulfmrun on the hosts h1 to hN, started on h1
#   beside_host K CMD...  a command that starts others by the launcher, as a user of host K does
#   $hosts_launcher   for mpiexec -launcher-exec: starts a command on a host, as ssh does
#   cut_cable K, join_cable K
#   faulty_cable K OPTION...  host K gets a cable with faults (cable.cpp has the options), until end_cable K, which sets
#                     cable_did to what it did and gives the host a plain one; exits with 77 where TAP devices are not permitted
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
hosts_cable=${ULFM_BUILD:-${ULFM_SOURCE:-.}/build/release}/tests/hosts/ulfm_cable  # the scripts unset these
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
  plain_cable "$k" || hosts_fail "no veth devices here"
  decoys_on "$pid"
}

plain_cable() {
  ip link add "cable$1" type veth peer name eth0 netns "$(cat "$hosts_folder/h$1.pid")" && plug_in "$1"
}

# Both ends of the cable are there. A host has the same address on each of its cables, which others may remember.
plug_in() {
  ip link set "cable$1" master switch up
  nsenter -t "$(cat "$hosts_folder/h$1.pid")" -n sh -ec "ip link set lo up; ip link set eth0 address 02:00:0a:4d:00:0$1
    ip addr add 10.77.0.$1/24 dev eth0; ip link set eth0 up; ip addr add fd77::$1/64 dev eth0 nodad 2>/dev/null || true"
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
# As ssh: [options] [USER@]HOST COMMAND...
while [[ \$1 == -* ]]; do
  [[ \$1 != -l ]] || shift
  shift
done
host=\${1##*@}
shift
case \$host in fd77::* | 10.77.0.*) host=h\${host##*[:.]} ;; esac
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

faulty_cable() {
  local k=$1
  shift
  [[ -x $hosts_cable ]] || hosts_fail "no $hosts_cable: cmake --build build/release --target ulfm_cable"
  [[ -r /dev/net/tun && -w /dev/net/tun ]] || { echo "skipped: no TAP devices here (/dev/net/tun)"; exit 77; }
  rm -f "$hosts_folder/cable$k.out"
  ip link del "cable$k" || hosts_fail "host $k has no cable"
  "$hosts_cable" "$@" "cable$k" "$(cat "$hosts_folder/h$k.pid")" >"$hosts_folder/cable$k.out" 2>&1 &
  echo $! >"$hosts_folder/cable$k.pid"
  until grep -qs up "$hosts_folder/cable$k.out"; do
    kill -0 $! 2>/dev/null || { echo "skipped: no TAP devices here: $(cat "$hosts_folder/cable$k.out")"; exit 77; }
    sleep 0.02
  done
  plug_in "$k"
}

end_cable() {
  local pid
  pid=$(cat "$hosts_folder/cable$1.pid")
  rm "$hosts_folder/cable$1.pid"
  kill "$pid"
  wait "$pid" || hosts_fail "$(cat "$hosts_folder/cable$1.out")"
  cable_did=$(tail -n 1 "$hosts_folder/cable$1.out")
  plain_cable "$1"
}

# signal_cable K SIGNAL: false when it is a plain one.
signal_cable() { [[ -e $hosts_folder/cable$1.pid ]] && kill "-$2" "$(cat "$hosts_folder/cable$1.pid")"; }

cut_cable() { signal_cable "$1" USR1 || ip link set "cable$1" down; }
join_cable() { signal_cable "$1" USR2 || ip link set "cable$1" up; }

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
