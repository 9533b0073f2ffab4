# Slurm on the hosts of hosts.bash: slurmctld on h1 and a slurmd on each, without munge, as root of the namespace.
#
#   slurm_up N     exits with 77 where there is no Slurm or its daemons do not come up
#   on_slurm CMD...  runs srun, squeue and the like on h1
# shellcheck shell=bash
# shellcheck disable=SC2154  # hosts_folder is that of hosts.bash

slurm_up() {
  local k n=$1
  for tool in slurmctld slurmd srun; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here (Debian: apt install slurm-wlm)"; exit 77; }
  done
  export SLURM_CONF=$hosts_folder/slurm.conf
  cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=h1
SlurmUser=root
AuthType=auth/none
CredType=cred/none
MailProg=/bin/true
SlurmdParameters=config_overrides
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
ReturnToService=2
SlurmctldTimeout=300
SlurmdTimeout=300
KillWait=2
StateSaveLocation=$hosts_folder/state
SlurmdSpoolDir=$hosts_folder/spool.%n
TmpFS=$hosts_folder/tmp.%n
SlurmctldPidFile=$hosts_folder/slurmctld.pid
SlurmdPidFile=$hosts_folder/slurmd.%n.pid
SlurmctldLogFile=$hosts_folder/slurmctld.log
SlurmdLogFile=$hosts_folder/slurmd.%n.log
PluginDir=$(dirname "$(find /usr/lib* -name mpi_pmi2.so 2>/dev/null | head -n 1)")
NodeName=$(host_list "$n") CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
CONF
  mkdir -p "$hosts_folder/state"
  on_host 1 slurmctld -D >"$hosts_folder/slurmctld.out" 2>&1 &
  for k in $(seq "$n"); do
    mkdir -p "$hosts_folder/spool.h$k" "$hosts_folder/tmp.h$k"
    on_host "$k" slurmd -D >"$hosts_folder/slurmd.$k.out" 2>&1 &
  done
  for _ in $(seq 300); do
    [[ $(on_slurm sinfo -h -t idle -o %D 2>/dev/null) == "$n" ]] && return
    sleep 0.1
  done
  echo "skipped: Slurm does not come up here: $(cat "$hosts_folder"/slurm*.out "$hosts_folder"/slurm*.log 2>/dev/null | grep -i -m 1 -E 'fatal|error')"
  exit 77
}

on_slurm() { nsenter -t "$(cat "$hosts_folder/h1.pid")" -n -m -p -u -i -- \
  env -C "$PWD" SLURM_CONF="$SLURM_CONF" timeout 60 "$@" </dev/null; }
