#!/usr/bin/env bash
# A real Slurm cluster on one machine, for the tests of the job script: a head and two nodes, connected by a bridge.
# Each node is a network, mount and UTS namespace with its own slurmd, host name, /tmp and /dev/shm. All nodes share one
# PID namespace: if its first process ends, the kernel kills every daemon and job and removes the networks. The script
# does not touch another Slurm or munge on this machine.
#
#   cluster.sh start DIR     returns when the nodes are idle; exit code 77 if no cluster can start here
#   cluster.sh run DIR CMD…  runs CMD in the head's namespaces, with SLURM_CONF set
#   cluster.sh stop DIR      ends the cluster and removes DIR
#
# DIR must be a folder that all nodes share, so not in /tmp or /dev/shm. The cluster ends by itself after 90 minutes.
set -euo pipefail
verb=${1:?start, run or stop}
dir=$(realpath -m "${2:?a folder}")
shift 2
readonly nodes=2 cpus=4 network=10.77.0 lifetime_seconds=5400

skip() {
    echo "skipped: $*"
    exit 77
}

# Exits with 77 if a cluster cannot start on this machine or for this user.
require() {
    local program
    [ "$(id -u)" = 0 ] || skip "a test cluster needs root (network and mount namespaces)"
    for program in slurmctld slurmd munged mungekey ip unshare nsenter; do
        command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin command -v "$program" >/dev/null ||
            skip "$program is not installed (tools/install.sh --tests)"
    done
    case $dir/ in /tmp/* | /dev/shm/*) skip "$dir: the nodes do not share /tmp and /dev/shm" ;; esac
    unshare --net --uts --pid --fork --mount --mount-proc true 2>/dev/null ||
        skip "namespaces are not permitted here, or / is no mount point (in a chroot: mount --bind it onto itself first)"
    unshare --net ip link add finch0 type bridge 2>/dev/null || skip "no network bridge can be made here"
}

write_configuration() {
    cat >"$dir/slurm.conf" <<END
ClusterName=finch
SlurmctldHost=head($network.254)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
SlurmUser=root
SlurmdUser=root
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MailProg=/bin/true
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd-%n.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=200
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1
ReturnToService=2
KillWait=15
NodeName=n[1-$nodes] NodeAddr=$network.[1-$nodes] CPUs=$cpus RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=10 State=UP
END
    # If the plugin is named, Slurm does not search the mounts for control groups: a container may have none. The tests
    # use no control groups.
    echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf"
}

start_node() {  # NUMBER
    local name=n$1
    mkdir -p "$dir/spool-$name" "$dir/tmp-$name"
    chmod 1777 "$dir/tmp-$name"
    # The bash process keeps the namespaces open, waits for its network interface, and then becomes slurmd.
    unshare --net --mount --uts bash -c "
        echo \$\$ >'$dir/$name.pid'
        until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
        ip addr add $network.$1/24 dev eth0; ip link set eth0 up; ip link set lo up
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        mount --bind '$dir/tmp-$name' /tmp
        hostname $name
        exec slurmd -D -N $name" >"$dir/log/host-$name.log" 2>&1 </dev/null &
    until [ -s "$dir/$name.pid" ]; do sleep 0.05; done
    ip link add "node$1" type veth peer name eth0 netns "$(cat "$dir/$name.pid")"
    ip link set "node$1" master bridge0 up
}

# The first process of the cluster's PID namespace. If it ends, the kernel kills all its descendants.
head_node() {
    local i
    export PATH=$PATH:/usr/sbin:/sbin
    export SLURM_CONF=$dir/slurm.conf
    hostname head
    mungekey --create --force --keyfile="$dir/munge/key"
    munged --force --origin=127.0.0.1 --socket="$dir/munge/socket" --key-file="$dir/munge/key" --pid-file="$dir/munge/pid" \
        --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
    ip link set lo up
    ip link add bridge0 type bridge
    ip addr add $network.254/24 dev bridge0
    ip link set bridge0 up
    slurmctld -c -i
    for ((i = 1; i <= nodes; i++)); do start_node "$i"; done
    sleep $lifetime_seconds
}

# Prints the process id of the cluster's first process in the namespace of the caller. The pid file of an ended cluster
# may name an unrelated process. Therefore the command line of the process must contain the folder.
first_process() {
    local outer
    outer=$(cat "$dir/unshare.pid" 2>/dev/null) &&
        [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$outer/cmdline") == *"$dir"* ]] &&
        cat "/proc/$outer/task/$outer/children" 2>/dev/null | tr -d ' '
}

enter() {
    local first
    first=$(first_process) && [ -n "$first" ] || skip "there is no cluster in $dir"
    SLURM_CONF=$dir/slurm.conf exec nsenter --target "$first" --net --uts --pid --mount --root -- \
        env --chdir="$PWD" "$@"
}

start() {
    local idle end=$((SECONDS + 30))
    require
    if [ -e "$dir/unshare.pid" ]; then stop; fi  # also removes the folder of a cluster that was not stopped
    mkdir -p "$dir"/{state,log,munge}
    chmod 711 "$dir/munge"
    write_configuration
    setsid unshare --net --uts --pid --mount --mount-proc --fork --kill-child bash "$0" head "$dir" \
        >"$dir/log/head.log" 2>&1 </dev/null &
    echo $! >"$dir/unshare.pid"
    while [ $SECONDS -lt $end ]; do
        idle=$(enter timeout 3 sinfo --noheader --states=idle --format=%D 2>/dev/null) || true
        [ "$idle" = "$nodes" ] && return 0
        sleep 0.5
    done
    tail -n 20 "$dir"/log/*.log >&2
    echo "cluster.sh: the nodes did not come up within 30 s" >&2
    stop
    return 1
}

# From outside, only KILL reliably ends the first process of a PID namespace. The kernel then kills all others in it.
stop() {
    local first
    if first=$(first_process) && [ -n "$first" ]; then
        kill -KILL "$first"
        while [ -e "/proc/$first" ]; do sleep 0.05; done
    fi
    rm -rf --one-file-system "$dir"
}

case $verb in
    start) start ;;
    head) head_node ;;
    run) enter "$@" ;;
    stop) stop ;;
    *) echo "start, run or stop" >&2; exit 2 ;;
esac
