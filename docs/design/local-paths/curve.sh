#!/bin/sh
# Measures one point of curve.csv: curve.sh LONGHAUL CONGESTION WINDOW, as root, with ip(8).
# Four streams over a veth pair for 2 s. WINDOW is a size for -w, or "auto:BYTES" for the third
# value of tcp_rmem; with CUBIC also of tcp_wmem. Prints iperf3's last lines, CPU time with them.
set -eu
longhaul=$1 congestion=$2 window=$3
client=client-$$ server=server-$$
trap 'ip netns del $client; ip netns del $server' EXIT
ip netns add $client
ip netns add $server
ip link add local0 netns $client type veth peer name local0 netns $server
ip -n $client addr add 10.77.0.1/24 dev local0
ip -n $server addr add 10.77.0.2/24 dev local0
ip -n $client link set local0 up
ip -n $server link set local0 up
case $window in
auto:*) most=${window#auto:} option="" ;;
*) most=33554432 option="-w $window" ;;
esac
send=4194304
if [ "$congestion" = cubic ] && [ "$most" -gt "$send" ]; then send=$most; fi
for host in $client $server; do
    ip netns exec $host sysctl -qw "net.ipv4.tcp_rmem=4096 131072 $most" \
        "net.ipv4.tcp_wmem=4096 16384 $send"
done
ip netns exec $server "$longhaul" iperf3 -s -1 >/dev/null &
sleep 0.3
# shellcheck disable=SC2086 # one option or none
ip netns exec $client "$longhaul" iperf3 -c 10.77.0.2 -P 4 -t 2 -C "$congestion" -V $option |
    grep -E 'SUM.*receiver|CPU Utilization'
wait
